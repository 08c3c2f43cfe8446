//! `afpa-lab http3`.

use std::process::ExitCode;

use afpa_lab::bench::Bench;
use afpa_lab::http3::{self, Options};
use anyhow::Result;
use clap::Args;

use super::bench::{BenchOptions, Defaults, needs_bed, progress, run};
use super::peers::{Cores, with_setup};

/// Measure AFPA's HTTP/3 beside its HTTP/2 over TLS, and beside nginx, HAProxy and Caddy: small and long answers, full
/// handshakes, HttpArena's profiles, memory of idle connections. Within ten minutes, as root.
///
/// nginx and HAProxy are those of Debian 13, whose root `afpa-lab debian13` makes.
/// Exit status: 0 measured; 1 a server gave a wrong answer or an error, or could not be started; 2 wrong usage.
#[derive(Debug, Args)]
pub(super) struct Http3 {
    /// Servers: afpa, nginx, haproxy, caddy [default: those that are here]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    servers: Vec<String>,
    /// Idle connections that are held while memory is looked at; 0: none [default: 10000; with --quick 1000]
    #[arg(long, value_name = "N")]
    idle: Option<u32>,
    /// All on one loopback, where each side's work is partly done on the other's core
    #[arg(long)]
    loopback: bool,
    #[command(flatten)]
    cores: Cores,
    #[command(flatten)]
    options: BenchOptions,
}

const USUAL: Defaults = Defaults { rounds: 7, seconds: 1.2, warm_up: 0.3 };
const QUICK: Defaults = Defaults { rounds: 2, seconds: 0.5, warm_up: 0.2 };

impl Http3 {
    pub(super) fn run(&self) -> Result<ExitCode> {
        if !self.loopback {
            needs_bed()?;
        }
        let quick = self.options.quick;
        let settings = self.options.settings(if quick { QUICK } else { USUAL })?;
        let idle = self.idle.unwrap_or(if quick { 1_000 } else { 10_000 });
        let options = Options { servers: self.servers.clone(), loopback: self.loopback, idle };
        afpa_netlab::use_all_open_files()?;
        run(|interrupted| {
            let bench = Bench::new(settings, interrupted, progress);
            with_setup("http3", &self.cores, &self.options, |setup| {
                println!("{}", http3::run(setup, bench, &options)?);
                Ok(())
            })
        })
    }
}
