//! `afpa-netlab`: the network test tools from a shell. `afpa-netlab help` tells the rest.

mod cli;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Its causes on one line, and last: a backtrace after it would be all that is read.
            eprintln!("afpa-netlab: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    if let Some(reason) = afpa_netlab::missing_privilege() {
        anyhow::bail!(reason);
    }
    cli::Cli::parse().run()
}
