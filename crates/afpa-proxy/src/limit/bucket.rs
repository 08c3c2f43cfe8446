//! A token bucket as a single number (the generic cell rate algorithm): the time at which it would
//! be full again.

/// A bucket of tokens; full at first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket {
    full_at_ns: u64,
}

impl Bucket {
    /// Whether there is a token in a bucket that holds `burst` and gets `rate` a second; if not, the
    /// microseconds until there is one. With a rate of 0 there always is.
    pub(super) fn look(&self, now_us: u64, rate: u32, burst: u32) -> Result<(), u64> {
        let Some(interval) = interval_ns(rate) else { return Ok(()) };
        let missing = self.full_at_ns.saturating_sub(nanoseconds(now_us));
        let most = interval.saturating_mul(u64::from(burst.max(1)) - 1);
        match missing.checked_sub(most) {
            None | Some(0) => Ok(()),
            Some(wait_ns) => Err(wait_ns.div_ceil(1_000)),
        }
    }

    /// Takes a token.
    pub(super) fn take(&mut self, now_us: u64, rate: u32) {
        let Some(interval) = interval_ns(rate) else { return };
        self.full_at_ns = self.full_at_ns.max(nanoseconds(now_us)).saturating_add(interval);
    }

    /// Whether it is full, and so equal to a new one.
    pub(super) fn is_full(&self, now_us: u64) -> bool {
        self.full_at_ns <= nanoseconds(now_us)
    }

    /// The fuller of two has the smaller one.
    pub(super) fn full_at(&self) -> u64 {
        self.full_at_ns
    }
}

fn interval_ns(rate: u32) -> Option<u64> {
    1_000_000_000_u64.checked_div(u64::from(rate))
}

fn nanoseconds(us: u64) -> u64 {
    us.saturating_mul(1_000)
}
