//! The other end of a connection: its address, what a handshake has told of it, and the spans of its requests.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// A client, by its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// A TCP client.
    Ip(IpAddr),
    /// A client on a unix socket.
    Unix,
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address.
    pub client: Client,
    /// Its port; 0 on a unix socket.
    pub port: u16,
}

impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Self {
        Self { client: Client::Ip(address.ip().to_canonical()), port: address.port() }
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Client::Ip(address) => address.fmt(f),
            Client::Unix => f.write_str("unix:"),
        }
    }
}

/// The result of a TLS handshake with a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secured {
    /// `TLSv1.3` or `TLSv1.2`.
    pub version: &'static str,
    /// The cipher suite by its name in the registry of IANA.
    pub cipher: &'static str,
    /// Whether a session was resumed.
    pub resumed: bool,
    /// The protocol chosen by ALPN (RFC 7301).
    pub protocol: Option<Box<[u8]>>,
    /// The subject of the client's certificate (RFC 4514), which was verified.
    pub subject: Option<Box<str>>,
    /// A digest of the authorities whose certificates the client was asked for; `None`: it was not asked.
    pub authorities: Option<[u8; 32]>,
    /// The handshake is not complete: the bytes so far are early data, and may be a replay (RFC 8446, section 8).
    pub is_early: bool,
}

/// The numbers of a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanIds {
    /// The trace.
    pub trace: [u8; 16],
    /// The span of the request.
    pub own: [u8; 8],
    /// The span of the client that has asked; zeros if there is none.
    pub parent: [u8; 8],
    /// The span of the exchange with a server.
    pub exchange: [u8; 8],
}
