//! *Derive cached response* for distributed requests: looks the key up, and judges the object that it finds.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afpa_cache::{Lookup, Millis, Object, View};
use afpa_framework::{Client, Now};
use afpa_http::caching::cache_status::Forward;
use afpa_http::caching::reuse::{self, Reuse, Stored};
use afpa_http::caching::{RequestControl, vary};
use afpa_http::syntax::{is_alike, list};
use afpa_http::{BodyLength, Known, Method, Request};
use afpa_proxy::exchange;
use afpa_proxy::request::Origin;

use crate::key::cookies::possible_names;
use crate::key::{self, KeyRoom, Place};
use crate::plan::{Asks, Plan, ask, unsafe_method};
use crate::policy::{CachePolicy, lists};
use crate::purge;
use crate::store::responses::Responses;
use crate::store::stored::StoredResponse;

/// The shared cache of a site.
#[derive(Clone, Debug)]
pub struct SiteCache {
    /// Of all sites.
    pub responses: Arc<Responses>,
    /// The configuration.
    pub policy: Arc<CachePolicy>,
    /// The number of the site and its rules ([`Responses::scope`]).
    pub scope: u32,
}

/// The result of the look-up for a request.
pub enum Found<'v> {
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
    /// It is a purge, and may be a replay.
    TooEarly,
}

/// A distributed request as the cache sees it.
#[derive(Clone, Copy)]
pub struct Distributed<'a, 's, 'b> {
    /// The shared cache of its site.
    pub cache: &'a SiteCache,
    /// Settings of the exchange with the server.
    pub exchange: &'a exchange::Settings,
    /// The client, as far as the server learns of it.
    pub origin: Origin<'a>,
    /// The request.
    pub request: &'a Request<'s, 'b>,
    /// The path of the URL, in the spelling that servers get.
    pub url: &'a [u8],
    /// The path for the server, likewise.
    pub path: &'a [u8],
    /// The client of the connection.
    pub client: Client,
    /// Whether it came in early data of this connection.
    pub is_early: bool,
    /// Whether the server gets the subject of the client's certificate. Its answer is for that client then, as with
    /// Authorization, and there is no field that its Vary could name for it.
    pub told: bool,
    /// Now.
    pub now: Now,
}

impl Distributed<'_, '_, '_> {
    fn steady(&self) -> Millis {
        Millis(self.now.steady_ms())
    }
}

/// Looks up the answer to a request.
pub fn look_up<'v>(
    view: &'v mut View<StoredResponse>,
    room: &mut KeyRoom,
    asked: Distributed<'_, '_, '_>,
) -> Found<'v> {
    let Distributed { cache, request, .. } = asked;
    let SiteCache { responses, policy, scope } = cache;
    if !request.method.is_get_or_head() {
        return purge::by_method(&asked).unwrap_or_else(|| unsafe_method(&asked));
    }
    let Some(survey) = Survey::of(policy, request).filter(|_| !asked.told) else {
        return bypass(responses);
    };
    // The moment is taken before the look-up, so that a purge from now on is noticed.
    let since = responses.cache().moment();
    let Distributed { url, path, origin, .. } = asked;
    let place = Place { scope: *scope, url, path, origin };
    key::put_primary(policy, asked.exchange, request, place, &mut room.primary);
    if room.primary.len() > key::LONGEST {
        return bypass(responses);
    }
    let (looked, nothing) = match put_variant(view, room, &asked) {
        Primary::Nothing => (Lookup::Miss, Forward::UriMiss),
        // It has been counted as used.
        Primary::Response => (view.peek(KEYS, &room.primary, asked.steady()), Forward::UriMiss),
        Primary::Index => (view.get(KEYS, &room.variant, asked.steady()), Forward::VaryMiss),
    };
    let there = match looked {
        Lookup::Hit(object) | Lookup::Recheck(object) => judge(object, &survey, &asked),
        Lookup::Miss => There::Nothing,
    };
    let (stored, base, why, at_once) = match there {
        There::Answer(object, stored) => return Found::Hit(object, stored),
        There::Nothing => (None, None, nothing, false),
        There::Partial(object) => (None, Some(object), Forward::Partial, false),
        There::Stale(object, why, at_once) => (Some(object), None, why, at_once),
    };
    if survey.control(policy).only_if_cached {
        return Found::NotThere;
    }
    let primary = room.primary.as_slice().into();
    ask(&asked, &survey, Asks { primary, since, stored, base, why, at_once })
}

fn bypass(responses: &Responses) -> Found<'static> {
    responses.counts.bypassed.fetch_add(1, Ordering::Relaxed);
    Found::Bypass
}

/// The kind of object under a primary key.
enum Primary {
    Nothing,
    /// The response.
    Response,
    /// The responses of the URL vary.
    Index,
}

