//! When a certificate is ordered anew, and how long is waited after a failure. Pure: the time is an argument, and so is
//! chance.

use std::time::Duration;

/// From when to when a certificate is valid: seconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// The first second.
    pub not_before: u64,
    /// The last second.
    pub not_after: u64,
}

/// When the authority would like to be asked for the next one (RFC 9773 section 4.2): seconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its begin.
    pub start: u64,
    /// Its end.
    pub end: u64,
}

/// Lifetimes below are short: their certificates are ordered anew when half of it is over, as Let's Encrypt asks.
const SHORT: u64 = 10 * 24 * 3600;

/// The second at which the next certificate is ordered. `chance`, below 1000, spreads the orders of many servers.
///
/// The authority's window decides, if there is one; a second in it is chosen by chance (RFC 9773 section 4.2). A
/// window that is over means: now, which is how an authority says that it will revoke the certificate. Without a window
/// it is at two thirds of the lifetime at the latest. In any case a twelfth of the lifetime is left for failures.
pub fn renewal_at(lifetime: Lifetime, window: Option<Window>, chance: u64) -> u64 {
    let chance = chance.min(999);
    let length = lifetime.not_after.saturating_sub(lifetime.not_before);
    let latest = lifetime.not_after.saturating_sub(length / 12);
    let chosen = match window.filter(|window| window.start <= window.end) {
        Some(Window { start, end }) => start.saturating_add(share(end - start, chance)),
        None => {
            let part = if length < SHORT { length / 2 } else { length - length / 3 };
            (lifetime.not_before.saturating_add(part)).saturating_sub(share(length / 24, chance))
        }
    };
    chosen.min(latest)
}

/// How long is waited after so many failures in a row: a minute, doubled each time, up to twelve hours, and up to a
/// quarter more by `chance`, below 1000. Five failures of a name in an hour are what Let's Encrypt permits.
pub fn pause_after(failures: u32, chance: u64) -> Duration {
    const MOST: u64 = 12 * 3600;
    let doubled = 60_u64.checked_shl(failures.saturating_sub(1).min(32)).unwrap_or(MOST);
    let pause = doubled.min(MOST);
    Duration::from_secs(pause + share(pause / 4, chance.min(999)))
}

fn share(of: u64, chance: u64) -> u64 {
    (u128::from(of) * u128::from(chance) / 1000) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DAY: u64 = 24 * 3600;
    const NINETY: Lifetime = Lifetime { not_before: 1_000_000, not_after: 1_000_000 + 90 * DAY };

    #[test]
    fn without_a_window_it_is_at_two_thirds_and_spread_to_the_front() {
        assert_eq!(renewal_at(NINETY, None, 0), 1_000_000 + 60 * DAY);
        assert!(renewal_at(NINETY, None, 999) > 1_000_000 + 56 * DAY);
        assert!(renewal_at(NINETY, None, 999) < 1_000_000 + 57 * DAY);
    }

    #[test]
    fn a_short_lifetime_is_renewed_when_half_of_it_is_over() {
        let six = Lifetime { not_before: 0, not_after: 6 * DAY };
        assert_eq!(renewal_at(six, None, 0), 3 * DAY);
    }

    #[test]
    fn the_window_of_the_authority_decides() {
        let window = Window { start: 2_000_000, end: 2_001_000 };
        assert_eq!(renewal_at(NINETY, Some(window), 500), 2_000_500);
        let over = Window { start: 10, end: 20 };
        assert!(renewal_at(NINETY, Some(over), 0) < NINETY.not_before, "revoked soon: now");
        let nonsense = Window { start: 20, end: 10 };
        assert_eq!(renewal_at(NINETY, Some(nonsense), 0), renewal_at(NINETY, None, 0));
    }

    #[test]
    fn a_window_behind_the_end_leaves_time_for_failures() {
        let late = Window { start: NINETY.not_after + DAY, end: u64::MAX };
        assert_eq!(renewal_at(NINETY, Some(late), 999), NINETY.not_after - 90 * DAY / 12);
    }

    #[test]
    fn pauses_double_up_to_half_a_day() {
        let minutes = |n| pause_after(n, 0).as_secs() / 60;
        assert_eq!([1, 2, 3, 4, 5].map(minutes), [1, 2, 4, 8, 16]);
        assert_eq!([10, 11, 40, u32::MAX].map(minutes), [512, 720, 720, 720]);
        assert_eq!(pause_after(1, 1000), Duration::from_secs(60 + 14));
        assert_eq!(minutes(0), 1, "no failure is no less than one");
    }

    proptest! {
        #[test]
        fn it_is_never_later_than_the_last_twelfth(
            not_before in any::<u64>(), length in any::<u64>(), chance in any::<u64>(),
            window in proptest::option::of((any::<u64>(), any::<u64>())),
        ) {
            let lifetime = Lifetime { not_before, not_after: not_before.saturating_add(length) };
            let window = window.map(|(start, end)| Window { start, end });
            let at = renewal_at(lifetime, window, chance);
            let length = lifetime.not_after - lifetime.not_before;
            prop_assert!(at <= lifetime.not_after - length / 12);
        }
    }
}
