//! Removal of namespaces, those of dead owners included.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io, process};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::tool;

const FOLDER: &str = "/run/netns";
const PREFIX: &str = "afpa-";
const KILL_PATIENCE: Duration = Duration::from_secs(10);

/// The result of [`reap`].
#[derive(Debug, Default)]
pub struct Reaped {
    /// Names of the namespaces that were removed.
    pub removed: Vec<String>,
    /// Names of those whose owner lives.
    pub kept: Vec<String>,
}

/// Removes the namespaces whose owner is dead, and kills the processes left in them.
///
/// # Errors
///
/// When a namespace of a dead owner cannot be removed.
pub fn reap() -> Result<Reaped> {
    let mut reaped = Reaped::default();
    for name in names()? {
        let Some(owner) = Owner::of(&name) else { continue };
        if owner.lives() {
            reaped.kept.push(name);
        } else {
            let removed = remove(&name);
            // Another run may have reaped it at the same moment.
            if path(&name).exists() {
                removed?;
            }
            reaped.removed.push(name);
        }
    }
    Ok(reaped)
}

/// A process; its start time distinguishes it from a later one with the same id.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pid: u32,
    start: u64,
}

impl Owner {
    pub(crate) fn this_process() -> Result<Self> {
        let pid = process::id();
        Ok(Self { pid, start: start_time(pid).context("cannot read /proc/self/stat")? })
    }

    /// How the names of its namespaces begin.
    pub(crate) fn prefix(&self) -> String {
        format!("{PREFIX}{}-{}", self.pid, self.start)
    }

    /// The owner in a namespace's name; `None` for a name that is not ours.
    fn of(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix(PREFIX)?.splitn(3, '-');
        let owner = Self { pid: parts.next()?.parse().ok()?, start: parts.next()?.parse().ok()? };
        parts.next().map(|_| owner)
    }

    fn lives(&self) -> bool {
        start_time(self.pid) == Some(self.start)
    }
}

/// Field 22 of /proc/PID/stat, counted after the command name, which may contain blanks.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(19)?.parse().ok()
}

pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

pub(crate) fn processes(name: &str) -> Result<Vec<i32>> {
    let pids = tool::ip(&format!("netns pids {name}"))?;
    Ok(pids.split_whitespace().filter_map(|pid| pid.parse().ok()).collect())
}

/// Kills what lives in it, then removes it: a namespace with a process would live on, nameless.
pub(crate) fn remove(name: &str) -> Result<()> {
    kill_processes(name)?;
    tool::ip(&format!("netns del {name}"))?;
    Ok(())
}

/// Kills what lives in it and waits, within reason, until all of it has ended.
pub(crate) fn kill_processes(name: &str) -> Result<()> {
    let deadline = Instant::now() + KILL_PATIENCE;
    loop {
        let is_late = Instant::now() > deadline; // asking may take all the time there is
        // If this process is itself in the namespace, the list has the `ip` that made it, too, which is gone by then.
        let alive = processes(name)?.into_iter().filter_map(Pid::from_raw);
        let killed = alive.filter(|pid| kill_process(*pid, Signal::KILL).is_ok()).count();
        if killed == 0 || is_late {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn names() -> Result<Vec<String>> {
    let entries = match fs::read_dir(FOLDER) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).context(FOLDER),
    };
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_their_owner() {
        let owner = Owner { pid: 12, start: 3456 };
        assert_eq!(Owner::of(&format!("{}-0-client", owner.prefix())), Some(owner));
        for foreign in ["afpa", "afpa-12-x-0-client", "afpa-12-3456", "docker-12-3456-0-client"] {
            assert_eq!(Owner::of(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_reused_process_id_is_another_owner() {
        let this = Owner::this_process().unwrap();
        assert!(this.lives());
        assert!(!Owner { start: this.start + 1, ..this }.lives());
    }
}
