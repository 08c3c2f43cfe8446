//! What a request needs to know of its server.

use std::sync::atomic::{AtomicU64, Ordering};

use super::address::Address;
use super::cookie;

/// The identity of a server; the same address in another group is another one.
#[derive(Debug)]
pub(super) struct Target {
    /// Never used twice in the life of the process.
    pub(super) id: u64,
    pub(super) address: Address,
    /// For the ring: stays when the name changes.
    pub(super) address_text: String,
    /// For logs and metrics.
    pub(super) name: String,
    pub(super) cookie: [u8; cookie::LENGTH],
    /// The value of a Set-Cookie field (RFC 6265, section 4.1).
    pub(super) set_cookie: Vec<u8>,
}

impl Target {
    pub(super) fn new(
        id: Option<u64>,
        address: Address,
        name: String,
        cookie: [u8; cookie::LENGTH],
        cookie_name: &str,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let mut set_cookie = format!("{cookie_name}=").into_bytes();
        set_cookie.extend_from_slice(&cookie);
        set_cookie.extend_from_slice(b"; Path=/; HttpOnly; SameSite=Lax");
        Self {
            id: id.unwrap_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed)),
            address_text: address.to_string(),
            address,
            name,
            cookie,
            set_cookie,
        }
    }
    /// Whether somebody may mean it by `name`: its configured place, its address, or both as logs have
    /// them.
    pub(super) fn is_called(&self, name: &str) -> bool {
        let place = self.name.split_once(' ').map(|(place, _)| place);
        name == self.name || name == self.address_text || place == Some(name)
    }
}
