//! Two answers to one request, compared byte by byte.

use std::fmt;

/// Bytes of an IMF-fixdate (RFC 9110 section 5.6.7).
const DATE_LENGTH: usize = 29;
const DATE: &[u8] = b"\r\nDate: ";
const AGE: &[u8] = b"\r\nAge: ";
/// How long a kept answer is still fresh (RFC 9211 section 2.2.3), as this cache writes it.
const TTL: &[u8] = b"\r\nCache-Status: afpa; hit; ttl=";
/// Bytes of each answer that one line of a log shows.
const SHOWN: usize = 48;

/// The different answers of the kernel and the server to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The request's head.
    pub request: Vec<u8>,
    /// The kernel's answer.
    pub kernel: Vec<u8>,
    /// The server's answer.
    pub server: Vec<u8>,
    /// The first byte that is not the same.
    pub at: usize,
}

/// The first byte in which two answers differ, the values of `Date`, `Age` and `ttl` aside.
pub(crate) fn first_difference(kernel: &[u8], server: &[u8]) -> Option<usize> {
    let (kernel, server) = (timeless(kernel), timeless(server));
    let same = kernel.iter().zip(&server).take_while(|(one, other)| one == other).count();
    (same < kernel.len().max(server.len())).then_some(same)
}

/// The answer with the value of its Date replaced by zeros, and those of its Age and of the `ttl` in Cache-Status left out: by
/// the next second they may have another digit. Its head ends with the first empty line.
fn timeless(answer: &[u8]) -> Vec<u8> {
    let mut answer = answer.to_vec();
    if let Some((value, head)) = value_of(&answer, DATE)
        && value + DATE_LENGTH <= head
    {
        answer[value..value + DATE_LENGTH].fill(b'0');
    }
    for name in [TTL, AGE] {
        if let Some((value, head)) = value_of(&answer, name) {
            let digits = answer[value..head].iter().take_while(|byte| byte.is_ascii_digit());
            let digits = digits.count();
            answer.drain(value..value + digits);
        }
    }
    answer
}

/// The places where the value of a field begins and where the head ends. `name` is the start of the field's line.
fn value_of(answer: &[u8], name: &[u8]) -> Option<(usize, usize)> {
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(answer.len());
    let mut lines = answer[..head].windows(name.len());
    let line = lines.position(|window| window.eq_ignore_ascii_case(name))?;
    Some((line + name.len(), head))
}

impl Difference {
    /// Everything, for a person: the request and both answers, with escapes for what cannot be printed.
    pub fn report(&self) -> String {
        format!(
            "{self}\n\n--- request\n{}\n--- the kernel\n{}\n--- the server\n{}\n",
            self.request.escape_ascii(),
            self.kernel.escape_ascii(),
            self.server.escape_ascii()
        )
    }

    fn line(&self) -> &[u8] {
        self.request.split(|byte| *byte == b'\r').next().unwrap_or_default()
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let around = |answer: &[u8]| {
            let rest = answer.get(self.at..).unwrap_or_default();
            rest[..rest.len().min(SHOWN)].escape_ascii().to_string()
        };
        write!(
            f,
            "{}: from byte {} on the kernel sent \"{}\", and the server says \"{}\"",
            self.line().escape_ascii(),
            self.at,
            around(&self.kernel),
            around(&self.server)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(date: &str, rest: &str) -> Vec<u8> {
        format!("HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Length: 5\r\n\r\n{rest}").into_bytes()
    }

    const ONE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const OTHER: &str = "Mon, 07 Nov 1994 18:49:38 GMT";

    #[test]
    fn the_date_may_differ_and_nothing_else() {
        assert_eq!(first_difference(&answer(ONE, "hello"), &answer(OTHER, "hello")), None);
        let body = answer(ONE, "").len();
        assert_eq!(first_difference(&answer(ONE, "hello"), &answer(ONE, "hallo")), Some(body + 1));
        assert_eq!(first_difference(&answer(ONE, "hello"), &answer(ONE, "hell")), Some(body + 4));
        assert_eq!(first_difference(&answer(ONE, ""), &answer(ONE, "h")), Some(body));
        assert_eq!(first_difference(b"HTTP/1.1 200", b"HTTP/1.1 304"), Some(9));
    }

    #[test]
    fn the_age_may_have_another_digit() {
        let with = |age: &str| answer(&format!("{ONE}\r\nAge: {age}"), "hello");
        assert_eq!(first_difference(&with("9"), &with("10")), None);
        assert!(first_difference(&with("9"), &with("9, 10")).is_some());
    }

    #[test]
    fn what_is_left_of_a_lifetime_may_have_a_digit_less() {
        let with =
            |status: &str| answer(&format!("{ONE}\r\nCache-Status: {status}\r\nAge: 9"), "hello");
        assert_eq!(first_difference(&with("afpa; hit; ttl=100"), &with("afpa; hit; ttl=99")), None);
        for other in ["afpa; hit; ttl=99; x", "afpa; fwd=stale", "other; hit; ttl=100"] {
            assert!(first_difference(&with("afpa; hit; ttl=100"), &with(other)).is_some());
        }
    }

    #[test]
    fn a_date_in_the_content_counts() {
        let with = |date| answer(ONE, &format!("\r\nDate: {date}"));
        assert!(first_difference(&with(ONE), &with(OTHER)).is_some());
    }

    #[test]
    fn a_difference_tells_where_it_begins() {
        let difference = Difference {
            request: b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(),
            kernel: b"HTTP/1.1 200 OK".to_vec(),
            server: b"HTTP/1.1 404 Not Found".to_vec(),
            at: 9,
        };
        let line = difference.to_string();
        assert!(line.starts_with("GET /a HTTP/1.1: from byte 9 on the kernel sent \"200 OK\""));
        assert!(difference.report().contains("--- the server\nHTTP/1.1 404 Not Found"));
    }
}
