//! From what was asked for to a plan: which servers, workloads and beds, and the two presets.

use std::time::Duration;

use afpa_generator::{Load, families, family};
use anyhow::{Result, bail, ensure};

use crate::bed::{BedPlan, Wire};
use crate::plan::{Generators, Group, Plan, Task};
use crate::presets::{By, Experiment, FEW, JAWS, Part, UNCACHED, full, quick};
use crate::results::AGAIN;
use crate::results_folder::Done;
use crate::servers::{self, Programs, Server, is_front, is_proxy};
pub use crate::wish::{Preset, Wish};

/// Measurements shorter than this say nothing: /proc counts time in steps of 10 ms.
pub const SHORTEST: Duration = Duration::from_millis(300);
/// All servers, with the variants that the wish needs.
pub fn known(wish: &Wish, programs: &Programs) -> Vec<Box<dyn Server>> {
    let mut servers = servers::all(programs);
    let preset = [JAWS, &[UNCACHED]].into_iter().filter(|_| wish.preset == Preset::Full);
    for name in wish.servers.iter().map(String::as_str).chain(preset.flatten().copied()) {
        if !servers.iter().any(|server| server.name() == name) {
            servers.extend(servers::find(name, programs));
        }
    }
    servers
}

/// A variant of an architecture takes part where it is asked for, and nowhere else.
fn is_variant(name: &str) -> bool {
    name.contains(':')
}

impl Wish {
    /// Makes the plan; `servers` is what [`known`] gives, `done` what need not be measured again.
    ///
    /// # Errors
    ///
    /// When a name is unknown, a server that was named cannot run here, or there is not the time.
    pub fn plan(
        &self,
        servers: &[Box<dyn Server>],
        generators: &Generators,
        done: Done,
    ) -> Result<Plan> {
        let mut plan = Plan {
            groups: Vec::new(),
            axes: Vec::new(),
            rounds: self.rounds,
            look_inside: self.look_inside,
            left_out: Vec::new(),
            done,
        };
        let chosen = self.choose(servers, &mut plan.left_out)?;
        for experiment in self.experiments()? {
            let bed = BedPlan::named(experiment.bed, self.cores, None)?;
            let taking = experiment.servers;
            let takes_part = |name: &&&str| match taking {
                Some(few) => few.contains(name),
                // Proxies are compared with each other, and so are servers before an application.
                None if is_proxy(name) || is_front(name) => false,
                None => !is_variant(name) || self.servers.iter().any(|named| named == *name),
            };
            let names = chosen.iter().filter(takes_part);
            let names: Vec<String> = names.map(|name| (*name).to_owned()).collect();
            let mut tasks = Vec::new();
            for part in &experiment.parts {
                tasks.extend(self.tasks(part, generators, &mut plan.left_out));
            }
            plan.add(experiment.title, bed, tasks, names);
        }
        self.add_named(&chosen, generators, &mut plan)?;
        self.add_axes(&chosen, generators, &mut plan)?;
        for name in &chosen {
            let server = servers.iter().find(|server| server.name() == *name);
            if server.is_some_and(|server| !plan.has_work_for(server.as_ref())) {
                plan.left_out.push(format!("server {name}: none of the loads suits it"));
            }
        }
        for group in &mut plan.groups {
            let known = |name: &str| servers.iter().find(|server| server.name() == name);
            let closes = |name: &&String| known(name).is_some_and(|one| !one.keeps_connections());
            group.closing = group.servers.iter().filter(closes).cloned().collect();
            let tasks = &group.tasks;
            measure_one_twice(&mut group.servers, |name| {
                known(name).is_some_and(|server| tasks.iter().any(|t| t.suits(server.as_ref())))
            });
        }
        ensure!(!plan.groups.is_empty(), "nothing can be measured: {}", plan.left_out.join("; "));
        if let Some(within) = self.within {
            plan.fit(within, SHORTEST.min(self.seconds))?;
        }
        Ok(plan)
    }

