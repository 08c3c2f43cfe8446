//! Cache objects, and whether they may still be served.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use afpa_arena::{Arena, Pinned};
use smallvec::SmallVec;

use crate::key::Key;
use crate::policy::{Family, Hint, Keep, ObjectId};
use crate::root::FileBody;
use crate::stamp::{Coverage, Stamp};

/// A cache object: payloads of one version of a file, with the header data `H` that the protocol
/// module derived from it ("modules extend the cache object"). After it was published it does not change,
/// except for whether it may still be served: [`Object::current`].
pub struct Object<H> {
    id: ObjectId,
    key: Key,
    header: H,
    payloads: Payloads,
    /// None: it was not made from a file.
    stamp: Option<Box<Stamp>>,
    epoch: Arc<Epoch>,
    header_bytes: u32,
    confirmed_in: AtomicU32,
    /// In ticks.
    confirmed_at: AtomicU32,
    /// The tick at which its life ends, if a hint gives it an end, or else [`NEVER`].
    end: u32,
    coverage: Coverage,
    family: Family,
    keep: Keep,
    weight: u8,
    dropped: AtomicBool,
    /// The round in which its files were last to be compared.
    compared: AtomicU8,
}

/// A tick that does not come. The ticks that a `u32` counts last two years; a later one counts as the last of them, so
/// that nothing lasts for ever.
const NEVER: u32 = u32::MAX;

/// Ticks of an object's times, for each thousand milliseconds.
const TICKS: u64 = 64;

/// A number in the width in which objects keep it: there are many objects, and no number is ever so large.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The tick that has begun at this time.
fn tick(at: Millis) -> u32 {
    narrow(at.0.saturating_mul(TICKS) / 1000).min(NEVER - 1)
}

/// A time in the tick.
fn time_of(tick: u32) -> Millis {
    Millis((u64::from(tick) * 1000).div_ceil(TICKS))
}

/// The payloads of an object, in the order in which the module gave them. One is the common case.
pub type Payloads = SmallVec<[Payload; 1]>;

/// The bytes of one representation.
#[derive(Clone, Debug)]
pub enum Payload {
    /// In the arena, ready to be sent as they are.
    Pinned(Pinned),
    /// In the file system, through an open descriptor: length in bytes when it was opened.
    File(Arc<FileBody>, u64),
}

impl Payload {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Payload::Pinned(bytes) => bytes.len() as u64,
            Payload::File(_, len) => *len,
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Milliseconds of any clock that never goes back; its zero does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub u64);

/// Whether an object may be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Currency {
    /// It is up to date, as far as the watch or its age tells.
    Fresh,
    /// It is suspect: events were lost, or it is not watched and too old. Compare stamps first.
    Recheck,
    /// It was invalidated, ejected, purged or replaced, or has reached the age of its hint. Responses that are
    /// being sent from it may finish.
    Dropped,
}

impl<H> Object<H> {
    /// A number that no other object of this cache has, or had within its last four billion ones; a new version gets a
    /// new one.
    pub fn id(&self) -> ObjectId {
        self.id
    }

    /// The name it was loaded for.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Header data of the protocol module.
    pub fn header(&self) -> &H {
        &self.header
    }

    /// One for each representation, in the module's order.
    pub fn payloads(&self) -> &[Payload] {
        &self.payloads
    }

    /// The version of the file that it was made from, if it was.
    pub fn stamp(&self) -> Option<&Stamp> {
        self.stamp.as_deref()
    }

    /// How a change of its files becomes known.
    pub fn coverage(&self) -> Coverage {
        self.coverage
    }

    /// The family of its content.
    pub fn family(&self) -> Family {
        self.family
    }

    /// The configured hint to policies.
    pub(crate) fn hint(&self) -> Hint {
        let Self { keep, weight, .. } = *self;
        Hint { keep, weight, expiry: None }
    }

    /// When its life ends, to a tick of 1/64 s, if a hint has given it an end.
    pub fn end(&self) -> Option<Millis> {
        (self.end != NEVER).then(|| time_of(self.end))
    }

    /// Bytes of the arena that its payloads take up.
    pub fn pinned_bytes(&self) -> usize {
        let pinned = |payload: &Payload| match payload {
            Payload::Pinned(bytes) => bytes.footprint(),
            Payload::File(..) => 0,
        };
        self.payloads.iter().map(pinned).sum()
    }

    /// Bytes that its header data points at, as far as the module has said.
    pub(crate) fn header_bytes(&self) -> usize {
        self.header_bytes as usize
    }

    /// Bytes that it takes up outside of the arena and that count against the arena's limit.
    pub(crate) fn charged(&self) -> usize {
        match self.epoch.arena() {
            Some(_) => cost_of::<H>(self.key.path.len(), self.header_bytes(), self.payloads.len()),
            None => 0,
        }
    }

    /// Counts it, if objects count as a whole, whether there is room or not.
    pub(crate) fn charge_anyway(&self) {
        self.epoch.arena().inspect(|arena| arena.charge_anyway(self.charged()));
    }

    /// Descriptors that its payloads keep open.
    pub fn open_files(&self) -> usize {
        self.payloads.iter().filter(|payload| matches!(payload, Payload::File(..))).count()
    }

