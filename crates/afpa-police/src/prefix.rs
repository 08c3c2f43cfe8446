//! Prefixes of addresses, one at a time or one a line.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use thiserror::Error;

/// The addresses that begin with the same bits. An IPv4 address that is written as an IPv6 one (`::ffff:10.0.0.1`) is the
/// IPv4 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

/// Why a text is no prefix, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotAPrefix {
    /// It has no address.
    #[error("\"{0}\" is neither an address nor a prefix")]
    Address(String),
    /// The number behind the slash is none, or too large.
    #[error("\"{text}\" has no number of bits from 0 to {most} behind its slash")]
    Bits {
        /// The text.
        text: String,
        /// The bits of an address of its family.
        most: u8,
    },
    /// Bits of the address stand behind the prefix.
    #[error("\"{text}\" has bits behind its prefix")]
    Behind {
        /// The text.
        text: String,
        /// The prefix alone.
        prefix: Prefix,
        /// The address alone.
        address: IpAddr,
    },
}

impl NotAPrefix {
    /// The advice that follows the error.
    pub fn remedy(&self) -> String {
        match self {
            NotAPrefix::Address(_) => {
                "write for example 192.0.2.0/24, 2001:db8::/32 or 192.0.2.7".to_owned()
            }
            NotAPrefix::Bits { most: 32, .. } => "write for example 192.0.2.0/24".to_owned(),
            NotAPrefix::Bits { .. } => "write for example 2001:db8::/32".to_owned(),
            NotAPrefix::Behind { prefix, address, .. } => {
                format!("write {prefix} for all of it, or {address} for the one address")
            }
        }
    }
}

impl Prefix {
    /// The first `bits` of an address. More than it has are all of them.
    pub fn of(address: IpAddr, bits: u8) -> Self {
        let (address, bits) = canonical(address, bits);
        let most = whole(address);
        let bits = bits.min(most);
        let address = match address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(u32::from(32 - bits)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from(u32::from(v4) & mask))
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(u32::from(128 - bits)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from(u128::from(v6) & mask))
            }
        };
        Self { address, bits }
    }

    /// Its first address.
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// How many bits of the address count.
    pub fn bits(self) -> u8 {
        self.bits
    }

    /// Whether an address begins with it.
    pub fn contains(self, address: IpAddr) -> bool {
        let (address, _) = canonical(address, 128);
        self.address.is_ipv4() == address.is_ipv4() && Self::of(address, self.bits) == self
    }
}

fn whole(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Fewer than 96 bits of a mapped address would be no prefix of IPv4 addresses.
fn canonical(address: IpAddr, bits: u8) -> (IpAddr, u8) {
    match (address, address.to_canonical()) {
        (IpAddr::V6(_), v4 @ IpAddr::V4(_)) if bits >= 96 => (v4, bits - 96),
        _ => (address, bits),
    }
}

impl FromStr for Prefix {
    type Err = NotAPrefix;

    fn from_str(text: &str) -> Result<Self, NotAPrefix> {
        let (before, digits) = match text.split_once('/') {
            Some((before, digits)) => (before, Some(digits)),
            None => (text, None),
        };
        let address: IpAddr = before.parse().map_err(|_| NotAPrefix::Address(text.to_owned()))?;
        let most = whole(address);
        let refused = || NotAPrefix::Bits { text: text.to_owned(), most };
        let bits = match digits {
            None => most,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().ok().filter(|bits| *bits <= most).ok_or_else(refused)?
            }
            Some(_) => return Err(refused()),
        };
        let prefix = Prefix::of(address, bits);
        if prefix != (Prefix { address: canonical(address, bits).0, bits: prefix.bits }) {
            return Err(NotAPrefix::Behind { text: text.to_owned(), prefix, address });
        }
        Ok(prefix)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.bits == whole(self.address) {
            self.address.fmt(f)
        } else {
            write!(f, "{}/{}", self.address, self.bits)
        }
    }
}

/// The prefixes of a file: one a line; `#` begins a comment. The error is the number of the first wrong line, from 1.
///
/// # Errors
/// With the number of the line, and its fault.
pub fn read_lines(text: &str) -> Result<Vec<Prefix>, (usize, NotAPrefix)> {
    let lines = (1..).zip(text.lines());
    let lines = lines.map(|(number, line)| (number, line.split('#').next().unwrap_or("").trim()));
    let prefixes = lines.filter(|(_, line)| !line.is_empty());
    prefixes.map(|(number, line)| line.parse().map_err(|why| (number, why))).collect()
}
