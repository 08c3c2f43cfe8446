//! `afpa-lab debian13`.

use afpa_lab::debian13::Root;
use anyhow::Result;
use clap::Args;

/// Make the root of Debian 13 whose servers take part beside this machine's own: once, some 500 MB.
#[derive(Debug, Args)]
pub(super) struct Debian13 {}

impl Debian13 {
    pub(super) fn run(&self) -> Result<()> {
        let root = Root::make()?;
        println!("{}", root.path("").display());
        Ok(())
    }
}
