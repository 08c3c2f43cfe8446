//! *Derive cached response* for distributed requests: looks the key up, and judges what is there.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afpa_cache::{Lookup, Moment, Object, Seconds, View};
use afpa_framework::{Client, Now};
use afpa_http::caching::cache_status::Forward;
use afpa_http::caching::reuse::{self, Reuse, Stored};
use afpa_http::caching::store::Requested;
use afpa_http::caching::{RequestControl, vary};
use afpa_http::{BodyLength, Known, Method, Request};
use afpa_proxy::exchange;
use afpa_router::RequestSetId;

use super::key::{self, KeyRoom, Place};
use super::policy::{CachePolicy, lists};
use super::purge;
use super::responses::Responses;
use super::stored::{Kind, StoredResponse};
use crate::global::Global;
use crate::remote;

/// The shared cache of a site.
#[derive(Clone, Debug)]
pub struct SiteCache {
    /// Of all sites.
    pub responses: Arc<Responses>,
    /// What the configuration says.
    pub policy: Arc<CachePolicy>,
    /// The number of the site and its rules ([`Responses::scope`]).
    pub scope: u32,
}

/// What a request finds.
pub(crate) enum Found<'v> {
    /// It is not the cache's affair.
    Bypass,
    /// This answers it.
    Hit(&'v Arc<Object<StoredResponse>>, Stored),
    /// Only a stored response is wanted, and there is none.
    NotThere,
    /// A server has to be asked.
    Ask(Box<Plan>),
    /// It was a purge, of so many answers.
    Purged(usize),
    /// It is a purge, but not from this client.
    MayNotPurge,
}

/// How a server is asked.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) cache: SiteCache,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    /// For an answer that may be kept.
    Fetch(Fetching),
    /// With a method that may change what is stored.
    Invalidate { host: Vec<u8>, label: Vec<u8> },
}

#[derive(Debug)]
pub(super) struct Fetching {
    pub(super) primary: Vec<u8>,
    pub(super) labels: Vec<Vec<u8>>,
    pub(super) since: Moment,
    pub(super) requested: Requested,
    pub(super) why: Forward,
    /// What is there, but must not be used as it is.
    pub(super) stored: Option<Arc<Object<StoredResponse>>>,
    /// It answers the request, and is validated as well.
    pub(super) at_once: bool,
    /// Whether requests wait for one another.
    pub(super) collapses: bool,
    /// Whether the answer can be sent as it arrives: the request has no conditions.
    pub(super) streams: bool,
}

/// A distributed request as the cache sees it.
#[derive(Clone, Copy)]
pub(crate) struct Distributed<'a, 's, 'b> {
    pub(crate) cache: &'a SiteCache,
    pub(crate) exchange: &'a exchange::Settings,
    /// Whether the client may be a router in front that is believed.
    pub(crate) believed: bool,
    pub(crate) request: &'a Request<'s, 'b>,
    /// The path for the server.
    pub(crate) path: &'a [u8],
    pub(crate) client: Client,
    /// Whether the request came over TLS.
    pub(crate) secure: bool,
    pub(crate) now: Now,
}

impl Global {
    /// A distributed request of a request set as the cache sees it, if it has one.
    pub(crate) fn shared_request<'a, 's, 'b>(
        &'a self,
        request: &'a Request<'s, 'b>,
        (to, set): (&remote::Distributed<'a>, RequestSetId),
        (client, secure, now): (Client, bool, Now),
    ) -> Option<Distributed<'a, 's, 'b>> {
        let cache = self.caches.get(set.0 as usize)?.as_ref()?;
        let site = self.sites.get(to.site.0 as usize)?;
        let exchange = &*self.groups.get(to.group.0 as usize)?.settings;
        let believed = !site.forwarded_from.is_empty();
        let path = to.path;
        Some(Distributed { cache, exchange, believed, request, path, client, secure, now })
    }
}

