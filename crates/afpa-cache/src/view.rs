//! A worker's own view of the cache.

use std::fmt;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::cache::Cache;
use crate::key::{KeyHash, KeyRef};
use crate::mailbox::{EntryRef, Letters, Mailbox};
use crate::object::{Currency, Millis, Object};
use crate::policy::ObjectId;

/// The objects that one worker has looked up, so that a hit touches no memory that another core writes.
///
/// A view holds a reference to each of its objects; a hit borrows it, and costs one hash, one probe
/// and a few loads. The view counts touches, and [`View::flush_touches`] reports them. It has no object
/// that the cache does not hold, except those dropped since [`View::release_dropped`] last ran.
pub struct View<H> {
    cache: Arc<Cache<H>>,
    slot: usize,
    hasher: RandomState,
    held: HashTable<Held<H>>,
    /// The objects with touches to report. It has room for all of `held`, because a hit must not allocate.
    touched: Vec<EntryRef>,
    report: Vec<(ObjectId, u32)>,
    mailbox: Arc<Mailbox>,
}

/// The result of a look-up.
#[derive(Debug)]
pub enum Lookup<'v, H> {
    /// An object that may be served.
    Hit(&'v Arc<Object<H>>),
    /// An object that may be served once its files were found unchanged. [`Cache::begin`] decides which
    /// request compares them.
    Recheck(&'v Arc<Object<H>>),
    /// No object that could be served.
    Miss,
}

struct Held<H> {
    object: Arc<Object<H>>,
    touches: u32,
}

impl<H> Cache<H> {
    /// A view of the cache for one worker. `on_drop` is called, from any thread, when the view has
    /// objects to release: the worker then calls [`View::release_dropped`].
    pub fn view(self: &Arc<Self>, on_drop: Box<dyn Fn() + Send + Sync>) -> View<H> {
        let mailbox = Arc::new(Mailbox::new(on_drop));
        let slot = self.add_view(Arc::clone(&mailbox));
        let (held, touched, report) = (HashTable::new(), Vec::new(), Vec::new());
        let (cache, hasher) = (Arc::clone(self), self.hasher().clone());
        View { cache, slot, hasher, held, touched, report, mailbox }
    }
}

impl<H> View<H> {
    /// Looks up `path` of `site`. A hit takes no lock, allocates nothing and writes nothing that is
    /// shared; the first look-up of an object that another worker loaded takes the table's lock once.
    pub fn get(&mut self, site: u32, path: &[u8], now: Millis) -> Lookup<'_, H> {
        self.look(KeyRef { site, path }, now, true)
    }

    /// As [`View::get`], but looking counts for no use.
    pub fn peek(&mut self, site: u32, path: &[u8], now: Millis) -> Lookup<'_, H> {
        self.look(KeyRef { site, path }, now, false)
    }

    #[inline]
    fn look(&mut self, key: KeyRef<'_>, now: Millis, counts: bool) -> Lookup<'_, H> {
        let hash = KeyHash::of(&self.hasher, key);
        let Some(bucket) = self.find(hash, key).or_else(|| self.learn(hash, key)) else {
            return Lookup::Miss;
        };
        let Some(held) = self.held.get_bucket_mut(bucket) else { return Lookup::Miss };
        match held.object.current(now) {
            Currency::Fresh => {
                if counts && held.touches == 0 {
                    self.touched.push(EntryRef { hash, id: held.object.id() });
                }
                held.touches = held.touches.saturating_add(u32::from(counts));
                Lookup::Hit(&held.object)
            }
            Currency::Recheck => Lookup::Recheck(&held.object),
            Currency::Dropped => Lookup::Miss,
        }
    }

    /// Reports the touches since the last time to the replacement policy; for each tick of the worker.
    pub fn flush_touches(&mut self) {
        for EntryRef { hash, id } in self.touched.drain(..) {
            if let Some(held) = self.held.find_mut(hash.wide(), |held| held.object.id() == id) {
                self.report.push((id, std::mem::take(&mut held.touches)));
            }
        }
        if !self.report.is_empty() {
            self.cache.touch(&self.report);
            self.report.clear();
        }
    }

    /// Releases the objects that were dropped. To be called after `on_drop` was.
    pub fn release_dropped(&mut self) {
        match self.mailbox.collect() {
            Letters::Some(entries) => {
                for EntryRef { hash, id } in entries {
                    let held = self.held.find_entry(hash.wide(), |held| held.object.id() == id);
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

    /// The bucket of the object. An object that was dropped is released at once.
    fn find(&mut self, hash: KeyHash, key: KeyRef<'_>) -> Option<usize> {
        let bucket =
            self.held.find_bucket_index(hash.wide(), |held| key.names(held.object.key()))?;
        let held = self.held.get_bucket_entry(bucket).ok()?;
        if !held.get().object.is_dropped() {
            return Some(bucket);
        }
        held.remove();
        None
    }

    /// Takes the object over from the shared table, if it is there.
    fn learn(&mut self, hash: KeyHash, key: KeyRef<'_>) -> Option<usize> {
        let object = self.cache.look_up(key, self.slot)?;
        let rehash = |held: &Held<H>| KeyHash::of(&self.hasher, held.object.key().into()).wide();
        let held = self.held.insert_unique(hash.wide(), Held { object, touches: 0 }, rehash);
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
