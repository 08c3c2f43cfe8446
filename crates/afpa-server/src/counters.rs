//! The engine's counters, one set for each core.

mod tls;

use std::sync::atomic::{AtomicU8, Ordering};

use afpa_framework::Counter;

use crate::io::{Leaving, Reason, Strategy};
pub use tls::TlsCounters;

/// Counters of one core. The module counts requests, because the engine does not know what a request is. No line of them is
/// another core's as well; processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct WorkerCounters {
    /// How often the core has read the clock. A core whose count does not change for seconds hangs.
    pub ticks: Counter,
    /// Connections accepted.
    pub accepted: Counter,
    /// Connections open now.
    pub open: Counter,
    /// Connections passed on to workers that had fewer.
    pub passed: Counter,
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
    /// Requests that left the deferred-interrupt context for a helper thread or a server.
    pub left_for_thread: Counter,
    /// Exchanges with servers that were short.
    pub short_exchanges: Counter,
    /// How often something was received from a client.
    pub receives: Counter,
    /// Requests answered in the deferred-interrupt context.
    pub answered: Counter,
    /// Answers too long to be gathered: from files, or from where they are pinned.
    pub long_answers: Counter,
    /// How the core waits for its connections now.
    pub strategy: StrategyGauge,
    /// Connections in the ring now.
    pub in_ring: Counter,
    /// How often a connection entered the ring.
    pub entered_ring: Counter,
    /// The results of handshakes of TLS.
    pub tls: TlsCounters,
    /// Connections of HTTP/2.
    pub h2_connections: Counter,
    /// Connections of HTTP/2 that ended because the client broke a rule, or exceeded a budget.
    pub h2_faults: Counter,
    /// Connections of HTTP/3 whose handshake was complete.
    pub h3_connections: Counter,
    /// Requests and connections of HTTP/3 that ended because the client broke a rule, or exceeded a budget.
    pub h3_faults: Counter,
    left_ring: [Counter; Leaving::ALL.len()],
    strategy_changes: [Counter; Reason::ALL.len()],
}

impl WorkerCounters {
    /// How often a connection left the ring for this reason.
    pub fn left_ring(&self, why: Leaving) -> &Counter {
        &self.left_ring[why as usize]
    }

    /// How often the strategy has changed for this reason.
    pub fn strategy_changes(&self, why: Reason) -> &Counter {
        &self.strategy_changes[why as usize]
    }
}

/// The strategy of a core, and why it has it. One core writes it.
#[derive(Debug, Default)]
pub struct StrategyGauge {
    strategy: AtomicU8,
    reason: AtomicU8,
}

impl StrategyGauge {
    pub(crate) fn set(&self, strategy: Strategy, why: Reason) {
        self.reason.store(why as u8, Ordering::Relaxed);
        self.strategy.store(strategy as u8, Ordering::Relaxed);
    }

    /// The value as last written.
    pub fn get(&self) -> (Strategy, Reason) {
        let find = |place: &AtomicU8| usize::from(place.load(Ordering::Relaxed));
        let strategy = Strategy::ALL.get(find(&self.strategy)).copied();
        let reason = Reason::ALL.get(find(&self.reason)).copied();
        (strategy.unwrap_or_default(), reason.unwrap_or_default())
    }
}
