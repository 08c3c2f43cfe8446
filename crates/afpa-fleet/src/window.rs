//! The readings of the last minute, or since this machine has taken its configuration.

use std::collections::VecDeque;
use std::time::Duration;

use crate::load::Load;
use crate::machine::{Machine, Readings};

/// Readings are kept for so long.
const KEPT: Duration = Duration::from_secs(60);

/// Readings of the last minute.
#[derive(Debug, Default)]
pub(crate) struct Window(VecDeque<(Duration, Readings)>);

impl Window {
    /// Begins anew.
    pub(crate) fn begin(&mut self, now: Duration, readings: Readings) {
        self.0.clear();
        self.0.push_back((now, readings));
    }

    /// Takes readings, and says what has happened in the window.
    pub(crate) fn add(&mut self, now: Duration, readings: Readings, machine: &dyn Machine) -> Load {
        while self.0.len() > 1
            && self.0.get(1).is_some_and(|(then, _)| now.saturating_sub(*then) >= KEPT)
        {
            self.0.pop_front();
        }
        let load = self.0.front().map(|(_, first)| between(first, &readings, machine));
        self.0.push_back((now, readings));
        load.unwrap_or_default()
    }
}

fn between(first: &Readings, last: &Readings, machine: &dyn Machine) -> Load {
    let before = first.times.iter().chain(std::iter::repeat(&0));
    let times = last.times.iter().zip(before);
    // The counts of a site that has gone are missing.
    let times: Vec<u64> = times.map(|(now, before)| now.saturating_sub(*before)).collect();
    Load {
        answers: last.answers.saturating_sub(first.answers),
        failed: last.failed.saturating_sub(first.failed),
        timed: times.iter().sum(),
        p99_us: machine.p99_us(&times),
    }
}
