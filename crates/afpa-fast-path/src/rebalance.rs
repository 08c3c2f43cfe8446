//! Which objects are worth the kernel's memory: those that save the most time for each byte.
//!
//! Every object is pinned while there is room. When there is none, an object that was refused replaces others
//! that save clearly less. Pure.

use std::cmp::Reverse;

use afpa_bpf::{ANSWER_MAX, PAGE, PAGE_BYTES, VARIANT_BYTES, Variant};

/// Room: that of an object, the need of one, or free room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    pub(crate) slots: usize,
    pub(crate) pages: usize,
    /// Bytes of its longest answer.
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
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.slots * VARIANT_BYTES + self.pages * PAGE_BYTES
    }

    pub(crate) fn fits(&self, free: &Self) -> bool {
        self.slots <= free.slots && self.pages <= free.pages
    }

    pub(crate) fn give(&mut self, other: &Self) {
        self.slots += other.slots;
        self.pages += other.pages;
    }

    pub(crate) fn take(&mut self, other: &Self) {
        self.slots = self.slots.saturating_sub(other.slots);
        self.pages = self.pages.saturating_sub(other.pages);
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
    mut free: Demand,
) -> Vec<K> {
    sort(&mut pinned);
    sort(&mut waiting);
    let mut gone = Vec::new();
    // The least useful is the last one.
    for newcomer in waiting {
        let mut room = free;
        let mut count = 0;
        for victim in pinned.iter().rev() {
            if newcomer.demand.fits(&room) || victim.benefit * CLEARLY >= newcomer.benefit {
                break;
            }
            room.give(&victim.demand);
            count += 1;
        }
        if newcomer.demand.fits(&room) {
            room.take(&newcomer.demand);
            free = room;
            gone.extend(pinned.drain(pinned.len() - count..).map(|victim| victim.key));
        }
    }
    gone
}

/// The refused objects that find room now, the most useful first.
pub(crate) fn choose<K>(mut waiting: Vec<Weight<K>>, mut free: Demand, most: usize) -> Vec<K> {
    sort(&mut waiting);
    let fitting = waiting.into_iter().filter(|newcomer| {
        let fits = newcomer.demand.fits(&free);
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
        Weight { key, demand: Demand { slots: 1, pages, length: pages * PAGE }, benefit }
    }

    fn free(slots: usize, pages: usize) -> Demand {
        Demand { slots, pages, length: 0 }
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
        let small = Demand { slots: 1, pages: 0, length: 500 };
        let large = Demand { slots: 1, pages: 16, length: 65_000 };
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
}
