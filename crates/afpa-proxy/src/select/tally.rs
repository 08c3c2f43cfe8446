//! Connections of HTTP/2 to one server, counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of one server, of all cores. Each is only a sum, so the order of accesses does not matter.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    opened: AtomicU64,
    closed: AtomicU64,
    streams: AtomicU64,
}

/// What was counted up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Http2Counts {
    /// Connections that are open.
    pub open: u64,
    /// Connections that were opened.
    pub opened: u64,
    /// Streams that were opened.
    pub streams: u64,
}

impl Tally {
    /// A connection was opened.
    pub(crate) fn opened(&self) {
        self.0.opened.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection has ended.
    pub(crate) fn closed(&self) {
        self.0.closed.fetch_add(1, Ordering::Relaxed);
    }

    /// A stream was opened.
    pub(crate) fn stream(&self) {
        self.0.streams.fetch_add(1, Ordering::Relaxed);
    }

    /// The present counts.
    pub(super) fn counts(&self) -> Http2Counts {
        // The later event is read first: no connection seems to have ended that was not opened.
        let closed = self.0.closed.load(Ordering::Relaxed);
        let opened = self.0.opened.load(Ordering::Relaxed);
        let streams = self.0.streams.load(Ordering::Relaxed);
        Http2Counts { open: opened.saturating_sub(closed), opened, streams }
    }
}
