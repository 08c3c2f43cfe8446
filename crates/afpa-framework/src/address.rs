//! Addresses of sockets.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Where connections come to or are made to: `ADDR:PORT` or `unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// An internet address and port.
    Tcp(SocketAddr),
    /// A unix socket in the file system.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                "" => Err("`unix:` needs a path behind it, as in unix:/run/site.sock".into()),
                path => Ok(Address::Unix(path.into())),
            };
        }
        text.parse().map(Address::Tcp).map_err(|_| {
            format!("`{text}` is neither ADDR:PORT (127.0.0.1:8080, [::]:80) nor unix:PATH")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_written() {
        for text in ["127.0.0.1:8080", "[::1]:80", "unix:/run/a.sock"] {
            assert_eq!(text.parse::<Address>().expect(text).to_string(), text);
        }
        for text in ["8080", "localhost", "unix:", ""] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
