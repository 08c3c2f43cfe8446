//! *Send response* in a thread context, for tables that have it there
//! ([`Threads`](afpa_framework::Threads)): the work item of the papers.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use afpa_framework::Module;

use super::Connection;
use crate::transport::{Transport, send};

impl<M: Module, T: Transport> Connection<M, T> {
    /// Has a helper thread send `bytes`, as much of them as the socket takes at once.
    ///
    /// Where another thread cannot send them (bytes of TLS, a socket in a ring), or none is free, the connection's own task
    /// does, when the scheduler has given it another turn.
    pub(super) async fn send_in_thread(
        &mut self,
        bytes: &mut Vec<u8>,
        more: bool,
    ) -> io::Result<usize> {
        self.worker.counters.left_for_thread.add(1);
        if let Some(socket) = self.transport.duplicate() {
            let item = Arc::new(std::mem::take(bytes));
            let helpers = self.worker.helpers.borrow().clone();
            let sends = Arc::clone(&item);
            let sent = helpers.run(move || send(socket.as_fd(), &sends, more)).await;
            *bytes = Arc::try_unwrap(item).unwrap_or_default();
            match sent {
                Ok(Ok((n, _))) => return Ok(n),
                Ok(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Ok(Err(error)) => return Err(error),
                Err(_) => {}
            }
        }
        tokio::task::yield_now().await;
        std::future::poll_fn(|cx| self.transport.poll_send_gathered(cx, bytes, more)).await
    }
}
