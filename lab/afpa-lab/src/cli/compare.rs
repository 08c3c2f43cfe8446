//! `afpa-lab compare`.

use std::fs;
use std::process::ExitCode;

use afpa_lab::bench::Bench;
use afpa_lab::user_mode;
use anyhow::Result;
use clap::Args;

use super::bench::{BenchOptions, Defaults, progress, run};
use super::peers::{Cores, with_setup};

/// Measure AFPA beside nginx and h2o: each on one core, by wrk over loopback.
///
/// Exit status: 0 measured; 1 a server gave a wrong answer or an error, or could not be started; 2 wrong usage.
#[derive(Debug, Args)]
pub(super) struct Compare {
    /// Servers: afpa, afpa-kernel, nginx, h2o [default: those that are here]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    servers: Vec<String>,
    /// JSON instead of the tables on stdout
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cores: Cores,
    #[command(flatten)]
    options: BenchOptions,
}

/// wrk counts in whole seconds.
const DEFAULTS: Defaults = Defaults { rounds: 5, seconds: 5.0, warm_up: 1.0 };
const QUICK_SECONDS: f64 = 1.0;

impl Compare {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let mut settings = self.options.settings(DEFAULTS)?;
        if settings.quick {
            settings.seconds = QUICK_SECONDS;
        }
        run(|interrupted| {
            let bench = Bench::new(settings, interrupted, progress);
            with_setup("compare", &self.cores, &self.options, |setup| {
                let text = user_mode::run(setup, bench, &self.servers)?;
                match self.json {
                    true => print!("{}", fs::read_to_string(setup.folder.join("results.json"))?),
                    false => println!("{text}"),
                }
                Ok(())
            })
        })
    }
}
