//! How a program is held on a hook of an interface: by a tcx link, or as a filter where the kernel has no tcx.

use std::io;
use std::os::fd::OwnedFd;

use libbpf_rs::libbpf_sys::BPF_TCX_INGRESS;

use crate::net::clsact::Filter;
use crate::net::links;
use crate::settings::Settings;

/// The kind of hook that this kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hooks {
    /// Since Linux 6.6: ends with the process, or outlives it if it is pinned.
    Tcx,
    /// Filters of the clsact queueing discipline. They outlive the process; a process that changes them needs
    /// `CAP_NET_ADMIN`, too.
    Clsact,
}

/// EINVAL: the kernel knows no such hook.
const UNKNOWN: i32 = 22;
/// The loopback interface of every network namespace.
const LOOPBACK: u32 = 1;

impl Hooks {
    pub(crate) fn of_this_kernel(settings: &Settings) -> Self {
        let asked = links::count_programs(LOOPBACK, BPF_TCX_INGRESS);
        match asked {
            _ if settings.without_tcx => Self::Clsact,
            Err(error) if error.raw_os_error() == Some(UNKNOWN) => Self::Clsact,
            _ => Self::Tcx,
        }
    }
}

/// A program on a hook, until this is dropped; longer if it is kept.
pub(crate) enum Hooked {
    Link(OwnedFd),
    Filter(Filter),
}

impl Hooked {
    /// Takes the program off at once, also where it is kept.
    pub(crate) fn detach(self) -> io::Result<()> {
        match self {
            Self::Link(link) => {
                links::detach(&link);
                Ok(())
            }
            Self::Filter(filter) => filter.remove(),
        }
    }
}
