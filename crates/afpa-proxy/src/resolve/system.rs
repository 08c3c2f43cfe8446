//! The system's own files about names. Pure: the text is passed in.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// The addresses that `/etc/hosts` has for `host`.
pub fn hosts(text: &str, host: &str) -> Vec<IpAddr> {
    let host = host.strip_suffix('.').unwrap_or(host);
    let mut addresses = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        let address = words.next().and_then(|word| word.parse().ok());
        let named = words.any(|name| name.eq_ignore_ascii_case(host));
        addresses.extend(address.filter(|address| named && !addresses.contains(address)));
    }
    addresses
}

/// The name servers of `/etc/resolv.conf`, at most three, as resolv.conf(5) has it.
pub fn name_servers(text: &str) -> Vec<SocketAddr> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next()).flatten()
    });
    lines.filter_map(name_server).take(3).collect()
}

/// An address; of IPv6 perhaps with the number of an interface.
fn name_server(text: &str) -> Option<SocketAddr> {
    const DNS: u16 = 53;
    if let Some((address, scope)) = text.split_once('%') {
        let (address, scope) = (address.parse::<Ipv6Addr>().ok()?, scope.parse().ok()?);
        return Some(SocketAddr::V6(SocketAddrV6::new(address, DNS, 0, scope)));
    }
    text.parse::<IpAddr>().ok().map(|address| SocketAddr::new(address, DNS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_hosts() {
        let text = "127.0.0.1\tlocalhost # this one\n::1 localhost ip6-localhost\n\
                    10.0.0.1 App.example app\n#10.0.0.2 app\nnonsense app\n10.0.0.1 app\n";
        assert_eq!(hosts(text, "LOCALHOST").len(), 2);
        assert_eq!(hosts(text, "app"), ["10.0.0.1".parse::<IpAddr>().unwrap()]);
        assert_eq!(hosts(text, "app.example."), ["10.0.0.1".parse::<IpAddr>().unwrap()]);
        assert!(hosts(text, "10.0.0.1").is_empty() && hosts(text, "this").is_empty());
    }

    #[test]
    fn name_servers_of_the_system() {
        let text = "# by hand\nsearch example\nnameserver 192.0.2.53\nnameserver fe80::1%2\n\
                    nameserver nowhere\n nameserver ::1\nnameserver 192.0.2.54\n";
        let expected = ["192.0.2.53:53", "[fe80::1%2]:53", "[::1]:53"];
        assert_eq!(
            name_servers(text).iter().map(ToString::to_string).collect::<Vec<_>>(),
            expected
        );
    }
}
