//! The shared table: the state that the cache's lock protects.
//!
//! An identity is given out when a fill begins and becomes the object's when it is published, so that
//! the dependencies noted during the fill need not be moved. (An object that replaces another one of the same
//! versions gets its identity at that moment, and the dependencies of the object before.) Each identity is
//! thus either in `fills` or in `listed`, and each path in the dependency index points at either. Its place is given
//! again when it is in neither.

use std::collections::VecDeque;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tokio::sync::oneshot;

use crate::dependencies::{Dependencies, DependencyPath, DependencyPaths};
use crate::key::{Key, KeyRef};
use crate::labels::Journal;
use crate::mailbox::Mailbox;
use crate::object::{Birth, Checked, Content, Currency, Epoch, Millis, Object, Payloads};
use crate::overtaken::{Changed, Overtaken};
use crate::policy::replay::Request;
use crate::policy::{Hint, Identities, Judge, Newcomer, ObjectId, PolicyKind, Trace};
use crate::residency::Residency;
use crate::settings::{CacheSettings, CacheStats};

mod aftermath;
mod check;
mod labelled;
mod listed;
mod names;
mod room;
mod shelf;
mod used;
mod views;

pub(crate) use aftermath::Aftermath;
use aftermath::Waiters;
use listed::{Entry, Listed};
use names::Names;
use room::{Demand, Room};
use used::Used;
use views::{Holders, Views};

/// Objects, fills and what depends on what.
pub(crate) struct Table<H> {
    epoch: Arc<Epoch>,
    identities: Identities,
    listed: Listed<H>,
    /// The objects that have labels.
    names: Names,
    fills: HashMap<ObjectId, Filling<H>>,
    filling: HashMap<Key, ObjectId, RandomState>,
    dependencies: Dependencies,
    journal: Journal,
    /// Purged objects that are still listed.
    to_sweep: VecDeque<ObjectId>,
    /// Keys of recalled objects that are still to be dropped from the residency. The residency is held meanwhile.
    to_tell: VecDeque<Key>,
    /// The residency serves nothing that was used, until all that was purged has been dropped there.
    is_held: bool,
    room: Room,
    used_since: Used,
    views: Views,
    residency: Option<Arc<dyn Residency<H>>>,
    counts: CacheStats,
    #[cfg(debug_assertions)]
    unchecked: usize,
}

/// A load under way.
struct Filling<H> {
    key: Key,
    checked: Checked,
    dependencies: DependencyPaths,
    waiters: Waiters<H>,
    /// Something it depends on changed: it will not be published.
    spoilt: bool,
}

/// The result of [`Table::begin`].
pub(crate) enum Begun<H> {
    There(Arc<Object<H>>),
    UnderWay(oneshot::Receiver<Arc<Object<H>>>),
    New { id: ObjectId, suspect: Option<Arc<Object<H>>> },
}

impl<H> Table<H> {
    /// An empty table for objects of an arena of `pinned_limit` bytes.
    pub(crate) fn new(
        settings: &CacheSettings,
        pinned_limit: usize,
        hasher: RandomState,
        epoch: Arc<Epoch>,
    ) -> Table<H> {
        Table {
            room: Room::new(settings, pinned_limit),
            listed: Listed::new(hasher.clone()),
            names: Names::default(),
            filling: HashMap::with_hasher(hasher),
            epoch,
            identities: Identities::default(),
            fills: HashMap::new(),
            dependencies: Dependencies::default(),
            journal: Journal::default(),
            to_sweep: VecDeque::new(),
            to_tell: VecDeque::new(),
            is_held: false,
            used_since: Used::default(),
            views: Views::default(),
            residency: None,
            counts: CacheStats::default(),
            #[cfg(debug_assertions)]
            unchecked: 0,
        }
    }

    /// The object of `key` for the view at `slot`, which will hold it.
    pub(crate) fn look_up(&mut self, key: KeyRef<'_>, slot: usize) -> Option<Arc<Object<H>>> {
        let entry = self.listed.under_mut(key)?;
        if entry.object.is_dropped() {
            return None;
        }
        entry.holders.add(slot);
        Some(Arc::clone(&entry.object))
    }

