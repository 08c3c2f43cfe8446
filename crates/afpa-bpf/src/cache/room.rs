//! Which slots and pages are free, which belong to pinned variants, and which to retired versions that a
//! client may still need.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use super::places::{MORE_PAGE_BYTES, MORE_VARIANT_BYTES, PAGE_BYTES, VARIANT_BYTES};

/// The slot and the pages of one variant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lot {
    pub(crate) slot: u32,
    pub(crate) pages: Vec<u32>,
}

/// The numbers of places, and the memory that those may take which do not have theirs from the start on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Numbers of slots and pages end before these.
    pub(crate) slots: u32,
    pub(crate) pages: u32,
    /// The first numbers that are not of ready places.
    pub(crate) more_slots_from: u32,
    pub(crate) more_pages_from: u32,
    /// Bytes for slots and pages that are not ready.
    pub(crate) most_bytes: usize,
}

impl Sizes {
    /// How many slots, and how many pages, there are.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.slots as usize - 1, self.pages as usize - 1)
    }

    /// All memory that there may be.
    pub(crate) fn all_bytes(&self) -> usize {
        let ready = |from: u32| from.saturating_sub(1) as usize; // number 0 is never used
        let ready =
            ready(self.more_slots_from) * VARIANT_BYTES + ready(self.more_pages_from) * PAGE_BYTES;
        ready.saturating_add(self.most_bytes)
    }

    /// How many slots, and how many pages, of a lot have their memory from the start on.
    pub(crate) fn ready(&self, lot: &Lot) -> (usize, usize) {
        let pages = lot.pages.iter().filter(|page| **page < self.more_pages_from).count();
        (usize::from(lot.slot < self.more_slots_from), pages)
    }

    /// Whether pages of the lot may be used anew only [`RIPE`] after the slot is vacant. A program at work with them looks at the
    /// version of the slot when it is done. Where the slot was not ready, that is memory which nobody has, and its version stays
    /// until it is used anew, perhaps later than the pages.
    fn needs_grace(&self, lot: &Lot) -> bool {
        lot.slot >= self.more_slots_from && !lot.pages.is_empty()
    }

    /// The part of a lot's memory that was not there from the start on.
    fn more_bytes(&self, lot: &Lot) -> usize {
        let (slots, pages) = self.ready(lot);
        (1 - slots) * MORE_VARIANT_BYTES + (lot.pages.len() - pages) * MORE_PAGE_BYTES
    }

    fn bytes(&self, lot: &Lot) -> usize {
        let (slots, pages) = self.ready(lot);
        slots * VARIANT_BYTES + pages * PAGE_BYTES + self.more_bytes(lot)
    }
}

/// Room that is free now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreeRoom {
    /// Slots, whether there is memory for them or not.
    pub slots: usize,
    /// Pages, the same.
    pub pages: usize,
    /// The slots that have their memory.
    pub ready_slots: usize,
    /// The pages that have theirs.
    pub ready_pages: usize,
    /// Memory that the others may take, slots and pages together.
    pub more_bytes: usize,
}

impl FreeRoom {
    /// Whether there are so many slots and pages, and memory for all of them together.
    pub fn fits(&self, slots: usize, pages: usize) -> bool {
        let more_slots = slots.saturating_sub(self.ready_slots);
        let more_pages = pages.saturating_sub(self.ready_pages);
        slots <= self.slots
            && pages <= self.pages
            && more_slots * MORE_VARIANT_BYTES + more_pages * MORE_PAGE_BYTES <= self.more_bytes
    }
}

/// No program works longer than this with an object that it has looked up; an ample bound.
pub(crate) const RIPE: Duration = Duration::from_secs(1);

/// Lots that nobody needs any more.
#[derive(Debug, Default)]
pub(crate) struct Freed {
    pub(crate) lots: Vec<Lot>,
    /// Slots of others, which must be made vacant now. They are free some time later.
    pub(crate) ended: Vec<u32>,
}

/// All slots and pages. Each one is free, or in a [`Lot`] that was taken, or in a retired one.
pub(crate) struct Room {
    sizes: Sizes,
    slots: Free,
    pages: Free,
    /// Memory of the lots that are not free.
    bytes: usize,
    /// The part of it that counts towards [`Sizes::most_bytes`].
    more_bytes: usize,
    /// Oldest first.
    retired: VecDeque<Retired>,
}

/// Free places of one kind. Those that are ready are taken first: the programs find them at no cost.
struct Free {
    ready: Vec<u32>,
    more: Vec<u32>,
    more_from: u32,
}

impl Free {
    fn new(numbers: impl IntoIterator<Item = u32>, more_from: u32) -> Self {
        let (mut ready, mut more): (Vec<u32>, Vec<u32>) =
            numbers.into_iter().partition(|number| *number < more_from);
        for numbers in [&mut ready, &mut more] {
            numbers.sort_unstable_by_key(|number| Reverse(*number));
        }
        Self { ready, more, more_from }
    }

