//! The time of an answer, and the date that is formatted as seldom as possible.

use afpa_cache::Millis;
use afpa_http::HttpDate;
use rustix::time::{ClockId, clock_gettime};

/// A date that is formatted when its second begins, or each time (JAWS: lazy time calculation).
#[derive(Debug)]
pub(crate) struct Date {
    lazy: bool,
    second: u64,
    text: HttpDate,
}

impl Date {
    pub(crate) fn new(lazy: bool) -> Self {
        Self { lazy, second: 0, text: HttpDate::new(0) }
    }

    /// The date of `second` since the Unix epoch.
    pub(crate) fn at(&mut self, second: u64) -> &HttpDate {
        if !self.lazy || second != self.second {
            (self.second, self.text) = (second, HttpDate::new(second));
        }
        &self.text
    }
}

/// Seconds since the Unix epoch, by the clock that costs a load and no more.
pub(crate) fn today() -> u64 {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    u64::try_from(now.tv_sec).unwrap_or(0)
}

/// A clock that never goes back.
pub(crate) fn now() -> Millis {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    Millis(u64::try_from(now.tv_sec * 1000 + now.tv_nsec / 1_000_000).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lazy_or_not_the_date_is_that_of_its_second() {
        for lazy in [true, false] {
            let mut date = Date::new(lazy);
            for second in [784_111_777, 784_111_777, 784_111_778, 0] {
                assert_eq!(date.at(second), &HttpDate::new(second));
            }
        }
    }
}
