//! The cache that all cores share. A worker looks objects up in its [`View`](crate::View); a request that
//! misses calls [`Cache::begin`].

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use afpa_arena::{Arena, PinnedMut};
use foldhash::fast::RandomState;

use crate::chooser::Chooser;
use crate::key::{Key, KeyRef};
use crate::labels::{Label, Labels, Moment, Origin};
use crate::mailbox::Mailbox;
use crate::object::{Checked, Content, Epoch, Millis, Object, Payload, cost_of};
use crate::overtaken::{Changed, Overtaken};
use crate::pages::{PageCharge, PageRoom};
use crate::policy::ObjectId;
use crate::residency::Residency;
use crate::settings::{CacheSettings, CacheStats};
use crate::table::{Aftermath, Begun, Table};

/// The cache: one table of objects under one lock, which misses, changes and ticks take, but no hit.
///
/// Every operation first changes the table. Then it releases the lock and does the work that the change leaves behind:
/// it releases objects, wakes waiters, calls workers (`Aftermath`).
pub struct Cache<H> {
    settings: CacheSettings,
    arena: Arena,
    hasher: RandomState,
    epoch: Arc<Epoch>,
    table: Mutex<Table<H>>,
    pages: Arc<PageRoom>,
    /// How many purges of labels there were. It changes under the table's lock.
    purges: AtomicU64,
    /// The thread that chooses the policy, and its results.
    pub(crate) chooser: OnceLock<Chooser>,
}

impl<H> Cache<H> {
    /// An empty cache whose pinned objects live in `arena`.
    pub fn new(settings: CacheSettings, arena: Arena) -> Arc<Cache<H>> {
        let hasher = RandomState::default();
        let counted = settings.counts_all.then(|| arena.clone());
        let epoch = Arc::new(Epoch::new(settings.max_age_unwatched, counted));
        let limit = arena.limit();
        let table = Table::new(&settings, limit, hasher.clone(), Arc::clone(&epoch));
        let (table, chooser) = (Mutex::new(table), OnceLock::new());
        let purges = AtomicU64::new(0);
        let pages = PageRoom::new(settings.bookkeeping_limit);
        Arc::new(Cache { settings, arena, hasher, epoch, table, pages, purges, chooser })
    }

    /// Room for `len` bytes in the arena, if need be after ejecting others. Blocks for up to
    /// [`release_wait`](crate::CacheSettings::release_wait): for helper threads only.
    ///
    /// `None` when it is too large to be pinned, or no room came free in time.
    pub fn reserve(&self, len: usize) -> Option<PinnedMut> {
        let (settings, arena) = (&self.settings, &self.arena);
        let footprint = Arena::footprint(len);
        let largest = arena.limit() / settings.largest_share.max(1);
        if len > settings.pin_threshold || footprint > largest {
            return None;
        }
        if let Some(room) = arena.allocate(len) {
            return Some(room);
        }
        let deadline = Instant::now() + settings.release_wait;
        let pause = settings.release_wait / PAUSES;
        for _ in 0..PAUSES {
            // The ejected bytes may be scattered, or connections may still send them. So this ejects more than once,
            // but never more than PAUSES times the needed bytes.
            if self.eject_pinned(footprint) == 0 {
                break;
            }
            if let Some(room) = arena.allocate_within(len, pause) {
                return Some(room);
            }
        }
        arena.allocate_within(len, deadline.saturating_duration_since(Instant::now()))
    }

    /// Counts a page of so many bytes, which was made for responses and does not lie in the arena, until the charge is dropped:
    /// hand it to [`FileBody::charged`](crate::root::FileBody::charged). All such pages together may have as many bytes as
    /// [`bookkeeping_limit`](CacheSettings::bookkeeping_limit) says. `None`: there is no room.
    pub fn charge_page(&self, bytes: usize) -> Option<PageCharge> {
        self.pages.take(bytes)
    }