    /// Whether it may be served at `now`. Costs a few loads.
    pub fn current(&self, now: Millis) -> Currency {
        if self.is_dropped() || self.has_expired(now) {
            Currency::Dropped
        } else if self.is_suspect() || self.is_too_old(now) {
            Currency::Recheck
        } else {
            Currency::Fresh
        }
    }

    pub(crate) fn new(id: ObjectId, key: Key, content: Content<H>, birth: Birth) -> Object<H> {
        let Content { header, header_bytes, payloads, stamp, coverage, family, hint } = content;
        Object {
            id,
            key,
            header,
            payloads,
            stamp,
            epoch: birth.epoch,
            header_bytes: u32::try_from(header_bytes).unwrap_or(u32::MAX),
            confirmed_in: AtomicU32::new(narrow(birth.checked.epoch)),
            confirmed_at: AtomicU32::new(tick(birth.checked.at)),
            end: birth.end.map_or(NEVER, tick),
            coverage,
            family,
            keep: hint.keep,
            weight: hint.weight,
            dropped: AtomicBool::new(false),
            compared: AtomicU8::new(0),
        }
    }

    /// A copy from the same versions of the same files, with other payloads.
    pub(crate) fn remade(
        &self,
        id: ObjectId,
        (header, header_bytes): (H, usize),
        payloads: Payloads,
    ) -> Object<H> {
        let (stamp, coverage) = (self.stamp.clone(), self.coverage);
        let (family, hint) = (self.family, self.hint());
        let checked = Checked {
            epoch: self.confirmed_in.load(Ordering::Acquire).into(),
            at: time_of(self.confirmed_at.load(Ordering::Relaxed)),
        };
        let epoch = Arc::clone(&self.epoch);
        let content = Content { header, header_bytes, payloads, stamp, coverage, family, hint };
        let birth = Birth { checked, end: self.end(), epoch };
        Object::new(id, self.key.clone(), content, birth)
    }

    /// Whether it was invalidated, ejected, purged or replaced.
    pub fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    /// Whether it has reached the age of its hint.
    pub(crate) fn has_expired(&self, now: Millis) -> bool {
        self.end != NEVER && tick(now) >= self.end
    }

    /// Whether no watch would report a change of its files, and they may have been compared too long ago. A tick more
    /// than was counted may have gone by.
    fn is_too_old(&self, now: Millis) -> bool {
        let is_older = || {
            let age = tick(now).saturating_sub(self.confirmed_at.load(Ordering::Relaxed));
            age >= self.epoch.max_age_unwatched || tick(now) == NEVER - 1
        };
        self.coverage == Coverage::Unwatched && is_older()
    }

    /// Whether it may be listed.
    pub(crate) fn is_to_be_kept(&self) -> bool {
        self.keep != Keep::Never
    }

    /// Whether events were lost since its files were last looked at.
    pub(crate) fn is_suspect(&self) -> bool {
        u64::from(self.confirmed_in.load(Ordering::Acquire)) < self.epoch.current()
    }

    /// Whether its file is to be compared in this round: it relies on a watch, and was not noted for the round yet. To be
    /// asked under the table's lock.
    pub(crate) fn joins(&self, round: u8) -> bool {
        let is_new = self.compared.load(Ordering::Relaxed) != round;
        if is_new {
            self.compared.store(round, Ordering::Relaxed);
        }
        is_new && self.coverage == Coverage::Watched && self.stamp.is_some()
    }

    pub(crate) fn mark_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }

    /// Its files were found unchanged by a check that began at `checked`.
    pub(crate) fn confirm(&self, checked: Checked) {
        self.confirmed_at.fetch_max(tick(checked.at), Ordering::Relaxed);
        self.confirmed_in.fetch_max(narrow(checked.epoch), Ordering::Release);
    }
}

impl<H> Drop for Object<H> {
    fn drop(&mut self) {
        if let Some(arena) = self.epoch.arena() {
            arena.uncharge(self.charged());
        }
    }
}

/// Bytes that an object takes up outside of the arena, in the tables and views that know it, too.
pub(crate) fn cost_of<H>(key_len: usize, header_bytes: usize, payloads: usize) -> usize {
    size_of::<Object<H>>() + key_len + header_bytes + payloads * PAYLOAD_COST + OBJECT_COST
}

/// Table entries, index entries, policy seats and places in views of one object, and what the allocator adds to its four
/// pieces of memory.
pub(crate) const OBJECT_COST: usize = 448;
/// A range of the arena: its counts, and the allocator's entry.
const PAYLOAD_COST: usize = 128;

impl<H> fmt::Debug for Object<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Object { id, key, payloads, .. } = self;
        write!(f, "Object({id:?} {key:?} {payloads:?} dropped={})", self.is_dropped())
    }
}

/// The parts of an object that the protocol module supplies.
pub(crate) struct Content<H> {
    pub(crate) header: H,
    /// Bytes that it points at, where the module says so.
    pub(crate) header_bytes: usize,
    pub(crate) payloads: Payloads,
    pub(crate) stamp: Option<Box<Stamp>>,
    pub(crate) coverage: Coverage,
    pub(crate) family: Family,
    pub(crate) hint: Hint,
}

