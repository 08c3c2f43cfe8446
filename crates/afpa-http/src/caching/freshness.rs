//! Freshness (section 4.2): how long a response is fresh, and how old it is.

use super::control::{LONGEST, bounded};
use super::facts::{Expires, ResponseFacts};
use super::store::is_heuristically_cacheable;

/// How a lifetime is found where the response says nothing (section 4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heuristic {
    /// Per cent of the time since Last-Modified.
    pub percent: u64,
    /// At most so many seconds.
    pub longest: u64,
}

impl Default for Heuristic {
    /// The fraction that section 4.2.2 calls typical, up to a day.
    fn default() -> Self {
        Self { percent: 10, longest: 24 * 3600 }
    }
}

/// How old a response was when it came, and when that was. Both clocks are the cache's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Its age then (section 4.2.3, `corrected_initial_age`).
    pub initial_age: u32,
    /// By a clock that never goes back, in seconds from its start, of which a `u32` counts 136 years.
    pub at: u32,
}

impl Arrival {
    /// The arrival of a response that was asked for at `asked_steady` and arrived at `now_steady`, by the clock that
    /// never goes back, and at `now_unix`, by the one on the wall. The delay is counted in the seconds by which its age
    /// goes on: so it has its whole age at the latest when so much time has passed since it was asked for.
    pub fn of(facts: &ResponseFacts, asked_steady: u64, now_unix: u64, now_steady: u64) -> Self {
        let apparent = facts.date.map_or(0, |date| now_unix.saturating_sub(date));
        let delay = now_steady.saturating_sub(asked_steady);
        let corrected = facts.age.saturating_add(delay);
        Self::at_age(apparent.max(corrected), now_steady)
    }

    /// The arrival of a response that was so old at `now_steady`.
    pub fn at_age(age: u64, now_steady: u64) -> Self {
        Self { initial_age: bounded(age), at: u32::try_from(now_steady).unwrap_or(u32::MAX) }
    }

    /// `current_age` (section 4.2.3) at `now_steady`.
    pub fn age(&self, now_steady: u64) -> u64 {
        u64::from(self.initial_age)
            .saturating_add(now_steady.saturating_sub(self.at.into()))
            .min(LONGEST)
    }
}

/// The Age of a response that is sent again without a new head: the number cannot get longer there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenAge {
    /// How many digits it has.
    pub digits: u32,
    /// The age from which on that head cannot be sent: the response is not fresh any more, or the number has a digit more.
    pub until: u64,
}

impl WrittenAge {
    /// Of a response that is so old, and fresh for so many seconds.
    pub fn of(age: u64, lifetime: u64) -> Self {
        let digits = digits(age);
        Self { digits, until: lifetime.min(10_u64.saturating_pow(digits)) }
    }
}

/// Digits of a number as fields write it.
pub fn digits(number: u64) -> u32 {
    number.checked_ilog10().unwrap_or(0) + 1
}

/// `freshness_lifetime` (section 4.2.1) of a response that came at `now_unix`: by `s-maxage`, `max-age`,
/// Expires, or else by the heuristic, if one is wanted and the response may have one.
pub fn lifetime(facts: &ResponseFacts, now_unix: u64, heuristic: Option<Heuristic>) -> u64 {
    if let Some(seconds) = facts.control.s_maxage.or(facts.control.max_age) {
        return seconds.into();
    }
    let date = facts.date.unwrap_or(now_unix);
    match facts.expires {
        Expires::At(at) => return at.saturating_sub(date).min(LONGEST),
        Expires::Past => return 0,
        Expires::Absent => {}
    }
    let may = is_heuristically_cacheable(facts.status) || facts.control.public;
    match (heuristic, facts.last_modified) {
        (Some(heuristic), Some(modified)) if may => {
            let since = date.saturating_sub(modified);
            (since / 100)
                .saturating_mul(heuristic.percent)
                .saturating_add(since % 100 * heuristic.percent / 100)
                .min(heuristic.longest)
        }
        _ => 0,
    }
}
