//! The machine itself, as its fleet sees it.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::files::{Files, KeptFiles, Revision};
use crate::keyring::Seeds;
use crate::message::Order;

/// Its caches and its police. Calls come from the thread of the fleet, and may not wait for it.
pub trait Machine: Send + Sync {
    /// Carries out an order of the fleet. When this returns, no later request gets an answer that the order is about.
    ///
    /// # Errors
    /// With the reason, for the log. The order counts as carried out: it would fail again.
    fn carry_out(&self, order: &Order) -> Result<(), String>;

    /// Carries out orders of the fleet that have come together, one after another. Returns how many failed, as
    /// [`carry_out`](Self::carry_out) does.
    fn carry_out_all(&self, orders: &[Order]) -> usize {
        orders.iter().filter(|order| self.carry_out(order).is_err()).count()
    }

    /// Drops all kept answers, because orders to purge may have been missed.
    fn flush(&self);

    /// Makes all kept answers stale: each is validated before it is used again.
    fn soften(&self);

    /// Uses the keys of these seeds from now on.
    fn take_seeds(&self, seeds: &Seeds);

    /// A record of the fleet has a new value, or none. When this returns, the value is in use.
    fn take_record(&self, _key: &str, _value: Option<&str>) {}

    /// Sums since the start.
    fn readings(&self) -> Readings;

    /// The revision of the fleet's configuration that is in force, as it was read with that configuration; `None`: there is
    /// none.
    fn runs(&self) -> Option<Revision>;

    /// Microseconds that 99 of 100 of these times did not exceed, which are counted as [`Readings::times`] are.
    fn p99_us(&self, times: &[u64]) -> u64;

    /// Does something with a configuration of the fleet. The answer comes when it is done; its error is for people.
    fn configure(&self, what: Configure, answer: oneshot::Sender<Result<(), String>>);
}

/// An order about a configuration of the fleet.
#[derive(Clone, Debug)]
pub enum Configure {
    /// Whether it would be taken.
    Check(Arc<Files>),
    /// Takes it into use, and keeps it for the next start; `None`: there is none any more. When it cannot be taken, the one
    /// before stays.
    Take(Option<Arc<KeptFiles>>),
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
    /// Answers with a status of class 5.
    pub failed: u64,
    /// Counts of the times that servers took, by their length.
    pub times: Vec<u64>,
    /// A check of the configuration in force.
    pub configuration: String,
}
