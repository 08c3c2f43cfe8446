//! The key under which a response is stored, and the labels by which it is purged.
//!
//! Everything that the server gets and that may decide about its answer is either in the key, or named by the
//! response's Vary, or left out because the operator said so. A primary key is
//!
//! ```text
//! the label of the URL                                                            its own end
//! the length of the scheme, the port as Host has it, what routers in front say    a zero byte
//! cookies                                                                         a zero byte
//! the path that the server gets, if it is not that of the URL                     a zero byte
//! the number of the site and its rules                                            of fixed length
//! ```
//!
//! No part holds the byte that ends it, so that two requests have one key only if all parts are the same. The label
//! comes first, so that the keys of what a purge means begin alike.

pub(crate) use afpa_cache::{END, label_of};
use afpa_http::{Known, Request, Target, target};
use afpa_proxy::exchange;
use afpa_proxy::request::{Mark, scheme};

use super::policy::{CachePolicy, QueryRule, lists};

/// Memory for keys, so that a hit allocates nothing and a miss only what it keeps.
#[derive(Debug, Default)]
pub(crate) struct KeyRoom {
    pub(crate) primary: Vec<u8>,
    pub(crate) variant: Vec<u8>,
}

/// Bytes at the end of a primary key for the number of the site and its rules, which each process gives anew.
pub(crate) const SCOPE_LEN: usize = size_of::<u32>();

/// What a request is for, apart from its fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// Number of the site and its rules.
    pub(crate) scope: u32,
    /// The path of the URL, normalised.
    pub(crate) url: &'a [u8],
    /// The path that the server gets.
    pub(crate) path: &'a [u8],
    /// Whether the request came over TLS.
    pub(crate) secure: bool,
}

/// Writes the primary key of a request.
pub(crate) fn put_primary(
    policy: &CachePolicy,
    exchange: &exchange::Settings,
    believed: bool,
    request: &Request<'_, '_>,
    place: Place<'_>,
    out: &mut Vec<u8>,
) {
    out.clear();
    let host = request.host;
    put_url(host.name().as_bytes(), place.url, out);
    put_query(policy, request.target.query(), out);
    out.push(END);
    out.push(scheme(request, place.secure).len() as u8);
    put_lower(host.as_bytes().get(host.name().len()..).unwrap_or_default(), out);
    let marks = [exchange.request.x_forwarded, exchange.request.forwarded];
    if believed || marks.iter().any(|mark| matches!(mark, Mark::Keep | Mark::Append)) {
        put_marks(request, out);
    }
    out.push(0);
    put_cookies(policy, request, out);
    out.push(0);
    if place.path != place.url {
        out.extend_from_slice(place.path);
    }
    out.push(0);
    out.extend_from_slice(&place.scope.to_le_bytes());
}

/// The names of these fields.
pub(crate) const MARKS: [&str; 3] = ["x-forwarded-host", "x-forwarded-proto", "forwarded"];

/// What a primary key is made of, where neither marks nor cookies nor TLS decide.
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
    let mut room = Vec::new();
    let url = target::normalise(url, &mut room).ok()?.to_vec();
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

/// Both sides of the first byte of this kind.
fn cut(bytes: &[u8], end: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|&byte| byte == end)?;
    Some((bytes.get(..at)?, bytes.get(at + 1..)?))
}

fn put_lower(text: &[u8], out: &mut Vec<u8>) {
    out.extend(text.iter().map(u8::to_ascii_lowercase));
}

/// The fields by which the client tells the server for which host and scheme it asks, where they are passed on.
fn put_marks(request: &Request<'_, '_>, out: &mut Vec<u8>) {
    for (name, value) in request.fields() {
        if let Some(at) = MARKS.iter().position(|known| name.eq_ignore_ascii_case(known)) {
            out.push(b'\n');
            out.push(b'0' + at as u8);
            out.extend_from_slice(value);
        }
    }
}

