//! The request of a stream, which as a rule is there as a whole, with its answer in memory.

use std::rc::Rc;
use std::task::{Context, Poll};

use afpa_framework::{Module, Now};

use super::data::{Begun, Connection, Next};
use super::receive::Received;
use crate::transport::Transport;

impl<M: Module, T: Transport> Connection<M, T> {
    /// Answers what has arrived, as far as that waits for nothing: without a future, which has the size of all that may become
    /// of a connection. Whether the connection goes on.
    pub(crate) fn answer_at_once(&mut self, now: Now, cx: &mut Context<'_>) -> bool {
        let arrived = match self.poll_receive(cx) {
            Poll::Ready(Received::Data(arrived)) => arrived,
            // Nothing has come that could be answered, and nothing more comes.
            Poll::Ready(Received::Ended | Received::Gone | Received::Draining) => return false,
            Poll::Ready(Received::TimedOut(_)) | Poll::Pending => return true,
        };
        let next = self.interrupt_context_at(now, arrived);
        if matches!(next, Next::Receive) && self.send_at_once(cx) {
            return false;
        }
        self.begun = Some(Box::new(Begun(next)));
        true
    }

    /// Sends the gathered bytes. Whether the connection is done with that.
    fn send_at_once(&mut self, cx: &mut Context<'_>) -> bool {
        let worker = Rc::clone(&self.worker);
        let mut out = worker.outbox.borrow_mut();
        if out.is_empty() || !out.parts.is_empty() {
            return false;
        }
        let section = std::mem::take(&mut out.block);
        if section > 0 {
            self.transport.begin_section(section, out.bytes.len().saturating_sub(section) as u64);
        }
        match self.transport.poll_send_gathered(cx, &mut out.bytes, false) {
            Poll::Ready(Ok(sent)) => {
                self.count_sent(sent);
                // A client that takes no more gets the rest later.
                out.bytes.drain(..sent);
                out.bytes.is_empty() && self.transport.is_over()
            }
            Poll::Ready(Err(_)) => {
                out.clear();
                true
            }
            Poll::Pending => false,
        }
    }
}
