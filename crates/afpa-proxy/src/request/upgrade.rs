//! Requests for another protocol (RFC 9110 section 7.8).

use afpa_h2::client::tunnel;
use afpa_http::{Method, Request};

use crate::websocket;

/// The wish of a request's Upgrade, by the servers that can be asked for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Upgrade {
    /// Nothing.
    #[default]
    None,
    /// Only HTTP/1.1 can express it: one of several protocols, or one by another method than GET.
    Http1,
    /// Servers of HTTP/2 can be asked for it, too (RFC 8441).
    Tunnel,
    /// As [`Upgrade::Tunnel`], but a WebSocket without a valid key, so AFPA could not answer for a server of HTTP/2.
    WithoutKey,
}

impl Upgrade {
    /// Classifies a request with this value of Upgrade.
    pub(super) fn of(request: &Request<'_, '_>, value: &[u8]) -> Self {
        match tunnel::Upgrade::of(value).filter(|_| request.method == Method::Get) {
            None => Self::Http1,
            Some(upgrade) if upgrade.is_websocket() && !has_key(request) => Self::WithoutKey,
            Some(_) => Self::Tunnel,
        }
    }
}

/// Whether there is one key, and one that is well-formed (RFC 6455 section 4.2.1).
fn has_key(request: &Request<'_, '_>) -> bool {
    let lines = request.fields().filter(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key"));
    let mut keys = lines.map(|(_, value)| value);
    keys.next().is_some_and(websocket::is_key) && keys.next().is_none()
}
