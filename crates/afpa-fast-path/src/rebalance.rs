//! Which objects are worth the kernel's memory: those that save the most time for each byte.
//!
//! Every object is pinned while there is room. When there is none, an object that was refused replaces others
//! that save clearly less. Pure.

use std::cmp::Reverse;

use afpa_bpf::{
    ANSWER_MAX, FreeRoom, MORE_PAGE_BYTES, MORE_VARIANT_BYTES, PAGE, PAGE_BYTES, VARIANT_BYTES,
    Variant,
};

/// The room that objects need or have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    pub(crate) slots: usize,
    pub(crate) pages: usize,
    /// So many of them are ready; none while they are not pinned.
    pub(crate) ready_slots: usize,
    pub(crate) ready_pages: usize,
    /// Bytes of the longest answer.
    pub(crate) length: usize,
}

impl Demand {
    pub(crate) fn of<'v>(variants: impl Iterator<Item = &'v Variant<'v>> + Clone) -> Self {
        let lengths = variants.clone().filter_map(|variant| variant.whole.as_ref());
        let lengths = lengths.map(|whole| whole.head.len() + whole.body.len());
        let pages = |length: usize| if length > ANSWER_MAX { length.div_ceil(PAGE) } else { 0 };
        Self {
            slots: variants.count(),
            pages: lengths.clone().map(pages).sum(),
            length: lengths.max().unwrap_or_default(),
            ..Self::default()
        }
    }

    /// That of all targets of an object together.
    pub(crate) fn times(self, targets: usize) -> Self {
        Self { slots: self.slots * targets, pages: self.pages * targets, ..self }
    }

    /// The demand of the object when it is not pinned any more.
    pub(crate) fn unplaced(self) -> Self {
        Self { ready_slots: 0, ready_pages: 0, ..self }
    }

    /// Bytes by which objects are compared, wherever they are.
    pub(crate) fn bytes(&self) -> usize {
        self.slots * VARIANT_BYTES + self.pages * PAGE_BYTES
    }

    /// The kernel's memory for it: at most, while it is not pinned.
    fn memory(&self) -> usize {
        self.ready_slots * VARIANT_BYTES + self.ready_pages * PAGE_BYTES + self.more_bytes()
    }

    /// The part of it that belongs to places that are not ready.
    fn more_bytes(&self) -> usize {
        let slots = self.slots.saturating_sub(self.ready_slots);
        let pages = self.pages.saturating_sub(self.ready_pages);
        slots * MORE_VARIANT_BYTES + pages * MORE_PAGE_BYTES
    }

    pub(crate) fn give(&mut self, other: &Self) {
        self.slots += other.slots;
        self.pages += other.pages;
        self.ready_slots += other.ready_slots;
        self.ready_pages += other.ready_pages;
    }

    pub(crate) fn take(&mut self, other: &Self) {
        self.slots = self.slots.saturating_sub(other.slots);
        self.pages = self.pages.saturating_sub(other.pages);
        self.ready_slots = self.ready_slots.saturating_sub(other.ready_slots);
        self.ready_pages = self.ready_pages.saturating_sub(other.ready_pages);
    }
}

/// The part of the room that the objects of a cache may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) slots: usize,
    pub(crate) pages: usize,
    pub(crate) bytes: usize,
}

impl Share {
    pub(crate) fn holds(&self, demand: &Demand) -> bool {
        demand.slots <= self.slots && demand.pages <= self.pages && demand.memory() <= self.bytes
    }

    pub(crate) fn without(self, taken: &Demand) -> Self {
        Self {
            slots: self.slots.saturating_sub(taken.slots),
            pages: self.pages.saturating_sub(taken.pages),
            bytes: self.bytes.saturating_sub(taken.memory()),
        }
    }
}

/// Free room, and the part of it that a cache may still have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Free {
    pub(crate) room: FreeRoom,
    pub(crate) share: Share,
}

impl Free {
    fn has(&self, demand: &Demand) -> bool {
        self.room.fits(demand.slots, demand.pages) && self.share.holds(demand)
    }

    /// An object goes.
    fn give(&mut self, gone: &Demand) {
        let (room, share) = (&mut self.room, &mut self.share);
        room.slots += gone.slots;
        room.pages += gone.pages;
        room.ready_slots += gone.ready_slots;
        room.ready_pages += gone.ready_pages;
        room.more_bytes = room.more_bytes.saturating_add(gone.more_bytes());
        share.slots = share.slots.saturating_add(gone.slots);
        share.pages = share.pages.saturating_add(gone.pages);
        share.bytes = share.bytes.saturating_add(gone.memory());
    }

