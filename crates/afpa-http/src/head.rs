//! Response heads: the papers' immutable header data, with its mutable part at a known place.
//!
//! A head is built once, when an object enters the cache. Sending it copies its bytes, patches the
//! date, and inserts a Connection field where one is needed: no formatting, no search.

use crate::edits::Edits;
use crate::{HttpDate, Status, syntax};

/// The Server field of every response (RFC 9110 section 10.2.4).
pub const SERVER: &str = "afpa";

/// The interim response that lets the client send its body (RFC 9110 section 15.2.1).
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A complete response head, from the status line to the blank line.
///
/// Date stands directly after the status line, so that its position is fixed for the code that patches it,
/// also in the kernel (IBM paper, section 5: mutable header data).
#[derive(Clone, PartialEq, Eq)]
pub struct ResponseHead {
    bytes: Box<[u8]>,
    date_offset: usize,
}

/// The Connection field of a response (RFC 9112 section 9.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// No field: HTTP/1.1 stays open by default.
    Implied,
    /// `Connection: close`.
    Close,
    /// `Connection: keep-alive`, for HTTP/1.0 clients that asked for it.
    KeepAlive,
}

impl Connection {
    /// The field, if there is one, and the empty line that ends a head.
    pub const fn ending(self) -> &'static [u8] {
        match self {
            Connection::Implied => b"\r\n",
            Connection::Close => b"Connection: close\r\n\r\n",
            Connection::KeepAlive => b"Connection: keep-alive\r\n\r\n",
        }
    }
}

impl ResponseHead {
    /// Begins a head with status line, Date and Server.
    pub fn build(status: Status) -> HeadBuilder {
        HeadBuilder::new(status)
    }

    /// The complete head, with the date of the epoch and no Connection field.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where the 29 bytes of the date stand in [`bytes`](ResponseHead::bytes).
    #[inline]
    pub fn date_offset(&self) -> usize {
        self.date_offset
    }

    /// The complete head as [`bytes`](ResponseHead::bytes) has it, with this Connection field.
    pub fn with(&self, connection: Connection) -> Vec<u8> {
        let mut head = self.bytes[..self.bytes.len() - 2].to_vec();
        head.extend_from_slice(connection.ending());
        head
    }

    /// The head with the changes that are the same for all requests for its URL. Date stays where it is: nothing before it
    /// is changed.
    #[must_use]
    pub fn edited(self, edits: Edits<'_>, status: Status, kind: &str) -> ResponseHead {
        let mut bytes = self.bytes.into_vec();
        edits.apply_shared(&mut bytes, 0, status.code(), Some(kind.as_bytes()));
        ResponseHead { bytes: bytes.into_boxed_slice(), ..self }
    }

    /// Most bytes that [`write`](ResponseHead::write) can append.
    #[inline]
    pub fn max_len(&self) -> usize {
        self.bytes.len() + Connection::KeepAlive.ending().len()
    }

    /// Appends the head with the given date and Connection field. Nothing is formatted, and nothing
    /// allocated as long as `out` has room.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>, date: &HttpDate, connection: Connection) {
        let (before, rest) = self.bytes.split_at(self.date_offset);
        let after = rest.get(HttpDate::LEN..rest.len() - 2).unwrap_or_default();
        out.reserve(self.max_len());
        out.extend_from_slice(before);
        out.extend_from_slice(date.as_bytes());
        out.extend_from_slice(after);
        out.extend_from_slice(connection.ending());
    }
}

impl std::fmt::Debug for ResponseHead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.bytes))
    }
}

/// Builds a [`ResponseHead`] field by field.
#[derive(Debug)]
pub struct HeadBuilder {
    bytes: Vec<u8>,
    date_offset: usize,
}

impl HeadBuilder {
    fn new(status: Status) -> HeadBuilder {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(b"HTTP/1.1 ");
        bytes.extend_from_slice(itoa::Buffer::new().format(status.code()).as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(status.reason().as_bytes());
        bytes.extend_from_slice(b"\r\nDate: ");
        let date_offset = bytes.len();
        bytes.extend_from_slice(HttpDate::new(0).as_bytes());
        bytes.extend_from_slice(b"\r\n");
        HeadBuilder { bytes, date_offset }.field("Server", SERVER)
    }

    /// Adds a field line.
    ///
    /// Values can come from file names and requests. A byte that may not stand in a value (CR, LF
    /// and the other controls) becomes a space, so that a value never becomes a second field or
    /// a second response; building cannot fail, because the callers have no better answer. Names
    /// are literals: one that is no token is a mistake in this program, caught in debug builds
    /// and left out in others.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl AsRef<[u8]>) -> HeadBuilder {
        debug_assert!(syntax::is_token(name.as_bytes()), "{name:?} is no field name");
        if syntax::is_token(name.as_bytes()) {
            let safe = |&byte: &u8| if syntax::is_field_byte(byte) { byte } else { b' ' };
            self.bytes.extend_from_slice(name.as_bytes());
            self.bytes.extend_from_slice(b": ");
            self.bytes.extend(value.as_ref().iter().map(safe));
            self.bytes.extend_from_slice(b"\r\n");
        }
        self
    }

