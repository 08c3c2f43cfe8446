//! Requests in early data: what waits for the end of the handshake, and how.
//!
//! Whoever has recorded the first bytes of a client can send it again (RFC 8446, section 8). So until the handshake is
//! complete, only what changes nothing is answered, and the rest waits: that costs a client one round trip, where 425 would
//! cost it two and is not understood by all (RFC 8470, section 3).

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

    /// Waits for the end of the handshake, if it is not complete. What is gathered is sent before.
    pub(super) async fn finish_handshake(&mut self) -> Result<(), End> {
        if self.early.is_none() {
            return Ok(());
        }
        self.send_response().await?;
        self.wait_for_handshake().await
    }

    /// The same, with nothing gathered. What the handshake leaves to be sent is not sent yet.
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

    /// Waits for the end of the handshake before the connection ends: what the client still sends for it would meet a closed
    /// socket, and the reset could destroy the answer (RFC 9112, section 9.6).
    pub(super) async fn finish_handshake_to_close(&mut self) -> Result<(), End> {
        if self.early.is_none() {
            return Ok(());
        }
        self.wait_for_handshake().await?;
        self.send_response().await
    }
}
