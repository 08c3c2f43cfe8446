//! What a run will measure, in which order, and how long that takes.

use std::time::Duration;

use afpa_generator::{Generator, Load, Workload};
use anyhow::{Result, bail, ensure};

use crate::bed::BedPlan;
use crate::results::{AGAIN, Point};
use crate::servers::Server;
use crate::stats::rotated;
use crate::whitebox;

/// A server's start and end take about this long.
const SESSION: Duration = Duration::from_millis(1200);
/// Bytes a second that are fetched and compared before a measurement.
const LOOK: f64 = 250e6;
/// What a measurement takes besides its own time: connections, the generator's start.
const AROUND: Duration = Duration::from_millis(200);

/// Everything that will be measured.
pub struct Plan {
    /// Groups, the most important one first.
    pub groups: Vec<Group>,
    /// Interleaved rounds.
    pub rounds: u32,
    /// White-box turns follow.
    pub look_inside: bool,
    /// What was asked for and will not be measured, and why.
    pub left_out: Vec<String>,
}

/// Tasks that each server does in one go, in each round, on one bed.
pub struct Group {
    /// For people.
    pub title: String,
    /// Where.
    pub bed: BedPlan,
    /// What, in this order.
    pub tasks: Vec<Task>,
    /// Who, in the order of the first round; [`AGAIN`] behind a name: its second time.
    pub servers: Vec<String>,
}

/// One measurement, but for the server.
#[derive(Clone)]
pub struct Task {
    /// What is asked.
    pub workload: Workload,
    /// How hard.
    pub load: Load,
    /// By whom.
    pub generator: String,
}

/// A server's turn at the tasks of a group.
pub struct Session<'p> {
    /// The group.
    pub group: &'p Group,
    /// The server's name, with [`AGAIN`] the second time.
    pub server: &'p str,
    /// Counted from 1.
    pub round: u32,
}

impl Plan {
    /// All sessions in their order: round by round, so that a machine that grows slower or busier
    /// is not held against anybody; the order of the servers rotates.
    pub fn sessions(&self) -> Vec<Session<'_>> {
        let mut sessions = Vec::new();
        for round in 1..=self.rounds {
            for group in &self.groups {
                let names: Vec<&str> = group.servers.iter().map(String::as_str).collect();
                for server in rotated(&names, round as usize - 1) {
                    sessions.push(Session { group, server, round });
                }
            }
        }
        sessions
    }

    /// Groups for a look inside: by each server once, the first load over each kind of connection
    /// and JAWS's mix.
    pub fn white_box(&self) -> Vec<Group> {
        let mut known: Vec<(bool, bool)> = Vec::new();
        let mut groups = Vec::new();
        for group in &self.groups {
            let mut tasks = Vec::new();
            for task in &group.tasks {
                let kind = (task.load.persistent, task.workload.family == "jaws");
                if !known.contains(&kind) {
                    known.push(kind);
                    let load = Load { duration: whitebox::SECONDS, ..task.load.clone() };
                    tasks.push(Task { load, ..task.clone() });
                }
            }
            let servers = group.servers.iter().filter(|name| !name.ends_with(AGAIN));
            if !tasks.is_empty() {
                groups.push(Group {
                    title: group.title.clone(),
                    bed: group.bed.clone(),
                    servers: servers.cloned().collect(),
                    tasks,
                });
            }
        }
        groups
    }

    /// About how long it takes.
    pub fn lasts(&self) -> Duration {
        let round: Duration = self.groups.iter().map(Group::lasts).sum();
        round * self.rounds + self.white_box_lasts()
    }

    /// The part of it that white-box turns take.
    pub fn white_box_lasts(&self) -> Duration {
        match self.look_inside {
            true => self.white_box().iter().map(Group::lasts).sum(),
            false => Duration::ZERO,
        }
    }

    /// Shortens the plan until it fits: measurements first, down to `shortest`, then the least
    /// important groups as a whole. What goes is said.
    ///
    /// # Errors
    ///
    /// When not even the first group fits.
    pub fn fit(&mut self, within: Duration, shortest: Duration) -> Result<()> {
        self.shorten(within, shortest);
        while self.lasts() > within {
            ensure!(self.groups.len() > 1, "{within:?} is not enough: about {:?}", self.lasts());
            if let Some(group) = self.groups.pop() {
                self.left_out.push(format!("{}: no time for it", group.title));
            }
            self.lengthen();
            self.shorten(within, shortest);
        }
        Ok(())
    }

    fn shorten(&mut self, within: Duration, shortest: Duration) {
        let whole = self.lasts();
        let measured: Duration = self.tasks().map(|task| task.load.duration).sum();
        let measured = measured * self.rounds;
        if whole <= within || measured.is_zero() {
            return;
        }
        let spare = within.saturating_sub(whole - measured);
        let factor = spare.as_secs_f64() / measured.as_secs_f64();
        for group in &mut self.groups {
            let servers = group.servers.len();
            for task in group.tasks.iter_mut().filter(|_| servers > 0) {
                task.load.duration = task.load.duration.mul_f64(factor).max(shortest);
            }
        }
    }

    /// A group went: the others get the time that they first had.
    fn lengthen(&mut self) {
        let first = self.groups.iter().flat_map(|group| &group.tasks);
        let longest = first.map(|task| task.load.duration).max().unwrap_or_default();
        for group in &mut self.groups {
            for task in &mut group.tasks {
                task.load.duration = longest;
            }
        }
    }

    /// Tasks, once for each server that does them.
    fn tasks(&self) -> impl Iterator<Item = &Task> {
        let once = |group: &'_ Group| group.servers.len();
        self.groups
            .iter()
            .flat_map(move |group| std::iter::repeat_n(group, once(group)))
            .flat_map(|group| &group.tasks)
    }
}

