//! How many connections without a socket a client has (`bpf/include/afpa/conn/client_count.h`).

use std::net::IpAddr;
use std::sync::atomic::Ordering;

use afpa_abi::{CLIENTS_COUNTED, HASH_PRIME, address_bytes};

use crate::conn::admit::Clients;

impl Clients {
    /// Change [`Settings::client_connections`](crate::Settings::client_connections).
    pub fn set_client_connections(&self, most: u32) {
        self.region.client_connections().store(most, Ordering::Relaxed);
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
