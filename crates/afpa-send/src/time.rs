//! What happens when nothing happens.

use crate::flight::{Flight, Probe, Recovery, Timer};
use crate::{Micros, PATIENCE, Progress};

impl Flight {
    /// The time is `now`. Does nothing before the [`deadline`](Self::deadline). Follow up with
    /// [`poll_send`](Self::poll_send).
    pub fn on_time(&mut self, now: Micros) -> Progress {
        if self.timer == Timer::None || now < self.deadline {
            return if self.is_done() { Progress::Done } else { Progress::Going };
        }
        if now.saturating_sub(self.progress) >= PATIENCE {
            return Progress::GivenUp;
        }
        match self.timer {
            Timer::Reorder | Timer::None => self.find_losses(now),
            Timer::Probe => self.probe = Probe::Due,
            Timer::Repeat => {
                self.lose_all();
                self.backoff = self.backoff.saturating_add(1);
            }
            // A caller that bounds its work may have left something that can go now.
            Timer::Persist if self.ready().is_none() => {
                self.asking = true;
                self.backoff = self.backoff.saturating_add(1);
            }
            Timer::Persist => {}
        }
        self.base = now;
        self.set_timer(now);
        Progress::Going
    }

    /// What is on its way was too long for the path, a router says: it is lost, and tells nothing of congestion.
    /// Follow up with [`poll_send`](Self::poll_send), and send pieces that are short enough.
    pub fn on_narrowed(&mut self, now: Micros) {
        self.lost = self.outstanding();
        self.newest.known = false;
        self.probe = Probe::None;
        self.base = now;
        self.set_timer(now);
    }

    /// Decides what is waited for, and how long.
    pub(crate) fn set_timer(&mut self, now: Micros) {
        let flying = self.outstanding().without(self.lost);
        let time_out = self.path.rtt.time_out(self.backoff);
        let (timer, wait) = if self.is_done() {
            (Timer::None, 0)
        } else if flying.is_empty() {
            (Timer::Persist, time_out)
        } else if let Some(wait) = self.lateness_of_overtaken(now) {
            self.timer = Timer::Reorder;
            self.deadline = now + u64::from(wait);
            return;
        } else if self.recovery == Recovery::Open && self.probe == Probe::None && self.backoff == 0
        {
            (Timer::Probe, self.path.rtt.probe_out(flying.count()))
        } else {
            (Timer::Repeat, time_out)
        };
        self.timer = timer;
        self.deadline = self.base + wait;
    }

    /// How long until the first overtaken segment counts as lost.
    fn lateness_of_overtaken(&self, now: Micros) -> Option<u32> {
        self.overtaken().iter().map(|segment| self.waits(now, segment)).min()
    }
}
