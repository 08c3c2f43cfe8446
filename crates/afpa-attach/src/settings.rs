//! What an attachment is told to do.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use afpa_cache::root::SymlinkPolicy;

use crate::Scope;

/// What to accelerate, and how.
#[derive(Clone, Debug)]
pub struct AttachSettings {
    /// Where the server listens.
    pub listen: SocketAddr,
    /// The folder whose files it serves.
    pub root: PathBuf,
    /// Names by which clients call it, each a site of its own. Empty: its addresses and `localhost`, which
    /// must all get the same answers.
    pub hosts: Vec<String>,
    /// Which files.
    pub scope: Scope,
    /// Symbolic links that are followed.
    pub symlinks: SymlinkPolicy,
    /// The time after which the server closes an idle connection. Before that, it is shown one of the
    /// connection's requests.
    pub server_timeout: Duration,
    /// Consecutive requests that the kernel could not answer, after which the server alone serves the
    /// connection; 0: never.
    pub bypass_after: u32,
    /// How long the server may take for one answer.
    pub answer_timeout: Duration,
    /// Folder of the control socket.
    pub folder: PathBuf,
}

/// Sizes of the kernel's maps. Whoever takes over pinned maps uses the sizes that they have.
pub(crate) fn map_sizes() -> afpa_bpf::Settings {
    // The log of an attached server is its own.
    afpa_bpf::Settings { log_every: 0, sizes_as_kept: true, ..afpa_bpf::Settings::default() }
}
