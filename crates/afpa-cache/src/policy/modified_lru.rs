//! AFPA's replacement policy for pinned memory.
//!
//! "A modified LRU algorithm is used, which prefers to eject objects no smaller than the object
//! being allocated" (IBM paper, section 2, pinned-memory cache objects). Ejecting one such object
//! makes a hole in which the new one fits; ejecting several smaller ones may leave no hole at all.

use std::collections::BTreeMap;

use super::identity::{ByPlace, Place};
use super::order::{Link, Linked, Order, Turn, Turns};
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
    seats: ByPlace<Seat>,
}

struct Seat {
    class: Class,
    /// The turn of its last use: it tells the first members of two classes apart.
    turn: Turn,
    link: Link,
}

impl Linked for Seat {
    fn link(&self) -> Link {
        self.link
    }

    fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }
}

impl Policy for ModifiedLru {
    fn insert(&mut self, newcomer: Newcomer) {
        let (class, turn) = (Class::holding(newcomer.size), self.turns.next());
        self.seats.insert(newcomer.id, Seat { class, turn, link: Link::default() });
        self.classes.entry(class).or_default().push(&mut self.seats, newcomer.id.place());
    }

    fn touch(&mut self, id: ObjectId, _count: u32) {
        let Some(seat) = self.seats.get_mut(id) else { return };
        seat.turn = self.turns.next();
        let Some(order) = self.classes.get_mut(&seat.class) else { return };
        order.remove(&mut self.seats, id.place());
        order.push(&mut self.seats, id.place());
    }

    fn remove(&mut self, id: ObjectId) {
        let Some(class) = self.seats.get(id).map(|seat| seat.class) else { return };
        let Some(order) = self.classes.get_mut(&class) else { return };
        order.remove(&mut self.seats, id.place());
        if order.is_empty() {
            self.classes.remove(&class);
        }
        self.seats.remove(id);
    }

    fn victim(&mut self, needed: u64) -> Option<ObjectId> {
        let large_enough = self.classes.range(Class::at_least(needed)..);
        let chosen = large_enough.filter_map(|(_, order)| self.first(order)).min();
        let chosen =
            chosen.or_else(|| self.classes.values().filter_map(|order| self.first(order)).min());
        let id = self.seats.id_at(chosen?.1)?;
        self.remove(id);
        Some(id)
    }

    fn len(&self) -> usize {
        self.seats.len()
    }

    fn check_invariants(&self) {
        assert_eq!(self.seats.len(), self.classes.values().map(Order::len).sum::<usize>());
        for (class, order) in &self.classes {
            assert!(!order.is_empty());
            let places = order.checked(&self.seats);
            let seats = || places.iter().map(|place| self.seats.at(*place).expect("a seat"));
            assert!(seats().all(|seat| seat.class == *class));
            assert!(seats().is_sorted_by_key(|seat| seat.turn));
        }
    }
}

impl ModifiedLru {
    /// The first of a class, and its turn.
    fn first(&self, order: &Order) -> Option<(Turn, Place)> {
        let place = order.first()?;
        Some((self.seats.at(place)?.turn, place))
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
