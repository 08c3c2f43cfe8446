//! `afpa-netlab reflect`.

use std::net::SocketAddr;

use anyhow::Result;
use clap::Args;

use super::Ending;

/// Answer every request segment by the same response, in TC: the upper bound of any server.
/// Runs in the namespace it is started in, until it is interrupted.
#[derive(Debug, Args)]
pub(super) struct Reflect {
    /// Address and port to answer on.
    #[arg(long)]
    listen: SocketAddr,
    /// Interface that requests come in by.
    #[arg(long, default_value = afpa_netlab::Bed::DEVICE)]
    interface: String,
    /// Bytes of the response's body.
    #[arg(long, default_value_t = 512)]
    body: usize,
}

impl Reflect {
    pub(super) fn run(self) -> Result<()> {
        let ending = Ending::watch()?;
        let _reflector =
            afpa_netlab::reflect::Reflector::start(&self.interface, self.listen, self.body)?;
        ending.wait(|| false)
    }
}
