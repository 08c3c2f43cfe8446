//! Which fields of a trailer section are passed on (RFC 9110 section 6.5.1): docs/rules/passing.md, T1 to T3.
//!
//! The head of a message decides, because when the trailer section comes, the head is gone. Some readers treat trailer
//! fields as fields of the head, so nothing passes here that is removed, written or judged there.

use std::sync::Arc;

use afpa_http::chunked::Trailers;
use afpa_http::edits::FieldRules;
use afpa_http::syntax::list;
use afpa_http::{BodyLength, Request};

use crate::fields::{self, Kind, Nominated, OwnedNominated, put};
use crate::request::RequestPolicy;

/// The fields that may trail one message.
#[derive(Clone, Debug, Default)]
pub(crate) struct MayTrail {
    /// The fields that its `Trailer` names, as far as they may pass.
    named: Vec<Box<[u8]>>,
    /// All other fields that have a meaning in a trailer section pass, too.
    any: bool,
    /// The fields that concern only the connection by which the message came.
    nominated: OwnedNominated,
    /// The rules whose id of a request may not trail.
    rules: Option<Arc<FieldRules>>,
}

/// Names that are kept of one message. More of them would make each trailer field costly to look up.
const MOST_NAMES: usize = 64;

impl MayTrail {
    /// Of a request: the fields that its client has named, and that AFPA neither removes nor writes.
    pub(crate) fn of_request(
        request: &Request<'_, '_>,
        nominated: Nominated<'_>,
        policy: &RequestPolicy,
    ) -> Self {
        if request.body != BodyLength::Chunked {
            return Self::default();
        }
        let lines = request.fields().map(|(name, value)| (name.as_bytes(), value));
        let passes = |name: &[u8]| {
            // Programs of CGI read `_` as `-`.
            !name.contains(&b'_') && !policy.tells(name) && !nominated.contains(name)
        };
        Self { named: named(lines, passes), ..Self::default() }
    }

    /// Of a response, whose field lines these are. `any`: its client takes trailer fields (`TE: trailers`), so that a
    /// server need not name them: those of gRPC do not.
    pub(crate) fn of_response<'a>(
        lines: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        nominated: Nominated<'_>,
        any: bool,
    ) -> Self {
        match any {
            true => Self { any, nominated: nominated.to_owned(), ..Self::default() },
            false => {
                Self { named: named(lines, |name| !nominated.contains(name)), ..Self::default() }
            }
        }
    }

    /// Has these not pass.
    pub(crate) fn remove(&mut self, is_out: impl Fn(&[u8]) -> bool) {
        self.named.retain(|name| !is_out(name));
    }

    /// Has no id pass that a server gives a request with these rules.
    pub(crate) fn leave_id_out(&mut self, rules: &Arc<FieldRules>) {
        self.rules = Some(Arc::clone(rules));
    }

    fn passes(&self, name: &[u8]) -> bool {
        let is_known = match self.any {
            true => !self.nominated.contains(name),
            false => self.named.iter().any(|named| named.eq_ignore_ascii_case(name)),
        };
        let id = self.rules.as_ref().and_then(|rules| rules.id.as_ref());
        is_known && may_trail(name) && !id.is_some_and(|rule| rule.is(name))
    }
}

/// The names in `Trailer` lines (RFC 9110 section 6.6.2) that pass.
fn named<'a>(
    lines: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    passes: impl Fn(&[u8]) -> bool,
) -> Vec<Box<[u8]>> {
    let lines = lines.filter(|(name, _)| fields::kind(name) == Kind::Trailer);
    let names = lines.flat_map(|(_, value)| list(value)).take(MOST_NAMES);
    names.filter(|name| passes(name)).map(Box::from).collect()
}

