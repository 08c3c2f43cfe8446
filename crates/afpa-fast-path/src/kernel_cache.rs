//! The kernel's copies of cache objects: the cache reports objects that come and go, and the kernel follows.

mod pinnable;
mod pinned;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use afpa_bpf::{FastPath, FreeRoom, PATH_MAX, PinError, PinRules, PinnedPlaces};
use afpa_cache::{Cache, Key, Object, ObjectId, Residency};

use crate::event_log::{AnswerDescription, Origin, VersionRegister};
use crate::rebalance::{self, Demand, Free, Share, Weight};
pub(crate) use pinnable::{PinCopy, PinTarget, Pinnable};
use pinned::{PinnedEntry, PinnedObjects, PinnedTarget, RefusedObject};

/// The kernel's copies for one configuration. A reload makes another one, with new numbers for its sites.
pub(crate) struct KernelCache<H> {
    fast_path: Arc<FastPath>,
    /// Of which configuration and cache they are.
    origin: Origin,
    source: Box<dyn Pinnable<H>>,
    /// The room that its objects may have.
    share: Share,
    register: Arc<VersionRegister>,
    counts: Arc<OfferCounts>,
    pinned: Mutex<PinnedObjects>,
}

/// How often the room is given anew to the objects that save the most.
pub(crate) const PERIOD: Duration = Duration::from_secs(10);

/// Most objects that are remembered while there is no room for them. Others get another chance when they are
/// loaded again.
const REFUSED_MAX: usize = 4096;

/// The outcomes of offered objects that are not pinned.
#[derive(Debug, Default)]
pub(crate) struct OfferCounts {
    /// No slot or page was free.
    pub(crate) full: AtomicU64,
    /// Path, head or content is too long for the kernel.
    pub(crate) too_long: AtomicU64,
    /// The kernel refused.
    pub(crate) failed: AtomicU64,
    /// The object was taken back, because others save more time.
    pub(crate) put_aside: AtomicU64,
    /// An object could not be taken back: the kernel must not answer any more.
    pub(crate) broken: AtomicBool,
}

/// The kernel has given back the room of an object that was put aside, unless clients still need it, and the newcomer was offered.
const ASIDE: Duration = Duration::from_secs(6);

/// A report of an object, for people.
pub(crate) struct ObjectReport {
    pub(crate) path: String,
    pub(crate) pinned: bool,
    pub(crate) bytes: usize,
    /// About how many in a period.
    pub(crate) hits: f64,
    /// Microseconds saved in a period, for each kilobyte.
    pub(crate) benefit: f64,
}

impl<H> KernelCache<H> {
    pub(crate) fn new(
        fast_path: Arc<FastPath>,
        origin: Origin,
        source: Box<dyn Pinnable<H>>,
        share: Share,
        register: Arc<VersionRegister>,
        counts: Arc<OfferCounts>,
    ) -> Self {
        let pinned = Mutex::default();
        Self { fast_path, origin, source, share, register, counts, pinned }
    }

    /// Of which configuration and cache they are.
    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// Takes all objects back. Nothing is pinned afterwards.
    pub(crate) fn close(&self) {
        let mut pinned = self.lock();
        pinned.closed = true;
        pinned.refused.clear();
        pinned.taken = Demand::default();
        for (_, held) in pinned.objects.drain() {
            held.places.into_iter().for_each(|place| self.unpin(place));
        }
    }

    /// The objects with which the kernel does not answer any more because their time is over, and those of which there is
    /// more to pin now. The caller offers them again:
    /// those that user mode may still send are pinned anew, the others are taken back.
    pub(crate) fn ended(&self, now: Instant) -> Vec<Key> {
        let pinned = self.lock();
        let anew = self.source.is_wanted_anew(&self.fast_path);
        let over =
            |held: &PinnedEntry| held.until.is_some_and(|until| until <= now) || anew && !held.anew;
        let ended = pinned.objects.iter().filter(|(_, held)| over(held));
        ended.map(|(key, _)| key.clone()).collect()
    }

    /// Whether objects wait for room.
    pub(crate) fn has_refused(&self) -> bool {
        !self.lock().refused.is_empty()
    }

    /// The refused objects that fit into the free room, the most useful first, at most `most`.
    pub(crate) fn worth_an_offer(&self, free: FreeRoom, most: usize) -> Vec<Key> {
        let pinned = self.lock();
        let mut waiting = pinned.waiting();
        let now = Instant::now();
        waiting.retain(|weight| !pinned.is_aside(&weight.key, now));
        rebalance::choose(waiting, self.free(&pinned, free), most)
    }