/// Looks up the answer to a request.
pub(crate) fn look_up<'v>(
    view: &'v mut View<StoredResponse>,
    room: &mut KeyRoom,
    asked: Distributed<'_, '_, '_>,
) -> Found<'v> {
    let Distributed { cache, request, now, .. } = asked;
    let SiteCache { responses, policy, .. } = cache;
    if !request.method.is_get_or_head() {
        return purge::by_method(&asked).unwrap_or_else(|| unsafe_method(cache, request));
    }
    let Some(survey) = Survey::of(policy, request) else {
        responses.counts.bypassed.fetch_add(1, Ordering::Relaxed);
        return Found::Bypass;
    };
    let since = responses.cache().moment();
    let place = Place { scope: cache.scope, path: asked.path, secure: asked.secure };
    key::put_primary(policy, asked.exchange, asked.believed, request, place, &mut room.primary);
    let seconds = Seconds(now.steady_ms() / 1000);
    let mut why = Forward::UriMiss;
    let mut varies = false;
    if let Lookup::Hit(object) = view.get(KEYS, &room.primary, seconds)
        && let Kind::Index(index) = &object.header().0
    {
        room.variant.clear();
        room.variant.extend_from_slice(&room.primary);
        vary::put_key(&index.names, request, &mut room.variant);
        (varies, why) = (true, Forward::VaryMiss);
    }
    let key = if varies { &room.variant } else { &room.primary };
    let (stored, at_once) = match view.get(KEYS, key, seconds) {
        Lookup::Hit(object) | Lookup::Recheck(object) => match object.header().response() {
            None => (None, false),
            Some(response) => {
                let stored = response.at(now);
                match reuse::judge(&stored, &survey.control(policy)) {
                    Reuse::Fresh => return Found::Hit(object, stored),
                    Reuse::WhileRevalidating => {
                        let is_first = response.claim_validation(now, VALIDATION);
                        if !is_first || request.method != Method::Get {
                            responses.counts.stale.fetch_add(1, Ordering::Relaxed);
                            return Found::Hit(object, stored);
                        }
                        why = Forward::Stale;
                        (Some(Arc::clone(object)), true)
                    }
                    Reuse::Validate(reason) => {
                        why = reason.into();
                        (Some(Arc::clone(object)), false)
                    }
                }
            }
        },
        Lookup::Miss => (None, false),
    };
    if survey.control(policy).only_if_cached {
        return Found::NotThere;
    }
    let is_plain = !request.has(Known::Range);
    if request.method != Method::Get || (!is_plain && stored.is_none()) {
        return Found::Bypass;
    }
    responses.counts.misses.fetch_add(u64::from(!at_once), Ordering::Relaxed);
    let requested = Requested { control: survey.control, authorised: survey.authorised };
    let conditions = [Known::IfNoneMatch, Known::IfModifiedSince];
    let streams = is_plain && !conditions.iter().any(|field| request.has(*field));
    let fetching = Fetching {
        primary: room.primary.clone(),
        labels: vec![key::public_label(request)],
        since,
        requested,
        why,
        // The condition of a client is not taken from it where nothing is stored, so its answer is its own.
        collapses: !survey.authorised && !survey.control.no_store && (streams || stored.is_some()),
        stored,
        at_once,
        streams,
    };
    let what = What::Fetch(fetching);
    Found::Ask(Box::new(Plan { cache: cache.clone(), what }))
}

/// All keys are of one site of the cache: the number of the site stands within the key.
const KEYS: u32 = 0;

/// Seconds after which another request may validate a stale response that is being validated.
const VALIDATION: u64 = 30;

/// What of the fields of a request decides about the cache.
struct Survey {
    control: RequestControl,
    authorised: bool,
}

impl Survey {
    /// `None`: the request does not use the cache.
    fn of(policy: &CachePolicy, request: &Request<'_, '_>) -> Option<Self> {
        if !key::is_simple(request)
            || request.body != BodyLength::None
            || request.has(Known::Upgrade)
            || request.expect_continue
        {
            return None;
        }
        let (mut authorised, mut has_control, mut has_cookie) = (false, false, false);
        for (name, _) in request.fields() {
            match name.len() {
                6 if name.eq_ignore_ascii_case("cookie") => has_cookie = true,
                6 if name.eq_ignore_ascii_case("pragma") => has_control = true,
                13 if name.eq_ignore_ascii_case("cache-control") => has_control = true,
                13 if name.eq_ignore_ascii_case("authorization") => authorised = true,
                _ => {}
            }
            if !policy.bypass_fields.is_empty()
                && lists(&policy.bypass_fields, name.as_bytes(), <[u8]>::eq_ignore_ascii_case)
            {
                return None;
            }
        }
        if has_cookie && !policy.bypass_cookies.is_empty() {
            let listed = |name| lists(&policy.bypass_cookies, name, <[u8]>::eq);
            if key::cookies(request).any(|(name, _)| listed(name)) {
                return None;
            }
        }
        let values = |wanted: &'static str| {
            let lines = request.fields().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted));
            lines.map(|(_, value)| value)
        };
        let control = match has_control {
            true => RequestControl::of(values("cache-control"), values("pragma")),
            false => RequestControl::default(),
        };
        Some(Self { control, authorised })
    }

    /// The directives that are obeyed.
    fn control(&self, policy: &CachePolicy) -> RequestControl {
        if policy.obey_clients { self.control } else { RequestControl::default() }
    }
}

fn unsafe_method(cache: &SiteCache, request: &Request<'_, '_>) -> Found<'static> {
    let safe = matches!(request.method, Method::Options | Method::Trace | Method::Connect);
    if safe || request.target.path().is_none() {
        return Found::Bypass;
    }
    let (host, label) = (request.host.as_bytes().to_vec(), key::public_label(request));
    let what = What::Invalidate { host, label };
    Found::Ask(Box::new(Plan { cache: cache.clone(), what }))
}