/// Looks the primary key up, and writes the secondary key if responses vary. The uses of both objects are counted: an
/// index that seemed unused would be ejected before its responses.
fn put_variant(
    view: &mut View<StoredResponse>,
    room: &mut KeyRoom,
    asked: &Distributed<'_, '_, '_>,
) -> Primary {
    let Lookup::Hit(object) = view.get(KEYS, &room.primary, asked.steady()) else {
        return Primary::Nothing;
    };
    let Some(index) = object.header().index() else { return Primary::Response };
    room.variant.clear();
    room.variant.extend_from_slice(&room.primary);
    vary::put_key(&index.names, asked.request, &mut room.variant);
    Primary::Index
}

/// The result of the look-up of one key.
enum There<'v> {
    Nothing,
    /// It answers the request.
    Answer(&'v Arc<Object<StoredResponse>>, Stored),
    /// A server has to be asked about it. Whether it answers the request meanwhile.
    Stale(Arc<Object<StoredResponse>>, Forward, bool),
    /// Parts of it are stored, but not those that the request asks for, or they are not fresh.
    Partial(Arc<Object<StoredResponse>>),
}

fn judge<'v>(
    object: &'v Arc<Object<StoredResponse>>,
    survey: &Survey,
    asked: &Distributed<'_, '_, '_>,
) -> There<'v> {
    let SiteCache { responses, policy, .. } = asked.cache;
    if let Some(partial) = object.header().partial() {
        let stored = partial.response.at(asked.now);
        let is_fresh = reuse::judge(&stored, &survey.control(policy)) == Reuse::Fresh;
        return match is_fresh && partial.range_for(asked.request).is_some() {
            true => There::Answer(object, stored),
            false => There::Partial(Arc::clone(object)),
        };
    }
    let Some(response) = object.header().response() else { return There::Nothing };
    let stored = response.at(asked.now);
    match reuse::judge(&stored, &survey.control(policy)) {
        Reuse::Fresh => There::Answer(object, stored),
        Reuse::Validate(why) => There::Stale(Arc::clone(object), why.into(), false),
        // One request has it validated; the others just use it.
        Reuse::WhileRevalidating => {
            let is_get = asked.request.method == Method::Get;
            if is_get && response.claim_validation(asked.now, VALIDATION) {
                return There::Stale(Arc::clone(object), Forward::Stale, true);
            }
            responses.counts.stale.fetch_add(1, Ordering::Relaxed);
            There::Answer(object, stored)
        }
    }
}

/// All keys are of one site of the cache: the number of the site stands within the key.
const KEYS: u32 = 0;

/// Seconds after which another request may validate a stale response that is being validated.
const VALIDATION: u64 = 30;

/// The fields of a request that decide about the cache.
pub(crate) struct Survey {
    pub(crate) control: RequestControl,
    pub(crate) authorised: bool,
}

impl Survey {
    /// `None`: the request does not use the cache.
    fn of(policy: &CachePolicy, request: &Request<'_, '_>) -> Option<Self> {
        let has_content = request.body != BodyLength::None || request.expect_continue;
        if has_content { None } else { Self::of_any(policy, request) }
    }

    /// As [`of`](Self::of), of a request that may have content.
    pub(crate) fn of_any(policy: &CachePolicy, request: &Request<'_, '_>) -> Option<Self> {
        if !key::is_simple(request) || request.has(Known::Upgrade) {
            return None;
        }
        let (mut authorised, mut has_control, mut has_cookie) = (false, false, false);
        for (name, value) in request.fields() {
            match name.len() {
                6 if name.eq_ignore_ascii_case("cookie") => has_cookie = true,
                6 if name.eq_ignore_ascii_case("pragma") => has_control = true,
                // Servers do not get the fields that it names, but keys may have them.
                10 if name.eq_ignore_ascii_case("connection") && names_fields(value) => {
                    return None;
                }
                13 if name.eq_ignore_ascii_case("cache-control") => has_control = true,
                13 if name.eq_ignore_ascii_case("authorization") => authorised = true,
                13 | 17 | 22 if asks_for_another_method(name) => return None,
                _ => {}
            }
            if !policy.bypass_fields.is_empty()
                && lists(&policy.bypass_fields, name.as_bytes(), is_alike)
            {
                return None;
            }
        }
        if has_cookie && !policy.bypass_cookies.is_empty() {
            let listed = |name| lists(&policy.bypass_cookies, name, <[u8]>::eq);
            if possible_names(request).any(listed) {
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

/// Fields by which a request asks servers to take it for one with another method.
pub(crate) const METHOD_FIELDS: [&str; 3] =
    ["x-http-method", "x-http-method-override", "x-method-override"];

fn asks_for_another_method(name: &str) -> bool {
    METHOD_FIELDS.iter().any(|known| is_alike(name.as_bytes(), known.as_bytes()))
}

/// Whether a Connection line names more than options that every client may use.
fn names_fields(connection: &[u8]) -> bool {
    const OPTIONS: [&[u8]; 4] = [b"close", b"keep-alive", b"te", b"upgrade"];
    let is_option = |name: &[u8]| OPTIONS.iter().any(|known| name.eq_ignore_ascii_case(known));
    !list(connection).all(is_option)
}

#[cfg(test)]
mod tests;
