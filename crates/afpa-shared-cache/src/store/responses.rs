//! The shared cache of all sites and cores. It outlives reloads.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afpa_cache::{Arena, Cache, CacheSettings, Labels, View};
use afpa_http::caching::store::NotStored;

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::fetch::Fetch;
use crate::key::label_of;
use crate::key::labels::{self, Purge, labels_of};
use crate::peers::Peers;
use crate::policy::CachePolicy;
use crate::store::passes::Passes;
use crate::store::save::digest;
use crate::store::stored::StoredResponse;

/// The answers of servers that are kept, and those that are on their way.
pub struct Responses {
    cache: Arc<Cache<StoredResponse>>,
    hasher: RandomState,
    fetches: Mutex<Fetches>,
    passes: Passes,
    /// Request sets by their rules.
    scopes: Mutex<HashMap<String, Scope>>,
    /// Policies that keep different parts of a query.
    queries: Mutex<Vec<Arc<CachePolicy>>>,
    /// Bytes of answers on their way that are to be kept.
    buffered: AtomicUsize,
    /// Gets the purges that clients order.
    pass_on: Mutex<Option<PassOn>>,
    /// Other machines that keep answers, if they are asked.
    peers: Mutex<Option<Arc<dyn Peers>>>,
    /// Whether there are some: all that most requests look at.
    has_peers: AtomicBool,
    /// Whether they hear of what unsafe requests have made invalid.
    tells_changes: AtomicBool,
    pub(crate) counts: Counts,
}

/// Passes a purge on to other machines. It may not block.
pub type PassOn = Arc<dyn Fn(&Purge, Cause) + Send + Sync>;

/// Why other machines are to drop answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A client that may do so has ordered it.
    Ordered {
        /// They become stale, and are not dropped.
        soft: bool,
    },
    /// A request of any client, with a method that is not safe, has changed something.
    Changed,
}

/// A request set with its rules.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    pub(crate) number: u32,
    pub(crate) policy: Arc<CachePolicy>,
}

/// The fetches that are under way, by the hash of their primary key.
type Fetches = HashTable<Arc<Fetch>>;

/// Counts since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) stale: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) stored: AtomicU64,
    /// By [`NotStored`].
    pub(crate) passed: [AtomicU64; NotStored::ALL.len()],
    pub(crate) collapsed: AtomicU64,
    pub(crate) validated: AtomicU64,
    pub(crate) bypassed: AtomicU64,
    pub(crate) purges: AtomicU64,
    pub(crate) purged: AtomicU64,
}