    /// Adds a field line if there is a value.
    #[must_use]
    pub fn field_if(self, name: &str, value: Option<impl AsRef<[u8]>>) -> HeadBuilder {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
    }

    /// Adds whole field lines, each with its CRLF.
    #[must_use]
    pub fn lines(mut self, lines: &[u8]) -> HeadBuilder {
        debug_assert!(lines.is_empty() || lines.ends_with(b"\r\n"), "whole lines");
        self.bytes.extend_from_slice(lines);
        self
    }

    /// Adds Content-Length (RFC 9110 section 8.6). Leave it out of 1xx, 204 and 304.
    #[must_use]
    pub fn content_length(self, length: u64) -> HeadBuilder {
        self.field("Content-Length", itoa::Buffer::new().format(length))
    }

    /// Adds Last-Modified (RFC 9110 section 8.8.2), in seconds since the Unix epoch.
    #[must_use]
    pub fn last_modified(self, unix_seconds: u64) -> HeadBuilder {
        self.field("Last-Modified", HttpDate::new(unix_seconds).as_bytes())
    }

    /// Ends the head.
    pub fn finish(mut self) -> ResponseHead {
        self.bytes.extend_from_slice(b"\r\n");
        ResponseHead { bytes: self.bytes.into_boxed_slice(), date_offset: self.date_offset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(head: &ResponseHead, connection: Connection) -> String {
        let mut out = b"earlier".to_vec();
        head.write(&mut out, &HttpDate::new(784_111_777), connection);
        assert!(out.len() <= head.max_len() + "earlier".len());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_head_is_written_with_date_and_connection() {
        let head = ResponseHead::build(Status::OK)
            .field("Content-Type", "text/html; charset=utf-8")
            .content_length(512)
            .last_modified(0)
            .field_if("Vary", None::<&str>)
            .field_if("ETag", Some("\"1\""))
            .finish();
        let text = |connection: &str| {
            format!(
                "earlierHTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: afpa\r\n\
                 Content-Type: text/html; charset=utf-8\r\nContent-Length: 512\r\n\
                 Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT\r\nETag: \"1\"\r\n{connection}\r\n"
            )
        };
        assert_eq!(written(&head, Connection::Implied), text(""));
        assert_eq!(written(&head, Connection::Close), text("Connection: close\r\n"));
        assert_eq!(written(&head, Connection::KeepAlive), text("Connection: keep-alive\r\n"));
        let epoch = head.bytes().get(head.date_offset()..).unwrap();
        assert!(epoch.starts_with(HttpDate::new(0).as_bytes()));
    }

    #[test]
    fn nothing_is_allocated_when_there_is_room() {
        let head = ResponseHead::build(Status::NOT_MODIFIED).finish();
        let mut out = Vec::with_capacity(head.max_len());
        let capacity = out.capacity();
        head.write(&mut out, &HttpDate::new(1), Connection::KeepAlive);
        assert_eq!(out.capacity(), capacity);
    }

    #[test]
    fn every_status_makes_a_head_that_a_client_can_read() {
        for status in (100..600).filter_map(Status::new) {
            let head = ResponseHead::build(status).finish();
            let mut fields = [httparse::EMPTY_HEADER; 8];
            let mut parsed = httparse::Response::new(&mut fields);
            let complete = httparse::Status::Complete(head.bytes().len());
            assert_eq!(parsed.parse(head.bytes()), Ok(complete));
            assert_eq!(parsed.code, Some(status.code()));
            assert_eq!(parsed.reason, Some(status.reason()));
            assert_eq!(parsed.headers[0].name, "Date");
        }
    }

    proptest! {
        #[test]
        fn no_value_becomes_a_second_line(value in proptest::collection::vec(any::<u8>(), 0..64)) {
            let head = ResponseHead::build(Status::FOUND).field("Location", &value).finish();
            let lines = head.bytes().iter().filter(|&&byte| byte == b'\n').count();
            let returns = head.bytes().iter().filter(|&&byte| byte == b'\r').count();
            prop_assert_eq!((lines, returns), (5, 5));
        }
    }
}
