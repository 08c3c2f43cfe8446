//! The options of a UDP socket of QUIC: as quinn-udp has them, without the time at which each datagram came.
//!
//! Nobody here asks for that time. A single socket that wants it has Linux read the clock for every packet that the machine
//! receives, those of TCP and of the fast path as well, until that socket is closed: to take the option back does not end it.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use nix::sys::socket::{setsockopt, sockopt};
use quinn_udp::UdpSocketState;
use rustix::net::sockopt as options;
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use socket2::{Domain, Socket, Type};

/// Sets the options, and returns what quinn-udp knows of such a socket. It finds that out by another one, which is closed at once.
///
/// # Errors
/// The system refuses one of them, but for what not every system has: large buffers of datagrams (GRO).
pub(super) fn prepare(socket: &UdpSocket) -> io::Result<UdpSocketState> {
    let address = socket.local_addr()?;
    socket.set_nonblocking(true)?;
    let like_it = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    let is_v6 = address.is_ipv6();
    let takes_v4 = !is_v6 || !options::ipv6_v6only(socket)?;
    if is_v6 {
        like_it.set_only_v6(!takes_v4)?;
    }
    let state = UdpSocketState::new((&like_it).into())?;
    if takes_v4 {
        options::set_ip_recvtos(socket, true)?;
    }
    // Of IPv6, too: an address may be one of IPv4.
    if !state.may_fragment() {
        options::set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::PROBE)?;
    }
    match address {
        SocketAddr::V4(_) => setsockopt(socket, sockopt::Ipv4PacketInfo, &true)?,
        SocketAddr::V6(_) => {
            setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &true)?;
            options::set_ipv6_recvtclass(socket, true)?;
            if !state.may_fragment() {
                options::set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::PROBE)?;
                setsockopt(socket, sockopt::Ipv6DontFrag, &true)?;
            }
        }
    }
    let _ = setsockopt(socket, sockopt::UdpGroSegment, &true);
    Ok(state)
}

#[cfg(test)]
mod tests {
    use nix::sys::socket::getsockopt;

    use super::*;

    /// The options of a socket, as numbers; -1: the system does not know one.
    fn told(socket: &UdpSocket) -> Vec<(&'static str, i32)> {
        let is = |set: nix::Result<bool>| set.map_or(-1, i32::from);
        let also = |set: rustix::io::Result<bool>| set.map_or(-1, i32::from);
        let mut all = vec![
            ("GRO", is(getsockopt(socket, sockopt::UdpGroSegment))),
            ("TOS", also(options::ip_recvtos(socket))),
            ("MTU", options::ip_mtu_discover(socket).map_or(-1, Ipv4PathMtuDiscovery::as_raw)),
        ];
        match socket.local_addr().expect("an address") {
            SocketAddr::V4(_) => {
                all.push(("packet", is(getsockopt(socket, sockopt::Ipv4PacketInfo))));
            }
            SocketAddr::V6(_) => all.extend([
                ("packet", is(getsockopt(socket, sockopt::Ipv6RecvPacketInfo))),
                ("class", also(options::ipv6_recvtclass(socket))),
                ("fragments", is(getsockopt(socket, sockopt::Ipv6DontFrag))),
                (
                    "MTU",
                    options::ipv6_mtu_discover(socket).map_or(-1, Ipv6PathMtuDiscovery::as_raw),
                ),
            ]),
        }
        all
    }

    #[test]
    fn a_socket_is_as_quinn_udp_has_it_but_for_the_time_of_each_datagram() {
        for address in ["127.0.0.1:0", "[::]:0", "[::1]:0"] {
            let bound = || UdpSocket::bind(address);
            // There may be no IPv6 here.
            let (Ok(ours), Ok(its)) = (bound(), bound()) else { continue };
            let state = prepare(&ours).expect("prepared");
            let by_it = UdpSocketState::new((&its).into()).expect("prepared");
            assert_eq!(told(&ours), told(&its), "{address}");
            assert_eq!(state.may_fragment(), by_it.may_fragment());
            assert_eq!(state.max_gso_segments(), by_it.max_gso_segments());
            assert_eq!(state.gro_segments(), by_it.gro_segments());
            let times = |socket: &UdpSocket| getsockopt(socket, sockopt::ReceiveTimestampns);
            assert_eq!((times(&ours), times(&its)), (Ok(false), Ok(true)), "{address}");
        }
    }
}
