//! The time that a plan takes, and the order in which it is shortened.

use std::time::Duration;

use anyhow::{Result, bail};

use super::{Group, Plan, Session, Task};
use crate::bed::BedPlan;
use crate::presets::FEW;
use crate::results::AGAIN;
use crate::results_folder::Done;
use crate::whitebox;

/// Fewer rounds would not tell a difference from noise.
const FEWEST_ROUNDS: u32 = 3;
/// A server's start and end take about this long.
const SESSION: Duration = Duration::from_millis(1200);
/// Bytes a second that are fetched and compared before a measurement.
const LOOK: f64 = 250e6;
/// Time that a measurement takes besides its own: connections, the generator's start.
const AROUND: Duration = Duration::from_millis(200);
/// Samples are read in about this long.
const READING: Duration = Duration::from_millis(700);

impl Plan {
    /// About the time that the missing measurements take.
    pub fn lasts(&self) -> Duration {
        self.black_box_lasts() + self.white_box_lasts()
    }

    /// The black-box part of it; zero when all of these measurements are there.
    pub fn black_box_lasts(&self) -> Duration {
        self.sessions().iter().map(|session| session.lasts(&self.done)).sum()
    }

    /// The part of it that white-box turns take.
    pub fn white_box_lasts(&self) -> Duration {
        if !self.look_inside {
            return Duration::ZERO;
        }
        self.looks_last(&self.white_box())
    }

    /// About how long looks into these groups take, without those that are there.
    pub fn looks_last(&self, groups: &[Group]) -> Duration {
        let lasts = |group: &Group| -> Duration {
            let of = |server: &String| {
                let missing = |task: &&Task| {
                    let point = task.point(&group.bed);
                    group.does(server, task) && !self.done.has_look(&point, server)
                };
                let tasks = || group.tasks.iter().filter(missing);
                together(tasks()) + tasks().map(beside).sum::<Duration>()
            };
            group.servers.iter().map(of).sum()
        };
        groups.iter().map(lasts).sum()
    }

    /// Shortens the plan until it fits: measurements first, down to `shortest`, then rounds down to three, then the
    /// least important groups as a whole. Of the last group its looks inside go, and then servers. `left_out` names
    /// all that goes. A point that has been begun keeps its length.
    ///
    /// # Errors
    ///
    /// When there is no time for two servers of the first unfinished group.
    pub fn fit(&mut self, within: Duration, shortest: Duration) -> Result<()> {
        self.keep_lengths();
        let first = self.groups.iter().flat_map(|group| &group.tasks);
        let longest = first.map(|task| task.load.duration).max().unwrap_or_default();
        let rounds = self.rounds;
        loop {
            self.shorten(within, shortest);
            let lasts = self.lasts();
            if lasts <= within {
                break;
            }
            if self.rounds > FEWEST_ROUNDS {
                self.rounds -= 1;
            } else if let Some(line) = self.leave_out() {
                self.left_out.push(line);
            } else {
                bail!("{within:?} is not enough: about {lasts:?}");
            }
            self.lengthen(longest);
        }
        if self.rounds < rounds {
            let (left, wanted) = (self.rounds, rounds);
            self.left_out.push(format!("{left} rounds of {wanted}: no time for more"));
        }
        Ok(())
    }

    /// Takes the least important part out: its name, or `None` when nothing can go any more.
    fn leave_out(&mut self) -> Option<String> {
        let unfinished: Vec<usize> =
            (0..self.groups.len()).filter(|place| self.is_unfinished(*place)).collect();
        if let [_, .., last] = unfinished[..] {
            let group = self.groups.remove(last);
            return Some(format!("{}: no time for it", group.title));
        }
        if !self.axes.is_empty() {
            self.axes.clear();
            return Some("looks inside at held rates: no time for them".into());
        }
        if self.look_inside {
            self.look_inside = false;
            return Some("looks inside: no time for them".into());
        }
        let group = self.groups.get_mut(*unfinished.first()?)?;
        let last = least_important(&group.servers)?;
        let server = group.servers.remove(last);
        Some(format!("{server} in {}: no time for it", group.title))
    }

