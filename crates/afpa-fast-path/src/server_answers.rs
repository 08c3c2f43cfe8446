//! Answers of servers as the kernel pins them: those that were used while they were fresh, for exactly the Host value
//! that they are for, until their age or `ttl` has another number of digits or they are stale.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use afpa_bpf::{
    AGE_DIGITS, AcceptedCodings, Coding, ETAG_MAX, FIELD_HOP, FastPath, Freshness,
    NOT_MODIFIED_MAX, Response, TTL_DIGITS, Ttl, Variant,
};
use afpa_cache::{Key, Object};
use afpa_framework::{Now, clock};
use afpa_shared_cache::{KernelCopy, KernelPlace, KernelTtl, StoredResponse};

use crate::answer_scope::{AnswerScope, AnswerTarget};
use crate::kernel_cache::{PinCopy, PinTarget, Pinnable};
use crate::kernel_hosts::KernelHosts;

/// The answers that one configuration lets the kernel give.
pub(crate) struct ServerAnswers {
    fast_path: Arc<FastPath>,
    /// The kernel's numbers of the sites; 0: user mode answers for the site.
    sites: Vec<u32>,
    scope: AnswerScope,
    hosts: Arc<Mutex<KernelHosts>>,
    /// Nanoseconds of the kernel's clock at the beginning of steady time.
    began_ns: u64,
    /// URLs whose answers vary by Accept-Encoding alone, and which of these are pinned.
    varying: Mutex<HashMap<Key, Vec<Key>>>,
}

/// Most URLs with answers that vary which are known; further ones are user mode's.
const MOST_VARYING: usize = 65_536;

const SECOND_NS: i64 = 1_000_000_000;

impl ServerAnswers {
    pub(crate) fn new(
        fast_path: Arc<FastPath>,
        sites: Vec<u32>,
        scope: AnswerScope,
        hosts: Arc<Mutex<KernelHosts>>,
    ) -> Self {
        let began_ns = u64::try_from(clock::began().as_nanos()).unwrap_or(0);
        Self { fast_path, sites, scope, hosts, began_ns, varying: Mutex::default() }
    }

    fn target(&self, place: &KernelPlace<'_>, found: AnswerTarget) -> Option<PinTarget> {
        let site = *self.sites.get(found.site).filter(|site| **site != 0)?;
        let codings = accepted(place)?;
        let number = self.hosts().number(&self.fast_path.listeners, site, &place.host)?;
        let path = found.target.into();
        // A request that offers another protocol does not use the cache.
        Some(PinTarget { site: number, path, codings, matter: found.matter | FIELD_HOP })
    }

    /// Notes an answer of a URL whose answers vary. False: it must not be pinned, since user mode may give another one.
    fn note_varying(&self, key: &Key, response: &StoredResponse) -> bool {
        let Some(primary) = response.primary(key) else { return false };
        let mut varying = self.varying();
        let Some(known) = varying.get_mut(&primary) else { return false };
        if !known.contains(key) {
            known.push(key.clone());
        }
        true
    }

