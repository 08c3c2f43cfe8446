//! `afpa-netlab reflect`.

use std::net::SocketAddr;

use afpa_netlab::Bed;
use afpa_netlab::reflect::{Handshakes, Reflector};
use anyhow::Result;
use clap::Args;

use super::ending::Ending;

/// Answer every request segment by the same response, in TC: the upper bound of any server.
/// Runs in the namespace it is started in, until it is interrupted.
#[derive(Debug, Args)]
pub(super) struct Reflect {
    /// Address and port to answer on.
    #[arg(long)]
    listen: SocketAddr,
    /// Interface that requests come in by.
    #[arg(long, default_value = Bed::DEVICE)]
    interface: String,
    /// Bytes of the response's body.
    #[arg(long, default_value_t = 512)]
    body: usize,
    /// Answer one request a connection, and open and close the connections as well.
    #[arg(long)]
    once: bool,
}

impl Reflect {
    pub(super) fn run(self) -> Result<()> {
        let ending = Ending::watch()?;
        let handshakes = if self.once { Handshakes::Program } else { Handshakes::Kernel };
        let _reflector = Reflector::start(&self.interface, self.listen, self.body, handshakes)?;
        ending.wait(|| false)
    }
}