    pub(crate) fn begin(
        &mut self,
        key: &Key,
        checked: Checked,
        after: &mut Aftermath<H>,
    ) -> Begun<H> {
        self.expire(key, checked.at, after);
        let listed = self.listed.under(key);
        let suspect = match listed.map(|entry| (&entry.object, entry.object.current(checked.at))) {
            Some((object, Currency::Fresh)) => return Begun::There(Arc::clone(object)),
            Some((object, _)) => Some(Arc::clone(object)),
            None => None,
        };
        let under_way = self.filling.get(key).and_then(|id| self.fills.get_mut(id));
        if let Some(filling) = under_way {
            self.counts.waits += 1;
            return Begun::UnderWay(filling.wait());
        }
        let id = self.identities.give();
        self.counts.fills += 1;
        self.filling.insert(key.clone(), id);
        self.fills.insert(id, Filling::new(key.clone(), checked));
        Begun::New { id, suspect }
    }

    pub(crate) fn depends_on(&mut self, id: ObjectId, path: &[u8]) {
        let Some(filling) = self.fills.get_mut(&id) else { return };
        let added = self.dependencies.add(filling.key.site, path, id);
        filling.dependencies.extend(added);
    }

    pub(crate) fn publish(
        &mut self,
        id: ObjectId,
        key: &Key,
        content: Content<H>,
        after: &mut Aftermath<H>,
    ) -> Result<Arc<Object<H>>, Overtaken<H>> {
        let (id, filling) = match self.end_fill(id) {
            Some(filling) => (id, filling),
            None => (self.identities.give(), Filling::unknown(key)),
        };
        let Filling { key, checked, dependencies, waiters, spoilt } = filling;
        let site = key.site;
        let birth = self.birth(content.hint, checked);
        let object = Arc::new(Object::new(id, key, content, birth));
        object.charge_anyway();
        if spoilt {
            self.counts.overtaken += 1;
            self.forget(site, &dependencies, id);
            after.fail(waiters);
            object.mark_dropped();
            return Err(Overtaken(object));
        }
        self.list(&object, dependencies, after);
        after.deliver(waiters, &object);
        Ok(object)
    }

    pub(crate) fn replace(
        &mut self,
        before: &Arc<Object<H>>,
        header: (H, usize),
        payloads: Payloads,
        after: &mut Aftermath<H>,
    ) -> Result<Arc<Object<H>>, Changed> {
        let listed = self.listed.get(before.id());
        let listed = listed.filter(|entry| Arc::ptr_eq(&entry.object, before)).ok_or(Changed)?;
        let paths = listed.dependencies.clone();
        let (id, site) = (self.identities.give(), before.key().site);
        let object = Arc::new(before.remade(id, header, payloads));
        object.charge_anyway();
        let noted = paths.iter().filter_map(|path| self.dependencies.add(site, path, id)).collect();
        self.list(&object, noted, after);
        // It replaces an object that was asked for again, so the policy must not treat it as new.
        self.room.touch(id, 1);
        self.counts.replacements += 1;
        Ok(object)
    }

    pub(crate) fn confirm(
        &mut self,
        id: ObjectId,
        suspect: Option<Arc<Object<H>>>,
        after: &mut Aftermath<H>,
    ) -> Result<Arc<Object<H>>, Changed> {
        let filling = self.end_fill(id).ok_or(Changed)?;
        self.forget(filling.key.site, &filling.dependencies, id);
        let unchanged = suspect.filter(|object| !filling.spoilt && !object.is_dropped());
        let Some(object) = unchanged else {
            self.counts.overtaken += 1;
            after.fail(filling.waiters);
            return Err(Changed);
        };
        object.confirm(filling.checked);
        self.counts.confirmations += 1;
        self.tell_residency(&object);
        after.deliver(filling.waiters, &object);
        Ok(object)
    }