    fn hosts(&self) -> MutexGuard<'_, KernelHosts> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn varying(&self) -> MutexGuard<'_, HashMap<Key, Vec<Key>>> {
        self.varying.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None`: its age or `ttl` has too many digits.
    fn freshness(&self, copy: &KernelCopy<'_>) -> Option<Freshness> {
        let digits = copy.age_digits;
        let fresh_for = u32::try_from(copy.until_age).ok()?;
        let born = self.began_ns.wrapping_add_signed(copy.born.checked_mul(SECOND_NS)?);
        let ttl = match copy.ttl {
            None => None,
            Some(ttl) if ttl.digits as usize > TTL_DIGITS => return None,
            Some(KernelTtl { lifetime, digits }) => {
                Some(Ttl { lifetime: u32::try_from(lifetime).ok()?, digits })
            }
        };
        // No check of unsafe requests (`asked`): the module reports every event that outdates the answer.
        let freshness = Freshness { born, fresh_for, digits, ttl, asked: 0 };
        (digits as usize <= AGE_DIGITS).then_some(freshness)
    }
}

impl Pinnable<StoredResponse> for ServerAnswers {
    fn is_offered_by_use(&self) -> bool {
        true
    }

    fn depend_on(&self, key: &Key) -> Vec<Key> {
        self.varying().remove(key).unwrap_or_default()
    }

    fn hold(&self) -> anyhow::Result<bool> {
        self.hosts().hold(&self.fast_path.listeners).map(|()| true)
    }

    fn release(&self) -> anyhow::Result<()> {
        self.hosts().release(&self.fast_path.listeners)
    }

    /// Whether the object is an answer. The object under the key of a URL whose answers vary is none: it only shows that
    /// these answers may be pinned, which is noted.
    fn is_for_kernel(&self, key: &Key, object: &Object<StoredResponse>) -> bool {
        match object.header().varies() {
            None => true,
            Some(by_codings) => {
                let mut varying = self.varying();
                if by_codings && varying.len() < MOST_VARYING {
                    varying.entry(key.clone()).or_default();
                }
                false
            }
        }
    }

    /// A key that depends on more than a URL and codings has no target.
    fn targets(&self, key: &Key, object: &Object<StoredResponse>) -> Vec<PinTarget> {
        let response = object.header();
        let Some(place) = response.kernel_place(key) else { return Vec::new() };
        // An answer that the programs cannot give is not noted: clients choose how many values there are.
        let is_told = accepted(&place).is_some_and(|accepted| accepted.is_some());
        if place.codings.is_some() && (!is_told || !self.note_varying(key, response)) {
            return Vec::new();
        }
        let found = self.scope.targets(&place).into_iter();
        found.filter_map(|found| self.target(&place, found)).collect()
    }

    fn with_copy(
        &self,
        fast_path: &FastPath,
        (key, object): (&Key, &Object<StoredResponse>),
        pin: &mut dyn FnMut(&PinCopy<'_>),
    ) {
        let steady = clock::steady();
        let Some(place) = object.header().kernel_place(key) else { return };
        let tells = self.scope.tells(place.scope);
        let Some(copy) = StoredResponse::kernel_copy(object, tells, at(steady)) else { return };
        let comparable = copy.etag.len() <= ETAG_MAX;
        let Some(freshness) = self.freshness(&copy).filter(|_| comparable) else { return };
        let longest = fast_path.objects.longest_answer();
        let kept = variant(&copy, freshness, false, longest);
        let closing =
            fast_path.socketless.may_close().then(|| variant(&copy, freshness, true, longest));
        let variants: Vec<Variant<'_>> = std::iter::once(kept).chain(closing).collect();
        pin(&PinCopy { variants: &variants, old_kept: &[], until: Some(end(&copy)) });
    }
}

/// The codings that a request has to accept for an answer, if it varies by them. `None`: the programs cannot tell.
fn accepted(place: &KernelPlace<'_>) -> Option<Option<AcceptedCodings>> {
    match place.codings {
        None => Some(None),
        Some(None) => Some(Some(AcceptedCodings::NONE)),
        Some(Some(value)) => AcceptedCodings::of(value.split(|byte| *byte == b',')).map(Some),
    }
}

/// A moment of the steady clock as modules are given it. Nothing here asks for the clock on the wall.
fn at(steady: Duration) -> Now {
    Now { unix_us: 0, steady_us: u64::try_from(steady.as_micros()).unwrap_or(u64::MAX) }
}

/// When the kernel stops answering with a copy by itself.
fn end(copy: &KernelCopy<'_>) -> Instant {
    let second = copy.born.saturating_add_unsigned(copy.until_age);
    let after = Duration::from_secs(u64::try_from(second).unwrap_or(0));
    let now = Instant::now();
    now.checked_add(after.saturating_sub(clock::steady())).unwrap_or(now)
}

fn variant<'o>(
    copy: &'o KernelCopy<'_>,
    freshness: Freshness,
    closing: bool,
    longest: usize,
) -> Variant<'o> {
    let answer = |head: &'o [u8], date_offset, body: &'o [u8], limit: usize| {
        let fits = head.len() + body.len() <= limit;
        fits.then_some(Response { head, date_offset, body })
    };
    let (head, not_modified) = match closing {
        false => (&copy.head, &copy.not_modified),
        true => (&copy.closing, &copy.closing_not_modified),
    };
    Variant {
        coding: Coding::Identity,
        closing,
        etag: copy.etag,
        last_modified: copy.last_modified,
        freshness: Some(freshness),
        whole: answer(head, copy.changing_at, copy.content, longest),
        not_modified: answer(not_modified, copy.not_modified_changing_at, b"", NOT_MODIFIED_MAX),
    }
}
