//! Hot keys of one machine, and how many owners each should have.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A hot key, as one of its owners tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hot {
    /// The hash of the key.
    pub key: u64,
    /// How many owners it should have.
    pub owners: u8,
}

/// Counts the uses of keys that this machine owns. Its memory is of fixed size, and a use costs the look at four counters: keys
/// that are seldom used push one another out and are never hot (Misra and Gries 1982), so a key is hot if it says so here, and
/// some that are as well may be missing.
#[derive(Debug)]
pub struct Heat {
    rows: Box<[[Counter; WAYS]]>,
    /// The last time that it was read.
    read: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    key: u64,
    /// Uses since the last reading.
    uses: u32,
    /// Owners that it has; 0: it is not hot.
    owners: u8,
    /// Since when it is quiet.
    quiet: Option<Duration>,
}

const ROWS: usize = 256;
const WAYS: usize = 4;

/// Hot keys that one machine tells.
pub(crate) const MOST_TOLD: usize = 64;

/// A key is hot from this part of an average machine's uses on.
const HOT_PART: f64 = 64.0;

/// A key that is used less often is not worth a second copy, however little there is to do.
const LEAST_A_SECOND: f64 = 16.0;

/// It is quiet below this part of that: above a third, the growth of two owners to three would be taken back.
const QUIET_PART: f64 = 4.0;

/// How long it is quiet until it has an owner less (LARD's K).
const QUIET_FOR: Duration = Duration::from_secs(20);

impl Heat {
    /// Nothing is hot.
    pub fn new(now: Duration) -> Self {
        Self { rows: vec![<[Counter; WAYS]>::default(); ROWS].into(), read: now }
    }

    /// A key was used, by a client of this machine or by another machine.
    pub fn used(&mut self, key: u64) {
        let row = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - ROWS.trailing_zeros());
        let Some(row) = self.rows.get_mut(row as usize) else { return };
        if let Some(own) = row.iter_mut().find(|one| one.key == key && one.is_taken()) {
            own.uses = own.uses.saturating_add(1);
            return;
        }
        let seldom = row.iter_mut().filter(|one| one.owners == 0).min_by_key(|one| one.uses);
        let Some(seldom) = seldom else { return };
        match seldom.uses.checked_sub(1) {
            Some(uses) => seldom.uses = uses,
            None => *seldom = Counter { key, uses: 1, ..Counter::default() },
        }
    }

    /// The hot keys, and begins to count anew: once a second. `mean`: the uses in a second of all keys at one machine, on the
    /// average of the fleet; `machines`: how many there are.
    pub fn read(&mut self, mean: f64, machines: usize, now: Duration) -> Vec<Hot> {
        let seconds = now.saturating_sub(self.read).as_secs_f64().max(0.001);
        self.read = now;
        let hot_from = (mean / HOT_PART).max(LEAST_A_SECOND);
        let most = u8::try_from(machines.min(super::MOST)).unwrap_or(u8::MAX);
        let mut hot = Vec::new();
        for counter in self.rows.iter_mut().flatten() {
            let rate = f64::from(std::mem::take(&mut counter.uses)) / seconds;
            counter.judge((rate, hot_from), most, now);
            if counter.owners > 1 {
                hot.push((rate, Hot { key: counter.key, owners: counter.owners }));
            }
        }
        hot.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        hot.truncate(MOST_TOLD);
        hot.into_iter().map(|(_, hot)| hot).collect()
    }
}

impl Counter {
    fn is_taken(&self) -> bool {
        self.uses > 0 || self.owners > 0
    }

    /// One owner more at a time, so that the effect of the last one is seen first; one less after a quiet time.
    fn judge(&mut self, (rate, hot_from): (f64, f64), most: u8, now: Duration) {
        let owners = self.owners.max(1).min(most.max(1));
        self.owners = owners;
        if rate > hot_from {
            self.owners = owners.saturating_add(1).min(most.max(1));
        }
        if rate >= hot_from / QUIET_PART {
            self.quiet = None;
        } else if owners > 1 {
            let since = *self.quiet.get_or_insert(now);
            if now.saturating_sub(since) >= QUIET_FOR {
                self.owners = owners - 1;
                self.quiet = Some(now);
            }
        }
        if self.owners <= 1 {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    /// A second in which these keys are used so often.
    fn second(heat: &mut Heat, uses: &[(u64, u32)], mean: f64, now: u64) -> Vec<(u64, u8)> {
        for &(key, count) in uses {
            (0..count).for_each(|_| heat.used(key));
        }
        let hot = heat.read(mean, 3, seconds(now));
        hot.into_iter().map(|hot| (hot.key, hot.owners)).collect()
    }

    #[test]
    fn a_hot_key_gets_one_owner_more_a_second_and_loses_one_after_a_quiet_time() {
        let mut heat = Heat::new(seconds(0));
        assert_eq!(second(&mut heat, &[(7, 100), (8, 99), (9, 3)], 6_390.0, 1), [(7, 2)]);
        assert_eq!(second(&mut heat, &[(7, 101)], 6_390.0, 2), [(7, 3)]);
        assert_eq!(
            second(&mut heat, &[(7, 500)], 6_390.0, 3),
            [(7, 3)],
            "there are three machines"
        );
        // As much as a third of it is left when three share it.
        assert_eq!(second(&mut heat, &[(7, 34)], 6_390.0, 4), [(7, 3)]);
        assert_eq!(second(&mut heat, &[(7, 1)], 6_390.0, 5), [(7, 3)]);
        assert_eq!(second(&mut heat, &[], 6_390.0, 24), [(7, 3)]);
        assert_eq!(second(&mut heat, &[], 6_390.0, 25), [(7, 2)]);
        assert_eq!(second(&mut heat, &[], 6_390.0, 44), [(7, 2)]);
        assert_eq!(second(&mut heat, &[], 6_390.0, 45), []);
    }

    #[test]
    fn an_idle_fleet_has_no_hot_keys() {
        let mut heat = Heat::new(seconds(0));
        assert_eq!(second(&mut heat, &[(7, 16)], 1.0, 1), []);
        assert_eq!(second(&mut heat, &[(7, 17)], 1.0, 2), [(7, 2)]);
    }

    #[test]
    fn seldom_keys_push_out_no_hot_one_and_never_look_hot() {
        let mut heat = Heat::new(seconds(0));
        for now in 1..=20 {
            for number in 0..100_000 {
                heat.used(1_000_000 * now + number);
                if number % 20 == 0 {
                    heat.used(7);
                }
            }
            let hot = heat.read(105_000.0, 3, seconds(now));
            assert!(hot.iter().all(|hot| hot.key == 7), "{hot:?}");
            assert_eq!(hot.len(), 1, "5,000 of 105,000 uses");
        }
    }

    #[test]
    fn hot_keys_are_told_in_bounds() {
        let mut heat = Heat::new(seconds(0));
        let uses: Vec<_> = (0..2_000).map(|key| (key, 50)).collect();
        assert_eq!(second(&mut heat, &uses, 1.0, 1).len(), MOST_TOLD);
    }
}
