//! The generator's own choice of addresses and ports.
//!
//! Once a flow is handed over the kernel forgets its socket, and would give the port to the next
//! connection: so the kernel is not asked.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, SockAddr, Socket, Type};

/// Client ports in use: all but the privileged ones.
pub(crate) const FIRST_PORT: u32 = 1024;
pub(crate) const PORTS: u32 = 65536 - FIRST_PORT;
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);

/// Client addresses and ports, in turn.
pub(crate) struct Ports {
    server: SocketAddr,
    first_source: IpAddr,
    sources: u32,
    next: u32,
    used: HashSet<SocketAddr>,
}

impl Ports {
    /// `sources` consecutive addresses from the first on. `start` is any number, another for each
    /// run: the server may still know the connections of one that was killed.
    pub(crate) fn new(server: SocketAddr, first_source: IpAddr, sources: u32, start: u32) -> Self {
        let next = start % (PORTS * sources);
        Self { server, first_source, sources, next, used: HashSet::new() }
    }

    /// A connection from an address and port that no other flow uses.
    pub(crate) fn connect(&mut self) -> Result<(TcpStream, SocketAddr)> {
        for _ in 0..PORTS * self.sources {
            let local = self.advance();
            if self.used.contains(&local) {
                continue;
            }
            let socket = Socket::new(Domain::for_address(local), Type::STREAM, None)?;
            match socket.bind(&SockAddr::from(local)) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => continue,
                bound => bound.with_context(|| format!("cannot use {local}"))?,
            }
            socket
                .connect_timeout(&SockAddr::from(self.server), CONNECT_PATIENCE)
                .with_context(|| format!("cannot connect {local} to {}", self.server))?;
            socket.set_tcp_nodelay(true)?;
            self.used.insert(local);
            return Ok((socket.into(), local));
        }
        bail!("{} client addresses have no port left", self.sources)
    }

    /// The flow is gone: its address and port may be used again.
    pub(crate) fn release(&mut self, local: SocketAddr) {
        self.used.remove(&local);
    }

    fn advance(&mut self) -> SocketAddr {
        let (source, port) = (self.next % self.sources, self.next / self.sources % PORTS);
        self.next = (self.next + 1) % (PORTS * self.sources);
        SocketAddr::new(offset(self.first_source, source), (FIRST_PORT + port) as u16)
    }
}

/// Has the kernel drop a socket without a packet to the other side.
///
/// A socket in repair mode (`TCP_REPAIR`, made for moving connections between machines) leaves
/// silently when it is closed.
pub(crate) fn forget(stream: TcpStream) -> Result<()> {
    setsockopt(&stream, sockopt::TcpRepair, &1).context("TCP_REPAIR needs CAP_NET_ADMIN")
}

/// The address so many behind another.
pub(crate) fn offset(first: IpAddr, by: u32) -> IpAddr {
    match first {
        IpAddr::V4(first) => IpAddr::V4((first.to_bits().wrapping_add(by)).into()),
        IpAddr::V6(first) => IpAddr::V6((first.to_bits().wrapping_add(by.into())).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_ports_come_in_turn_and_all_of_them() {
        let server = "10.0.0.1:80".parse().unwrap();
        let mut ports = Ports::new(server, "10.0.0.9".parse().unwrap(), 2, 0);
        let first: Vec<String> = (0..3).map(|_| ports.advance().to_string()).collect();
        assert_eq!(first, ["10.0.0.9:1024", "10.0.0.10:1024", "10.0.0.9:1025"]);
        let all: HashSet<SocketAddr> = (0..PORTS * 2).map(|_| ports.advance()).collect();
        assert_eq!(all.len() as u32, PORTS * 2);
    }
}
