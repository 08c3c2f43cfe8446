//! The engine's counters, one set for each core.

use afpa_framework::Counter;

/// Counters of one core. The module counts requests, because the engine does not know what a request is.
#[derive(Debug, Default)]
pub struct WorkerCounters {
    /// How often the core has read the clock. A core whose count does not change for seconds hangs.
    pub ticks: Counter,
    /// Connections accepted.
    pub accepted: Counter,
    /// Connections open now.
    pub open: Counter,
    /// Connections refused because of a limit.
    pub refused: Counter,
    /// Connections ended by a time-out.
    pub timed_out: Counter,
    /// Connections ended because a file changed while it was being sent.
    pub aborted: Counter,
    /// How often accepting failed for lack of descriptors or memory.
    pub accept_errors: Counter,
    /// Bytes received.
    pub received_bytes: Counter,
    /// Bytes sent.
    pub sent_bytes: Counter,
    /// Turns that long responses had to wait for.
    pub waits: Counter,
    /// Requests that left the deferred-interrupt context for a helper thread.
    pub left_for_thread: Counter,
}
