//! The rest of a [`Budget`]: a token bucket.

use crate::limits::Budget;

/// A bucket that was full at the beginning.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    of: Budget,
    /// Thousandths of a token.
    left: u64,
    filled_ms: u64,
}

impl Bucket {
    /// A full bucket.
    pub fn new(of: Budget) -> Self {
        Self { of, left: u64::from(of.burst) * 1000, filled_ms: 0 }
    }

    /// Takes a token; false if there is none.
    pub fn take(&mut self, now_ms: u64) -> bool {
        let full = u64::from(self.of.burst) * 1000;
        let since = now_ms.saturating_sub(self.filled_ms);
        let more = since.saturating_mul(u64::from(self.of.per_second));
        self.filled_ms = self.filled_ms.max(now_ms);
        self.left = self.left.saturating_add(more).min(full);
        match self.left.checked_sub(1000) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_as_many_as_time_brings() {
        let mut bucket = Bucket::new(Budget { burst: 3, per_second: 10 });
        assert!((0..3).all(|_| bucket.take(1_000_000)));
        assert!(!bucket.take(1_000_000));
        assert!(!bucket.take(1_000_099), "a hundredth of a second brings nothing");
        assert!(bucket.take(1_000_100) && !bucket.take(1_000_100));
        assert!(
            (0..3).all(|_| bucket.take(9_000_000)) && !bucket.take(9_000_000),
            "never more than the burst"
        );
        assert!(!bucket.take(5), "a clock that is set back brings nothing");
    }
}
