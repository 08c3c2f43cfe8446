//! Which views there are, and which of them hold an object.

use std::sync::Arc;

use super::aftermath::Aftermath;
use crate::key::KeyHash;
use crate::mailbox::{EntryRef, Mailbox};
use crate::policy::ObjectId;

/// The mailboxes of the views, by slot.
#[derive(Default)]
pub(super) struct Views {
    slots: Vec<Option<Arc<Mailbox>>>,
}

/// The views that hold an object, as a set of slots modulo 32. To tell a view that does not hold it does no harm.
#[derive(Clone, Copy, Default)]
pub(super) struct Holders(u32);

impl Holders {
    pub(super) fn add(&mut self, slot: usize) {
        self.0 |= 1 << (slot % 32);
    }

    fn may_include(self, slot: usize) -> bool {
        self.0 & (1 << (slot % 32)) != 0
    }
}

impl Views {
    pub(super) fn add(&mut self, mailbox: Arc<Mailbox>) -> usize {
        let free = self.slots.iter().position(Option::is_none);
        let slot = free.unwrap_or(self.slots.len());
        match free.and_then(|slot| self.slots.get_mut(slot)) {
            Some(place) => *place = Some(mailbox),
            None => self.slots.push(Some(mailbox)),
        }
        slot
    }

    pub(super) fn remove(&mut self, slot: usize) {
        if let Some(place) = self.slots.get_mut(slot) {
            *place = None;
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// Tells every view that may hold the object to let it go.
    pub(super) fn tell<H>(
        &self,
        holders: Holders,
        hash: KeyHash,
        id: ObjectId,
        after: &mut Aftermath<H>,
    ) {
        for (slot, mailbox) in self.slots.iter().enumerate() {
            let Some(mailbox) = mailbox.as_ref().filter(|_| holders.may_include(slot)) else {
                continue;
            };
            if mailbox.post(EntryRef { hash, id }) {
                after.call(mailbox);
            }
        }
    }
}
