//! The options of a reference server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};

use crate::{ALL, Architecture, Concurrency, Io};

/// The options of a reference server.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Directory to serve
    #[arg(value_name = "DIR")]
    pub root: PathBuf,
    /// One of the papers' architectures
    #[arg(short, long, value_name = "NAME", default_value = "sped", value_parser = names())]
    pub architecture: String,
    /// Another concurrency strategy than the architecture's
    #[arg(long, value_name = "STRATEGY")]
    pub concurrency: Option<Concurrency>,
    /// Another I/O strategy than the architecture's
    #[arg(long, value_name = "STRATEGY")]
    pub io: Option<Io>,
    /// Where to listen
    #[arg(short, long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Processes or threads, where they are started beforehand; the most threads, where they are not
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pool: u32,
    /// Helper threads for the disk, where there are some
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub helpers: u32,
    /// Most connections that an event loop keeps open; more are closed at once
    #[arg(long, value_name = "N", default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub connections: u32,
    /// Protocol optimisations to do without
    #[arg(long, value_name = "WHICH,...", value_delimiter = ',')]
    pub without: Vec<Without>,
    /// Lock the whole cache for each look at it, as JAWS did first; without it only the entry is locked
    #[arg(long)]
    pub one_lock: bool,
    /// Close each connection after its first answer
    #[arg(long)]
    pub close: bool,
    /// Largest file that is pinned, in bytes; a larger one is sent from the page cache
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    pub pin_threshold: usize,
    /// Memory for pinned objects, in bytes; with processes, for all of them together
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30)]
    pub pinned_limit: usize,
    /// Age in seconds after which an object is compared with its file
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub recheck: u64,
}

/// JAWS's protocol optimisations, which are on unless named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Without {
    /// The head of a response is made once for each object; without it, for each response.
    CachedHeaders,
    /// The date is formatted once a second; without it, for each response.
    LazyDate,
    /// Head and content leave with one system call; without it, with two.
    GatherWrite,
}

impl Options {
    /// The architecture with the strategies that replace its own.
    ///
    /// # Errors
    /// When the combination makes no server.
    pub fn architecture(&self) -> Result<Architecture> {
        let named = Architecture::named(&self.architecture).copied();
        let named =
            named.ok_or_else(|| anyhow::anyhow!("no architecture {}", self.architecture))?;
        let chosen = Architecture {
            concurrency: self.concurrency.unwrap_or(named.concurrency),
            io: self.io.unwrap_or(named.io),
            closes: named.closes || self.close,
            ..named
        };
        ensure!(
            chosen.concurrency != Concurrency::PerRequest || chosen.io == Io::Sync,
            "a thread for each connection waits for that one alone: --io sync"
        );
        Ok(Architecture { helped: chosen.helped && chosen.io == Io::Reactive, ..chosen })
    }

    /// Whether an optimisation is on.
    pub fn has(&self, optimisation: Without) -> bool {
        !self.without.contains(&optimisation)
    }

    /// How long an object is fresh.
    pub fn max_age(&self) -> Duration {
        Duration::from_secs(self.recheck)
    }
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(ALL.iter().map(|architecture| architecture.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn options(line: &str) -> Options {
        let words = ["serve", "/srv"].into_iter().chain(line.split_whitespace());
        Line::try_parse_from(words).expect("a good line").options
    }

    #[test]
    fn strategies_replace_those_of_the_architecture() {
        let nginx_like = options("--architecture sped --concurrency processes").architecture();
        let nginx_like = nginx_like.expect("a server");
        assert_eq!((nginx_like.concurrency, nginx_like.io), (Concurrency::Processes, Io::Reactive));
        let howl = options("-a howl").architecture().expect("a server");
        assert!(howl.closes && !options("-a mp").architecture().expect("a server").closes);
    }

    #[test]
    fn a_thread_for_each_connection_cannot_wait_for_many() {
        assert!(options("-a thread-per-request --io async").architecture().is_err());
        assert!(options("-a amped --concurrency per-request").architecture().is_err());
    }

    #[test]
    fn optimisations_are_on_unless_named() {
        let options = options("--without lazy-date,gather-write");
        assert!(options.has(Without::CachedHeaders));
        assert!(!options.has(Without::LazyDate) && !options.has(Without::GatherWrite));
    }
}
