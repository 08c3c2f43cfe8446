//! `afpa-lab fast-path`: the gain of answers from the kernel, and their cost.
//!
//! Servers take turns on the test bed of afpa-netlab: two network namespaces, the server on one core, a closed loop
//! in TC on the other. In each round every case is measured once for every server, and the order of the servers
//! rotates. Then follow: the cost of a request that the programs pass on to user mode, 200,000 connections against 64,
//! and how long an old version of a file is given.

mod alternating;
mod cases;
mod coherence;
mod descriptors;
mod downloads;
mod figures;
mod hooks;
mod programs;
mod report;
pub(crate) mod turn;

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::bench::{Bench, Case, Report, Samples, Settings};
use crate::environment::Environment;
use crate::servers::{self, Programs};
use crate::stats::Spread;
use crate::work::Work;

use alternating::Added;
pub(crate) use cases::mix;
use cases::{H2O, KERNEL, NGINX, REFLECTOR};
use coherence::Changes;
use figures::{CaseFigures, Figure, Least, scaled};
use turn::{Lengths, Turns};

/// Versions that the changing file has, and with `--quick`.
const CHANGES: [usize; 2] = [400, 100];

/// The options of the command line.
#[derive(Debug, Clone, Serialize)]
pub struct FastPathSettings {
    /// The options of every bench.
    #[serde(flatten)]
    pub bench: Settings,
    /// Established connections of the largest case.
    pub flows: u32,
    /// Seconds that a measurement may wait until both cores have nothing else to do.
    pub patience: f64,
}

/// The results of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Results {
    /// The machine and the software.
    pub environment: Environment,
    /// Versions, as the servers print them.
    pub versions: Vec<String>,
    /// The options of the command line.
    pub settings: FastPathSettings,
    /// Length of the run.
    pub took_seconds: f64,
    /// Objects of one segment.
    pub speed: Vec<CaseFigures>,
    /// Objects of several segments.
    pub larger: Vec<CaseFigures>,
    /// One request a connection.
    pub once: Vec<CaseFigures>,
    /// The least favourable ratios.
    pub least: Vec<Least>,
    /// The share of speed that a browser's header fields leave.
    pub browser: Vec<Figure>,
    /// The cost that the programs add to requests that user mode answers, by pairs of servers.
    pub passes: Vec<Figure>,
    /// The same, by taking the programs away and putting them back.
    pub alternating: Vec<AlternatingFigure>,
    /// Nanoseconds that the programs take for a request.
    pub programs: Vec<Figure>,
    /// Many connections against few.
    pub flows: Option<Flows>,
    /// How long old versions are given.
    pub changes: Option<Changes>,
    /// Measurements that were taken again, and why.
    pub repeated: Vec<String>,
    /// Measurements that failed for good, and why.
    pub failed: Vec<String>,
    /// How servers were started.
    pub commands: BTreeMap<String, String>,
    /// Every measurement.
    pub samples: Samples,
}

/// The cost that the programs add in one case.
#[derive(Debug, Clone, Serialize)]
pub struct AlternatingFigure {
    /// The case's.
    pub name: String,
    /// The case's.
    pub title: String,
    /// The figures.
    #[serde(flatten)]
    pub added: Added,
}

/// Many connections against few.
#[derive(Debug, Clone, Serialize)]
pub struct Flows {
    /// Connections of the small case.
    pub few: u32,
    /// Connections of the large one.
    pub many: u32,
    /// Core time of a request, in microseconds.
    pub cost_few: Spread,
    /// Core time of a request, in microseconds.
    pub cost_many: Spread,
    /// The second to the first, round by round.
    pub ratio: Spread,
    /// Most connections that were seen in the kernel's table.
    pub in_table: u64,
    /// Bytes of the table, and connections that it has room for.
    pub memory: Option<(u64, u32)>,
}

/// The run, part by part.
struct Run<'r> {
    turns: Turns<'r>,
    settings: FastPathSettings,
    alternating: Vec<AlternatingFigure>,
    program_times: Vec<(Case, f64)>,
    in_table: u64,
    memory: Option<(u64, u32)>,
    changes: Option<Changes>,
}

/// Measures, and reports the results. A part that fails is reported, and the others are measured.
///
/// # Errors
///
/// When a server's program is missing, or a signal ends the run.
pub fn measure(
    settings: FastPathSettings,
    programs: Programs,
    environment: Environment,
    interrupted: &'static AtomicBool,
    say: fn(&str),
) -> Result<Results> {
    // For the servers, which inherit it: 200,000 connections are as many descriptors.
    afpa_netlab::use_all_open_files()?;
    let work = Work::create()?;
    let patience = Duration::try_from_secs_f64(settings.patience)?;
    let turns = Turns { programs: programs.clone(), work: work.path(), patience };
    make_root(work.path(), &turns.root())?;
    let versions = versions(&programs)?;
    let mut bench = Bench::new(settings.bench.clone(), interrupted, say);
    let mut run = Run::new(turns, settings);
    bench.part(|bench| run.rounds(bench, cases::speed()))?;
    bench.part(|bench| run.rounds(bench, cases::larger()))?;
    bench.part(|bench| run.rounds(bench, cases::once()))?;
    bench.part(|bench| run.rounds(bench, cases::passes()))?;
    bench.part(|bench| run.alternating(bench))?;
    bench.part(|bench| run.programs(bench))?;
    bench.part(|bench| run.flows(bench))?;
    bench.part(|bench| run.coherence(bench))?;
    Ok(run.results(bench, environment, versions))
}

