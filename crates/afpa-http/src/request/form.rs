//! The four forms of a request target (RFC 9112 section 3.2).

use super::{Host, Refusal};
use crate::Method;
use crate::syntax::byte_table;

/// A request target, taken apart but not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'b> {
    /// `/path?query`: the form for an origin server (RFC 9112 section 3.2.1).
    Origin {
        /// The path; starts with `/`.
        path: &'b [u8],
        /// The bytes behind the first `?`, if there is one.
        query: Option<&'b [u8]>,
    },
    /// `http://host/path?query`: the form for a proxy, which every server must accept (RFC 9112 section 3.2.2).
    Absolute {
        /// `http` or `https`; whether the latter may come over this connection is for the caller
        /// to say (RFC 9110 section 7.4).
        scheme: Scheme,
        /// Host and optional port, valid.
        authority: &'b [u8],
        /// The path; starts with `/`, which stands in for an empty one (RFC 9110 section 4.2.3).
        path: &'b [u8],
        /// The bytes behind the first `?`, if there is one.
        query: Option<&'b [u8]>,
    },
    /// `host:port`: only with CONNECT (RFC 9112 section 3.2.3).
    Authority(&'b [u8]),
    /// `*`: only with OPTIONS, about the server as a whole (RFC 9112 section 3.2.4).
    Asterisk,
}

/// The schemes that can stand in an absolute form (RFC 9110 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `http`.
    Http,
    /// `https`.
    Https,
}

impl<'b> Target<'b> {
    /// The path of the two forms that have one.
    #[inline]
    pub fn path(&self) -> Option<&'b [u8]> {
        match *self {
            Target::Origin { path, .. } | Target::Absolute { path, .. } => Some(path),
            Target::Authority(_) | Target::Asterisk => None,
        }
    }

    /// The query, without its `?`.
    #[inline]
    pub fn query(&self) -> Option<&'b [u8]> {
        match *self {
            Target::Origin { query, .. } | Target::Absolute { query, .. } => query,
            Target::Authority(_) | Target::Asterisk => None,
        }
    }

    /// Takes a target apart whose bytes have passed [`is_target`].
    #[inline]
    pub(super) fn new(method: &Method<'_>, raw: &'b [u8]) -> Result<Target<'b>, Refusal> {
        match (method, raw) {
            (Method::Connect, _) if Host::parse(raw)?.port().is_some() => {
                Ok(Target::Authority(raw))
            }
            (Method::Connect, _) => Err(Refusal::TargetForm),
            (_, [b'/', ..]) => {
                let (path, query) = split_query(raw);
                Ok(Target::Origin { path, query })
            }
            (Method::Options, b"*") => Ok(Target::Asterisk),
            _ => absolute(raw),
        }
    }
}

fn absolute(raw: &[u8]) -> Result<Target<'_>, Refusal> {
    let (scheme, rest) = split_scheme(raw).ok_or(Refusal::TargetForm)?;
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    Host::parse(authority)?;
    let (path, query) = split_query(rest);
    let path = if path.is_empty() { b"/" } else { path };
    Ok(Target::Absolute { scheme, authority, path, query })
}

fn split_scheme(raw: &[u8]) -> Option<(Scheme, &[u8])> {
    [(Scheme::Http, "http://"), (Scheme::Https, "https://")].into_iter().find_map(
        |(scheme, prefix)| {
            let (head, rest) = raw.split_at_checked(prefix.len())?;
            head.eq_ignore_ascii_case(prefix.as_bytes()).then_some((scheme, rest))
        },
    )
}

#[inline]
pub(super) fn split_query(raw: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'?', raw).and_then(|mark| raw.split_at_checked(mark)) {
        Some((path, query)) => (path, query.get(1..)),
        None => (raw, None),
    }
}

/// True for the bytes that may stand in a target: VCHAR without `"`, `#`, `<` and `>`.
///
/// RFC 3986 also excludes `\ ^ { | }` and the grave accent, but the URL standard of the browsers
/// lets them stand unescaped in queries, and as file names they are harmless. A fragment (`#`) is
/// never sent, and the quoting marks are always escaped.
#[inline]
pub(super) const fn is_target_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'#' | b'<' | b'>')
}

/// Whether a target is non-empty and of target bytes only.
#[inline]
pub(super) fn is_target(raw: &[u8]) -> bool {
    const GOOD: [bool; 256] = byte_table!(is_target_byte);
    // Without an early exit: targets are short, and the product needs no branch per byte.
    !raw.is_empty() && raw.iter().fold(true, |good, &byte| good & GOOD[usize::from(byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: Method<'static>, raw: &'static str) -> Result<Target<'static>, Refusal> {
        Target::new(&method, raw.as_bytes())
    }

    #[test]
    fn the_four_forms() {
        assert_eq!(
            of(Method::Get, "/a?b?c"),
            Ok(Target::Origin { path: b"/a", query: Some(b"b?c") })
        );
        assert_eq!(of(Method::Get, "/a?"), Ok(Target::Origin { path: b"/a", query: Some(b"") }));
        assert_eq!(of(Method::Get, "/"), Ok(Target::Origin { path: b"/", query: None }));
        assert_eq!(of(Method::Options, "*"), Ok(Target::Asterisk));
        assert_eq!(of(Method::Connect, "a:443"), Ok(Target::Authority(b"a:443")));
        let absolute = |scheme, path, query| Target::Absolute {
            scheme,
            authority: b"a.example:80",
            path,
            query,
        };
        assert_eq!(
            of(Method::Get, "HTTP://a.example:80/p?q"),
            Ok(absolute(Scheme::Http, b"/p", Some(b"q")))
        );
        assert_eq!(
            of(Method::Get, "https://a.example:80?q"),
            Ok(absolute(Scheme::Https, b"/", Some(b"q")))
        );
        assert_eq!(of(Method::Get, "http://a.example:80"), Ok(absolute(Scheme::Http, b"/", None)));
    }

    #[test]
    fn forms_that_do_not_fit_are_refused() {
        for (method, raw) in [
            (Method::Get, "*"),
            (Method::Get, "a"),
            (Method::Get, "ftp://a/"),
            (Method::Get, "http:/a"),
            (Method::Get, "a:443"),
            (Method::Get, "?q"),
            (Method::Options, "**"),
            (Method::Connect, "a"),
        ] {
            assert_eq!(of(method, raw), Err(Refusal::TargetForm), "{raw}");
        }
        for (method, raw) in [
            (Method::Get, "http:///a"),
            (Method::Get, "http://u@h/"),
            (Method::Connect, "/"),
            (Method::Connect, "http://a:1/"),
        ] {
            assert_eq!(of(method, raw), Err(Refusal::HostInvalid), "{raw}");
        }
    }

    #[test]
    fn bytes_of_targets() {
        assert!(is_target(b"/a-._~:/?[]@!$&'()*+,;=%20|\\^{}`"));
        for bad in [&b""[..], b"/\0", b"/\x7f", b"/ ", b"/\xc3\xa9", b"/#a", b"/<", b"/\"", b"/>"] {
            assert!(!is_target(bad), "{bad:?}");
        }
    }
}
