//! What a run will measure, in which order, and how long that takes.

use std::time::Duration;

use afpa_generator::{Generator, Load, Workload};
use anyhow::{Result, bail};

use crate::bed::BedPlan;
use crate::kept::Done;
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
    /// What is there already.
    pub done: Done,
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
    /// Those of them that end each connection: they take no part in loads that keep theirs.
    pub closing: Vec<String>,
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
                    closing: group.closing.clone(),
                    tasks,
                });
            }
        }
        groups
    }

    /// About how long it takes to measure what is not there yet.
    pub fn lasts(&self) -> Duration {
        self.black_box_lasts() + self.white_box_lasts()
    }

    /// The part of it that measurements take; nothing when all of them are there.
    pub fn black_box_lasts(&self) -> Duration {
        self.sessions().iter().map(|session| session.lasts(&self.done)).sum()
    }

    /// The part of it that white-box turns take.
    pub fn white_box_lasts(&self) -> Duration {
        if !self.look_inside {
            return Duration::ZERO;
        }
        let lasts = |group: &Group| -> Duration {
            let of = |server: &String| {
                together(group.tasks.iter().filter(|task| {
                    let point = task.point(&group.bed);
                    group.does(server, task) && !self.done.has_look(&point, server)
                }))
            };
            group.servers.iter().map(of).sum()
        };
        self.white_box().iter().map(lasts).sum()
    }

    /// Shortens the plan until it fits: measurements first, down to `shortest`, then the least
    /// important groups as a whole. What goes is said. What has been begun goes on as it was.
    ///
    /// # Errors
    ///
    /// When not even the first group that has something missing fits.
    pub fn fit(&mut self, within: Duration, shortest: Duration) -> Result<()> {
        self.keep_lengths();
        let first = self.groups.iter().flat_map(|group| &group.tasks);
        let longest = first.map(|task| task.load.duration).max().unwrap_or_default();
        loop {
            self.shorten(within, shortest);
            let lasts = self.lasts();
            if lasts <= within {
                return Ok(());
            }
            let unfinished: Vec<usize> =
                (0..self.groups.len()).filter(|place| self.is_unfinished(*place)).collect();
            let [_, .., last] = unfinished[..] else {
                bail!("{within:?} is not enough: about {lasts:?}");
            };
            let group = self.groups.remove(last);
            self.left_out.push(format!("{}: no time for it", group.title));
            self.lengthen(longest);
        }
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
        // Whole milliseconds: what is rounded up could make the plan too long by a hair.
        let shortened = |length: Duration| length.mul_f64(factor).as_millis() as u64;
        self.set_lengths(|length| Duration::from_millis(shortened(length)).max(shortest));
    }

    /// The measurements alone, of points that nobody was measured at yet.
    fn not_begun_lasts(&self) -> Duration {
        let mut sum = Duration::ZERO;
        for session in self.sessions() {
            let missing = session.missing(&self.done);
            let fresh = missing.filter(|task| !self.is_begun(task, &session.group.bed));
            sum += fresh.map(|task| task.load.duration).sum::<Duration>();
        }
        sum
    }

    /// A group went: the others get the time that they first had.
    fn lengthen(&mut self, longest: Duration) {
        self.set_lengths(|_| longest);
    }

    /// New lengths for what has not been begun.
    fn set_lengths(&mut self, length: impl Fn(Duration) -> Duration) {
        for group in &mut self.groups {
            for task in &mut group.tasks {
                if self.done.length(&task.point(&group.bed)).is_none() {
                    task.load.duration = length(task.load.duration);
                }
            }
        }
    }

    /// Rounds of one point are alike.
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

impl Group {
    /// Does the server take part in the task?
    pub fn does(&self, server: &str, task: &Task) -> bool {
        let name = server.strip_suffix(AGAIN).unwrap_or(server);
        !task.load.persistent || !self.closing.iter().any(|closes| closes == name)
    }
}

