//! Cookies of requests: as RFC 6265 reads them, and as servers do that read them otherwise.

use afpa_http::Request;

use crate::policy::CachePolicy;

/// Appends the values of the cookies that belong to the key. A line in which a server may find another value is
/// appended as a whole.
pub(crate) fn put_cookies(policy: &CachePolicy, request: &Request<'_, '_>, out: &mut Vec<u8>) {
    for name in &policy.cookies {
        out.push(b'\n');
        for (_, value) in cookies(request).filter(|(known, _)| *known == name.as_bytes()) {
            // It ends each cookie, so it stands in no value.
            out.push(b';');
            out.extend_from_slice(value);
        }
    }
    if policy.cookies.is_empty() {
        return;
    }
    for line in lines(request) {
        if policy.cookies.iter().any(|name| is_doubtful(line, name.as_bytes())) {
            out.push(DOUBTFUL);
            out.extend_from_slice(line);
        }
    }
}

/// Begins a line that goes into the key as a whole. It stands in no field value.
const DOUBTFUL: u8 = b'\r';

fn lines<'b>(request: &Request<'_, 'b>) -> impl Iterator<Item = &'b [u8]> {
    let lines = request.fields().filter(|(name, _)| name.eq_ignore_ascii_case("cookie"));
    lines.map(|(_, value)| value)
}

/// Names and values of the cookies of a request (RFC 6265 section 5.4).
fn cookies<'b>(request: &Request<'_, 'b>) -> impl Iterator<Item = (&'b [u8], &'b [u8])> {
    lines(request).flat_map(pairs)
}

fn pairs(line: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    line.split(|&byte| byte == b';').filter_map(|cookie| {
        let cookie = cookie.trim_ascii();
        let at = cookie.iter().position(|&byte| byte == b'=')?;
        Some((cookie.get(..at)?, cookie.get(at + 1..)?))
    })
}

/// The names of all that some server may read as a cookie: some split at commas and white space, and some at quotes.
pub(crate) fn possible_names<'b>(request: &Request<'_, 'b>) -> impl Iterator<Item = &'b [u8]> {
    lines(request).flat_map(words)
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = |byte: &u8| b";,\" \t".contains(byte);
    line.split(ends).map(|word| word.split(|&byte| byte == b'=').next().unwrap_or_default())
}

/// Whether servers may read another value of this cookie from a line than RFC 6265 does: there is more that looks like it, or it
/// stands where some see the inside of a quoted string.
fn is_doubtful(line: &[u8], name: &[u8]) -> bool {
    let possible = words(line).filter(|word| word.eq_ignore_ascii_case(name)).count();
    if possible == 0 {
        return false;
    }
    let mut quotes = 0;
    let mut plain = 0;
    for cookie in line.split(|&byte| byte == b';') {
        let is_it = pairs(cookie).any(|(known, _)| known == name);
        plain += usize::from(is_it && quotes % 2 == 0);
        quotes += cookie.iter().filter(|byte| **byte == b'"').count();
    }
    plain != possible || line.windows(2).any(|pair| pair == b"\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use afpa_http::{FieldSlots, RequestLimits, request};

    fn key(cookies: &str) -> Vec<u8> {
        let head = format!("GET / HTTP/1.1\r\nHost: x\r\nCookie: {cookies}\r\n\r\n");
        let mut slots = FieldSlots::new();
        let request = request::parse(head.as_bytes(), &mut slots, &RequestLimits::default());
        let policy = CachePolicy { cookies: vec!["lang".into()], ..CachePolicy::default() };
        let mut key = Vec::new();
        put_cookies(&policy, &request.expect("valid").expect("whole"), &mut key);
        key
    }

    #[test]
    fn what_a_server_may_read_otherwise_counts_as_a_whole() {
        for (cookies, plain) in [
            ("lang=de; id=1", "lang=de"),
            ("id=1,2; lang=de", "lang=de"),
            ("id={\"lang\":1}; slang=1", "id=1"),
            ("prefs={\"a\":1}; lang=de", "lang=de"),
        ] {
            let same = !cookies.contains("\"lang\"");
            assert_eq!(key(cookies) == key(plain), same, "{cookies}");
        }
        for cookies in [
            "a=\"x; lang=de; b=\"",
            "a=\"x\\\"; lang=de; y=\"",
            "lang =de",
            "LANG=de",
            "id=1,lang=de",
            "id=1 lang=de",
            "lang=en; lang=de",
            "lang",
            "lang=\"de\"",
        ] {
            for plain in ["lang=de", "lang=en", "id=1"] {
                assert_ne!(key(cookies), key(plain), "{cookies}");
            }
        }
    }
}