    /// Drops the objects that depend on `path`, relative to the root of `site`, and invalidates the loads
    /// under way that do. After it has returned, no view serves these objects.
    pub fn invalidate(&self, site: u32, path: &[u8]) {
        self.change(|table, after| table.invalidate(site, path, after));
    }

    /// As [`Cache::invalidate`], for `path` and everything below it. The empty path is the whole site.
    pub fn invalidate_tree(&self, site: u32, path: &[u8]) {
        self.change(|table, after| table.invalidate_tree(site, path, after));
    }

    /// Makes every object suspect, and every object that is being loaded, because events were lost.
    pub fn suspect_all(&self) {
        self.change(|table, _| table.suspect_all());
    }

    /// Shows the objects that were used since the last call and rely on a watch, so that their files can be compared,
    /// because a watch misses some changes. Objects for which `is_current` says no are dropped. It takes the lock
    /// often, each time for a short while.
    pub fn compare_used(&self, mut is_current: impl FnMut(&Object<H>) -> bool) {
        let ids = self.table().take_used();
        for ids in ids.chunks(AT_ONCE) {
            let used = self.table().used(ids);
            for (object, _) in used {
                if !object.is_dropped() && !is_current(&object) {
                    self.change(|table, after| table.drop_changed(object.id(), after));
                }
            }
        }
    }

    /// Drops the object of `key` and invalidates its load, if there is one. Returns whether there was either.
    pub fn purge(&self, key: &Key) -> bool {
        self.change(|table, after| table.purge(key, after))
    }

    /// Shows the object of `key`, if there is one, so that the module can mark it. The residency has dropped the object
    /// before. `show` runs with the lock held, and must not call the cache.
    pub fn recall(&self, key: &Key, show: impl FnOnce(&Object<H>)) {
        self.change(|table, _| table.recall(key, show));
    }

    /// Replaces `before` by an object of the same versions of the same files, for example with payloads that
    /// were not ready before. It depends on the same paths, and becomes suspect or old when `before` would. `header_bytes`:
    /// as with [`Ticket::weigh`](crate::Ticket::weigh).
    ///
    /// # Errors
    /// [`Changed`] when `before` is no longer listed: a dependency changed, or it was ejected, purged or
    /// replaced. Nothing is listed then.
    pub fn replace(
        &self,
        before: &Arc<Object<H>>,
        (header, header_bytes): (H, usize),
        payloads: impl IntoIterator<Item = Payload>,
    ) -> Result<Arc<Object<H>>, Changed> {
        let payloads = payloads.into_iter().collect();
        let header = (header, header_bytes);
        self.change(|table, after| table.replace(before, header, payloads, after))
    }

    /// Contents and counts of the cache.
    pub fn stats(&self) -> CacheStats {
        let usage = self.arena.usage();
        CacheStats {
            pinned_bytes: usage.used,
            pinned_limit: usage.limit,
            bookkeeping_limit: self.settings.bookkeeping_limit,
            page_bytes: self.pages.taken(),
            ..self.table().stats()
        }
    }

    /// Attaches a residency, which gets the objects that are listed already.
    pub fn attach_residency(&self, residency: Arc<dyn Residency<H>>) {
        self.table().attach_residency(residency);
    }

    /// Offers these objects to the residency again, as far as they are there and current. To be called when it
    /// has room for objects that it could not take before.
    pub fn offer_again(&self, keys: &[Key]) {
        let table = self.table();
        keys.iter().for_each(|key| table.offer_again(key));
    }

    /// The limits in force.
    pub fn settings(&self) -> &CacheSettings {
        &self.settings
    }

