//! The test bed: a client and a server namespace, and the network between them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};

use afpa_testkit::packet::{MacPair, PacketSocket};
use afpa_testkit::tcp::RawClient;
use anyhow::{Result, ensure};

use crate::inject::{Injector, Rules};
use crate::interface::{Offloads, connect};
use crate::{Namespace, tool};

/// Name of the one interface in the client's and in the server's namespace.
const DEVICE: &str = "eth0";
/// Last 32 bits of the first client address, in both families.
const FIRST_CLIENT: u32 = 0x0a4d_4001;
const MOST_SOURCES: u32 = 4096;
/// Number of the client address that no kernel owns, as beds with raw clients have fewer sources.
const RAW_CLIENT: u32 = 3000;

/// The network between client and server.
#[derive(Debug, Clone)]
pub enum Path {
    /// One veth pair.
    Direct(Offloads),
    /// Two veth pairs, and a forwarder between them that follows rules. No offloads.
    Through(Box<Rules>),
}

/// Which core processes the packets that each side receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steering {
    /// The core that sent them does: the packet work of both sides mixes.
    Unsteered,
    /// Each side's own core, at the cost of an interrupt between processors for each batch.
    Cores {
        /// Number of the server's core.
        server: usize,
        /// Number of the client's core.
        client: usize,
    },
}

/// How a [`Bed`] is made up.
#[derive(Debug, Clone)]
pub struct BedOptions {
    /// The network between the two sides.
    pub path: Path,
    /// Where packets are processed.
    pub steering: Steering,
    /// Congestion control of both sides. The same for all servers that are compared: cubic, as
    /// the timers of BBR's pacing are dear without a network card.
    pub congestion: String,
    /// Number of client addresses of each family, 1 to 4,096.
    pub sources: u32,
}

impl Default for BedOptions {
    fn default() -> Self {
        Self {
            path: Path::Direct(Offloads::CARD),
            steering: Steering::Unsteered,
            congestion: "cubic".into(),
            sources: 1,
        }
    }
}

/// Two namespaces that reach each other, removed when dropped.
#[derive(Debug)]
pub struct Bed {
    // Before the namespaces: the forwarder ends first.
    injector: Option<Injector>,
    client: Namespace,
    server: Namespace,
}

impl Bed {
    /// The server's addresses.
    pub const SERVER_V4: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
    /// The server's address in IPv6.
    pub const SERVER_V6: Ipv6Addr = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0x0a4d, 1);
    /// The interface's name, the same in both namespaces.
    pub const DEVICE: &str = DEVICE;

    /// Sets the bed up.
    ///
    /// # Errors
    ///
    /// When a step fails; namespaces and interfaces that were made until then are removed.
    pub fn create(options: &BedOptions) -> Result<Self> {
        ensure!((1..=MOST_SOURCES).contains(&options.sources), "1 to {MOST_SOURCES} sources");
        let (client, server) = (Namespace::create("client")?, Namespace::create("server")?);
        let injector = match &options.path {
            Path::Direct(offloads) => {
                connect((&client, DEVICE), (&server, DEVICE))?;
                client.interface(DEVICE).set_offloads(*offloads)?;
                server.interface(DEVICE).set_offloads(*offloads)?;
                None
            }
            Path::Through(rules) => Some(Injector::between(&client, &server, DEVICE, rules)?),
        };
        let bed = Self { injector, client, server };
        bed.address(options.sources)?;
        bed.steer(options.steering)?;
        for side in [&bed.client, &bed.server] {
            side.set_congestion(&options.congestion)?;
        }
        Ok(bed)
    }

    /// The client's side.
    pub fn client(&self) -> &Namespace {
        &self.client
    }

    /// The server's side.
    pub fn server(&self) -> &Namespace {
        &self.server
    }

    /// The forwarder, on a bed that has one.
    pub fn injector(&self) -> Option<&Injector> {
        self.injector.as_ref()
    }

    /// Address of client number `index`, in the family of `like`.
    pub fn client_address(like: IpAddr, index: u32) -> IpAddr {
        let bits = FIRST_CLIENT + index;
        match like {
            IpAddr::V4(_) => Ipv4Addr::from(bits).into(),
            IpAddr::V6(server) => {
                let network = u128::from(server) & !u128::from(u32::MAX);
                Ipv6Addr::from(network | u128::from(bits)).into()
            }
        }
    }

    /// Link addresses of a frame to the server: the server's and the client's.
    ///
    /// # Errors
    ///
    /// When an interface is gone.
    pub fn macs(&self) -> Result<MacPair> {
        let mut macs = MacPair::default();
        for (side, half) in [&self.server, &self.client].into_iter().zip(macs.chunks_mut(6)) {
            half.copy_from_slice(&side.interface(DEVICE).mac()?);
        }
        Ok(macs)
    }

    /// A client by hand of this server address; each has a port of its own.
    ///
    /// # Errors
    ///
    /// When a step of the set-up fails.
    pub fn raw_client(&self, server: SocketAddr) -> Result<RawClient> {
        static NEXT_PORT: AtomicU16 = AtomicU16::new(20_000);
        let address = Self::client_address(server.ip(), RAW_CLIENT);
        let port = NEXT_PORT.fetch_add(1, Ordering::Relaxed);
        let mac = self.client.interface(DEVICE).mac()?.map(|byte| format!("{byte:02x}")).join(":");
        tool::ip(&format!(
            "-n {} neigh replace {address} lladdr {mac} dev {DEVICE}",
            self.server.name()
        ))?;
        let socket = self.client.run(|| PacketSocket::open(DEVICE))??;
        Ok(RawClient::new(socket, self.macs()?, SocketAddr::new(address, port), server))
    }

    fn address(&self, sources: u32) -> Result<()> {
        let v4 = format!("{}/16", Self::SERVER_V4);
        let v6 = format!("{}/64", Self::SERVER_V6);
        self.server.interface(DEVICE).add_addresses([v4.as_str(), v6.as_str()])?;
        let clients: Vec<String> = (0..sources)
            .flat_map(|index| {
                let v4 = Self::client_address(Self::SERVER_V4.into(), index);
                let v6 = Self::client_address(Self::SERVER_V6.into(), index);
                [format!("{v4}/16"), format!("{v6}/64")]
            })
            .collect();
        self.client.interface(DEVICE).add_addresses(clients.iter().map(String::as_str))
    }

    fn steer(&self, steering: Steering) -> Result<()> {
        // A new interface is not steered.
        let Steering::Cores { server, client } = steering else { return Ok(()) };
        self.server.interface(DEVICE).steer(Some(server))?;
        self.client.interface(DEVICE).steer(Some(client))
    }
}
