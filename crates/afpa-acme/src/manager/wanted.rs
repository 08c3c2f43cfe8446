//! A certificate that is wanted, and the time of its next order.

use std::sync::Arc;

use super::status::Status;
use crate::certificate::Facts;
use crate::due::{Window, pause_after, renewal_at};
use crate::error::AcmeError;

/// A certificate that is wanted.
pub(crate) struct Wanted {
    pub(crate) names: Vec<String>,
    /// The facts of the certificate that is there.
    pub(crate) facts: Option<Facts>,
    /// The renewal window that the authority suggests, if any.
    pub(super) window: Option<Window>,
    /// The second at which the authority is asked for the window again.
    pub(super) ask_at: u64,
    /// A random number below 1000: it chooses the time within a window, and spreads the attempts of many servers.
    pub(super) chance: u64,
    /// Not before this second.
    pub(crate) not_yet: u64,
    /// A client has asked for it.
    pub(crate) on_demand: bool,
    /// It waits for another machine, or for all of them.
    pub(crate) waits: bool,
    /// The record of the fleet, as it was looked at last.
    pub(crate) heard: Option<Arc<str>>,
    pub(crate) status: Status,
}

impl Wanted {
    pub(super) fn new(names: Vec<String>) -> Self {
        use std::hash::{BuildHasher, RandomState};
        let chance = RandomState::new().hash_one(&names) % 1000;
        let status = Status { names: names.clone(), ..Status::default() };
        Self {
            names,
            facts: None,
            window: None,
            ask_at: 0,
            chance,
            not_yet: 0,
            on_demand: false,
            waits: false,
            heard: None,
            status,
        }
    }

    /// The facts of the certificate that is there, if it is for these names.
    pub(crate) fn right(&self) -> Option<&Facts> {
        self.facts.as_ref().filter(|facts| facts.is_for(&self.names))
    }

    pub(crate) fn found(&mut self, facts: Option<Facts>) {
        if self.facts != facts {
            (self.window, self.ask_at) = (None, 0);
        }
        self.facts = facts;
        self.plan();
    }

    /// Plans the next order: at once, if the certificate that is there is for other names.
    pub(super) fn plan(&mut self) {
        let next = |facts: &Facts| renewal_at(facts.lifetime, self.window, self.chance);
        self.status.next = self.right().map_or(0, next);
        self.status.not_after = self.facts.as_ref().map(|facts| facts.lifetime.not_after);
    }

    pub(crate) fn is_due(&self, now: u64) -> bool {
        now >= self.status.next
    }

    pub(super) fn failed(&mut self, now: u64, error: &AcmeError) {
        self.status.failures = self.status.failures.saturating_add(1);
        self.status.error = Some(error.to_string());
        self.not_yet = now + pause_after(self.status.failures, self.chance).as_secs();
    }

    pub(crate) fn issued(&mut self, facts: Facts) {
        self.found(Some(facts));
        self.not_yet = 0;
        let issued = self.status.issued + 1;
        let names = std::mem::take(&mut self.status.names);
        let (not_after, next) = (self.status.not_after, self.status.next);
        self.status = Status { names, not_after, next, issued, ..Status::default() };
    }
}
