//! The lease of the process that drives a roll-out.
//!
//! The driver writes the record anew every few seconds, each time in the place of the one that it has read. When the record
//! has stayed the same for longer, by the clock of whoever looks, its driver is gone, and another process writes itself into
//! it. Of two that do so at a time the servers take one. No clock is compared with another.

use std::time::Duration;

use crate::rollout::{Phase, Rollout, Stage, Taker};

/// The driver writes at least as often.
const RENEW: Duration = Duration::from_secs(3);

/// A record that has not changed for so long is nobody's.
const LEASE: Duration = Duration::from_secs(10);

/// This process, as one that may drive.
#[derive(Debug)]
pub struct Driver {
    own: String,
    /// The number of the record, and since when it is known.
    seen: Option<(u64, Duration)>,
    /// The phase that this process drives, and since when.
    phase: Option<((u64, Stage, bool), Duration)>,
}

impl Driver {
    /// Of the process `own`.
    pub fn new(own: String) -> Self {
        Self { own, seen: None, phase: None }
    }

    /// The record that is to stand in the place of this one, if nobody else has changed it; `None`: it stays. `takers` is
    /// `None` as long as not all that are there can have been heard.
    pub fn step(
        &mut self,
        (number, rollout): (u64, &Rollout),
        takers: Option<&[Taker]>,
        now: Duration,
    ) -> Option<Rollout> {
        let since = match self.seen {
            Some((seen, since)) if seen == number => since,
            _ => self.seen.insert((number, now)).1,
        };
        let unchanged = now.saturating_sub(since);
        if rollout.is_over() || rollout.driver != self.own {
            self.phase = None;
            let is_left = !rollout.is_over() && unchanged >= LEASE;
            let driver = self.own.clone();
            return is_left.then(|| Rollout { driver, beats: 0, ..rollout.clone() });
        }
        // A process that hears nobody judges nobody, and loses the lease.
        let takers = takers?;
        let phase = (rollout.target, rollout.stage, rollout.phase == Phase::Watching);
        let begun = match self.phase {
            Some((known, begun)) if known == phase => begun,
            _ => self.phase.insert((phase, now)).1,
        };
        let next = rollout.next(takers, now.saturating_sub(begun));
        let renewed = || Rollout { beats: rollout.beats.saturating_add(1), ..rollout.clone() };
        next.or_else(|| (unchanged >= RENEW).then(renewed))
    }
}