    /// An object comes: the ready places are the first.
    fn take(&mut self, newcomer: &Demand) {
        let room = &mut self.room;
        let placed = Demand {
            ready_slots: newcomer.slots.min(room.ready_slots),
            ready_pages: newcomer.pages.min(room.ready_pages),
            ..*newcomer
        };
        room.slots = room.slots.saturating_sub(placed.slots);
        room.pages = room.pages.saturating_sub(placed.pages);
        room.ready_slots -= placed.ready_slots;
        room.ready_pages -= placed.ready_pages;
        room.more_bytes = room.more_bytes.saturating_sub(placed.more_bytes());
        self.share = self.share.without(&placed);
    }
}

/// How much an object is used, in kernel and user mode. The newest period counts most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Use {
    seen: u64,
    recent: f64,
}

impl Use {
    /// To be called at the end of a period, with all hits of the object's life.
    pub(crate) fn note(&mut self, hits: u64) {
        self.recent = self.recent / 2.0 + hits.saturating_sub(self.seen) as f64;
        self.seen = hits;
    }

    /// About how many hits it has in a period.
    pub(crate) fn recent(&self) -> f64 {
        self.recent / 2.0
    }
}

/// Core time that an answer from the kernel saves, in microseconds: the work that user mode has for each
/// answer. Each further segment saves less, because segmentation offload makes it cheaper in user mode
/// (`make bench-fast-path`).
fn saved(length: usize) -> f64 {
    let further = length.saturating_sub(1) / ANSWER_MAX;
    (4.5 - 0.45 * further as f64).max(0.2)
}

/// Microseconds saved in a period for each kilobyte.
pub(crate) fn benefit(used: &Use, demand: &Demand) -> f64 {
    used.recent() * saved(demand.length) * 1024.0 / demand.bytes().max(1) as f64
}

/// An object, and its benefit in the kernel.
#[derive(Clone, Debug)]
pub(crate) struct Weight<K> {
    pub(crate) key: K,
    pub(crate) demand: Demand,
    pub(crate) benefit: f64,
}

/// A newcomer must save so many times as much as the object that it replaces: moving costs, too.
const CLEARLY: f64 = 1.5;

/// Which pinned objects are taken back, so that some of the refused ones find room.
pub(crate) fn exchange<K>(
    mut pinned: Vec<Weight<K>>,
    mut waiting: Vec<Weight<K>>,
    mut free: Free,
) -> Vec<K> {
    sort(&mut pinned);
    sort(&mut waiting);
    let mut gone = Vec::new();
    // The least useful is the last one.
    for newcomer in waiting {
        let mut room = free;
        let mut count = 0;
        for victim in pinned.iter().rev() {
            if room.has(&newcomer.demand) || victim.benefit * CLEARLY >= newcomer.benefit {
                break;
            }
            room.give(&victim.demand);
            count += 1;
        }
        if room.has(&newcomer.demand) {
            room.take(&newcomer.demand);
            free = room;
            gone.extend(pinned.drain(pinned.len() - count..).map(|victim| victim.key));
        }
    }
    gone
}

/// The refused objects that find room now, the most useful first.
pub(crate) fn choose<K>(mut waiting: Vec<Weight<K>>, mut free: Free, most: usize) -> Vec<K> {
    sort(&mut waiting);
    let fitting = waiting.into_iter().filter(|newcomer| {
        let fits = free.has(&newcomer.demand);
        if fits {
            free.take(&newcomer.demand);
        }
        fits
    });
    fitting.map(|newcomer| newcomer.key).take(most).collect()
}

