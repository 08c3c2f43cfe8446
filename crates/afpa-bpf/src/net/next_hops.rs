//! Which clients are behind which gateway: routes of this network namespace, as far as they are sure.
//!
//! A prefix is sure if every packet to it takes one gateway by one interface, from any sender: no rules but the usual
//! three, one route, one next hop, no encapsulation. All other prefixes are in the list as well, without a gateway,
//! because the longest prefix decides.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use afpa_abi::{NEXT_HOPS, ROUTES};
use afpa_police::Prefix;

use crate::net::rtnetlink::{attributes, dump, dump_while, word};

/// Prefixes, and the numbers of their gateways; 0: none that is sure.
pub(crate) type NextHops = BTreeMap<Prefix, u32>;

const NEW_RULE: u16 = 32;
const GET_RULE: u16 = 34;
const NEW_ROUTE: u16 = 24;
const GET_ROUTE: u16 = 26;
/// `struct rtmsg` and `struct fib_rule_hdr` have one length.
const INFO: usize = 12;

const LOCAL: u32 = 255;
const MAIN: u32 = 254;
const DEFAULT: u32 = 253;

/// Addresses that no client has, whatever the routes say.
const NOBODY: [&str; 9] = [
    "0.0.0.0/8",
    "127.0.0.0/8",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/8",
    "fe80::/10",
    "ff00::/8",
    "2002::/16",
    "64:ff9b::/96",
];

/// The next hops of the current network namespace. None: there are more than the kernel's table has room for.
pub(crate) fn of_this_namespace() -> io::Result<Option<NextHops>> {
    let mut list = List::default();
    dump(GET_RULE, &[0; INFO], |kind, message| {
        if kind == NEW_RULE && rule(message).is_none() {
            list.distrust(message.first().copied());
        }
    })?;
    // There may be a million routes, and a beat waits for this.
    dump_while(GET_ROUTE, &[0; INFO], |kind, message| {
        if kind == NEW_ROUTE {
            list.add(message);
        }
        list.routes.len() <= ROUTES
    })?;
    Ok(list.finish())
}

/// The routes and rules that were read so far.
#[derive(Default)]
struct List {
    routes: BTreeMap<Prefix, Option<Gateway>>,
    /// Rules of this family choose routes by more than the destination.
    distrusted: [bool; 2],
}

/// Interface and address.
type Gateway = (u32, Vec<u8>);

const V4: u8 = 2;
const V6: u8 = 10;

impl List {
    fn distrust(&mut self, family: Option<u8>) {
        match family {
            Some(V4) => self.distrusted[0] = true,
            Some(V6) => self.distrusted[1] = true,
            _ => {} // of multicast routing
        }
    }

    fn add(&mut self, message: &[u8]) {
        // A route that is not understood may concern every client of its family.
        match route(message) {
            Ok(Some((prefix, gateway))) if self.routes.len() <= ROUTES => self.put(prefix, gateway),
            Ok(_) => {}
            Err(Unclear) => self.distrust(message.first().copied()),
        }
    }

    fn put(&mut self, prefix: Prefix, gateway: Option<Gateway>) {
        match self.routes.entry(prefix) {
            Entry::Vacant(entry) => _ = entry.insert(gateway),
            Entry::Occupied(mut entry) => _ = entry.insert(None), // two routes to the same
        }
    }

    fn finish(mut self) -> Option<NextHops> {
        for prefix in NOBODY.iter().filter_map(|text| text.parse().ok()) {
            self.routes.insert(prefix, None);
        }
        if self.routes.len() > ROUTES / 2 {
            return None;
        }
        let mut numbers: BTreeMap<Gateway, u32> = BTreeMap::new();
        let mut hops = NextHops::new();
        for (prefix, gateway) in self.routes {
            let trusted = !self.distrusted[usize::from(prefix.address().is_ipv6())];
            let next = numbers.len() as u32 + 1;
            let number = match gateway.filter(|_| trusted) {
                Some(gateway) => *numbers.entry(gateway).or_insert(next),
                None => 0,
            };
            hops.insert(prefix, if number < NEXT_HOPS as u32 { number } else { 0 });
        }
        Some(hops)
    }
}

/// A message that was cut, or is of a kind that is not known.
struct Unclear;

/// Whether a rule is one of those that every host has: it sends everything to a table.
fn rule(message: &[u8]) -> Option<()> {
    const TO_TABLE: u8 = 1;
    const PRIORITY: u16 = 6;
    const SUPPRESS_LENGTH: u16 = 14;
    const TABLE: u16 = 15;
    const PROTOCOL: u16 = 21;
    let header = message.get(..INFO)?;
    let [_, to, from, tos, _, _, _, action, ..] = header else { return None };
    if (*to, *from, *tos, *action) != (0, 0, 0, TO_TABLE) || word(header, 8)? != 0 {
        return None;
    }
    let (mut priority, mut table) = (0, u32::from(*header.get(4)?));
    for (kind, value) in attributes(message.get(INFO..)?) {
        match kind {
            PRIORITY => priority = word(value, 0)?,
            TABLE => table = word(value, 0)?,
            SUPPRESS_LENGTH if word(value, 0)? == u32::MAX => {}
            PROTOCOL => {}
            _ => return None,
        }
    }
    let usual = [(0, LOCAL), (32_766, MAIN), (32_767, DEFAULT)];
    usual.contains(&(priority, table)).then_some(())
}

