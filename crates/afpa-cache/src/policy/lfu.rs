//! Least frequently used, with dynamic aging.

use std::collections::BTreeMap;

use super::identity::ByPlace;
use super::order::{Turn, Turns};
use super::{Newcomer, ObjectId, Policy};

/// Ejects the object with the fewest uses; of equals, the one unused for longest.
///
/// Old uses lose weight by dynamic aging (LFU-DA; Arlitt and others, "Evaluating content management
/// techniques for Web proxy caches", 1999): an object's rank is its number of uses plus the rank of
/// the last victim when it was last used. So newcomers start level with the latest victims, an object that was popular
/// yesterday is overtaken, and no sweep over counters is needed.
#[derive(Default)]
pub struct Lfu {
    turns: Turns,
    ranks: BTreeMap<(u64, Turn), ObjectId>,
    seats: ByPlace<Seat>,
    age: u64,
}

struct Seat {
    uses: u64,
    rank: u64,
    turn: Turn,
}

impl Policy for Lfu {
    fn insert(&mut self, newcomer: Newcomer) {
        let seat = Seat { uses: 1, rank: self.age.saturating_add(1), turn: self.turns.next() };
        self.ranks.insert((seat.rank, seat.turn), newcomer.id);
        self.seats.insert(newcomer.id, seat);
    }

    fn touch(&mut self, id: ObjectId, count: u32) {
        let Some(seat) = self.seats.get_mut(id) else { return };
        self.ranks.remove(&(seat.rank, seat.turn));
        seat.uses = seat.uses.saturating_add(u64::from(count));
        seat.rank = self.age.saturating_add(seat.uses);
        seat.turn = self.turns.next();
        self.ranks.insert((seat.rank, seat.turn), id);
    }

    fn remove(&mut self, id: ObjectId) {
        if let Some(seat) = self.seats.remove(id) {
            self.ranks.remove(&(seat.rank, seat.turn));
        }
    }

    fn victim(&mut self, _needed: u64) -> Option<ObjectId> {
        let ((rank, _), id) = self.ranks.pop_first()?;
        self.age = rank;
        self.seats.remove(id);
        Some(id)
    }

    fn len(&self) -> usize {
        self.seats.len()
    }

    fn check_invariants(&self) {
        assert_eq!(self.seats.len(), self.ranks.len());
        for (id, seat) in self.seats.iter() {
            assert_eq!(self.ranks.get(&(seat.rank, seat.turn)), Some(&id));
            assert!(seat.rank > self.age || seat.rank >= seat.uses);
        }
        let lowest = self.ranks.first_key_value().map_or(u64::MAX, |((rank, _), _)| *rank);
        assert!(lowest >= self.age, "somebody ranks below the last victim");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newcomer(id: u64) -> Newcomer {
        Newcomer { id: ObjectId(id), size: 1, fingerprint: id as u32, ..Newcomer::default() }
    }

    #[test]
    fn it_counts_uses() {
        let mut lfu = Lfu::default();
        (0..3).for_each(|id| lfu.insert(newcomer(id)));
        lfu.touch(ObjectId(0), 5);
        lfu.touch(ObjectId(1), 2);
        assert_eq!(lfu.victim(1), Some(ObjectId(2)));
        assert_eq!(lfu.victim(1), Some(ObjectId(1)));
        assert_eq!(lfu.victim(1), Some(ObjectId(0)));
        assert_eq!(lfu.victim(1), None);
    }

    #[test]
    fn old_fame_fades() {
        let mut lfu = Lfu::default();
        lfu.insert(newcomer(0));
        lfu.touch(ObjectId(0), 50);
        let mut ejected = Vec::new();
        for id in 1..200 {
            lfu.insert(newcomer(id));
            ejected.extend((id > 1).then(|| lfu.victim(1)).flatten());
        }
        assert!(ejected.contains(&ObjectId(0)), "the star of yesterday still blocks the cache");
    }
}
