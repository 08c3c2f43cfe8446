//! The key under which a response is stored, and the labels by which it is purged.
//!
//! Everything that the server gets and that may decide about its answer is either in the key, or named by the
//! response's Vary, or left out because the operator said so. A primary key is
//!
//! ```text
//! the label of the URL                                                            its own end
//! the length of the scheme, the port as Host has it, what routers in front say    a zero byte
//! cookies ([`cookies`])                                                           a zero byte
//! the path that the server gets, if it is not that of the URL; behind a line
//! feed the target that was sent, if the server learns of it in that spelling       a zero byte
//! the number of the site and its rules                                            of fixed length
//! ```
//!
//! No part holds the byte that ends it, so that two requests have one key only if all parts are the same. The label
//! comes first, so that the keys of one purge begin alike.

pub(crate) mod cookies;
pub(crate) mod labels;
pub(crate) mod query;

pub(crate) use afpa_cache::{END, label_of};
use afpa_http::{Known, Request, Target};
use afpa_proxy::exchange;
use afpa_proxy::request::{Origin, scheme};

use crate::key::cookies::put_cookies;
use crate::key::query::put_query;
use crate::policy::CachePolicy;

/// Memory for keys, so that a hit allocates nothing and a miss only the keys that are kept.
#[derive(Debug, Default)]
pub struct KeyRoom {
    pub(crate) primary: Vec<u8>,
    pub(crate) variant: Vec<u8>,
}

/// Bytes at the end of a primary key for the number of the site and its rules, which each process gives anew.
pub(crate) const SCOPE_LEN: usize = size_of::<u32>();

/// The target of a request, apart from its fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// Number of the site and its rules.
    pub(crate) scope: u32,
    /// The path of the URL, in the spelling that servers get.
    pub(crate) url: &'a [u8],
    /// The path that the server gets, likewise.
    pub(crate) path: &'a [u8],
    /// The client, as far as the server learns of it.
    pub(crate) origin: Origin<'a>,
    /// The target that was sent, if the server learns of it and it is not that of the URL.
    pub(crate) sent: Option<&'a [u8]>,
}

/// A response with a longer key is not kept: clients choose the key, and it takes memory for as long as the answer
/// does.
pub(crate) const LONGEST: usize = 2048;

/// Writes the primary key of a request.
pub(crate) fn put_primary(
    policy: &CachePolicy,
    exchange: &exchange::Settings,
    request: &Request<'_, '_>,
    place: Place<'_>,
    out: &mut Vec<u8>,
) {
    out.clear();
    let host = request.host;
    put_url(host.name().as_bytes(), place.url, out);
    put_query(policy, request.target.query(), out);
    out.push(END);
    out.push(scheme(request, place.origin).len() as u8);
    put_lower(host.as_bytes().get(host.name().len()..).unwrap_or_default(), out);
    if exchange.request.may_pass_on(place.origin) {
        put_marks(exchange, request, place.origin, out);
    }
    out.push(0);
    put_cookies(policy, request, out);
    out.push(0);
    if place.path != place.url {
        out.extend_from_slice(place.path);
    }
    if let Some(sent) = place.sent {
        out.push(b'\n');
        out.extend_from_slice(sent);
    }
    out.push(0);
    out.extend_from_slice(&place.scope.to_le_bytes());
}

/// The parts of a primary key that neither marks nor cookies nor TLS belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parts<'k> {
    pub(crate) scope: u32,
    /// With its port, as Host has it, in lower case.
    pub(crate) host: Vec<u8>,
    pub(crate) url: Vec<u8>,
    pub(crate) query: Option<&'k [u8]>,
    pub(crate) path: Vec<u8>,
}

/// The parts of a primary key of a plain request. `None`: more decides.
pub(crate) fn parts(primary: &[u8]) -> Option<Parts<'_>> {
    let Split { name, path: url, query, scheme, port, cookies, path_at_server: path, scope } =
        split(primary)?;
    let is_plain = usize::from(scheme) == "http".len();
    if !is_plain || port.contains(&b'\n') || cookies.iter().any(|byte| *byte != b'\n') {
        return None;
    }
    let url = url.to_vec();
    let query = if query.is_empty() { None } else { Some(query.strip_prefix(b"?")?) };
    let path = if path.is_empty() { url.clone() } else { path.to_vec() };
    Some(Parts { scope, host: [name, port].concat(), url, query, path })
}

