//! `afpa-lab dns`.

use std::process::ExitCode;

use afpa_lab::bench::Bench;
use afpa_lab::dns::{self, Options};
use anyhow::Result;
use clap::Args;

use super::bench::{BenchOptions, Defaults, needs_bed, progress, run};
use super::peers::{Cores, with_setup};

/// Measure `afpa attach --dns` before NSD, Knot and BIND, beside each of them alone, Knot by AF_XDP and AFPA's own zones: few and
/// many names, signed answers, names that are not there, misses, cookies. Within ten minutes, as root.
///
/// Exit status: 0 measured; 1 a server gave a wrong answer, or could not be started; 2 wrong usage.
#[derive(Debug, Args)]
pub(super) struct Dns {
    /// Servers: afpa-nsd, nsd, afpa-knot, knot, knot-xdp, afpa-bind, bind, afpa-zones [default: those that are here]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    servers: Vec<String>,
    /// Queries at a time
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=512))]
    outstanding: u32,
    #[command(flatten)]
    cores: Cores,
    #[command(flatten)]
    options: BenchOptions,
}

const USUAL: Defaults = Defaults { rounds: 5, seconds: 1.0, warm_up: 0.3 };
const QUICK: Defaults = Defaults { rounds: 2, seconds: 0.5, warm_up: 0.2 };

impl Dns {
    pub(super) fn run(&self) -> Result<ExitCode> {
        needs_bed()?;
        let settings = self.options.settings(if self.options.quick { QUICK } else { USUAL })?;
        let options = Options { servers: self.servers.clone(), outstanding: self.outstanding };
        run(|interrupted| {
            let bench = Bench::new(settings, interrupted, progress);
            with_setup("dns", &self.cores, &self.options, |setup| {
                println!("{}", dns::run(setup, bench, &options)?);
                Ok(())
            })
        })
    }
}