impl Results {
    /// Tables and ratios.
    pub fn report(&self) -> Report {
        report::report(self)
    }

    /// Bars; `None` when their cases were not measured.
    pub fn figure(&self) -> Option<String> {
        report::figure(self)
    }
}

/// Some servers give up root's rights and must read it all the same.
pub(crate) fn make_root(work: &Path, root: &Path) -> Result<()> {
    fs::create_dir_all(root).with_context(|| format!("{}", root.display()))?;
    for folder in [work, root] {
        fs::set_permissions(folder, Permissions::from_mode(0o755))?;
    }
    cases::write_files(root)
}

/// The servers' versions, as they print them.
fn versions(programs: &Programs) -> Result<Vec<String>> {
    let version = |name: &str| {
        let server =
            servers::find(name, programs).with_context(|| format!("no server '{name}'"))?;
        let missing = server.lacks();
        ensure!(missing.is_none(), "{}", missing.unwrap_or_default());
        Ok(server.version())
    };
    ["afpa", NGINX, H2O].into_iter().map(version).collect()
}

impl<'r> Run<'r> {
    fn new(turns: Turns<'r>, settings: FastPathSettings) -> Self {
        Self {
            turns,
            settings,
            alternating: Vec::new(),
            program_times: Vec::new(),
            in_table: 0,
            memory: None,
            changes: None,
        }
    }

    fn rounds(&self, bench: &mut Bench, cases: Vec<Case>) -> Result<()> {
        let chosen = bench.settings.chosen(cases);
        bench.rounds(&chosen, |bench, case, server| {
            let lengths = lengths(bench, case);
            let (sample, command) = self.turns.measure(case, server, lengths, &mut |_| ())?;
            bench.commands.insert(format!("{}, {server}", case.name), command);
            Ok(sample)
        })
    }

    fn alternating(&mut self, bench: &mut Bench) -> Result<()> {
        for asked in cases::alternating() {
            let case = &asked.case;
            if bench.settings.chosen(vec![case.clone()]).is_empty() {
                continue;
            }
            bench.check()?;
            let seconds = bench.settings.length_of(case);
            let (groups, command) = alternating::measure(&self.turns, &asked, seconds)
                .with_context(|| case.title.clone())?;
            bench.commands.insert(case.name.clone(), command);
            let added = alternating::added(&groups)?;
            bench.say(&format!("there and away: {}: {}", case.title, added.words()));
            let (name, title) = (case.name.clone(), case.title.clone());
            self.alternating.push(AlternatingFigure { name, title, added });
        }
        Ok(())
    }

    fn programs(&mut self, bench: &mut Bench) -> Result<()> {
        let chosen = bench.settings.chosen(cases::programs());
        let Some(first) = chosen.first() else { return Ok(()) };
        let _counting = programs::Counting::begin()?;
        for _ in 0..bench.settings.rounds_of(first) {
            for case in &chosen {
                bench.check()?;
                let each = self.program_time(bench, case)?;
                bench.say(&format!("programs, {}: {each:.0} ns", case.title));
                self.program_times.push((case.clone(), each));
            }
        }
        Ok(())
    }

    /// Nanoseconds of a request.
    fn program_time(&self, bench: &mut Bench, case: &Case) -> Result<f64> {
        let server = case.servers.first().context("a server")?;
        let lengths = Lengths { warm_up: Duration::ZERO, ..lengths(bench, case) };
        let mut looks = Vec::new();
        let (_, command) = self.turns.measure(case, server, lengths, &mut |on_bed| {
            let found = on_bed.running.main_process().map(programs::times);
            looks.extend(found.filter(|times| !times.is_empty()));
        })?;
        bench.commands.insert(case.name.clone(), command);
        programs::each(&looks)
    }

    fn flows(&mut self, bench: &mut Bench) -> Result<()> {
        let chosen = bench.settings.chosen(cases::flows(self.settings.flows).to_vec());
        let (mut most, mut memory) = (self.in_table, self.memory);
        let turns = &self.turns;
        let measured = bench.rounds(&chosen, |bench, case, server| {
            let (lengths, room) = (lengths(bench, case), turn::table_size(case));
            let (sample, command) = turns.measure(case, server, lengths, &mut |on_bed| {
                most = most.max(servers::control::open_flows(&on_bed.control));
                let process = on_bed.running.main_process();
                let locked = process.and_then(|process| descriptors::locked_for_map(process, room));
                memory = locked.map(|bytes| (bytes, room)).or(memory);
            })?;
            bench.commands.insert(format!("{}, {server}", case.name), command);
            Ok(sample)
        });
        (self.in_table, self.memory) = (most, memory);
        measured
    }

