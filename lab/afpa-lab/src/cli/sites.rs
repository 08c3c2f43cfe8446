//! `afpa-lab sites`.

use std::path::PathBuf;

use afpa_lab::sites::{self, Settings};
use afpa_lab::work::Work;
use anyhow::Result;
use clap::Args;

/// Measure what many sites cost AFPA and nginx: start, memory, threads, descriptors, reload, stop.
#[derive(Debug, Args)]
pub(super) struct Sites {
    /// Sites, each with two hosts
    #[arg(long, default_value_t = 10_000)]
    sites: usize,
    /// Certificates, each for one site; not more than sites
    #[arg(long, default_value_t = 0)]
    certificates: usize,
    /// One document root for all sites
    #[arg(long)]
    shared: bool,
    /// Fresh starts of each server
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// AFPA [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    afpa: Option<PathBuf>,
    /// nginx
    #[arg(long, value_name = "FILE", default_value = "/usr/sbin/nginx")]
    nginx: PathBuf,
}

impl Sites {
    pub(super) fn run(&self) -> Result<()> {
        let beside = || Ok::<_, anyhow::Error>(std::env::current_exe()?.with_file_name("afpa"));
        let settings = Settings {
            sites: self.sites.max(1),
            certificates: self.certificates.min(self.sites),
            shared: self.shared,
            rounds: self.rounds.max(1),
            afpa: self.afpa.clone().map_or_else(beside, Ok)?,
            nginx: self.nginx.clone(),
        };
        let work = Work::create()?;
        println!("{}", sites::run(&settings, work.path())?);
        Ok(())
    }
}
