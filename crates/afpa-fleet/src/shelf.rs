//! Records that all machines have: the servers keep them sealed, and each has a lease of its own.
//!
//! ```text
//! at the servers:  subject = a digest of the key by the secret,  sealed { key, holder, value }
//!
//!   value, nobody's ──► held: the value is written, again and again ──► another value, nobody's
//! ```
//!
//! Each write names the revision that it replaces. So the value that a holder has taken is the last one, and a holder that was
//! away for longer than its lease writes nothing any more.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::keyring::hex;
use crate::lease::Lease;
use crate::seal::Secret;

/// The most bytes of a sealed record. The servers take messages of a megabyte by default.
const LONGEST: usize = 512 * 1024;

/// The most bytes of a key.
const LONGEST_KEY: usize = 16 * 1024;

/// A record, before it is sealed.
#[derive(Serialize, Deserialize)]
struct Record {
    key: String,
    /// The process that holds it; empty: nobody.
    holder: String,
    value: Option<String>,
}

/// The bytes are not a record of this fleet. They are left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a record of certificates is sealed by another secret: `secret` in [fleet] has to be the same file on all machines"
)]
pub struct Sealed;

/// A record that has changed.
#[derive(Clone, PartialEq, Eq)]
pub struct Changed {
    /// Its key.
    pub key: String,
    /// Its value; `None`: it has none.
    pub value: Option<Arc<str>>,
}

/// A write of a record.
#[derive(Clone, PartialEq, Eq)]
pub struct ShelfWrite {
    /// The last part of its subject.
    pub subject: String,
    /// The revision that it replaces; 0: none.
    pub revision: u64,
    /// The record, sealed.
    pub bytes: Vec<u8>,
    value: Option<Arc<str>>,
    is_held: bool,
    asked: Duration,
}

#[derive(Clone)]
struct Slot {
    key: String,
    value: Option<Arc<str>>,
    lease: Lease,
    /// A caller in this process has taken the record.
    is_wanted: bool,
}

/// All records of a bucket, as one process knows them. Times are those of the process, and never go back.
#[derive(Clone)]
pub struct Shelf {
    own: String,
    secret: Secret,
    /// When the bucket was made: a record is opened for its own bucket and subject alone.
    bucket: u64,
    slots: BTreeMap<String, Slot>,
    /// The records that were there at the beginning of the conversation have all been read.
    is_read: bool,
}

/// Nobody sees the value: it may have a key.
impl fmt::Debug for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Changed");
        shown.field("key", &self.key).field("has_value", &self.value.is_some());
        shown.finish_non_exhaustive()
    }
}

/// Likewise.
impl fmt::Debug for ShelfWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ShelfWrite");
        shown.field("subject", &self.subject).field("revision", &self.revision);
        shown.field("is_held", &self.is_held).field("asked", &self.asked);
        shown.finish_non_exhaustive()
    }
}

/// Likewise.
impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Slot");
        shown.field("key", &self.key).field("has_value", &self.value.is_some());
        shown.field("lease", &self.lease).field("is_wanted", &self.is_wanted);
        shown.finish_non_exhaustive()
    }
}

/// Likewise.
impl fmt::Debug for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Shelf");
        shown.field("own", &self.own).field("bucket", &self.bucket);
        shown.field("slots", &self.slots).field("is_read", &self.is_read);
        shown.finish_non_exhaustive()
    }
}

impl Shelf {
    /// An empty shelf, of the process with this random word.
    pub fn new(own: String, secret: Secret) -> Self {
        Self { own, secret, bucket: 0, slots: BTreeMap::new(), is_read: false }
    }

    /// A conversation with the servers begins, about the bucket that was made at this time. A bucket of another time is a new
    /// one, without records.
    pub fn begin(&mut self, bucket: u64) {
        self.is_read = false;
        if self.bucket != bucket {
            (self.bucket, self.slots) = (bucket, BTreeMap::new());
        }
    }

    /// The conversation with the servers has ended. The values stay in use.
    pub fn end(&mut self) {
        self.is_read = false;
    }

    /// The records that were there at the beginning have all been read. Records that do not exist yet are free.
    pub fn complete(&mut self, now: Duration) {
        self.is_read = true;
        for slot in self.slots.values_mut() {
            slot.lease.read(0, "", now);
        }
    }

    /// Whether all records have been read.
    pub fn is_read(&self) -> bool {
        self.is_read
    }

    /// The last part of the subject of a record: a digest, from which the key cannot be found without the secret.
    pub fn subject(&self, key: &str) -> String {
        hex(&self.secret.derive::<16>(&format!("record {key}")))
    }

