//! The devices by which routes leave.

use std::collections::BTreeMap;
use std::io;

use crate::net::rtnetlink::{attributes, dump, half, word};

const GET_ROUTE: u16 = 26;
const NEW_ROUTE: u16 = 24;
const INFO: usize = 12;
const UNICAST: u8 = 1;
const OUTGOING: u16 = 4;
const MULTIPATH: u16 = 9;
const ENCAPSULATION: u16 = 21;

/// Each device by which a unicast route of any table leaves, and whether some route by it encapsulates.
pub(super) fn devices() -> io::Result<Vec<(u32, bool)>> {
    let mut devices = BTreeMap::new();
    dump(GET_ROUTE, &[0; INFO], |kind, message| {
        if kind == NEW_ROUTE {
            route(message, &mut devices);
        }
    })?;
    Ok(devices.into_iter().collect())
}

pub(super) fn route(message: &[u8], devices: &mut BTreeMap<u32, bool>) -> Option<()> {
    if *message.get(7)? != UNICAST {
        return None;
    }
    let hop = message.get(INFO..)?;
    let encapsulates = |bytes| attributes(bytes).any(|(kind, _)| kind == ENCAPSULATION);
    for (kind, value) in attributes(hop) {
        match kind {
            OUTGOING => *devices.entry(word(value, 0)?).or_default() |= encapsulates(hop),
            MULTIPATH => {
                let mut hops = value;
                // `struct rtnexthop`, and its own attributes.
                while let Some(length) = half(hops, 0).map(usize::from).filter(|n| *n >= 8) {
                    let own = hops.get(8..length)?;
                    *devices.entry(word(hops, 4)?).or_default() |= encapsulates(own);
                    hops = hops.get(length.next_multiple_of(4)..).unwrap_or_default();
                }
            }
            _ => {}
        }
    }
    Some(())
}