    fn len(&self) -> usize {
        self.ready.len() + self.more.len()
    }

    fn take(&mut self) -> Option<u32> {
        self.ready.pop().or_else(|| self.more.pop())
    }

    fn give_back(&mut self, number: u32) {
        if number < self.more_from { &mut self.ready } else { &mut self.more }.push(number);
    }
}

/// A lot whose version is not used for new answers any more.
struct Retired {
    version: u64,
    lot: Lot,
    since: Instant,
    /// When a connection was last found to need it.
    needed: Option<Instant>,
    /// When its slot was made vacant although a connection may need it.
    ended: Option<Instant>,
}

impl Room {
    /// `taken`: lots that an earlier process left, and their versions; they are retired.
    pub(crate) fn new(sizes: Sizes, taken: Vec<(u64, Lot)>) -> Self {
        let slots: HashSet<u32> = taken.iter().map(|(_, lot)| lot.slot).collect();
        let pages: HashSet<u32> = taken.iter().flat_map(|(_, lot)| &lot.pages).copied().collect();
        let free = |all: u32, used: &HashSet<u32>, more_from: u32| {
            Free::new((1..all).filter(|number| !used.contains(number)), more_from)
        };
        let mut room = Self {
            sizes,
            slots: free(sizes.slots, &slots, sizes.more_slots_from),
            pages: free(sizes.pages, &pages, sizes.more_pages_from),
            bytes: 0,
            more_bytes: 0,
            retired: VecDeque::new(),
        };
        let now = Instant::now();
        for (version, lot) in taken {
            room.count(&lot);
            room.retire(version, lot, now);
        }
        room
    }

    pub(crate) fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// The room that is free now.
    pub(crate) fn free_room(&self) -> FreeRoom {
        FreeRoom {
            slots: self.slots.len(),
            pages: self.pages.len(),
            ready_slots: self.slots.ready.len(),
            ready_pages: self.pages.ready.len(),
            more_bytes: self.sizes.most_bytes.saturating_sub(self.more_bytes),
        }
    }

    /// Slots that are free now, if no page is taken.
    pub(crate) fn free_slots(&self) -> usize {
        let free = self.free_room();
        free.slots.min(free.ready_slots + free.more_bytes / MORE_VARIANT_BYTES)
    }

    /// Slots and pages that are not free, and their memory.
    pub(crate) fn taken(&self) -> (usize, usize, usize) {
        let (slots, pages) = self.sizes.counts();
        (slots - self.slots.len(), pages - self.pages.len(), self.bytes)
    }

    /// One lot for each number of pages; all of them or none.
    pub(crate) fn take(&mut self, pages: &[usize]) -> Option<Vec<Lot>> {
        if !self.free_room().fits(pages.len(), pages.iter().sum()) {
            return None;
        }
        let mut lots = Vec::with_capacity(pages.len());
        for count in pages {
            let pages = (0..*count).map_while(|_| self.pages.take()).collect();
            let lot = Lot { slot: self.slots.take()?, pages };
            self.count(&lot);
            lots.push(lot);
        }
        Some(lots)
    }

    /// Gives back lots with which no program can be at work.
    pub(crate) fn give_back(&mut self, lots: Vec<Lot>) {
        for lot in lots {
            self.bytes -= self.sizes.bytes(&lot);
            self.more_bytes -= self.sizes.more_bytes(&lot);
            self.slots.give_back(lot.slot);
            lot.pages.into_iter().for_each(|page| self.pages.give_back(page));
        }
    }

    fn count(&mut self, lot: &Lot) {
        self.bytes += self.sizes.bytes(lot);
        self.more_bytes += self.sizes.more_bytes(lot);
    }

    /// Retires a version: it is not used for new answers any more, but may still be sent, or sent again.
    pub(crate) fn retire(&mut self, version: u64, lot: Lot, now: Instant) {
        let retired = Retired { version, lot, since: now, needed: None, ended: None };
        self.retired.push_back(retired);
    }

    /// Slots and versions that were retired at least `age` ago, and that nobody was found to need within the
    /// last `again`. Lots with pages are at least [`RIPE`], so that no program is about to begin with one.
    pub(crate) fn older_than(
        &self,
        age: Duration,
        again: Duration,
        now: Instant,
    ) -> HashMap<u32, u64> {
        let old = |retired: &&Retired| {
            let age = if retired.lot.pages.is_empty() { age } else { age.max(RIPE) };
            let looked_at = retired.needed.is_some_and(|needed| now - needed < again);
            retired.ended.is_none() && now - retired.since >= age && !looked_at
        };
        let old = self.retired.iter().filter(old);
        old.map(|retired| (retired.lot.slot, retired.version)).collect()
    }

