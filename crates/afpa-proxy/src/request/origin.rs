//! Where a request came from.

use std::net::IpAddr;

/// The origin of a request, for the fields that tell servers of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin<'a> {
    /// The address of the peer; none for one on a unix socket.
    pub client: Option<IpAddr>,
    /// The address of the client, as the routers in front name it that are believed.
    pub first: Option<IpAddr>,
    /// Whether the client is a trusted router in front, whose fields about its own clients are believed.
    pub trusted: bool,
    /// Whether its connection is one of TLS.
    pub secure: bool,
    /// The subject of its certificate (RFC 4514), which was verified.
    pub subject: Option<&'a str>,
    /// The request is passed on before the handshake of the client is complete.
    pub is_early: bool,
}
