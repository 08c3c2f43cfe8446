//! `afpa-lab adaptive`: a load that changes while it is measured (JAWS: no single strategy is best, so a server should
//! choose while it runs).
//!
//! A server is started once a round, and lives through all phases of the load, one behind the other. AFPA chooses its
//! I/O strategy itself, or is held to one. The result is the core's time for a request, in each phase and over the
//! whole; the time in which a server finds out that the load has changed is part of it.

mod contestants;
mod figures;
mod phases;
mod report;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::bench::{Bench, Case, Report, Samples, Settings};
use crate::environment::Environment;
use crate::fast_path::make_root;
use crate::fast_path::turn::{Lengths, OnBed, Turns, ask, sample};
use crate::servers::{self, Programs};
use crate::stats::rotated;
use crate::work::Work;

pub(crate) use contestants::{CHOOSES, FIXED};
pub use figures::{PhaseFigures, Whole};

/// The results of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Results {
    /// The machine and the software.
    pub environment: Environment,
    /// Versions, as the servers print them.
    pub versions: Vec<String>,
    /// The options of the command line.
    pub settings: Settings,
    /// Length of the run.
    pub took_seconds: f64,
    /// Phase by phase.
    pub phases: Vec<PhaseFigures>,
    /// Over all of them.
    pub whole: Vec<Whole>,
    /// Measurements that failed for good, and why.
    pub failed: Vec<String>,
    /// How servers were started.
    pub commands: BTreeMap<String, String>,
    /// Every measurement.
    pub samples: Samples,
}

/// Measures, and reports the results.
///
/// # Errors
///
/// When the program is missing, or a signal ends the run.
pub fn measure(
    settings: Settings,
    programs: Programs,
    environment: Environment,
    interrupted: &'static AtomicBool,
    say: fn(&str),
) -> Result<Results> {
    let work = Work::create()?;
    let turns = Turns { programs: programs.clone(), work: work.path(), patience: Duration::ZERO };
    make_root(work.path(), &turns.root())?;
    let version = servers::find(CHOOSES, &programs).context("a server")?.version();
    let phases = settings.chosen(phases::phases());
    let mut bench = Bench::new(settings, interrupted, say);
    let servers: Vec<&str> = std::iter::once(CHOOSES).chain(FIXED).collect();
    for round in 1..=bench.settings.rounds {
        for server in rotated(&servers, round as usize - 1) {
            bench.part(|bench| live(bench, &turns, server, &phases, round))?;
        }
    }
    let names = || phases.iter().map(|phase| phase.name.as_str());
    Ok(Results {
        environment,
        versions: vec![version],
        took_seconds: bench.elapsed().as_secs_f64(),
        phases: phases.iter().filter_map(|phase| figures::phase(&bench.samples, phase)).collect(),
        whole: FIXED
            .iter()
            .filter_map(|fixed| figures::whole(&bench.samples, fixed, names()))
            .collect(),
        settings: bench.settings,
        failed: bench.failed,
        commands: bench.commands,
        samples: bench.samples,
    })
}

/// One life of a server.
fn live(
    bench: &mut Bench,
    turns: &Turns<'_>,
    server: &str,
    phases: &[Case],
    round: u32,
) -> Result<()> {
    let first = phases.first().context("a phase")?;
    let load = first.tc().context("the load is made in TC")?;
    turns.on_bed(first, load, server, |on_bed| {
        bench.commands.insert(server.to_owned(), on_bed.running.command());
        for phase in phases {
            bench.check()?;
            let sample = go_through(bench, on_bed, server, phase)?;
            let sample = crate::bench::Sample { round, ..sample };
            bench.say(&format!("round {round}  {:<44} {}", phase.title, sample.line()));
            bench.samples.0.push(sample);
        }
        Ok(())
    })
}

fn go_through(
    bench: &Bench,
    on_bed: &OnBed<'_>,
    server: &str,
    phase: &Case,
) -> Result<crate::bench::Sample> {
    let load = phase.tc().context("the load is made in TC")?;
    let lengths = Lengths {
        warm_up: bench.settings.warm_up_of(phase),
        measured: bench.settings.length_of(phase),
    };
    let (interval, used) = ask(on_bed, phase, load, lengths)?;
    let sample = sample(phase, server, load.bed, &interval, &used);
    match &sample.errors {
        Some(errors) => anyhow::bail!("{}, {server}: {errors}", phase.title),
        None => Ok(sample),
    }
}

impl Results {
    /// Tables and ratios.
    pub fn report(&self) -> Report {
        report::report(self)
    }
}