    /// Removes the retired lots for which `unneeded` (slot, version) holds. Their places must be made vacant before they are
    /// [given back](Self::give_back). Some are [ended](Self::end_beyond) instead: see [`Sizes::needs_grace`].
    pub(crate) fn free(&mut self, unneeded: impl Fn(u32, u64) -> bool, now: Instant) -> Freed {
        let is_unneeded = |retired: &Retired| unneeded(retired.lot.slot, retired.version);
        let sizes = self.sizes;
        let mut ended = Vec::new();
        for retired in self.retired.iter_mut().filter(|retired| {
            retired.ended.is_none() && sizes.needs_grace(&retired.lot) && is_unneeded(retired)
        }) {
            retired.ended = Some(now);
            ended.push(retired.lot.slot);
        }
        let lots = self.free_where(|retired| retired.ended.is_none() && is_unneeded(retired));
        Freed { lots, ended }
    }

    /// Notes that the lots for which `needed` holds were looked at, and are needed.
    pub(crate) fn keep(&mut self, needed: impl Fn(u32, u64) -> bool, now: Instant) {
        let needed = |retired: &&mut Retired| needed(retired.lot.slot, retired.version);
        self.retired.iter_mut().filter(needed).for_each(|retired| retired.needed = Some(now));
    }

    /// Ends the oldest needed lots, until the rest takes up no more than `most` bytes. The returned slots must be
    /// made vacant now; they are free some time later.
    pub(crate) fn end_beyond(&mut self, most: usize, now: Instant) -> Vec<u32> {
        let needed = |retired: &&Retired| retired.needed.is_some() && retired.ended.is_none();
        let sizes = self.sizes;
        let held = self.retired.iter().filter(needed).map(|held| sizes.bytes(&held.lot));
        let held: usize = held.sum();
        let mut beyond = held.saturating_sub(most);
        let mut ended = Vec::new();
        for retired in &mut self.retired {
            if beyond == 0 {
                break;
            }
            if retired.needed.is_some() && retired.ended.is_none() {
                beyond = beyond.saturating_sub(sizes.bytes(&retired.lot));
                retired.ended = Some(now);
                ended.push(retired.lot.slot);
            }
        }
        ended
    }

    /// Removes the ended lots with which no program can be at work any more, as [`free`](Self::free).
    pub(crate) fn free_ended(&mut self, now: Instant) -> Vec<Lot> {
        self.free_where(|retired| retired.ended.is_some_and(|ended| now - ended >= RIPE))
    }

    /// Bytes of all retired lots.
    pub(crate) fn retired_bytes(&self) -> usize {
        self.retired.iter().map(|retired| self.sizes.bytes(&retired.lot)).sum()
    }

