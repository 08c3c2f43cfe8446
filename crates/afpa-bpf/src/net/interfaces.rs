//! Which interfaces carry a listener.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};

use nix::ifaddrs::getifaddrs;

use crate::net::devices::devices;

/// An interface that is up, and its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name at this time: names change, the index does not.
    pub name: String,
    /// The index, by which programs are attached.
    pub index: u32,
    /// Its addresses of both families.
    pub addresses: Vec<IpAddr>,
    /// Whether it is the loopback interface, which clients on this machine use for all of its addresses.
    pub loopback: bool,
    /// Whether its packets begin with an IP header: requests that come in there are answered by another interface.
    pub bare: bool,
}

/// All interfaces of the calling thread's network namespace that are up and carry Ethernet frames, or bare IP packets
/// that the programs can read, without the ports of bridges and bonds: their packets pass the master as well, and must be
/// translated once.
///
/// # Errors
/// When the kernel's list cannot be read.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let mut addresses: HashMap<String, Vec<IpAddr>> = HashMap::new();
    for entry in getifaddrs()? {
        let Some(address) = entry.address else { continue };
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        let v6 = address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip()));
        if let Some(address) = v4.or(v6) {
            addresses.entry(entry.interface_name).or_default().push(address);
        }
    }
    let devices = devices()?;
    let devices =
        devices.into_iter().filter(|one| one.up && (one.ethernet || one.bare) && one.master == 0);
    let interfaces = devices.map(|device| Interface {
        addresses: addresses.remove(&device.name).unwrap_or_default(),
        name: device.name,
        index: device.index,
        loopback: device.loopback,
        bare: device.bare,
    });
    Ok(interfaces.collect())
}

/// The interfaces among `all` that may carry packets of connections to `listeners`: the loopback interface
/// for loopback addresses, all of them for others. Requests may arrive on an interface that does not have the
/// address, and responses leave where routing sends them. On an interface without programs, the sequence
/// numbers of a translated connection would be wrong.
pub fn carrying<'i>(
    listeners: &[SocketAddr],
    all: &'i [Interface],
) -> impl Iterator<Item = &'i Interface> {
    let here = !listeners.is_empty();
    let abroad = listeners.iter().any(|listener| !listener.ip().is_loopback());
    all.iter().filter(move |interface| here && (abroad || interface.loopback))
}

/// Whether clients can reach a listener on this address through any of `all`.
pub fn is_reachable(address: IpAddr, all: &[Interface]) -> bool {
    address.is_unspecified()
        || address.is_loopback()
        || all.iter().any(|interface| interface.addresses.contains(&address))
}

/// Whether the calling thread's network namespace has no interface of this index.
pub(crate) fn is_gone(index: u32) -> bool {
    matches!(name_of(index), Err(error) if matches!(error.raw_os_error(), Some(6 | 19))) // ENXIO, ENODEV
}

fn name_of(index: u32) -> io::Result<String> {
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        None,
    )?;
    Ok(rustix::net::netdevice::index_to_name(&socket, index)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Interface> {
        let interface = |name: &str, index, addresses: &[&str]| Interface {
            name: name.into(),
            index,
            addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(),
            loopback: name == "lo",
            bare: name == "tunl0",
        };
        vec![
            interface("eth0", 2, &["10.0.0.1", "fe80::1"]),
            interface("eth1", 3, &["10.1.0.1"]),
            interface("eth2", 4, &[]),
            interface("lo", 1, &["127.0.0.1", "::1"]),
        ]
    }

    fn names(listeners: &[&str]) -> Vec<String> {
        let listeners: Vec<_> = listeners.iter().map(|listen| listen.parse().unwrap()).collect();
        carrying(&listeners, &all()).map(|interface| interface.name.clone()).collect()
    }

    #[test]
    fn those_that_requests_come_by() {
        assert_eq!(names(&["0.0.0.0:80"]), ["eth0", "eth1", "eth2", "lo"]);
        assert_eq!(names(&["10.1.0.1:80", "127.0.0.1:80"]), ["eth0", "eth1", "eth2", "lo"]);
        assert_eq!(names(&["127.0.0.1:80"]), ["lo"]);
        assert_eq!(names(&["127.0.0.9:80", "[::1]:80"]), ["lo"]);
        assert!(names(&[]).is_empty());
    }

    #[test]
    fn addresses_of_others_are_not_reachable() {
        let reachable = |address: &str| is_reachable(address.parse().unwrap(), &all());
        assert!(reachable("0.0.0.0") && reachable("::") && reachable("127.0.0.9"));
        assert!(reachable("10.1.0.1") && reachable("fe80::1"));
        assert!(!reachable("192.0.2.1"));
    }
}
