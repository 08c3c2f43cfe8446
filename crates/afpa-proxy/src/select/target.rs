//! The server of a lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::address::Address;
use super::cookie::{self, SetCookie};
use super::tally::Tally;

/// The identity of a server; the same address in another group is another one.
#[derive(Debug)]
pub(super) struct Target {
    /// Never used twice during the life of the process.
    pub(super) id: u64,
    pub(super) address: Address,
    /// For the ring: it stays the same when the name changes.
    pub(super) address_text: String,
    /// For logs and metrics.
    pub(super) name: String,
    pub(super) cookie: [u8; cookie::LENGTH],
    pub(super) set_cookie: SetCookie,
    pub(super) wanted: Wanted,
    pub(super) tally: Tally,
}

/// Whether a server will get more requests: not while it drains, nor when it has left its group. Idle
/// connections are kept only as long as it will.
#[derive(Clone, Debug)]
pub struct Wanted(Arc<AtomicBool>);

impl Default for Wanted {
    fn default() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }
}

impl Wanted {
    /// Whether it is, as far as this core has seen. No other memory is read by this, so the order does not
    /// matter.
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
        set_cookie: SetCookie,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            id: known.map_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed), |known| known.id),
            wanted: known.map(|known| known.wanted.clone()).unwrap_or_default(),
            tally: known.map(|known| known.tally.clone()).unwrap_or_default(),
            address_text: address.to_string(),
            address,
            name,
            cookie,
            set_cookie,
        }
    }

    /// Whether `name` means this server: as it is configured, by its address, or both as logs have them.
    pub(super) fn is_called(&self, name: &str) -> bool {
        let place = self.name.split_once(' ').map(|(place, _)| place);
        name == self.name || name == self.address_text || place == Some(name)
    }
}