    fn free_where(&mut self, free: impl Fn(&Retired) -> bool) -> Vec<Lot> {
        let mut freed = Vec::new();
        for retired in std::mem::take(&mut self.retired) {
            if free(&retired) {
                freed.push(retired.lot);
            } else {
                self.retired.push_back(retired);
            }
        }
        freed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room() -> Room {
        let (more_slots_from, more_pages_from, most_bytes) = (3, 6, usize::MAX);
        let sizes = Sizes { slots: 5, pages: 11, more_slots_from, more_pages_from, most_bytes };
        Room::new(sizes, Vec::new())
    }

    fn bounded(most_bytes: usize) -> Room {
        let mut room = room();
        room.sizes.most_bytes = most_bytes;
        room
    }

    /// Pages that are free if no slot is taken.
    fn free_pages(room: &Room) -> usize {
        (0..=10).rev().find(|pages| room.free_room().fits(0, *pages)).expect("none fits")
    }

    /// No slot or page is lost, and none is there twice.
    fn assert_complete(room: &Room, taken: &[&Lot]) {
        let lots = room.retired.iter().map(|retired| &retired.lot).chain(taken.iter().copied());
        let all = |free: &Free| free.ready.iter().chain(&free.more).copied().collect::<Vec<_>>();
        let (mut slots, mut pages) = (all(&room.slots), all(&room.pages));
        for lot in lots {
            slots.push(lot.slot);
            pages.extend(&lot.pages);
        }
        slots.sort_unstable();
        pages.sort_unstable();
        assert!(slots.iter().copied().eq(1..=4) && pages.iter().copied().eq(1..=10));
    }

    #[test]
    fn lots_are_taken_all_or_none() {
        let mut room = room();
        assert!(room.take(&[0; 5]).is_none() && room.take(&[6, 5]).is_none());
        let lots = room.take(&[3, 0, 7]).expect("there is room");
        assert_eq!(lots.iter().map(|lot| lot.pages.len()).collect::<Vec<_>>(), [3, 0, 7]);
        assert_complete(&room, &lots.iter().collect::<Vec<_>>());
        assert!(room.take(&[1]).is_none(), "no page is left");
        assert_eq!(room.take(&[0]).map(|lots| lots.len()), Some(1));
    }

    #[test]
    fn what_is_needed_stays() {
        let mut room = room();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        for (version, lot) in (1..).zip(room.take(&[0, 2, 8]).expect("room")) {
            room.retire(version, lot, start);
        }
        assert_eq!(room.older_than(Duration::ZERO, RIPE, start).len(), 1, "pages get their time");
        assert_eq!(room.older_than(Duration::from_secs(60), RIPE, at(59)).len(), 0);
        assert_eq!(room.older_than(Duration::from_secs(60), RIPE, at(60)).len(), 3);
        room.keep(|_, version| version == 2, at(60));
        let freed = room.free(|_, version| version != 2, at(60));
        assert_eq!(
            (freed.lots.len(), &freed.ended[..]),
            (1, &[3][..]),
            "pages of a slot that is not ready"
        );
        room.give_back(freed.lots);
        let freed = room.free(|_, version| version != 2, at(60));
        assert!(freed.lots.is_empty() && freed.ended.is_empty(), "ended once");
        assert!(room.free_ended(at(60)).is_empty(), "a program may be at work with the pages");
        let freed = room.free_ended(at(61));
        room.give_back(freed);
        assert_eq!((room.free_slots(), free_pages(&room)), (3, 8));
        assert!(room.older_than(Duration::ZERO, RIPE, at(60)).is_empty(), "just looked at");
        assert_eq!(room.older_than(Duration::ZERO, RIPE, at(61)).len(), 1);
        assert_complete(&room, &[]);
    }

    #[test]
    fn what_is_kept_for_others_is_bounded() {
        let mut room = room();
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let lots = room.take(&[1, 4, 5]).expect("room");
        let newest = room.sizes.bytes(&lots[2]);
        for (version, lot) in (1..).zip(lots) {
            room.retire(version, lot, start);
        }
        assert!(room.end_beyond(0, at(1)).is_empty(), "nobody was found to need them");
        room.keep(|_, _| true, at(1));
        assert_eq!(room.end_beyond(newest, at(2)).len(), 2, "the oldest first");
        assert!(room.end_beyond(newest, at(3)).is_empty(), "ended once");
        assert!(room.free_ended(at(1001)).is_empty(), "a program may be at work with them");
        let freed = room.free_ended(at(1002));
        assert_eq!(freed.len(), 2);
        room.give_back(freed);
        assert_eq!(room.retired_bytes(), newest);
        assert_complete(&room, &[]);
    }

    #[test]
    fn ready_places_are_taken_first_and_the_memory_of_the_others_is_bounded() {
        let mut room = bounded(MORE_VARIANT_BYTES + 2 * MORE_PAGE_BYTES);
        assert_eq!((room.free_slots(), free_pages(&room)), (4, 7));
        let ready = room.take(&[4, 1]).expect("they have their memory");
        assert_eq!((room.more_bytes, room.bytes), (0, 2 * VARIANT_BYTES + 5 * PAGE_BYTES));
        assert!(room.take(&[3]).is_none() && room.take(&[1, 1]).is_none());
        assert!(room.free_room().fits(0, 2) && room.free_room().fits(2, 1));
        assert!(!room.free_room().fits(2, 2), "slots and pages share the memory");
        let more = room.take(&[2]).expect("as much as may be");
        assert!(more[0].slot >= 3 && more[0].pages.iter().all(|page| *page >= 6));
        assert_eq!((room.free_slots(), free_pages(&room)), (0, 0));
        assert_complete(&room, &ready.iter().chain(&more).collect::<Vec<_>>());
        room.give_back(ready);
        room.give_back(more);
        assert_eq!(room.taken(), (0, 0, 0));
        assert_eq!(room.take(&[0]).map(|lots| lots[0].slot <= 2), Some(true), "a ready one again");
    }

    #[test]
    fn places_that_an_earlier_process_left_are_retired() {
        let left = Lot { slot: 4, pages: vec![2, 10] };
        let sizes = *room().sizes();
        let mut room = Room::new(sizes, vec![(7, left)]);
        assert_eq!(room.taken(), (1, 2, MORE_VARIANT_BYTES + PAGE_BYTES + MORE_PAGE_BYTES));
        assert_complete(&room, &[]);
        let now = Instant::now();
        let freed = room.free(|slot, version| (slot, version) == (4, 7), now);
        assert_eq!(freed.ended, [4]);
        let freed = room.free_ended(now + RIPE);
        room.give_back(freed);
        assert_eq!(room.taken(), (0, 0, 0));
        assert_complete(&room, &[]);
    }
}