    /// The value of a record, as it was last heard.
    pub fn value(&self, key: &str) -> Option<Arc<str>> {
        self.slots.get(&self.subject(key))?.value.clone()
    }

    /// How many records have a value.
    pub fn count(&self) -> usize {
        self.slots.values().filter(|slot| slot.value.is_some()).count()
    }

    /// A record was read; without bytes, it was deleted. Returns its value, if that has changed.
    ///
    /// # Errors
    /// When the bytes are not a record of this fleet.
    pub fn read(
        &mut self,
        subject: &str,
        (revision, bytes): (u64, &[u8]),
        now: Duration,
    ) -> Result<Option<Changed>, Sealed> {
        let Record { key, holder, value } = match (bytes.is_empty(), self.slots.get(subject)) {
            (false, _) => self.open(subject, bytes)?,
            (true, Some(slot)) => {
                Record { key: slot.key.clone(), holder: String::new(), value: None }
            }
            (true, None) => return Ok(None),
        };
        let value: Option<Arc<str>> = value.map(Arc::from);
        let slot = self.slots.entry(subject.to_owned()).or_insert_with(|| Slot {
            key,
            value: None,
            lease: Lease::new(self.own.clone()),
            is_wanted: false,
        });
        if !slot.lease.read(revision, &holder, now) || slot.value == value {
            return Ok(None);
        }
        slot.value.clone_from(&value);
        Ok(Some(Changed { key: slot.key.clone(), value }))
    }

    /// The servers have no such record.
    pub fn absent(&mut self, subject: &str, now: Duration) {
        if let Some(slot) = self.slots.get_mut(subject) {
            slot.lease.lost();
            slot.lease.read(0, "", now);
            slot.value = None;
        }
    }

    /// The write by which this process takes a record; `None`: another process has it, or another caller here.
    pub fn take(&mut self, key: &str, now: Duration) -> Option<ShelfWrite> {
        let subject = self.subject(key);
        let slot = self.slots.entry(subject.clone()).or_insert_with(|| {
            let mut lease = Lease::new(self.own.clone());
            lease.read(0, "", now);
            Slot { key: key.to_owned(), value: None, lease, is_wanted: false }
        });
        let revision = slot.lease.attempt(now).filter(|_| !slot.is_wanted)?;
        let value = slot.value.clone();
        self.write(subject, (revision, value, true), now)
    }

    /// The writes that renew the leases of the records that callers here have.
    pub fn renew(&self, now: Duration) -> Vec<ShelfWrite> {
        let wanted = self.slots.iter().filter(|(_, slot)| slot.is_wanted);
        let due = wanted.filter_map(|(subject, slot)| {
            slot.lease.held_at(now)?;
            let revision = slot.lease.attempt(now)?;
            self.write(subject.clone(), (revision, slot.value.clone(), true), now)
        });
        due.collect()
    }

    /// The write of a value to a record that this process holds. `is_held`: it keeps the lease, else it gives it back. `None`: it
    /// has lost the record.
    pub fn put(
        &mut self,
        key: &str,
        value: Arc<str>,
        is_held: bool,
        now: Duration,
    ) -> Option<ShelfWrite> {
        let subject = self.subject(key);
        let slot = self.slots.get_mut(&subject)?;
        let revision = slot.lease.held_at(now).filter(|_| slot.is_wanted);
        slot.is_wanted &= revision.is_some();
        self.write(subject, (revision?, Some(value), is_held), now)
    }

    /// The write that gives a record back with its present value, once no caller here needs it.
    pub fn leave(&mut self, key: &str, now: Duration) -> Option<ShelfWrite> {
        let subject = self.subject(key);
        let slot = self.slots.get_mut(&subject)?;
        if !std::mem::take(&mut slot.is_wanted) {
            return None;
        }
        let (revision, value) = (slot.lease.held_at(now)?, slot.value.clone());
        self.write(subject, (revision, value, false), now)
    }

    /// Whether this process holds a record for certain.
    pub fn holds(&self, key: &str, now: Duration) -> bool {
        let slot = self.slots.get(&self.subject(key));
        slot.is_some_and(|slot| slot.is_wanted && slot.lease.holds(now))
    }

