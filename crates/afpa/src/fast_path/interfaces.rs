//! Which interfaces carry the packets of a listener.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};

/// Interfaces by index, with their names.
pub(super) type Interfaces = BTreeMap<u32, String>;

/// One address of one interface.
struct Carried {
    name: String,
    flags: InterfaceFlags,
    address: Option<IpAddr>,
}

/// The interfaces of this network namespace that packets for `listeners` come in by: those that carry
/// an address, `lo` in any case, because this machine's own clients use it, and all that are up for
/// a wildcard.
pub(super) fn carrying(listeners: &[SocketAddr]) -> io::Result<Interfaces> {
    let mut found = Interfaces::new();
    for carried in carried()? {
        let wanted = carried.flags.contains(InterfaceFlags::IFF_UP)
            && listeners.iter().any(|listener| carries(&carried, listener.ip()));
        if wanted && !is_part_of_another(&carried.name) {
            // An interface that has gone since the list was made is not served.
            let Ok(index) = if_nametoindex(carried.name.as_str()) else { continue };
            found.insert(index, carried.name);
        }
    }
    Ok(found)
}

fn carries(carried: &Carried, listener: IpAddr) -> bool {
    listener.is_unspecified()
        || carried.flags.contains(InterfaceFlags::IFF_LOOPBACK)
        || carried.address == Some(listener)
}

/// Ports of a bridge or bond: their packets come by the master once more, and one translation is enough.
fn is_part_of_another(name: &str) -> bool {
    Path::new("/sys/class/net").join(name).join("master").exists()
}

fn carried() -> io::Result<Vec<Carried>> {
    let all = getifaddrs()?.map(|interface| {
        let storage = interface.address.as_ref();
        let v4 = storage.and_then(|address| address.as_sockaddr_in()).map(|a| IpAddr::V4(a.ip()));
        let v6 = storage.and_then(|address| address.as_sockaddr_in6()).map(|a| IpAddr::V6(a.ip()));
        Carried { name: interface.interface_name, flags: interface.flags, address: v4.or(v6) }
    });
    Ok(all.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(listeners: &[&str]) -> Vec<String> {
        let listeners: Vec<_> = listeners.iter().map(|text| text.parse().unwrap()).collect();
        carrying(&listeners).unwrap().into_values().collect()
    }

    #[test]
    fn loopback_addresses_are_on_the_loopback_alone() {
        assert_eq!(names(&["127.0.0.1:80"]), ["lo"]);
        assert_eq!(names(&["127.1.2.3:80", "[::1]:80"]), ["lo"]);
        assert_eq!(names(&[]), [""; 0]);
    }

    #[test]
    fn a_wildcard_is_on_every_interface_that_is_up() {
        let all = names(&["[::]:80"]);
        assert!(all.contains(&"lo".to_owned()), "{all:?}");
        assert_eq!(all, names(&["0.0.0.0:80", "127.0.0.1:81"]));
        for interface in carried().unwrap() {
            let up = interface.flags.contains(InterfaceFlags::IFF_UP);
            let expected = up && !is_part_of_another(&interface.name);
            assert_eq!(all.contains(&interface.name), expected, "{}", interface.name);
        }
    }
}
