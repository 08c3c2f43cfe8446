//! The identity of a client, for limits and shares.

use std::net::IpAddr;

/// A client: an IPv4 address, or the /64 network of an IPv6 address, because one client has a whole network
/// of 2^64 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Client(u64, bool);

impl From<IpAddr> for Client {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Client(u64::from(v4.to_bits()), true),
            IpAddr::V6(v6) => Client((v6.to_bits() >> 64) as u64, false),
        }
    }
}
