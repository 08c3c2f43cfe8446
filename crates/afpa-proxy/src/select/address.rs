//! The address of a server: as it is configured, and as it is connected to.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

pub use afpa_framework::Address;

/// A server as the configuration names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServerAddress {
    /// An address that never changes.
    Fixed(Address),
    /// A host name, which is resolved periodically; each of its addresses is a server.
    Name {
        /// The name, without a dot at its end.
        host: String,
        /// The TCP port of all its addresses.
        port: u16,
    },
}

/// Why a text is not the address of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerAddressError {
    /// Neither `ADDRESS:PORT`, `NAME:PORT` nor `unix:/PATH`.
    #[error("a server is ADDRESS:PORT, [IPV6]:PORT, NAME:PORT or unix:/PATH")]
    Form,
    /// The path of a unix socket begins with `/` and has less than 108 bytes.
    #[error("the path of a unix socket begins with / and has at most 107 bytes")]
    Path,
    /// Port 0 cannot be connected to.
    #[error("the port must be 1 to 65535")]
    Port,
    /// Letters, digits, hyphens and dots; labels of at most 63, 253 in total.
    #[error("this is no host name")]
    Host,
}

impl FromStr for ServerAddress {
    type Err = ServerAddressError;

    fn from_str(text: &str) -> Result<Self, ServerAddressError> {
        if let Some(path) = text.strip_prefix("unix:") {
            let fits = path.starts_with('/') && path.len() <= 107 && !path.contains('\0');
            return match fits {
                true => Ok(ServerAddress::Fixed(Address::Unix(path.into()))),
                false => Err(ServerAddressError::Path),
            };
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return match address.port() {
                0 => Err(ServerAddressError::Port),
                _ => Ok(ServerAddress::Fixed(Address::Tcp(address))),
            };
        }
        let (host, port) = text.rsplit_once(':').ok_or(ServerAddressError::Form)?;
        if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ServerAddressError::Form);
        }
        let port = port.parse().ok().filter(|port| *port != 0).ok_or(ServerAddressError::Port)?;
        let host = host.strip_suffix('.').unwrap_or(host);
        match is_host_name(host) {
            true => Ok(ServerAddress::Name { host: host.to_ascii_lowercase(), port }),
            false => Err(ServerAddressError::Host),
        }
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerAddress::Fixed(address) => address.fmt(f),
            ServerAddress::Name { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// A host name by RFC 1123 section 2.1, or with underscores, which names in container networks have. A name
/// of nothing but digits and dots is refused: it is a mistyped address.
fn is_host_name(host: &str) -> bool {
    let label = |label: &str| {
        let ends = label.starts_with('-') || label.ends_with('-');
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=63).contains(&label.len()) && !ends && label.bytes().all(plain)
    };
    host.len() <= 253
        && host.split('.').all(label)
        && !host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_in_three_ways_and_shown_as_they_were_written() {
        for text in
            ["127.0.0.1:3000", "[::1]:80", "app.example:8080", "unix:/run/app.sock", "db_1:1"]
        {
            assert_eq!(text.parse::<ServerAddress>().unwrap().to_string(), text);
        }
        let place: ServerAddress = "App.Example.:80".parse().unwrap();
        assert_eq!(place, ServerAddress::Name { host: "app.example".to_owned(), port: 80 });
    }

    #[test]
    fn what_cannot_be_connected_to_is_refused() {
        for (text, error) in [
            ("", ServerAddressError::Form),
            ("localhost", ServerAddressError::Form),
            ("localhost:", ServerAddressError::Form),
            ("localhost:http", ServerAddressError::Form),
            ("localhost:0", ServerAddressError::Port),
            ("127.0.0.1:0", ServerAddressError::Port),
            ("127.0.0.1:70000", ServerAddressError::Port),
            ("127.0.0.256:80", ServerAddressError::Host),
            ("-a.example:80", ServerAddressError::Host),
            ("a..b:80", ServerAddressError::Host),
            ("a b:80", ServerAddressError::Host),
            ("http://a:80", ServerAddressError::Host),
            ("unix:run/app.sock", ServerAddressError::Path),
            ("unix:", ServerAddressError::Path),
        ] {
            assert_eq!(text.parse::<ServerAddress>(), Err(error), "{text}");
        }
    }
}