/// The parts of an object that the cache supplies.
pub(crate) struct Birth {
    pub(crate) checked: Checked,
    /// When its life ends, if it does.
    pub(crate) end: Option<Millis>,
    pub(crate) epoch: Arc<Epoch>,
}

/// When the files were checked. It is taken *before* the check, so that an overflow during the check counts.
#[derive(Clone, Copy)]
pub(crate) struct Checked {
    pub(crate) epoch: u64,
    pub(crate) at: Millis,
}

/// Counts how often everything became suspect. It has a cache line of its own, because every hit reads it,
/// and every load writes the reference count beside it.
#[repr(align(128))]
pub(crate) struct Epoch {
    current: AtomicU64,
    /// Ticks for which an object that is not watched is not suspect.
    max_age_unwatched: u32,
    /// The arena against whose limit objects count as a whole; `None`: they do not.
    arena: Option<Arena>,
}

impl Epoch {
    pub(crate) fn new(max_age_unwatched: Duration, arena: Option<Arena>) -> Epoch {
        let max_age = u64::try_from(max_age_unwatched.as_millis()).unwrap_or(u64::MAX);
        Epoch { current: AtomicU64::new(0), max_age_unwatched: tick(Millis(max_age)), arena }
    }

    /// The arena against whose limit objects count as a whole.
    pub(crate) fn arena(&self) -> Option<&Arena> {
        self.arena.as_ref()
    }

    pub(crate) fn current(&self) -> u64 {
        self.current.load(Ordering::Acquire)
    }

    pub(crate) fn advance(&self) {
        self.current.fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(coverage: Coverage, epoch: &Arc<Epoch>) -> Object<()> {
        let checked = Checked { epoch: epoch.current(), at: Millis(100) };
        let content = Content {
            header: (),
            header_bytes: 0,
            payloads: Payloads::new(),
            stamp: None,
            coverage,
            family: Family::default(),
            hint: Hint::default(),
        };
        let birth = Birth { checked, end: None, epoch: Arc::clone(epoch) };
        Object::new(ObjectId(1), Key::new(0, b"/"), content, birth)
    }

    #[test]
    fn a_watched_object_does_not_age_but_an_unwatched_one_does() {
        let epoch = Arc::new(Epoch::new(Duration::from_secs(10), None));
        let watched = object(Coverage::Watched, &epoch);
        let unwatched = object(Coverage::Unwatched, &epoch);
        assert_eq!(watched.current(Millis(u64::MAX)), Currency::Fresh);
        assert_eq!(unwatched.current(Millis(10_080)), Currency::Fresh);
        assert_eq!(unwatched.current(Millis(10_100)), Currency::Recheck);
        unwatched.confirm(Checked { epoch: 0, at: Millis(10_100) });
        assert_eq!(unwatched.current(Millis(20_080)), Currency::Fresh);
        assert_eq!(unwatched.current(Millis(u64::MAX)), Currency::Recheck, "time has run out");
    }

    #[test]
    fn no_unwatched_object_is_fresh_beyond_its_age() {
        for age in [0, 1, 15, 16, 250, 500, 999, 1000, 1001, 1500, 3_600_000] {
            for checked in 100..1200 {
                let epoch = Arc::new(Epoch::new(Duration::from_millis(age), None));
                let object = object(Coverage::Unwatched, &epoch);
                object.confirm(Checked { epoch: 0, at: Millis(checked) });
                let at = |after: u64| object.current(Millis(checked + after));
                assert_eq!(at(age), Currency::Recheck, "{age} ms after {checked}");
                // Two ticks are 31.25 ms.
                let early = age.saturating_sub(32);
                assert!(early == 0 || at(early) == Currency::Fresh, "{age} ms after {checked}");
            }
        }
    }

    #[test]
    fn a_check_that_began_before_an_overflow_confirms_nothing() {
        let epoch = Arc::new(Epoch::new(Duration::from_secs(10), None));
        let object = object(Coverage::Watched, &epoch);
        let before = Checked { epoch: epoch.current(), at: Millis(101) };
        epoch.advance();
        assert_eq!(object.current(Millis(101)), Currency::Recheck);
        object.confirm(before);
        assert_eq!(object.current(Millis(101)), Currency::Recheck);
        object.confirm(Checked { epoch: epoch.current(), at: Millis(102) });
        assert_eq!(object.current(Millis(102)), Currency::Fresh);
    }

    /// There are as many as fit into memory.
    #[test]
    fn an_object_is_small_beside_what_its_module_keeps() {
        assert!(size_of::<Object<()>>() <= 104, "{} B", size_of::<Object<()>>());
    }

    #[test]
    fn a_dropped_object_stays_dropped() {
        let epoch = Arc::new(Epoch::new(Duration::from_secs(10), None));
        let object = object(Coverage::Watched, &epoch);
        object.mark_dropped();
        object.confirm(Checked { epoch: 9, at: Millis(109) });
        assert_eq!(object.current(Millis(109)), Currency::Dropped);
    }
}