/// About how long a server's session with these tasks takes.
fn together<'t>(tasks: impl Iterator<Item = &'t Task>) -> Duration {
    // Generators ask for every file once, and look at every byte of it.
    let files = |task: &Task| Duration::from_secs_f64(task.workload.working_set() as f64 / LOOK);
    let each = |task: &Task| task.load.warm_up + task.load.duration + files(task) + AROUND;
    let tasks: Duration = tasks.map(each).sum();
    if tasks.is_zero() { tasks } else { SESSION + tasks }
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

impl<'p> Session<'p> {
    /// The server's name without the mark of its second time.
    pub fn name(&self) -> &str {
        self.server.strip_suffix(AGAIN).unwrap_or(self.server)
    }

    /// The group's tasks that the server takes part in.
    pub fn tasks(&self) -> Vec<&'p Task> {
        let Self { group, server, .. } = *self;
        group.tasks.iter().filter(|task| group.does(server, task)).collect()
    }

    /// Those that are not done yet.
    fn missing(&self, done: &Done) -> impl Iterator<Item = &'p Task> {
        let Self { group, server, round } = *self;
        let is_missing = |task: &&Task| !done.has(&task.point(&group.bed), server, round);
        self.tasks().into_iter().filter(is_missing).collect::<Vec<_>>().into_iter()
    }

    fn lasts(&self, done: &Done) -> Duration {
        together(self.missing(done))
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
            closing: Vec::new(),
        }
    }

    fn plan() -> Plan {
        let groups = vec![group("first", &["a", "b", "a (again)"], 2), group("second", &["a"], 2)];
        let (left_out, done) = (Vec::new(), Done::default());
        Plan { groups, rounds: 2, look_inside: false, left_out, done }
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
    fn more_time_never_leaves_more_out() {
        for seconds in 14..30 {
            let mut plan = plan();
            plan.fit(Duration::from_secs(seconds), Duration::from_millis(500)).unwrap();
            let expected = if seconds < 17 { 1 } else { 2 };
            assert_eq!(plan.groups.len(), expected, "{seconds} s");
        }
    }

    #[test]
    fn what_does_not_fit_is_left_out_aloud() {
        let mut plan = plan();
        plan.fit(Duration::from_secs(18), Duration::from_millis(900)).unwrap();
        assert_eq!(plan.left_out, ["second: no time for it"]);
        assert!(plan.lasts() <= Duration::from_secs(18));
        assert!(plan.fit(Duration::from_secs(1), Duration::from_millis(900)).is_err());
    }

    #[test]
    fn what_is_left_has_the_time_of_what_went() {
        let mut plan = plan();
        plan.groups[1] = group("second", &["a", "b", "c", "d", "e", "f"], 2);
        let alone = 3600 * 3 * 2;
        plan.fit(Duration::from_millis(alone + 1), Duration::from_millis(900)).unwrap();
        assert_eq!((plan.groups.len(), plan.lasts().as_millis()), (1, u128::from(alone)));
    }

    #[test]
    fn what_is_there_takes_no_time_and_is_not_left_out() {
        let mut plan = plan();
        let mut other = group("third", &["a", "b"], 2);
        other.tasks[0].load.connections = 7;
        plan.groups[1] = group("second", &["c"], 2);
        plan.groups.push(other);
        let turns = ["a", "b", "a (again)"].into_iter().flat_map(|server| {
            [1, 2].map(|round| {
                let mut turn = crate::summary::tests::turn(server, round, 10.0);
                turn.point = plan.groups[0].tasks[0].point(&plan.groups[0].bed);
                turn.measured.seconds = 0.25;
                turn
            })
        });
        plan.done = Done::of(&turns.collect::<Vec<_>>(), &[]);
        // The second group asks for what the first one measured, of another server.
        let second = (1600 + 250) * 2;
        plan.fit(Duration::from_millis(second + 1), Duration::from_millis(900)).unwrap();
        let titles: Vec<&str> = plan.groups.iter().map(|group| group.title.as_str()).collect();
        assert_eq!(titles, ["first", "second"]);
        assert_eq!(plan.lasts().as_millis(), u128::from(second));
        assert_eq!(plan.left_out, ["third: no time for it"]);
    }

    #[test]
    fn who_closes_does_nothing_over_persistent_connections() {
        let mut group = group("first", &["howl", "a"], 2);
        group.closing = vec!["howl".into()];
        let session = |server| Session { group: &group, server, round: 1 };
        let done = Done::default();
        assert_eq!(session("howl").lasts(&done), Duration::ZERO);
        assert_eq!(session("a").lasts(&done).as_millis(), 3600);
    }
}
