//! Least recently used: the policy that others are compared with.

use super::identity::ByPlace;
use super::order::{Link, Linked, Order};
use super::{Newcomer, ObjectId, Policy};

/// Ejects the object that was not used for the longest time.
#[derive(Default)]
pub struct Lru {
    order: Order,
    seats: ByPlace<Link>,
}

impl Linked for Link {
    fn link(&self) -> Link {
        *self
    }

    fn link_mut(&mut self) -> &mut Link {
        self
    }
}

impl Policy for Lru {
    fn insert(&mut self, newcomer: Newcomer) {
        self.seats.insert(newcomer.id, Link::default());
        self.order.push(&mut self.seats, newcomer.id.place());
    }

    fn touch(&mut self, id: ObjectId, _count: u32) {
        if self.seats.get(id).is_some() {
            self.order.remove(&mut self.seats, id.place());
            self.order.push(&mut self.seats, id.place());
        }
    }

    fn remove(&mut self, id: ObjectId) {
        if self.seats.get(id).is_some() {
            self.order.remove(&mut self.seats, id.place());
            self.seats.remove(id);
        }
    }

    fn victim(&mut self, _needed: u64) -> Option<ObjectId> {
        let id = self.seats.id_at(self.order.first()?)?;
        self.remove(id);
        Some(id)
    }

    fn len(&self) -> usize {
        self.seats.len()
    }

    fn check_invariants(&self) {
        assert_eq!(self.seats.len(), self.order.checked(&self.seats).len());
    }
}
