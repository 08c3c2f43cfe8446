//! How the table tells a view which objects to release.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::key::KeyHash;
use crate::policy::ObjectId;

/// Which object of a view is meant: its identity, and the hash under which the view has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryRef {
    pub(crate) hash: KeyHash,
    pub(crate) id: ObjectId,
}

/// Tells a view which objects to release. Any thread may post; the worker of the view collects.
pub(crate) struct Mailbox {
    letters: Mutex<Letters>,
    on_drop: Box<dyn Fn() + Send + Sync>,
}

/// The letters that have been posted.
pub(crate) enum Letters {
    Some(Vec<EntryRef>),
    /// Too many to keep: the view looks at all its objects instead.
    TooMany,
}

/// Letters kept for a view that does not collect.
const MOST_LETTERS: usize = 1024;

impl Mailbox {
    pub(crate) fn new(on_drop: Box<dyn Fn() + Send + Sync>) -> Mailbox {
        Mailbox { letters: Mutex::new(Letters::Some(Vec::new())), on_drop }
    }

    /// Posts an object to release. Returns `true` if it is the first since the last collection; the caller
    /// then calls the worker ([`Mailbox::call`]) once it holds no lock.
    pub(crate) fn post(&self, entry: EntryRef) -> bool {
        let mut letters = self.letters();
        let Letters::Some(entries) = &mut *letters else { return false };
        entries.push(entry);
        let first = entries.len() == 1;
        if entries.len() > MOST_LETTERS {
            *letters = Letters::TooMany;
        }
        first
    }

    pub(crate) fn call(&self) {
        (self.on_drop)();
    }

    pub(crate) fn collect(&self) -> Letters {
        std::mem::replace(&mut self.letters(), Letters::Some(Vec::new()))
    }

    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_mailbox_keeps_a_note_in_place_of_its_letters() {
        let mailbox = Mailbox::new(Box::new(|| {}));
        let hash = KeyHash::default();
        let post = |number: usize| mailbox.post(EntryRef { hash, id: ObjectId(number as u64) });
        assert!(post(0));
        assert!((1..MOST_LETTERS).all(|number| !post(number)));
        assert!(
            matches!(&*mailbox.letters(), Letters::Some(places) if places.len() == MOST_LETTERS)
        );
        assert!(!post(MOST_LETTERS) && !post(MOST_LETTERS + 1));
        assert!(matches!(mailbox.collect(), Letters::TooMany));
        assert!(post(0), "after a collection the worker is called again");
    }
}