impl Group {
    /// About how long one round of it takes.
    fn lasts(&self) -> Duration {
        // Generators ask for every file once, and look at every byte of it.
        let files =
            |task: &Task| Duration::from_secs_f64(task.workload.working_set() as f64 / LOOK);
        let tasks: Duration = self
            .tasks
            .iter()
            .map(|task| task.load.warm_up + task.load.duration + files(task) + AROUND)
            .sum();
        (SESSION + tasks) * u32::try_from(self.servers.len()).unwrap_or(u32::MAX)
    }
}

impl Task {
    /// What its measurements are compared by.
    pub fn point(&self, bed: &BedPlan) -> Point {
        Point {
            bed: bed.name.clone(),
            workload: self.workload.name.clone(),
            generator: self.generator.clone(),
            persistent: self.load.persistent,
            connections: self.load.connections,
        }
    }

    /// Can the server do it at all?
    pub fn suits(&self, server: &dyn Server) -> bool {
        server.keeps_connections() || !self.load.persistent
    }
}

impl Session<'_> {
    /// The server's name without the mark of its second time.
    pub fn name(&self) -> &str {
        self.server.strip_suffix(AGAIN).unwrap_or(self.server)
    }
}

/// The generators of this machine, and who of them does a task.
pub struct Generators {
    here: Vec<Box<dyn Generator>>,
    wanted: Option<String>,
}

impl Generators {
    /// Those that can run here. With a name: that one alone.
    ///
    /// # Errors
    ///
    /// When the one that was named is unknown, or cannot run here.
    pub fn choose(wanted: Option<&str>) -> Result<Self> {
        let all = afpa_generator::generators();
        if let Some(name) = wanted {
            let Some(found) = all.iter().find(|one| one.name() == name) else {
                let names: Vec<&str> = all.iter().map(|one| one.name()).collect();
                bail!("no generator '{name}'; there are: {}", names.join(", "));
            };
            if let Some(reason) = found.lacks() {
                bail!("{name}: {reason}");
            }
        }
        let here = all.into_iter().filter(|one| one.lacks().is_none()).collect();
        Ok(Self { here, wanted: wanted.map(str::to_owned) })
    }

    /// By name; the name comes from a plan.
    pub fn named(&self, name: &str) -> Option<&dyn Generator> {
        self.here.iter().find(|one| one.name() == name).map(AsRef::as_ref)
    }

    /// Names of all that are here.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.here.iter().map(|one| one.name())
    }

    /// Those that can make this load, the fastest first, and why the others cannot.
    pub fn able(&self, workload: &Workload, load: &Load) -> (Vec<String>, Vec<String>) {
        let (mut able, mut reasons) = (Vec::new(), Vec::new());
        for generator in &self.here {
            if self.wanted.as_deref().is_some_and(|wanted| wanted != generator.name()) {
                continue;
            }
            match generator.can(workload, load) {
                Ok(()) => able.push(generator.name().to_owned()),
                Err(reason) => reasons.push(format!("{}: {reason}", generator.name())),
            }
        }
        (able, reasons)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(title: &str, servers: &[&str], seconds: u64) -> Group {
        let load = Load {
            connections: 64,
            warm_up: Duration::from_millis(200),
            duration: Duration::from_secs(seconds),
            persistent: true,
            rate: None,
        };
        let workload = afpa_generator::family("webstone", &[512], true).unwrap().remove(0);
        Group {
            title: title.into(),
            bed: BedPlan::named("steered", (0, 1), None).unwrap(),
            tasks: vec![Task { workload, load, generator: "tc".into() }],
            servers: servers.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    fn plan() -> Plan {
        let groups = vec![group("first", &["a", "b", "a (again)"], 2), group("second", &["a"], 2)];
        Plan { groups, rounds: 2, look_inside: false, left_out: Vec::new() }
    }

    #[test]
    fn rounds_are_interleaved_and_rotate() {
        let plan = plan();
        let order: Vec<_> = plan.sessions().iter().map(|s| (s.round, s.server)).collect();
        let first = [(1, "a"), (1, "b"), (1, "a (again)"), (1, "a")];
        let second = [(2, "b"), (2, "a (again)"), (2, "a"), (2, "a")];
        assert_eq!(order, [first, second].concat());
        assert_eq!(plan.sessions()[2].name(), "a");
    }

    #[test]
    fn a_plan_is_shortened_until_it_fits() {
        let mut plan = plan();
        assert_eq!(plan.lasts().as_millis(), 3600 * 4 * 2);
        plan.fit(Duration::from_millis(20_800), Duration::from_millis(500)).unwrap();
        assert_eq!((plan.groups.len(), plan.left_out.len()), (2, 0));
        assert!(plan.lasts() <= Duration::from_millis(20_801), "{:?}", plan.lasts());
        let one = plan.groups[0].tasks[0].load.duration;
        assert!((one.as_secs_f64() - 1.0).abs() < 0.01, "{one:?}");
    }

    #[test]
    fn what_does_not_fit_is_left_out_aloud() {
        let mut plan = plan();
        plan.fit(Duration::from_secs(18), Duration::from_millis(900)).unwrap();
        assert_eq!(plan.left_out, ["second: no time for it"]);
        assert!(plan.lasts() <= Duration::from_secs(18));
        assert!(plan.fit(Duration::from_secs(1), Duration::from_millis(900)).is_err());
    }
}
