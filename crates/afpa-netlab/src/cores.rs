//! Cores: the threads that run on them, and the time that cores and processes have used, from /proc.

use std::fs;
use std::ops::Sub;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_setaffinity};

/// One tick of /proc (`USER_HZ`, 100 on every Linux architecture of today).
const TICK: Duration = Duration::from_millis(10);
/// How long cores are watched for being idle, and the share of it that they have to be.
const MOMENT: Duration = Duration::from_millis(300);
const QUIET: f64 = 0.9;

/// Keeps the calling thread on a core.
///
/// # Errors
///
/// When there is no such core.
pub fn pin(core: usize) -> Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores).with_context(|| format!("cannot run on core {core}"))
}

/// Returns when all of the cores were all but idle for a moment, or when `enough` says so.
///
/// # Errors
///
/// When one of the cores is not there.
pub fn wait_for_quiet<const N: usize>(
    cores: [usize; N],
    mut enough: impl FnMut() -> bool,
) -> Result<()> {
    while !enough() {
        let before = cores.map(CoreTimes::of_core);
        std::thread::sleep(MOMENT);
        let mut quiet = true;
        for (core, before) in cores.into_iter().zip(before) {
            let spent = CoreTimes::of_core(core)? - before?;
            quiet &= spent.idle >= MOMENT.mul_f64(QUIET);
        }
        if quiet {
            break;
        }
    }
    Ok(())
}

/// The time of a core since boot, or between two samples, by its use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct CoreTimes {
    /// User mode, low priority included.
    pub user: Duration,
    /// Kernel on behalf of a process.
    pub system: Duration,
    /// Hard interrupts.
    pub irq: Duration,
    /// Soft interrupts: where packets are processed.
    pub softirq: Duration,
    /// Nothing to do, or waiting for a disk.
    pub idle: Duration,
    /// Taken away by the hypervisor.
    pub steal: Duration,
}

impl CoreTimes {
    /// Reads the times of a core.
    ///
    /// # Errors
    ///
    /// When there is no such core.
    pub fn of_core(core: usize) -> Result<Self> {
        let stat = fs::read_to_string("/proc/stat").context("/proc/stat")?;
        Self::parse(&stat, core).with_context(|| format!("/proc/stat has no core {core}"))
    }

    /// Time in interrupts, soft ones included, of a difference that spans `elapsed`.
    ///
    /// The rest that the other kinds leave of `elapsed`. The kernel's own figures come from the tick, which is
    /// stopped on an idle core: packets that are processed from idle would count as nothing,
    /// while idle time is measured exactly (`NO_HZ`).
    pub fn interrupts(&self, elapsed: Duration) -> Duration {
        let others = self.user + self.system + self.idle + self.steal;
        elapsed.saturating_sub(others).max(self.irq + self.softirq)
    }

    /// Time in which it did something, interrupts included, as the tick counted it. Packets that are processed
    /// from idle escape the tick: [`interrupts`](Self::interrupts) has them.
    pub fn busy(&self) -> Duration {
        self.user + self.system + self.irq + self.softirq
    }

    fn parse(stat: &str, core: usize) -> Option<Self> {
        let label = format!("cpu{core} ");
        let line = stat.lines().find_map(|line| line.strip_prefix(&label))?;
        let ticks: Vec<u32> =
            line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [user, nice, system, idle, wait, irq, softirq, steal, ..] = ticks[..] else {
            return None;
        };
        Some(Self {
            user: TICK * (user + nice),
            system: TICK * system,
            irq: TICK * irq,
            softirq: TICK * softirq,
            idle: TICK * (idle + wait),
            steal: TICK * steal,
        })
    }
}

impl Sub for CoreTimes {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            irq: self.irq.saturating_sub(earlier.irq),
            softirq: self.softirq.saturating_sub(earlier.softirq),
            idle: self.idle.saturating_sub(earlier.idle),
            steal: self.steal.saturating_sub(earlier.steal),
        }
    }
}

/// User and system time of processes, threads and all.
///
/// The kernel keeps their *sum* exactly, interrupts that came while they ran included, and splits
/// it by ticks: on a core that is busy with packets both are larger than in [`CoreTimes`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct ProcessTimes {
    /// User mode.
    pub user: Duration,
    /// Kernel on behalf of the processes.
    pub system: Duration,
}

impl ProcessTimes {
    /// Sums over processes; processes that have ended count as nothing.
    pub fn of(processes: &[i32]) -> Self {
        let times = processes.iter().filter_map(|pid| Self::of_process(*pid));
        times.fold(Self::default(), |sum, one| Self {
            user: sum.user + one.user,
            system: sum.system + one.system,
        })
    }

    fn of_process(pid: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The second field of /proc/PID/stat may hold anything in parentheses, blanks and parentheses
    /// included (proc(5)).
    fn parse(stat: &str) -> Option<Self> {
        let (_, after_name) = stat.rsplit_once(')')?;
        let mut fields = after_name.split_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<u32>().ok();
        Some(Self { user: TICK * ticks()?, system: TICK * ticks()? })
    }
}

impl Sub for ProcessTimes {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_is_told_from_its_namesakes() {
        let stat =
            "cpu  9 9 9 9 9 9 9 9 0 0\ncpu1 1 2 3 4 5 6 7 8 0 0\ncpu10 7 7 7 7 7 7 7 7 0 0\n";
        let times = CoreTimes::parse(stat, 1).unwrap();
        assert_eq!(times.user, TICK * 3);
        assert_eq!(times.idle, TICK * 9);
        assert_eq!(times.steal, TICK * 8);
        assert_eq!(times.interrupts(TICK * 40), TICK * (40 - 3 - 3 - 9 - 8));
        assert_eq!(times.interrupts(TICK), TICK * (6 + 7));
        assert_eq!(CoreTimes::parse(stat, 2), None);
    }

    #[test]
    fn a_core_is_not_busy_while_it_waits_or_runs_a_guest() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu1 1 2 4 1000 2000 8 16 32 500 600\n";
        let times = CoreTimes::parse(stat, 1).unwrap();
        assert_eq!(times.busy(), TICK * 31);
        assert_eq!(times.steal, TICK * 32);
        assert_eq!(CoreTimes::parse("cpu0 1 2 3 4 5 6 7 8\n", 1), None);
    }

    #[test]
    fn a_process_s_name_may_look_like_fields() {
        let stat = "7 (nginx: a) R 1 2) S 1 7 7 0 -1 4194560 90 0 0 0 250 150 9 9 20 0 1 0 100 0 0";
        let times = ProcessTimes::parse(stat).unwrap();
        assert_eq!(times.user + times.system, TICK * 400);
    }

    #[test]
    fn this_process_has_used_time() {
        let used = || {
            let times = ProcessTimes::of_process(std::process::id() as i32).unwrap();
            times.user + times.system
        };
        // On a busy machine it takes a while to get a tick's time.
        let begun = std::time::Instant::now();
        while used() < TICK {
            assert!(begun.elapsed() < TICK * 1000, "{:?} in ten seconds", used());
        }
    }
}