/// Appends the end of a chunked content: the last chunk, and those trailer fields that may be passed on.
pub(crate) fn put_last_chunk(out: &mut Vec<u8>, trailers: &Trailers, may: &MayTrail) {
    out.extend_from_slice(b"0\r\n");
    for (name, value) in trailers.fields() {
        if may.passes(name) {
            put(out, name, value);
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Fields that change how a message is framed, routed, authenticated, cached or understood (RFC 9110 section 6.5.1; the
/// list of RFC 7230 section 4.1.2 and what is alike), and fields that AFPA writes. With `-` where a name may have `_`.
const NEVER_TRAIL: [&str; 56] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "age",
    "alt-svc",
    "authorization",
    "cache-status",
    "cache-tag",
    "clear-site-data",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-location",
    "content-range",
    "content-security-policy",
    "cookie",
    "cookie2",
    "dpop",
    "expires",
    "from",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-event-id",
    "last-modified",
    "location",
    "origin",
    "pragma",
    "range",
    "referer",
    "refresh",
    "retry-after",
    "server",
    "set-cookie",
    "set-cookie2",
    "soft-purge",
    "strict-transport-security",
    "surrogate-control",
    "surrogate-key",
    "upgrade-insecure-requests",
    "user-agent",
    "vary",
    "warning",
    "www-authenticate",
    "x-content-type-options",
    "x-frame-options",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-url",
    "x-real-ip",
    "x-rewrite-url",
    "x-sendfile",
];

/// The beginnings of whole families of such names.
const NEVER_BEGINS: [&str; 5] = ["access-control-", "proxy-", "sec-", "x-accel-", "x-forwarded-"];

/// The ending of the names of targeted fields (RFC 9213).
const NEVER_ENDS: &str = "cache-control";

/// Whether a field means something in a trailer section, and is not only for this connection.
fn may_trail(name: &[u8]) -> bool {
    let plain: Vec<u8> = name.iter().map(fields::plain).collect();
    let is_never = NEVER_TRAIL.iter().any(|never| never.as_bytes() == plain)
        || NEVER_BEGINS.iter().any(|never| plain.starts_with(never.as_bytes()))
        || plain.ends_with(NEVER_ENDS.as_bytes());
    fields::kind(name) == Kind::EndToEnd && !is_never
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_only_before_the_content_does_not_trail() {
        let begun = NEVER_BEGINS.map(|never| format!("{never}anything"));
        let begun = begun.iter().map(|name| name.as_bytes());
        for name in NEVER_TRAIL.iter().map(|name| name.as_bytes()).chain(begun).chain([
            b"Transfer-Encoding".as_slice(),
            b"content_length",
            b"HOST",
            b"TE",
            b"Trailer",
            b"Via",
            b"Date",
            b"Expect",
            b"Content-Type",
            b"X_Forwarded_For",
            b"Set_Cookie",
            b"Proxy-Authorization",
            b"X_Real-IP",
            b"CDN-Cache-Control",
            b"Sec_Fetch_Site",
        ]) {
            assert!(!may_trail(name), "{}", name.escape_ascii());
        }
        for name in [
            b"Server-Timing".as_slice(),
            b"Content-Digest",
            b"ETag",
            b"X-Sum",
            b"grpc-status",
            b"grpc-status-details-bin",
            b"my_metadata",
            b"Accept-Ranges",
        ] {
            assert!(may_trail(name), "{}", name.escape_ascii());
        }
    }

    fn passed(may: &MayTrail, name: &str) -> bool {
        may.passes(name.as_bytes())
    }

    #[test]
    fn only_what_the_head_names_trails_it() {
        let lines = [
            (b"trailer".as_slice(), b"X-Sum, x-drop,Set-Cookie".as_slice()),
            (b"X-Other", b"X-Unnamed"),
            (b"Trailer", b"X-More"),
        ];
        let mut nominated = Nominated::default();
        nominated.add(b"x-drop").expect("one line");
        let may = MayTrail::of_response(lines.into_iter(), nominated, false);
        for (name, passes) in [
            ("x-sum", true),
            ("X-MORE", true),
            ("X-Unnamed", false),
            ("X-Drop", false),
            ("Set-Cookie", false),
        ] {
            assert_eq!(passed(&may, name), passes, "{name}");
        }
        let mut claimed = may.clone();
        claimed.remove(|name| name.eq_ignore_ascii_case(b"x-more"));
        assert!(passed(&claimed, "x-sum") && !passed(&claimed, "X-More"));
        let may = MayTrail::of_response(lines.into_iter(), nominated, true);
        for (name, passes) in
            [("x-sum", true), ("grpc-status", true), ("X-Drop", false), ("Set-Cookie", false)]
        {
            assert_eq!(passed(&may, name), passes, "{name} where the client takes all");
        }
    }

    #[test]
    fn names_are_bounded() {
        let names = vec!["a"; 10 * MOST_NAMES].join(",");
        let lines = [(b"trailer".as_slice(), names.as_bytes())];
        let may = MayTrail::of_response(lines.into_iter(), Nominated::default(), false);
        assert_eq!(may.named.len(), MOST_NAMES);
    }
}
