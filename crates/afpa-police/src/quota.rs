//! Rates of places: so many requests in a second, minute or hour, of each client or of all together.
//!
//! One table has the buckets of the clients of all places. It never grows; where a set of its words has more active
//! clients than words, the fullest bucket gives way, as in the table of the police.

use std::fmt;
use std::net::IpAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use afpa_abi::{POLICE_SETS, POLICE_TIME_BITS, POLICE_WAYS};

use crate::bucket::{Pace, tag, ticks};
use crate::limits::{Limits, Rate};
use crate::table::{Masks, hash};

/// How often something may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quota {
    /// How often in each period; 1 to [`Rate::MOST`].
    pub count: u32,
    /// Seconds of a period: 1, 60 or 3600.
    pub period: u32,
    /// How much may happen at once. At least 1.
    pub burst: u32,
}

impl Quota {
    /// Seconds until an empty bucket is full, rounded up. At most [`Rate::LONGEST_SECONDS`].
    pub fn seconds(self) -> u64 {
        let all = u64::from(self.burst) * u64::from(self.period);
        all.div_ceil(u64::from(self.count.max(1)))
    }

    fn pace(self) -> Pace {
        Pace::of_period(self.count, self.period, self.burst)
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.period {
            1 => "s",
            60 => "m",
            _ => "h",
        };
        write!(f, "{}/{unit}", self.count)?;
        if self.burst == self.count { Ok(()) } else { write!(f, " burst {}", self.burst) }
    }
}

/// The buckets of the clients of all places.
#[derive(Debug, Default)]
pub struct QuotaTable {
    words: OnceLock<Box<[AtomicU64]>>,
    seed: u64,
}

/// The clients that have buckets of their own at a time.
const CLIENTS: usize = POLICE_SETS * POLICE_WAYS;

impl QuotaTable {
    /// A table that takes its memory when it is first used. `seed` is the secret of the hash of clients.
    pub fn new(seed: u64) -> Self {
        Self { words: OnceLock::new(), seed }
    }

    /// Takes a token of the client's bucket of a place.
    ///
    /// # Errors
    /// With the seconds until there is one.
    pub fn take(
        &self,
        place: u64,
        client: IpAddr,
        quota: Quota,
        steady_ns: u64,
    ) -> Result<(), u64> {
        let Limits { ipv4_bits, ipv6_bits, .. } = Limits::default();
        let masks = Masks::new(ipv4_bits, ipv6_bits);
        let hash = hash(self.seed ^ place, client.to_canonical(), masks);
        let tag_of_client = hash >> POLICE_TIME_BITS | 1;
        let words = self.words.get_or_init(|| (0..CLIENTS).map(|_| AtomicU64::new(0)).collect());
        let set = hash as usize % POLICE_SETS * POLICE_WAYS;
        let set = words.get(set..).and_then(|rest| rest.get(..POLICE_WAYS)).unwrap_or_default();
        let now = ticks(steady_ns);
        let Some(word) = word_of(set, tag_of_client, now) else { return Ok(()) };
        take(word, tag_of_client, quota.pace(), now)
    }
}

/// The client's own word, or the first of the fullest. Buckets of different rates are compared by the time until each is
/// full.
fn word_of(set: &[AtomicU64], tag_of_client: u64, now: u64) -> Option<&AtomicU64> {
    let slowest = Pace::of_period(1, Rate::LONGEST_SECONDS, 1);
    let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
    let own = set.iter().find(|word| tag(read(word)) == tag_of_client);
    own.or_else(|| set.iter().min_by_key(|word| slowest.missing(read(word), now)))
}

fn take(word: &AtomicU64, tag: u64, pace: Pace, now: u64) -> Result<(), u64> {
    if pace.take(word, tag, now) { Ok(()) } else { Err(pace.seconds_to_token(word, now)) }
}

/// The bucket that all clients of a place share.
#[derive(Debug)]
pub struct SharedQuota {
    quota: Quota,
    word: AtomicU64,
}

impl SharedQuota {
    /// A full one.
    pub const fn new(quota: Quota) -> Self {
        Self { quota, word: AtomicU64::new(0) }
    }

    /// Takes a token.
    ///
    /// # Errors
    /// With the seconds until there is one.
    pub fn take(&self, steady_ns: u64) -> Result<(), u64> {
        take(&self.word, 1, self.quota.pace(), ticks(steady_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    /// A clock has been going for a while.
    const START: u64 = 1000 * SECOND;

    fn quota(count: u32, period: u32, burst: u32) -> Quota {
        Quota { count, period, burst }
    }

    fn client(number: u32) -> IpAddr {
        IpAddr::V4((0x0a00_0000 + number).into())
    }

    #[test]
    fn a_client_has_its_burst_and_then_its_rate_in_each_place() {
        let table = QuotaTable::new(7);
        let quota = quota(5, 60, 3);
        let take = |place, number, at| table.take(place, client(number), quota, at);
        for _ in 0..3 {
            assert_eq!(take(1, 1, START), Ok(()));
        }
        assert_eq!(take(1, 1, START), Err(12), "a token in 12 seconds");
        assert_eq!(take(1, 1, START + 11 * SECOND), Err(1));
        assert_eq!((take(2, 1, START), take(1, 2, START)), (Ok(()), Ok(())));
        assert_eq!(take(1, 1, START + 12 * SECOND), Ok(()));
        assert_eq!(take(1, 1, START + 12 * SECOND), Err(12));
        assert_eq!(take(1, 1, START + 3600 * SECOND), Ok(()), "it is full again");
        let v6 =
            |text: &str| table.take(1, text.parse().unwrap(), Quota { burst: 1, ..quota }, START);
        assert_eq!(v6("2001:db8::1"), Ok(()));
        assert!(v6("2001:db8::2").is_err(), "a /64 is one client");
        assert_eq!(v6("2001:db8:0:1::1"), Ok(()));
        assert_eq!(
            table.take(1, "::ffff:10.0.0.9".parse().unwrap(), Quota { burst: 1, ..quota }, START),
            Ok(())
        );
        assert!(table.take(1, client(9), Quota { burst: 1, ..quota }, START).is_err());
    }

    #[test]
    fn the_fastest_and_the_slowest_rate_are_exact() {
        let fast = SharedQuota::new(quota(Rate::MOST, 1, 1));
        assert_eq!(fast.take(START), Ok(()));
        assert_eq!(fast.take(START + 500), Err(1));
        assert_eq!(fast.take(START + 1100), Ok(()));
        let slow = SharedQuota::new(quota(1, 3600, 1));
        assert_eq!((slow.take(START), slow.take(START)), (Ok(()), Err(3600)));
        assert_eq!(slow.take(START + 3599 * SECOND), Err(1));
        assert_eq!(slow.take(START + 3600 * SECOND), Ok(()));
    }

    #[test]
    fn many_clients_of_a_fast_place_do_not_make_a_slow_one_forget_its_own() {
        let table = QuotaTable::new(7);
        let login = quota(1, 3600, 1);
        assert_eq!(table.take(1, client(0), login, START), Ok(()));
        let page = quota(100, 1, 100);
        for number in 0..4 * CLIENTS as u32 {
            let _ = table.take(2, client(number), page, START);
        }
        assert!(table.take(1, client(0), login, START).is_err());
    }

    #[test]
    fn it_is_shown_as_it_is_written() {
        assert_eq!(quota(5, 1, 5).to_string(), "5/s");
        assert_eq!(quota(300, 60, 10).to_string(), "300/m burst 10");
        assert_eq!((quota(5, 3600, 5).seconds(), quota(7, 1, 8).seconds()), (3600, 2));
    }
}
