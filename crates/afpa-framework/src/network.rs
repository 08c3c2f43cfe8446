//! Address ranges, such as those of machines that are trusted.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An address and the number of its leading bits that count. An IPv4 address that is written as an
/// IPv6 one (`::ffff:10.0.0.1`) is the IPv4 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// A text that is neither an address nor `ADDRESS/BITS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotANetwork;

impl Network {
    /// Whether it contains an address.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => same_head(
                u128::from(u32::from(own)) << 96,
                u128::from(u32::from(other)) << 96,
                self.bits,
            ),
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                same_head(u128::from(own), u128::from(other), self.bits)
            }
            _ => false,
        }
    }
}

fn same_head(a: u128, b: u128, bits: u8) -> bool {
    (a ^ b).leading_zeros() >= u32::from(bits)
}

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NotANetwork)?;
        let whole = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => whole,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_| NotANetwork)?
            }
            Some(_) => return Err(NotANetwork),
        };
        if bits > whole {
            return Err(NotANetwork);
        }
        Ok(match (address, address.to_canonical()) {
            // Fewer than 96 bits of a mapped address would be no range of IPv4 addresses.
            (IpAddr::V6(_), canonical @ IpAddr::V4(_)) if bits >= 96 => {
                Network { address: canonical, bits: bits - 96 }
            }
            _ => Network { address, bits },
        })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = if self.address.is_ipv4() { 32 } else { 128 };
        if self.bits == whole {
            self.address.fmt(f)
        } else {
            write!(f, "{}/{}", self.address, self.bits)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_its_addresses_and_no_others() {
        for (network, inside, outside) in [
            (
                "10.0.0.0/8",
                &["10.0.0.0", "10.255.1.2", "::ffff:10.1.1.1"][..],
                &["11.0.0.0", "::a"][..],
            ),
            ("127.0.0.1", &["127.0.0.1"], &["127.0.0.2", "::1"]),
            ("0.0.0.0/0", &["1.2.3.4"], &["::1"]),
            ("::/0", &["::1", "fe80::1"], &["1.2.3.4"]),
            ("2001:db8::/33", &["2001:db8::1", "2001:db8:7fff::"], &["2001:db8:8000::"]),
            ("::ffff:10.0.0.0/104", &["10.9.9.9"], &["11.0.0.0"]),
        ] {
            let network: Network = network.parse().unwrap();
            for address in inside {
                assert!(network.contains(address.parse().unwrap()), "{network} {address}");
            }
            for address in outside {
                assert!(!network.contains(address.parse().unwrap()), "{network} {address}");
            }
            assert_eq!(network.to_string().parse(), Ok(network));
        }
    }

    #[test]
    fn other_texts_are_none() {
        for text in
            ["", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/+8", "::/129", "a", "10/8"]
        {
            assert_eq!(text.parse::<Network>(), Err(NotANetwork), "{text}");
        }
    }
}
