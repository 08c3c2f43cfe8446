//! The command line: one type for each command, each with its `run`.

mod adaptive;
mod ask;
mod bench;
mod compare;
mod cores;
mod debian13;
mod dns;
mod fast_path;
mod hold;
mod http3;
mod interrupt;
mod list;
mod papers;
mod peers;
mod progress;
mod proxy;
mod say;
mod sites;

use std::path::PathBuf;
use std::process::ExitCode;

use afpa_lab::results::Results;
use afpa_lab::{diff, report, work};
use anyhow::Result;
use clap::{Args, Parser, Subcommand};

/// AFPA and its peers on the papers' workloads, side by side.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Ask(ask::Ask),
    Papers(Box<papers::Papers>),
    FastPath(fast_path::FastPath),
    Adaptive(adaptive::Adaptive),
    Hold(hold::Hold),
    Compare(compare::Compare),
    Cores(cores::Cores),
    Proxy(proxy::Proxy),
    Http3(http3::Http3),
    Dns(dns::Dns),
    Sites(sites::Sites),
    Debian13(debian13::Debian13),
    List(list::List),
    Report(Report),
    Diff(Diff),
    Serve(Box<Serve>),
    Clean(Clean),
}

impl Cli {
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self.command {
            Command::Papers(papers) => return papers.run(),
            Command::FastPath(bench) => return bench.run(),
            Command::Adaptive(bench) => return bench.run(),
            Command::Compare(compare) => return compare.run(),
            Command::Proxy(proxy) => return proxy.run(),
            Command::Http3(bench) => return bench.run(),
            Command::Dns(bench) => return bench.run(),
            Command::Sites(sites) => sites.run()?,
            Command::Debian13(debian13) => debian13.run()?,
            Command::Cores(cores) => cores.run()?,
            Command::Ask(ask) => ask.run()?,
            Command::Hold(hold) => hold.run()?,
            Command::List(list) => list.run(),
            Command::Report(report) => report.run()?,
            Command::Diff(diff) => print!("{}", diff::folders(&diff.before, &diff.after)?),
            Command::Serve(serve) => afpa_architectures::serve(&serve.options)?,
            Command::Clean(clean) => clean.run()?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Make the tables, figures and the page of a folder of results again.
#[derive(Debug, Args)]
struct Report {
    /// Folder with a results.json
    folder: PathBuf,
}

impl Report {
    fn run(&self) -> Result<()> {
        let results = Results::read(&self.folder)?;
        report::write(&results, &self.folder)?;
        println!("{}", report::terminal(&results));
        report::last_lines(&results).iter().for_each(|line| println!("{line}"));
        Ok(())
    }
}

/// Compare two folders of results: first machine and software, then figure by figure.
#[derive(Debug, Args)]
struct Diff {
    /// The earlier one
    before: PathBuf,
    /// The later one
    after: PathBuf,
}

/// Run one of the papers' architectures as a server, in the foreground.
#[derive(Debug, Args)]
struct Serve {
    #[command(flatten)]
    options: afpa_architectures::Options,
}

/// Remove the beds and folders of runs that were killed.
#[derive(Debug, Args)]
struct Clean {}

impl Clean {
    fn run(&self) -> Result<()> {
        let reaped = afpa_netlab::reap()?;
        reaped.removed.iter().for_each(|name| println!("removed namespace {name}"));
        reaped.kept.iter().for_each(|name| println!("kept namespace {name}: its owner lives"));
        work::reap().iter().for_each(|path| println!("removed {}", path.display()));
        Ok(())
    }
}
