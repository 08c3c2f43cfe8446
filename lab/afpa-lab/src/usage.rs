//! Times of cores and processes between two samples, and the doubts about a turn that follow.

use std::time::{Duration, Instant};

use afpa_netlab::{CoreTimes, ProcessTimes};
use anyhow::Result;

use crate::results::{Busy, Cost, Doubt};

/// A core that is idle for more is not full.
const MOST_IDLE: f64 = 0.05;
/// A generator's core that is busier than this, while the server's has time left, was the bottleneck.
const CLIENT_FULL: f64 = 0.95;
/// Shares of a core above which a turn is marked.
const MOST_FOREIGN: f64 = 0.05;
const MOST_STOLEN: f64 = 0.03;
/// The kernel counts the times of each process in whole steps of this.
const STEP: Duration = Duration::from_millis(10);

/// Times of the two cores and of the server's processes so far.
pub(crate) struct Sample {
    taken: Instant,
    server_core: CoreTimes,
    client_core: CoreTimes,
    processes: ProcessTimes,
    number: usize,
}

/// The same, of an interval.
#[derive(Default)]
pub(crate) struct Used {
    lasted: Duration,
    server_core: CoreTimes,
    client_core: CoreTimes,
    processes: ProcessTimes,
    /// Processes that these are the times of.
    number: usize,
}

impl Sample {
    pub(crate) fn take(cores: (usize, usize), processes: &[i32]) -> Result<Self> {
        Ok(Self {
            taken: Instant::now(),
            processes: ProcessTimes::of(processes),
            number: processes.len(),
            server_core: CoreTimes::of_core(cores.0)?,
            client_core: CoreTimes::of_core(cores.1)?,
        })
    }

    pub(crate) fn since(&self, before: &Self) -> Used {
        Used {
            lasted: self.taken - before.taken,
            server_core: self.server_core - before.server_core,
            client_core: self.client_core - before.client_core,
            processes: self.processes - before.processes,
            number: before.number,
        }
    }
}

/// The source of a core's busy time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    /// The tick's count.
    ByTick,
    /// All but idle and stolen time. Only idle time is measured exactly: packets that are processed from idle escape
    /// the tick.
    ByIdle,
}

impl Used {
    /// Time in which the server's core was busy, and the client's.
    pub(crate) fn busy(&self, counted: Counted) -> (Duration, Duration) {
        let busy = |core: &CoreTimes| match counted {
            Counted::ByTick => core.busy(),
            Counted::ByIdle => self.lasted.saturating_sub(core.idle + core.steal),
        };
        (busy(&self.server_core), busy(&self.client_core))
    }

    /// So many seconds, of which the two cores were idle for so many.
    #[cfg(test)]
    pub(crate) fn of_idle(seconds: f64, server: f64, client: f64) -> Self {
        let core = |idle| CoreTimes { idle: Duration::from_secs_f64(idle), ..CoreTimes::default() };
        Self {
            lasted: Duration::from_secs_f64(seconds),
            server_core: core(server),
            client_core: core(client),
            ..Self::default()
        }
    }

    /// For a request, and as shares of the time.
    pub(crate) fn told(&self, requests: u64, seconds: f64) -> (Cost, Busy) {
        let lasted = self.lasted.as_secs_f64();
        if lasted == 0.0 || requests == 0 || seconds == 0.0 {
            return (Cost::default(), Busy::default());
        }
        let requests = requests as f64 / seconds * lasted;
        let each = |time: Duration| time.as_secs_f64() * 1e6 / requests;
        let share = |time: Duration| (time.as_secs_f64() / lasted).min(1.0);
        let foreign = self.foreign();
        let user = self.server_core.user - foreign;
        let cost = Cost {
            user: each(user),
            system: each(self.server_core.system),
            interrupts: each(self.server_core.interrupts(self.lasted)),
        };
        let busy = Busy {
            server_core: 1.0 - share(self.server_core.idle),
            client_core: 1.0 - share(self.client_core.idle),
            foreign: share(foreign),
            stolen: share(self.server_core.steal.max(self.client_core.steal)),
        };
        (cost, busy)
    }

    /// Seconds of both cores that server and client used together: all but idle and stolen time, without others'
    /// user mode, and without the client's, which only starts and watches the load.
    pub(crate) fn both_sides(&self) -> f64 {
        let busy = |core: &CoreTimes| self.lasted.saturating_sub(core.idle + core.steal);
        let both = busy(&self.server_core) + busy(&self.client_core);
        both.saturating_sub(self.foreign() + self.client_core.user).as_secs_f64()
    }

