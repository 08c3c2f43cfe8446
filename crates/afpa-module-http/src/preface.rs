//! The PROXY protocol to servers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use afpa_framework::preface::written;
use afpa_proxy::request::RequestHead;
use afpa_proxy::select::Group;

/// The header of the PROXY protocol with which a connection to the group begins. It names nobody for a client on a unix
/// socket.
pub(crate) fn of(
    group: &Group,
    client: Option<IpAddr>,
    port: u16,
    listener: Option<SocketAddr>,
) -> Option<Arc<[u8]>> {
    let way = || Some(of_one_family(SocketAddr::new(client?, port), listener?));
    Some(written(group.preface()?, way()).into())
}

/// Has the server end a connection that begins with the header: it is of no use for another request.
pub(crate) fn end_after(group: &Group, head: &mut RequestHead) {
    if group.preface().is_some() && !head.asks_upgrade() {
        head.edit(&[], &[("Connection", b"close")]);
    }
}

/// Both ends of a connection, as the PROXY protocol has them.
fn of_one_family(from: SocketAddr, to: SocketAddr) -> (SocketAddr, SocketAddr) {
    let mapped = |v4: Ipv4Addr, port| SocketAddr::new(v4.to_ipv6_mapped().into(), port);
    match (from.ip(), to.ip()) {
        (IpAddr::V4(_), IpAddr::V6(any)) if any.is_unspecified() => {
            (from, SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), to.port()))
        }
        (IpAddr::V4(v4), IpAddr::V6(_)) => (mapped(v4, from.port()), to),
        (IpAddr::V6(_), IpAddr::V4(v4)) => (from, mapped(v4, to.port())),
        _ => (from, to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_of_the_family_of_the_client_if_that_can_be() {
        for (from, to, both) in [
            ("1.2.3.4:5", "10.0.0.1:80", "1.2.3.4:5 10.0.0.1:80"),
            ("1.2.3.4:5", "[::]:80", "1.2.3.4:5 0.0.0.0:80"),
            ("1.2.3.4:5", "[2001:db8::1]:80", "[::ffff:1.2.3.4]:5 [2001:db8::1]:80"),
            ("[2001:db8::7]:5", "[::]:80", "[2001:db8::7]:5 [::]:80"),
            ("[2001:db8::7]:5", "10.0.0.1:80", "[2001:db8::7]:5 [::ffff:10.0.0.1]:80"),
        ] {
            let (from, to) = of_one_family(from.parse().unwrap(), to.parse().unwrap());
            assert_eq!(format!("{from} {to}"), both);
        }
    }
}
