//! The properties of a kernel that decide whether it can run the programs at all.

use std::path::Path;

use crate::unavailable::Unavailable;

/// The oldest kernel that the programs are tested on.
const OLDEST: (u32, u32) = (6, 1);

/// A kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Its release, such as `6.18.1-amd64`.
    pub release: String,
    /// Whether softirqs are preempted by one another: the programs have scratch memory for each processor, and two
    /// runs would share it.
    pub realtime: bool,
    /// Whether it tells its types.
    pub btf: bool,
}

impl Kernel {
    /// The kernel that this process runs on.
    pub(crate) fn this() -> Self {
        let uname = rustix::system::uname();
        Self {
            release: uname.release().to_string_lossy().into_owned(),
            realtime: uname.version().to_string_lossy().contains("PREEMPT_RT"),
            btf: Path::new("/sys/kernel/btf/vmlinux").exists(),
        }
    }

    /// Why there can be no fast path on it.
    pub(crate) fn refusals(&self) -> Vec<Unavailable> {
        let mut all = Vec::new();
        let mut refuse = |reason: String, remedy| all.push(Unavailable { reason, remedy });
        if self.version() < OLDEST {
            refuse(format!("Linux {} is too old", self.release), "Linux 6.1 or newer");
        }
        if !self.btf {
            let remedy = "a kernel with CONFIG_DEBUG_INFO_BTF=y, and /sys mounted";
            refuse("it does not tell its types (BTF)".into(), remedy);
        }
        if self.realtime {
            let reason = "it preempts softirqs (PREEMPT_RT), and the programs have memory for each processor";
            refuse(reason.into(), "a kernel without PREEMPT_RT");
        }
        all
    }

    /// Major and minor number of its release.
    pub(crate) fn version(&self) -> (u32, u32) {
        let mut numbers = self.release.split(['.', '-']).map(|part| part.parse().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }
}
