//! `afpa-lab`: the papers' experiments by one command. `afpa-lab help` tells the rest.

mod cli;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match cli::Cli::parse().run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("afpa-lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}
