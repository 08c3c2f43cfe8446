//! URLs whose answers could not be kept a short while ago. Requests for them do not wait for one another.

use std::sync::atomic::{AtomicU64, Ordering};

/// A table of fixed size: a URL has one place in it, from which another one may push it out. That costs a wait,
/// no more.
#[derive(Debug)]
pub(crate) struct Passes(Box<[AtomicU64]>);

const PLACES: usize = 1 << 14;
/// The lower bits hold the second at which the entry ends, the upper ones those of the hash.
const SECONDS: u64 = 0xffff_ffff;

impl Default for Passes {
    fn default() -> Self {
        Self((0..PLACES).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Passes {
    pub(crate) fn note(&self, hash: u64, until: u64) {
        if let Some(place) = self.place(hash) {
            place.store((hash & !SECONDS) | (until & SECONDS), Ordering::Relaxed);
        }
    }

    pub(crate) fn forget(&self, hash: u64) {
        let place = self.place(hash);
        let own = |place: &&AtomicU64| place.load(Ordering::Relaxed) & !SECONDS == hash & !SECONDS;
        if let Some(place) = place.filter(own) {
            place.store(0, Ordering::Relaxed);
        }
    }

    pub(crate) fn has(&self, hash: u64, now: u64) -> bool {
        let entry = self.place(hash).map_or(0, |place| place.load(Ordering::Relaxed));
        entry & !SECONDS == hash & !SECONDS && entry & SECONDS > now
    }

    fn place(&self, hash: u64) -> Option<&AtomicU64> {
        self.0.get(hash as usize & (PLACES - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_ends_and_belongs_to_one_url() {
        let passes = Passes::default();
        let (one, other) = (0xabcd_0000_0000_0001, 0xdcba_0000_0000_0001);
        passes.note(one, 10);
        assert!(passes.has(one, 9) && !passes.has(one, 10) && !passes.has(other, 9));
        passes.forget(other);
        assert!(passes.has(one, 9));
        passes.forget(one);
        assert!(!passes.has(one, 9));
    }
}
