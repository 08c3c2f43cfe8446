//! The kernel's part of the cache: pinned objects.
//!
//! An object is one map entry that names a slot for each stored coding. Answers that are longer than a slot
//! have *pages*. Pinning again replaces the entry in one step; slots and pages of the older version are kept
//! for a while, because an answer that was lost must be given again with the same bytes, and one that is
//! under way must be brought to its end; then they are used anew.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use afpa_abi::{DATE_LENGTH, Object, ObjectKey, PAGE, PATH_FILTER_BITS};
use libbpf_rs::{MapCore, MapFlags};

use crate::conn::listen::SiteNumber;
use crate::load::FastPath;
use crate::net::sum::path_hash;
use crate::region::{Pages, Slots};

use super::draft::Draft;
use super::room::{Lot, RIPE, Room};

/// Content coding of a stored variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// As it is.
    Identity = 0,
    /// gzip
    Gzip = 1,
    /// br
    Brotli = 2,
    /// zstd
    Zstd = 3,
}

/// A complete response. 29 bytes of its head, at `date_offset`, are the Date's and are overwritten.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// Status line to blank line.
    pub head: &'a [u8],
    /// Where the Date's value stands in `head`.
    pub date_offset: usize,
    /// Content; empty for a 304.
    pub body: &'a [u8],
}

/// One coding of an object.
#[derive(Clone, Copy, Debug)]
pub struct Variant<'a> {
    /// Which one.
    pub coding: Coding,
    /// Entity tag with quotes; empty: none, so that If-None-Match never holds.
    pub etag: &'a [u8],
    /// The Last-Modified value; None: If-Modified-Since goes to user mode.
    pub last_modified: Option<&'a [u8; DATE_LENGTH]>,
    /// The answer to GET (and, its head, to HEAD); None where user mode gives it.
    pub whole: Option<Response<'a>>,
    /// The answer to a validator that matches; None: user mode gives it.
    pub not_modified: Option<Response<'a>>,
}

/// Why an object was not pinned. Whatever was pinned under its path before is not any more.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// Path, validator or response exceeds what is kept of one, or the response
    /// [`Settings::answer_max`](crate::Settings::answer_max).
    #[error("{0} is too long for the fast path")]
    TooLong(&'static str),
    /// Every slot, or page, is in use or being retired.
    #[error("no room for another object")]
    Full,
    /// Another pinned path has the same hash (one in 2^64).
    #[error("path hash collides with another pinned path")]
    Collision,
    /// The kernel refused.
    #[error(transparent)]
    Kernel(#[from] libbpf_rs::Error),
}

/// What pinned objects take up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Objects that are pinned.
    pub objects: usize,
    /// Slots that are not free: of pinned variants and retired ones.
    pub slots: usize,
    /// Likewise pages.
    pub pages: usize,
    /// Memory of both.
    pub bytes: usize,
    /// The part of it that belongs to versions which are answered no more: a client may still need them.
    pub retired_bytes: usize,
}

