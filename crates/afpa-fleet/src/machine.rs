//! The machine itself, as its fleet sees it.

use crate::message::Order;

/// Its caches and its police. Calls come from the thread of the fleet, and may not wait for it.
pub trait Machine: Send + Sync {
    /// Carries out an order of the fleet. When this returns, no later request gets an answer that the order is about.
    ///
    /// # Errors
    /// With the reason, for the log. The order counts as carried out: it would fail again.
    fn carry_out(&self, order: &Order) -> Result<(), String>;

    /// Drops all kept answers, because orders to purge may have been missed.
    fn flush(&self);

    /// Makes all kept answers stale: each is validated before it is used again.
    fn soften(&self);

    /// Sums since the start.
    fn readings(&self) -> Readings;
}

/// Sums of a machine since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readings {
    /// Answers.
    pub answers: u64,
    /// Those that came from its caches.
    pub hits: u64,
    /// Connections that are open now.
    pub connections: u64,
    /// A check of the configuration in force.
    pub configuration: String,
}
