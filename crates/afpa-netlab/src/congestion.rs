//! The congestion control of a namespace.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};

use crate::tool;

const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
const LOCK: &str = "/run/afpa-netlab.lock";

/// Makes `algorithm` the default of every socket opened from now on in the namespace where `sysctl` runs.
///
/// A namespace may only choose what the host allows to everyone. Where the host does not, the
/// list is extended for the moment of the choice and put back; a lock keeps two runs apart.
///
/// # Errors
///
/// When the kernel does not have the algorithm.
pub(crate) fn choose(mut sysctl: Command, algorithm: &str) -> Result<()> {
    let lock = File::create(LOCK).context(LOCK)?;
    flock(&lock, FlockOperation::LockExclusive).context(LOCK)?;
    let allowed = fs::read_to_string(ALLOWED).context(ALLOWED)?;
    let extend = !allowed.split_whitespace().any(|word| word == algorithm);
    if extend {
        load_module(algorithm);
        fs::write(ALLOWED, format!("{} {algorithm}", allowed.trim()))
            .with_context(|| format!("the kernel has no congestion control {algorithm}"))?;
    }
    let assignment = format!("net.ipv4.tcp_congestion_control={algorithm}");
    let chosen = tool::finish(sysctl.args(["-qw", &assignment]));
    if extend {
        fs::write(ALLOWED, allowed.trim()).context(ALLOWED)?;
    }
    chosen.map(drop)
}

/// An algorithm may be a module; where it is built in, modprobe has nothing to do.
fn load_module(algorithm: &str) {
    if Path::new("/proc/modules").exists() {
        let _ = tool::run("modprobe", &[format!("tcp_{algorithm}")]);
    }
}
