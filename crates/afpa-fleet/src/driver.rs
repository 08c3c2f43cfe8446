//! The process that drives a roll-out: the one that holds the lease of its record.
//!
//! The record names its driver, and each write of it is for the revision that it replaces, so it is a lease with a value:
//! lease.rs says when a process may write. The holder's renewals and its steps are the same writes.

use std::time::Duration;

use crate::lease::Lease;
use crate::rollout::{Phase, Rollout, Stage, Taker};

/// This process, as one that may drive.
#[derive(Debug)]
pub struct Driver {
    lease: Lease,
    /// The phase that this process drives, and since when.
    phase: Option<((u64, Stage, bool), Duration)>,
}

impl Driver {
    /// Of the process `own`.
    pub fn new(own: String) -> Self {
        Self { lease: Lease::new(own), phase: None }
    }

    /// The record that is to stand in the place of this one, if nobody else has changed it; `None`: it stays. `takers` is
    /// `None` as long as not all that are there can have been heard. After the write comes a call of [`wrote`](Self::wrote), or of
    /// [`lost`](Self::lost).
    pub fn step(
        &mut self,
        (number, rollout): (u64, &Rollout),
        takers: Option<&[Taker]>,
        now: Duration,
    ) -> Option<Rollout> {
        if rollout.is_over() {
            // Without a roll-out there is no driver, and the servers may count the next one from the beginning again.
            self.phase = None;
            self.lost();
            return None;
        }
        self.lease.read(number, &rollout.driver, now);
        if rollout.driver != self.lease.own() {
            self.phase = None;
        }
        // A process that hears nobody judges nobody, and loses the lease.
        let takers = takers?;
        if self.lease.held_at(now) != Some(number) {
            let is_due = self.lease.attempt(now) == Some(number);
            return is_due.then(|| self.renewed(rollout));
        }
        let phase = (rollout.target, rollout.stage, rollout.phase == Phase::Watching);
        let begun = match self.phase {
            Some((known, begun)) if known == phase => begun,
            _ => self.phase.insert((phase, now)).1,
        };
        let next = rollout.next(takers, now.saturating_sub(begun));
        next.or_else(|| self.lease.attempt(now).map(|_| self.renewed(rollout)))
    }

    /// The servers have taken a write that began at `asked`.
    pub fn wrote(&mut self, number: u64, asked: Duration, now: Duration) {
        self.lease.wrote(number, asked, now);
    }

    /// A write was refused, its outcome is unknown, or the servers do not answer. If the record names this process all the same,
    /// it goes on with its phase.
    pub fn lost(&mut self) {
        self.lease.lost();
    }

    /// Whether this process drives, and no other one does.
    pub fn holds(&self, now: Duration) -> bool {
        self.lease.holds(now)
    }

    fn renewed(&self, rollout: &Rollout) -> Rollout {
        let own = self.lease.own();
        let beats = if rollout.driver == own { rollout.beats.saturating_add(1) } else { 0 };
        Rollout { driver: own.to_owned(), beats, ..rollout.clone() }
    }
}
