//! What a request needs to know of its server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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
    pub(super) wanted: Wanted,
}

/// Whether more requests are meant for a server: not while it drains, nor when it has left its group. Its
/// connections are worth keeping for so long.
#[derive(Clone, Debug)]
pub struct Wanted(Arc<AtomicBool>);

impl Default for Wanted {
    fn default() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }
}

impl Wanted {
    /// Whether it is, as far as is known here. Nothing else depends on the order in which it is seen.
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, wanted: bool) {
        self.0.store(wanted, Ordering::Relaxed);
    }
}

impl Target {
    /// `known` is the same server before a change of the settings.
    pub(super) fn new(
        known: Option<&Self>,
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
            id: known.map_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed), |known| known.id),
            wanted: known.map(|known| known.wanted.clone()).unwrap_or_default(),
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
