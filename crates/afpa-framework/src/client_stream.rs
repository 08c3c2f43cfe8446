//! The client's half of a split connection (IBM paper, section 3), as the engine lends it to a module.

use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::clock::Now;

/// How long the client may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Between two arrivals of a request's content.
    pub body: Duration,
    /// Without taking a byte of a response.
    pub write: Duration,
}

/// The connection to the client while *derive remote response* has it.
///
/// Content of the request is taken from [`arrived`](ClientStream::arrived) first, then from
/// [`poll_receive`](ClientStream::poll_receive); what was read beyond it is given back. Nothing is sent
/// that was not given to [`poll_send`](ClientStream::poll_send), which takes less than it is given when
/// the client is slow: that is the back-pressure. Time-outs are kept by the engine's sweep, not by
/// timers: whoever gets `Pending` asks [`is_over`](ClientStream::is_over) before it waits.
pub trait ClientStream {
    /// What had arrived behind the head of the request and was not consumed yet.
    fn arrived(&self) -> &[u8];

    /// Takes `n` bytes from the front of what had arrived.
    fn consume(&mut self, n: usize);

    /// Receives what arrives after that. `Ok(0)` is the end of the stream.
    fn poll_receive(&mut self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Gives back what was received and does not belong to the request.
    fn give_back(&mut self, bytes: &[u8]);

    /// Watches a client from which nothing is expected; what it sends is kept, within bounds. Ready when
    /// the client is gone.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// Sends from `bytes`. `more` says that more follows at once, so that no short packet is made.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        more: bool,
    ) -> Poll<io::Result<usize>>;

    /// Ends the sending direction: the server of a tunnel has.
    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// The connection will be reset, not ended, so that a response without a length that breaks off is
    /// not taken for a whole one.
    fn reset_at_end(&mut self);

    /// The time.
    fn now(&self) -> Now;

    /// The time when somebody on this core last asked for it: when the request came, or a sweep ago at
    /// most. Costs no reading of the clock.
    fn cached_now(&self) -> Now;

    /// How long this client may take.
    fn timeouts(&self) -> Timeouts;

    /// Waits no longer than until `steady_ms` from now on; `None`: as long as it takes.
    fn wait_until(&mut self, steady_ms: Option<u64>);

    /// Whether that time has come. Otherwise the task is woken when it does.
    fn is_over(&self, cx: &mut Context<'_>) -> bool;
}
