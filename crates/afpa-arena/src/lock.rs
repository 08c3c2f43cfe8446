//! Locking the arena in memory, as far as this process may.

use std::fmt;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::mapping::Mapping;

/// Whether the pages of an arena stay in memory once they are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockReport {
    /// They stay: a pinned object is never paged out.
    Locked,
    /// They may be paged out under memory pressure; everything works, a little less predictably.
    NotLocked {
        /// Why the memory could not be locked.
        reason: String,
        /// The remedy for the administrator.
        remedy: String,
    },
}

impl fmt::Display for LockReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockReport::Locked => f.write_str("locked in memory"),
            LockReport::NotLocked { reason, remedy } => {
                write!(f, "not locked in memory: {reason} ({remedy})")
            }
        }
    }
}

/// Locks the mapping, if need be after raising the soft limit for it.
pub(crate) fn lock(mapping: &Mapping) -> LockReport {
    let mut outcome = mapping.lock_on_fault();
    if outcome.is_err() && raise_soft_limit(mapping.len() as u64) {
        outcome = mapping.lock_on_fault();
    }
    match outcome {
        Ok(()) => LockReport::Locked,
        Err(errno) => refused(errno, mapping.len()),
    }
}

/// Raises the soft limit on locked memory by `more` bytes, as far as the hard limit lets it.
fn raise_soft_limit(more: u64) -> bool {
    let Rlimit { current, maximum } = getrlimit(Resource::Memlock);
    let Some(soft) = current else { return false };
    let wanted = soft.saturating_add(more);
    let raised = maximum.map_or(wanted, |hard| wanted.min(hard));
    raised > soft && setrlimit(Resource::Memlock, Rlimit { current: Some(raised), maximum }).is_ok()
}

fn refused(errno: Errno, len: usize) -> LockReport {
    let kib = len.div_ceil(1024);
    let (reason, remedy) = match errno {
        Errno::NOMEM | Errno::PERM | Errno::AGAIN => (
            format!("the limit on locked memory is {}, the arena needs {kib} KiB", soft_limit()),
            "grant CAP_IPC_LOCK, raise it with `ulimit -l` or LimitMEMLOCK=, or pin less"
                .to_owned(),
        ),
        Errno::NOSYS => (
            "this kernel has no mlock2".to_owned(),
            "use Linux 4.4 or later, and allow mlock2 in the seccomp filter".to_owned(),
        ),
        other => (format!("mlock2: {other}"), "see mlock2(2)".to_owned()),
    };
    LockReport::NotLocked { reason, remedy }
}

fn soft_limit() -> String {
    match getrlimit(Resource::Memlock).current {
        Some(bytes) => format!("{} KiB", bytes / 1024),
        None => "unlimited".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_reason_and_remedy() {
        let LockReport::NotLocked { reason, remedy } = refused(Errno::NOMEM, 1 << 20) else {
            panic!("a refusal is not a lock");
        };
        assert!(reason.contains("1024 KiB"), "{reason}");
        assert!(remedy.contains("CAP_IPC_LOCK"), "{remedy}");
        assert!(refused(Errno::NOSYS, 1).to_string().contains("Linux 4.4"));
    }

    /// The kernel's own word on it: the field `VmLck` of this process grows by the whole mapping.
    #[test]
    #[cfg(not(miri))]
    fn the_report_agrees_with_the_kernel() {
        let mapping = Mapping::reserve(1 << 20).unwrap();
        let report = lock(&mapping);
        let locked = vm_locked_kib();
        match report {
            LockReport::Locked => assert!(locked >= 1024, "VmLck is {locked} KiB"),
            LockReport::NotLocked { reason, .. } => println!("SKIP: not locked here: {reason}"),
        }
    }

    #[cfg(not(miri))]
    fn vm_locked_kib() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmLck:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}
