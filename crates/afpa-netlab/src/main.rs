//! `afpa-netlab`: the network test tools from a shell. `afpa-netlab help` tells the rest.

mod cli;

use anyhow::Result;
use clap::Parser;

fn main() -> Result<()> {
    if let Some(reason) = afpa_netlab::missing_privilege() {
        anyhow::bail!(reason);
    }
    cli::Cli::parse().run()
}
