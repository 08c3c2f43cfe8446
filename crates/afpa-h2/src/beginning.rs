//! By which protocol a client speaks, where both may be on an address: its first bytes tell.

use crate::frame::PREFACE;

/// The protocol that the bytes so far show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// The preface of HTTP/2, or as much of it as no request of HTTP/1.1 has. Also a first line of neither protocol: it
    /// counts as an invalid preface (RFC 9113, section 3.4), for which HTTP/2 has an answer.
    Http2,
    /// A request of HTTP/1.1 or HTTP/1.0.
    Http1,
    /// Both are possible.
    Open,
}

/// `PRI * HTTP/2.0`: a request line of HTTP/1.1 with these bytes would be refused.
const CERTAIN: usize = 14;

impl Beginning {
    /// The protocol of a client whose first bytes are these.
    pub fn of(input: &[u8]) -> Self {
        if input.iter().zip(PREFACE).all(|(byte, known)| byte == known) {
            return if input.len() >= CERTAIN { Beginning::Http2 } else { Beginning::Open };
        }
        let mut lines = input.splitn(2, |byte| *byte == b'\n');
        let (Some(line), Some(_)) = (lines.next(), lines.next()) else { return Beginning::Open };
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let version = line.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
        // An empty line may come before a request (RFC 9112, section 2.2).
        match line.is_empty() || version.starts_with(b"HTTP/") {
            true => Beginning::Http1,
            false => Beginning::Http2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preface_is_known_before_all_of_it_is_there() {
        for len in 0..CERTAIN {
            assert_eq!(Beginning::of(&PREFACE[..len]), Beginning::Open, "{len}");
        }
        for len in CERTAIN..=PREFACE.len() {
            assert_eq!(Beginning::of(&PREFACE[..len]), Beginning::Http2, "{len}");
        }
        assert_eq!(Beginning::of(&[PREFACE, &b"\0\0\0"[..]].concat()), Beginning::Http2);
    }

    #[test]
    fn a_line_that_names_a_version_of_http_is_a_request() {
        for line in
            ["GET / HTTP/1.1\r\n", "GET / HTTP/1.0\n", "PRI * HTTP/1.1\r\n", "x HTTP/9\n", "\r\n"]
        {
            assert_eq!(Beginning::of(line.as_bytes()), Beginning::Http1, "{line:?}");
            let (part, _) = line.split_once('\n').unwrap();
            assert_eq!(Beginning::of(part.as_bytes()), Beginning::Open, "{part:?}");
        }
    }

    #[test]
    fn a_line_that_names_none_is_an_invalid_preface() {
        for line in ["INVALID CONNECTION PREFACE\r\n\r\n", "GET /\r\n", " \n", "PRI *\n", "\0\n"] {
            assert_eq!(Beginning::of(line.as_bytes()), Beginning::Http2, "{line:?}");
        }
    }
}