    pub(crate) fn abandon(&mut self, id: ObjectId, after: &mut Aftermath<H>) {
        let Some(filling) = self.end_fill(id) else { return };
        self.forget(filling.key.site, &filling.dependencies, id);
        after.fail(filling.waiters);
    }

    pub(crate) fn invalidate(&mut self, site: u32, path: &[u8], after: &mut Aftermath<H>) {
        let dependents = self.dependencies.on(site, path);
        self.drop_dependents(dependents, after);
    }

    pub(crate) fn invalidate_tree(&mut self, site: u32, path: &[u8], after: &mut Aftermath<H>) {
        let dependents = self.dependencies.under(site, path);
        self.drop_dependents(dependents, after);
    }

    /// Drops an object, if it is still listed, because its file is another one.
    pub(crate) fn drop_changed(&mut self, id: ObjectId, after: &mut Aftermath<H>) {
        self.drop_dependents([id], after);
    }

    pub(crate) fn purge(&mut self, key: &Key, after: &mut Aftermath<H>) -> bool {
        let listed = self.listed.under(key).map(|entry| entry.object.id());
        let filling = self.filling.get(key).copied();
        self.drop_dependents(listed.into_iter().chain(filling), after);
        listed.is_some() || filling.is_some()
    }

    pub(crate) fn suspect_all(&mut self) {
        self.counts.suspects += 1;
        if let Some(residency) = &self.residency {
            self.listed.iter().for_each(|entry| residency.dropped(entry.object.key()));
        }
        self.epoch.advance();
    }

    pub(crate) fn touch(&mut self, touches: &[(ObjectId, u32)]) {
        for &(id, count) in touches {
            self.counts.hits += u64::from(count);
            if let Some(entry) = self.listed.get_mut(id) {
                entry.hits = entry.hits.saturating_add(count);
                self.used_since.note(&entry.object);
                if entry.hits >= WANTED {
                    offer_used(self.residency.as_deref(), &entry.object);
                }
            }
            self.room.touch(id, count);
        }
        let listed = &self.listed;
        self.used_since.forget_beyond(listed.len(), |id| listed.get(id).is_some());
    }

    /// Hits of the object that is there for `key`.
    pub(crate) fn hits(&self, key: &Key) -> u64 {
        self.listed.under(key).map_or(0, |entry| entry.hits.into())
    }

    pub(crate) fn ids(&self) -> Vec<ObjectId> {
        self.listed.iter().map(|entry| entry.object.id()).collect()
    }

    /// Objects that are still there, with their hits.
    pub(crate) fn used(&self, ids: &[ObjectId]) -> Vec<(Arc<Object<H>>, u64)> {
        let entries = ids.iter().filter_map(|id| self.listed.get(*id));
        entries.map(|entry| (Arc::clone(&entry.object), entry.hits.into())).collect()
    }

    pub(crate) fn add_view(&mut self, mailbox: Arc<Mailbox>) -> usize {
        let slot = self.views.add(mailbox);
        self.room.set_views(self.views.len());
        slot
    }

    pub(crate) fn forget_view(&mut self, slot: usize) {
        self.views.remove(slot);
        self.room.set_views(self.views.len());
    }

    pub(crate) fn attach_residency(&mut self, residency: Arc<dyn Residency<H>>) {
        self.residency = Some(residency);
        self.listed.iter().for_each(|entry| self.tell_residency(&entry.object));
    }

    pub(crate) fn offer_again(&self, key: &Key) {
        if let Some(entry) = self.listed.under(key) {
            self.tell_residency(&entry.object);
            offer_used(self.residency.as_deref(), &entry.object);
        }
    }

    pub(crate) fn stats(&self) -> CacheStats {
        CacheStats {
            objects: self.listed.len(),
            file_objects: self.room.file_objects(),
            open_files: self.room.open_files(),
            bookkeeping: self.room.bookkeeping(),
            filling: self.fills.len(),
            ..self.counts
        }
    }