    fn is_unfinished(&self, group: usize) -> bool {
        let sessions = self.sessions();
        let mut own = sessions.iter().filter(|one| std::ptr::eq(one.group, &self.groups[group]));
        own.any(|session| session.missing(&self.done).next().is_some())
    }

    fn shorten(&mut self, within: Duration, shortest: Duration) {
        let (whole, measured) = (self.lasts(), self.not_begun_lasts());
        if whole <= within || measured.is_zero() {
            return;
        }
        let spare = within.saturating_sub(whole - measured);
        let factor = spare.as_secs_f64() / measured.as_secs_f64();
        // Whole milliseconds, rounded down: rounding up could make the plan too long by a hair.
        let shortened = |length: Duration| length.mul_f64(factor).as_millis() as u64;
        self.set_lengths(|length| Duration::from_millis(shortened(length)).max(shortest));
    }

    /// The measurements alone, of points at which no server was measured yet.
    fn not_begun_lasts(&self) -> Duration {
        let mut sum = Duration::ZERO;
        for session in self.sessions() {
            let missing = session.missing(&self.done);
            let fresh = missing.filter(|task| !self.is_begun(task, &session.group.bed));
            sum += fresh.map(|task| task.load.duration).sum::<Duration>();
        }
        sum
    }

    /// After the removal of a group the others get their first length back.
    fn lengthen(&mut self, longest: Duration) {
        self.set_lengths(|_| longest);
    }

    /// Sets the length of all tasks that have not been begun.
    fn set_lengths(&mut self, length: impl Fn(Duration) -> Duration) {
        for group in &mut self.groups {
            for task in &mut group.tasks {
                if self.done.length(&task.point(&group.bed)).is_none() {
                    task.load.duration = length(task.load.duration);
                }
            }
        }
    }

    /// Gives a point that has been begun the length of its earlier rounds: all rounds of a point are alike.
    fn keep_lengths(&mut self) {
        for group in &mut self.groups {
            for task in &mut group.tasks {
                let begun = self.done.length(&task.point(&group.bed));
                task.load.duration = begun.unwrap_or(task.load.duration);
            }
        }
    }

    fn is_begun(&self, task: &Task, bed: &BedPlan) -> bool {
        self.done.length(&task.point(bed)).is_some()
    }
}

/// The server of a group that goes next: those of a quick run stay longest, and of all others the last one goes. `None` where
/// two are left, or those that are measured twice, which tell the noise.
pub(super) fn least_important(servers: &[String]) -> Option<usize> {
    let is_second = |name: &String| name.ends_with(AGAIN);
    let first = servers.first()?;
    let goes = |name: &String| {
        name != first && !is_second(name) && !servers.contains(&format!("{name}{AGAIN}"))
    };
    let others = servers.iter().rposition(|name| goes(name) && !FEW.contains(&name.as_str()));
    let next = others.or_else(|| servers.iter().rposition(goes));
    next.filter(|_| servers.iter().filter(|name| !is_second(name)).count() > 2)
}

impl Session<'_> {
    pub(super) fn lasts(&self, done: &Done) -> Duration {
        together(self.missing(done))
    }
}

/// The time of a look besides its samples: reading them, and a turn of counters where no rate is held.
fn beside(task: &Task) -> Duration {
    let counted = task.load.warm_up + whitebox::SECONDS + AROUND;
    READING + if task.load.rate.is_none() { counted } else { Duration::ZERO }
}

/// About how long a server's session with these tasks takes.
fn together<'t>(tasks: impl Iterator<Item = &'t Task>) -> Duration {
    // Generators ask for every file once, and look at every byte of it.
    let files = |task: &Task| Duration::from_secs_f64(task.workload.working_set() as f64 / LOOK);
    let each = |task: &Task| task.load.warm_up + task.load.duration + files(task) + AROUND;
    let tasks: Duration = tasks.map(each).sum();
    if tasks.is_zero() { tasks } else { SESSION + tasks }
}
