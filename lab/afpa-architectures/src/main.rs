//! A reference server alone, as `afpa-lab serve` starts it.

use std::process::ExitCode;

use afpa_architectures::Options;
use clap::Parser;

/// One of the papers' server architectures, on our HTTP core and cache.
#[derive(Debug, Parser)]
#[command(name = "afpa-architectures", version)]
struct Line {
    #[command(flatten)]
    options: Options,
}

fn main() -> ExitCode {
    match afpa_architectures::serve(&Line::parse().options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("afpa-architectures: {error:#}");
            ExitCode::FAILURE
        }
    }
}
