//! `afpa-lab proxy`.

use std::process::ExitCode;

use afpa_lab::bench::Bench;
use afpa_lab::proxy::{self, Options, rush};
use afpa_lab::servers::Backend;
use anyhow::Result;
use clap::{Args, ValueEnum};

use super::bench::{BenchOptions, Defaults, needs_bed, progress, run};
use super::peers::{Cores, with_setup};

/// Measure AFPA's proxy beside HAProxy and nginx: each on one core, before three servers.
///
/// Exit status: 0 measured; 1 a proxy gave a wrong answer or an error, or could not be started; 2 wrong usage.
#[derive(Debug, Args)]
pub(super) struct Proxy {
    /// Proxies: afpa, haproxy, nginx, haproxy-debian13, nginx-debian13, afpa-readiness, afpa-completion, afpa-kernel [default: the first five, as far as they are here]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    proxies: Vec<String>,
    /// Where [default: cores as root, else loopback]
    #[arg(long)]
    bed: Option<Bed>,
    /// The servers behind the proxies [default: afpa on cores, nginx on loopback]
    #[arg(long)]
    servers: Option<Servers>,
    /// Only as fast as they answer, and not at given rates
    #[arg(long)]
    no_latency: bool,
    /// A rush of many clients over veth pairs instead: rate, connections made, ports that rest, p99, as root
    #[arg(long, conflicts_with_all = ["bed", "servers", "no_latency"])]
    over_network: bool,
    /// How many clients there are at a time in that rush
    #[arg(long, value_name = "N,...", value_delimiter = ',', requires = "over_network", default_values_t = rush::CLIENTS)]
    clients: Vec<u32>,
    #[command(flatten)]
    cores: Cores,
    #[command(flatten)]
    options: BenchOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Bed {
    /// Clients, proxy and servers in namespaces of their own, the proxy alone on its core
    Cores,
    /// All on one loopback, by wrk
    Loopback,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Servers {
    Afpa,
    Nginx,
}

const DEFAULTS: Defaults = Defaults { rounds: 5, seconds: 1.2, warm_up: 0.3 };
const QUICK: Defaults = Defaults { rounds: 2, seconds: 0.5, ..DEFAULTS };

/// wrk counts in seconds. `--seconds 60` for a figure to be quoted.
const RUSH: Defaults = Defaults { rounds: 1, seconds: 2.0, warm_up: 0.0 };

impl Proxy {
    pub(super) fn run(&self) -> Result<ExitCode> {
        if self.over_network {
            return self.rush();
        }
        let mut settings = self.options.settings(DEFAULTS)?;
        if settings.quick {
            settings.seconds = QUICK.seconds;
            settings.rounds = settings.rounds.min(QUICK.rounds);
        }
        run(|interrupted| {
            let bench = Bench::new(settings, interrupted, progress);
            with_setup("proxy", &self.cores, &self.options, |setup| {
                println!("{}", proxy::run(setup, bench, &self.proxy_options())?);
                Ok(())
            })
        })
    }

    fn rush(&self) -> Result<ExitCode> {
        needs_bed()?;
        let settings = self.options.settings(RUSH)?;
        run(|interrupted| {
            let bench = Bench::new(settings, interrupted, progress);
            with_setup("proxy", &self.cores, &self.options, |setup| {
                std::fs::create_dir_all(&setup.root)?;
                println!("{}", rush::run(setup, bench, &self.proxies, &self.clients)?);
                Ok(())
            })
        })
    }

    fn proxy_options(&self) -> Options {
        let bed = self.bed.unwrap_or_else(|| {
            if rustix::process::geteuid().is_root() { Bed::Cores } else { Bed::Loopback }
        });
        let servers = match (self.servers, bed) {
            (Some(Servers::Afpa), _) | (None, Bed::Cores) => Backend::Afpa,
            (Some(Servers::Nginx), _) | (None, Bed::Loopback) => Backend::Nginx,
        };
        Options {
            proxies: self.proxies.clone(),
            servers,
            loopback: bed == Bed::Loopback,
            latency: !self.no_latency,
        }
    }
}
