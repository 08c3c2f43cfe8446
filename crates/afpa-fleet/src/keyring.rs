//! The seeds of keys that all machines have: one machine makes them, and the servers keep them sealed.
//!
//! There are three: the *next* one, which every machine accepts before any uses it, the *current* one, by which machines
//! make what others accept, and the *previous* one. A machine that has missed a turn still makes what the others accept, and
//! accepts what they make.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::lease::Lease;
use crate::seal::Secret;

/// The purpose of the record.
const CONTEXT: &str = "keys";

/// Bytes of a record that are read.
const LONGEST: usize = 16 * 1024;

/// Bytes of a seed.
pub const SEED: usize = 32;

/// A seed, from which keys are derived by purpose.
pub type Seed = [u8; SEED];

/// The seeds of one turn.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seeds {
    /// The number of the turn.
    pub turn: u64,
    /// When it was, in seconds since the Unix epoch by the clock of its maker.
    pub turned: u64,
    previous: Option<Seed>,
    current: Seed,
    next: Seed,
}

impl std::fmt::Debug for Seeds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Seeds({})", self.turn)
    }
}

impl Seeds {
    /// The first ones.
    fn first(now: u64, mut random: impl FnMut() -> Option<Seed>) -> Option<Self> {
        let (current, next) = (random()?, random()?);
        Some(Self { turn: 1, turned: now, previous: None, current, next })
    }

    /// Those of the next turn.
    fn turned(&self, now: u64, next: Seed) -> Self {
        let (previous, current) = (Some(self.current), self.next);
        Self { turn: self.turn.saturating_add(1), turned: now, previous, current, next }
    }

    /// Keys for a purpose: the first is the one to make something by, and all are accepted.
    pub fn keys(&self, purpose: &str) -> Vec<Seed> {
        let seeds = [Some(self.current), Some(self.next), self.previous];
        let derive = |seed: Seed| Secret::of_seed(&seed).derive(purpose);
        seeds.into_iter().flatten().map(derive).collect()
    }

    /// Sealed, for the disk of a machine and for the servers.
    pub fn seal(&self, secret: &Secret) -> Vec<u8> {
        secret.seal(CONTEXT, &serde_json::to_vec(self).unwrap_or_default())
    }

    /// Opened; `None`: they are of another secret.
    pub fn open(secret: &Secret, sealed: &[u8]) -> Option<Self> {
        serde_json::from_slice(&secret.open(CONTEXT, sealed)?).ok()
    }
}

/// The record at the servers.
#[derive(Serialize, Deserialize)]
struct Record {
    /// The process that holds the lease.
    holder: String,
    /// The seeds, sealed, in hexadecimal digits.
    seeds: String,
}

/// A record that this machine does not use. It replaces none of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Foreign {
    /// Its bytes are no record.
    #[error("the record of shared keys is none of this version")]
    Form,
    /// This machine's secret does not open it.
    #[error(
        "shared keys are sealed by another secret: `secret` in [fleet] has to be the same file on all machines"
    )]
    Secret,
}

/// A write to the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The revision that it replaces; 0: none.
    pub revision: u64,
    /// The record.
    pub bytes: Vec<u8>,
    seeds: Seeds,
    asked: Duration,
}

/// The seeds as one process knows them, and its part in making them. Times are those of the process, `unix` is its clock
/// in seconds since the Unix epoch.
#[derive(Clone, Debug)]
pub struct Keyring {
    lease: Lease,
    secret: Secret,
    seeds: Option<Seeds>,
    /// When they were first seen.
    since: Duration,
    /// The last record cannot be used.
    is_foreign: bool,
}

impl Keyring {
    /// Of the process with this random word, with the seeds that it has on disk.
    pub fn new(own: String, secret: Secret, seeds: Option<Seeds>, now: Duration) -> Self {
        Self { lease: Lease::new(own), secret, seeds, since: now, is_foreign: false }
    }

    /// The seeds, if there are any yet.
    pub fn seeds(&self) -> Option<&Seeds> {
        self.seeds.as_ref()
    }

