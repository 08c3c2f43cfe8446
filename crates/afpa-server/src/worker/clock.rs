//! The time of a core.

use std::cell::Cell;
use std::time::{SystemTime, UNIX_EPOCH};

use afpa_framework::Now;
use afpa_framework::clock::steady;

/// Gives wall-clock and steady time for one reading of the steady clock.
///
/// The offset between the two clocks is read anew each second, so that a step of the wall clock takes effect
/// within a second.
#[derive(Debug)]
pub(crate) struct Clock {
    unix_us_at_start: Cell<u64>,
    second: Cell<u64>,
    cached: Cell<Now>,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let clock = Self {
            unix_us_at_start: Cell::new(0),
            second: Cell::new(0),
            cached: Cell::new(Now { unix_us: 0, steady_us: 0 }),
        };
        clock.synchronise();
        clock.now();
        clock
    }

    pub(crate) fn now(&self) -> Now {
        let steady_us = steady().as_micros() as u64;
        let unix_us = self.unix_us_at_start.get().saturating_add(steady_us);
        let now = Now { unix_us, steady_us };
        self.cached.set(now);
        now
    }

    /// The time at the last reading of the clock. It is late by a sweep at most, which is exact enough for
    /// deadlines, and costs no reading of the clock.
    pub(crate) fn cached_now(&self) -> Now {
        self.cached.get()
    }

    /// Whether a new second has begun since the last call.
    pub(crate) fn new_second(&self) -> bool {
        let second = steady().as_secs();
        if self.second.replace(second) == second {
            return false;
        }
        self.synchronise();
        true
    }

    fn synchronise(&self) {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let offset = unix.saturating_sub(steady());
        self.unix_us_at_start.set(offset.as_micros() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_the_wall_clock_and_never_runs_backwards() {
        let clock = Clock::start();
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_micros();
        let first = clock.now();
        assert!(u128::from(first.unix_us).abs_diff(wall) < 1_000_000);
        assert!(clock.now() >= first);
        assert!((first..=clock.now()).contains(&clock.cached_now()));
    }
}