/// Prefix and gateway of a route. None: no packet of a server takes it.
fn route(message: &[u8]) -> Result<Option<(Prefix, Option<Gateway>)>, Unclear> {
    const UNICAST: u8 = 1;
    const CLONED: u32 = 0x200;
    const DEAD_OR_DOWN: u32 = 1 | 16;
    const DESTINATION: u16 = 1;
    const OUTGOING: u16 = 4;
    const GATEWAY: u16 = 5;
    const TABLE: u16 = 15;
    /// Attributes of a route that change nothing here: preferred source, priority, metrics, cache information, preference.
    const HARMLESS: [u16; 5] = [7, 6, 8, 12, 20];
    let header = message.get(..INFO).ok_or(Unclear)?;
    let [family, to, from, tos, table, _, _, kind, ..] = header else { return Err(Unclear) };
    let flags = word(header, 8).ok_or(Unclear)?;
    if (*family != V4 && *family != V6) || flags & CLONED != 0 {
        return Ok(None); // of multicast routing; an entry that the kernel cached for a single address
    }
    let mut sure = (*kind, *from, *tos) == (UNICAST, 0, 0) && flags & DEAD_OR_DOWN == 0;
    let (mut table, mut destination) = (u32::from(*table), None);
    let (mut outgoing, mut gateway) = (None, None);
    for (kind, value) in attributes(message.get(INFO..).ok_or(Unclear)?) {
        match kind {
            DESTINATION => destination = Some(value),
            OUTGOING => outgoing = word(value, 0),
            GATEWAY => gateway = Some(value.to_vec()),
            TABLE => table = word(value, 0).ok_or(Unclear)?,
            kind if HARMLESS.contains(&kind) => {}
            _ => sure = false, // several next hops, encapsulation, what is not known yet
        }
    }
    if ![MAIN, LOCAL, DEFAULT].contains(&table) {
        return Ok(None); // no rule leads there, or the family is not trusted
    }
    let address = address(*family, destination).ok_or(Unclear)?;
    let gateway = outgoing.zip(gateway).filter(|_| sure && table == MAIN);
    Ok(Some((Prefix::of(address, *to), gateway)))
}

fn address(family: u8, bytes: Option<&[u8]>) -> Option<IpAddr> {
    match (family, bytes) {
        (V4, None) => Some(Ipv4Addr::UNSPECIFIED.into()),
        (V4, Some(bytes)) => bytes.first_chunk::<4>().map(|bytes| (*bytes).into()),
        (_, None) => Some(Ipv6Addr::UNSPECIFIED.into()),
        (_, Some(bytes)) => bytes.first_chunk::<16>().map(|bytes| (*bytes).into()),
    }
}

#[cfg(test)]
mod tests {
    use afpa_testkit::Random;

    use super::*;
    use crate::net::rtnetlink::attribute;

    fn header(family: u8, bits: u8, table: u8, kind: u8) -> Vec<u8> {
        vec![family, bits, 0, 0, table, 0, 0, kind, 0, 0, 0, 0]
    }

    /// A route of IPv4: prefix, table, kind, then gateway and interface.
    fn v4(to: &str, table: u8, kind: u8, by: Option<([u8; 4], u32)>) -> Vec<u8> {
        let prefix: Prefix = to.parse().unwrap();
        let IpAddr::V4(address) = prefix.address() else { panic!("{to}") };
        let mut message = header(V4, prefix.bits(), table, kind);
        if prefix.bits() > 0 {
            message.extend(attribute(1, &address.octets()));
        }
        if let Some((gateway, interface)) = by {
            message.extend(attribute(5, &gateway));
            message.extend(attribute(4, &interface.to_ne_bytes()));
        }
        message
    }

    fn rule_of(family: u8, priority: u32, table: u8, more: &[u8]) -> Vec<u8> {
        let mut message = header(family, 0, table, 1);
        message.extend(attribute(6, &priority.to_ne_bytes()));
        message.extend(attribute(14, &u32::MAX.to_ne_bytes()));
        message.extend(more);
        message
    }

    fn listed(messages: &[Vec<u8>]) -> List {
        let mut list = List::default();
        messages.iter().for_each(|message| list.add(message));
        list
    }

    fn number(hops: &NextHops, prefix: &str) -> Option<u32> {
        hops.get(&prefix.parse().unwrap()).copied()
    }

