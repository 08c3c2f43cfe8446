//! `afpa-lab adaptive`.

use std::process::ExitCode;

use afpa_lab::adaptive::measure;
use afpa_lab::bench::new_folder;
use afpa_lab::environment::Environment;
use anyhow::Result;
use clap::Args;

use super::bench::{BenchOptions, Defaults, needs_bed, progress, run};
use super::papers::programs;
use super::say::say;

/// A load that changes: the strategy that AFPA chooses while it runs, beside each fixed one.
///
/// Each server lives through all phases of the load, one behind the other, in one life. Needs root, and two cores with
/// nothing else to do. Exit status: 0 measured, whatever the figures are; 1 something could not be measured; 130
/// interrupted.
#[derive(Debug, Args)]
pub(super) struct Adaptive {
    #[command(flatten)]
    options: BenchOptions,
}

const USUAL: Defaults = Defaults { rounds: 5, seconds: 3.0, warm_up: 0.0 };
const QUICK: Defaults = Defaults { rounds: 1, seconds: 1.0, warm_up: 0.0 };

impl Adaptive {
    pub(super) fn run(&self) -> Result<ExitCode> {
        needs_bed()?;
        let settings = self.options.settings(if self.options.quick { QUICK } else { USUAL })?;
        run(|interrupted| {
            let environment = Environment::look();
            let folder = new_folder("adaptive", self.options.out.as_deref(), &environment)?;
            let programs = programs(self.options.afpa.as_deref());
            let results = measure(settings, programs, environment, interrupted, progress)?;
            let report = results.report();
            report.write(&folder, &results, None)?;
            println!("{}", report.markdown());
            say!("written: {}/ (results.json, results.md)", folder.display());
            Ok(results.failed.is_empty())
        })
    }
}
