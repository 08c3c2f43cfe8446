//! A token bucket in one word (the generic cell rate algorithm): the time at which it would be full again, behind the
//! tag of its client. `bpf/include/afpa/conn/police.h` computes the same.

use std::sync::atomic::{AtomicU64, Ordering};

use afpa_abi::{POLICE_TICK_SHIFT, POLICE_TIME_BITS, POLICE_TRIES};

use crate::limits::Rate;

/// A rate in ticks of the buckets' clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Between two tokens; 0: no limit.
    pub interval: u64,
    /// Until an empty bucket is full.
    pub tolerance: u64,
}

const SECOND: u64 = 1_000_000_000 >> POLICE_TICK_SHIFT;
/// A bucket that would be full so much later than any rate allows is not from this round of the clock.
const SLACK: u64 = SECOND;
const UNUSED: u32 = 64 - POLICE_TIME_BITS as u32;
const TIME: u64 = u64::MAX >> UNUSED;

/// The clock of the buckets, from monotonic nanoseconds.
pub(crate) fn ticks(monotonic_ns: u64) -> u64 {
    monotonic_ns >> POLICE_TICK_SHIFT
}

/// The tag of a word.
pub(crate) fn tag(word: u64) -> u64 {
    word >> POLICE_TIME_BITS
}

impl Pace {
    /// The pace of a rate, with `more` tokens' worth of seconds in a full bucket.
    pub(crate) fn new(rate: Rate, more_seconds: u64) -> Self {
        let Some(interval) = SECOND.checked_div(rate.per_second.into()) else {
            return Self::default();
        };
        let interval = interval.max(1);
        let tolerance = interval * u64::from(rate.burst.max(1)) + SECOND * more_seconds;
        Self { interval, tolerance }
    }

    /// The pace of so many tokens in a period of seconds.
    pub(crate) fn of_period(count: u32, period: u32, burst: u32) -> Self {
        let interval = SECOND * u64::from(period) / u64::from(count.max(1));
        let interval = interval.max(1);
        Self { interval, tolerance: interval * u64::from(burst.max(1)) }
    }

    /// Seconds until the bucket in `word`, which has none, has a token; at least 1.
    pub(crate) fn seconds_to_token(self, word: &AtomicU64, now: u64) -> u64 {
        let missing = self.missing(word.load(Ordering::Relaxed), now);
        let wait = (missing + self.interval).saturating_sub(self.tolerance);
        wait.div_ceil(SECOND).max(1)
    }

    /// A share of this pace, in per cent. An empty bucket of the share is full after the same time, and holds at least
    /// two tokens, so that no token is lost between two connections. A share of 0 has no bucket.
    pub(crate) fn share(self, percent: u8) -> Self {
        let percent = u64::from(percent.min(100));
        let Some(interval) = (self.interval * 100).checked_div(percent) else {
            return Self::default();
        };
        Self { interval, tolerance: self.tolerance.max(2 * interval) }
    }

    /// The most that may be missing in a bucket that was charged beyond its tokens: twice its size, and a second for
    /// rounding.
    fn debt(self) -> u64 {
        2 * self.tolerance + SLACK
    }

    /// Whether there is a limit.
    pub fn limits(self) -> bool {
        self.interval != 0
    }

    /// Ticks until the bucket in `word` is full.
    pub(crate) fn missing(self, word: u64, now: u64) -> u64 {
        let missing = (word.wrapping_sub(now) << UNUSED) as i64 >> UNUSED;
        match u64::try_from(missing) {
            Ok(missing) if missing <= self.debt() => missing,
            _ => 0,
        }
    }

    /// Takes a token out of the bucket of `tag` in `word`. A bucket of another tag in that word is replaced.
    pub(crate) fn take(self, word: &AtomicU64, tag: u64, now: u64) -> bool {
        for _ in 0..POLICE_TRIES {
            let seen = word.load(Ordering::Relaxed);
            let missing = if self::tag(seen) == tag { self.missing(seen, now) } else { 0 };
            if missing + self.interval > self.tolerance {
                return false;
            }
            let full = tag << POLICE_TIME_BITS | (now + missing + self.interval) & TIME;
            if word.compare_exchange(seen, full, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return true;
            }
        }
        false // so many take at once that there cannot be enough for all
    }
    /// Takes a token even from an empty bucket, up to [`debt`](Self::debt). When many threads race for the word, the
    /// token may stay uncharged.
    pub(crate) fn charge(self, word: &AtomicU64, tag: u64, now: u64) {
        for _ in 0..POLICE_TRIES {
            let seen = word.load(Ordering::Relaxed);
            let missing = if self::tag(seen) == tag { self.missing(seen, now) } else { 0 };
            let missing = missing + self.interval;
            let full = tag << POLICE_TIME_BITS | (now + missing) & TIME;
            if missing > self.debt()
                || word.compare_exchange(seen, full, Ordering::Relaxed, Ordering::Relaxed).is_ok()
            {
                return;
            }
        }
    }
}
