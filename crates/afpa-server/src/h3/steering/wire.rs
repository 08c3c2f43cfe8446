//! Datagrams on the way from one process to another.
//!
//! ```text
//! 1 | ECN | address of the socket (23) | address of the client (23) | local address (17) | the datagram
//!   address: family, 4 or 6 | address (16) | port (2) | scope (4)        local address: family, or 0 | address (16)
//! ```

use std::io::IoSlice;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::AsFd;

use quinn_proto::EcnCodepoint;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use super::super::socket::Arrived;
use super::inbox::Datagram;

const KIND: u8 = 1;
const ADDRESS: usize = 23;
const LOCAL: usize = 17;
const HEAD: usize = 2 + 2 * ADDRESS + LOCAL;

/// Bytes of the longest message.
pub(super) const LONGEST: usize = HEAD + 64 * 1024;

pub(super) fn send(
    to: impl AsFd,
    socket: SocketAddr,
    arrived: Arrived,
    bytes: &[u8],
) -> rustix::io::Result<()> {
    let head = head(socket, arrived);
    let parts = [IoSlice::new(&head), IoSlice::new(bytes)];
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(to, &parts, &mut SendAncillaryBuffer::default(), flags).map(drop)
}

fn head(socket: SocketAddr, Arrived { from, to, ecn }: Arrived) -> Vec<u8> {
    let mut head = Vec::with_capacity(HEAD);
    head.extend([KIND, ecn.map_or(0, |ecn| ecn as u8)]);
    for address in [socket, from] {
        put_ip(&mut head, Some(address.ip()));
        head.extend(address.port().to_be_bytes());
        let scope = match address {
            SocketAddr::V4(_) => 0,
            SocketAddr::V6(address) => address.scope_id(),
        };
        head.extend(scope.to_be_bytes());
    }
    put_ip(&mut head, to);
    head
}

fn put_ip(out: &mut Vec<u8>, ip: Option<IpAddr>) {
    let (family, bytes) = match ip {
        None => (0, [0; 16]),
        Some(IpAddr::V4(ip)) => (4, ip.to_ipv6_mapped().octets()),
        Some(IpAddr::V6(ip)) => (6, ip.octets()),
    };
    out.push(family);
    out.extend(bytes);
}

/// `None`: it is no such message.
pub(super) fn read(message: &[u8]) -> Option<Datagram> {
    let (head, bytes) = message.split_at_checked(HEAD)?;
    let [KIND, ecn, rest @ ..] = head else { return None };
    let (socket, rest) = rest.split_at_checked(ADDRESS)?;
    let (from, to) = rest.split_at_checked(ADDRESS)?;
    let arrived = Arrived { from: address(from)?, to: ip(to)?, ecn: EcnCodepoint::from_bits(*ecn) };
    Some(Datagram { socket: address(socket)?, arrived, bytes: bytes.to_vec() })
}

fn address(bytes: &[u8]) -> Option<SocketAddr> {
    let (of_ip, rest) = bytes.split_at_checked(LOCAL)?;
    let (port, scope) = rest.split_at_checked(2)?;
    let port = u16::from_be_bytes(port.try_into().ok()?);
    let scope = u32::from_be_bytes(scope.try_into().ok()?);
    Some(match ip(of_ip)?? {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), port),
        IpAddr::V6(ip) => SocketAddrV6::new(ip, port, 0, scope).into(),
    })
}

fn ip(bytes: &[u8]) -> Option<Option<IpAddr>> {
    let (family, octets) = bytes.split_first()?;
    let ip = Ipv6Addr::from(<[u8; 16]>::try_from(octets).ok()?);
    match family {
        0 => Some(None),
        4 => Some(Some(ip.to_ipv4_mapped()?.into())),
        6 => Some(Some(ip.into())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_arrives_as_it_was() {
        let all = ["127.0.0.1:443", "[2001:db8::1]:8443", "[fe80::1%7]:1"];
        let all = all.map(|text| text.parse::<SocketAddr>().expect("an address"));
        for (at, socket) in all.into_iter().enumerate() {
            let from = all[(at + 1) % all.len()];
            for to in [None, Some(from.ip())] {
                for ecn in [None, Some(EcnCodepoint::Ect0), Some(EcnCodepoint::Ce)] {
                    let arrived = Arrived { from, to, ecn };
                    let mut message = head(socket, arrived);
                    message.extend_from_slice(b"a packet");
                    let read = read(&message).expect("a datagram");
                    assert_eq!((read.socket, read.arrived.from), (socket, from));
                    assert_eq!((read.arrived.to, read.arrived.ecn), (to, ecn));
                    assert_eq!(read.bytes, b"a packet");
                }
            }
        }
    }

    #[test]
    fn other_messages_are_none() {
        let from = "127.0.0.1:1".parse().expect("an address");
        let whole = head(from, Arrived { from, to: None, ecn: None });
        assert!(read(&whole).is_some());
        for cut in 0..whole.len() {
            assert!(read(&whole[..cut]).is_none());
        }
        for at in [0, 2, 2 + ADDRESS, 2 + 2 * ADDRESS] {
            let mut wrong = whole.clone();
            wrong[at] = 9;
            assert!(read(&wrong).is_none(), "{at}");
        }
    }
}