    /// They, sealed.
    pub fn sealed(&self) -> Option<Vec<u8>> {
        self.seeds.as_ref().map(|seeds| seeds.seal(&self.secret))
    }

    /// Whether this machine makes the next ones.
    pub fn holds(&self, now: Duration) -> bool {
        self.lease.holds(now)
    }

    /// The record was read; `None`: there is none. Whether the seeds have changed.
    ///
    /// # Errors
    /// When it cannot be used. Nothing is written then.
    pub fn read(&mut self, found: Option<(u64, &[u8])>, now: Duration) -> Result<bool, Foreign> {
        let Some((revision, bytes)) = found else {
            self.is_foreign = false;
            self.lease.read(0, "", now);
            return Ok(false);
        };
        self.is_foreign = true;
        let (holder, seeds) = self.open(bytes)?;
        self.is_foreign = false;
        if !self.lease.read(revision, &holder, now) {
            return Ok(false);
        }
        let is_new = self.seeds.as_ref() != Some(&seeds);
        if is_new {
            (self.seeds, self.since) = (Some(seeds), now);
        }
        Ok(is_new)
    }

    /// The write that is due: the lease is to be taken or renewed, or the seeds turn after a `period`.
    pub fn attempt(
        &self,
        (now, unix): (Duration, u64),
        period: Duration,
        mut random: impl FnMut() -> Option<Seed>,
    ) -> Option<Write> {
        if self.is_foreign {
            return None;
        }
        let (seeds, is_turn) = match &self.seeds {
            // Seeds of a disk are those of the fleet, which has lost them.
            None => (Seeds::first(unix, random)?, false),
            Some(seeds) if self.lease.holds(now) && self.is_over(seeds, (now, unix), period) => {
                (seeds.turned(unix, random()?), true)
            }
            Some(seeds) => (seeds.clone(), false),
        };
        let due = if is_turn { self.lease.held_at(now) } else { self.lease.attempt(now) };
        let revision = due?;
        let record =
            Record { holder: self.lease.own().to_owned(), seeds: hex(&seeds.seal(&self.secret)) };
        let bytes = serde_json::to_vec(&record).ok()?;
        Some(Write { revision, bytes, seeds, asked: now })
    }

    /// A write was taken. Whether the seeds have changed.
    pub fn wrote(&mut self, write: Write, revision: u64, now: Duration) -> bool {
        self.lease.wrote(revision, write.asked, now);
        let is_new = self.seeds.as_ref() != Some(&write.seeds);
        if is_new {
            (self.seeds, self.since) = (Some(write.seeds), now);
        }
        is_new
    }

    /// A write was refused, or nobody knows its fate.
    pub fn lost(&mut self) {
        self.lease.lost();
    }

    /// Their time is over by the clock, or they have been seen for so long: the clock of their maker may have been ahead.
    fn is_over(&self, seeds: &Seeds, (now, unix): (Duration, u64), period: Duration) -> bool {
        let end = seeds.turned.saturating_add(period.as_secs());
        unix >= end || now.saturating_sub(self.since) >= period
    }

    fn open(&self, bytes: &[u8]) -> Result<(String, Seeds), Foreign> {
        if bytes.len() > LONGEST {
            return Err(Foreign::Form);
        }
        let record: Record = serde_json::from_slice(bytes).map_err(|_| Foreign::Form)?;
        let sealed = unhex(&record.seeds).ok_or(Foreign::Form)?;
        let seeds = Seeds::open(&self.secret, &sealed).ok_or(Foreign::Secret)?;
        Ok((record.holder, seeds))
    }
}

