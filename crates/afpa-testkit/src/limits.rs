//! Resource limits of the test process itself, which the servers it starts inherit.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit on open files to `wanted`, and the hard one too where that is allowed.
///
/// # Errors
/// Says what the limit is when it cannot be raised that far.
pub fn raise_open_files(wanted: u64) -> Result<(), String> {
    let now = getrlimit(Resource::Nofile);
    if now.current.is_none_or(|soft| soft >= wanted) {
        return Ok(());
    }
    let maximum = now.maximum.map(|hard| hard.max(wanted));
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).map_err(|error| {
        format!("RLIMIT_NOFILE is {:?} of {:?}, {wanted} wanted: {error}", now.current, now.maximum)
    })
}

/// Whether this process runs as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
