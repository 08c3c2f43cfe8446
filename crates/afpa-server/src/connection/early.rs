//! Requests in early data, and the wait of some of them for the end of the handshake.
//!
//! Anyone who has recorded the first bytes of a client can send them again (RFC 8446, section 8). So until the
//! handshake is complete, only requests that change nothing are answered, and the others wait. The wait costs a client
//! one round trip; 425 would cost it two, and not all clients understand 425 (RFC 8470, section 3).

use std::future::poll_fn;
use std::task::Poll;

use afpa_framework::Module;

use super::{Connection, End};
use crate::transport::Transport;

impl<M: Module, T: Transport> Connection<M, T> {
    /// Notices when the handshake has become complete. Whether it just has.
    pub(crate) fn note_handshake(&mut self) -> bool {
        let Some(early) = self.early.take_if(|_| !self.transport.is_early()) else { return false };
        self.secured(early.complete());
        true
    }

    /// Waits for the end of the handshake, if it is not complete. Gathered bytes are sent before.
    pub(super) async fn finish_handshake(&mut self) -> Result<(), End> {
        if self.early.is_none() {
            return Ok(());
        }
        self.send_response().await?;
        self.wait_for_handshake().await
    }

    /// [`finish_handshake`](Self::finish_handshake) with nothing gathered. The last output of the handshake is not sent
    /// yet.
    pub(super) async fn wait_for_handshake(&mut self) -> Result<(), End> {
        let Some(early) = &self.early else { return Ok(()) };
        self.worker.table.set(self.entry, Some(early.deadline_ms), false);
        let done = poll_fn(|cx| match self.transport.poll_handshake_end(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if self.worker.table.wait(self.entry, cx.waker()) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        });
        let done = done.await;
        if let Some(Ok(())) = done {
            self.note_handshake();
            return Ok(());
        }
        if let Some(early) = &mut self.early {
            match done {
                Some(Err(error)) => early.fail(&error),
                _ => early.time_out(),
            }
        }
        Err(End::Gone)
    }

    /// Waits for the end of the handshake before the connection ends: the client's last messages of it would meet a
    /// closed socket, and the reset could destroy the answer (RFC 9112, section 9.6).
    pub(super) async fn finish_handshake_to_close(&mut self) -> Result<(), End> {
        if self.early.is_none() {
            return Ok(());
        }
        self.wait_for_handshake().await?;
        self.send_response().await
    }
}