/// The URL of a primary key, for people.
pub(crate) fn url(primary: &[u8]) -> Option<String> {
    let Split { name, path, query, scheme, port, .. } = split(primary)?;
    let scheme = if usize::from(scheme) == "https".len() { "https" } else { "http" };
    let port = port.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let url = [scheme.as_bytes(), b"://", name, port, path, query].concat();
    Some(String::from_utf8_lossy(&url).into_owned())
}

/// A primary key, cut where its parts begin.
#[derive(Debug, PartialEq, Eq)]
struct Split<'k> {
    name: &'k [u8],
    /// As URLs have it.
    path: &'k [u8],
    /// With its question mark, if there is one.
    query: &'k [u8],
    /// The length of the scheme.
    scheme: u8,
    /// With what routers in front say.
    port: &'k [u8],
    cookies: &'k [u8],
    /// Nothing, if the server gets that of the URL.
    path_at_server: &'k [u8],
    scope: u32,
}

fn split(primary: &[u8]) -> Option<Split<'_>> {
    let (label, rest) = cut(primary, END)?;
    let label = label.strip_prefix(b"u")?;
    let (name, target) = label.split_at_checked(label.iter().position(|&byte| byte == b'/')?)?;
    let query = target.iter().position(|&byte| byte == b'?').unwrap_or(target.len());
    let (path, query) = target.split_at_checked(query)?;
    let (&scheme, rest) = rest.split_first()?;
    let (port, rest) = cut(rest, 0)?;
    let (cookies, rest) = cut(rest, 0)?;
    let (path_at_server, scope) = cut(rest, 0)?;
    let scope = u32::from_le_bytes(scope.try_into().ok()?);
    Some(Split { name, path, query, scheme, port, cookies, path_at_server, scope })
}

/// The bytes before and behind the first `end`.
fn cut(bytes: &[u8], end: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|&byte| byte == end)?;
    Some((bytes.get(..at)?, bytes.get(at + 1..)?))
}

fn put_lower(text: &[u8], out: &mut Vec<u8>) {
    out.extend(text.iter().map(u8::to_ascii_lowercase));
}

/// The fields of routers in front that are passed on.
fn put_marks(
    exchange: &exchange::Settings,
    request: &Request<'_, '_>,
    origin: Origin<'_>,
    out: &mut Vec<u8>,
) {
    for (name, value) in request.fields() {
        if exchange.request.passes_on(name.as_bytes(), origin) {
            out.push(b'\n');
            put_lower(name.as_bytes(), out);
            out.push(b':');
            out.extend_from_slice(value);
        }
    }
}

/// The label of a URL: `u`, the host in lower case without its port, the path in the spelling that servers get, the query, and the end. The URLs of
/// a host, and those below a path, have labels that begin alike.
pub(crate) fn url_label(host: &[u8], path: &[u8], query: Option<&[u8]>) -> Vec<u8> {
    let length = host.len() + path.len() + query.map_or(0, |query| query.len() + 1);
    let mut label = Vec::with_capacity(length + 2);
    put_url(host, path, &mut label);
    if let Some(query) = query {
        label.push(b'?');
        label.extend_from_slice(query);
    }
    label.push(END);
    label
}

fn put_url(host: &[u8], path: &[u8], out: &mut Vec<u8>) {
    out.push(b'u');
    put_lower(host, out);
    out.extend_from_slice(path);
}

/// The label of a tag, by which the operator purges on all hosts.
pub(crate) fn tag_label(tag: &[u8]) -> Vec<u8> {
    [b"t", tag, &[END]].concat()
}

/// The label of a cache group (RFC 9875), by which answers of the same host invalidate one another, and no others.
pub(crate) fn group_label(host: &[u8], group: &[u8]) -> Vec<u8> {
    let mut label = vec![b'g'];
    put_lower(host, &mut label);
    label.push(b'/');
    label.extend_from_slice(group);
    label.push(END);
    label
}

/// The host in the label of a URL.
pub(crate) fn host_of(label: &[u8]) -> &[u8] {
    let rest = label.strip_prefix(b"u").unwrap_or_default();
    rest.split(|&byte| byte == b'/').next().unwrap_or_default()
}

/// Whether the cache is asked at all for a request like this.
pub(crate) fn is_simple(request: &Request<'_, '_>) -> bool {
    let has_path = matches!(request.target, Target::Origin { .. } | Target::Absolute { .. });
    has_path && !request.has(Known::IfMatch) && !request.has(Known::IfUnmodifiedSince)
}

#[cfg(test)]
mod sent;
#[cfg(test)]
mod tests;