    /// The servers that take part, in their order.
    fn choose<'s>(
        &self,
        servers: &'s [Box<dyn Server>],
        left_out: &mut Vec<String>,
    ) -> Result<Vec<&'s str>> {
        let known = |name: &str| servers.iter().find(|server| server.name() == name);
        for name in &self.servers {
            let Some(server) = known(name) else {
                let names: Vec<&str> = servers.iter().map(|server| server.name()).collect();
                bail!("no server '{name}'; there are: {}", names.join(", "));
            };
            if let Some(reason) = server.lacks() {
                bail!("{name}: {reason}");
            }
        }
        let all = || servers.iter().map(|server| server.name());
        let wanted: Vec<&str> = match (self.servers.as_slice(), self.preset) {
            ([], Preset::Full) => all().collect(),
            ([], _) => all().filter(|name| FEW.contains(name)).collect(),
            (named, _) => all().filter(|name| named.iter().any(|one| one == name)).collect(),
        };
        let mut chosen = Vec::new();
        for name in wanted {
            match known(name).and_then(|server| server.lacks()) {
                Some(reason) => left_out.push(format!("server {name}: {reason}")),
                None => chosen.push(name),
            }
        }
        ensure!(!chosen.is_empty(), "no server can run here: {}", left_out.join("; "));
        Ok(chosen)
    }

    /// The experiments of the preset; the most important ones first.
    fn experiments(&self) -> Result<Vec<Experiment>> {
        match self.preset {
            Preset::Named => Ok(Vec::new()),
            Preset::Quick => quick(),
            Preset::Full => full(),
        }
    }

    /// Adds the experiments that the command line names: every family on every bed, over both kinds of connections.
    fn add_named(&self, chosen: &[&str], generators: &Generators, plan: &mut Plan) -> Result<()> {
        if self.preset != Preset::Named {
            return Ok(());
        }
        let mut workloads = Vec::new();
        let known: Vec<&str> = families().into_iter().map(|(name, _)| name).collect();
        for name in &self.workloads {
            let there = known.contains(&name.as_str());
            ensure!(there, "no workload '{name}'; there are: {}", known.join(", "));
            workloads.extend(family(name, &self.sizes, false)?);
        }
        let wire = Wire::new(self.delay, self.loss, self.bandwidth);
        for bed in &self.beds {
            let bed = BedPlan::named(bed, self.cores, wire)?;
            let mut tasks = Vec::new();
            for persistent in &self.persistent {
                let part = Part {
                    workloads: workloads.clone(),
                    connections: self.connections.clone(),
                    persistent: *persistent,
                    by: if self.every_generator { By::Each } else { By::TheFirst },
                };
                tasks.extend(self.tasks(&part, generators, &mut plan.left_out));
            }
            let names = chosen.iter().map(|name| (*name).to_owned()).collect();
            let title = format!("{} on bed {}", self.workloads.join(", "), bed.name);
            plan.add(&title, bed, tasks, names);
        }
        Ok(())
    }

    fn tasks(&self, part: &Part, generators: &Generators, left_out: &mut Vec<String>) -> Vec<Task> {
        let mut tasks = Vec::new();
        for workload in &part.workloads {
            for connections in &part.connections {
                let load = Load {
                    connections: *connections,
                    warm_up: self.warm_up,
                    duration: self.seconds,
                    persistent: part.persistent,
                    rate: self.rate,
                };
                let (able, reasons) = generators.able(workload, &load);
                if able.is_empty() {
                    let kind = if load.persistent { "persistent" } else { "one request each" };
                    left_out.push(format!(
                        "{}, {kind}, {connections} connections: no generator: {}",
                        workload.name,
                        reasons.join("; ")
                    ));
                }
                let most = if part.by == By::Each { able.len() } else { 1 };
                if part.by == By::Each && !able.is_empty() {
                    let named = |reason: &String| format!("{}, generator {reason}", workload.name);
                    left_out.extend(reasons.iter().map(named));
                }
                tasks.extend(able.into_iter().take(most).map(|generator| Task {
                    workload: workload.clone(),
                    load: load.clone(),
                    generator,
                }));
            }
        }
        tasks
    }
}

impl Plan {
    fn has_work_for(&self, server: &dyn Server) -> bool {
        let mut taking =
            self.groups.iter().filter(|g| g.servers.iter().any(|n| n == server.name()));
        taking.any(|group| group.tasks.iter().any(|task| task.suits(server)))
    }

    fn add(&mut self, title: &str, bed: BedPlan, tasks: Vec<Task>, servers: Vec<String>) {
        if !tasks.is_empty() && !servers.is_empty() {
            let (title, closing) = (title.to_owned(), Vec::new());
            self.groups.push(Group { title, bed, tasks, servers, closing });
        }
    }
}

/// The noise is the difference of a server from itself. Measures a peer that takes part a second time, at the
/// other end of the round; AFPA if there is no peer.
fn measure_one_twice(servers: &mut Vec<String>, works: impl Fn(&str) -> bool) {
    let able = || servers.iter().filter(|name| works(name));
    if let Some(name) = able().find(|name| !name.starts_with("afpa")).or(able().next()) {
        servers.push(format!("{name}{AGAIN}"));
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn a_peer_that_works_is_measured_twice() {
        let twice = |names: &[&str]| {
            let mut servers: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            measure_one_twice(&mut servers, |name| name != "howl");
            servers.split_off(names.len())
        };
        assert_eq!(twice(&["afpa-kernel", "howl", "nginx", "h2o"]), ["nginx (again)"]);
        assert_eq!(twice(&["afpa", "howl"]), ["afpa (again)"]);
        assert!(twice(&["howl"]).is_empty());
    }

    #[test]
    fn presets_begin_with_the_papers_sizes() {
        for preset in [Preset::Quick, Preset::Full] {
            let experiments = wish(preset).experiments().unwrap();
            let parts = &experiments[0].parts;
            let workloads = parts[0].workloads.iter();
            let sizes: Vec<f64> = workloads.filter_map(|workload| workload.point).collect();
            assert_eq!((sizes[0], sizes[sizes.len() - 1]), (64.0, 1048576.0));
            assert!(parts.iter().any(|part| !part.persistent));
            assert!(experiments.iter().any(|one| one.bed == "unsteered"));
        }
    }

    /// A wish by hand.
    pub(crate) fn wish(preset: Preset) -> Wish {
        Wish {
            preset,
            servers: Vec::new(),
            workloads: Vec::new(),
            sizes: Vec::new(),
            connections: vec![64],
            persistent: vec![true],
            beds: vec!["steered".into()],
            generator: None,
            every_generator: false,
            rate: None,
            rounds: 3,
            warm_up: Duration::from_millis(200),
            seconds: Duration::from_secs(1),
            delay: Duration::ZERO,
            loss: 0.0,
            bandwidth: None,
            cores: (0, 1),
            look_inside: false,
            within: None,
        }
    }
}
