//! `afpa-lab hold`: the lab starts it beside a server that may not have as many descriptors as there are connections.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use socket2::{Domain, Socket, Type};

/// Accept connections beside another server on the same address, and hold them: nothing is read or written. The
/// kernel spreads connections over all who listen. They are answered in the kernel like those of the server.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(super) struct Hold {
    /// Address of the other server
    #[arg(long)]
    listen: SocketAddr,
    /// Process of the other server: an AFPA whose programs answer
    #[arg(long, value_name = "PID")]
    of: u32,
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
        let served = served(self.of)?;
        served.update(&socket.as_raw_fd().to_ne_bytes(), &1u32.to_ne_bytes(), MapFlags::ANY)?;
        socket.listen(BACKLOG)?;
        let listener: TcpListener = socket.into();
        File::create(&self.mark).with_context(|| format!("{}", self.mark.display()))?;
        let mut held = Vec::new();
        loop {
            held.push(listener.accept().context("cannot accept")?);
        }
    }
}

/// The marks of the sockets that an AFPA serves (`bpf/include/afpa/conn/served.h`).
fn served(process: u32) -> Result<MapHandle> {
    let descriptors = fs::read_dir(format!("/proc/{process}/fdinfo"))?;
    // A descriptor that was closed meanwhile has no text.
    let texts = descriptors.flatten().filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let ids = texts.filter_map(|text| map_id(&text));
    let mut maps = ids.filter_map(|id| MapHandle::from_map_id(id).ok());
    maps.find(|map| map.name() == "served")
        .with_context(|| format!("process {process} has no map of served sockets"))
}

fn map_id(text: &str) -> Option<u32> {
    text.lines().find_map(|line| line.strip_prefix("map_id:")?.trim().parse().ok())
}
