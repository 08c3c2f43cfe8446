//! `afpa-netlab clean`.

use anyhow::Result;
use clap::Args;

/// Remove the namespaces of dead owners, and the processes left in them.
#[derive(Debug, Args)]
pub(super) struct Clean {}

impl Clean {
    pub(super) fn run(self) -> Result<()> {
        let reaped = afpa_netlab::reap()?;
        for name in &reaped.removed {
            println!("removed {name}");
        }
        for name in &reaped.kept {
            println!("kept {name}: its owner lives");
        }
        Ok(())
    }
}