    /// The policies in use, over pinned and over file-system objects.
    pub(crate) fn policies(&mut self) -> [PolicyKind; 2] {
        self.room.shelves().map(|shelf| shelf.kind())
    }

    /// The judges of both, where the policy is chosen; once.
    pub(crate) fn take_judges(&mut self) -> Option<[Judge; 2]> {
        let [pinned, files] = self.room.shelves().map(|shelf| shelf.take_judge());
        Some([pinned?, files?])
    }

    /// The requests that both have served since the last time.
    pub(crate) fn take_traces(&mut self, empty: [Vec<Request>; 2]) -> Option<[Trace; 2]> {
        let [first, second] = empty;
        let [pinned, files] = self.room.shelves();
        Some([pinned.take_trace(first)?, files.take_trace(second)?])
    }

    /// Changes one of both policies.
    pub(crate) fn switch(&mut self, shelf: usize, kind: PolicyKind) {
        if let Some(shelf) = self.room.shelves().into_iter().nth(shelf) {
            shelf.switch(kind);
        }
    }

    /// Ejects until `needed` bytes of the arena are given up or nothing pinned is left.
    pub(crate) fn eject_pinned(&mut self, needed: usize, after: &mut Aftermath<H>) -> usize {
        let mut given_up = 0;
        while given_up < needed {
            let Some(victim) = self.room.pinned_victim(needed) else { break };
            let victim = self.eject(victim, after);
            given_up += victim.map_or(0, |object| object.pinned_bytes());
        }
        given_up
    }

    /// Ejects until `needed` bytes of what counts against the arena's limit are given up, or nothing is left.
    pub(crate) fn eject_charged(&mut self, needed: usize, after: &mut Aftermath<H>) -> usize {
        let mut given_up = 0;
        while given_up < needed {
            let Some(victim) = self.room.pinned_victim(needed) else { break };
            let victim = self.eject(victim, after);
            given_up += victim.map_or(0, |object| object.pinned_bytes() + object.charged());
        }
        given_up
    }

    /// Takes an object out, if it is listed.
    pub(crate) fn drop_object(&mut self, id: ObjectId, after: &mut Aftermath<H>) {
        self.drop_dependents([id], after);
    }

    /// The birth of an object whose source was checked at `checked`.
    fn birth(&self, hint: Hint, checked: Checked) -> Birth {
        let life = hint.expiry.map(|seconds| u64::from(seconds) * 1000);
        let end = life.map(|life| Millis(checked.at.0.saturating_add(life)));
        Birth { checked, end, epoch: Arc::clone(&self.epoch) }
    }

    /// Enters the object in place of the one that has its key, if the limits let it.
    fn list(
        &mut self,
        object: &Arc<Object<H>>,
        dependencies: DependencyPaths,
        after: &mut Aftermath<H>,
    ) {
        let (id, key) = (object.id(), object.key());
        let before = self.listed.under(key).map(|entry| (entry.object.id(), entry.hits));
        if let Some((before, _)) = before {
            self.retire(before, after);
        }
        let demand = Demand::of(object, &dependencies);
        self.counts.unkept += u64::from(!object.is_to_be_kept());
        if !object.is_to_be_kept() || !self.room.could_hold(&demand) {
            object.mark_dropped();
            self.forget(key.site, &dependencies, id);
            return;
        }
        while let Some(victim) = self.room.victim_for(&demand) {
            self.eject(victim, after);
        }
        let (family, hint, hash) = (object.family(), object.hint(), self.listed.hash(key));
        self.room.enter(
            Newcomer { id, size: 0, fingerprint: hash.fingerprint(), family, hint },
            &demand,
        );
        self.tell_residency(object);
        if before.is_some_and(|(_, hits)| hits >= WANTED) {
            offer_used(self.residency.as_deref(), object);
        }
        let (object, holders) = (Arc::clone(object), Holders::default());
        self.listed.insert(Entry { object, dependencies, holders, hits: 0, hash });
    }

