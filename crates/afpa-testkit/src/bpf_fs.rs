//! A BPF file system of a test's own: machines need not have one, and nothing is left on theirs.

use std::process::Command;

use nix::sched::{CloneFlags, unshare};

/// Moves the calling thread, for good, into a mount namespace with an empty BPF file system at
/// `/sys/fs/bpf`; processes and threads that it starts are in it too. Call it before the test makes network
/// namespaces, which are mounts as well.
///
/// # Errors
/// With the message of the kernel or of `mount`; the thread is then in its old namespace, or in an
/// equal one.
pub fn private() -> Result<(), String> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(|error| format!("no mount namespace: {error}"))?;
    mount(&["--make-rprivate", "/"])?;
    mount(&["-t", "bpf", "-o", "mode=0755", "none", "/sys/fs/bpf"])
}

fn mount(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("mount").args(arguments).output().map_err(|e| e.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
