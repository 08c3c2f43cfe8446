//! A server with several clients, each behind a veth pair of its own: as many cores of the server as clients.

use std::net::Ipv4Addr;

use anyhow::{Result, ensure};

use crate::Namespace;
use crate::interface::{Offloads, connect};

/// The cores of one client and its pair: packets to the server are processed on the first, those to the client on the second.
/// Both may be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Lane {
    /// Number of the server's core.
    pub server: usize,
    /// Number of the client's core.
    pub client: usize,
}

/// A server's namespace, and one for each client. Removed when dropped.
#[derive(Debug)]
pub struct Star {
    clients: Vec<Namespace>,
    server: Namespace,
}

/// Lanes at most: each has a network of its own.
const MOST: usize = 64;

impl Star {
    /// The interface's name in each client's namespace.
    pub const DEVICE: &str = "eth0";

    /// Sets it up, with the offloads of a network card.
    ///
    /// # Errors
    ///
    /// When a step fails; the parts that were made until then are removed.
    pub fn create(lanes: &[Lane], congestion: &str, sources: u32) -> Result<Self> {
        ensure!((1..=MOST).contains(&lanes.len()), "1 to {MOST} lanes");
        ensure!((1..=200).contains(&sources), "1 to 200 client addresses");
        let mut star = Self { clients: Vec::new(), server: Namespace::create("server")? };
        star.server.set_congestion(congestion)?;
        for (number, lane) in lanes.iter().enumerate() {
            let (client, own) = (Namespace::create("client")?, format!("lane{number}"));
            connect((&client, Self::DEVICE), (&star.server, &own))?;
            let (outer, inner) = (client.interface(Self::DEVICE), star.server.interface(&own));
            for (interface, core) in [(outer, lane.client), (inner, lane.server)] {
                interface.set_offloads(Offloads::CARD)?;
                interface.steer(Some(core))?;
            }
            inner.add_addresses([format!("{}/24", Self::server_address(number)).as_str()])?;
            let addresses = (0..sources).map(|source| Self::client_address(number, source));
            let addresses: Vec<String> = addresses.map(|address| format!("{address}/24")).collect();
            outer.add_addresses(addresses.iter().map(String::as_str))?;
            client.set_congestion(congestion)?;
            star.clients.push(client);
        }
        Ok(star)
    }

    /// The server's namespace.
    pub fn server(&self) -> &Namespace {
        &self.server
    }

    /// The namespace of each client.
    pub fn clients(&self) -> &[Namespace] {
        &self.clients
    }

    /// The server's address in the network of a lane.
    pub fn server_address(lane: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 78, lane as u8, 1)
    }

    /// An address of a lane's client.
    pub fn client_address(lane: usize, source: u32) -> Ipv4Addr {
        Ipv4Addr::new(10, 78, lane as u8, 10 + source as u8)
    }
}
