//! The networks that proxies are measured in.

use std::net::{IpAddr, Ipv4Addr};

use afpa_netlab::{Namespace, Offloads, connect, missing_privilege};
use anyhow::{Result, bail};

use crate::bed::CONGESTION;
use crate::loopback::{Loopback, on_core};

/// Addresses of the bed *cores*: each pair is a network of its own.
const PROXY: Ipv4Addr = Ipv4Addr::new(10, 78, 1, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 78, 1, 2);
const TO_SERVERS: Ipv4Addr = Ipv4Addr::new(10, 78, 2, 1);
const SERVERS: Ipv4Addr = Ipv4Addr::new(10, 78, 2, 2);
/// The one interface of clients and of servers, in their namespaces.
const DEVICE: &str = "eth0";

/// Removed when it is dropped.
pub(super) enum Network {
    /// Three namespaces in a row: clients, proxy, servers.
    Cores(Row),
    /// All in one namespace on its loopback, where the kernel does part of each side's packet work on the other side's
    /// core.
    Loopback(Loopback),
}

/// The namespaces of *cores*, joined by veth pairs. Packets of the proxy's namespace are processed on the proxy's core,
/// all others on the other core, so that "the proxy's core" is all of the proxy's work and nothing else.
pub(super) struct Row {
    clients: Namespace,
    proxy: Namespace,
    servers: Namespace,
    note: String,
}

impl Network {
    /// The bed *cores*.
    ///
    /// # Errors
    ///
    /// Without root, or when a step fails.
    pub(super) fn cores(proxy_core: usize, other_core: usize) -> Result<Self> {
        if let Some(reason) = missing_privilege() {
            bail!("the bed 'cores': {reason}; --bed loopback does without");
        }
        let create = |role| -> Result<Namespace> {
            let namespace = Namespace::create(role)?;
            namespace.set_congestion(CONGESTION)?;
            Ok(namespace)
        };
        let (clients, proxy, servers) = (create("clients")?, create("proxy")?, create("servers")?);
        join((&proxy, "clients", PROXY, proxy_core), (&clients, DEVICE, CLIENT, other_core))?;
        join((&proxy, "servers", TO_SERVERS, proxy_core), (&servers, DEVICE, SERVERS, other_core))?;
        let note = format!(
            "namespaces of clients, proxy and servers, packets of the proxy's on core {proxy_core}, \
             all others on core {other_core}, congestion control {CONGESTION}"
        );
        Ok(Self::Cores(Row { clients, proxy, servers, note }))
    }

    /// The bed *loopback*.
    ///
    /// # Errors
    ///
    /// When a step fails.
    pub(super) fn loopback() -> Result<Self> {
        Loopback::create().map(Self::Loopback)
    }

    /// A description, for people.
    pub(super) fn note(&self) -> &str {
        match self {
            Self::Cores(row) => &row.note,
            Self::Loopback(loopback) => &loopback.note,
        }
    }

    /// Address on which proxies listen.
    pub(super) fn proxy(&self) -> IpAddr {
        match self {
            Self::Cores(_) => PROXY.into(),
            Self::Loopback(_) => Ipv4Addr::LOCALHOST.into(),
        }
    }

    /// Address on which servers listen.
    pub(super) fn servers(&self) -> IpAddr {
        match self {
            Self::Cores(_) => SERVERS.into(),
            Self::Loopback(_) => Ipv4Addr::LOCALHOST.into(),
        }
    }

    /// The clients' interface and address.
    pub(super) fn client(&self) -> (&'static str, IpAddr) {
        match self {
            Self::Cores(_) => (DEVICE, CLIENT.into()),
            Self::Loopback(_) => ("lo", Ipv4Addr::LOCALHOST.into()),
        }
    }

    /// The namespace that the servers have to themselves.
    pub(super) fn of_servers(&self) -> Option<&Namespace> {
        match self {
            Self::Cores(row) => Some(&row.servers),
            Self::Loopback(_) => None,
        }
    }

    /// Runs the experiment on a thread where the proxies are. Threads and processes that it starts are there, too.
    pub(super) fn run<T: Send>(&self, experiment: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        match self {
            Self::Cores(row) => row.proxy.run(experiment)?,
            Self::Loopback(loopback) => loopback.run(experiment),
        }
    }

    /// Runs `work` on a thread where the clients are, on their core. The caller is where the proxies are.
    pub(super) fn at_clients<T: Send>(
        &self,
        core: usize,
        work: impl FnOnce() -> Result<T> + Send,
    ) -> Result<T> {
        match self {
            Self::Cores(row) => row.clients.run(|| on_core(core, work))?,
            Self::Loopback(_) => on_core(core, work),
        }
    }
}

/// A namespace, its interface, its address, and the core that processes what it receives.
type End<'n> = (&'n Namespace, &'n str, Ipv4Addr, usize);

/// Joins two namespaces by a veth pair that does what a network card would.
fn join(one: End<'_>, other: End<'_>) -> Result<()> {
    connect((one.0, one.1), (other.0, other.1))?;
    for (namespace, device, address, core) in [one, other] {
        let interface = namespace.interface(device);
        interface.set_offloads(Offloads::CARD)?;
        interface.add_addresses([format!("{address}/24").as_str()])?;
        interface.steer(Some(core))?;
    }
    Ok(())
}