    /// The servers have taken a write. Returns the value, if that has changed.
    pub fn wrote(&mut self, write: ShelfWrite, revision: u64, now: Duration) -> Option<Changed> {
        let slot = self.slots.get_mut(&write.subject)?;
        match write.is_held {
            true => slot.lease.wrote(revision, write.asked, now),
            false => slot.lease.gave_back(revision, now),
        }
        slot.is_wanted = write.is_held;
        if slot.value == write.value {
            return None;
        }
        slot.value.clone_from(&write.value);
        Some(Changed { key: slot.key.clone(), value: write.value })
    }

    /// A write was refused, or its outcome is unknown: the record is to be read again.
    pub fn lost(&mut self, subject: &str) {
        if let Some(slot) = self.slots.get_mut(subject) {
            slot.lease.lost();
            slot.is_wanted = false;
        }
    }

    fn write(
        &self,
        subject: String,
        (revision, value, is_held): (u64, Option<Arc<str>>, bool),
        now: Duration,
    ) -> Option<ShelfWrite> {
        let key = self.slots.get(&subject)?.key.clone();
        let holder = if is_held { self.own.clone() } else { String::new() };
        let said = value.as_deref().map(str::to_owned);
        let plain = serde_json::to_vec(&Record { key, holder, value: said }).ok()?;
        let bytes = self.secret.seal(&context(&subject), &plain);
        Some(ShelfWrite { subject, revision, bytes, value, is_held, asked: now })
    }

    fn open(&self, subject: &str, bytes: &[u8]) -> Result<Record, Sealed> {
        let opened = self.secret.open(&context(subject), bytes);
        let opened = opened.filter(|_| bytes.len() <= LONGEST).ok_or(Sealed)?;
        let record: Record = serde_json::from_slice(&opened).map_err(|_| Sealed)?;
        let is_here = record.key.len() <= LONGEST_KEY && self.subject(&record.key) == subject;
        if is_here { Ok(record) } else { Err(Sealed) }
    }
}

