//! The hinted policy: it applies the configured hints about objects before any other policy.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::order::{Turn, Turns};
use super::{Keep, Newcomer, ObjectId, Policy};

/// Puts the [`Hint`](super::Hint)s of objects before another policy.
///
/// - [`Keep::Always`]: never a victim, as long as all such objects together fit the room for them. An object that does
///   not fit when it comes is like others.
/// - Weight 0: a victim before all others, in the order of their last use.
/// - Weight *n*: the other policy has to choose the object *n* times before it goes; a use begins the count
///   anew.
pub struct Hinted {
    inner: Box<dyn Policy>,
    /// Room for objects that are kept always.
    kept_room: u64,
    turns: Turns,
    kept: Apart,
    early: Apart,
    /// Objects of the inner policy with a weight above 1.
    weighty: HashMap<ObjectId, Weighty>,
}

/// Objects that the inner policy does not have, by last use. There are few of them on most sites, so they have no table by place.
#[derive(Default)]
struct Apart {
    order: BTreeMap<Turn, ObjectId>,
    seats: HashMap<ObjectId, (Turn, u64)>,
    size: u64,
}

struct Weighty {
    newcomer: Newcomer,
    left: u8,
}

/// How many objects one search passes over because of their weight, so that its time is bounded.
const MOST_PASSED: usize = 64;

impl Hinted {
    /// Puts hints before `inner`. Objects that are kept always may take `kept_room` of the room.
    pub fn new(inner: Box<dyn Policy>, kept_room: u64) -> Hinted {
        let (kept, early) = (Apart::default(), Apart::default());
        Hinted { inner, kept_room, turns: Turns::default(), kept, early, weighty: HashMap::new() }
    }
}

impl Policy for Hinted {
    fn insert(&mut self, newcomer: Newcomer) {
        let Newcomer { id, size, hint, .. } = newcomer;
        let fits = self.kept.size.saturating_add(size) <= self.kept_room;
        if hint.keep == Keep::Always && fits {
            return self.kept.insert(self.turns.next(), id, size);
        }
        if hint.weight == 0 {
            return self.early.insert(self.turns.next(), id, size);
        }
        if hint.weight > 1 {
            self.weighty.insert(id, Weighty { newcomer, left: hint.weight - 1 });
        }
        self.inner.insert(newcomer);
    }

    fn touch(&mut self, id: ObjectId, count: u32) {
        if self.kept.touch(&mut self.turns, id) || self.early.touch(&mut self.turns, id) {
            return;
        }
        if let Some(weighty) = self.weighty.get_mut(&id) {
            weighty.left = weighty.newcomer.hint.weight - 1;
        }
        self.inner.touch(id, count);
    }

    fn remove(&mut self, id: ObjectId) {
        if !self.kept.remove(id) && !self.early.remove(id) {
            self.weighty.remove(&id);
            self.inner.remove(id);
        }
    }

    fn victim(&mut self, needed: u64) -> Option<ObjectId> {
        if let Some(id) = self.early.pop() {
            return Some(id);
        }
        for passed in 0.. {
            let id = self.inner.victim(needed)?;
            match self.weighty.get_mut(&id) {
                Some(weighty) if weighty.left > 0 && passed < MOST_PASSED => {
                    weighty.left -= 1;
                    self.inner.insert(weighty.newcomer);
                }
                _ => {
                    self.weighty.remove(&id);
                    return Some(id);
                }
            }
        }
        None
    }

    fn last_resort(&mut self) -> Option<ObjectId> {
        self.victim(0).or_else(|| self.kept.pop())
    }

    fn len(&self) -> usize {
        self.inner.len() + self.kept.seats.len() + self.early.seats.len()
    }

    fn check_invariants(&self) {
        assert!(self.kept.size <= self.kept_room);
        self.kept.check_invariants();
        self.early.check_invariants();
        assert!(self.weighty.len() <= self.inner.len());
        assert!(self.weighty.values().all(|w| w.left < w.newcomer.hint.weight));
        self.inner.check_invariants();
    }
}

impl Apart {
    fn insert(&mut self, turn: Turn, id: ObjectId, size: u64) {
        self.order.insert(turn, id);
        self.seats.insert(id, (turn, size));
        self.size += size;
    }

    fn touch(&mut self, turns: &mut Turns, id: ObjectId) -> bool {
        let Some((turn, _)) = self.seats.get_mut(&id) else { return false };
        self.order.remove(turn);
        *turn = turns.next();
        self.order.insert(*turn, id);
        true
    }

    fn remove(&mut self, id: ObjectId) -> bool {
        let Some((turn, size)) = self.seats.remove(&id) else { return false };
        self.order.remove(&turn);
        self.size -= size;
        true
    }

    fn pop(&mut self) -> Option<ObjectId> {
        let (_, &id) = self.order.first_key_value()?;
        self.remove(id);
        Some(id)
    }

    fn check_invariants(&self) {
        assert_eq!(self.order.len(), self.seats.len());
        assert_eq!(self.size, self.seats.values().map(|(_, size)| size).sum::<u64>());
        assert!(self.seats.iter().all(|(id, (turn, _))| self.order.get(turn) == Some(id)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Hint, PolicyKind};
    use super::*;

    fn newcomer(id: u64, hint: Hint) -> Newcomer {
        Newcomer { id: ObjectId(id), size: 10, fingerprint: id as u32, hint, ..Newcomer::default() }
    }

    fn keep() -> Hint {
        Hint { keep: Keep::Always, ..Hint::default() }
    }

    #[test]
    fn what_is_kept_stays_while_it_fits_its_room() {
        for kind in PolicyKind::ALL {
            let mut policy = Hinted::new(kind.build(), 25);
            for id in 0..3 {
                policy.insert(newcomer(id, keep()));
            }
            (10..20).for_each(|id| policy.insert(newcomer(id, Hint::default())));
            let victims: Vec<_> = std::iter::from_fn(|| policy.victim(10)).collect();
            assert_eq!(victims.len(), 11, "{kind}: two of three fit, the third is like others");
            assert!(victims.contains(&ObjectId(2)), "{kind}");
            assert_eq!(policy.len(), 2);
            assert_eq!(policy.last_resort(), Some(ObjectId(0)), "{kind}: the limits go first");
            policy.remove(ObjectId(1));
            assert_eq!(policy.last_resort(), None);
        }
    }

    #[test]
    fn what_weighs_nothing_goes_first_and_what_weighs_more_later() {
        let hint = |weight| Hint { weight, ..Hint::default() };
        let mut policy = Hinted::new(PolicyKind::Lru.build(), 0);
        for (id, weight) in [(0, 3), (1, 1), (2, 1), (3, 0), (4, 2)] {
            policy.insert(newcomer(id, hint(weight)));
        }
        let victims: Vec<_> = std::iter::from_fn(|| policy.victim(1).map(|id| id.0)).collect();
        assert_eq!(victims, [3, 1, 2, 4, 0]);
    }

    #[test]
    fn a_search_ends_however_much_the_objects_weigh() {
        let mut policy = Hinted::new(PolicyKind::Lru.build(), 0);
        let hint = Hint { weight: u8::MAX, ..Hint::default() };
        (0..1000).for_each(|id| policy.insert(newcomer(id, hint)));
        assert_eq!(policy.victim(1), Some(ObjectId(MOST_PASSED as u64)));
        assert_eq!(policy.len(), 999);
    }
}
