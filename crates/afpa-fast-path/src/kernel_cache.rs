//! The kernel's copies of cache objects: the cache reports what comes and goes, and the kernel follows.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use afpa_bpf::{
    Coding, ETAG_MAX, FastPath, NOT_MODIFIED_MAX, PATH_MAX, PinError, Response, Variant,
};
use afpa_cache::{Cache, Coverage, Key, Object, Payload, Residency};
use afpa_http::{HttpDate, ResponseHead, target};
use afpa_module_http::HttpHeader;

use crate::event_log::{AnswerDescription, VersionRegister};
use crate::rebalance::{self, Demand, Use, Weight};
use crate::scope::KernelScope;

/// The kernel's copies for one configuration. A reload makes another one, with new numbers for its sites.
pub(crate) struct KernelCache {
    fast_path: Arc<FastPath>,
    /// The number of the configuration.
    generation: u32,
    /// The kernel's numbers of its sites; 0: user mode answers for the site.
    sites: Vec<u32>,
    scope: KernelScope,
    register: Arc<VersionRegister>,
    counts: Arc<OfferCounts>,
    pinned: Mutex<PinnedObjects>,
}

/// How often the room is given anew to the objects that save the most.
pub(crate) const PERIOD: Duration = Duration::from_secs(10);

/// Most objects that are remembered while there is no room for them. Others get another chance when they are
/// loaded again.
const REFUSED_MAX: usize = 4096;

/// What became of the objects that were offered.
#[derive(Debug, Default)]
pub(crate) struct OfferCounts {
    /// No slot or page was free.
    pub(crate) full: AtomicU64,
    /// Path, head or content is too long for the kernel.
    pub(crate) too_long: AtomicU64,
    /// The kernel refused.
    pub(crate) failed: AtomicU64,
    /// It was taken back, because others save more time.
    pub(crate) put_aside: AtomicU64,
    /// An object could not be taken back: the kernel must not answer any more.
    pub(crate) broken: AtomicBool,
}

#[derive(Default)]
struct PinnedObjects {
    /// Another configuration took over: nothing more is pinned.
    closed: bool,
    objects: HashMap<Key, PinnedEntry>,
    /// There was no room for these. They are offered again when there is.
    refused: HashMap<Key, RefusedObject>,
}

/// One URL under which an object is pinned: the site, the path as requests spell it, and the versions that
/// events name.
struct PinnedTarget {
    site: u32,
    target: Arc<[u8]>,
    versions: Vec<u64>,
    demand: Demand,
}

/// An object in the kernel: every URL under which it is pinned, and how much it is used.
struct PinnedEntry {
    places: Vec<PinnedTarget>,
    used: Use,
}

/// An object that found no room.
struct RefusedObject {
    demand: Demand,
    used: Use,
}

/// What is known of an object, for people.
pub(crate) struct ObjectReport {
    pub(crate) path: String,
    pub(crate) pinned: bool,
    pub(crate) bytes: usize,
    /// About how many in a period.
    pub(crate) hits: f64,
    /// Microseconds saved in a period, for each kilobyte.
    pub(crate) benefit: f64,
}

impl KernelCache {
    pub(crate) fn new(
        fast_path: Arc<FastPath>,
        (generation, sites): (u32, Vec<u32>),
        scope: KernelScope,
        register: Arc<VersionRegister>,
        counts: Arc<OfferCounts>,
    ) -> Self {
        let pinned = Mutex::default();
        Self { fast_path, generation, sites, scope, register, counts, pinned }
    }

    /// The number of its configuration.
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// Takes all objects back. Nothing is pinned afterwards.
    pub(crate) fn close(&self) {
        let mut pinned = self.lock();
        pinned.closed = true;
        pinned.refused.clear();
        for (_, held) in pinned.objects.drain() {
            held.places.into_iter().for_each(|place| self.unpin(place));
        }
    }

    /// Whether objects wait for room.
    pub(crate) fn has_refused(&self) -> bool {
        !self.lock().refused.is_empty()
    }

    /// The refused objects that fit into the free room, the most useful first, at most `most`.
    pub(crate) fn worth_an_offer(&self, free: Demand, most: usize) -> Vec<Key> {
        rebalance::choose(self.lock().waiting(), free, most)
    }

