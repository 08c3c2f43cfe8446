//! The settings of an attachment.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use afpa_bpf::{Admission, PinDirOwner};
use afpa_cache::root::SymlinkPolicy;

use crate::Scope;
use crate::kept::KeptScope;

/// The server to accelerate, and how.
#[derive(Clone, Debug)]
pub struct AttachSettings {
    /// Where the server listens: at least one address, all with the same port.
    pub listen: Vec<SocketAddr>,
    /// The folder whose files it serves.
    pub root: PathBuf,
    /// Names by which clients call it, each a site of its own. Empty: its addresses and `localhost`, which
    /// must all get the same answers.
    pub hosts: Vec<String>,
    /// Which files, and the longest answer of all.
    pub scope: Scope,
    /// The longest answer to a request that does not ask for the end of a connection without a socket.
    pub answer_max: usize,
    /// Which answers that no file stands behind are kept.
    pub keeps: KeptScope,
    /// Symbolic links that are followed.
    pub symlinks: SymlinkPolicy,
    /// The time after which the server closes an idle connection. Before that, it is shown one of the
    /// connection's requests.
    pub server_timeout: Duration,
    /// Consecutive requests that the kernel could not answer, after which the server alone serves the
    /// connection; 0: never.
    pub bypass_after: u32,
    /// The server confirms every pinned answer within this time, so that its new rules take effect that soon.
    pub revalidate: Duration,
    /// Request fields that matter to no answer of the server, besides those that decoys show to be unimportant.
    pub allowed_fields: Vec<String>,
    /// Ask from this machine only, and send its answers to every client.
    pub ask_only_locally: bool,
    /// Clients are answered in the kernel for so long after a packet of theirs got through the kernel's own path:
    /// netfilter, cgroup programs, routes; zero: for ever.
    pub firewall_interval: Duration,
    /// Whether connections of known clients begin without a socket.
    pub socketless: bool,
    /// Which clients' connections may begin so.
    pub admission: Admission,
    /// One in this many of the kernel's answers is compared with the server's; 0: none.
    pub self_check: u32,
    /// How long the server may take for one answer.
    pub answer_timeout: Duration,
    /// Folder of the control socket.
    pub folder: PathBuf,
    /// The user that the process becomes when everything is loaded; None: the user stays the same.
    pub owner: Option<PinDirOwner>,
}

impl AttachSettings {
    /// The port of the server.
    pub fn port(&self) -> u16 {
        self.listen.first().map_or(0, SocketAddr::port)
    }

    /// The addresses, for people.
    pub(crate) fn addresses(&self) -> String {
        self.listen.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(" and ")
    }
}

/// Sizes of the kernel's maps. A process that takes over pinned maps uses the sizes that they have.
pub(crate) fn map_sizes() -> afpa_bpf::Settings {
    // The log of an attached server is its own.
    afpa_bpf::Settings { log_every: 0, sizes_as_kept: true, ..afpa_bpf::Settings::default() }
}
