//! The command line: one type for each command, each with its `run`.

mod bed;
mod clean;
mod ending;
mod inject;
mod load;
mod reflect;
mod run;
mod units;

use anyhow::Result;
use clap::{Parser, Subcommand};

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
