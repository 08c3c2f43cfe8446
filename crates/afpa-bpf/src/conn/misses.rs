//! Requests that go to attached servers: those for targets that are not pinned, and unsafe ones.

use std::sync::atomic::Ordering;

use afpa_abi::{Miss, UNSAFE_ANY, UNSAFE_BITS};

use crate::conn::SiteNumber;
use crate::conn::reports::Reports;
use crate::net::sum::path_hash;
use crate::ring::Ring;

/// The reader of misses.
pub type Misses<'f> = Ring<'f, Missed>;

/// A request for a target that is not pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missed {
    /// The site that its Host selects.
    pub site: SiteNumber,
    /// Its target.
    pub target: Vec<u8>,
    /// Which client sent it: an address of IPv4, or a /64 of IPv6, as a number.
    pub client: u64,
}

/// The client behind an address, as it stands in keys: a /64 of IPv6 is one client, which may use all its addresses.
fn client_of(address: &[u8; 16]) -> u64 {
    let half = |at: usize| address.iter().skip(at).take(8).fold(0, |n, b| n << 8 | u64::from(*b));
    if half(0) == 0 { half(8) } else { half(0) }
}

impl Reports {
    /// From now on requests for targets that are not pinned are reported ([`misses`](Self::misses)), and unsafe ones
    /// noted ([`noted`](Self::noted)). So that all are seen, no connection is bypassed unread.
    pub fn note_requests(&self) {
        self.region.notes_requests().store(1, Ordering::SeqCst);
    }

    /// Opens the stream of requests for targets that are not pinned. Programs do not wake the reader: it
    /// must poll. A request that finds the buffer full is not reported.
    pub fn misses(&self) -> libbpf_rs::Result<Misses<'_>> {
        Ring::of(&self.misses, |bytes| {
            let miss = Miss::from_bytes(bytes)?;
            let path = miss.path.get(..miss.path_length as usize)?;
            let (site, client) = (miss.site, client_of(&miss.client));
            Some(Missed { site, target: path.to_vec(), client })
        })
    }

    /// Until when an unsafe request for this target, or its response, was on its way: nanoseconds of the clock of
    /// [`monotonic_ns`](crate::monotonic_ns), which may be yet to come; 0: there was none. Other targets may share the
    /// place of the note, and one that may be for any target counts for all.
    pub fn noted(&self, path: &[u8]) -> u64 {
        let seed = self.region.hash_seed().load(Ordering::Relaxed);
        let place = (path_hash(seed, path) >> (64 - UNSAFE_BITS)) as usize;
        let at = |place| self.marks.at(place).load(Ordering::SeqCst);
        at(place).max(at(UNSAFE_ANY))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use super::client_of;

    fn client(text: &str) -> u64 {
        client_of(&match text.parse().unwrap() {
            IpAddr::V4(v4) => Ipv4Addr::to_ipv6_mapped(&v4).octets(),
            IpAddr::V6(v6) => Ipv6Addr::octets(&v6),
        })
    }

    #[test]
    fn who_has_many_addresses_of_a_network_is_one_client() {
        assert_ne!(client("192.0.2.1"), client("192.0.2.2"));
        assert_eq!(client("2001:db8::1"), client("2001:db8::ffff:2"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
        assert_ne!(client("192.0.2.1"), client("2001:db8::1"));
    }
}
