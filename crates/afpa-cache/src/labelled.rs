//! Operations on objects that have labels: listing, and purging by label.

use std::sync::Arc;

use afpa_arena::{Arena, PinnedMut};

use crate::cache::Cache;
use crate::key::Key;
use crate::labels::{Labelled, Labels, Moment, Origin};
use crate::object::{Millis, Object};
use crate::overtaken::Overtaken;

impl<H> Cache<H> {
    /// The moment that it is.
    pub fn moment(&self) -> Moment {
        Moment(self.purges_done())
    }

    /// Lists an object in place of the one with its key.
    ///
    /// # Errors
    /// [`Overtaken`] when one of its labels was purged after `since`.
    pub fn list(&self, new: Labelled<H>, now: Millis) -> Result<Arc<Object<H>>, Overtaken<H>> {
        let since = new.since;
        let (key, labels, content) = new.into_content();
        self.list_labelled(key, &labels, content, (since, Origin::Source), now)
    }

    /// As [`list`](Self::list), of an object that another process had, and that had so many hits there. An object with
    /// the same key that was listed since is newer, so it stays.
    ///
    /// # Errors
    /// Those of [`list`](Self::list), and when an object with the same key is listed already.
    pub fn list_restored(
        &self,
        new: Labelled<H>,
        hits: u64,
        now: Millis,
    ) -> Result<Arc<Object<H>>, Overtaken<H>> {
        let since = new.since;
        let (key, labels, content) = new.into_content();
        self.list_labelled(key, &labels, content, (since, Origin::Restored(hits)), now)
    }

    /// Drops the objects that are meant, and those that are on their way. After it has returned, no view serves
    /// them. If they are many, some wait for [`Cache::sweep`] to be released. Returns how many were there.
    pub fn purge_labels(&self, labels: Labels) -> usize {
        self.purge_labelled(labels)
    }

    /// As [`purge_labels`](Self::purge_labels), but the objects stay, and are shown to the module, so that it can
    /// mark them. That is done with the lock held, and must not call the cache.
    pub fn recall_labels(&self, labels: Labels, mut show: impl FnMut(&Object<H>)) -> usize {
        self.recall_labelled(labels, &mut show)
    }

    /// The object of a key, if it may be served.
    pub fn get(&self, key: &Key) -> Option<Arc<Object<H>>> {
        self.table().get(key).filter(|object| !object.is_dropped())
    }

    /// Whether an object with these labels, and perhaps with others that are not known, may have been purged after
    /// `since`. `others` gets the first byte of a purged label, or more, and says whether the object may have it.
    pub fn is_purged_since(
        &self,
        since: Moment,
        labels: &[&[u8]],
        others: impl Fn(&[u8]) -> bool,
    ) -> bool {
        self.moment() != since && self.purged_since(since, labels, &others)
    }

    /// As [`Cache::reserve`], without waiting, and up to `largest` bytes: for cores.
    pub fn reserve_now(&self, len: usize, largest: usize) -> Option<PinnedMut> {
        let footprint = Arena::footprint(len);
        let arena = self.arena();
        if len > largest || footprint > arena.limit() / self.settings().largest_share.max(1) {
            return None;
        }
        for _ in 0..ATTEMPTS {
            if let Some(room) = arena.allocate(len) {
                return Some(room);
            }
            if self.eject_pinned(footprint) == 0 {
                break;
            }
        }
        arena.allocate(len)
    }
}

/// How often room is made for one object; the ejected ranges may be scattered.
const ATTEMPTS: usize = 4;

#[cfg(test)]
mod tests;