/// Appends those parameters of the query that belong to the key.
fn put_query(policy: &CachePolicy, query: Option<&[u8]>, out: &mut Vec<u8>) {
    let Some(query) = query else { return };
    if policy.query == QueryRule::None {
        return;
    }
    if policy.query == QueryRule::All && !policy.sort_query {
        out.push(b'?');
        out.extend_from_slice(query);
        return;
    }
    let same = <[u8]>::eq as fn(&[u8], &[u8]) -> bool;
    let mut kept: Vec<&[u8]> = query
        .split(|&byte| byte == b'&')
        .filter(|parameter| {
            let name = parameter.split(|&byte| byte == b'=').next().unwrap_or_default();
            match &policy.query {
                QueryRule::All => true,
                QueryRule::None => false,
                QueryRule::Only(names) => lists(names, name, same),
                QueryRule::Without(names) => !lists(names, name, same),
            }
        })
        .collect();
    if policy.sort_query {
        // The order of parameters with one name means something to most servers, so it stays.
        kept.sort_by_key(|parameter| parameter.split(|&byte| byte == b'=').next());
    }
    for (number, parameter) in kept.into_iter().enumerate() {
        out.push(if number == 0 { b'?' } else { b'&' });
        out.extend_from_slice(parameter);
    }
}

fn put_cookies(policy: &CachePolicy, request: &Request<'_, '_>, out: &mut Vec<u8>) {
    for name in &policy.cookies {
        out.push(b'\n');
        for (_, value) in cookies(request).filter(|(known, _)| *known == name.as_bytes()) {
            // It ends each cookie, so it stands in no value.
            out.push(b';');
            out.extend_from_slice(value);
        }
    }
}

/// Names and values of the cookies of a request (RFC 6265 section 5.4).
pub(crate) fn cookies<'b>(request: &Request<'_, 'b>) -> impl Iterator<Item = (&'b [u8], &'b [u8])> {
    let lines = request.fields().filter(|(name, _)| name.eq_ignore_ascii_case("cookie"));
    lines.flat_map(|(_, value)| value.split(|&byte| byte == b';')).filter_map(|cookie| {
        let cookie = cookie.trim_ascii();
        let at = cookie.iter().position(|&byte| byte == b'=')?;
        Some((cookie.get(..at)?, cookie.get(at + 1..)?))
    })
}

/// The label of a URL: `u`, the host in lower case without its port, the path as a URL has it, the query, and the end. The URLs of
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
    target::encode(path, out);
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

/// What of a query belongs to the key.
pub(crate) fn kept_query(policy: &CachePolicy, query: Option<&[u8]>) -> Option<Vec<u8>> {
    let mut kept = Vec::new();
    put_query(policy, query, &mut kept);
    kept.strip_prefix(b"?").map(<[u8]>::to_vec)
}