/// The subject is sealed with a record, so that it cannot be copied to another place. The bucket is not: servers that have
/// forgotten one have its messages again when it is made anew, and an order that is under way has to go on.
fn context(subject: &str) -> String {
    format!("record {subject}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "certificate a.test";

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn shelf(own: &str, secret: u8) -> Shelf {
        let secret = Secret::of(&[secret; 32]).unwrap();
        let mut shelf = Shelf::new(own.to_owned(), secret);
        shelf.begin(7);
        shelf.complete(s(0));
        shelf
    }

    /// Writes as the servers would, and has others read it.
    fn pass(
        write: ShelfWrite,
        revision: u64,
        by: &mut Shelf,
        others: &mut [&mut Shelf],
        now: Duration,
    ) {
        let (subject, bytes) = (write.subject.clone(), write.bytes.clone());
        by.wrote(write, revision, now);
        for other in others {
            other.read(&subject, (revision, &bytes), now).unwrap();
        }
    }

    #[test]
    fn a_record_is_one_machine_s_until_it_gives_it_back() {
        let (mut a, mut b) = (shelf("a", 1), shelf("b", 1));
        let write = a.take(KEY, s(0)).expect("nobody has it");
        assert_eq!(write.revision, 0);
        pass(write, 1, &mut a, &mut [&mut b], s(0));
        assert!(a.holds(KEY, s(1)) && a.take(KEY, s(1)).is_none(), "somebody here has it");
        assert!(b.take(KEY, s(1)).is_none() && !b.holds(KEY, s(1)));
        assert!(b.put(KEY, "x".into(), true, s(1)).is_none());

        let write = a.put(KEY, "one".into(), true, s(2)).expect("it holds it");
        pass(write, 2, &mut a, &mut [&mut b], s(2));
        assert_eq!(b.value(KEY).as_deref(), Some("one"));
        let renewed = a.renew(s(7));
        assert_eq!(renewed.len(), 1, "five seconds after the last write");
        pass(renewed.into_iter().next().unwrap(), 3, &mut a, &mut [&mut b], s(7));
        assert!(a.holds(KEY, s(16)) && b.take(KEY, s(21)).is_none());

        let write = a.put(KEY, "two".into(), false, s(8)).expect("it holds it");
        pass(write, 4, &mut a, &mut [&mut b], s(8));
        assert!(!a.holds(KEY, s(8)) && a.renew(s(20)).is_empty());
        let write = b.take(KEY, s(8)).expect("it was given back");
        assert_eq!(write.revision, 4);
        pass(write, 5, &mut b, &mut [&mut a], s(8));
        assert_eq!(b.value(KEY).as_deref(), Some("two"));
        let write = b.leave(KEY, s(9)).expect("it holds it");
        pass(write, 6, &mut b, &mut [&mut a], s(9));
        assert!(a.take(KEY, s(9)).is_some_and(|write| write.revision == 6));
    }

    #[test]
    fn that_of_a_dead_machine_is_taken_after_a_term_and_the_dead_one_is_fenced() {
        let (mut a, mut b) = (shelf("a", 1), shelf("b", 1));
        let write = a.take(KEY, s(0)).unwrap();
        pass(write, 1, &mut a, &mut [&mut b], s(0));
        assert!(b.take(KEY, s(14)).is_none());
        let write = b.take(KEY, s(15)).expect("a term has gone by");
        assert_eq!(write.revision, 1);
        assert!(!a.holds(KEY, s(10)) && a.put(KEY, "x".into(), true, s(10)).is_none());
        assert!(a.renew(s(10)).is_empty(), "it does not hold it for certain");
        let again = a.clone().take(KEY, s(15)).expect("nor does it work with it any more");
        assert_eq!(again.revision, 1);
        b.wrote(write, 2, s(15));
        a.lost(&a.subject(KEY));
        assert!(a.take(KEY, s(15)).is_none(), "it has not looked");
    }

    #[test]
    fn nobody_sees_a_value() {
        let mut a = shelf("a", 1);
        let write = a.take(KEY, s(0)).unwrap();
        a.wrote(write, 1, s(0));
        let write = a.put(KEY, "PRIVATE KEY".into(), false, s(0)).unwrap();
        let written = format!("{write:?}");
        let changed = format!("{:?}", a.wrote(write, 2, s(0)).unwrap());
        for shown in [written, changed, format!("{a:?}"), format!("{:?}", a.slots)] {
            assert!(!shown.contains("PRIVATE") && !shown.contains("bytes"), "{shown}");
        }
        assert!(format!("{a:?}").contains(KEY));
    }

    #[test]
    fn bytes_of_others_are_none_of_ours() {
        let (mut a, mut b, mut other) = (shelf("a", 1), shelf("b", 1), shelf("c", 2));
        let write = a.take(KEY, s(0)).unwrap();
        assert_eq!(other.read(&write.subject, (1, &write.bytes), s(0)), Err(Sealed));
        let elsewhere = b.subject("certificate b.test");
        assert_eq!(b.read(&elsewhere, (1, &write.bytes), s(0)), Err(Sealed), "another place");
        for bytes in [&b"{}"[..], b"x", &vec![1; LONGEST + 1]] {
            assert_eq!(b.read(&write.subject, (1, bytes), s(0)), Err(Sealed));
        }
        assert!(!write.bytes.windows(4).any(|part| part == b"test"));
        assert!(!write.subject.contains("test") && write.subject != other.subject(KEY));
    }

    #[test]
    fn a_bucket_that_is_made_anew_over_its_messages_has_its_records() {
        let mut a = shelf("a", 1);
        let write = a.take(KEY, s(0)).unwrap();
        a.wrote(write, 1, s(0));
        let write = a.put(KEY, "one".into(), false, s(0)).unwrap();
        let (subject, bytes) = (write.subject.clone(), write.bytes.clone());
        a.wrote(write, 2, s(0));
        a.begin(8);
        let changed = a.read(&subject, (2, &bytes), s(1)).unwrap();
        assert_eq!(changed.and_then(|changed| changed.value).as_deref(), Some("one"));
        a.complete(s(1));
        assert_eq!(a.take(KEY, s(1)).map(|write| write.revision), Some(2));
    }

    #[test]
    fn a_deleted_record_and_another_bucket_have_nothing() {
        let (mut a, mut b) = (shelf("a", 1), shelf("b", 1));
        let write = a.take(KEY, s(0)).unwrap();
        pass(write, 1, &mut a, &mut [&mut b], s(0));
        let write = a.put(KEY, "one".into(), false, s(0)).unwrap();
        let subject = write.subject.clone();
        pass(write, 2, &mut a, &mut [&mut b], s(0));
        assert_eq!((a.count(), b.count()), (1, 1));
        let changed = b.read(&subject, (3, b""), s(1)).unwrap();
        assert_eq!(changed, Some(Changed { key: KEY.to_owned(), value: None }));
        assert_eq!((b.value(KEY), b.count()), (None, 0));
        assert_eq!(b.take(KEY, s(1)).map(|write| write.revision), Some(3));
        assert_eq!(b.read("ffff", (4, b""), s(1)), Ok(None));
        a.begin(8);
        assert_eq!((a.value(KEY), a.is_read()), (None, false));
    }
}
