//! The command line: one type for each command, each with its `run`.

mod bed;
mod clean;
mod inject;
mod load;
mod reflect;
mod run;
mod units;

use std::time::Duration;

use anyhow::Result;
use clap::{Parser, Subcommand};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Network test tools: namespaces, packet injector, closed-loop load, test bed.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Bed(bed::Bed),
    Run(run::Run),
    Load(load::Load),
    Inject(inject::Inject),
    Reflect(reflect::Reflect),
    Clean(clean::Clean),
}

impl Cli {
    pub(crate) fn run(self) -> Result<()> {
        match self.command {
            Command::Bed(bed) => bed.run(),
            Command::Run(run) => run.run(),
            Command::Load(load) => load.run(),
            Command::Inject(inject) => inject.run(),
            Command::Reflect(reflect) => reflect.run(),
            Command::Clean(clean) => clean.run(),
        }
    }
}

/// SIGINT and SIGTERM as something to wait for: destructors run before the program ends.
struct Ending(SignalFd);

impl Ending {
    /// To be made before any thread is, so that none of them is ended by the signal.
    fn watch() -> Result<Self> {
        let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
        signals.thread_block()?;
        Ok(Self(SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?))
    }

    /// Waits for one of them, or until `over` says so.
    fn wait(&self, mut over: impl FnMut() -> bool) -> Result<()> {
        while self.0.read_signal()?.is_none() && !over() {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}
