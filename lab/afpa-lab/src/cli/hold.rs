//! `afpa-lab hold`: the lab starts it beside a server that may not have as many descriptors as there are connections.

use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use socket2::{Domain, Socket, Type};

/// Accept connections beside another server on the same address, and hold them: nothing is read or written. The
/// kernel spreads connections over all who listen.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(super) struct Hold {
    /// Address of the other server
    #[arg(long)]
    listen: SocketAddr,
    /// A file that is made as soon as it listens
    #[arg(long, value_name = "FILE")]
    mark: PathBuf,
}

/// All connections may come before one is accepted.
const BACKLOG: i32 = 65_535;

impl Hold {
    pub(super) fn run(&self) -> Result<()> {
        let socket = Socket::new(Domain::for_address(self.listen), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(true)?;
        socket.bind(&self.listen.into()).with_context(|| format!("cannot bind {}", self.listen))?;
        socket.listen(BACKLOG)?;
        let listener: TcpListener = socket.into();
        File::create(&self.mark).with_context(|| format!("{}", self.mark.display()))?;
        let mut held = Vec::new();
        loop {
            held.push(listener.accept().context("cannot accept")?);
        }
    }
}
