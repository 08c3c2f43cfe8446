//! How many connections without a socket there are, in all and of a client (`bpf/include/afpa/conn/client_count.h`).

use std::net::IpAddr;
use std::sync::atomic::Ordering;

use afpa_abi::{CLIENTS_COUNTED, HASH_PRIME, OPEN_STRIDE, address_bytes};

use crate::conn::admit::Clients;

impl Clients {
    /// Change [`Settings::client_connections`](crate::Settings::client_connections).
    pub fn set_client_connections(&self, most: u32) {
        self.region.client_connections().store(most, Ordering::Relaxed);
    }

    /// Connections without a socket that there are now. Costs no system call.
    pub fn without_socket(&self) -> usize {
        let words = self.connections.all().iter().skip(CLIENTS_COUNTED).step_by(OPEN_STRIDE);
        // A connection may begin on one processor and end on another: only the sum has a meaning.
        let open = words.fold(0u64, |sum, word| sum.wrapping_add(word.load(Ordering::Relaxed)));
        usize::try_from(open as i64).unwrap_or(0)
    }

    /// Counts the connections of the process before, which this one has taken over.
    pub(crate) fn begin_with(&self, open: usize) {
        self.connections.at(CLIENTS_COUNTED).fetch_add(open as u64, Ordering::Relaxed);
    }

    /// Connections without a socket that the client has now; an IPv6 client is its /64. Where there is no limit
    /// nothing is counted, and two clients in a hundred thousand are counted as none.
    pub fn connections_of(&self, client: IpAddr) -> u32 {
        let (place, tag) = locate(self.region.hash_seed().load(Ordering::Relaxed), client);
        let word = self.connections.at(place as usize).load(Ordering::Relaxed);
        if word >> 32 == tag { word as u32 } else { 0 }
    }
}

/// Where a client is counted, and under which tag.
fn locate(seed: u64, client: IpAddr) -> (u32, u64) {
    let bytes = address_bytes(client.to_canonical());
    let (network, host) = bytes.split_at(8);
    let word = |half: &[u8]| half.first_chunk().map_or(0, |half| u64::from_ne_bytes(*half));
    let (network, host) = (word(network), word(host));
    let hash = mix(mix(seed, network), if network == 0 { host } else { 0 });
    (hash as u32 & (CLIENTS_COUNTED as u32 - 1), hash >> 32 | 1)
}

fn mix(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(HASH_PRIME);
    hash ^ hash >> 32
}
