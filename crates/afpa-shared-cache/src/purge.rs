//! The PURGE method, for clients that may use it: a purge of the URL of the request, or of the tags in its
//! Surrogate-Key.

use afpa_framework::Client;
use afpa_http::{Method, Request};

use crate::key::labels::Purge;
use crate::look_up::Found;
use crate::policy::CachePolicy;
use crate::request::CacheRequest;

/// Carries out a PURGE request. `None`: it is none, or goes to the server like any other method.
pub(crate) fn by_method(wanted: &CacheRequest<'_, '_, '_>) -> Option<Found<'static>> {
    let (cache, request) = (wanted.cache, wanted.request);
    if request.method != Method::Other("PURGE") || cache.policy.purge_from.is_empty() {
        return None;
    }
    if !may(&cache.policy, wanted.client) {
        return Some(Found::MayNotPurge);
    }
    // Waiting for the handshake would not help where another proxy says so (RFC 8470 section 5.1).
    if wanted.is_early || fields(request, "early-data").next().is_some() {
        return Some(Found::TooEarly);
    }
    let soft = fields(request, "soft-purge").any(|value| value == b"1");
    let tags = fields(request, "surrogate-key").flat_map(|value| value.split(|&byte| byte == b' '));
    let mut tags = tags.filter(|tag| !tag.is_empty()).peekable();
    if tags.peek().is_none() {
        return Some(Found::Purged(cache.responses.purge_everywhere(&url(wanted), soft)));
    }
    let count =
        tags.map(|tag| cache.responses.purge_everywhere(&Purge::Tag(tag.to_vec()), soft)).sum();
    Some(Found::Purged(count))
}

/// The URL of the request, with its query, or else with any.
fn url(wanted: &CacheRequest<'_, '_, '_>) -> Purge {
    let request = wanted.request;
    let host = Some(request.host.name().as_bytes().to_vec());
    let query = request.target.query().map(<[u8]>::to_vec);
    Purge::Url { host, path: wanted.url.to_vec(), query }
}

fn fields<'b>(request: &Request<'_, 'b>, wanted: &'static str) -> impl Iterator<Item = &'b [u8]> {
    let lines = request.fields().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted));
    lines.map(|(_, value)| value)
}

/// Whether this client may purge. One on a unix socket may not: any program may be behind it.
fn may(policy: &CachePolicy, client: Client) -> bool {
    match client {
        Client::Ip(address) => policy.purge_from.iter().any(|network| network.contains(address)),
        Client::Unix => false,
    }
}
