//! A server that can take part, and its place.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use afpa_netlab::Namespace;
use anyhow::Result;

use super::running::Running;

/// A server that can take part.
pub trait Server: Send + Sync {
    /// Its name on the command line and in tables.
    fn name(&self) -> &str;

    /// A description in one line.
    fn about(&self) -> &str;

    /// The reason why it cannot run on this machine, and the Debian package that would help; `None` if it can.
    fn lacks(&self) -> Option<String>;

    /// Its version, as the program prints it.
    fn version(&self) -> String;

    /// Whether it answers more than one request on a connection.
    fn keeps_connections(&self) -> bool {
        true
    }

    /// Whether its answers say how old they are.
    fn ages(&self) -> bool {
        false
    }

    /// Starts it; it accepts connections when this returns.
    ///
    /// # Errors
    /// When it cannot be configured or started, or ends at once, with what it wrote; or when it is
    /// not ready in time.
    fn start<'a>(&self, setup: &ServerSetup<'a>) -> Result<Running<'a>>;
}

/// Where a server is to run, and what for.
#[derive(Clone, Copy, Debug)]
pub struct ServerSetup<'a> {
    /// The server's side of the test bed, which it has to itself; `None`: where the caller is, perhaps beside
    /// other servers. It then ends with the thread that started it.
    pub namespace: Option<&'a Namespace>,
    /// The one core that it may use.
    pub core: usize,
    /// Where it is to listen. The next ports, on loopback, are for
    /// servers behind it, if it needs any.
    pub address: SocketAddr,
    /// The document root. Some servers give up root's rights: everybody must be able to read it.
    pub root: &'a Path,
    /// A folder for its configuration and its logs.
    pub folder: &'a Path,
    /// Most connections that will be open at once: servers with a process or thread for each start
    /// as many, and a few for connections that are just being closed.
    pub connections: u32,
}

/// The programs that are this repository's own.
#[derive(Clone, Debug)]
pub struct Programs {
    /// `afpa`.
    pub afpa: PathBuf,
    /// `afpa-lab`, whose `serve` is the reference servers.
    pub lab: PathBuf,
}
