//! Preflight: features of this host that the fast path cannot use, cannot rely on or bypasses, with the remedies.
//!
//! [`Facts::gather`] is a thin shell that asks the kernel; [`findings`] is a pure function of the answers. The
//! doctor, the checker and every start use the same findings, and look again when [`Changes`] reports a change.

mod changes;
mod facts;
mod findings;
mod listeners;
mod routes;
#[cfg(test)]
mod tests;
mod watch;
mod xfrm;

use std::fmt;
use std::net::SocketAddr;

pub use changes::Changes;
pub use findings::findings;
pub use listeners::ListeningSocket;
pub use watch::Watch;

pub use crate::conn::socketless::TcpSettings;
use crate::found::{OtherProgram, Process};
pub use crate::kernel::Kernel;
pub use crate::net::devices::Device;

/// The state of a host, as far as the fast path depends on it. `None`: this process may not know.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The kernel.
    pub kernel: Kernel,
    /// How TCP is set up.
    pub tcp: Option<TcpSettings>,
    /// Capabilities of this process that it lacks, of those that loading takes.
    pub lacking: Vec<&'static str>,
    /// Bytes that this process may lock; `None`: no limit.
    pub memlock: Option<u64>,
    /// Whether there is a BPF file system.
    pub bpf_fs: bool,
    /// Whether there is a unified control group hierarchy.
    pub cgroup2: bool,
    /// IPsec policies.
    pub policies: Option<u32>,
    /// Whether the packet filter sees frames of bridges before the programs do (br_netfilter).
    pub filters_bridges: bool,
    /// Whether connection tracking knows any connection.
    pub tracks: bool,
    /// Whether it refuses connections that it has not seen begin (`nf_conntrack_tcp_loose` is 0).
    pub tracks_strictly: bool,
    /// Network devices.
    pub devices: Vec<Device>,
    /// Devices that routes leave by, and whether some route by it encapsulates.
    pub routes: Vec<(u32, bool)>,
    /// Where the fast path is wanted.
    pub addresses: Vec<SocketAddr>,
    /// Sockets that listen on the ports of `addresses`. `None`: AFPA itself will.
    pub listening: Option<Vec<ListeningSocket>>,
    /// Fast paths that are there.
    pub fast_paths: Option<Vec<FastPathFacts>>,
    /// Programs of others on the hooks of interfaces.
    pub others: Vec<OtherProgram>,
}

/// A fast path that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastPathFacts {
    /// Its ports; `None`: it is of another version.
    pub ports: Option<Vec<u16>>,
    /// Its interfaces.
    pub interfaces: Vec<String>,
    /// Whether a process drives it.
    pub alive: bool,
    /// That process, if it can be seen.
    pub process: Option<Process>,
    /// Whether its answers are paused.
    pub paused: bool,
    /// Whether it answers clients that the firewall has not let in.
    pub admits_everyone: bool,
    /// Whether it answers SYNs that the firewall has not seen, in a flood of them.
    pub answers_floods: bool,
    /// It gives answers that no file stands behind, for an attached server.
    pub keeps_answers: bool,
}

/// How much a finding costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// There can be no fast path at all.
    Refused,
    /// Some connections are served without it.
    Limited,
    /// The kernel's answers go past something.
    Bypassed,
    /// It is as it should be.
    InUse,
}

/// One thing to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How much it costs.
    pub level: Level,
    /// Its subject: `kernel`, an interface, a port.
    pub subject: String,
    /// Its description.
    pub text: String,
    /// A remedy for the operator; empty: nothing need be done.
    pub remedy: String,
}

impl Level {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Limited => "limited",
            Self::Bypassed => "bypassed",
            Self::InUse => "in use",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.text)?;
        if self.remedy.is_empty() { Ok(()) } else { write!(f, " ({})", self.remedy) }
    }
}
