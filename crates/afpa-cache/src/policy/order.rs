//! The queue that every policy uses: objects in the order of their turns.

use std::collections::BTreeMap;

use super::ObjectId;

/// A queue from which any member can be removed, not only the first.
#[derive(Default)]
pub(super) struct Order {
    members: BTreeMap<Turn, ObjectId>,
}

/// A position in the order of time; a later turn is larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn(u64);

/// Hands out turns.
#[derive(Default)]
pub(super) struct Turns(u64);

impl Turns {
    pub(super) fn next(&mut self) -> Turn {
        self.0 += 1;
        Turn(self.0)
    }
}

impl Order {
    pub(super) fn insert(&mut self, turn: Turn, id: ObjectId) {
        let before = self.members.insert(turn, id);
        debug_assert!(before.is_none(), "{turn:?} was given twice");
    }

    pub(super) fn remove(&mut self, turn: Turn) {
        let before = self.members.remove(&turn);
        debug_assert!(before.is_some(), "{turn:?} was not there");
    }

    pub(super) fn first(&self) -> Option<(Turn, ObjectId)> {
        self.members.first_key_value().map(|(turn, id)| (*turn, *id))
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn holds(&self, turn: Turn, id: ObjectId) -> bool {
        self.members.get(&turn) == Some(&id)
    }
}
