//! The measurements of a run, and their order.

mod generators;
#[cfg(test)]
mod tests;
mod time;

use afpa_generator::{Load, Workload};

use crate::bed::BedPlan;
use crate::results::{AGAIN, Point};
use crate::results_folder::Done;
use crate::servers::Server;
use crate::stats::rotated;
use crate::whitebox;

pub use self::generators::Generators;

/// Everything that will be measured.
pub struct Plan {
    /// Groups, the most important one first.
    pub groups: Vec<Group>,
    /// Kim and Rixner's axes: looks inside at rates that are held.
    pub axes: Vec<Group>,
    /// Interleaved rounds.
    pub rounds: u32,
    /// White-box turns follow.
    pub look_inside: bool,
    /// Measurements that were asked for and will not be taken, and why.
    pub left_out: Vec<String>,
    /// Measurements that are there already.
    pub done: Done,
}

/// Tasks that each server does in one go, in each round, on one bed.
#[derive(Clone)]
pub struct Group {
    /// For people.
    pub title: String,
    /// The bed.
    pub bed: BedPlan,
    /// The tasks, in this order.
    pub tasks: Vec<Task>,
    /// The servers, in the order of the first round; [`AGAIN`] behind a name: its second time.
    pub servers: Vec<String>,
    /// Servers of the group that end each connection: they take no part in loads that keep theirs.
    pub closing: Vec<String>,
}

/// One measurement, but for the server.
#[derive(Clone)]
pub struct Task {
    /// The workload.
    pub workload: Workload,
    /// The load.
    pub load: Load,
    /// The generator's name.
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
    /// All sessions in their order: round by round, so that a machine that grows slower or busier affects all
    /// servers alike; the order of the servers rotates.
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
    /// and JAWS's mix; and the axes.
    pub fn white_box(&self) -> Vec<Group> {
        let mut known: Vec<(bool, bool)> = Vec::new();
        let mut groups = Vec::new();
        for group in &self.groups {
            let mut tasks = Vec::new();
            for task in &group.tasks {
                let kind = (task.load.persistent, task.workload.family == "jaws");
                if !known.contains(&kind) {
                    known.push(kind);
                    let load = Load { duration: whitebox::PROFILE, ..task.load.clone() };
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
        groups.extend(self.axes.iter().cloned());
        groups
    }
}

impl Group {
    /// Does the server take part in the task?
    pub fn does(&self, server: &str, task: &Task) -> bool {
        let name = server.strip_suffix(AGAIN).unwrap_or(server);
        !task.load.persistent || !self.closing.iter().any(|closes| closes == name)
    }
}

impl Task {
    /// The point that its measurements belong to.
    pub fn point(&self, bed: &BedPlan) -> Point {
        Point {
            bed: bed.name.clone(),
            workload: self.workload.name.clone(),
            generator: self.generator.clone(),
            persistent: self.load.persistent,
            connections: self.load.connections,
            rate: self.load.rate.map(|rate| rate.round() as u32),
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

    /// The tasks that are not done yet.
    fn missing(&self, done: &Done) -> impl Iterator<Item = &'p Task> {
        let Self { group, server, round } = *self;
        let is_missing = |task: &&Task| !done.has(&task.point(&group.bed), server, round);
        self.tasks().into_iter().filter(is_missing).collect::<Vec<_>>().into_iter()
    }
}