    /// Notes how often objects were used since the last call, and takes back those whose room clearly saves
    /// more time with a refused object in it. To be called once in a [`PERIOD`].
    pub(crate) fn rebalance(&self, cache: &Cache<H>, free: FreeRoom) {
        let keys: Vec<Key> = {
            let pinned = self.lock();
            pinned.objects.keys().chain(pinned.refused.keys()).cloned().collect()
        };
        // The cache calls us while it holds its lock. So ours must not be held here, and theirs not for long.
        for keys in keys.chunks(256) {
            let hits = cache.hits(keys);
            self.lock().note(keys, &hits);
        }
        let mut pinned = self.lock();
        if pinned.refused.is_empty() {
            return;
        }
        let free = self.free(&pinned, free);
        let aside_until = Instant::now().checked_add(ASIDE);
        for key in rebalance::exchange(pinned.weights(), pinned.waiting(), free) {
            if let Some(held) = pinned.take(&key) {
                let (demand, used) = (held.demand().unplaced(), held.used);
                let waiting = RefusedObject { demand, used, aside_until };
                pinned.refused.insert(key, waiting);
                self.counts.put_aside.fetch_add(1, Ordering::Relaxed);
                held.places.into_iter().for_each(|place| self.unpin(place));
            }
        }
    }

    /// The most useful of the pinned objects, then of the refused ones.
    pub(crate) fn most_useful(&self, most: usize) -> Vec<ObjectReport> {
        let pinned = self.lock();
        let one = |weight: Weight<Key>, is_pinned: bool| {
            let used = match is_pinned {
                true => pinned.objects.get(&weight.key).map(|held| held.used),
                false => pinned.refused.get(&weight.key).map(|waiting| waiting.used),
            };
            ObjectReport {
                path: String::from_utf8_lossy(&weight.key.path).into_owned(),
                pinned: is_pinned,
                bytes: weight.demand.bytes(),
                hits: used.unwrap_or_default().recent(),
                benefit: weight.benefit,
            }
        };
        let mut seen = Vec::new();
        for (mut weights, is_pinned) in [(pinned.weights(), true), (pinned.waiting(), false)] {
            weights.retain(|weight| weight.benefit > 0.0);
            rebalance::sort(&mut weights);
            weights.truncate(most);
            seen.extend(weights.into_iter().map(|weight| one(weight, is_pinned)));
        }
        seen
    }

    /// The part of the free room that this cache's objects may have.
    fn free(&self, pinned: &PinnedObjects, room: FreeRoom) -> Free {
        Free { room, share: self.share.without(&pinned.taken) }
    }

    /// Pins the object in place of the one that has its key.
    fn offer(&self, key: &Key, object: &Object<H>) {
        let mut pinned = self.lock();
        if pinned.closed || !self.source.is_for_kernel(key, object) {
            return;
        }
        let targets = self.source.targets(key, object);
        let before = pinned.take(key);
        if before.is_none() && (targets.is_empty() || pinned.is_aside(key, Instant::now())) {
            return;
        }
        let waited = pinned.refused.remove(key).map(|waiting| waiting.used);
        let used = before.as_ref().map(|held| held.used).or(waited).unwrap_or_default();
        let (mut places, mut until, mut refused) = (Vec::new(), None, None);
        let anew = self.source.is_wanted_anew(&self.fast_path);
        self.source.with_copy(&self.fast_path, (key, object), &mut |copy| {
            until = copy.until;
            refused = self.pin(&pinned, &targets, copy, object.id(), &mut places);
        });
        // A new pin has replaced the old one of the same target; the other old ones are unpinned.
        for place in before.into_iter().flat_map(|held| held.places) {
            match places.iter().any(|new| new.target == place.target) {
                true => self.register.retire(&place.versions),
                false => self.unpin(place),
            }
        }
        if let Some(demand) = refused {
            places.drain(..).for_each(|place| self.unpin(place));
            if pinned.refused.len() < REFUSED_MAX {
                pinned
                    .refused
                    .insert(key.clone(), RefusedObject { demand, used, aside_until: None });
            }
        }
        if !places.is_empty() {
            let entry = PinnedEntry { object: object.id(), until, places, used, anew };
            pinned.put(key.clone(), entry);
        }
    }