/// Whether the cache is asked at all for a request like this.
pub(crate) fn is_simple(request: &Request<'_, '_>) -> bool {
    let has_path = matches!(request.target, Target::Origin { .. } | Target::Absolute { .. });
    has_path && !request.has(Known::IfMatch) && !request.has(Known::IfUnmodifiedSince)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use afpa_http::{FieldSlots, RequestLimits, request};

    fn key_of(policy: &CachePolicy, believed: bool, head: &str) -> Vec<u8> {
        let head = format!("GET {head}\r\n\r\n");
        let mut slots = FieldSlots::new();
        let request = request::parse(head.as_bytes(), &mut slots, &RequestLimits::default());
        let request = request.expect("valid").expect("whole");
        let mut room = Vec::new();
        let path = target::normalise(request.target.path().expect("path"), &mut room);
        let path = path.expect("normal");
        let place = Place { scope: 1, url: path, path, secure: false };
        let mut key = Vec::new();
        put_primary(policy, &exchange::Settings::default(), believed, &request, place, &mut key);
        key
    }

    #[track_caller]
    fn compare(policy: &CachePolicy, believed: bool, one: &str, other: &str, same: bool) {
        let keys = [one, other].map(|head| key_of(policy, believed, head));
        assert_eq!(keys[0] == keys[1], same, "{one:?} {other:?}");
    }

    #[test]
    fn what_decides_about_the_answer_is_in_the_key() {
        let plain = CachePolicy::default();
        for (one, other, same) in [
            ("/a HTTP/1.1\r\nHost: x", "/a HTTP/1.1\r\nHost: X", true),
            ("/a HTTP/1.1\r\nHost: x", "http://x/a HTTP/1.1\r\nHost: y", true),
            ("http://x/a HTTP/1.1\r\nHost: x", "https://x/a HTTP/1.1\r\nHost: x", false),
            ("/a HTTP/1.1\r\nHost: x", "/a HTTP/1.1\r\nHost: x:81", false),
            ("/a HTTP/1.1\r\nHost: x", "/a? HTTP/1.1\r\nHost: x", false),
            ("/a?b HTTP/1.1\r\nHost: x", "/a%3Fb HTTP/1.1\r\nHost: x", false),
            ("/a?b=1&c=2 HTTP/1.1\r\nHost: x", "/a?c=2&b=1 HTTP/1.1\r\nHost: x", false),
            ("/a/../b HTTP/1.1\r\nHost: x", "/b HTTP/1.1\r\nHost: x", true),
            ("/%61 HTTP/1.1\r\nHost: x", "/a HTTP/1.1\r\nHost: x", true),
            ("/a HTTP/1.1\r\nHost: x\r\nX-Forwarded-Host: e", "/a HTTP/1.1\r\nHost: x", true),
        ] {
            compare(&plain, false, one, other, same);
        }
        let (one, other) =
            ("/a HTTP/1.1\r\nHost: x\r\nX-Forwarded-Host: e", "/a HTTP/1.1\r\nHost: x");
        compare(&plain, true, one, other, false);
    }

    #[test]
    fn queries_and_cookies_follow_the_rules() {
        let without = QueryRule::Without(vec!["utm_*".into()]);
        let sorted = CachePolicy { query: without, sort_query: true, ..CachePolicy::default() };
        for (one, other, same) in [
            ("/?b=1&utm_x=2&a=3", "/?a=3&b=1", true),
            ("/?a=1&a=2", "/?a=2&a=1", false),
            ("/?a=1", "/?a=2", false),
        ] {
            let head = |path: &str| format!("{path} HTTP/1.1\r\nHost: x");
            compare(&sorted, false, &head(one), &head(other), same);
        }
        let cookies = CachePolicy { cookies: vec!["lang".into()], ..CachePolicy::default() };
        for (one, other, same) in [
            ("lang=de; id=1", "id=2; lang=de", true),
            ("lang=de", "lang=en", false),
            ("id=1", "id=2", true),
            ("lang=", "id=1", false),
            ("lang=x; lang=y", "lang=x=y", false),
        ] {
            let head = |cookie: &str| format!("/ HTTP/1.1\r\nHost: x\r\nCookie: {cookie}");
            compare(&cookies, false, &head(one), &head(other), same);
        }
    }

    #[test]
    fn a_key_is_taken_apart_where_nothing_else_decides() {
        let plain = CachePolicy::default();
        let taken = |policy: &CachePolicy, believed: bool, head: &str| {
            let key = key_of(policy, believed, head);
            let taken = parts(&key)?;
            assert_eq!((taken.scope, &taken.url), (1, &taken.path));
            let query = taken.query.map(|query| String::from_utf8_lossy(query).into_owned());
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            Some((text(&taken.host), text(&taken.path), query))
        };
        for (target, path, query) in
            [("/a", "/a", None), ("/a?", "/a", Some("")), ("/a%3Fb?c&d=/", "/a?b", Some("c&d=/"))]
        {
            let found = taken(&plain, true, &format!("{target} HTTP/1.1\r\nHost: A.example:81"));
            let expected = ("a.example:81".into(), path.into(), query.map(str::to_owned));
            assert_eq!(found, Some(expected), "{target}");
        }
        let head = "/a HTTP/1.1\r\nHost: x\r\n";
        let marked = format!("{head}X-Forwarded-Host: e");
        assert!(taken(&plain, true, &marked).is_none() && taken(&plain, false, &marked).is_some());
        assert!(taken(&plain, false, "https://x/a HTTP/1.1\r\nHost: x").is_none());
        let cookies = CachePolicy { cookies: vec!["a".into(), "b".into()], ..plain };
        assert!(taken(&cookies, false, &format!("{head}Cookie: c=1")).is_some());
        assert!(taken(&cookies, false, &format!("{head}Cookie: b=1")).is_none());
        assert!(parts(b"").is_none() && parts(b"ua/\n\x04\0\0\0\x01\0").is_none());
    }

    #[test]
    fn a_key_begins_with_the_label_of_its_url() {
        let plain = CachePolicy::default();
        for (target, label, url) in [
            ("/a%20b?c=/?d", &b"ux.example/a%20b?c=/?d\n"[..], "http://x.example:81/a%20b?c=/?d"),
            ("/%61?", b"ux.example/a?\n", "http://x.example:81/a?"),
        ] {
            let head = format!("{target} HTTP/1.1\r\nHost: X.example:81\r\nX-Forwarded-Host: e");
            let key = key_of(&plain, true, &head);
            assert_eq!(label_of(&key), label, "{target}");
            assert_eq!(super::url(&key).as_deref(), Some(url));
        }
    }

    #[test]
    fn a_path_that_the_server_gets_is_in_the_key_where_it_is_another_one() {
        let head = b"GET /app/a HTTP/1.1\r\nHost: x\r\n\r\n";
        let mut slots = FieldSlots::new();
        let request = request::parse(head, &mut slots, &RequestLimits::default());
        let request = request.expect("valid").expect("whole");
        let key_at = |path| {
            let place = Place { scope: 1, url: b"/app/a", path, secure: false };
            let (policy, exchange) = (CachePolicy::default(), exchange::Settings::default());
            let mut key = Vec::new();
            put_primary(&policy, &exchange, false, &request, place, &mut key);
            key
        };
        let (same, other) = (key_at(b"/app/a"), key_at(b"/a"));
        assert_eq!((label_of(&same), label_of(&other)), (&b"ux/app/a\n"[..], &b"ux/app/a\n"[..]));
        let paths = |key| parts(key).map(|parts| (parts.url, parts.path));
        assert_eq!(paths(&same), Some((b"/app/a".to_vec(), b"/app/a".to_vec())));
        assert_eq!(paths(&other), Some((b"/app/a".to_vec(), b"/a".to_vec())));
    }

    proptest! {
        /// All parts can be told from the key, so no two requests that differ in one have the same.
        #[test]
        fn a_key_tells_each_of_its_parts(
            host in "[A-Za-z0-9.-]{1,12}",
            port in "(:[0-9]{1,5})?",
            url in proptest::collection::vec("[ -~é?%]{1,6}", 0..3),
            path in proptest::option::of("/[ -~é]{0,9}"),
            query in proptest::option::of("[!-\"$-~]{0,9}"),
            marks in proptest::collection::vec((0..MARKS.len(), "[!-~]{0,6}"), 0..3),
            cookies in proptest::collection::vec(("[ab]", "[!-+--:<-~]{0,6}"), 0..4),
            scope in any::<u32>(),
        ) {
            let url = format!("/{}", url.join("/"));
            let mut room = Vec::new();
            target::encode(url.as_bytes(), &mut room);
            let encoded = String::from_utf8(room).expect("ASCII");
            let question = query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
            let lines = |name: usize, value: &str| format!("{}: {value}\r\n", MARKS[name]);
            let marked: String = marks.iter().map(|(name, value)| lines(*name, value)).collect();
            let baked = cookies.iter().map(|(name, value)| format!("Cookie: {name}={value}\r\n"));
            let baked: String = baked.collect();
            let head = format!("GET /x{question} HTTP/1.1\r\nHost: {host}{port}\r\n{marked}{baked}\r\n");
            let mut slots = FieldSlots::new();
            let request = request::parse(head.as_bytes(), &mut slots, &RequestLimits::default());
            prop_assume!(request.is_ok());
            let request = request.expect("valid").expect("whole");
            let policy = CachePolicy {
                cookies: vec!["a".into(), "b".into()],
                ..CachePolicy::default()
            };
            let at_server = path.as_deref().unwrap_or(&url).as_bytes();
            let place = Place { scope, url: url.as_bytes(), path: at_server, secure: false };
            let mut key = Vec::new();
            put_primary(&policy, &exchange::Settings::default(), true, &request, place, &mut key);
            let told = |name: &str| {
                let mut told = vec![b'\n'];
                for (_, value) in cookies.iter().filter(|(own, _)| own == name) {
                    told.push(b';');
                    told.extend_from_slice(value.as_bytes());
                }
                told
            };
            let mut believed = port.clone().into_bytes();
            for (name, value) in &marks {
                believed.extend_from_slice(format!("\n{name}{value}").as_bytes());
            }
            let (name, cookies) = (host.to_ascii_lowercase(), [told("a"), told("b")].concat());
            let expected = Split {
                name: name.as_bytes(),
                path: encoded.as_bytes(),
                query: question.as_bytes(),
                scheme: 4,
                port: &believed,
                cookies: &cookies,
                path_at_server: if at_server == url.as_bytes() { b"" } else { at_server },
                scope,
            };
            prop_assert_eq!(split(&key), Some(expected));
        }
    }

    #[test]
    fn labels_of_what_lies_below_begin_alike() {
        let label = url_label(b"A.example", b"/x y/\n", Some(b"q"));
        assert_eq!(label, b"ua.example/x%20y/%0A?q\n");
        assert!(label.starts_with(b"ua.example/x%20y/"));
        assert_eq!(host_of(&label), b"a.example");
        assert_eq!(group_label(b"A", b"b c"), b"ga/b c\n");
    }
}
