//! Connections to one server, counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, TryLockError};

/// Counts of one server, of all cores. Each is only a sum, so the order of accesses does not matter.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    opened: AtomicU64,
    closed_by_us: AtomicU64,
    closed_by_server: AtomicU64,
    reused: AtomicU64,
    lacked: [AtomicU64; Lack::ALL.len()],
    /// Steady milliseconds of the last lack, and of the last warning about one.
    lacked_ms: AtomicU64,
    told_ms: AtomicU64,
    http2_opened: AtomicU64,
    http2_closed: AtomicU64,
    streams: AtomicU64,
    judged: Mutex<Judged>,
}

/// A resource that this machine has run out of, so that no connection can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// Local ports for connections to this server.
    Ports,
    /// File descriptors.
    Descriptors,
    /// Memory of the kernel.
    Memory,
    /// A source address that is configured.
    Source,
}

impl Lack {
    /// All kinds, in the order of their counts.
    pub const ALL: [Self; 4] = [Self::Ports, Self::Descriptors, Self::Memory, Self::Source];

    /// A word for metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ports => "ports",
            Self::Descriptors => "descriptors",
            Self::Memory => "memory",
            Self::Source => "source",
        }
    }

    /// The warning for logs, with its remedy.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Ports => {
                "no local port is left for connections to this server; requests get 503. Widen \
                 net.ipv4.ip_local_port_range, or give the server group source_addresses"
            }
            Self::Descriptors => {
                "no file descriptor is left for connections to this server; requests get 503. Raise the limit \
                 (LimitNOFILE of systemd, ulimit -n)"
            }
            Self::Memory => {
                "the kernel has no memory for connections to this server; requests get 503. Look at \
                 net.ipv4.tcp_mem and at the memory limit of the service"
            }
            Self::Source => {
                "an address of source_addresses is not an address of this machine; requests get 503. Give it to an \
                 interface, or take it out of the configuration"
            }
        }
    }
}

/// Connections of any protocol, counted up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Connections that were made.
    pub opened: u64,
    /// Connections that this machine has closed.
    pub closed_by_us: u64,
    /// Connections that the server has closed, or said it would close.
    pub closed_by_server: u64,
    /// Requests that found a connection.
    pub reused: u64,
    /// Connections that could not be made, in the order of [`Lack::ALL`].
    pub lacked: [u64; Lack::ALL.len()],
}

impl ConnectionCounts {
    /// Connections that are open.
    pub fn open(&self) -> u64 {
        self.opened.saturating_sub(self.closed_by_us + self.closed_by_server)
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            opened: self.opened.saturating_sub(before.opened),
            closed_by_us: self.closed_by_us.saturating_sub(before.closed_by_us),
            closed_by_server: self.closed_by_server.saturating_sub(before.closed_by_server),
            reused: self.reused.saturating_sub(before.reused),
            lacked: self.lacked,
        }
    }

    /// Whether more than one request in twenty needs a new connection, and not because the load grows or the server closes
    /// them: this machine has closed as many.
    fn is_wasteful(&self) -> bool {
        let requests = self.opened + self.reused;
        let most = requests / 20;
        requests >= FEWEST_REQUESTS && self.opened > most && self.closed_by_us > most
    }
}

/// Connections of HTTP/2 and their streams, counted up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Http2Counts {
    /// Connections that are open.
    pub open: u64,
    /// Connections that were opened.
    pub opened: u64,
    /// Streams that were opened.
    pub streams: u64,
}

/// Fewer requests tell nothing.
const FEWEST_REQUESTS: u64 = 1_000;

/// Milliseconds from one judgement of the counts to the next, and from one warning to the next.
const JUDGED_EACH_MS: u64 = 60_000;
const TOLD_EACH_MS: u64 = 600_000;

/// Milliseconds from one warning of a lack to the next, and for which other cores give up connections that they do not
/// need.
const LACK_TOLD_EACH_MS: u64 = 10_000;
const LACKS_MS: u64 = 2_000;

#[derive(Debug, Default)]
struct Judged {
    at_ms: u64,
    counts: ConnectionCounts,
    told_ms: Option<u64>,
}