    /// Pins an object for the targets. The demand of all of them, if there is no room for one: the object waits as a whole then,
    /// and its `places` are to be unpinned.
    fn pin(
        &self,
        pinned: &PinnedObjects,
        targets: &[PinTarget],
        copy: &PinCopy<'_>,
        object: ObjectId,
        places: &mut Vec<PinnedTarget>,
    ) -> Option<Demand> {
        let useful = copy.variants.iter().any(|v| v.whole.is_some() || v.not_modified.is_some());
        let fitting = targets.iter().filter(|target| useful && target.path.len() <= PATH_MAX);
        let fitting: Vec<_> = fitting.collect();
        let too_long = targets.len() - fitting.len();
        self.counts.too_long.fetch_add(too_long as u64, Ordering::Relaxed);
        let demand = Demand::of(copy.variants.iter().chain(copy.old_kept));
        let all = demand.times(fitting.len());
        if !self.share.without(&pinned.taken).holds(&all) {
            self.count(&PinError::Full);
            return Some(all);
        }
        for target in fitting {
            match self.pin_target(target, copy, object, demand) {
                Ok(place) => places.push(place),
                Err(error) => {
                    self.count(&error);
                    if matches!(error, PinError::Full) {
                        return Some(all);
                    }
                }
            }
        }
        None
    }

    fn pin_target(
        &self,
        target: &PinTarget,
        copy: &PinCopy<'_>,
        object: ObjectId,
        demand: Demand,
    ) -> Result<PinnedTarget, PinError> {
        let rules = PinRules::default();
        let fields = rules.fields & !target.matter;
        let rules = PinRules { fields, codings: target.codings, ..rules };
        let variants = (copy.variants, copy.old_kept);
        let pinned = self.fast_path.objects.pin_all(target.site, &target.path, variants, &rules)?;
        let PinnedPlaces { versions, ready_slots, ready_pages } = pinned;
        let variants = copy.variants.iter().chain(copy.old_kept);
        for (version, variant) in versions.iter().zip(variants) {
            let head = variant.whole.map_or(0, |whole| whole.head.len());
            let path = Arc::clone(&target.path);
            let described = AnswerDescription { target: path, origin: self.origin, object, head };
            self.register.enter(*version, described);
        }
        let demand = Demand { ready_slots, ready_pages, ..demand };
        Ok(PinnedTarget { target: target.clone(), versions, demand })
    }

    fn count(&self, error: &PinError) {
        let count = match error {
            PinError::Full => &self.counts.full,
            PinError::TooLong(_) => &self.counts.too_long,
            PinError::Collision | PinError::Misplaced(_) | PinError::Kernel(_) => {
                &self.counts.failed
            }
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// An object that cannot be taken back could be answered for ever, so the kernel then stops answering.
    fn unpin(&self, place: PinnedTarget) {
        let PinTarget { site, path, codings, .. } = &place.target;
        if let Err(error) = self.fast_path.objects.unpin_for(*site, path, *codings) {
            self.counts.broken.store(true, Ordering::SeqCst);
            self.fast_path.clock.pause();
            tracing::error!(
                %error,
                "the fast path is off until the next start: an object cannot be taken back from \
                 the kernel"
            );
        }
        self.register.retire(&place.versions);
    }

    /// A poisoned lock is taken all the same: each change of the maps is one call, so a panic leaves no half
    /// of one.
    fn lock(&self) -> MutexGuard<'_, PinnedObjects> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<H> Residency<H> for KernelCache<H> {
    fn published(&self, key: &Key, object: &Object<H>) {
        self.offer(key, object);
    }

    /// Offers an object that is pinned by use: at its first use, and again when its time in the kernel is over.
    fn used(&self, key: &Key, object: &Object<H>) {
        let is_there = {
            let pinned = self.lock();
            let held = pinned.objects.get(key).filter(|held| held.object == object.id());
            held.is_some_and(|held| held.until.is_none_or(|until| until > Instant::now()))
        };
        if !is_there && self.source.is_offered_by_use() {
            self.offer(key, object);
        }
    }

    fn hold(&self) -> bool {
        self.source.hold().unwrap_or_else(|error| {
            self.counts.broken.store(true, Ordering::SeqCst);
            self.fast_path.clock.pause();
            tracing::error!(
                %error,
                "the fast path is off until the next start: objects cannot be taken back from the \
                 kernel"
            );
            false
        })
    }

    fn release(&self) {
        if let Err(error) = self.source.release() {
            tracing::warn!(%error, "the kernel does not answer for some hosts");
        }
    }

    fn dropped(&self, key: &Key) {
        let mut pinned = self.lock();
        pinned.refused.remove(key);
        for key in std::iter::once(key).chain(&self.source.depend_on(key)) {
            let places = pinned.take(key).map(|held| held.places);
            places.into_iter().flatten().for_each(|place| self.unpin(place));
        }
    }
}
