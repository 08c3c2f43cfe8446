//! Network devices, with the properties that decide whether the programs can be right on them.

use std::io;

use crate::net::rtnetlink::{attributes, dump, half, text, word};

/// A network device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Whether it is up.
    pub up: bool,
    /// Whether it is the loopback device.
    pub loopback: bool,
    /// Whether its packets begin with an Ethernet header.
    pub ethernet: bool,
    /// Whether its packets begin with an IP header, and the programs can read those that come in.
    pub bare: bool,
    /// Its kind, if it is virtual: `bridge`, `macvlan`, `wireguard`, ...
    pub kind: String,
    /// The number of the bridge, bond or the like of which it is a port; 0: none.
    pub master: u32,
}

const GET_LINK: u16 = 18;
const NEW_LINK: u16 = 16;
const INFO: usize = 16;
const NAME: u16 = 3;
const MASTER: u16 = 10;
const LINK_INFO: u16 = 18;
const INFO_KIND: u16 = 1;
const UP: u32 = 1;
const LOOPBACK: u32 = 8;
/// `ARPHRD_ETHER`, `ARPHRD_LOOPBACK`
const ETHERNET: [u16; 2] = [1, 772];
/// `ARPHRD_TUNNEL`, `ARPHRD_TUNNEL6`, `ARPHRD_SIT`: the kernel has taken an outer IP header off what comes in there.
const TUNNELS: [u16; 3] = [768, 769, 776];
/// `ARPHRD_NONE`: bare IP headers, if it is a tun.
const NO_HEADER: u16 = 65534;

/// All devices of the calling thread's network namespace.
pub(crate) fn devices() -> io::Result<Vec<Device>> {
    let mut devices = Vec::new();
    dump(GET_LINK, &[0; INFO], |kind, message| {
        if kind == NEW_LINK {
            devices.extend(device(message));
        }
    })?;
    Ok(devices)
}

fn device(message: &[u8]) -> Option<Device> {
    let flags = word(message, 8)?;
    let hardware = half(message, 2)?;
    let mut device = Device {
        index: word(message, 4)?,
        up: flags & UP != 0,
        loopback: flags & LOOPBACK != 0,
        ethernet: ETHERNET.contains(&hardware),
        ..Device::default()
    };
    for (kind, value) in attributes(message.get(INFO..)?) {
        match kind {
            NAME => device.name = text(value),
            MASTER => device.master = word(value, 0)?,
            LINK_INFO => {
                let kind = attributes(value).find(|(kind, _)| *kind == INFO_KIND);
                device.kind = kind.map(|(_, value)| text(value)).unwrap_or_default();
            }
            _ => {}
        }
    }
    device.bare = TUNNELS.contains(&hardware) || hardware == NO_HEADER && device.kind == "tun";
    Some(device)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::rtnetlink::attribute;

    /// `struct ifinfomsg`, and attributes.
    fn message(kind: u16, index: u32, flags: u32, attributes: &[Vec<u8>]) -> Vec<u8> {
        let mut message = vec![0, 0];
        message.extend(kind.to_ne_bytes());
        message.extend([index, flags, 0].iter().flat_map(|word| word.to_ne_bytes()));
        message.extend(attributes.concat());
        message
    }

    #[test]
    fn messages_of_the_kernel_are_read() {
        let named = |index, name: &str| Device { index, name: name.into(), ..Device::default() };
        let lo = message(772, 1, 9, &[attribute(4, b"odd"), attribute(NAME, b"lo\0")]);
        let expected = Device { up: true, loopback: true, ethernet: true, ..named(1, "lo") };
        assert_eq!(device(&lo), Some(expected));
        let port = [attribute(NAME, b"port0\0"), attribute(MASTER, &7u32.to_ne_bytes())];
        let expected = Device { up: true, ethernet: true, master: 7, ..named(2, "port0") };
        assert_eq!(device(&message(1, 2, 1, &port)), Some(expected));
        let tunnel = [attribute(NAME, b"wg0\0"), attribute(MASTER, &[0; 4])];
        assert_eq!(device(&message(65534, 3, 0, &tunnel)), Some(named(3, "wg0")));
        for (hardware, kind, bare) in [
            (768, "ipip", true),
            (769, "ip6tnl", true),
            (776, "sit", true),
            (65534, "tun", true),
            (65534, "wireguard", false),
            (778, "gre", false),
        ] {
            let info = attribute(INFO_KIND, format!("{kind}\0").as_bytes());
            let tunnel = [attribute(NAME, b"t0\0"), attribute(LINK_INFO, &info)];
            let expected = Device { kind: kind.into(), bare, ..named(4, "t0") };
            assert_eq!(device(&message(hardware, 4, 0, &tunnel)), Some(expected));
        }
        let upper = [
            attribute(NAME, b"vrrp0\0"),
            attribute(LINK_INFO, &attribute(INFO_KIND, b"macvlan\0")),
        ];
        let upper = message(1, 7, 1, &upper);
        let expected = Device { up: true, ethernet: true, ..named(7, "vrrp0") };
        let expected = Device { kind: "macvlan".into(), ..expected };
        assert_eq!(device(&upper), Some(expected));
        for cut in 0..upper.len() {
            let _ = device(&upper[..cut]);
        }
    }

    #[test]
    fn this_machine_has_a_loopback() {
        let devices = devices().unwrap();
        assert!(devices.iter().any(|device| device.loopback && device.master == 0), "{devices:?}");
    }
}
