//! The kernel as a second home of cache objects.

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

use super::log::{Described, Register};
use super::scope::Scope;
use super::weigh::{self, Demand, Use, Weight};

/// One site's objects in the kernel. At a reload the next site gets a number and a resident of its own.
pub(crate) struct Resident {
    fast_path: Arc<FastPath>,
    site: u32,
    scope: Scope,
    register: Arc<Register>,
    counts: Arc<Counts>,
    pinned: Mutex<Pinned>,
}

/// How often objects are weighed against each other.
pub(super) const PERIOD: Duration = Duration::from_secs(10);

/// Objects that are remembered while there is no room for them; others are offered when they are loaded again.
const REFUSED_MAX: usize = 4096;

/// What became of the objects that were offered.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// There was no free place.
    pub(super) full: AtomicU64,
    /// Path, heads or content are too long for the kernel.
    pub(super) too_long: AtomicU64,
    /// The kernel refused.
    pub(super) failed: AtomicU64,
    /// Others took its place, because they are worth more.
    pub(super) put_aside: AtomicU64,
    /// An object could not be taken back: nothing may be answered any more.
    pub(super) broken: AtomicBool,
}

#[derive(Default)]
struct Pinned {
    /// No more objects: another site took over.
    closed: bool,
    /// Spelling in requests, and the versions that answers are reported by.
    objects: HashMap<Key, Place>,
    /// There was no room for these: to be offered again when there is.
    refused: HashMap<Key, Waiting>,
}

struct Place {
    target: Arc<[u8]>,
    versions: Vec<u64>,
    demand: Demand,
    used: Use,
}

struct Waiting {
    demand: Demand,
    used: Use,
}

/// What is known of an object, for people.
pub(super) struct Seen {
    pub(super) path: String,
    pub(super) pinned: bool,
    pub(super) bytes: usize,
    /// In a period, about.
    pub(super) hits: f64,
    /// Microseconds saved in a period, for each kilobyte.
    pub(super) benefit: f64,
}

impl Resident {
    pub(super) fn new(
        fast_path: Arc<FastPath>,
        site: u32,
        scope: Scope,
        register: Arc<Register>,
        counts: Arc<Counts>,
    ) -> Self {
        Self { fast_path, site, scope, register, counts, pinned: Mutex::default() }
    }

    /// The site's number in the kernel.
    pub(super) fn site(&self) -> u32 {
        self.site
    }

    /// Takes everything back, and nothing more.
    pub(super) fn close(&self) {
        let mut pinned = self.lock();
        pinned.closed = true;
        pinned.refused.clear();
        for (_, place) in pinned.objects.drain() {
            self.unpin(place);
        }
    }

    /// Whether objects wait for room.
    pub(super) fn has_refused(&self) -> bool {
        !self.lock().refused.is_empty()
    }

    /// Those of the refused that fit into what is free, at most so many.
    pub(super) fn worth_an_offer(&self, free: Demand, most: usize) -> Vec<Key> {
        weigh::choose(self.lock().waiting(), free, most)
    }

    /// Counts what objects were used for since the last time, and puts aside those that others are clearly
    /// more worth their room than. Call it once in a [`PERIOD`].
    pub(super) fn weigh(&self, cache: &Cache<HttpHeader>, free: Demand) {
        let keys: Vec<Key> = {
            let pinned = self.lock();
            pinned.objects.keys().chain(pinned.refused.keys()).cloned().collect()
        };
        // The cache calls us under its own lock: not to be taken within ours, and not for long.
        for keys in keys.chunks(256) {
            let hits = cache.hits(keys);
            self.lock().note(keys, &hits);
        }
        let mut pinned = self.lock();
        if pinned.refused.is_empty() {
            return;
        }
        for key in weigh::exchange(pinned.weights(), pinned.waiting(), free) {
            if let Some(place) = pinned.objects.remove(&key) {
                let waiting = Waiting { demand: place.demand, used: place.used };
                pinned.refused.insert(key, waiting);
                self.counts.put_aside.fetch_add(1, Ordering::Relaxed);
                self.unpin(place);
            }
        }
    }

