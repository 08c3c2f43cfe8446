//! Holds a response to what was expected, piece by piece. No I/O.

use crate::workload::Request;

/// A head is not longer.
const LONGEST_HEAD: usize = 16 << 10;
const MOST_FIELDS: usize = 64;

/// Reads one response after the other.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// A head of which more is to come.
    head: Vec<u8>,
    state: Expecting,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Expecting {
    #[default]
    Head,
    Body {
        /// Bytes of content so far.
        at: u64,
        /// All of them; `None`: the connection's end tells.
        length: Option<u64>,
        keep: bool,
    },
}

/// The state of a response after some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The response is not complete.
    More,
    /// The response is complete, and right.
    Done {
        /// The server keeps the connection for another request.
        keep: bool,
        /// Bytes of content.
        content: u64,
    },
}

impl Reader {
    /// Nothing of a response has come yet.
    pub(crate) fn is_fresh(&self) -> bool {
        self.state == Expecting::Head && self.head.is_empty()
    }

    /// Takes bytes that have arrived.
    ///
    /// # Errors
    ///
    /// The error in the response, in words. The connection cannot be used any more.
    pub(crate) fn take(&mut self, bytes: &[u8], wanted: &Request) -> Result<Progress, String> {
        if self.state != Expecting::Head {
            return self.take_content(bytes, wanted);
        }
        if self.head.is_empty() {
            // The usual case: the head comes whole, and is read where it lies.
            return match self.take_head(bytes, wanted)? {
                Some(length) => self.take_content(bytes.get(length..).unwrap_or_default(), wanted),
                None => {
                    self.head.extend_from_slice(bytes);
                    Ok(Progress::More)
                }
            };
        }
        let mut head = std::mem::take(&mut self.head);
        head.extend_from_slice(bytes);
        match self.take_head(&head, wanted)? {
            Some(length) => self.take_content(head.get(length..).unwrap_or_default(), wanted),
            None => {
                self.head = head;
                Ok(Progress::More)
            }
        }
    }

    /// The server has closed its side.
    ///
    /// # Errors
    ///
    /// When that leaves the response incomplete.
    pub(crate) fn end(&mut self, wanted: &Request) -> Result<Progress, String> {
        match std::mem::take(self).state {
            Expecting::Body { at, length: None, .. } => {
                let missing = wanted.body.filter(|body| body.length() != at);
                match missing {
                    Some(body) => Err(format!("{at} bytes of {} ({})", body.length(), wanted.path)),
                    None => Ok(Progress::Done { keep: false, content: at }),
                }
            }
            Expecting::Body { at, length: Some(length), .. } => {
                Err(format!("cut short: {at} bytes of {length} ({})", wanted.path))
            }
            Expecting::Head => Err(format!("closed without an answer ({})", wanted.path)),
        }
    }

    /// Length of the head, when it is complete.
    fn take_head(&mut self, bytes: &[u8], wanted: &Request) -> Result<Option<usize>, String> {
        let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        let parsed = response.parse(bytes).map_err(|error| format!("no HTTP response: {error}"))?;
        let httparse::Status::Complete(head) = parsed else {
            return match bytes.len() > LONGEST_HEAD {
                true => Err(format!("a head of more than {LONGEST_HEAD} bytes")),
                false => Ok(None),
            };
        };
        let status = response.code.unwrap_or(0);
        if status != wanted.status {
            return Err(format!("status {status}, not {} ({})", wanted.status, wanted.path));
        }
        let framing = Framing::of(response.headers, response.version == Some(1))?;
        let length = if matches!(status, 204 | 304) { Some(0) } else { framing.length };
        if let (Some(length), Some(body)) = (length, wanted.body)
            && length != body.length()
        {
            return Err(format!("{length} bytes, not {} ({})", body.length(), wanted.path));
        }
        let keep = framing.keep && length.is_some();
        self.state = Expecting::Body { at: 0, length, keep };
        Ok(Some(head))
    }

    fn take_content(&mut self, bytes: &[u8], wanted: &Request) -> Result<Progress, String> {
        let Expecting::Body { at, length, keep } = self.state else { return Ok(Progress::More) };
        let end = at.saturating_add(bytes.len() as u64);
        if length.is_some_and(|length| end > length) {
            return Err(format!("bytes behind the response's end ({})", wanted.path));
        }
        if wanted.body.is_some_and(|body| !body.check(at, bytes)) {
            return Err(format!("wrong content at byte {at} or later ({})", wanted.path));
        }
        if length == Some(end) {
            self.state = Expecting::Head;
            return Ok(Progress::Done { keep, content: end });
        }
        self.state = Expecting::Body { at: end, length, keep };
        Ok(Progress::More)
    }
}

/// The length of a response and its effect on the connection (RFC 9112 section 6.3).
struct Framing {
    length: Option<u64>,
    keep: bool,
}