    /// The arena of the pinned objects.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    pub(crate) fn hasher(&self) -> &RandomState {
        &self.hasher
    }

    pub(crate) fn add_view(&self, mailbox: Arc<Mailbox>) -> usize {
        self.table().add_view(mailbox)
    }

    pub(crate) fn begin_fill(&self, key: &Key, now: Millis) -> Begun<H> {
        let checked = Checked { epoch: self.epoch.current(), at: now };
        self.change(|table, after| table.begin(key, checked, after))
    }

    pub(crate) fn look_up(&self, key: KeyRef<'_>, slot: usize) -> Option<Arc<Object<H>>> {
        self.table().look_up(key, slot)
    }

    /// Reports uses to the replacement policy that no view has seen, for example those of the residency.
    pub fn touch(&self, touches: &[(ObjectId, u32)]) {
        self.change(|table, _| table.touch(touches));
    }

    /// The reported hits of the objects with these keys; 0 where there is no object.
    pub fn hits(&self, keys: &[Key]) -> Vec<u64> {
        let table = self.table();
        keys.iter().map(|key| table.hits(key)).collect()
    }

    /// The objects for which `weigh`, given an object and its reported hits, says most: at most `most`, the heaviest first,
    /// none of weight 0. It takes the lock often, each time for a short while.
    pub fn heaviest(&self, most: usize, weigh: impl Fn(&Object<H>, u64) -> u64) -> Vec<Used<H>> {
        let ids = self.table().ids();
        let mut heaviest: Vec<Used<H>> = Vec::new();
        for ids in ids.chunks(AT_ONCE) {
            let used = self.table().used(ids).into_iter();
            let used = used.map(|(object, hits)| {
                let weight = weigh(&object, hits);
                Used { object, hits, weight }
            });
            heaviest.extend(used.filter(|used| used.weight > 0));
            heaviest.sort_by_key(|used| std::cmp::Reverse(used.weight));
            heaviest.truncate(most);
        }
        heaviest
    }

    /// All objects, with their reported hits, those with most hits first. It takes the lock often, each time for a short while.
    pub fn by_hits(&self) -> Vec<(Arc<Object<H>>, u64)> {
        let ids = self.table().ids();
        let mut all: Vec<_> = Vec::with_capacity(ids.len());
        ids.chunks(AT_ONCE).for_each(|ids| all.extend(self.table().used(ids)));
        // Among objects with as many hits the latest come first.
        all.sort_by_key(|(object, hits)| std::cmp::Reverse((*hits, object.id())));
        all
    }

    pub(crate) fn forget_view(&self, slot: usize) {
        self.table().forget_view(slot);
    }

    pub(crate) fn depends_on(&self, id: ObjectId, path: &[u8]) {
        self.change(|table, _| table.depends_on(id, path));
    }

    pub(crate) fn purges_done(&self) -> u64 {
        self.purges.load(Ordering::Acquire)
    }

    pub(crate) fn list_labelled(
        &self,
        key: Key,
        labels: &[Label],
        content: Content<H>,
        (since, origin): (Moment, Origin),
        now: Millis,
    ) -> Result<Arc<Object<H>>, Overtaken<H>> {
        let checked = Checked { epoch: self.epoch.current(), at: now };
        let has_room = self.charge_for(&key, &content, origin);
        self.change(|table, after| {
            table.list_labelled(key, labels, content, (since, origin, checked, has_room), after)
        })
    }

    /// Counts an object that comes. False: there is no room for it, so that it must not stay.
    fn charge_for(&self, key: &Key, content: &Content<H>, origin: Origin) -> bool {
        let Some(arena) = self.epoch.arena() else { return true };
        let cost = cost_of::<H>(key.path.len(), content.header_bytes, content.payloads.len());
        let has_room = match origin {
            Origin::Source => self.charge(cost),
            Origin::Restored(_) => arena.charge(cost),
        };
        if !has_room {
            arena.charge_anyway(cost);
        }
        has_room
    }

    /// Counts bytes that are elsewhere in memory against the limit of the arena, if need be after ejecting others. False: there
    /// is no room, and they are not counted.
    #[must_use]
    pub fn charge(&self, bytes: usize) -> bool {
        let Some(arena) = self.epoch.arena() else { return true };
        for _ in 0..ATTEMPTS {
            if arena.charge(bytes) {
                return true;
            }
            // Ejected ranges may be scattered.
            if self.change(|table, after| table.eject_charged(bytes.max(LEAST), after)) == 0 {
                break;
            }
        }
        arena.charge(bytes)
    }

    /// Ends the charge of these bytes.
    pub fn uncharge(&self, bytes: usize) {
        self.epoch.arena().inspect(|arena| arena.uncharge(bytes));
    }

    /// Drops an object, if it is still listed.
    pub fn drop_object(&self, id: ObjectId) {
        self.change(|table, after| table.drop_object(id, after));
    }

    /// The purge counts from the moment at which it has happened: with the lock held, before the objects go.
    pub(crate) fn purge_labelled(&self, labels: Labels) -> usize {
        self.change(|table, after| {
            let number = self.purges.fetch_add(1, Ordering::AcqRel) + 1;
            let count = table.purge_labels(number, labels);
            table.sweep(AT_ONCE, after);
            count
        })
    }

    pub(crate) fn recall_labelled(
        &self,
        labels: Labels,
        show: &mut dyn FnMut(&Object<H>),
    ) -> usize {
        self.change(|table, after| {
            let number = self.purges.fetch_add(1, Ordering::AcqRel) + 1;
            let count = table.recall_labels(number, labels, show);
            table.sweep(AT_ONCE, after);
            count
        })
    }

    /// Releases the objects that a purge of many has left in the table. Takes the lock often, each time for a short
    /// while: for a thread of its own.
    pub fn sweep(&self) {
        while self.change(|table, after| table.sweep(AT_ONCE, after)) {}
    }

    pub(crate) fn purged_since(
        &self,
        since: Moment,
        labels: &[&[u8]],
        also: &dyn Fn(&[u8]) -> bool,
    ) -> bool {
        self.table().purged_since(since, labels, also)
    }

    /// Ejects pinned objects of at least `needed` bytes in total. Returns how many bytes were ejected.
    pub(crate) fn eject_pinned(&self, needed: usize) -> usize {
        self.change(|table, after| table.eject_pinned(needed, after))
    }

    pub(crate) fn publish(
        &self,
        id: ObjectId,
        key: &Key,
        content: Content<H>,
    ) -> Result<Arc<Object<H>>, Overtaken<H>> {
        self.change(|table, after| table.publish(id, key, content, after))
    }

    pub(crate) fn confirm(
        &self,
        id: ObjectId,
        suspect: Option<Arc<Object<H>>>,
    ) -> Result<Arc<Object<H>>, Changed> {
        self.change(|table, after| table.confirm(id, suspect, after))
    }

    pub(crate) fn abandon(&self, id: ObjectId) {
        self.change(|table, after| table.abandon(id, after));
    }

    fn change<T>(&self, change: impl FnOnce(&mut Table<H>, &mut Aftermath<H>) -> T) -> T {
        let mut aftermath = Aftermath::default();
        let outcome = {
            let mut table = self.table();
            let outcome = change(&mut table, &mut aftermath);
            table.check_now_and_then();
            outcome
        };
        aftermath.settle();
        outcome
    }

    /// A panic under the lock is a bug of the cache or of a `Residency`. The table may then be half changed and
    /// could serve stale content, so the panic is passed on.
    pub(crate) fn table(&self) -> MutexGuard<'_, Table<H>> {
        self.table.lock().expect("an earlier panic under the cache's lock")
    }
}

impl<H> fmt::Debug for Cache<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// An object, and how much it was used.
#[derive(Debug)]
pub struct Used<H> {
    /// The object.
    pub object: Arc<Object<H>>,
    /// Its reported hits.
    pub hits: u64,
    /// As it was weighed.
    pub weight: u64,
}

/// Objects that are looked at, or taken out behind a purge, with the lock held.
pub(crate) const AT_ONCE: usize = 512;

/// How often room is made for charged bytes.
const ATTEMPTS: usize = 4;
/// Bytes that are ejected at once for that.
const LEAST: usize = 16 << 10;

/// How often `reserve` ejects within its wait.
const PAUSES: u32 = 4;
