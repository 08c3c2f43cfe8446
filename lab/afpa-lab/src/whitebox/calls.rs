//! JAWS's categories of system calls.

use nix::libc;
use serde::{Deserialize, Serialize};

/// Table 2 of the JAWS paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// Opening, closing, asking about files.
    File,
    /// Writing files to the network.
    Write,
    /// Reading requests, and waiting for them.
    Read,
    /// Signal handling.
    Signal,
    /// Synchronisation.
    Synchronisation,
    /// Process control.
    Process,
    /// Everything else.
    Other,
}

impl Category {
    /// In the paper's order.
    pub const ALL: [Self; 7] = [
        Self::File,
        Self::Write,
        Self::Read,
        Self::Signal,
        Self::Synchronisation,
        Self::Process,
        Self::Other,
    ];

    /// For a table's head.
    pub fn title(self) -> &'static str {
        match self {
            Self::File => "file operations",
            Self::Write => "writing files",
            Self::Read => "reading requests",
            Self::Signal => "signal handling",
            Self::Synchronisation => "synchronisation",
            Self::Process => "process control",
            Self::Other => "miscellaneous",
        }
    }

    /// By the name of the kernel's function for it, such as `newfstatat` or `sendfile64`.
    pub(super) fn named(name: &str) -> Self {
        let found = NAMES.iter().find(|(_, names)| names.contains(&name));
        found.map_or(Self::Other, |(category, _)| *category)
    }

    /// The calls of a category; [`Other`](Self::Other) is what no category names. `accept` is
    /// reading and `close` a file operation, as in the paper, whoever the descriptor belongs to.
    pub(super) fn calls(self) -> &'static [libc::c_long] {
        match self {
            Self::File => FILE,
            Self::Write => WRITE,
            Self::Read => READ,
            Self::Signal => SIGNAL,
            Self::Synchronisation => SYNCHRONISATION,
            Self::Process => PROCESS,
            Self::Other => &[],
        }
    }
}

/// The same calls by the names of the kernel's functions.
const NAMES: &[(Category, &[&str])] = &[
    (
        Category::File,
        &[
            "open",
            "openat",
            "openat2",
            "close",
            "stat",
            "newstat",
            "fstat",
            "newfstat",
            "newfstatat",
            "statx",
            "access",
            "lseek",
            "fcntl",
            "pread64",
            "getdents64",
            "fadvise64",
            "mmap",
            "munmap",
        ],
    ),
    (
        Category::Write,
        &[
            "write",
            "writev",
            "pwrite64",
            "sendto",
            "sendmsg",
            "sendmmsg",
            "sendfile",
            "sendfile64",
            "splice",
            "ioctl",
            "setsockopt",
            "shutdown",
        ],
    ),
    (
        Category::Read,
        &[
            "read",
            "readv",
            "recvfrom",
            "recvmsg",
            "accept",
            "accept4",
            "poll",
            "ppoll",
            "select",
            "pselect6",
            "epoll_wait",
            "epoll_pwait",
            "epoll_pwait2",
            "epoll_ctl",
            "io_uring_enter",
        ],
    ),
    (
        Category::Signal,
        &[
            "rt_sigaction",
            "rt_sigprocmask",
            "rt_sigreturn",
            "rt_sigtimedwait",
            "sigaltstack",
            "kill",
            "tgkill",
        ],
    ),
    (
        Category::Synchronisation,
        &["futex", "semop", "semtimedop", "flock", "sched_yield", "membarrier"],
    ),
    (
        Category::Process,
        &[
            "clone",
            "clone3",
            "fork",
            "vfork",
            "execve",
            "exit",
            "exit_group",
            "wait4",
            "waitid",
            "set_robust_list",
            "rseq",
            "mprotect",
            "madvise",
            "prctl",
        ],
    ),
];

const FILE: &[libc::c_long] = &[
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_statx,
    libc::SYS_lseek,
    libc::SYS_fcntl,
    libc::SYS_pread64,
    libc::SYS_getdents64,
    libc::SYS_fadvise64,
    libc::SYS_mmap,
    libc::SYS_munmap,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_newfstatat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
];
const WRITE: &[libc::c_long] = &[
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_ioctl,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
];
const READ: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_epoll_ctl,
    libc::SYS_io_uring_enter,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
];
const SIGNAL: &[libc::c_long] = &[
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sigaltstack,
    libc::SYS_kill,
    libc::SYS_tgkill,
];
const SYNCHRONISATION: &[libc::c_long] = &[
    libc::SYS_futex,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_flock,
    libc::SYS_sched_yield,
    libc::SYS_membarrier,
];
const PROCESS: &[libc::c_long] = &[
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_execve,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_prctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn names_and_numbers_agree() {
        for (category, names) in NAMES {
            // `stat`, `fstat` and `sendfile` have two names each; on x86-64 all of the others are in both.
            let doubles = ["newstat", "newfstat", "sendfile64"];
            let single = names.iter().filter(|name| !doubles.contains(name)).count();
            assert_eq!(single, category.calls().len(), "{category:?}");
        }
        assert_eq!(Category::named("writev"), Category::Write);
        assert_eq!(Category::named("getpid"), Category::Other);
    }

    #[test]
    fn no_call_is_in_two_categories() {
        let all: Vec<_> = Category::ALL.iter().flat_map(|c| c.calls()).collect();
        let mut unique = all.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), all.len());
    }
}