impl Tally {
    /// A connection was made.
    pub(crate) fn opened(&self) {
        self.0.opened.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection has ended, by the server or by this machine.
    pub(crate) fn closed(&self, by_server: bool) {
        let count = if by_server { &self.0.closed_by_server } else { &self.0.closed_by_us };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// So many requests have found a connection.
    pub(crate) fn reused(&self, requests: u64) {
        self.0.reused.fetch_add(requests, Ordering::Relaxed);
    }

    /// A connection could not be made. Returns whether to log a warning now.
    pub(crate) fn lacked(&self, lack: Lack, now_ms: u64) -> bool {
        if let Some(count) = self.0.lacked.get(lack as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let now_ms = now_ms.max(1);
        self.0.lacked_ms.store(now_ms, Ordering::Relaxed);
        let told = &self.0.told_ms;
        let before = told.load(Ordering::Relaxed);
        let is_due = before == 0 || now_ms.saturating_sub(before) >= LACK_TOLD_EACH_MS;
        is_due
            && told.compare_exchange(before, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Whether a connection could not be made in the last two seconds, on any core.
    pub(crate) fn lacks(&self, now_ms: u64) -> bool {
        let lacked = self.0.lacked_ms.load(Ordering::Relaxed);
        lacked != 0 && now_ms.saturating_sub(lacked) < LACKS_MS
    }

    /// To be called now and then. Returns the counts of the last minute, if this machine makes and closes connections that
    /// the server would keep, and no warning was logged lately.
    pub(crate) fn judge(&self, now_ms: u64) -> Option<ConnectionCounts> {
        let mut judged = match self.0.judged.try_lock() {
            Ok(judged) => judged,
            // Another core does it.
            Err(TryLockError::WouldBlock) => return None,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        };
        let is_first = judged.at_ms == 0;
        if !is_first && now_ms.saturating_sub(judged.at_ms) < JUDGED_EACH_MS {
            return None;
        }
        let counts = self.counts();
        let lately = counts.since(&judged.counts);
        (judged.at_ms, judged.counts) = (now_ms.max(1), counts);
        let is_told = judged.told_ms.is_some_and(|told| now_ms.saturating_sub(told) < TOLD_EACH_MS);
        if is_first || is_told || !lately.is_wasteful() {
            return None;
        }
        judged.told_ms = Some(now_ms);
        Some(lately)
    }

    /// A connection of HTTP/2 was opened.
    pub(crate) fn http2_opened(&self) {
        self.0.http2_opened.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection of HTTP/2 has ended.
    pub(crate) fn http2_closed(&self) {
        self.0.http2_closed.fetch_add(1, Ordering::Relaxed);
    }

    /// A stream was opened.
    pub(crate) fn stream(&self) {
        self.0.streams.fetch_add(1, Ordering::Relaxed);
    }

    /// The present counts of connections.
    pub(crate) fn counts(&self) -> ConnectionCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        // The later event is read first: no connection seems to have ended that was not opened.
        let (closed_by_us, closed_by_server) =
            (read(&self.0.closed_by_us), read(&self.0.closed_by_server));
        let lacked = std::array::from_fn(|at| self.0.lacked.get(at).map_or(0, read));
        let (opened, reused) = (read(&self.0.opened), read(&self.0.reused));
        ConnectionCounts { opened, closed_by_us, closed_by_server, reused, lacked }
    }

    /// The present counts of HTTP/2.
    pub(super) fn http2_counts(&self) -> Http2Counts {
        // The later event first, as above.
        let closed = self.0.http2_closed.load(Ordering::Relaxed);
        let opened = self.0.http2_opened.load(Ordering::Relaxed);
        let streams = self.0.streams.load(Ordering::Relaxed);
        Http2Counts { open: opened.saturating_sub(closed), opened, streams }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict on a minute with these counts, after a first call that began it.
    fn minute(opened: u64, reused: u64, by_us: u64, by_server: u64) -> Option<ConnectionCounts> {
        let tally = Tally::default();
        assert_eq!(tally.judge(1_000), None, "the first minute has no beginning");
        (0..opened).for_each(|_| tally.opened());
        (0..by_us).for_each(|_| tally.closed(false));
        (0..by_server).for_each(|_| tally.closed(true));
        tally.reused(reused);
        assert_eq!(tally.judge(60_999), None, "a minute is not over");
        let told = tally.judge(61_000);
        assert_eq!(tally.judge(200_000), None, "nobody is told twice of it");
        told
    }

    #[test]
    fn connections_that_are_closed_and_made_again_are_told_of() {
        let told = minute(60, 940, 60, 0).expect("more than one request in twenty");
        assert_eq!((told.opened, told.reused, told.closed_by_us), (60, 940, 60));
        assert_eq!(minute(50, 950, 50, 0), None, "one in twenty");
        assert_eq!(minute(60, 939, 60, 0), None, "too few to tell");
        assert_eq!(minute(900, 9_100, 0, 0), None, "the load grows");
        assert_eq!(minute(10_000, 0, 0, 10_000), None, "the server closes them");
    }

    #[test]
    fn a_lack_is_counted_each_time_and_told_of_now_and_then() {
        let tally = Tally::default();
        let told = |ms| tally.lacked(Lack::Ports, ms);
        assert_eq!([told(5), told(6), told(10_004), told(10_005)], [true, false, false, true]);
        tally.lacked(Lack::Memory, 7);
        assert_eq!(tally.counts().lacked, [4, 0, 1, 0]);
        assert!(tally.lacks(2_006) && !tally.lacks(2_007));
    }

    #[test]
    fn what_was_opened_and_not_closed_is_open() {
        let tally = Tally::default();
        (0..5).for_each(|_| tally.opened());
        tally.closed(true);
        tally.closed(false);
        assert_eq!(tally.counts().open(), 3);
    }
}