/// The counts of the shared cache since the start, and the size of its contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedStats {
    /// Stale answers that answered a request, because they may or the server failed.
    pub stale: u64,
    /// Requests for which there was no answer to use.
    pub misses: u64,
    /// Answers that were kept.
    pub stored: u64,
    /// Answers that could not be kept, by reason.
    pub passed: [(&'static str, u64); NotStored::ALL.len()],
    /// Requests that were answered with the answer to another one.
    pub collapsed: u64,
    /// Answers of which the server said that they are still current.
    pub validated: u64,
    /// Requests that do not use the cache.
    pub bypassed: u64,
    /// Purges.
    pub purges: u64,
    /// Answers that they dropped or made stale.
    pub purged: u64,
    /// Answers that are kept.
    pub objects: usize,
    /// Bytes of the arena that they take up.
    pub bytes: usize,
    /// Bytes that they may take up.
    pub limit: usize,
    /// Answers dropped to make room.
    pub ejections: u64,
}

impl Responses {
    /// Gives memory back that answers took up before ([`Arena::give_back_memory`]).
    pub fn give_back_memory(&self) {
        self.cache.arena().give_back_memory();
    }

    /// An empty cache in an arena of its own, so that the files of sites keep theirs.
    pub fn new(settings: CacheSettings, arena: Arena) -> Arc<Self> {
        Arc::new(Self {
            cache: Cache::new(settings, arena),
            hasher: RandomState::default(),
            fetches: Mutex::default(),
            passes: Passes::default(),
            scopes: Mutex::default(),
            queries: Mutex::default(),
            buffered: AtomicUsize::new(0),
            pass_on: Mutex::default(),
            peers: Mutex::default(),
            has_peers: AtomicBool::new(false),
            tells_changes: AtomicBool::new(false),
            counts: Counts::default(),
        })
    }

    /// The number of a request set with its rules: the same for as long as the process runs. Responses stored under
    /// other rules are not found.
    pub fn scope(&self, rules: &str, policy: &Arc<CachePolicy>) -> u32 {
        let mut queries = self.queries.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |known: &CachePolicy| {
            (&known.query, known.sort_query) == (&policy.query, policy.sort_query)
        };
        if !queries.iter().any(|known| same(known)) {
            queries.push(Arc::clone(policy));
        }
        drop(queries);
        let mut scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        let number = u32::try_from(scopes.len()).unwrap_or(u32::MAX);
        let new = || Scope { number, policy: Arc::clone(policy) };
        scopes.entry(rules.to_owned()).or_insert_with(new).number
    }

    /// The digest of the rules of a request set, the same in each process.
    pub fn place(rules: &str) -> [u8; 16] {
        digest(rules)
    }

    /// Shows all request sets, with their rules.
    pub(crate) fn each_scope(&self, mut show: impl FnMut(&str, &Scope)) {
        let scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        scopes.iter().for_each(|(rules, scope)| show(rules, scope));
    }

    /// A core's view.
    pub fn view(&self, wake: &Arc<dyn Fn() + Send + Sync>) -> View<StoredResponse> {
        let wake = Arc::clone(wake);
        self.cache.view(Box::new(move || wake()))
    }

    /// Counts and contents.
    pub fn stats(&self) -> SharedStats {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (counts, held) = (&self.counts, self.cache.stats());
        SharedStats {
            stale: get(&counts.stale),
            misses: get(&counts.misses),
            stored: get(&counts.stored),
            passed: NotStored::ALL
                .map(|why| (why.key(), counts.passed.get(why as usize).map_or(0, get))),
            collapsed: get(&counts.collapsed),
            validated: get(&counts.validated),
            bypassed: get(&counts.bypassed),
            purges: get(&counts.purges),
            purged: get(&counts.purged),
            objects: held.objects,
            bytes: held.pinned_bytes,
            limit: held.pinned_limit,
            ejections: held.ejections,
        }
    }

    /// Drops the responses that a purge is about, or with `soft` makes them stale. When this returns, no later request
    /// gets an answer that was asked for before the purge. Returns how many answers there were.
    pub fn purge(self: &Arc<Self>, what: &Purge, soft: bool) -> usize {
        let mut count = 0;
        let queries = self.queries();
        for labels in labels_of(what, &queries) {
            count += self.purge_labels(labels, soft);
        }
        self.counts.purges.fetch_add(1, Ordering::Relaxed);
        self.counts.purged.fetch_add(count as u64, Ordering::Relaxed);
        count
    }

    /// Has the purges that clients order passed on to other machines, or not any more.
    pub fn pass_purges_on(&self, pass_on: Option<PassOn>) {
        *self.pass_on.lock().unwrap_or_else(PoisonError::into_inner) = pass_on;
    }

    /// As [`purge`](Self::purge), by the order of a client: other machines get it as well, and before it is done here: from then
    /// on none of them is asked for what it may not have dropped yet.
    pub(crate) fn purge_everywhere(self: &Arc<Self>, what: &Purge, soft: bool) -> usize {
        self.tell_others(what, Cause::Ordered { soft });
        self.purge(what, soft)
    }

    /// Where other machines are asked for answers, they drop what an unsafe request has made invalid here. The answers here are
    /// dropped after this.
    pub(crate) fn invalidate_elsewhere(&self, what: &Purge) {
        if self.tells_changes.load(Ordering::Acquire) {
            self.tell_others(what, Cause::Changed);
        }
    }

    fn tell_others(&self, what: &Purge, cause: Cause) {
        let pass_on = self.pass_on.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(pass_on) = pass_on {
            pass_on(what, cause);
        }
    }

    /// Asks these machines from now on, and answers them; `None`: none.
    pub fn set_peers(&self, peers: Option<Arc<dyn Peers>>) {
        let mut known = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        self.tells_changes.store(peers.is_some(), Ordering::Release);
        self.has_peers.store(peers.is_some(), Ordering::Release);
        *known = peers;
    }

    /// Asks nobody until [`set_peers`](Self::set_peers) is called, and passes on what is for the others.
    pub fn pause_peers(&self) {
        let mut known = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_peers.store(false, Ordering::Release);
        *known = None;
    }

    /// Other machines that keep answers.
    pub fn peers(&self) -> Option<Arc<dyn Peers>> {
        if !self.has_peers.load(Ordering::Acquire) {
            return None;
        }
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// As [`purge`](Self::purge), by labels, and without counting a purge.
    pub(crate) fn purge_labels(self: &Arc<Self>, labels: Labels, soft: bool) -> usize {
        let count = match soft {
            true => self.cache.recall_labels(labels, |object| object.header().recall()),
            false => self.cache.purge_labels(labels),
        };
        if count > MANY {
            let cache = Arc::clone(&self.cache);
            let thread = std::thread::Builder::new().name("afpa-sweep".into());
            if thread.spawn(move || cache.sweep()).is_err() {
                self.cache.sweep();
            }
        }
        count
    }

    /// The labels under which responses for a URL may be stored.
    pub(crate) fn url_labels(
        &self,
        host: &[u8],
        path: &[u8],
        query: Option<&[u8]>,
    ) -> Vec<Vec<u8>> {
        labels::of_url(host, path, query, &self.queries())
    }

    fn queries(&self) -> Vec<Arc<CachePolicy>> {
        self.queries.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The objects. The fast path learns of them through a residency.
    pub fn cache(&self) -> &Arc<Cache<StoredResponse>> {
        &self.cache
    }

    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    pub(crate) fn passes(&self) -> &Passes {
        &self.passes
    }

    /// The fetch that is under way for the same key, if a new request may have its answer. Else `new`, which is listed
    /// from now on, and `true`.
    pub(crate) fn join(&self, new: &Arc<Fetch>) -> (Arc<Fetch>, bool) {
        let mut fetches = self.fetches();
        let entry =
            fetches.entry(new.hash, |held| held.primary() == new.primary(), |held| held.hash);
        let mut held = match entry {
            Entry::Vacant(place) => {
                new.set_listed(true);
                place.insert(Arc::clone(new));
                return (Arc::clone(new), true);
            }
            Entry::Occupied(held) => held,
        };
        let fetch = held.get_mut();
        let others = |text: &[u8]| !text.starts_with(b"u");
        let label = label_of(fetch.primary());
        if fetch.is_open() && !self.cache.is_purged_since(fetch.since, &[label], others) {
            return (Arc::clone(fetch), false);
        }
        new.set_listed(true);
        *fetch = Arc::clone(new);
        (Arc::clone(new), true)
    }

    /// Removes a fetch from the list, so that no more requests join it.
    pub(crate) fn leave(&self, fetch: &Arc<Fetch>) {
        if !fetch.set_listed(false) {
            return;
        }
        let mut fetches = self.fetches();
        if let Ok(held) = fetches.find_entry(fetch.hash, |held| Arc::ptr_eq(held, fetch)) {
            drop(held.remove());
        }
    }

    /// Counts bytes of answers on their way among the kept ones. `false`: the limit on kept bytes is reached, and these
    /// are not counted.
    pub(crate) fn buffer(&self, bytes: usize) -> bool {
        let limit = self.cache.arena().limit();
        let all = self.buffered.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let has_room = all <= limit && self.cache.charge(bytes);
        if !has_room {
            self.buffered.fetch_sub(bytes, Ordering::Relaxed);
        }
        has_room
    }

    /// Ends the count of these bytes.
    pub(crate) fn unbuffer(&self, bytes: usize) {
        self.buffered.fetch_sub(bytes, Ordering::Relaxed);
        self.cache.uncharge(bytes);
    }

    /// Bytes of answers on their way.
    #[cfg(test)]
    pub(crate) fn buffered(&self) -> usize {
        self.buffered.load(Ordering::Relaxed)
    }

    fn fetches(&self) -> MutexGuard<'_, Fetches> {
        self.fetches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Purges of more answers than this leave some to be released by a thread.
const MANY: usize = 512;

impl std::fmt::Debug for Responses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Responses").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
