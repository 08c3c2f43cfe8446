//! The client's stream, as the engine lends it to the module for an exchange with a server.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use afpa_framework::{BreakOff, ClientStream, Module, Now, Timeouts};

use super::{Connection, End};
use crate::transport::{Leaving, Transport};
use crate::worker::{ARRIVAL, Worker};

/// A connection, lent to *derive remote response* for one exchange.
pub(super) struct LentClient<'c, M: Module, T> {
    worker: Rc<Worker<M>>,
    connection: &'c mut Connection<M, T>,
    /// A gathered send is pending: nothing else may be asked of the transport.
    lent: bool,
    /// A receive was put off because of that: it has to be asked for again.
    put_off: bool,
    /// The client did not take the last gathered send as a whole.
    slow: bool,
    /// Bytes of content received, and bytes sent.
    moved: u64,
    /// The number of sweeps when the client was to be watched first.
    unwatched_since: Option<u64>,
}

/// An exchange that moves more than this is not a short one: its pieces leave the ring.
pub(crate) const SHORT: u64 = 32 * 1024;

/// Bytes that one segment carries nearly everywhere. Of more, the kernel sends the whole segments at once, and the end of the
/// connection would leave with the rest: that is as many packets as without.
const ONE_SEGMENT: usize = 1400;

impl<'c, M: Module, T: Transport> LentClient<'c, M, T> {
    pub(super) fn new(connection: &'c mut Connection<M, T>) -> Self {
        let worker = Rc::clone(&connection.worker);
        let (lent, put_off, slow, moved) = (false, false, false, 0);
        Self { worker, connection, lent, put_off, slow, moved, unwatched_since: None }
    }

    /// Whether the client is to be watched only from the next sweep on. Most servers answer before that, and a connection
    /// whose only request is answered then costs no call that begins to watch it, and none that ends that.
    fn watches_later(&mut self, cx: &Context<'_>) -> bool {
        if !self.connection.transport.is_unwatched() {
            return false;
        }
        let sweep = self.worker.counters.ticks.get();
        let is_first = *self.unwatched_since.get_or_insert(sweep) == sweep;
        if is_first {
            self.worker.table.look_later(self.connection.entry, cx.waker());
        }
        is_first
    }

    /// Takes back bytes that are still lent when the exchange is over, and sends the rest of them.
    pub(super) async fn settle(mut self) -> Result<(), End> {
        if self.moved <= SHORT {
            self.worker.counters.short_exchanges.add(1);
        }
        if !self.lent {
            return Ok(());
        }
        let mut last = Vec::new();
        let sent = poll_fn(|cx| self.poll_send_gathered(cx, &mut last, false)).await;
        let sent = sent.map_err(|_| End::Gone)?;
        let rest = last.get(sent..).unwrap_or_default();
        self.connection.send_all(rest, false).await.map_err(|(end, _)| end)
    }

    fn count_sent(&mut self, sent: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(n)) = sent {
            self.connection.count_sent(*n);
            self.moved += *n as u64;
        }
    }
}

impl<M: Module, T: Transport> ClientStream for LentClient<'_, M, T> {
    fn arrived(&self) -> &[u8] {
        &self.connection.input
    }

    fn consume(&mut self, n: usize) {
        let input = &mut self.connection.input;
        debug_assert!(n <= input.len(), "more was consumed than had arrived");
        if n >= input.len() {
            *input = Vec::new();
        } else {
            input.drain(..n);
        }
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        if self.lent {
            self.put_off = true;
            return Poll::Pending;
        }
        self.connection.transport.expects_more();
        let received = self.connection.transport.poll_receive(cx, room);
        if let Poll::Ready(Ok(n)) = received {
            self.worker.counters.received_bytes.add(n as u64);
            self.moved += n as u64;
        }
        received
    }

    fn give_back(&mut self, bytes: &[u8]) {
        let input = &mut self.connection.input;
        debug_assert!(input.is_empty(), "what had arrived is consumed before more is received");
        input.extend_from_slice(bytes);
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.lent || self.connection.half_closed || self.watches_later(cx) {
            return Poll::Pending;
        }
        let mut scratch = self.worker.scratch.borrow_mut();
        let input = &mut self.connection.input;
        loop {
            // Enough is kept: TCP's flow control stops a client that keeps sending.
            let Some(room) = scratch.get_mut(..ARRIVAL.saturating_sub(input.len())) else {
                return Poll::Pending;
            };
            if room.is_empty() {
                return Poll::Pending;
            }
            match self.connection.transport.poll_receive(cx, room) {
                Poll::Ready(Ok(0)) => {
                    // A client that is gone does not take the answer.
                    self.connection.half_closed = true;
                    return Poll::Pending;
                }
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(n)) => {
                    self.worker.counters.received_bytes.add(n as u64);
                    input.extend_from_slice(room.get(..n).unwrap_or_default());
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.connection.half_closed
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        more: bool,
    ) -> Poll<io::Result<usize>> {
        if self.connection.transport.lends() {
            let why = if self.slow { Leaving::SlowClient } else { Leaving::LongAnswer };
            ready!(self.connection.transport.poll_leave_ring(cx, why))?;
        }
        let sent = self.connection.transport.poll_send(cx, bytes, more);
        self.count_sent(&sent);
        sent
    }

    fn poll_send_last(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let joins = T::JOINS_END && bytes.len() <= ONE_SEGMENT;
        self.poll_send(cx, bytes, joins)
    }

    fn poll_send_gathered(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut Vec<u8>,
        more: bool,
    ) -> Poll<io::Result<usize>> {
        let sent = self.connection.transport.poll_send_gathered(cx, bytes, more);
        self.lent = sent.is_pending();
        if !self.lent && std::mem::take(&mut self.put_off) {
            // The exchange has asked for content before it sent the response, and would not ask again by itself.
            cx.waker().wake_by_ref();
        }
        self.slow = matches!(&sent, Poll::Ready(Ok(n)) if *n < bytes.len());
        self.count_sent(&sent);
        sent
    }

    fn gathers(&self) -> bool {
        self.connection.transport.lends()
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lent {
            return Poll::Pending;
        }
        self.connection.transport.poll_shutdown(cx)
    }

    fn reset_at_end(&mut self) {
        self.connection.transport.reset_at_end();
        self.connection.broken = true;
    }

    fn breaks_off(&mut self, why: BreakOff) {
        self.connection.transport.breaks_off(why);
    }

    fn now(&self) -> Now {
        self.worker.clock.now()
    }

    fn cached_now(&self) -> Now {
        self.worker.clock.cached_now()
    }

    fn timeouts(&self) -> Timeouts {
        self.worker.settings.borrow().client_timeouts()
    }

    fn wait_until(&mut self, steady_ms: Option<u64>) {
        self.worker.table.set(self.connection.entry, steady_ms, false);
    }

    fn is_over(&self, cx: &mut Context<'_>) -> bool {
        self.worker.table.wait(self.connection.entry, cx.waker())
    }
}
