//! The kernel's part of the cache: pinned objects.
//!
//! An object is one map entry that names a slot for each stored coding. Answers that are longer than a slot
//! have *pages*. Pinning again replaces the entry in one step. Slots and pages of the older version stay for a
//! while, because an answer that was lost must be sent again with the same bytes, and one that is under way
//! must come to its end. Then they are free.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use afpa_abi::{Object, ObjectKey, PAGE, PATH_FILTER_BITS, Sample};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::conn::SiteNumber;
use crate::conn::flows::Flows;
use crate::net::sum::path_hash;
use crate::programs::Programs;
use crate::region::Region;
use crate::settings::{Settings, longest_answer};
use crate::unavailable::{Unavailable, explain};

use super::draft::Draft;
use super::pinned::{Pinned, PinnedObject};
use super::places::{Pages, Slots};
use super::room::{FreeRoom, Freed, Lot, RIPE};
use super::variant::{AcceptedCodings, LONGEST_ANSWER, PinError, PinRules, Variant};

/// The room that pinned objects take up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Objects that are pinned.
    pub objects: usize,
    /// Slots that are not free: of pinned variants and retired ones.
    pub slots: usize,
    /// Pages that are not free.
    pub pages: usize,
    /// Memory of the slots and pages.
    pub bytes: usize,
    /// The part of it that belongs to versions which are answered no more: a client may still need them.
    pub retired_bytes: usize,
}

/// The places of an object that was pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedPlaces {
    /// Of the variants, one each, as events will name them.
    pub versions: Vec<u64>,
    /// How many of its slots have their memory whether they are used or not.
    pub ready_slots: usize,
    /// How many of its pages.
    pub ready_pages: usize,
}

/// The pinned objects.
pub struct Objects {
    region: Arc<Region>,
    flows: Arc<Flows>,
    objects: MapHandle,
    slots: Slots,
    pages: Pages,
    pinned: Arc<Mutex<Pinned>>,
    /// Longest answers, to requests that do not ask for the connection's end and to those that do.
    answer_max: [usize; 2],
    /// See [`Settings::retire_after`].
    retire_after: Duration,
    /// See [`Settings::retired_bytes`].
    retired_bytes: usize,
}

impl Objects {
    /// `may_close`: connections may have no socket.
    pub(crate) fn over(
        programs: &Programs,
        region: &Arc<Region>,
        flows: &Arc<Flows>,
        settings: &Settings,
        may_close: bool,
    ) -> Result<Self, Unavailable> {
        let slots = Slots::over(&programs.map("slots")?, programs.map("more_slots")?)
            .map_err(|error| explain("objects cannot be mapped", &error))?;
        let pages = Pages::over(&programs.map("pages")?, programs.map("more_pages")?)
            .map_err(|error| explain("pages of objects cannot be mapped", &error))?;
        let longest = |closing| {
            let (most, last) = (settings.answer_max, settings.last_answer_max);
            (longest_answer(closing, most, last) as usize).min(LONGEST_ANSWER)
        };
        Ok(Self {
            region: Arc::clone(region),
            flows: Arc::clone(flows),
            objects: programs.map("objects")?,
            pinned: Arc::new(Mutex::new(Pinned::new(&slots, &pages, settings.more_bytes))),
            slots,
            pages,
            answer_max: [longest(false), longest(may_close)],
            retire_after: settings.retire_after,
            retired_bytes: settings.retired_bytes,
        })
    }

