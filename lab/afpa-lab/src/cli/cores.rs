//! `afpa-lab cores`.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use afpa_lab::cores::{self, Candidate, Settings};
use afpa_lab::work::Work;
use anyhow::{Result, bail};
use clap::Args;

/// Measure how rates grow with the cores of the server: user mode, the kernel, nginx if it is here, and a pool of threads.
///
/// Each core of the server has a client of its own behind a veth pair, on another core, that asks from softirq. Progress
/// goes to stderr, the table to stdout.
#[derive(Debug, Args)]
pub(super) struct Cores {
    /// Cores of the server, one measurement for each [default: 1,2,4,8, as far as this machine has them]
    #[arg(long, value_delimiter = ',', value_name = "K,...")]
    cores: Vec<usize>,
    /// Servers: user, kernel, nginx, pool (threads that share a cache), pool-one-lock (its cache with one lock), before
    /// (user mode of --before), kernel-before [default: all that are here]
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    servers: Vec<String>,
    /// Rounds, in each of which every server is measured with each number of cores
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of a measurement
    #[arg(long, default_value_t = 1.5)]
    seconds: f64,
    /// Connections of each client
    #[arg(long, default_value_t = 64)]
    connections: u32,
    /// Bytes of the file that is asked for
    #[arg(long, default_value_t = 512)]
    size: usize,
    /// One request a connection
    #[arg(long)]
    once: bool,
    /// Each client shares the core of the server that it asks: for machines of few cores
    #[arg(long)]
    together: bool,
    /// AFPA [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    afpa: Option<PathBuf>,
    /// Another AFPA to compare it with
    #[arg(long, value_name = "FILE")]
    before: Option<PathBuf>,
    /// nginx
    #[arg(long, value_name = "FILE", default_value = "/usr/sbin/nginx")]
    nginx: PathBuf,
    /// Write the results as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Cores {
    pub(super) fn run(&self) -> Result<()> {
        if let Some(reason) = afpa_netlab::missing_privilege() {
            bail!("it needs namespaces: {reason}");
        }
        let lab = std::env::current_exe()?;
        let afpa = self.afpa.clone().unwrap_or_else(|| lab.with_file_name("afpa"));
        let here = Candidate::all(&afpa, self.before.as_deref(), &self.nginx, &lab);
        let is_chosen = |candidate: &Candidate| {
            self.servers.is_empty() || self.servers.contains(&candidate.name)
        };
        let lanes = cores::lanes(self.together)?;
        let counts = if self.cores.is_empty() { &[1, 2, 4, 8][..] } else { &self.cores };
        let settings = Settings {
            counts: counts.iter().copied().filter(|&count| count <= lanes.len()).collect(),
            candidates: here.into_iter().filter(is_chosen).collect(),
            lanes,
            rounds: self.rounds.max(1),
            measured: Duration::from_secs_f64(self.seconds),
            connections: self.connections.max(1),
            size: self.size,
            once: self.once,
        };
        let work = Work::create()?;
        let results = cores::measure(&settings, work.path(), |line| {
            // A terminal that is gone is no reason to stop measuring.
            let _ = writeln!(std::io::stderr(), "{line}");
        })?;
        println!("{}", results.table());
        results.findings().iter().for_each(|line| println!("{line}"));
        if let Some(file) = &self.json {
            std::fs::write(file, serde_json::to_string_pretty(&results)?)?;
        }
        Ok(())
    }
}
