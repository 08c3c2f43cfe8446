//! A worker's own look at the cache.

use std::fmt;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::cache::Cache;
use crate::key::KeyRef;
use crate::object::{Currency, Object, Seconds};
use crate::policy::ObjectId;

/// The objects that one worker has met, so that a hit touches nothing that another core writes.
///
/// A view holds a reference to each of its objects; a hit borrows it, and costs one hash, one probe
/// and a few loads. Touches are counted here and reported by [`View::flush_touches`]. It knows no
/// object that the cache does not hold, except those dropped since [`View::release_dropped`] last ran.
pub struct View<H> {
    cache: Arc<Cache<H>>,
    slot: usize,
    hasher: RandomState,
    held: HashTable<Held<H>>,
    /// Whoever has touches to report. Has room for all of `held`: a hit must not allocate.
    touched: Vec<EntryRef>,
    report: Vec<(ObjectId, u32)>,
    mailbox: Arc<Mailbox>,
}

/// What a look-up found.
#[derive(Debug)]
pub enum Lookup<'v, H> {
    /// An object that may be served.
    Hit(&'v Arc<Object<H>>),
    /// An object that may be served once its files were found unchanged: [`Cache::begin`] says who
    /// does that.
    Recheck(&'v Arc<Object<H>>),
    /// Nothing that could be served.
    Miss,
}

struct Held<H> {
    object: Arc<Object<H>>,
    touches: u32,
}

impl<H> View<H> {
    /// Looks up `path` of `site`. A hit takes no lock, allocates nothing and writes nothing that is
    /// shared; the first look at an object that another worker loaded takes the table's lock once.
    pub fn get(&mut self, site: u32, path: &[u8], now: Seconds) -> Lookup<'_, H> {
        let key = KeyRef { site, path };
        let hash = self.hasher.hash_one(key);
        let Some(bucket) = self.find(hash, key).or_else(|| self.learn(hash, key)) else {
            return Lookup::Miss;
        };
        let Some(held) = self.held.get_bucket_mut(bucket) else { return Lookup::Miss };
        match held.object.current(now) {
            Currency::Fresh => {
                if held.touches == 0 {
                    self.touched.push(EntryRef { hash, id: held.object.id() });
                }
                held.touches = held.touches.saturating_add(1);
                Lookup::Hit(&held.object)
            }
            Currency::Recheck => Lookup::Recheck(&held.object),
            Currency::Dropped => Lookup::Miss,
        }
    }

    /// Reports the touches since the last time to the replacement policy; for each tick of the worker.
    pub fn flush_touches(&mut self) {
        for EntryRef { hash, id } in self.touched.drain(..) {
            if let Some(held) = self.held.find_mut(hash, |held| held.object.id() == id) {
                self.report.push((id, std::mem::take(&mut held.touches)));
            }
        }
        if !self.report.is_empty() {
            self.cache.touch(&self.report);
            self.report.clear();
        }
    }

    /// Lets go of the objects that were dropped; when `on_drop` has called.
    pub fn release_dropped(&mut self) {
        match self.mailbox.collect() {
            Letters::Some(places) => {
                for EntryRef { hash, id } in places {
                    let held = self.held.find_entry(hash, |held| held.object.id() == id);
                    held.map(|held| held.remove()).ok();
                }
            }
            Letters::TooMany => self.held.retain(|held| !held.object.is_dropped()),
        }
    }

    /// Number of objects that the view holds.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub(crate) fn new(cache: Arc<Cache<H>>, slot: usize, mailbox: Arc<Mailbox>) -> View<H> {
        let (held, touched, report) = (HashTable::new(), Vec::new(), Vec::new());
        let hasher = cache.hasher().clone();
        View { cache, slot, hasher, held, touched, report, mailbox }
    }

    /// Where the view holds the object; one that was dropped is let go at once.
    fn find(&mut self, hash: u64, key: KeyRef<'_>) -> Option<usize> {
        let bucket = self.held.find_bucket_index(hash, |held| key.names(held.object.key()))?;
        let held = self.held.get_bucket_entry(bucket).ok()?;
        if !held.get().object.is_dropped() {
            return Some(bucket);
        }
        held.remove();
        None
    }

    /// Takes the object over from the shared table, if that has it.
    fn learn(&mut self, hash: u64, key: KeyRef<'_>) -> Option<usize> {
        let object = self.cache.look_up(key, self.slot)?;
        let rehash = |held: &Held<H>| self.hasher.hash_one(held.object.key());
        let held = self.held.insert_unique(hash, Held { object, touches: 0 }, rehash);
        let bucket = held.bucket_index();
        self.touched.reserve(self.held.len());
        Some(bucket)
    }
}

impl<H> Drop for View<H> {
    fn drop(&mut self) {
        self.flush_touches();
        self.cache.forget_view(self.slot);
    }
}

impl<H> fmt::Debug for View<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View({} objects)", self.held.len())
    }
}

/// Where an object stands in a view.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryRef {
    pub(crate) hash: u64,
    pub(crate) id: ObjectId,
}

/// Objects that a view is to let go.
pub(crate) struct Mailbox {
    letters: Mutex<Letters>,
    on_drop: Box<dyn Fn() + Send + Sync>,
}

enum Letters {
    Some(Vec<EntryRef>),
    /// More than it is worth keeping: the view looks at all its objects instead.
    TooMany,
}

/// Letters kept for a view that does not collect.
const MOST_LETTERS: usize = 1024;

impl Mailbox {
    pub(crate) fn new(on_drop: Box<dyn Fn() + Send + Sync>) -> Mailbox {
        Mailbox { letters: Mutex::new(Letters::Some(Vec::new())), on_drop }
    }

    /// Puts a letter in. `true` when it is the first since the last collection: call the worker then,
    /// once no lock is held.
    pub(crate) fn post(&self, place: EntryRef) -> bool {
        let mut letters = self.letters();
        let Letters::Some(places) = &mut *letters else { return false };
        places.push(place);
        let first = places.len() == 1;
        if places.len() > MOST_LETTERS {
            *letters = Letters::TooMany;
        }
        first
    }

    pub(crate) fn call(&self) {
        (self.on_drop)();
    }

    fn collect(&self) -> Letters {
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
        let post = |number: usize| mailbox.post(EntryRef { hash: 0, id: ObjectId(number as u64) });
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
