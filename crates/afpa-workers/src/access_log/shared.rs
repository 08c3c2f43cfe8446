//! The state that the handle, the sinks and the log thread share.

use std::sync::atomic::{AtomicBool, AtomicU64};

/// Counts of records by their outcome.
#[derive(Debug, Default)]
pub struct Counts {
    /// Written.
    pub written: AtomicU64,
    /// Dropped by a worker, because the writer was behind.
    pub overrun: AtomicU64,
    /// Lost by the writer, because writing failed.
    pub failed: AtomicU64,
}

/// Orders for the log thread. They are flags, because the queue of messages may be full.
#[derive(Debug, Default)]
pub(super) struct Orders {
    pub(super) reopen: AtomicBool,
    pub(super) stop: AtomicBool,
}
