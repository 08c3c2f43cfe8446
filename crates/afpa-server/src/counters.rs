//! What the engine counts, one set a core.

use afpa_framework::Counter;

/// Counts of one core. Requests are counted by the module, which knows what one is.
#[derive(Debug, Default)]
pub struct WorkerCounters {
    /// Times it looked at the clock: a core whose count stands still for seconds hangs.
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
    /// Times that accepting failed for want of descriptors or memory.
    pub accept_errors: Counter,
    /// Bytes received.
    pub received_bytes: Counter,
    /// Bytes sent.
    pub sent_bytes: Counter,
    /// Requests that left the deferred-interrupt context for a helper thread.
    pub deferred_to_threads: Counter,
}
