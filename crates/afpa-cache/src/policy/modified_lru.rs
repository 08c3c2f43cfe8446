//! AFPA's replacement policy for pinned memory.
//!
//! "A modified LRU algorithm is used, which prefers to eject objects no smaller than the object
//! being allocated" (IBM paper, section 2, pinned-memory cache objects). Ejecting one such object
//! makes a hole in which the new one fits; ejecting several smaller ones may leave no hole at all.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::order::{Order, Turn, Turns};
use super::{Newcomer, ObjectId, Policy};

/// Ejects the least recently used of the objects no smaller than the one being allocated; when there
/// is none, the least recently used of all.
///
/// Objects stand in size classes, eight from one power of two to the next, as the arena rounds them:
/// for sizes in the arena the comparison is exact. A choice looks at the first of each class that is
/// in use, a few hundred at most.
#[derive(Default)]
pub struct ModifiedLru {
    turns: Turns,
    classes: BTreeMap<Class, Order>,
    seats: HashMap<ObjectId, Seat>,
}

struct Seat {
    class: Class,
    turn: Turn,
}

impl Policy for ModifiedLru {
    fn insert(&mut self, newcomer: Newcomer) {
        let seat = Seat { class: Class::holding(newcomer.size), turn: self.turns.next() };
        self.classes.entry(seat.class).or_default().insert(seat.turn, newcomer.id);
        self.seats.insert(newcomer.id, seat);
    }

    fn touch(&mut self, id: ObjectId, _count: u32) {
        let Some(seat) = self.seats.get_mut(&id) else { return };
        let Some(order) = self.classes.get_mut(&seat.class) else { return };
        order.remove(seat.turn);
        seat.turn = self.turns.next();
        order.insert(seat.turn, id);
    }

    fn remove(&mut self, id: ObjectId) {
        let Some(seat) = self.seats.remove(&id) else { return };
        let Some(order) = self.classes.get_mut(&seat.class) else { return };
        order.remove(seat.turn);
        if order.is_empty() {
            self.classes.remove(&seat.class);
        }
    }

    fn victim(&mut self, needed: u64) -> Option<ObjectId> {
        let large_enough = self.classes.range(Class::at_least(needed)..);
        let chosen = large_enough.filter_map(|(_, order)| order.first()).min();
        let chosen = chosen.or_else(|| self.classes.values().filter_map(Order::first).min());
        let (_, id) = chosen?;
        self.remove(id);
        Some(id)
    }

    fn len(&self) -> usize {
        self.seats.len()
    }

    fn check_invariants(&self) {
        assert_eq!(self.seats.len(), self.classes.values().map(Order::len).sum::<usize>());
        assert!(self.classes.values().all(|order| !order.is_empty()));
        for (id, seat) in &self.seats {
            assert!(self.classes.get(&seat.class).is_some_and(|order| order.holds(seat.turn, *id)));
        }
    }
}

/// A range of sizes whose lower end has at most four significant bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Class(u64);

impl Class {
    /// The class whose lower end is the largest one not above `size`.
    fn holding(size: u64) -> Class {
        Class(size & (u64::MAX << Class::shift(size)))
    }

    /// The first class all of whose members are at least `size`.
    fn at_least(size: u64) -> Class {
        let step = 1 << Class::shift(size);
        Class(size.checked_next_multiple_of(step).unwrap_or(u64::MAX))
    }

    fn shift(size: u64) -> u32 {
        size.checked_ilog2().unwrap_or(0).saturating_sub(3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(sizes: &[u64]) -> ModifiedLru {
        let mut policy = ModifiedLru::default();
        for (id, &size) in sizes.iter().enumerate() {
            policy.insert(Newcomer { id: ObjectId(id as u64), size, ..Newcomer::default() });
        }
        policy
    }

    #[test]
    fn it_prefers_the_oldest_that_is_large_enough() {
        let mut policy = policy(&[64, 1024, 4096, 128]);
        assert_eq!(policy.victim(512), Some(ObjectId(1)));
        assert_eq!(policy.victim(64), Some(ObjectId(0)));
        assert_eq!(policy.victim(8192), Some(ObjectId(2)), "else the oldest of all");
    }

    #[test]
    fn use_moves_an_object_behind_its_peers() {
        let mut policy = policy(&[1024, 2048, 64]);
        policy.touch(ObjectId(0), 1);
        assert_eq!(policy.victim(1000), Some(ObjectId(1)));
        assert_eq!(policy.victim(1000), Some(ObjectId(0)));
    }

    #[test]
    fn classes_round_as_the_arena_does() {
        for len in [0, 1, 64, 65, 600, 1000, 1025, 4097, 70_000, 1 << 20, 3_333_333] {
            let footprint = afpa_arena::Arena::footprint(len) as u64;
            assert_eq!(Class::holding(footprint), Class::at_least(footprint), "{len}");
        }
        assert_eq!(Class::holding(0), Class(0));
        assert_eq!(Class::holding(17), Class(16));
        assert_eq!(Class::at_least(17), Class(18));
        assert_eq!(Class::at_least(u64::MAX), Class(u64::MAX));
    }
}
