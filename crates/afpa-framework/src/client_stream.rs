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
    /// The bytes a second that it has to move while it is waited for; 0: any will do.
    pub least_rate: u64,
}

/// Until when a client is waited for further that was waited for until `until_ms`, and has moved so many bytes since: no
/// longer than `most_ms`, and no longer than it keeps to the least rate (docs/rules/clients.md, C2). All times are steady
/// milliseconds.
pub fn extended(until_ms: u64, now_ms: u64, most_ms: u64, bytes: u64, least_rate: u64) -> u64 {
    let longest = now_ms.saturating_add(most_ms);
    match bytes.saturating_mul(1000).checked_div(least_rate) {
        Some(earned_ms) => longest.min(until_ms.saturating_add(earned_ms)),
        None => longest,
    }
}

/// Why a response breaks off, as far as it concerns its client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BreakOff {
    /// The server failed, or its connection to AFPA did.
    #[default]
    Failed,
    /// The server does not want to go on with it, or the client takes it too slowly.
    Cancelled,
    /// It is too much work for the server.
    TooMuch,
}

/// The connection to the client, which the engine lends to *derive remote response*.
///
/// Read the content of the request from [`arrived`](ClientStream::arrived) first, then from
/// [`poll_receive`](ClientStream::poll_receive), and give back the bytes that were read beyond it. Send with
/// [`poll_send`](ClientStream::poll_send); it takes only a part of the bytes when the client is slow, which is the
/// back-pressure. Short pieces go first through [`poll_send_gathered`](ClientStream::poll_send_gathered). There are no
/// timers: the engine's sweep checks deadlines. So after a `Pending`, ask [`is_over`](ClientStream::is_over) before
/// waiting.
pub trait ClientStream {
    /// The bytes that had arrived behind the head of the request and were not consumed yet.
    fn arrived(&self) -> &[u8];

    /// Takes `n` bytes from the front of [`arrived`](ClientStream::arrived).
    fn consume(&mut self, n: usize);

    /// Receives the bytes that arrive after those. `Ok(0)` is the end of the stream.
    fn poll_receive(&mut self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Gives back received bytes that do not belong to the request.
    fn give_back(&mut self, bytes: &[u8]);

    /// Ready when the client is gone. A client that only sends nothing more is not gone: it may wait for its answer. To
    /// be used where no content is expected: bytes that the client sends are kept, up to a limit.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// Whether the client sends nothing more, as far as [`poll_gone`](ClientStream::poll_gone) has seen.
    fn has_ended(&self) -> bool {
        false
    }

    /// Sends from `bytes`. `more` says that more follows at once, so that no short packet is made.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        more: bool,
    ) -> Poll<io::Result<usize>>;

    /// Sends from `bytes`, behind which nothing follows on this connection: it is closed at once when they were sent. So its end
    /// may leave with them.
    fn poll_send_last(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_send(cx, bytes, false)
    }

    /// Sends from `bytes` as much as the client takes now, which may be nothing; it never waits for the client. While it is
    /// pending, `bytes` may be lent to the kernel and empty, and it is to be called again with the same vector, before
    /// anything else is sent.
    fn poll_send_gathered(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut Vec<u8>,
        more: bool,
    ) -> Poll<io::Result<usize>> {
        match self.poll_send(cx, bytes, more) {
            Poll::Pending => Poll::Ready(Ok(0)),
            sent => sent,
        }
    }

    /// How many bytes it would take now, as far as that is known. A server need not be read for more.
    fn appetite(&self) -> usize {
        usize::MAX
    }

    /// Whether it costs less to gather bytes than to send them from where they lie.
    fn gathers(&self) -> bool {
        false
    }

    /// Shuts down the sending direction, because the server of a tunnel has.
    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Has the connection end with a reset. A response without a length that breaks off would otherwise look
    /// complete, and so would a tunnel.
    fn reset_at_end(&mut self);

    /// The response has broken off. Not every protocol has words for the reason.
    fn breaks_off(&mut self, _why: BreakOff) {}

    /// The time.
    fn now(&self) -> Now;

    /// The time when the clock was last read on this core: when the request arrived, or a sweep ago at most.
    /// Does not read the clock.
    fn cached_now(&self) -> Now;

    /// How long this client may take.
    fn timeouts(&self) -> Timeouts;

    /// Sets the deadline of all waits from now on; `None`: no deadline.
    fn wait_until(&mut self, steady_ms: Option<u64>);

    /// Whether the deadline has passed. If not, the task is woken when it does.
    fn is_over(&self, cx: &mut Context<'_>) -> bool;
}

#[cfg(test)]
mod tests {
    use super::extended;

    #[test]
    fn bytes_earn_time_as_far_as_the_rate_goes() {
        assert_eq!(extended(60_000, 15_000, 60_000, 300, 240), 61_250);
        assert_eq!(
            extended(60_000, 15_000, 60_000, 1 << 40, 240),
            75_000,
            "no more than the time-out"
        );
        assert_eq!(extended(60_000, 15_000, 60_000, 0, 240), 60_000, "nothing earns nothing");
        assert_eq!(extended(60_000, 15_000, 60_000, 1, 0), 75_000, "any byte will do");
        assert_eq!(extended(60_000, u64::MAX, 60_000, u64::MAX, 1), u64::MAX);
    }

    /// A window of 300 bytes that opens every 15 seconds is not for ever; one of a slow modem is.
    #[test]
    fn who_moves_next_to_nothing_is_not_waited_for_for_ever() {
        let lasts = |bytes, every_ms| {
            let (mut until, mut now) = (60_000, 0);
            while now < 3_600_000 && until > now {
                now += every_ms;
                if until > now {
                    until = extended(until, now, 60_000, bytes, 240);
                }
            }
            now
        };
        assert_eq!(lasts(300, 15_000), 75_000);
        assert!(lasts(1000, 1000) >= 3_600_000);
        assert!(lasts(20_000, 50_000) >= 3_600_000, "in spurts");
    }
}
