//! Messages that clients can cause as often as they like.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Lets so many messages of a kind pass in a while, and counts the others.
///
/// ```text
/// static REFUSED: Seldom = Seldom::new();
/// if let Some(more) = REFUSED.admit(steady_ms()) { tracing::warn!(more, "..."); }
/// ```
#[derive(Debug)]
pub struct Seldom {
    period: AtomicU64,
    said: AtomicU32,
    unsaid: AtomicU64,
}

impl Seldom {
    /// Messages in a period.
    pub const MOST: u32 = 5;

    /// Length of a period.
    pub const PERIOD_MS: u64 = 10_000;

    /// Nothing was said yet.
    pub const fn new() -> Self {
        Self { period: AtomicU64::new(0), said: AtomicU32::new(0), unsaid: AtomicU64::new(0) }
    }

    /// Whether a message may pass at `now_ms`; then, how many have not since the last one.
    pub fn admit(&self, now_ms: u64) -> Option<u64> {
        let period = now_ms / Self::PERIOD_MS + 1;
        if self.period.swap(period, Ordering::Relaxed) != period {
            self.said.store(0, Ordering::Relaxed);
        }
        if self.said.load(Ordering::Relaxed) >= Self::MOST {
            self.unsaid.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.said.fetch_add(1, Ordering::Relaxed);
        Some(self.unsaid.swap(0, Ordering::Relaxed))
    }
}

impl Default for Seldom {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_messages_pass_in_a_period_and_the_others_are_counted() {
        let seldom = Seldom::new();
        let passed = |at: u64, count: u64| (0..count).filter_map(|_| seldom.admit(at)).collect();
        let first: Vec<u64> = passed(0, 100);
        assert_eq!(first, [0; Seldom::MOST as usize]);
        let second: Vec<u64> = passed(Seldom::PERIOD_MS, 7);
        assert_eq!(second.first(), Some(&(100 - u64::from(Seldom::MOST))));
        assert_eq!(second.len(), Seldom::MOST as usize);
        assert_eq!(passed(Seldom::PERIOD_MS * 2, 1), [2_u64]);
    }
}
