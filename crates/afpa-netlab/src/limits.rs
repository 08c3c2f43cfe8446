//! Limits of this process.

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The most open files that the kernel allows a process by default (`fs.nr_open`).
const MOST_OPEN_FILES: u64 = 1 << 20;

/// Allows this process, and the servers that it starts, as many open files as it may: root may move the hard limit.
///
/// # Errors
///
/// When the kernel refuses even the hard limit.
pub fn use_all_open_files() -> Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let all = maximum.map(|maximum| maximum.max(MOST_OPEN_FILES));
    setrlimit(Resource::Nofile, Rlimit { current: all, maximum: all })
        .or_else(|_| setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }))
        .context("cannot use the hard limit of open files")
}