/// As hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// From hexadecimal digits.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pair = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
        _ => None,
    };
    digits.chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(3600);

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn secret(byte: u8) -> Secret {
        Secret::of(&[byte; 32]).unwrap()
    }

    fn ring(own: &str) -> Keyring {
        Keyring::new(own.to_owned(), secret(1), None, s(0))
    }

    fn counting() -> impl FnMut() -> Option<Seed> {
        let mut count = 0;
        move || {
            count += 1;
            Some([count; SEED])
        }
    }

    #[test]
    fn the_next_key_is_accepted_before_it_is_used() {
        let first = Seeds::first(10, counting()).unwrap();
        let second = first.turned(20, [3; SEED]);
        let third = second.turned(30, [4; SEED]);
        assert_eq!((first.keys("tickets").len(), second.keys("tickets").len()), (2, 3));
        for (one, next) in [(&first, &second), (&second, &third)] {
            let (before, after) = (one.keys("tickets"), next.keys("tickets"));
            assert_eq!(before[1], after[0], "the next one becomes the current one");
            assert!(after.contains(&before[0]), "the current one is accepted after the turn");
        }
        assert_ne!(first.keys("tickets")[0], first.keys("cookies")[0]);
        assert!(!third.keys("tickets").contains(&first.keys("tickets")[0]));
    }

    #[test]
    fn seeds_turn_when_their_time_is_over_by_either_clock() {
        let mut a = ring("a");
        assert_eq!(a.read(None, s(0)), Ok(false));
        let write = a.attempt((s(0), 1000), PERIOD, counting()).expect("it is free");
        let bytes = write.bytes.clone();
        assert!(a.wrote(write, 1, s(0)) && a.holds(s(1)));
        assert!(a.attempt((s(1), 1001), PERIOD, counting()).is_none());
        let write = a.attempt((s(1), 1000 + 3600), PERIOD, || Some([9; SEED])).unwrap();
        assert_eq!((write.seeds.turn, write.revision), (2, 1));
        // A maker whose clock was far ahead.
        let mut b = ring("b");
        assert_eq!(b.read(Some((1, &bytes)), s(0)), Ok(true));
        assert_eq!(b.read(Some((1, &bytes)), s(3600)), Ok(false));
        let taken = b.attempt((s(3600), 5), PERIOD, counting()).expect("a term has gone by");
        assert_eq!(taken.seeds.turn, 1, "the lease comes first");
        assert!(!b.wrote(taken, 2, s(3600)));
        assert_eq!(b.attempt((s(3601), 6), PERIOD, counting()).unwrap().seeds.turn, 2);
    }

    #[test]
    fn a_record_of_another_secret_is_left_alone() {
        let mut a = ring("a");
        a.read(None, s(0)).unwrap();
        let write = a.attempt((s(0), 0), PERIOD, counting()).unwrap();
        let mut other = Keyring::new("b".to_owned(), secret(2), None, s(0));
        assert_eq!(other.read(Some((1, &write.bytes)), s(0)), Err(Foreign::Secret));
        assert_eq!(other.read(Some((1, &write.bytes)), s(100)), Err(Foreign::Secret));
        assert_eq!(other.attempt((s(100), 0), PERIOD, counting()), None);
        for bytes in
            ["", "{}", "{\"holder\":\"a\",\"seeds\":\"zz\"}", "{\"holder\":\"a\",\"seeds\":\"0\"}"]
        {
            assert_eq!(a.read(Some((2, bytes.as_bytes())), s(1)), Err(Foreign::Form), "{bytes}");
        }
        let long = format!("{{\"holder\":\"{}\",\"seeds\":\"\"}}", "x".repeat(LONGEST));
        assert_eq!(a.read(Some((2, long.as_bytes())), s(1)), Err(Foreign::Form));
    }

    #[test]
    fn seeds_of_the_disk_come_back_to_servers_that_have_lost_them() {
        let seeds = Seeds::first(10, counting()).unwrap();
        let sealed = seeds.seal(&secret(1));
        assert_eq!(Seeds::open(&secret(1), &sealed), Some(seeds.clone()));
        assert_eq!(Seeds::open(&secret(2), &sealed), None);
        let mut a = Keyring::new("a".to_owned(), secret(1), Some(seeds.clone()), s(0));
        a.read(None, s(0)).unwrap();
        assert_eq!(a.attempt((s(0), 20), PERIOD, counting()).unwrap().seeds, seeds);
    }
}
