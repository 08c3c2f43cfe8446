//! *Derive cached response* for distributed requests: looks the key up, and judges the object that it finds.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afpa_cache::{Lookup, Object, View};
use afpa_http::caching::cache_status::Forward;
use afpa_http::caching::reuse::{self, Reuse, Stored};
use afpa_http::caching::vary;
use afpa_http::{Coding, Known, Method, Request, coding};

use crate::key::{self, KeyRoom, Place};
use crate::plan::{self, Miss, Plan};
use crate::policy::CachePolicy;
use crate::purge;
use crate::request::{CacheRequest, SiteCache, Survey};
use crate::store::responses::Responses;
use crate::store::stored::{CODINGS, StoredResponse};

/// The result of the look-up for a request.
#[expect(
    clippy::large_enum_variant,
    reason = "a plan goes on at once, and an allocation for it would be one for each miss"
)]
pub enum Found<'v> {
    /// It is not the cache's affair.
    Bypass,
    /// This answers it.
    Hit(&'v Arc<Object<StoredResponse>>, Stored),
    /// Only a stored response is wanted, and there is none.
    NotThere,
    /// A server has to be asked.
    Plan(Plan),
    /// It was a purge, of so many answers.
    Purged(usize),
    /// It is a purge, but not from this client.
    MayNotPurge,
    /// It is a purge, and may be a replay.
    TooEarly,
}

/// Looks up the answer to a request.
pub fn look_up<'v>(
    view: &'v mut View<StoredResponse>,
    room: &mut KeyRoom,
    wanted: CacheRequest<'_, '_, '_>,
) -> Found<'v> {
    let CacheRequest { cache, request, .. } = wanted;
    let SiteCache { responses, policy, scope, .. } = cache;
    if !request.method.is_get_or_head() {
        return purge::by_method(&wanted)
            .unwrap_or_else(|| planned(plan::for_unsafe_method(&wanted)));
    }
    let Some(survey) = Survey::of(policy, request).filter(|_| !wanted.names_client) else {
        return bypass(responses);
    };
    // The moment is taken before the look-up, so that a purge from now on is noticed.
    let since = responses.cache().moment();
    let CacheRequest { url, path, origin, sent, .. } = wanted;
    let place = Place { scope: *scope, url, path, origin, sent };
    key::put_primary(policy, wanted.exchange, request, place, &mut room.primary);
    if room.primary.len() > key::LONGEST {
        return bypass(responses);
    }
    let at_primary = put_variant(view, room, &wanted);
    if is_uncoded(policy, request, &survey) && at_primary.may_be_coded() {
        return match survey.control(policy).only_if_cached {
            true => Found::NotThere,
            false => bypass(responses),
        };
    }
    let (looked, nothing) = match at_primary {
        Primary::Nothing => (Lookup::Miss, Forward::UriMiss),
        // It has been counted as used.
        Primary::Response => (view.peek(KEYS, &room.primary, wanted.steady()), Forward::UriMiss),
        Primary::Index { .. } => {
            (view.get(KEYS, &room.variant, wanted.steady()), Forward::VaryMiss)
        }
    };
    let there = match looked {
        Lookup::Hit(object) | Lookup::Recheck(object) => judge(object, &survey, &wanted),
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
    let primary = room.primary.as_slice();
    planned(plan::for_miss(&wanted, &survey, Miss { primary, since, stored, base, why, at_once }))
}

/// Whether a request gets content without a coding that the responses with its key have. A part is one of such content
/// (RFC 9111 section 5.2.1.6 has the other case).
fn is_uncoded(policy: &CachePolicy, request: &Request<'_, '_>, survey: &Survey) -> bool {
    policy.codes()
        && (request.has(Known::Range) || survey.control.no_transform)
        && coding::choose(request, policy.codings) != Coding::Identity
}

/// Without a plan the request is not the cache's affair.
fn planned(plan: Option<Plan>) -> Found<'static> {
    plan.map_or(Found::Bypass, Found::Plan)
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
    /// The responses of the URL vary, maybe by Accept-Encoding.
    Index {
        by_coding: bool,
    },
}

impl Primary {
    /// Whether the responses for a request may have codings. If they do not vary by Accept-Encoding, none is ever compressed.
    fn may_be_coded(&self) -> bool {
        match self {
            Primary::Nothing => true,
            Primary::Response => false,
            Primary::Index { by_coding } => *by_coding,
        }
    }
}

/// Looks the primary key up, and writes the secondary key if responses vary. The uses of both objects are counted: an
/// index that seemed unused would be ejected before its responses.
fn put_variant(
    view: &mut View<StoredResponse>,
    room: &mut KeyRoom,
    wanted: &CacheRequest<'_, '_, '_>,
) -> Primary {
    let Lookup::Hit(object) = view.get(KEYS, &room.primary, wanted.steady()) else {
        return Primary::Nothing;
    };
    let Some(index) = object.header().index() else { return Primary::Response };
    room.variant.clear();
    room.variant.extend_from_slice(&room.primary);
    vary::put_key(&index.names, wanted.request, &mut room.variant);
    Primary::Index { by_coding: index.names.iter().any(|name| **name == *CODINGS) }
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
    wanted: &CacheRequest<'_, '_, '_>,
) -> There<'v> {
    let SiteCache { responses, policy, .. } = wanted.cache;
    if let Some(partial) = object.header().partial() {
        let stored = partial.response.at(wanted.now);
        let is_fresh = reuse::judge(&stored, &survey.control(policy)) == Reuse::Fresh;
        return match is_fresh && partial.range_for(wanted.request).is_some() {
            true => There::Answer(object, stored),
            false => There::Partial(Arc::clone(object)),
        };
    }
    let Some(response) = object.header().response() else { return There::Nothing };
    let stored = response.at(wanted.now);
    match reuse::judge(&stored, &survey.control(policy)) {
        Reuse::Fresh => There::Answer(object, stored),
        Reuse::Validate(why) => There::Stale(Arc::clone(object), why.into(), false),
        // One request has it validated; the others just use it.
        Reuse::WhileRevalidating => {
            let is_get = wanted.request.method == Method::Get;
            let asks = is_get && !survey.control(policy).only_if_cached;
            if asks && response.claim_validation(wanted.now, VALIDATION) {
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

#[cfg(test)]
mod tests;
