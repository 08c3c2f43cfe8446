//! Zones: which edition of each is current, and until when its answers may be given. No I/O, no clock.
//!
//! An edition is the zone as long as its SOA record stays the same. It has a number of its own, by which pinned answers name it: the
//! end of the edition is the end of all of them, in one write.

use std::collections::{BTreeMap, VecDeque};

use afpa_bpf::dns::abi::{DNS_LEASE, DNS_ZONES};

/// Which zone: the number of the server's address, and the apex in wire form. Without one it stands for all of that server.
pub type ZoneName = (u32, Option<Vec<u8>>);

/// A word to write for the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Answers of the edition may be given until then.
    Lease(u32, u64),
    /// They may not be given any more.
    End(u32),
}

#[derive(Debug, Default)]
struct Zone {
    soa: Option<Vec<u8>>,
    /// Polls in a row that told of this SOA record, each sent after the one before was answered.
    agreed: u32,
    /// When the last of these was answered.
    heard: u64,
    /// The number of the current edition.
    edition: Option<u32>,
    /// When the last good poll was sent, of which several may be under way.
    good: u64,
}

/// All that are watched.
#[derive(Debug)]
pub struct Zones {
    zones: BTreeMap<ZoneName, Zone>,
    free: Vec<u32>,
    /// Numbers that programs may still use for a moment.
    fallow: VecDeque<(u64, u32)>,
    changes: u64,
}

/// An edition begins when so many polls in a row agree: servers that reload in a new process give old and new answers for a
/// moment.
const AGREE: u32 = 3;
/// How long a number rests, in nanoseconds.
pub const REST: u64 = 10_000_000_000;

impl Default for Zones {
    fn default() -> Self {
        let free = (1..DNS_ZONES as u32).rev().collect();
        Self { zones: BTreeMap::new(), free, fallow: VecDeque::new(), changes: 0 }
    }
}

impl Zones {
    /// Watches a zone from now on. False: there are too many.
    pub fn watch(&mut self, server: u32, apex: &[u8]) -> bool {
        let known = self.zones.contains_key(&(server, Some(apex.to_vec())));
        if !known && self.zones.len() >= DNS_ZONES / 4 {
            return false;
        }
        self.zones.entry((server, Some(apex.to_vec()))).or_default();
        self.zones.entry((server, None)).or_default();
        true
    }

    /// The zones to poll.
    pub fn watched(&self) -> Vec<(u32, Vec<u8>)> {
        let named = self.zones.keys().filter_map(|(server, apex)| Some((*server, apex.clone()?)));
        named.collect()
    }

    /// The number of the current edition.
    pub fn edition(&self, zone: &ZoneName) -> Option<u32> {
        self.zones.get(zone)?.edition
    }

    /// When the last poll was sent that told the current SOA record.
    pub fn last_poll(&self, zone: &ZoneName) -> u64 {
        self.zones.get(zone).map_or(0, |zone| zone.good)
    }

    /// How many zones are watched, how many of them have an edition, and how many editions have ended.
    pub fn standing(&self) -> (usize, usize, u64) {
        let named = || self.zones.iter().filter(|((_, apex), _)| apex.is_some());
        (named().count(), named().filter(|(_, zone)| zone.edition.is_some()).count(), self.changes)
    }

    /// A poll that was sent and answered at these times has told this, or nothing that can be used. Polls may be answered in another
    /// order than they were sent in.
    pub fn polled(
        &mut self,
        server: u32,
        apex: &[u8],
        (sent, now): (u64, u64),
        soa: Option<Vec<u8>>,
    ) -> Vec<Order> {
        let Some(zone) = self.zones.get_mut(&(server, Some(apex.to_vec()))) else {
            return Vec::new();
        };
        let Some(soa) = soa else { return Vec::new() };
        if zone.soa.as_ref() != Some(&soa) {
            let first = zone.soa.is_none();
            (zone.soa, zone.agreed, zone.heard) = (Some(soa), 1, now);
            let ended = zone.edition.take();
            let mut orders = Vec::new();
            if !first {
                orders.extend(ended.map(|edition| self.end(edition, now)));
                orders.extend(self.end_all_of(server, now));
            }
            return orders;
        }
        if sent >= zone.heard {
            (zone.agreed, zone.heard) = (zone.agreed.saturating_add(1), now);
        }
        zone.good = zone.good.max(sent);
        let good = zone.good;
        if zone.edition.is_none() && zone.agreed >= AGREE {
            zone.edition = self.free.pop();
        }
        let mut orders = Vec::new();
        orders.extend(zone.edition.map(|edition| Order::Lease(edition, good + DNS_LEASE as u64)));
        orders.extend(self.lease_all_of(server));
        orders
    }

    /// The pseudo-zone of a server lives from the oldest of the last good polls of all its zones.
    fn lease_all_of(&mut self, server: u32) -> Option<Order> {
        let named = |((of, apex), _): &(&ZoneName, &Zone)| *of == server && apex.is_some();
        let all = || self.zones.iter().filter(named).map(|(_, zone)| zone);
        let whole = all().all(|zone| zone.edition.is_some());
        let oldest = all().map(|zone| zone.good).min().filter(|_| whole)?;
        let zone = self.zones.get_mut(&(server, None))?;
        if zone.edition.is_none() {
            zone.edition = self.free.pop();
        }
        Some(Order::Lease(zone.edition?, oldest + DNS_LEASE as u64))
    }

