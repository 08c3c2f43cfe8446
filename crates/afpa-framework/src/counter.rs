//! Counters that one core writes and every thread may read.

use std::sync::atomic::{AtomicU64, Ordering};

/// A count with a single writer: the core it belongs to.
///
/// Adding is a plain load and store, no read-modify-write: two writers would lose counts, so a
/// counter must never be shared between cores. Readers see a recent value.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`. Call only from the core that owns the counter.
    pub fn add(&self, n: u64) {
        let value = self.0.load(Ordering::Relaxed);
        self.0.store(value.wrapping_add(n), Ordering::Relaxed);
    }

    /// Takes `n` back; for gauges such as open connections.
    pub fn sub(&self, n: u64) {
        let value = self.0.load(Ordering::Relaxed);
        self.0.store(value.wrapping_sub(n), Ordering::Relaxed);
    }

    /// The value as last written.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