/// The most useful first.
pub(crate) fn sort<K>(weights: &mut [Weight<K>]) {
    // Benefits are not negative, so that their bits are in their order.
    weights.sort_by_key(|weight| Reverse(weight.benefit.to_bits()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weight(key: &'static str, pages: usize, benefit: f64) -> Weight<&'static str> {
        let length = pages * PAGE;
        let places = Demand { slots: 1, pages, length, ..Demand::default() };
        Weight { key, demand: Demand { ready_slots: 1, ready_pages: pages, ..places }, benefit }
    }

    /// One that has no ready place.
    fn more(key: &'static str, slots: usize, pages: usize, benefit: f64) -> Weight<&'static str> {
        Weight { key, demand: Demand { slots, pages, ..Demand::default() }, benefit }
    }

    const ALL: Share = Share { slots: usize::MAX, pages: usize::MAX, bytes: usize::MAX };

    fn free(slots: usize, pages: usize) -> Free {
        let (ready_slots, ready_pages) = (slots, pages);
        let room = FreeRoom { slots, pages, ready_slots, ready_pages, more_bytes: 0 };
        Free { room, share: ALL }
    }

    /// No ready place is free.
    fn bytes(more_bytes: usize) -> Free {
        Free {
            room: FreeRoom { slots: 99, pages: 99, more_bytes, ..FreeRoom::default() },
            share: ALL,
        }
    }

    #[test]
    fn use_fades() {
        let mut used = Use::default();
        used.note(1000);
        assert_eq!(used.recent(), 500.0);
        used.note(2000);
        used.note(3000);
        used.note(4000);
        assert!(used.recent() > 900.0);
        (0..20).for_each(|_| used.note(4000));
        assert!(used.recent() < 0.01);
        used.note(3); // the object is another one now
        used.note(5);
        assert!((0.9..1.1).contains(&used.recent()));
    }

    #[test]
    fn small_objects_are_worth_more_than_large_ones_that_are_used_as_much() {
        let mut used = Use::default();
        used.note(100);
        let small = Demand { slots: 1, length: 500, ..Demand::default() };
        let large = Demand { slots: 1, pages: 16, length: 65_000, ..Demand::default() };
        assert!(benefit(&used, &small) > 10.0 * benefit(&used, &large));
        assert_eq!(benefit(&Use::default(), &small), 0.0);
    }

    #[test]
    fn the_least_useful_go_for_what_is_clearly_better() {
        let pinned = vec![weight("best", 1, 9.0), weight("worst", 2, 1.0), weight("bad", 2, 2.0)];
        let better = || vec![weight("new", 4, 5.0)];
        assert_eq!(exchange(pinned.clone(), better(), free(0, 0)), ["bad", "worst"]);
        assert_eq!(exchange(pinned.clone(), better(), free(0, 2)), ["worst"]);
        assert!(exchange(pinned.clone(), better(), free(1, 4)).is_empty(), "there is room");
        assert!(exchange(pinned.clone(), vec![weight("new", 5, 8.0)], free(0, 0)).is_empty());
        assert!(exchange(pinned, vec![weight("new", 1, 1.4)], free(0, 0)).is_empty());
    }

    #[test]
    fn room_that_one_newcomer_gets_is_not_given_to_another() {
        let pinned = vec![weight("a", 1, 1.0), weight("b", 1, 1.0)];
        let waiting = vec![weight("x", 1, 5.0), weight("y", 1, 4.0), weight("z", 1, 3.0)];
        assert_eq!(exchange(pinned, waiting.clone(), free(0, 0)).len(), 2);
        assert_eq!(choose(waiting.clone(), free(2, 2), 9), ["x", "y"]);
        assert_eq!(choose(waiting, free(9, 9), 1), ["x"]);
        let mixed = vec![weight("large", 9, 5.0), weight("small", 1, 1.0)];
        assert_eq!(choose(mixed, free(2, 2), 9), ["small"], "what does not fit is passed over");
    }

    #[test]
    fn slots_and_pages_share_the_memory_of_places_that_are_not_ready() {
        const R: usize = 68 << 10; // 17 slots, or 8 pages; not 2 slots and 8 pages
        let hot = || vec![more("hot", 2, 8, 9.0)];
        let pinned: Vec<_> = (0..5).map(|_| more("cold", 1, 0, 1.0)).collect();
        assert_eq!(exchange(pinned.clone(), hot(), bytes(R)), ["cold"]);
        assert!(choose(hot(), bytes(R), 9).is_empty());
        assert_eq!(choose(hot(), bytes(R + MORE_VARIANT_BYTES), 9), ["hot"]);
        let mut ready = bytes(R);
        (ready.room.ready_slots, ready.room.ready_pages) = (1, 0);
        assert_eq!(choose(hot(), ready, 9), ["hot"], "a ready one takes no memory");
        assert_eq!(choose(vec![more("a", 1, 8, 9.0), more("b", 1, 0, 1.0)], ready, 9), ["a", "b"]);
        let slots = exchange(pinned, vec![more("page", 0, 2, 9.0)], bytes(0));
        assert_eq!(slots.len(), 4, "memory of slots is good for pages");
        let ready = vec![weight("cold", 0, 1.0); 9];
        assert!(exchange(ready, vec![more("page", 0, 1, 9.0)], bytes(0)).is_empty());
    }

    #[test]
    fn a_cache_has_no_more_than_its_share() {
        let share = Share { bytes: 2 * MORE_VARIANT_BYTES, ..ALL };
        let waiting = vec![more("a", 1, 0, 9.0), more("b", 1, 0, 8.0), more("c", 1, 0, 7.0)];
        let all = Free { share, ..bytes(1 << 20) };
        assert_eq!(choose(waiting.clone(), all, 9), ["a", "b"]);
        let none = Free { share: share.without(&more("", 2, 0, 0.0).demand), ..all };
        assert!(choose(waiting.clone(), none, 9).is_empty());
        let pinned = vec![more("cold", 2, 0, 1.0)];
        assert_eq!(exchange(pinned, waiting, none), ["cold"], "its own objects make room");
    }
}
