//! Limits of this process.

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Allows as many open files as the hard limit does.
pub(crate) fn use_all_open_files() -> Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let limit = Rlimit { current: maximum, maximum };
    setrlimit(Resource::Nofile, limit).context("cannot use the hard limit of open files")
}