    fn coherence(&mut self, bench: &mut Bench) -> Result<()> {
        if !bench.settings.wants("coherence") {
            return Ok(());
        }
        let [all, few] = CHANGES;
        let changes = if bench.settings.quick { few } else { all };
        let (found, command) = coherence::measure(&self.turns, changes).context("coherence")?;
        bench.commands.insert("coherence".into(), command);
        bench.say(&found.line());
        self.changes = Some(found);
        Ok(())
    }

    fn results(self, bench: Bench, environment: Environment, versions: Vec<String>) -> Results {
        let samples = &bench.samples;
        let all = |cases: Vec<Case>| -> Vec<CaseFigures> {
            cases.iter().filter_map(|case| figures::case_figures(samples, case)).collect()
        };
        let speed = all(cases::speed());
        let overhead = |case: &Case| figures::overhead(samples, case);
        Results {
            environment,
            versions,
            took_seconds: bench.elapsed().as_secs_f64(),
            least: least(&speed),
            speed,
            larger: all(cases::larger()),
            once: all(cases::once()),
            browser: figures::browser_shares(samples, &cases::speed()),
            passes: cases::passes().iter().filter_map(overhead).collect(),
            programs: self.program_figures(),
            flows: self.flow_figures(samples),
            alternating: self.alternating,
            changes: self.changes,
            settings: self.settings,
            repeated: bench.repeated,
            failed: bench.failed,
            commands: bench.commands,
            samples: bench.samples,
        }
    }

    fn program_figures(&self) -> Vec<Figure> {
        let figure = |case: Case| {
            let times = self.program_times.iter().filter(|(other, _)| *other == case);
            let spread = Spread::of(times.map(|(_, each)| *each))?;
            Some(Figure { name: case.name, title: case.title, spread })
        };
        cases::programs().into_iter().filter_map(figure).collect()
    }

    fn flow_figures(&self, samples: &Samples) -> Option<Flows> {
        let [few, many] = cases::flows(self.settings.flows);
        let cost = |case: &Case| samples.of(&case.name, KERNEL, crate::bench::Metric::CoreTime);
        let spread = |case: &Case| Spread::of(cost(case).into_iter().map(|(_, cost)| cost));
        Some(Flows {
            few: few.connections,
            many: many.connections,
            cost_few: scaled(spread(&few)?, 1e6),
            cost_many: scaled(spread(&many)?, 1e6),
            ratio: Spread::of(crate::stats::pairs(&cost(&many), &cost(&few)))?,
            in_table: self.in_table,
            memory: self.memory,
        })
    }
}

fn lengths(bench: &Bench, case: &Case) -> Lengths {
    Lengths { warm_up: bench.settings.warm_up_of(case), measured: bench.settings.length_of(case) }
}

/// The least favourable ratios: on the bed with a core for each side, and on the others with and without the
/// client's part.
fn least(speed: &[CaseFigures]) -> Vec<Least> {
    let steered = || speed.iter().filter(|case| case.is_steered());
    let mixed = || speed.iter().filter(|case| !case.is_steered());
    let names = [NGINX, H2O, REFLECTOR];
    let steered = names.iter().filter_map(|name| {
        figures::least("bed with a core for each side", steered(), name, |server| server.kernel_is)
    });
    let totals = names.iter().filter_map(|name| {
        figures::least("mixed beds, totals of both sides", mixed(), name, |server| server.kernel_is)
    });
    let without = names.iter().filter_map(|name| {
        figures::least("mixed beds, less the client's part", mixed(), name, |server| {
            server.kernel_is_without_client
        })
    });
    steered.chain(totals).chain(without).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A run that measured nothing.
    pub(crate) fn empty() -> Results {
        let bench =
            Settings { rounds: 2, seconds: 1.0, warm_up: 0.2, quick: false, only: Vec::new() };
        Results {
            environment: Environment::default(),
            versions: vec!["nginx 1".into()],
            settings: FastPathSettings { bench, flows: 200_000, patience: 0.0 },
            took_seconds: 0.0,
            speed: Vec::new(),
            larger: Vec::new(),
            once: Vec::new(),
            least: Vec::new(),
            browser: Vec::new(),
            passes: Vec::new(),
            alternating: Vec::new(),
            programs: Vec::new(),
            flows: None,
            changes: None,
            repeated: Vec::new(),
            failed: Vec::new(),
            commands: BTreeMap::new(),
            samples: Samples::default(),
        }
    }
}
