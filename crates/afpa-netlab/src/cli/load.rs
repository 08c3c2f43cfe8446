//! `afpa-netlab load`, and the words that describe a load.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use afpa_netlab::CoreTimes;
use afpa_netlab::load::{Generator, LoadOptions, Target, browser_headers, visitors};
use anyhow::{Result, ensure};
use clap::Args;

use super::units;

/// Saturate an HTTP/1.1 server by a closed loop in TC. Runs in the namespace it is started in,
/// the client's; prints a line for people on stderr and JSON on stdout. Fails when a response
/// was wrong.
#[derive(Debug, Args)]
pub(super) struct Load {
    /// The server.
    #[arg(long)]
    to: SocketAddr,
    /// Interface that leads to it.
    #[arg(long, default_value = afpa_netlab::Bed::DEVICE)]
    interface: String,
    /// First client address.
    #[arg(long)]
    source: Option<IpAddr>,
    /// Consecutive client addresses to use from the first one on.
    #[arg(long, default_value_t = 1, requires = "source")]
    sources: u32,
    /// Length of the measurement.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Load before the measurement, in seconds.
    #[arg(long, default_value_t = 0.5)]
    warm_up: f64,
    /// Tell what this core did meanwhile, in "cores"; may be repeated.
    #[arg(long, value_name = "CORE")]
    watch: Vec<usize>,
    #[command(flatten)]
    load: LoadWords,
}

impl Load {
    pub(super) fn run(self) -> Result<()> {
        let options = LoadOptions {
            interface: self.interface,
            first_source: self.source,
            sources: self.sources,
            ..self.load.options(self.to)?
        };
        let mut generator = Generator::start(&options)?;
        generator.measure(Duration::try_from_secs_f64(self.warm_up)?)?;
        let look = || -> Result<Vec<CoreTimes>> {
            self.watch.iter().map(|core| CoreTimes::of_core(*core)).collect()
        };
        let duration = Duration::try_from_secs_f64(self.seconds)?;
        let (interval, [before, after]) = generator.measure_with(duration, look)?;
        generator.finish()?;
        eprintln!("{}", interval.line());
        let mut told = serde_json::to_value(&interval)?;
        let cores: Vec<CoreTimes> = after.iter().zip(&before).map(|(a, b)| *a - *b).collect();
        told["cores"] = serde_json::to_value(cores)?;
        println!("{told}");
        ensure!(interval.errors == 0, "{} errors", interval.errors);
        Ok(())
    }
}

/// The requests of a load, and the connections that carry them.
#[derive(Debug, Clone, Args)]
pub(super) struct LoadWords {
    /// Connections at once.
    #[arg(long, default_value_t = 64)]
    connections: u32,
    /// One request a connection; asks with "Connection: close".
    #[arg(long, conflicts_with = "active")]
    pub(super) once: bool,
    /// Requests outstanding at any time; all connections take their turns. 0: one on each
    /// connection, of more than 512 connections 256; with --late-acks 512.
    #[arg(long, default_value_t = 0)]
    active: u32,
    /// With --active: acknowledge a response by the next request on its connection, not at once.
    #[arg(long)]
    late_acks: bool,
    /// Let responses have an Age of more or fewer digits than the first: a cache answers.
    #[arg(long)]
    ages: bool,
    /// Target of requests, as PATH or WEIGHT:PATH; may be repeated.
    #[arg(long = "path", default_value = "/")]
    paths: Vec<Target>,
    /// Header field as "Name: value"; may be repeated.
    #[arg(long = "header", value_parser = units::header)]
    headers: Vec<(String, String)>,
    /// Add a kilobyte of header fields as a browser sends them.
    #[arg(long)]
    browser: bool,
    /// Ask as so many visitors, by turns: each has a session cookie of its own.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    visitors: u32,
    /// GET or HEAD.
    #[arg(long, default_value = "GET")]
    method: String,
    /// The status that every response must have.
    #[arg(long, default_value_t = 200)]
    status: u16,
}

impl LoadWords {
    pub(super) fn options(&self, to: SocketAddr) -> Result<LoadOptions> {
        ensure!(matches!(self.method.as_str(), "GET" | "HEAD"), "the method is GET or HEAD");
        let mut headers = self.headers.clone();
        if self.browser {
            headers.extend(browser_headers());
        }
        if self.once {
            headers.push(("Connection".into(), "close".into()));
        }
        let target = |target: &Target| Target {
            headers: headers.clone(),
            method: self.method.clone(),
            status: self.status,
            ..target.clone()
        };
        let targets = self.paths.iter().map(target);
        let targets = match self.visitors {
            1 => targets.collect(),
            count => targets.flat_map(|target| visitors(&target, count)).collect(),
        };
        Ok(LoadOptions {
            connections: self.connections,
            once: self.once,
            active: self.active,
            late_acks: self.late_acks,
            ages: self.ages,
            ..LoadOptions::new(to, targets)
        })
    }
}