    /// Drops the object of `key` if it has reached the age of its hint.
    fn expire(&mut self, key: &Key, now: Millis, after: &mut Aftermath<H>) {
        let listed = self.listed.under(key);
        if let Some(old) = listed.filter(|entry| entry.object.has_expired(now)) {
            let id = old.object.id();
            self.counts.expiries += 1;
            self.retire(id, after);
        }
    }

    /// A residency can neither re-check an object nor see its age, so it is offered only objects that need none
    /// of both.
    fn tell_residency(&self, object: &Object<H>) {
        let lasts = !object.is_suspect() && object.end().is_none();
        if let Some(residency) = self.residency.as_ref().filter(|_| lasts) {
            residency.published(object.key(), object);
        }
    }

    fn drop_dependents(
        &mut self,
        dependents: impl IntoIterator<Item = ObjectId>,
        after: &mut Aftermath<H>,
    ) {
        for id in dependents {
            if let Some(filling) = self.fills.get_mut(&id) {
                filling.spoilt = true;
            } else if self.retire(id, after).is_some() {
                self.counts.invalidations += 1;
            }
        }
    }

    fn eject(&mut self, id: ObjectId, after: &mut Aftermath<H>) -> Option<Arc<Object<H>>> {
        self.counts.ejections += 1;
        self.retire(id, after)
    }

    /// Takes an object out. The order matters: first the residency stops serving its copy, then no view serves the
    /// object, then it leaves the table, then the views get a letter to release it.
    fn retire(&mut self, id: ObjectId, after: &mut Aftermath<H>) -> Option<Arc<Object<H>>> {
        let object = Arc::clone(&self.listed.get(id)?.object);
        let key = object.key();
        if let Some(residency) = &self.residency {
            residency.dropped(key);
        }
        object.mark_dropped();
        let entry = self.listed.remove(id)?;
        self.names.remove(&key.path, id.place());
        self.room.leave(id, &entry.demand());
        self.forget(key.site, &entry.dependencies, id);
        self.views.tell(entry.holders, entry.hash, id, after);
        after.release(entry.object);
        Some(object)
    }

    fn end_fill(&mut self, id: ObjectId) -> Option<Filling<H>> {
        let filling = self.fills.remove(&id)?;
        self.filling.remove(&filling.key);
        Some(filling)
    }

    /// Nothing has this identity any more, and these dependencies.
    fn forget(&mut self, site: u32, paths: &[DependencyPath], id: ObjectId) {
        paths.iter().for_each(|path| self.dependencies.remove(site, path, id));
        self.identities.take_back(id);
    }
}

/// Uses from which on an object is offered: to pin one costs a residency as much as some uses of it save.
const WANTED: u32 = 4;

fn offer_used<H>(residency: Option<&dyn Residency<H>>, object: &Object<H>) {
    if let Some(residency) = residency.filter(|_| !object.is_dropped()) {
        residency.used(object.key(), object);
    }
}

impl<H> Filling<H> {
    /// Stands in for a fill that is not in the table. A ticket ends its fill once, so there is none;
    /// if there were, nothing would be listed.
    fn unknown(key: &Key) -> Filling<H> {
        debug_assert!(false, "a ticket without its fill");
        let checked = Checked { epoch: 0, at: Millis(0) };
        Filling { spoilt: true, ..Filling::new(key.clone(), checked) }
    }

    fn new(key: Key, checked: Checked) -> Filling<H> {
        Filling {
            key,
            checked,
            dependencies: DependencyPaths::default(),
            waiters: Vec::new(),
            spoilt: false,
        }
    }

    /// Before the list grows, the waiters that gave up are removed from it: a client that asks and leaves, again and
    /// again during one long load, must not fill the memory.
    fn wait(&mut self) -> oneshot::Receiver<Arc<Object<H>>> {
        if self.waiters.len() == self.waiters.capacity() {
            self.waiters.retain(|waiter| !waiter.is_closed());
        }
        let (arrival, departure) = oneshot::channel();
        self.waiters.push(arrival);
        departure
    }
}