    /// Notes how often objects were used since the last call, and takes back those whose room clearly saves
    /// more time with a refused object in it. To be called once in a [`PERIOD`].
    pub(crate) fn rebalance(&self, cache: &Cache<HttpHeader>, free: Demand) {
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
        for key in rebalance::exchange(pinned.weights(), pinned.waiting(), free) {
            if let Some(held) = pinned.objects.remove(&key) {
                let waiting = RefusedObject { demand: held.demand(), used: held.used };
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

    /// Every site that the kernel answers for and target there that lead to the key's object.
    fn targets(&self, key: &Key) -> Vec<(u32, Vec<u8>)> {
        let urls = self.scope.urls(key).into_iter();
        let targets = urls.filter_map(|(site, url)| {
            let site = *self.sites.get(site).filter(|site| **site != 0)?;
            let mut target = Vec::with_capacity(url.len());
            target::encode(&url, &mut target);
            Some((site, target))
        });
        targets.collect()
    }

    fn pin(
        &self,
        refused: &mut HashMap<Key, RefusedObject>,
        (site, target): (u32, Vec<u8>),
        key: &Key,
        object: &Object<HttpHeader>,
        used: Use,
    ) -> Option<PinnedTarget> {
        let header = object.header();
        let modified = HttpDate::new(header.last_modified);
        let closing = self.fast_path.may_close().then(|| ClosingHeads::of(object));
        let longest = self.fast_path.answer_max();
        let variants = variants(object, modified.as_bytes(), longest, closing.as_ref());
        let useful = variants.iter().any(|v| v.whole.is_some() || v.not_modified.is_some());
        if target.len() > PATH_MAX || !useful {
            self.counts.too_long.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let demand = Demand::of(&variants);
        match self.fast_path.pin(site, &target, &variants) {
            Ok(versions) => {
                let target: Arc<[u8]> = target.into();
                for (version, variant) in versions.iter().zip(&variants) {
                    let head = variant.whole.map_or(0, |whole| whole.head.len());
                    let described = AnswerDescription {
                        target: Arc::clone(&target),
                        generation: self.generation,
                        object: object.id(),
                        head,
                    };
                    self.register.enter(*version, described);
                }
                Some(PinnedTarget { site, target, versions, demand })
            }
            Err(error) => {
                self.count(&error);
                if matches!(error, PinError::Full) && refused.len() < REFUSED_MAX {
                    refused.insert(key.clone(), RefusedObject { demand, used });
                }
                None
            }
        }
    }

    fn count(&self, error: &PinError) {
        let count = match error {
            PinError::Full => &self.counts.full,
            PinError::TooLong(_) => &self.counts.too_long,
            PinError::Collision | PinError::Kernel(_) => &self.counts.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// An object that cannot be taken back could be answered for ever, so the kernel then stops answering.
    fn unpin(&self, place: PinnedTarget) {
        if let Err(error) = self.fast_path.unpin(place.site, &place.target) {
            self.counts.broken.store(true, Ordering::SeqCst);
            self.fast_path.pause();
            tracing::error!(%error, "the fast path is off: an object cannot be taken back");
        }
        self.register.retire(&place.versions);
    }

    /// A poisoned lock is taken all the same: each change of the maps is one call, so a panic leaves no half
    /// of one.
    fn lock(&self) -> MutexGuard<'_, PinnedObjects> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PinnedEntry {
    fn demand(&self) -> Demand {
        let mut demand = Demand::default();
        self.places.iter().for_each(|place| demand.give(&place.demand));
        demand.length = self.places.iter().map(|place| place.demand.length).max().unwrap_or(0);
        demand
    }
}

impl PinnedObjects {
    fn note(&mut self, keys: &[Key], hits: &[u64]) {
        for (key, hits) in keys.iter().zip(hits) {
            if let Some(held) = self.objects.get_mut(key) {
                held.used.note(*hits);
            } else if let Some(waiting) = self.refused.get_mut(key) {
                waiting.used.note(*hits);
            }
        }
    }

    fn weights(&self) -> Vec<Weight<Key>> {
        let weights = self.objects.iter();
        weights.map(|(key, held)| weight(key, held.demand(), &held.used)).collect()
    }

    fn waiting(&self) -> Vec<Weight<Key>> {
        let waiting = self.refused.iter();
        waiting.map(|(key, waiting)| weight(key, waiting.demand, &waiting.used)).collect()
    }
}

fn weight(key: &Key, demand: Demand, used: &Use) -> Weight<Key> {
    Weight { key: key.clone(), demand, benefit: rebalance::benefit(used, &demand) }
}

impl Residency<HttpHeader> for KernelCache {
    fn published(&self, key: &Key, object: &Object<HttpHeader>) {
        // Where more than host and path decides, there is no target: only user mode can tell.
        let targets = self.targets(key);
        if targets.is_empty() {
            return;
        }
        let mut pinned = self.lock();
        // A file that is not watched must be compared again and again, and the kernel cannot do that.
        if pinned.closed || object.coverage() != Coverage::Watched {
            return;
        }
        // Pinning replaces the older version; when it fails, it has still taken the older one back.
        let before = pinned.objects.remove(key);
        let waited = pinned.refused.remove(key).map(|waiting| waiting.used);
        let used = before.as_ref().map(|held| held.used).or(waited).unwrap_or_default();
        let pin = |target| self.pin(&mut pinned.refused, target, key, object, used);
        let places: Vec<PinnedTarget> = targets.into_iter().filter_map(pin).collect();
        if !places.is_empty() {
            pinned.objects.insert(key.clone(), PinnedEntry { places, used });
        }
        let before = before.map(|held| held.places).unwrap_or_default();
        before.iter().for_each(|place| self.register.retire(&place.versions));
    }

    fn dropped(&self, key: &Key) {
        let mut pinned = self.lock();
        pinned.refused.remove(key);
        let places = pinned.objects.remove(key).map(|held| held.places);
        places.into_iter().flatten().for_each(|place| self.unpin(place));
    }
}

/// The heads of an object's answers to requests that ask for the connection's end.
struct ClosingHeads(Vec<(afpa_http::Coding, Vec<u8>, Vec<u8>)>);

impl ClosingHeads {
    fn of(object: &Object<HttpHeader>) -> Self {
        let codings = afpa_http::Coding::ALL.into_iter();
        let made = codings.filter_map(|coding| object.header().variant(coding));
        let heads = made.map(|made| (made.coding, made.ok.closing(), made.not_modified.closing()));
        Self(heads.collect())
    }

    /// `200` and `304`.
    fn heads(&self, coding: afpa_http::Coding) -> Option<(&[u8], &[u8])> {
        let heads = self.0.iter().find(|(made, ..)| *made == coding);
        heads.map(|(_, ok, not_modified)| (&ok[..], &not_modified[..]))
    }
}

/// All codings, including those that are too long to be answered and those that are still to be made: the
/// kernel chooses among them as a worker does, and passes the request up when it chooses one of these. With heads that
/// close, the answers to requests that want that, too.
fn variants<'o>(
    object: &'o Object<HttpHeader>,
    last_modified: &'o [u8; HttpDate::LEN],
    longest: usize,
    closing: Option<&'o ClosingHeads>,
) -> Vec<Variant<'o>> {
    let header = object.header();
    let codings = afpa_http::Coding::ALL.into_iter();
    let is_due = |coding| header.due().contains(coding) && !header.available().contains(coding);
    let due = codings.clone().filter(|coding| is_due(*coding)).map(|coding| Variant {
        coding: coding_of(coding),
        closing: false,
        etag: b"",
        last_modified: None,
        freshness: None,
        whole: None,
        not_modified: None,
    });
    let made = codings.filter_map(|coding| header.variant(coding)).map(|variant| {
        let etag = variant.etag.as_bytes();
        let comparable = etag.len() <= ETAG_MAX;
        let body = match object.payloads().get(variant.payload) {
            Some(Payload::Pinned(bytes)) => Some(&bytes[..]),
            _ => None,
        };
        Variant {
            coding: coding_of(variant.coding),
            closing: false,
            etag: if comparable { etag } else { b"" },
            last_modified: Some(last_modified),
            freshness: None,
            whole: body
                .and_then(|body| response(&variant.ok, body, longest))
                .filter(|_| comparable),
            not_modified: response(&variant.not_modified, b"", NOT_MODIFIED_MAX)
                .filter(|_| comparable),
        }
    });
    let kept: Vec<_> = made.chain(due).collect();
    let Some(closing) = closing else { return kept };
    let closed: Vec<_> = kept.iter().map(|variant| closed(variant, closing, longest)).collect();
    kept.into_iter().chain(closed).collect()
}

/// The same variant for requests that ask for the connection's end.
fn closed<'o>(kept: &Variant<'o>, closing: &'o ClosingHeads, longest: usize) -> Variant<'o> {
    let coding =
        afpa_http::Coding::ALL.into_iter().find(|coding| coding_of(*coding) == kept.coding);
    let heads = coding.and_then(|coding| closing.heads(coding));
    let with = |answer: Option<Response<'o>>, head: Option<&'o [u8]>, limit: usize| {
        let answer = Response { head: head?, ..answer? };
        (answer.head.len() + answer.body.len() <= limit).then_some(answer)
    };
    Variant {
        closing: true,
        whole: with(kept.whole, heads.map(|(ok, _)| ok), longest),
        not_modified: with(kept.not_modified, heads.map(|(_, head)| head), NOT_MODIFIED_MAX),
        ..*kept
    }
}

fn response<'o>(head: &'o ResponseHead, body: &'o [u8], limit: usize) -> Option<Response<'o>> {
    let fits = head.bytes().len() + body.len() <= limit;
    fits.then(|| Response { head: head.bytes(), date_offset: head.date_offset(), body })
}

fn coding_of(coding: afpa_http::Coding) -> Coding {
    match coding {
        afpa_http::Coding::Identity => Coding::Identity,
        afpa_http::Coding::Gzip => Coding::Gzip,
        afpa_http::Coding::Brotli => Coding::Brotli,
        afpa_http::Coding::Zstd => Coding::Zstd,
    }
}
