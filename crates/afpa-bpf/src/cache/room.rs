//! Which slots and pages are free, which belong to pinned variants, and which to retired versions that a
//! client may still need.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use afpa_abi::{Page, Slot};

/// Memory of one pinned variant.
pub const VARIANT_BYTES: usize = size_of::<Slot>();

/// Memory of one page.
pub const PAGE_BYTES: usize = size_of::<Page>();

/// The slot and the pages of one variant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lot {
    pub(crate) slot: u32,
    pub(crate) pages: Vec<u32>,
}

impl Lot {
    pub(crate) fn bytes(&self) -> usize {
        VARIANT_BYTES + self.pages.len() * PAGE_BYTES
    }
}

/// No program works longer than this with an object that it has looked up; an ample bound.
pub(crate) const RIPE: Duration = Duration::from_secs(1);

/// All slots and pages. Each one is free, or in a [`Lot`] that was taken, or in a retired one.
pub(crate) struct Room {
    slots: Vec<u32>,
    pages: Vec<u32>,
    /// Oldest first.
    retired: VecDeque<Retired>,
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
    pub(crate) fn new(slots: Vec<u32>, pages: Vec<u32>) -> Self {
        Self { slots, pages, retired: VecDeque::new() }
    }

    pub(crate) fn free_slots(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn free_pages(&self) -> usize {
        self.pages.len()
    }

    /// One lot for each number of pages; all of them or none.
    pub(crate) fn take(&mut self, pages: &[usize]) -> Option<Vec<Lot>> {
        let slots_from = self.slots.len().checked_sub(pages.len())?;
        self.pages.len().checked_sub(pages.iter().sum())?;
        let slots = self.slots.split_off(slots_from).into_iter();
        let mut lot = |(slot, count): (u32, &usize)| {
            let from = self.pages.len() - count;
            Lot { slot, pages: self.pages.split_off(from) }
        };
        Some(slots.zip(pages).map(&mut lot).collect())
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

    /// Frees the retired lots for which `unneeded` (slot, version) holds, and returns their slots. These must be
    /// made vacant before anything is taken again.
    pub(crate) fn free(&mut self, unneeded: impl Fn(u32, u64) -> bool) -> Vec<u32> {
        self.free_where(|retired| unneeded(retired.lot.slot, retired.version))
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
        let held: usize = self.retired.iter().filter(needed).map(|held| held.lot.bytes()).sum();
        let mut beyond = held.saturating_sub(most);
        let mut ended = Vec::new();
        for retired in &mut self.retired {
            if beyond == 0 {
                break;
            }
            if retired.needed.is_some() && retired.ended.is_none() {
                beyond = beyond.saturating_sub(retired.lot.bytes());
                retired.ended = Some(now);
                ended.push(retired.lot.slot);
            }
        }
        ended
    }

    /// Frees the ended lots with which no program can be at work any more.
    pub(crate) fn free_ended(&mut self, now: Instant) -> Vec<u32> {
        self.free_where(|retired| retired.ended.is_some_and(|ended| now - ended >= RIPE))
    }

    /// Bytes of all retired lots.
    pub(crate) fn retired_bytes(&self) -> usize {
        self.retired.iter().map(|retired| retired.lot.bytes()).sum()
    }

    fn free_where(&mut self, free: impl Fn(&Retired) -> bool) -> Vec<u32> {
        let mut freed = Vec::new();
        for retired in std::mem::take(&mut self.retired) {
            if free(&retired) {
                freed.push(retired.lot.slot);
                self.slots.push(retired.lot.slot);
                self.pages.extend(retired.lot.pages);
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
        Room::new((1..=4).collect(), (1..=10).collect())
    }

    /// No slot or page is lost, and none is there twice.
    fn assert_complete(room: &Room, taken: &[&Lot]) {
        let lots = room.retired.iter().map(|retired| &retired.lot).chain(taken.iter().copied());
        let (mut slots, mut pages) = (room.slots.clone(), room.pages.clone());
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
        assert_eq!(room.free(|_, version| version != 2).len(), 2);
        assert_eq!((room.free_slots(), room.free_pages()), (3, 8));
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
        let newest = lots[2].bytes();
        for (version, lot) in (1..).zip(lots) {
            room.retire(version, lot, start);
        }
        assert!(room.end_beyond(0, at(1)).is_empty(), "nobody was found to need them");
        room.keep(|_, _| true, at(1));
        assert_eq!(room.end_beyond(newest, at(2)).len(), 2, "the oldest first");
        assert!(room.end_beyond(newest, at(3)).is_empty(), "ended once");
        assert!(room.free_ended(at(1001)).is_empty(), "a program may be at work with them");
        assert_eq!(room.free_ended(at(1002)).len(), 2);
        assert_eq!(room.retired_bytes(), newest);
        assert_complete(&room, &[]);
    }
}