    /// User mode on the server's core that was not the server's. The times of many processes, each
    /// off by up to a step, are together off by about the root of their number: a smaller rest may be
    /// the server's own.
    fn foreign(&self) -> Duration {
        let others = self.server_core.user.saturating_sub(self.processes.user);
        let unsure = STEP.mul_f64((self.number as f64).sqrt());
        if others > unsure { others } else { Duration::ZERO }
    }
}

/// Why the figures are not the server's alone.
pub(crate) fn doubts(busy: &Busy, one_core: bool) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let server_full = busy.server_core >= 1.0 - MOST_IDLE;
    if !server_full && busy.client_core >= CLIENT_FULL {
        doubts.push(Doubt::ClientBound);
    } else if !server_full {
        doubts.push(Doubt::NotSaturated);
    }
    if busy.foreign > MOST_FOREIGN && !one_core {
        doubts.push(Doubt::Disturbed);
    }
    if busy.stolen > MOST_STOLEN {
        doubts.push(Doubt::Stolen);
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core(user: u64, idle: u64) -> CoreTimes {
        let ms = Duration::from_millis;
        CoreTimes { user: ms(user), idle: ms(idle), system: ms(100), ..CoreTimes::default() }
    }

    fn used() -> Used {
        Used {
            lasted: Duration::from_secs(1),
            server_core: core(500, 0),
            client_core: core(0, 600),
            processes: ProcessTimes { user: Duration::from_millis(400), ..Default::default() },
            number: 4,
        }
    }

    #[test]
    fn cost_is_the_whole_core_but_for_others_user_mode() {
        let (cost, busy) = used().told(1000, 1.0);
        assert_eq!(cost, Cost { user: 400.0, system: 100.0, interrupts: 400.0 });
        assert!((busy.foreign - 0.1).abs() < 1e-9 && busy.server_core == 1.0);
        assert!((busy.client_core - 0.4).abs() < 1e-9);
        assert_eq!(used().told(0, 1.0).0, Cost::default());
    }

    #[test]
    fn both_cores_are_counted_without_what_others_did() {
        let ms = Duration::from_millis;
        let used = Used {
            lasted: ms(1000),
            server_core: CoreTimes {
                user: ms(300),
                softirq: ms(500),
                idle: ms(200),
                ..CoreTimes::default()
            },
            client_core: CoreTimes { user: ms(100), idle: ms(600), ..CoreTimes::default() },
            processes: ProcessTimes { user: ms(200), ..Default::default() },
            number: 1,
        };
        // 0.8 and 0.4 busy, less 0.1 of others and the client's own 0.1.
        assert!((used.both_sides() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_core_is_busy_when_it_is_not_idle_or_taken_away() {
        let core = |idle, steal| CoreTimes {
            idle: Duration::from_millis(idle),
            steal: Duration::from_millis(steal),
            ..CoreTimes::default()
        };
        let used = Used {
            lasted: Duration::from_secs(2),
            server_core: core(500, 250),
            client_core: core(1750, 0),
            ..Used::default()
        };
        let times = [1250, 250].map(Duration::from_millis);
        assert_eq!(used.busy(Counted::ByIdle), (times[0], times[1]));
        assert_eq!(used.busy(Counted::ByTick).0, Duration::ZERO);
        assert!((used.told(1, 2.0).1.stolen - 0.125).abs() < 1e-9);
    }

    #[test]
    fn steps_of_many_processes_are_nobody_else() {
        let used = Used { number: 144, ..used() };
        let (cost, busy) = used.told(1000, 1.0);
        assert_eq!((cost.user, busy.foreign), (500.0, 0.0));
        assert_eq!(Used { number: 64, ..used }.told(1000, 1.0).1.foreign, 0.1);
    }

    #[test]
    fn who_was_the_bottleneck() {
        let busy = |server_core, client_core| Busy { server_core, client_core, ..Busy::default() };
        assert_eq!(doubts(&busy(1.0, 1.0), false), []);
        assert_eq!(doubts(&busy(0.5, 0.99), false), [Doubt::ClientBound]);
        assert_eq!(doubts(&busy(0.5, 0.5), false), [Doubt::NotSaturated]);
        let disturbed = Busy { foreign: 0.2, stolen: 0.1, ..busy(1.0, 0.1) };
        assert_eq!(doubts(&disturbed, false), [Doubt::Disturbed, Doubt::Stolen]);
        assert_eq!(doubts(&disturbed, true), [Doubt::Stolen]);
    }
}
