//! Finds the client of a request that came through routers in front (X-Forwarded-For).

use std::net::{IpAddr, SocketAddr};

use afpa_framework::Network;

/// The client of a request that came from `peer`. If the peer is trusted, this is the last address in the
/// X-Forwarded-For lines that is not one of `trusted`: each router appends the address that it got the request
/// from, and an untrusted machine may have made up everything before its own address. An entry that cannot be
/// read ends the search; the client is then the router that appended it.
pub fn client<'a>(
    lines: impl Iterator<Item = &'a [u8]>,
    peer: IpAddr,
    trusted: &[Network],
) -> IpAddr {
    let is_trusted = |address| trusted.iter().any(|network| network.contains(address));
    if !is_trusted(peer) {
        return peer;
    }
    // The last untrusted address. If there is none, the first router of an unbroken chain of trusted ones.
    let (mut untrusted, mut farthest) = (None, None);
    for entry in lines.flat_map(|line| line.split(|&byte| byte == b',')) {
        match address(entry.trim_ascii()) {
            Some(address) if is_trusted(address) => farthest = farthest.or(Some(address)),
            Some(address) => untrusted = Some(address),
            None => (untrusted, farthest) = (None, None),
        }
    }
    untrusted.or(farthest).unwrap_or(peer)
}

/// An address alone, in brackets, or with a port.
fn address(entry: &[u8]) -> Option<IpAddr> {
    // No address is longer than one of IPv6 with brackets, zone and port.
    let text = entry.get(..64).map_or_else(|| str::from_utf8(entry).ok(), |_| None)?;
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().ok().or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()));
    address.map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(lines: &[&str], peer: &str) -> String {
        let trusted = ["10.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()];
        let lines = lines.iter().map(|line| line.as_bytes());
        client(lines, peer.parse().unwrap(), &trusted).to_string()
    }

    #[test]
    fn a_stranger_is_who_connects_whatever_it_says() {
        assert_eq!(seen(&["1.1.1.1"], "9.9.9.9"), "9.9.9.9");
    }

    #[test]
    fn behind_routers_it_is_the_last_address_that_is_none_of_them() {
        for (lines, client) in [
            (&["1.1.1.1"][..], "1.1.1.1"),
            (&["6.6.6.6, 1.1.1.1"], "1.1.1.1"),
            (&["6.6.6.6", "1.1.1.1, 10.0.0.2"], "1.1.1.1"),
            (&["1.1.1.1:4711, [::1]:80"], "1.1.1.1"),
            (&["[2001:db8::1]"], "2001:db8::1"),
            (&["2001:db8::1,10.0.0.2,10.0.0.3"], "2001:db8::1"),
            (&["::ffff:1.1.1.1"], "1.1.1.1"),
            (&["10.0.0.2, 10.0.0.3"], "10.0.0.2"),
        ] {
            assert_eq!(seen(lines, "10.0.0.9"), client, "{lines:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_ends_the_search() {
        for (lines, client) in [
            (&[][..], "10.0.0.9"),
            (&[""], "10.0.0.9"),
            (&["unknown"], "10.0.0.9"),
            (&["1.1.1.1, unknown"], "10.0.0.9"),
            (&["1.1.1.1, unknown, 10.0.0.2"], "10.0.0.2"),
            (&["unknown, 1.1.1.1"], "1.1.1.1"),
            (&["1.1.1.1,"], "10.0.0.9"),
        ] {
            assert_eq!(seen(lines, "10.0.0.9"), client, "{lines:?}");
        }
        let long = "1".repeat(100);
        assert_eq!(seen(&[&long], "10.0.0.9"), "10.0.0.9");
    }
}