    const FRONT: Option<([u8; 4], u32)> = Some(([192, 0, 2, 1], 2));

    #[test]
    fn one_gateway_has_one_number_and_what_has_none_has_0() {
        let mut multipath = v4("10.3.0.0/16", 254, 1, None);
        multipath.extend(attribute(9, &[0; 16]));
        let mut encapsulated = v4("10.4.0.0/16", 254, 1, FRONT);
        encapsulated.extend(attribute(21, &[0; 4]));
        let mut down = v4("10.5.0.0/16", 254, 1, FRONT);
        down[8] = 16;
        let hops = listed(&[
            v4("0.0.0.0/0", 254, 1, FRONT),
            v4("10.1.0.0/16", 254, 1, FRONT),
            v4("10.2.0.0/16", 254, 1, Some(([192, 0, 2, 9], 2))),
            v4("192.0.2.0/24", 254, 1, None),
            v4("192.0.2.7", 255, 2, None),
            v4("10.6.0.0/16", 254, 6, None),
            v4("10.7.0.0/16", 77, 1, FRONT),
            v4("10.8.0.0/16", 253, 1, FRONT),
            multipath,
            encapsulated,
            down,
        ]);
        let hops = hops.finish().expect("few");
        let front = number(&hops, "0.0.0.0/0").unwrap();
        assert_ne!(front, 0);
        assert_eq!(number(&hops, "10.1.0.0/16"), Some(front));
        let other = number(&hops, "10.2.0.0/16").unwrap();
        assert!(other != 0 && other != front);
        for unsure in [
            "192.0.2.0/24",
            "192.0.2.7",
            "10.3.0.0/16",
            "10.4.0.0/16",
            "10.5.0.0/16",
            "10.6.0.0/16",
            "10.8.0.0/16",
            "127.0.0.0/8",
            "224.0.0.0/4",
            "ff00::/8",
        ] {
            assert_eq!(number(&hops, unsure), Some(0), "{unsure}");
        }
        assert_eq!(number(&hops, "10.7.0.0/16"), None, "no rule leads there");
    }

    #[test]
    fn two_routes_to_the_same_are_not_sure() {
        let other = Some(([192, 0, 2, 9], 3));
        for second in [FRONT, other, None] {
            let list = listed(&[v4("0.0.0.0/0", 254, 1, FRONT), v4("0.0.0.0/0", 254, 1, second)]);
            assert_eq!(number(&list.finish().unwrap(), "0.0.0.0/0"), Some(0));
        }
    }

    #[test]
    fn rules_that_look_at_more_than_the_destination_leave_nothing_sure() {
        for (priority, table) in [(0, 255), (32_766, 254), (32_767, 253)] {
            assert!(rule(&rule_of(V4, priority, table, &[])).is_some());
        }
        let mut from = rule_of(V4, 32_766, 254, &[]);
        from[2] = 24;
        let mut inverted = rule_of(V4, 32_766, 254, &[]);
        inverted[8] = 2;
        for unusual in [
            rule_of(V4, 100, 254, &[]),
            rule_of(V4, 32_766, 77, &[]),
            rule_of(V4, 32_766, 254, &attribute(10, &[1, 0, 0, 0])),
            rule_of(V4, 32_766, 254, &attribute(3, b"eth0\0")),
            from,
            inverted,
        ] {
            assert!(rule(&unusual).is_none(), "{unusual:?}");
            let mut list = listed(&[v4("0.0.0.0/0", 254, 1, FRONT)]);
            list.distrust(unusual.first().copied());
            assert_eq!(number(&list.finish().unwrap(), "0.0.0.0/0"), Some(0));
        }
    }

    #[test]
    fn more_than_there_is_room_for_are_none() {
        let many = (0..5000u32)
            .map(|n| v4(&format!("{}/32", Ipv4Addr::from(0x0b00_0000 + n)), 254, 1, FRONT));
        assert!(listed(&many.collect::<Vec<_>>()).finish().is_none());
    }

    #[test]
    fn cut_and_broken_messages_make_nothing_sure_that_was_not() {
        let mut random = Random::new(Random::seed_or(5));
        let whole = v4("10.1.0.0/16", 254, 1, FRONT);
        for cut in 0..whole.len() {
            let mut list = listed(&[v4("0.0.0.0/0", 254, 1, FRONT), whole[..cut].to_vec()]);
            list.distrusted = [false; 2];
            assert_eq!(number(&list.finish().unwrap(), "10.1.0.0/16").unwrap_or(0), 0, "{cut}");
        }
        for _ in 0..2000 {
            let mut broken = [whole.clone(), rule_of(V4, 0, 255, &[])][random.below(2)].clone();
            let at = random.below(broken.len());
            broken[at] ^= 1 << random.below(8);
            let _ = rule(&broken);
            listed(&[broken]).finish();
        }
    }
}