    /// Answer GET and HEAD for `path` of `site` from now on. `path` is compared with the request
    /// target byte by byte: pin the spelling clients use. Returns the versions, one a variant, that
    /// events will name.
    pub fn pin(
        &self,
        site: SiteNumber,
        path: &[u8],
        variants: &[Variant<'_>],
    ) -> Result<Vec<u64>, PinError> {
        self.pin_with(site, path, variants, &PinRules::default())
    }

    /// [`pin`](Self::pin), only for the requests that the rules admit.
    pub fn pin_with(
        &self,
        site: SiteNumber,
        path: &[u8],
        variants: &[Variant<'_>],
        rules: &PinRules,
    ) -> Result<Vec<u64>, PinError> {
        self.pin_all(site, path, (variants, &[]), rules).map(|pinned| pinned.versions)
    }

    /// Whether HTTP/1.0 that keeps its connection has asked for a pinned object that has no answers for it.
    pub fn wants_old_kept(&self) -> bool {
        self.region.old_kept().load(Ordering::Relaxed) != 0
    }

    /// [`pin_with`](Self::pin_with), and with `old_kept`, the answers to HTTP/1.0 that keeps its connection. Their versions
    /// stand behind the others.
    pub fn pin_all(
        &self,
        site: SiteNumber,
        path: &[u8],
        (variants, old_kept): (&[Variant<'_>], &[Variant<'_>]),
        rules: &PinRules,
    ) -> Result<PinnedPlaces, PinError> {
        let all = || variants.iter().chain(old_kept);
        let mut pinned = self.lock_pinned();
        let key = ObjectKey { codings: rules.codings(), ..self.object_key(site, path) };
        let drafts = all()
            .map(|variant| {
                Draft::new(site, path, &self.as_answered(variant), self.longest_answer())
            })
            .collect::<Result<Vec<_>, _>>();
        let drafts = match drafts {
            Ok(drafts) => drafts,
            Err(error) => {
                self.remove(&mut pinned, &key, path)?;
                return Err(error);
            }
        };
        if pinned.objects.get(&key).is_some_and(|object| *object.path != *path) {
            return Err(PinError::Collision);
        }
        let Some(lots) = self.take(&mut pinned, &drafts) else {
            self.remove(&mut pinned, &key, path)?;
            return Err(PinError::Full);
        };
        let mut object = Object { fields: rules.word(), ..Object::ZERO };
        let mut versions = Vec::with_capacity(drafts.len());
        let mut written = Ok(true);
        for (((at, mut draft), variant), lot) in
            drafts.into_iter().enumerate().zip(all()).zip(&lots)
        {
            if !rules.head[variant.coding as usize] {
                draft.slot.whole.head_length = 0; // too long for the fast path, that is
            }
            draft.slot.codings = u32::from(key.codings);
            let version = pinned.next_version();
            written = self.write(draft, version, lot);
            if !matches!(written, Ok(true)) {
                break;
            }
            let slots = match variant.closing {
                _ if at >= variants.len() => &mut object.old_kept,
                true => &mut object.closing,
                false => &mut object.slot,
            };
            slots[variant.coding as usize] = lot.slot;
            versions.push(version);
        }
        if !matches!(written, Ok(true)) {
            self.give_back(&mut pinned, lots); // nothing leads to them yet
            self.remove(&mut pinned, &key, path)?;
            return Err(written.err().map_or(PinError::Full, PinError::from));
        }
        if let Err(error) = self.objects.update(&key.to_bytes(), &object.to_bytes(), MapFlags::ANY)
        {
            self.retire(&mut pinned, lots);
            self.remove(&mut pinned, &key, path)?;
            return Err(error.into());
        }
        let count = lots.len();
        let ready = lots.iter().map(|lot| pinned.room.sizes().ready(lot));
        let (ready_slots, ready_pages) =
            ready.fold((0, 0), |(slots, pages), one| (slots + one.0, pages + one.1));
        match pinned.objects.insert(key, PinnedObject { path: path.into(), lots }) {
            Some(older) => {
                if older.lots.len() < count {
                    self.region.pins().fetch_add(1, Ordering::Relaxed); // more requests are answered
                }
                self.retire(&mut pinned, older.lots);
            }
            None => {
                self.mark_path(&mut pinned, key.path_hash);
                self.region.pins().fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(PinnedPlaces { versions, ready_slots, ready_pages })
    }

    /// Answer `path` no more; when this returns, no further packet is answered with it, except to
    /// repeat an answer that was lost, or to go on with one that is under way. False: it was not pinned.
    pub fn unpin(&self, site: SiteNumber, path: &[u8]) -> libbpf_rs::Result<bool> {
        let key = self.object_key(site, path);
        self.remove(&mut self.lock_pinned(), &key, path)
    }

    /// [`unpin`](Self::unpin), for an object that was pinned with rules that name codings.
    pub fn unpin_for(
        &self,
        site: SiteNumber,
        path: &[u8],
        codings: Option<AcceptedCodings>,
    ) -> libbpf_rs::Result<bool> {
        let rules = PinRules { codings, ..PinRules::default() };
        let key = ObjectKey { codings: rules.codings(), ..self.object_key(site, path) };
        self.remove(&mut self.lock_pinned(), &key, path)
    }

    /// Whether requests like the sampled one, for `path`, are answered with its version.
    pub fn answers_with(&self, sample: &Sample, path: &[u8]) -> bool {
        let pinned = self.lock_pinned();
        let (key, version) = (self.object_key(sample.site, path), sample.version);
        let object = pinned.objects.get(&ObjectKey { codings: sample.codings, ..key });
        object.filter(|object| *object.path == *path).is_some_and(|object| {
            let is = |lot: &Lot| self.slots.version(lot.slot) == version;
            object.lots.iter().any(is)
        })
    }

    /// Whether the pinned answer of an attached server was given since it was pinned.
    pub fn was_used(&self, site: SiteNumber, path: &[u8]) -> bool {
        let pinned = self.lock_pinned();
        let object = pinned.objects.get(&self.object_key(site, path));
        object
            .filter(|object| *object.path == *path)
            .is_some_and(|object| object.lots.iter().any(|lot| self.slots.is_used(lot.slot)))
    }

    /// Longest answer, head and content, that may be pinned.
    pub fn longest_answer(&self) -> usize {
        self.answer_max(true)
    }

    /// Longest answer to requests that ask for the connection's end, or to those that do not.
    fn answer_max(&self, closing: bool) -> usize {
        self.answer_max[usize::from(closing)]
    }

    /// The variant without the answer that only the other kind of requests gets.
    fn as_answered<'o>(&self, variant: &Variant<'o>) -> Variant<'o> {
        let length = variant.whole.map_or(0, |whole| whole.head.len() + whole.body.len());
        let left_out = length > self.answer_max(variant.closing) && length <= self.longest_answer();
        Variant { whole: variant.whole.filter(|_| !left_out), ..*variant }
    }

    /// [`reclaim`](Self::reclaim), when retired versions take up more than
    /// [`Settings::retired_bytes`].
    pub fn keep_within_bounds(&self) -> libbpf_rs::Result<()> {
        match self.usage().retired_bytes > self.retired_bytes {
            true => self.reclaim(),
            false => Ok(()),
        }
    }

    /// Slots and pages that there are, in use or not. There may be less memory than for all of them.
    pub fn room(&self) -> (usize, usize) {
        self.lock_pinned().room.sizes().counts()
    }

    /// Slots that may be used now, if no pages are.
    pub fn free_slots(&self) -> usize {
        self.lock_pinned().room.free_slots()
    }

    /// The room that is free now.
    pub fn free_room(&self) -> FreeRoom {
        self.lock_pinned().room.free_room()
    }

    /// The memory that all slots and pages may take up.
    pub fn memory(&self) -> usize {
        self.lock_pinned().room.sizes().all_bytes()
    }

    /// Frees retired objects that no connection needs any more, instead of waiting for
    /// [`Settings::retire_after`], and those beyond
    /// [`Settings::retired_bytes`]. Some of them are free with a call a second later. Looks at every connection if there is
    /// any retired object: call it when objects wait for room, and not too often.
    pub fn reclaim(&self) -> libbpf_rs::Result<()> {
        let ripe = self.lock_pinned().room.older_than(RIPE, Duration::ZERO, Instant::now());
        if !ripe.is_empty() {
            let needed = self.flows.needed()?;
            self.let_go(&mut self.lock_pinned(), &ripe, &needed);
        }
        let mut pinned = self.lock_pinned();
        let now = Instant::now();
        let ended = pinned.room.end_beyond(self.retired_bytes, now);
        ended.into_iter().for_each(|slot| self.slots.vacate(slot));
        self.free_ended(&mut pinned, now);
        Ok(())
    }

    /// Frees what was retired [`Settings::retire_after`] ago and no connection needs any more, whether or not anything
    /// waits for its room: its memory goes back. Looks at every connection if there is any.
    ///
    /// # Errors
    ///
    /// The connections cannot be listed.
    pub fn forget_retired(&self) -> libbpf_rs::Result<()> {
        let now = Instant::now();
        let old = {
            let mut pinned = self.lock_pinned();
            self.free_ended(&mut pinned, now);
            pinned.room.older_than(self.retire_after, self.retire_after, now)
        };
        if !old.is_empty() {
            let needed = self.flows.needed()?;
            self.let_go(&mut self.lock_pinned(), &old, &needed);
        }
        Ok(())
    }

    /// Pinned objects, and slots in use (those being retired included).
    pub fn pinned_objects(&self) -> (usize, usize) {
        let usage = self.usage();
        (usage.objects, usage.slots)
    }

    /// The room that pinned objects take up.
    pub fn usage(&self) -> Usage {
        let pinned = self.lock_pinned();
        let (slots, pages, bytes) = pinned.room.taken();
        Usage {
            objects: pinned.objects.len(),
            slots,
            pages,
            bytes,
            retired_bytes: pinned.room.retired_bytes(),
        }
    }

    /// For tests: pages that have memory, besides those that have it from the start on.
    #[doc(hidden)]
    pub fn more_pages(&self) -> usize {
        self.pages.filled()
    }

    /// Taken while the kernel's objects change.
    pub(crate) fn changing(&self) -> Arc<Mutex<Pinned>> {
        Arc::clone(&self.pinned)
    }

    fn lock_pinned(&self) -> MutexGuard<'_, Pinned> {
        self.pinned.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn object_key(&self, site: SiteNumber, path: &[u8]) -> ObjectKey {
        let seed = self.region.hash_seed().load(Ordering::Relaxed);
        ObjectKey {
            path_hash: path_hash(seed, path),
            site,
            path_length: path.len() as u16,
            codings: 0,
        }
    }

    /// Lots for all drafts, or none.
    fn take(&self, pinned: &mut Pinned, drafts: &[Draft]) -> Option<Vec<Lot>> {
        let pages: Vec<usize> = drafts.iter().map(Draft::pages).collect();
        if let Some(lots) = pinned.room.take(&pages) {
            return Some(lots);
        }
        let now = Instant::now();
        self.free_ended(pinned, now);
        let old = pinned.room.older_than(self.retire_after, RIPE, now);
        // If the table cannot be read, any of them may be needed.
        if !old.is_empty()
            && let Ok(needed) = self.flows.in_transfer()
        {
            self.let_go(pinned, &old, &needed);
        }
        if let Some(lots) = pinned.room.take(&pages) {
            return Some(lots);
        }
        // Before an object is turned away: nothing may be kept that no client needs.
        if pinned.looked.is_none_or(|then| now - then >= RIPE) {
            pinned.looked = Some(now);
            let ripe = pinned.room.older_than(RIPE, Duration::ZERO, now);
            if !ripe.is_empty()
                && let Ok(needed) = self.flows.needed()
            {
                self.let_go(pinned, &ripe, &needed);
            }
        }
        pinned.room.take(&pages)
    }

    /// Frees the retired `slots` that are not `needed`.
    fn let_go(&self, pinned: &mut Pinned, slots: &HashMap<u32, u64>, needed: &HashSet<(u32, u64)>) {
        let looked_at = |slot: u32, version: u64| slots.get(&slot) == Some(&version);
        let is_needed = |slot: u32, version: u64| needed.contains(&(slot, version));
        let now = Instant::now();
        let unneeded = |slot, version| looked_at(slot, version) && !is_needed(slot, version);
        let Freed { lots, ended } = pinned.room.free(unneeded, now);
        ended.into_iter().for_each(|slot| self.slots.vacate(slot));
        self.give_back(pinned, lots);
        pinned.room.keep(looked_at, now);
    }

    fn free_ended(&self, pinned: &mut Pinned, now: Instant) {
        let freed = pinned.room.free_ended(now);
        self.give_back(pinned, freed);
    }

    /// The slots first: a program that is at work with a page looks at its version when it is done. Where that would tell nothing,
    /// the slot has been vacant for long enough (see [`Freed`]), or nothing has led to the lot.
    fn give_back(&self, pinned: &mut Pinned, lots: Vec<Lot>) {
        for lot in &lots {
            self.slots.vacate(lot.slot);
            lot.pages.iter().for_each(|page| self.pages.vacate(*page));
        }
        pinned.room.give_back(lots);
    }

    /// The version appears last, so that a program sees all of it or none. False: the kernel has no memory for all of it now.
    fn write(&self, mut draft: Draft, version: u64, lot: &Lot) -> libbpf_rs::Result<bool> {
        draft.slot.version = version;
        self.slots.vacate(lot.slot);
        for ((place, index), start) in
            draft.slot.pages.iter_mut().zip(&lot.pages).zip((0..).step_by(PAGE))
        {
            if !self.pages.write(*index, &draft.long[start..])? {
                return Ok(false);
            }
            *place = *index;
        }
        self.slots.write(lot.slot, &draft.slot)
    }

    fn retire(&self, pinned: &mut Pinned, lots: Vec<Lot>) {
        let now = Instant::now();
        for lot in lots {
            let version = self.slots.version(lot.slot);
            pinned.room.retire(version, lot, now);
        }
    }

    /// Deletes the kernel's entry first; everything else is bookkeeping.
    fn remove(&self, pinned: &mut Pinned, key: &ObjectKey, path: &[u8]) -> libbpf_rs::Result<bool> {
        if pinned.objects.get(key).is_none_or(|object| *object.path != *path) {
            return Ok(false);
        }
        self.objects.delete(&key.to_bytes())?;
        if let Some(object) = pinned.objects.remove(key) {
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