impl Framing {
    fn of(fields: &[httparse::Header<'_>], version_1_1: bool) -> Result<Self, String> {
        let mut framing = Self { length: None, keep: version_1_1 };
        for field in fields {
            let value = field.value.trim_ascii();
            if field.name.eq_ignore_ascii_case("content-length") {
                let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                framing.length = Some(number.ok_or("Content-Length is no number")?);
            } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
                return Err("a chunked response to a static request".into());
            } else if field.name.eq_ignore_ascii_case("content-encoding") {
                return Err("a compressed response that was not asked for".into());
            } else if field.name.eq_ignore_ascii_case("connection") {
                framing.keep = value.eq_ignore_ascii_case(b"keep-alive")
                    || (framing.keep && !value.eq_ignore_ascii_case(b"close"));
            }
        }
        Ok(framing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Object;

    const LENGTH: usize = 300;

    proptest::proptest! {
        /// A server may send any bytes, in pieces of any length.
        #[test]
        fn no_bytes_break_it(
            kind in 0..3,
            noise in proptest::collection::vec(0_u8.., 0..200),
            at in 0..400_usize,
            piece in 1..50_usize,
        ) {
            let mut bytes = match kind {
                0 => Vec::new(),
                1 => good(),
                _ => b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n".to_vec(),
            };
            let at = at.min(bytes.len());
            bytes.splice(at..at, noise);
            let mut reader = Reader::default();
            let _ = bytes.chunks(piece).try_for_each(|piece| reader.take(piece, &request()).map(drop));
            let _ = reader.end(&request());
        }
    }

    fn request() -> Request {
        Request::get(&Object::new("/a", LENGTH as u64))
    }

    fn content() -> Vec<u8> {
        let mut bytes = Vec::new();
        request().body.unwrap().write(&mut bytes).unwrap();
        bytes
    }

    fn response(head: &str, content: &[u8]) -> Vec<u8> {
        [head.as_bytes(), b"\r\n\r\n", content].concat()
    }

    fn good() -> Vec<u8> {
        response(&format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}"), &content())
    }

    fn take_all(bytes: &[u8]) -> Result<Progress, String> {
        Reader::default().take(bytes, &request())
    }

    const DONE: Progress = Progress::Done { keep: true, content: LENGTH as u64 };

    #[test]
    fn a_right_response_is_right_in_any_pieces() {
        for piece in [1, 2, 7, 40, 41, 42, 1000] {
            let (mut reader, bytes) = (Reader::default(), good());
            for _ in 0..3 {
                assert!(reader.is_fresh());
                let mut pieces = bytes.chunks(piece).peekable();
                while let Some(piece) = pieces.next() {
                    let expected = if pieces.peek().is_some() { Progress::More } else { DONE };
                    assert_eq!(reader.take(piece, &request()), Ok(expected));
                }
            }
        }
    }

    #[test]
    fn wrong_ones_are_found() {
        let mut flipped = good();
        *flipped.last_mut().unwrap() ^= 1;
        let long = [good(), b"x".to_vec()].concat();
        let wrong = [
            (flipped, "wrong content"),
            (long, "behind"),
            (response("HTTP/1.1 404 Not Found\r\nContent-Length: 300", &content()), "status 404"),
            (response("HTTP/1.1 200 OK\r\nContent-Length: 299", &content()[..299]), "299 bytes"),
            (response("HTTP/1.1 200 OK\r\nContent-Length: -1", b""), "no number"),
            (response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", b"0\r\n\r\n"), "chunked"),
            (response("HTTP/1.1 200 OK\r\nContent-Encoding: gzip", b""), "compressed"),
            (b"SSH-2.0\r\n\r\n".to_vec(), "no HTTP"),
            (format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(20_000)).into_bytes(), "a head of"),
        ];
        for (bytes, words) in wrong {
            let found = take_all(&bytes).unwrap_err();
            assert!(found.contains(words), "{found} does not say {words}");
        }
    }

    #[test]
    fn the_connection_s_end_is_right_only_where_it_tells_the_length() {
        let mut reader = Reader::default();
        let bytes = response("HTTP/1.0 200 OK", &content());
        assert_eq!(reader.take(&bytes, &request()), Ok(Progress::More));
        let done = Progress::Done { keep: false, content: LENGTH as u64 };
        assert_eq!(reader.end(&request()), Ok(done));
        for short in [0, 5, 40, 60, good().len() - 1] {
            let mut reader = Reader::default();
            assert_eq!(reader.take(&good()[..short], &request()), Ok(Progress::More));
            assert!(reader.end(&request()).is_err(), "{short}");
        }
        assert_eq!(reader.take(&bytes[..100], &request()), Ok(Progress::More));
        assert!(reader.end(&request()).is_err());
    }

    #[test]
    fn a_304_has_no_content_whatever_it_says() {
        let wanted = request().if_modified();
        let bytes = response("HTTP/1.1 304 Not Modified\r\nContent-Length: 300", b"");
        let done = Progress::Done { keep: true, content: 0 };
        assert_eq!(Reader::default().take(&bytes, &wanted), Ok(done));
    }

    #[test]
    fn persistence_is_told_by_version_and_field() {
        let keeps = |head: &str| {
            let head = format!("{head}\r\nContent-Length: {LENGTH}");
            matches!(take_all(&response(&head, &content())), Ok(Progress::Done { keep: true, .. }))
        };
        assert!(keeps("HTTP/1.1 200 OK"));
        assert!(!keeps("HTTP/1.0 200 OK"));
        assert!(keeps("HTTP/1.0 200 OK\r\nConnection: Keep-Alive"));
        assert!(!keeps("HTTP/1.1 200 OK\r\nconnection: close"));
    }
}
