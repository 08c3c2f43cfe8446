//! Least recently used: the policy that others are compared with.

use hashbrown::HashMap;

use super::order::{Order, Turn, Turns};
use super::{Newcomer, ObjectId, Policy};

/// Ejects the object that was not used for the longest time.
#[derive(Default)]
pub struct Lru {
    turns: Turns,
    order: Order,
    seats: HashMap<ObjectId, Turn>,
}

impl Policy for Lru {
    fn insert(&mut self, newcomer: Newcomer) {
        let turn = self.turns.next();
        self.order.insert(turn, newcomer.id);
        self.seats.insert(newcomer.id, turn);
    }

    fn touch(&mut self, id: ObjectId, _count: u32) {
        let Some(turn) = self.seats.get_mut(&id) else { return };
        self.order.remove(*turn);
        *turn = self.turns.next();
        self.order.insert(*turn, id);
    }

    fn remove(&mut self, id: ObjectId) {
        if let Some(turn) = self.seats.remove(&id) {
            self.order.remove(turn);
        }
    }

    fn victim(&mut self, _needed: u64) -> Option<ObjectId> {
        let (_, id) = self.order.first()?;
        self.remove(id);
        Some(id)
    }

    fn len(&self) -> usize {
        self.seats.len()
    }

    fn check_invariants(&self) {
        assert_eq!(self.seats.len(), self.order.len());
        assert!(self.seats.iter().all(|(id, turn)| self.order.holds(*turn, *id)));
    }
}