    fn end_all_of(&mut self, server: u32, now: u64) -> Option<Order> {
        let edition = self.zones.get_mut(&(server, None))?.edition.take()?;
        Some(self.end(edition, now))
    }

    /// Ends the current editions of zones: of one, or of all.
    pub fn end_editions(&mut self, now: u64, apex: Option<&[u8]>) -> Vec<Order> {
        let mut ended = Vec::new();
        for ((_, name), zone) in &mut self.zones {
            if name.is_none() || apex.is_none() || name.as_deref() == apex {
                (zone.agreed, zone.heard) = (0, now);
                ended.extend(zone.edition.take());
            }
        }
        ended.into_iter().map(|edition| self.end(edition, now)).collect()
    }

    fn end(&mut self, edition: u32, now: u64) -> Order {
        self.changes += 1;
        self.fallow.push_back((now, edition));
        Order::End(edition)
    }

    /// Numbers that have rested, and that no answer names any more, are free.
    pub fn wake(&mut self, now: u64) {
        while let Some((since, number)) = self.fallow.front().copied()
            && now.saturating_sub(since) > REST
        {
            self.fallow.pop_front();
            self.free.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: u64 = DNS_LEASE as u64;

    fn poll(zones: &mut Zones, apex: &[u8], sent: u64, soa: Option<u8>) -> Vec<Order> {
        zones.polled(0, apex, (sent, sent), soa.map(|soa| vec![soa]))
    }

    #[test]
    fn an_edition_begins_when_polls_agree_and_ends_with_another_serial() {
        let mut zones = Zones::default();
        assert!(zones.watch(0, b"a"));
        assert_eq!(poll(&mut zones, b"a", 10, Some(1)), []);
        assert_eq!(poll(&mut zones, b"a", 20, Some(1)), []);
        let leases = [Order::Lease(1, 30 + LEASE), Order::Lease(2, 30 + LEASE)];
        assert_eq!(poll(&mut zones, b"a", 30, Some(1)), leases);
        assert_eq!(poll(&mut zones, b"a", 40, None), [], "silence renews nothing");
        assert_eq!(poll(&mut zones, b"a", 50, Some(2)), [Order::End(1), Order::End(2)]);
        assert_eq!(zones.edition(&(0, Some(b"a".to_vec()))), None);
        // Old and new for a moment.
        assert_eq!(poll(&mut zones, b"a", 60, Some(1)), []);
        for sent in [70, 80] {
            assert_eq!(poll(&mut zones, b"a", sent, Some(2)), []);
        }
        let leases = [Order::Lease(3, 90 + LEASE), Order::Lease(4, 90 + LEASE)];
        assert_eq!(poll(&mut zones, b"a", 90, Some(2)), leases);
    }

    #[test]
    fn polls_that_are_answered_at_once_or_out_of_order_are_no_agreement() {
        let mut zones = Zones::default();
        assert!(zones.watch(0, b"a"));
        let mut told = |sent, now, soa| zones.polled(0, b"a", (sent, now), Some(vec![soa]));
        for sent in [10, 20, 30, 40] {
            assert_eq!(told(sent, 50, 1), [], "the server was asleep");
        }
        assert_eq!(told(50, 60, 1), []);
        let leases = |sent| [Order::Lease(1, sent + LEASE), Order::Lease(2, sent + LEASE)];
        assert_eq!(told(60, 70, 1), leases(60));
        assert_eq!(told(90, 100, 1), leases(90));
        assert_eq!(told(80, 110, 1), leases(90), "no lease gets shorter");
        assert_eq!(told(85, 120, 2), [Order::End(1), Order::End(2)], "another one counts always");
        for sent in [90, 110] {
            assert_eq!(told(sent, 120, 2), [], "sent before that was known");
        }
    }

    #[test]
    fn answers_of_several_zones_live_as_long_as_all_of_them() {
        let mut zones = Zones::default();
        assert!(zones.watch(0, b"a") && zones.watch(0, b"b"));
        for sent in [10, 20, 30] {
            poll(&mut zones, b"a", sent, Some(1));
        }
        assert_eq!(zones.edition(&(0, None)), None, "nothing is known of b");
        for sent in [11, 21] {
            poll(&mut zones, b"b", sent, Some(1));
        }
        let orders = poll(&mut zones, b"b", 31, Some(1));
        assert_eq!(orders, [Order::Lease(2, 31 + LEASE), Order::Lease(3, 30 + LEASE)]);
        assert_eq!(poll(&mut zones, b"b", 41, Some(2)), [Order::End(2), Order::End(3)]);
        assert!(zones.edition(&(0, Some(b"a".to_vec()))).is_some());
    }

    #[test]
    fn numbers_rest_before_they_are_used_again() {
        let mut zones = Zones::default();
        let all = zones.free.len();
        zones.watch(0, b"a");
        for sent in [1, 2, 3] {
            poll(&mut zones, b"a", sent, Some(1));
        }
        assert_eq!(zones.end_editions(4, None).len(), 2);
        zones.wake(4 + REST);
        assert_eq!(zones.free.len(), all - 2);
        zones.wake(5 + REST);
        assert_eq!(zones.free.len(), all);
    }
}