impl FastPath {
    /// Answer GET and HEAD for `path` of `site` from now on. `path` is compared with the request
    /// target byte by byte: pin the spelling clients use. Returns the versions, one a variant, that
    /// events will name.
    pub fn pin(
        &self,
        site: SiteNumber,
        path: &[u8],
        variants: &[Variant<'_>],
    ) -> Result<Vec<u64>, PinError> {
        let mut pinned = self.lock_pinned();
        let longest = self.answer_max();
        let drafts = variants
            .iter()
            .map(|variant| Draft::new(site, path, variant, longest))
            .collect::<Result<Vec<_>, _>>();
        let drafts = match drafts {
            Ok(drafts) => drafts,
            Err(error) => {
                self.remove(&mut pinned, site, path)?;
                return Err(error);
            }
        };
        let key = self.object_key(site, path);
        if pinned.objects.get(&key).is_some_and(|object| *object.path != *path) {
            return Err(PinError::Collision);
        }
        let Some(lots) = self.take(&mut pinned, &drafts) else {
            self.remove(&mut pinned, site, path)?;
            return Err(PinError::Full);
        };
        let mut object = Object::ZERO;
        let mut versions = Vec::with_capacity(drafts.len());
        for ((draft, variant), lot) in drafts.into_iter().zip(variants).zip(&lots) {
            let version = pinned.next_version();
            self.write(draft, version, lot);
            object.slot[variant.coding as usize] = lot.slot;
            versions.push(version);
        }
        if let Err(error) = self.objects.update(&key.to_bytes(), &object.to_bytes(), MapFlags::ANY)
        {
            self.retire(&mut pinned, lots);
            self.remove(&mut pinned, site, path)?;
            return Err(error.into());
        }
        match pinned.objects.insert(key, PinnedObject { path: path.into(), lots }) {
            Some(older) => self.retire(&mut pinned, older.lots),
            None => {
                self.mark_path(&mut pinned, key.path_hash);
                self.region.pins().fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(versions)
    }

    /// Answer `path` no more; when this returns, no further packet is answered with it, except to
    /// repeat an answer that was lost, or to go on with one that is under way. False: it was not pinned.
    pub fn unpin(&self, site: SiteNumber, path: &[u8]) -> libbpf_rs::Result<bool> {
        self.remove(&mut self.lock_pinned(), site, path)
    }

    /// Longest answer, head and content, that may be pinned.
    pub fn answer_max(&self) -> usize {
        (self.settings.answer_max as usize).min(crate::LONGEST_ANSWER)
    }

    /// Slots that may be used now.
    pub fn free_slots(&self) -> usize {
        self.lock_pinned().room.free_slots()
    }

    /// Pages that may be used now.
    pub fn free_pages(&self) -> usize {
        self.lock_pinned().room.free_pages()
    }

    /// Makes room of what was retired and nobody needs any more, instead of waiting for
    /// [`Settings::retire_after`](crate::Settings::retire_after), and of what exceeds
    /// [`Settings::retired_bytes`](crate::Settings::retired_bytes). Looks at every connection if there is
    /// any retired object: for when objects wait for room, and not too often.
    pub fn reclaim(&self) -> libbpf_rs::Result<()> {
        let ripe = self.lock_pinned().room.older_than(RIPE, Duration::ZERO, Instant::now());
        if !ripe.is_empty() {
            let mut needed = self.in_transfer()?;
            self.each_flow(|_, flow| {
                let end = flow.answer_seq.wrapping_add(flow.answer_size);
                let outstanding =
                    flow.request_length != 0 && (flow.snd_una.wrapping_sub(end) as i32) < 0;
                if outstanding {
                    needed.insert((flow.answer_slot, flow.answer_version));
                }
            })?;
            self.let_go(&mut self.lock_pinned(), &ripe, &needed);
        }
        let mut pinned = self.lock_pinned();
        let now = Instant::now();
        let ended = pinned.room.end_beyond(self.settings.retired_bytes, now);
        ended.into_iter().for_each(|slot| self.slots.vacate(slot));
        pinned.room.free_ended(now);
        Ok(())
    }

    /// Pinned objects, and slots in use (those being retired included).
    pub fn pinned_objects(&self) -> (usize, usize) {
        let usage = self.usage();
        (usage.objects, usage.slots)
    }

    /// What pinned objects take up.
    pub fn usage(&self) -> Usage {
        let pinned = self.lock_pinned();
        let slots = pinned.slots - pinned.room.free_slots();
        let pages = pinned.pages - pinned.room.free_pages();
        Usage {
            objects: pinned.objects.len(),
            slots,
            pages,
            bytes: slots * crate::VARIANT_BYTES + pages * crate::PAGE_BYTES,
            retired_bytes: pinned.room.retired_bytes(),
        }
    }

    fn lock_pinned(&self) -> std::sync::MutexGuard<'_, Pinned> {
        self.pinned.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn object_key(&self, site: SiteNumber, path: &[u8]) -> ObjectKey {
        let seed = self.region.hash_seed().load(Ordering::Relaxed);
        ObjectKey { path_hash: path_hash(seed, path), site, path_length: path.len() as u32 }
    }

    /// Room for all of them, or none.
    fn take(&self, pinned: &mut Pinned, drafts: &[Draft]) -> Option<Vec<Lot>> {
        let pages: Vec<usize> = drafts.iter().map(Draft::pages).collect();
        if let Some(lots) = pinned.room.take(&pages) {
            return Some(lots);
        }
        let now = Instant::now();
        pinned.room.free_ended(now);
        let old = pinned.room.older_than(self.settings.retire_after, RIPE, now);
        // A table that cannot be read may name all of them.
        if !old.is_empty()
            && let Ok(needed) = self.in_transfer()
        {
            self.let_go(pinned, &old, &needed);
        }
        pinned.room.take(&pages)
    }

    /// Frees those of the retired `slots` that are not needed.
    fn let_go(&self, pinned: &mut Pinned, slots: &HashMap<u32, u64>, needed: &HashSet<(u32, u64)>) {
        let looked_at = |slot: u32, version: u64| slots.get(&slot) == Some(&version);
        let is_needed = |slot: u32, version: u64| needed.contains(&(slot, version));
        let freed =
            pinned.room.free(|slot, version| looked_at(slot, version) && !is_needed(slot, version));
        freed.into_iter().for_each(|slot| self.slots.vacate(slot));
        pinned.room.keep(looked_at, Instant::now());
    }

    /// The version appears last, so that a program sees all of it or none.
    fn write(&self, mut draft: Draft, version: u64, lot: &Lot) {
        draft.slot.version = version;
        self.slots.vacate(lot.slot);
        for ((place, index), start) in
            draft.slot.pages.iter_mut().zip(&lot.pages).zip((0..).step_by(PAGE))
        {
            self.pages.write(*index, &draft.long[start..]);
            *place = *index;
        }
        self.slots.write(lot.slot, &draft.slot);
    }

    fn retire(&self, pinned: &mut Pinned, lots: Vec<Lot>) {
        let now = Instant::now();
        for lot in lots {
            let version = self.slots.version(lot.slot).load(Ordering::Relaxed);
            pinned.room.retire(version, lot, now);
        }
    }

    /// The kernel's entry goes first; all else is bookkeeping.
    fn remove(
        &self,
        pinned: &mut Pinned,
        site: SiteNumber,
        path: &[u8],
    ) -> libbpf_rs::Result<bool> {
        let key = self.object_key(site, path);
        if pinned.objects.get(&key).is_none_or(|object| *object.path != *path) {
            return Ok(false);
        }
        self.objects.delete(&key.to_bytes())?;
        if let Some(object) = pinned.objects.remove(&key) {
            self.retire(pinned, object.lots);
            self.unmark_path(pinned, key.path_hash);
        }
        Ok(true)
    }

    fn mark_path(&self, pinned: &mut Pinned, hash: u64) {
        let bit = hash as usize % PATH_FILTER_BITS;
        pinned.marks[bit] += 1;
        self.region.paths(bit).fetch_or(1 << (bit % 64), Ordering::SeqCst);
    }

    fn unmark_path(&self, pinned: &mut Pinned, hash: u64) {
        let bit = hash as usize % PATH_FILTER_BITS;
        pinned.marks[bit] -= 1;
        if pinned.marks[bit] == 0 {
            self.region.paths(bit).fetch_and(!(1 << (bit % 64)), Ordering::SeqCst);
        }
    }
}

/// User mode's view of what is pinned.
pub(crate) struct Pinned {
    objects: HashMap<ObjectKey, PinnedObject>,
    /// There are so many, free or not.
    slots: usize,
    pages: usize,
    room: Room,
    version: u64,
    /// Objects under each bit of the path filter.
    marks: Vec<u32>,
}

struct PinnedObject {
    path: Box<[u8]>,
    lots: Vec<Lot>,
}

impl Pinned {
    /// Slots that an earlier process left in use may still be repeated: they are retired now.
    /// Versions start at the clock, so that those of an earlier process are not met again.
    pub(crate) fn new(slots: &Slots, pages: &Pages) -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let version = |index: &u32| slots.version(*index).load(Ordering::Relaxed);
        let (free, used): (Vec<u32>, Vec<u32>) =
            (1..slots.len()).rev().partition(|index| version(index) == 0);
        let mut free_pages: HashSet<u32> = (1..pages.len()).collect();
        let counts = (free.len() + used.len(), free_pages.len());
        let lots: Vec<(u64, Lot)> = used
            .into_iter()
            .map(|slot| {
                let mut pages = slots.pages(slot).to_vec();
                pages.retain(|page| free_pages.remove(page));
                (version(&slot), Lot { slot, pages })
            })
            .collect();
        let mut room = Room::new(free, free_pages.into_iter().collect());
        let now = Instant::now();
        lots.into_iter().for_each(|(version, lot)| room.retire(version, lot, now));
        Self {
            objects: HashMap::new(),
            slots: counts.0,
            pages: counts.1,
            room,
            version: since.as_nanos() as u64,
            marks: vec![0; PATH_FILTER_BITS],
        }
    }

    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }
}
