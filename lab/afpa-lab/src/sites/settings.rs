//! The settings of a comparison, and its servers.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

/// The settings of a comparison.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Sites, each with two hosts.
    pub sites: usize,
    /// Certificates, each for the hosts of one site.
    pub certificates: usize,
    /// Whether all sites have one document root.
    pub shared: bool,
    /// Fresh starts of each server.
    pub rounds: usize,
    /// `afpa`.
    pub afpa: PathBuf,
    /// `nginx`.
    pub nginx: PathBuf,
}

/// A server that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    Afpa,
    Nginx,
}

impl Server {
    pub(super) fn name(self) -> &'static str {
        match self {
            Server::Afpa => "AFPA",
            Server::Nginx => "nginx",
        }
    }
}

/// The time limit of every wait.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// Makes a folder that the servers' users may read.
pub(super) fn make_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))
}