    /// The most useful objects of those that are pinned, and of the others.
    pub(super) fn most_useful(&self, most: usize) -> Vec<Seen> {
        let pinned = self.lock();
        let one = |weight: Weight<Key>, is_pinned: bool| {
            let used = match is_pinned {
                true => pinned.objects.get(&weight.key).map(|place| place.used),
                false => pinned.refused.get(&weight.key).map(|waiting| waiting.used),
            };
            Seen {
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
            weigh::sort(&mut weights);
            weights.truncate(most);
            seen.extend(weights.into_iter().map(|weight| one(weight, is_pinned)));
        }
        seen
    }

    fn pin(
        &self,
        refused: &mut HashMap<Key, Waiting>,
        key: &Key,
        object: &Object<HttpHeader>,
        used: Use,
    ) -> Option<Place> {
        let mut target = Vec::with_capacity(key.path.len());
        target::encode(&key.path, &mut target);
        let header = object.header();
        let modified = HttpDate::new(header.last_modified);
        let variants = variants(object, modified.as_bytes(), self.fast_path.answer_max());
        let useful = variants.iter().any(|v| v.whole.is_some() || v.not_modified.is_some());
        if target.len() > PATH_MAX || !useful {
            self.counts.too_long.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let demand = Demand::of(&variants);
        match self.fast_path.pin(self.site, &target, &variants) {
            Ok(versions) => {
                let target: Arc<[u8]> = target.into();
                for (version, variant) in versions.iter().zip(&variants) {
                    let head = variant.whole.map_or(0, |whole| whole.head.len());
                    let described = Described {
                        target: Arc::clone(&target),
                        site: self.site,
                        object: object.id(),
                        head,
                    };
                    self.register.enter(*version, described);
                }
                Some(Place { target, versions, demand, used })
            }
            Err(error) => {
                self.count(&error);
                if matches!(error, PinError::Full) && refused.len() < REFUSED_MAX {
                    refused.insert(key.clone(), Waiting { demand, used });
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

    /// An object that cannot be taken back could be answered for ever: nothing is answered then.
    fn unpin(&self, place: Place) {
        if let Err(error) = self.fast_path.unpin(self.site, &place.target) {
            self.counts.broken.store(true, Ordering::SeqCst);
            self.fast_path.pause();
            tracing::error!(%error, "the fast path is off: an object cannot be taken back");
        }
        self.register.retire(&place.versions);
    }

    /// A panic under this lock would be a bug that could leave stale answers, but every change of the
    /// map is one call.
    fn lock(&self) -> MutexGuard<'_, Pinned> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pinned {
    fn note(&mut self, keys: &[Key], hits: &[u64]) {
        for (key, hits) in keys.iter().zip(hits) {
            if let Some(place) = self.objects.get_mut(key) {
                place.used.note(*hits);
            } else if let Some(waiting) = self.refused.get_mut(key) {
                waiting.used.note(*hits);
            }
        }
    }

    fn weights(&self) -> Vec<Weight<Key>> {
        let weights = self.objects.iter();
        weights.map(|(key, place)| weight(key, place.demand, &place.used)).collect()
    }

    fn waiting(&self) -> Vec<Weight<Key>> {
        let waiting = self.refused.iter();
        waiting.map(|(key, waiting)| weight(key, waiting.demand, &waiting.used)).collect()
    }
}

fn weight(key: &Key, demand: Demand, used: &Use) -> Weight<Key> {
    Weight { key: key.clone(), demand, benefit: weigh::benefit(used, &demand) }
}

impl Residency<HttpHeader> for Resident {
    fn published(&self, key: &Key, object: &Object<HttpHeader>) {
        // What more than host and path decides, only user mode can tell.
        if !self.scope.allows(key) {
            return;
        }
        let mut pinned = self.lock();
        // What nobody watches must be looked at again and again, and the kernel cannot do that.
        if pinned.closed || object.coverage() != Coverage::Watched {
            return;
        }
        // Pinning replaces; if it fails, it has at least taken back what was there.
        let before = pinned.objects.remove(key);
        let waited = pinned.refused.remove(key).map(|waiting| waiting.used);
        let used = before.as_ref().map(|place| place.used).or(waited).unwrap_or_default();
        if let Some(place) = self.pin(&mut pinned.refused, key, object, used) {
            pinned.objects.insert(key.clone(), place);
        }
        if let Some(before) = before {
            self.register.retire(&before.versions);
        }
    }

    fn dropped(&self, key: &Key) {
        let mut pinned = self.lock();
        pinned.refused.remove(key);
        if let Some(place) = pinned.objects.remove(key) {
            self.unpin(place);
        }
    }
}

/// All codings, also those that are too long to be answered: the kernel chooses among them as a
/// worker does, and leaves a request to it when the choice falls on one of these.
fn variants<'o>(
    object: &'o Object<HttpHeader>,
    last_modified: &'o [u8; HttpDate::LEN],
    longest: usize,
) -> Vec<Variant<'o>> {
    let codings = afpa_http::Coding::ALL.into_iter();
    codings
        .filter_map(|coding| object.header().variant(coding))
        .map(|variant| {
            let etag = variant.etag.as_bytes();
            let comparable = etag.len() <= ETAG_MAX;
            let body = match object.payloads().get(variant.payload) {
                Some(Payload::Pinned(bytes)) => Some(&bytes[..]),
                _ => None,
            };
            Variant {
                coding: coding_of(variant.coding),
                etag: if comparable { etag } else { b"" },
                last_modified: Some(last_modified),
                whole: body
                    .and_then(|body| response(&variant.ok, body, longest))
                    .filter(|_| comparable),
                not_modified: response(&variant.not_modified, b"", NOT_MODIFIED_MAX)
                    .filter(|_| comparable),
            }
        })
        .collect()
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
