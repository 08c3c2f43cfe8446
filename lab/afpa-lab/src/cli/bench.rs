//! The common options of the benches.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use afpa_lab::bench::Settings;
use anyhow::{Result, bail, ensure};
use clap::Args;

use super::interrupt;
use super::say::say;

/// Options of every bench.
#[derive(Debug, Args)]
pub(super) struct BenchOptions {
    /// Interleaved rounds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Length of a measurement
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Seconds of load before each measurement
    #[arg(long, value_name = "S")]
    warm_up: Option<f64>,
    /// Cases whose names contain one of these
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    only: Vec<String>,
    /// A look, not a result: shorter, fewer rounds
    #[arg(long)]
    pub(super) quick: bool,
    /// The afpa program [default: beside this one]
    #[arg(long, value_name = "FILE")]
    pub(super) afpa: Option<PathBuf>,
    /// Folder for the results [default: build/BENCH/TIME]
    #[arg(long, value_name = "FOLDER")]
    pub(super) out: Option<PathBuf>,
}

/// The values of options that the command line does not give.
#[derive(Debug, Clone, Copy)]
pub(super) struct Defaults {
    pub(super) rounds: u32,
    pub(super) seconds: f64,
    pub(super) warm_up: f64,
}

impl BenchOptions {
    /// The settings of the run.
    pub(super) fn settings(&self, defaults: Defaults) -> Result<Settings> {
        let settings = Settings {
            rounds: self.rounds.unwrap_or(defaults.rounds),
            seconds: self.seconds.unwrap_or(defaults.seconds),
            warm_up: self.warm_up.unwrap_or(defaults.warm_up),
            quick: self.quick,
            only: self.only.clone(),
        };
        if !(settings.seconds > 0.0 && settings.warm_up >= 0.0) {
            bail!("--seconds is above zero, and --warm-up is not below");
        }
        Ok(settings)
    }
}

/// A bench on the test bed needs root, and a core for each side.
pub(super) fn needs_bed() -> Result<()> {
    if let Some(reason) = afpa_netlab::missing_privilege() {
        bail!(reason);
    }
    let cores = std::thread::available_parallelism()?.get();
    ensure!(cores >= 2, "server and client need a core each");
    Ok(())
}

/// A line of progress.
pub(super) fn progress(line: &str) {
    say!("{line}");
}

/// Runs a bench. The status is 1 when it could not measure everything, and 130 after a signal.
pub(super) fn run(bench: impl FnOnce(&'static AtomicBool) -> Result<bool>) -> Result<ExitCode> {
    let interrupted = interrupt::watch()?;
    match bench(interrupted) {
        Ok(true) => Ok(ExitCode::SUCCESS),
        Ok(false) => Ok(ExitCode::FAILURE),
        Err(_) if interrupted.load(std::sync::atomic::Ordering::Relaxed) => {
            say!("afpa-lab: interrupted");
            Ok(ExitCode::from(interrupt::STATUS))
        }
        Err(error) => Err(error),
    }
}
