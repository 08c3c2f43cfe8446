//! The objects that were used, so that their files are compared now and then.
//!
//! A watch misses some changes. So an object that relies on one is noted when a use of it is reported, once in a round.
//! The caller that takes the round compares the files. A hit does none of this.

use super::Table;
use crate::object::Object;
use crate::policy::ObjectId;

/// The objects of a round.
pub(super) struct Used {
    /// From 1 to 255, and again. An object that was left alone for 255 rounds may miss one.
    round: u8,
    ids: Vec<ObjectId>,
}

/// So many are kept without a look.
const SPARE: usize = 1024;

impl Default for Used {
    fn default() -> Self {
        Used { round: 1, ids: Vec::new() }
    }
}

impl Used {
    /// Notes a use that was reported.
    pub(super) fn note<H>(&mut self, object: &Object<H>) {
        if object.joins(self.round) {
            self.ids.push(object.id());
        }
    }

    /// Forgets the objects that have gone, once they may be more than those that are there: between two rounds any number can
    /// come and go.
    pub(super) fn forget_beyond(&mut self, there: usize, is_there: impl Fn(ObjectId) -> bool) {
        if self.ids.len() > 2 * there + SPARE {
            self.ids.retain(|id| is_there(*id));
        }
    }

    fn take(&mut self) -> Vec<ObjectId> {
        self.round = self.round.checked_add(1).unwrap_or(1);
        std::mem::take(&mut self.ids)
    }
}

impl<H> Table<H> {
    /// The objects that were used since the last time, and rely on a watch. Begins the next round.
    pub(crate) fn take_used(&mut self) -> Vec<ObjectId> {
        self.used_since.take()
    }
}
