//! The structured policy: classes of objects, each with its share of the room and an order of its own.

use std::collections::BTreeMap;

use super::identity::ByPlace;
use super::s3_fifo::{Queues, Seat, counted};
use super::{Family, Newcomer, ObjectId, Policy};

/// Classes objects by size and [`Family`]. A class's share of the room is its share of the recent uses, so a class
/// whose bytes are used little gives before the others; within the class, an order of its own (S3-FIFO)
/// says which object goes.
///
/// A room has the most hits when a byte of each class earns as many of them. A class with more bytes for each
/// use than the others earns fewest, so it gives, until the classes are level. Uses lose half their weight
/// whenever so many new ones have come as there are objects, times [`MEMORY`]. A class is never taken below one part in
/// [`LEAST`] of the room while others have more.
#[derive(Default)]
pub struct Structured {
    classes: BTreeMap<Class, Members>,
    seats: ByPlace<Seat>,
    class_of: ByPlace<Class>,
    bytes: u64,
    uses_since_aging: u64,
}

/// A decade of sizes, and a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Class {
    decade: u32,
    family: Family,
}

#[derive(Default)]
struct Members {
    order: Queues,
    uses: u64,
}

/// Uses for each object after which the counts of all classes are halved.
const MEMORY: u64 = 8;
/// Fewest uses after which they are.
const LEAST_MEMORY: u64 = 4096;
/// A class gives last while it has less than one part in this many of the room.
const LEAST: u64 = 64;
/// Sizes from here on are in one class.
const LAST_DECADE: u32 = 6;

impl Policy for Structured {
    fn insert(&mut self, newcomer: Newcomer) {
        let Newcomer { id, size, family, .. } = newcomer;
        let class = Class::of(size, family);
        let members = self.classes.entry(class).or_default();
        members.order.insert(&mut self.seats, &newcomer);
        self.bytes += u64::from(counted(size));
        self.class_of.insert(id, class);
        self.used(class, 1);
    }

    fn touch(&mut self, id: ObjectId, count: u32) {
        let Some(class) = self.class_of.get(id).copied() else { return };
        if let Some(seat) = self.seats.get_mut(id) {
            seat.touch(count);
        }
        self.used(class, count);
    }

    fn remove(&mut self, id: ObjectId) {
        let Some(class) = self.class_of.remove(id) else { return };
        let Some(members) = self.classes.get_mut(&class) else { return };
        self.bytes -= self.seats.get(id).map_or(0, Seat::size);
        members.order.remove(&mut self.seats, id);
    }

    fn victim(&mut self, _needed: u64) -> Option<ObjectId> {
        let members = self.classes.get_mut(&self.giving()?)?;
        let before = members.order.bytes();
        let id = members.order.victim(&mut self.seats)?;
        self.bytes -= before - members.order.bytes();
        self.class_of.remove(id);
        Some(id)
    }

    fn len(&self) -> usize {
        self.seats.len()
    }

    fn check_invariants(&self) {
        let mut bytes: BTreeMap<Class, u64> = BTreeMap::new();
        for (id, class) in self.class_of.iter() {
            *bytes.entry(*class).or_default() += self.seats.get(id).expect("a seat").size();
        }
        assert_eq!(self.bytes, bytes.values().sum::<u64>());
        assert_eq!(self.seats.len(), self.class_of.len());
        assert_eq!(self.seats.len(), self.classes.values().map(|c| c.order.len()).sum::<usize>());
        for (class, members) in &self.classes {
            assert_eq!(members.order.bytes(), bytes.get(class).copied().unwrap_or_default());
            members.order.check_invariants(&self.seats);
        }
    }
}

impl Structured {
    /// The class whose bytes earn the least; those that have next to nothing come last.
    fn giving(&self) -> Option<Class> {
        let rank = |members: &Members| {
            let bytes = members.order.bytes();
            let little = bytes < self.bytes / LEAST;
            // As many digits as are needed to tell the quotients of two counts apart.
            let bytes_for_a_use =
                (u128::from(bytes.max(1)) << 32) / u128::from(members.uses.max(1));
            (!little, bytes_for_a_use)
        };
        let inhabited = self.classes.iter().filter(|(_, members)| !members.order.is_empty());
        inhabited.max_by_key(|(_, members)| rank(members)).map(|(class, _)| *class)
    }

    fn used(&mut self, class: Class, count: u32) {
        if let Some(members) = self.classes.get_mut(&class) {
            members.uses = members.uses.saturating_add(u64::from(count));
        }
        self.uses_since_aging = self.uses_since_aging.saturating_add(u64::from(count));
        let due = LEAST_MEMORY.max(MEMORY.saturating_mul(self.seats.len() as u64));
        if self.uses_since_aging >= due {
            self.uses_since_aging = 0;
            self.classes.values_mut().for_each(|members| members.uses /= 2);
        }
    }
}

impl Class {
    fn of(size: u64, family: Family) -> Class {
        Class { decade: size.checked_ilog10().unwrap_or(0).min(LAST_DECADE), family }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newcomer(id: u64, size: u64, family: Family) -> Newcomer {
        Newcomer { id: ObjectId(id), size, fingerprint: id as u32, family, ..Newcomer::default() }
    }

    #[test]
    fn the_class_gives_whose_bytes_earn_least() {
        let mut policy = Structured::default();
        for id in 0..10 {
            policy.insert(newcomer(id, 1_000, Family::Page));
            policy.insert(newcomer(100 + id, 1_000, Family::Image));
        }
        (0..10).for_each(|id| policy.touch(ObjectId(id), 10));
        for _ in 0..10 {
            let ObjectId(victim) = policy.victim(1).expect("there are some");
            // With a sixty-fourth of the room or less, the last image stays before a page goes.
            assert!(victim >= 100 || policy.len() <= 11, "a page went: {victim}");
        }
    }

    #[test]
    fn a_class_that_has_next_to_nothing_gives_last() {
        let mut policy = Structured::default();
        policy.insert(newcomer(0, 10, Family::Page));
        for id in 1..100 {
            policy.insert(newcomer(id, 1_000, Family::Image));
            policy.touch(ObjectId(id), 100);
        }
        for _ in 1..100 {
            assert_ne!(policy.victim(1), Some(ObjectId(0)));
        }
        assert_eq!(policy.victim(1), Some(ObjectId(0)));
    }

    #[test]
    fn old_uses_fade() {
        let mut policy = Structured::default();
        for id in 0..10 {
            policy.insert(newcomer(id, 1_000, Family::Page));
            policy.insert(newcomer(100 + id, 1_000, Family::Image));
        }
        (0..10).for_each(|id| policy.touch(ObjectId(id), 1_000));
        (0..50).for_each(|_| (100..110).for_each(|id| policy.touch(ObjectId(id), 100)));
        let ObjectId(victim) = policy.victim(1).expect("there are some");
        assert!(victim < 100, "the pages of yesterday still have all the room");
    }
}
