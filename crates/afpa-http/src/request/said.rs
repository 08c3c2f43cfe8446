//! The readable parts of a refused request, for logs.

use crate::{Request, syntax};

/// The contents of a head, as far as it can be read. Only the method was checked, to be a token: the rest is for logs,
/// which escape what they write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said<'b> {
    /// The method.
    pub method: &'b str,
    /// The request target, or its beginning, if the line has no end.
    pub target: &'b [u8],
    /// A version of HTTP/1.
    pub version: &'static str,
    /// The value of Host, if it was sent.
    pub host: &'b [u8],
    /// The value of Referer.
    pub referer: &'b [u8],
    /// The value of User-Agent.
    pub user_agent: &'b [u8],
}

impl<'b> Said<'b> {
    /// Nothing can be read.
    pub const NOTHING: Said<'static> =
        Said { method: "-", target: b"-", version: "-", host: b"", referer: b"", user_agent: b"" };

    /// Reads the first line of `input` (RFC 9112 section 3), and the fields behind it that a log names. A line that does
    /// not begin with a method and a space is no request line: then nothing is read.
    pub fn in_head(input: &'b [u8]) -> Said<'b> {
        let input = input.strip_prefix(b"\r\n").unwrap_or(input);
        let mut lines = input.split(|byte| *byte == b'\n');
        let line = without_cr(lines.next().unwrap_or_default());
        let Some((method, rest)) = word(line) else { return Said::NOTHING };
        let Some(method) =
            str::from_utf8(method).ok().filter(|method| syntax::is_token(method.as_bytes()))
        else {
            return Said::NOTHING;
        };
        let (target, version) = match rest.iter().rposition(|byte| *byte == b' ') {
            Some(at) => match rest.get(at + 1..) {
                Some(b"HTTP/1.1") => (rest.get(..at).unwrap_or_default(), "HTTP/1.1"),
                Some(b"HTTP/1.0") => (rest.get(..at).unwrap_or_default(), "HTTP/1.0"),
                _ => (rest, "-"),
            },
            None => (rest, "-"),
        };
        let mut said = Said { method, target, version, ..Said::NOTHING };
        for line in lines.map(without_cr).take_while(|line| !line.is_empty()) {
            said.take_field(line);
        }
        said
    }

    /// The contents of a whole request.
    pub fn of(request: &Request<'_, 'b>) -> Said<'b> {
        use crate::Known;
        Said {
            method: request.method.as_str(),
            target: request.raw_target,
            version: request.version.name(),
            host: request.host.as_bytes(),
            referer: request.first(Known::Referer).unwrap_or_default(),
            user_agent: request.first(Known::UserAgent).unwrap_or_default(),
        }
    }

    fn take_field(&mut self, line: &'b [u8]) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { return };
        let (name, value) = line.split_at(colon);
        let value = syntax::trim(value.get(1..).unwrap_or_default());
        let place = match name {
            _ if name.eq_ignore_ascii_case(b"host") => &mut self.host,
            _ if name.eq_ignore_ascii_case(b"referer") => &mut self.referer,
            _ if name.eq_ignore_ascii_case(b"user-agent") => &mut self.user_agent,
            _ => return,
        };
        if place.is_empty() {
            *place = value;
        }
    }
}

fn word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = line.iter().position(|byte| *byte == b' ')?;
    Some((line.get(..space)?, line.get(space + 1..)?))
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(input: &[u8]) -> (&str, &str, &str) {
        let said = Said::in_head(input);
        (said.method, str::from_utf8(said.target).unwrap(), said.version)
    }

    #[test]
    fn what_was_read_of_a_request_line_is_named() {
        for (input, expected) in [
            (&b"GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n"[..], ("GET", "/a?b", "HTTP/1.1")),
            (b"\r\nPUT /a HTTP/1.0\nHost: x\n\n", ("PUT", "/a", "HTTP/1.0")),
            (b"GET /a b HTTP/1.1\r\n", ("GET", "/a b", "HTTP/1.1")),
            (b"GET /a HTTP/9.9\r\n", ("GET", "/a HTTP/9.9", "-")),
            (b"GET /a\r\n", ("GET", "/a", "-")),
            (b"GET /long", ("GET", "/long", "-")),
            (b"\x16\x03\x01 \x02\x00", ("-", "-", "-")),
            (b"garbage\r\n\r\n", ("-", "-", "-")),
            (b"", ("-", "-", "-")),
        ] {
            assert_eq!(line(input), expected, "{}", input.escape_ascii());
        }
    }

    #[test]
    fn fields_that_logs_name_are_read_up_to_the_end_of_the_head() {
        let said = Said::in_head(
            b"GET / HTTP/1.1\r\nhost:  h \r\nHost: second\r\nbad line\r\nUser-Agent: u\r\n\r\nReferer: no",
        );
        assert_eq!((said.host, said.user_agent, said.referer), (&b"h"[..], &b"u"[..], &b""[..]));
    }

    proptest! {
        #[test]
        fn no_input_is_too_odd(input in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Said::in_head(&input);
        }
    }
}
