//! `afpa-lab fast-path`.

use std::process::ExitCode;

use afpa_lab::bench::new_folder;
use afpa_lab::environment::Environment;
use afpa_lab::fast_path::{FastPathSettings, measure};
use anyhow::Result;
use clap::Args;

use super::bench::{BenchOptions, Defaults, needs_bed, progress, run};
use super::papers::programs;
use super::say::say;

/// Measure the fast path: the gain of answers from the kernel, and their cost.
///
/// Progress goes to stderr, Markdown to stdout, and results.json, results.md and results.svg to
/// build/fast-path/TIME. Needs root, and two cores with nothing else to do. Exit status: 0 measured, whatever the
/// figures are; 1 something could not be measured; 130 interrupted.
#[derive(Debug, Args)]
pub(super) struct FastPath {
    #[command(flatten)]
    options: BenchOptions,
    /// Established connections of the largest case [default: 200000; with --quick 40000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(65..=1_000_000))]
    flows: Option<u32>,
    /// Seconds that a measurement may wait until both cores have nothing else to do
    #[arg(long, value_name = "S", default_value_t = 0.0)]
    patience: f64,
}

const USUAL: Defaults = Defaults { rounds: 5, seconds: 0.5, warm_up: 0.2 };
/// Some two minutes.
const QUICK: Defaults = Defaults { rounds: 2, seconds: 0.4, warm_up: 0.2 };

impl FastPath {
    pub(super) fn run(&self) -> Result<ExitCode> {
        needs_bed()?;
        let quick = self.options.quick;
        let settings = FastPathSettings {
            bench: self.options.settings(if quick { QUICK } else { USUAL })?,
            flows: self.flows.unwrap_or(if quick { 40_000 } else { 200_000 }),
            patience: self.patience,
        };
        run(|interrupted| {
            let environment = Environment::look();
            let folder = new_folder("fast-path", self.options.out.as_deref(), &environment)?;
            let programs = programs(self.options.afpa.as_deref());
            let results = measure(settings, programs, environment, interrupted, progress)?;
            let report = results.report();
            report.write(&folder, &results, results.figure().as_deref())?;
            println!("{}", report.markdown());
            say!("written: {}/ (results.json, results.md, results.svg)", folder.display());
            Ok(results.failed.is_empty())
        })
    }
}
