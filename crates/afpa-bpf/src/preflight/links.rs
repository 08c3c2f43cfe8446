//! Network devices, with what decides whether the programs can be right on them.

use std::io;

use crate::net::rtnetlink::{dump, half, word};

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
    /// What it is, if it is virtual: `bridge`, `macvlan`, `wireguard`, ...
    pub kind: String,
    /// The number of the bridge, bond or the like of which it is a port; 0: none.
    pub master: u32,
    /// The number of the device that it stands on, in this network namespace; 0: none.
    pub lower: u32,
    /// Whether `lower` is in another network namespace, as that of a container's veth.
    pub lower_elsewhere: bool,
    /// Longest segment that is sent to it, and that it delivers, of IPv6.
    pub gso_max: u32,
    /// See `gso_max`.
    pub gro_max: u32,
}

const GET_LINK: u16 = 18;
const NEW_LINK: u16 = 16;
const INFO: usize = 16;
const NAME: u16 = 3;
const LINK: u16 = 5;
const MASTER: u16 = 10;
const LINK_INFO: u16 = 18;
const INFO_KIND: u16 = 1;
const NET_NAMESPACE: u16 = 37;
const GSO_MAX: u16 = 41;
const GRO_MAX: u16 = 58;
const UP: u32 = 1;
const LOOPBACK: u32 = 8;
/// `ARPHRD_ETHER`, `ARPHRD_LOOPBACK`
const ETHERNET: [u16; 2] = [1, 772];

/// All devices of the calling thread's network namespace.
pub(super) fn devices() -> io::Result<Vec<Device>> {
    let mut devices = Vec::new();
    dump(GET_LINK, &[0; INFO], |kind, message| {
        if kind == NEW_LINK {
            devices.extend(device(message));
        }
    })?;
    Ok(devices)
}

pub(super) fn device(message: &[u8]) -> Option<Device> {
    let flags = word(message, 8)?;
    let mut device = Device {
        index: word(message, 4)?,
        up: flags & UP != 0,
        loopback: flags & LOOPBACK != 0,
        ethernet: ETHERNET.contains(&half(message, 2)?),
        ..Device::default()
    };
    for (kind, value) in attributes(message.get(INFO..)?) {
        match kind {
            NAME => device.name = text(value),
            LINK => device.lower = word(value, 0)?,
            MASTER => device.master = word(value, 0)?,
            NET_NAMESPACE => device.lower_elsewhere = true,
            GSO_MAX => device.gso_max = word(value, 0)?,
            GRO_MAX => device.gro_max = word(value, 0)?,
            LINK_INFO => {
                let kind = attributes(value).find(|(kind, _)| *kind == INFO_KIND);
                device.kind = kind.map(|(_, value)| text(value)).unwrap_or_default();
            }
            _ => {}
        }
    }
    Some(device)
}

/// Kinds and values of netlink attributes.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(half(bytes, 0)?);
        let value = bytes.get(4..length)?;
        // The two highest bits say how the value is made.
        let kind = half(bytes, 2)? & 0x3fff;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}
