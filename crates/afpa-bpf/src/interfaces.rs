//! Which interfaces carry a listener.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};

/// An interface that is up, and its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name now; names change, the number does not.
    pub name: String,
    /// What the programs are put on.
    pub index: u32,
    /// Those of both families.
    pub addresses: Vec<IpAddr>,
}

/// All interfaces of this network namespace that are up and have an address.
///
/// # Errors
/// When the kernel does not tell.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let mut found: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
    for entry in getifaddrs()?.filter(|entry| entry.flags.contains(InterfaceFlags::IFF_UP)) {
        let Some(address) = entry.address else { continue };
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        let v6 = address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip()));
        if let Some(address) = v4.or(v6) {
            found.entry(entry.interface_name).or_default().push(address);
        }
    }
    let with_index = found.into_iter().filter_map(|(name, addresses)| {
        // One that has gone in the meantime carries nothing.
        let index = if_nametoindex(name.as_str()).ok()?;
        Some(Interface { name, index, addresses })
    });
    Ok(with_index.collect())
}

/// Of `all`, those by which requests to `listen` may come: the one that has the address, and the
/// loopback interface for clients on this machine; with an unspecified address, all.
pub fn carrying(listen: SocketAddr, all: Vec<Interface>) -> Vec<Interface> {
    let wanted = |interface: &Interface| {
        let own = interface.addresses.contains(&listen.ip());
        let loopback = interface.addresses.iter().any(IpAddr::is_loopback);
        listen.ip().is_unspecified() || own || loopback
    };
    let there = listen.ip().is_unspecified()
        || all.iter().any(|interface| interface.addresses.contains(&listen.ip()))
        || listen.ip().is_loopback();
    all.into_iter().filter(|interface| there && wanted(interface)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(listen: &str) -> Vec<String> {
        let interface = |name: &str, index, addresses: &[&str]| Interface {
            name: name.into(),
            index,
            addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(),
        };
        let all = vec![
            interface("eth0", 2, &["10.0.0.1", "fe80::1"]),
            interface("eth1", 3, &["10.1.0.1"]),
            interface("lo", 1, &["127.0.0.1", "::1"]),
        ];
        let found = carrying(listen.parse().unwrap(), all);
        found.into_iter().map(|interface| interface.name).collect()
    }

    #[test]
    fn those_that_requests_come_by() {
        assert_eq!(names("0.0.0.0:80"), ["eth0", "eth1", "lo"]);
        assert_eq!(names("10.1.0.1:80"), ["eth1", "lo"]);
        assert_eq!(names("127.0.0.1:80"), ["lo"]);
        assert_eq!(names("127.0.0.9:80"), ["lo"]);
        assert!(names("192.0.2.1:80").is_empty(), "not an address of this machine");
    }
}
