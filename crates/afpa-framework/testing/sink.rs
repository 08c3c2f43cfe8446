//! A client in memory, for the tests of several crates, each of which compiles it for itself: the testkit, where it would
//! lie otherwise, imports nothing of the product.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use afpa_framework::{ClientStream, Now, Timeouts, steady_ms};

/// A client that takes everything at once, or nothing, and sends nothing more.
pub(crate) struct Sink {
    /// The bytes that it received.
    pub(crate) received: Vec<u8>,
    /// In how many pieces.
    pub(crate) writes: usize,
    /// It takes nothing, and counts here how often it might have.
    pub(crate) refuses: Option<Rc<Cell<usize>>>,
}

impl Sink {
    /// A client that allocates nothing until it has received as many bytes.
    pub(crate) fn with_room(bytes: usize) -> Self {
        Self { received: Vec::with_capacity(bytes), writes: 0, refuses: None }
    }
}

impl ClientStream for Sink {
    fn arrived(&self) -> &[u8] {
        &[]
    }
    fn consume(&mut self, n: usize) {
        assert_eq!(n, 0);
    }
    fn poll_receive(&mut self, _: &mut Context<'_>, _: &mut [u8]) -> Poll<io::Result<usize>> {
        Poll::Pending
    }
    fn give_back(&mut self, _: &[u8]) {
        unreachable!("nothing is received")
    }
    fn poll_gone(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
    fn poll_send(&mut self, _: &mut Context<'_>, bytes: &[u8], _: bool) -> Poll<io::Result<usize>> {
        if let Some(count) = &self.refuses {
            count.set(count.get() + 1);
            return Poll::Pending;
        }
        self.received.extend_from_slice(bytes);
        self.writes += 1;
        Poll::Ready(Ok(bytes.len()))
    }
    fn poll_shutdown(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn reset_at_end(&mut self) {}
    fn now(&self) -> Now {
        now()
    }
    fn cached_now(&self) -> Now {
        now()
    }
    fn timeouts(&self) -> Timeouts {
        Timeouts { body: Duration::from_secs(9), write: Duration::from_secs(9), least_rate: 0 }
    }
    fn wait_until(&mut self, _: Option<u64>) {}
    fn is_over(&self, _: &mut Context<'_>) -> bool {
        false
    }
}

/// The moment, by a clock of its own.
pub(crate) fn now() -> Now {
    let steady_us = steady_ms() * 1000;
    Now { unix_us: 1_000_000_000_000_000 + steady_us, steady_us }
}
