//! A strict reader of HTTP/1 responses (RFC 9112), for tests: anything that is not exactly right is
//! an error, never repaired.

use std::{fmt, io, io::Read};

/// The kind of the request, as far as it decides how long the response is (RFC 9112, 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Any method whose response may have a body.
    Body,
    /// HEAD: fields of a body, but never the body.
    Head,
}

/// How the end of the body was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// No body by definition: HEAD, 1xx, 204, 304.
    None,
    /// Content-Length.
    Length,
    /// Transfer-Encoding: chunked.
    Chunked,
    /// The peer closed the connection.
    Close,
}

/// One whole response.
#[derive(Clone, PartialEq, Eq)]
pub struct Response {
    /// "HTTP/1.0" is 0, "HTTP/1.1" is 1.
    pub minor_version: u8,
    /// Three-digit status.
    pub status: u16,
    /// Text after the status.
    pub reason: String,
    /// Field lines in their order, values without surrounding white space.
    pub fields: Vec<(String, String)>,
    /// Body without its transfer coding.
    pub body: Vec<u8>,
    /// Field lines behind a chunked body, like `fields`.
    pub trailers: Vec<(String, String)>,
    /// How the end of the body was known.
    pub framing: Framing,
}

/// Why no response could be read.
#[derive(Debug)]
pub enum ReceiveError {
    /// The peer closed, or reset, before the first byte.
    Closed,
    /// The peer closed within a response; here is what came.
    Truncated(Vec<u8>),
    /// Nothing more came within the client's time-out; here is what did.
    TimedOut(Vec<u8>),
    /// It is not HTTP/1.
    Malformed(String),
    /// Any other failure of the socket.
    Io(io::Error),
}

impl fmt::Display for ReceiveError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => write!(out, "closed before the first byte"),
            Self::Truncated(got) => write!(out, "closed early after {}", excerpt(got)),
            Self::TimedOut(got) => write!(out, "timed out after {}", excerpt(got)),
            Self::Malformed(why) => write!(out, "malformed response: {why}"),
            Self::Io(error) => write!(out, "{error}"),
        }
    }
}

impl std::error::Error for ReceiveError {}

impl Response {
    /// The value of a field that may stand only once; `None` when absent.
    ///
    /// # Panics
    /// When there are several lines of it.
    #[track_caller]
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.values(name);
        let first = values.next();
        assert!(values.next().is_none(), "{name} stands more than once in {self:?}");
        first
    }

    /// The values of every line of a field.
    pub fn values<'r>(&'r self, name: &str) -> impl Iterator<Item = &'r str> {
        let lines = self.fields.iter().filter(move |(have, _)| have.eq_ignore_ascii_case(name));
        lines.map(|(_, value)| value.as_str())
    }

    /// Whether a comma-separated field lists `token`, in any case.
    pub fn lists(&self, name: &str, token: &str) -> bool {
        self.values(name)
            .flat_map(|value| value.split(','))
            .any(|item| item.trim().eq_ignore_ascii_case(token))
    }

    /// Whether the response says that the connection closes after it (RFC 9112, 9.3).
    pub fn says_close(&self) -> bool {
        self.lists("connection", "close")
            || self.framing == Framing::Close
            || (self.minor_version == 0 && !self.lists("connection", "keep-alive"))
    }

    /// The body as text.
    ///
    /// # Panics
    /// When it is not UTF-8.
    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a body in UTF-8")
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "HTTP/1.{} {} {}", self.minor_version, self.status, self.reason)?;
        for (name, value) in &self.fields {
            writeln!(out, "{name}: {value}")?;
        }
        write!(out, "\n{} ({:?})", excerpt(&self.body), self.framing)
    }
}

/// Reads one response from `source`, and gives its bytes as well. Bytes beyond it stay in `buffer` for the next.
///
/// # Errors
/// See [`ReceiveError`].
pub fn receive(
    source: &mut impl Read,
    buffer: &mut Vec<u8>,
    asked: Asked,
) -> Result<(Response, Vec<u8>), ReceiveError> {
    let mut input = Input { source, buffer, used: 0 };
    let response = read_response(&mut input, asked)?;
    let used = input.used;
    Ok((response, buffer.drain(..used).collect()))
}

/// At most this much of a body is shown when a test fails.
const SHOWN: usize = 600;

/// `bytes` in readable form, cut to a sensible length.
pub fn excerpt(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(SHOWN)];
    let more = if shown.len() < bytes.len() { "..." } else { "" };
    format!("{} bytes \"{}\"{more}", bytes.len(), shown.escape_ascii())
}

/// The bytes of one response as they come.
struct Input<'i, R> {
    source: &'i mut R,
    buffer: &'i mut Vec<u8>,
    used: usize,
}

impl<R: Read> Input<'_, R> {
    /// Reads more; `false` at the end of the stream.
    fn more(&mut self) -> Result<bool, ReceiveError> {
        let mut piece = [0; 64 * 1024];
        match self.source.read(&mut piece) {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.buffer.extend_from_slice(&piece[..count]);
                Ok(true)
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    Err(ReceiveError::TimedOut(std::mem::take(self.buffer)))
                }
                // A reset counts as a close: the bytes that came before it still count.
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Ok(false),
                io::ErrorKind::Interrupted => Ok(true),
                _ => Err(ReceiveError::Io(error)),
            },
        }
    }

    fn must_have_more(&mut self) -> Result<(), ReceiveError> {
        match self.more()? {
            true => Ok(()),
            false if self.buffer.is_empty() => Err(ReceiveError::Closed),
            false => Err(ReceiveError::Truncated(std::mem::take(self.buffer))),
        }
    }

    /// The next line without its CRLF.
    fn line(&mut self) -> Result<Vec<u8>, ReceiveError> {
        let mut searched = self.used;
        loop {
            let newline = self.buffer[searched..].iter().position(|byte| *byte == b'\n');
            if let Some(offset) = newline {
                let line = self.buffer[self.used..searched + offset].to_vec();
                self.used = searched + offset + 1;
                return match line.split_last() {
                    Some((b'\r', rest)) if !rest.contains(&b'\r') => Ok(rest.to_vec()),
                    _ => malformed(&format!("line without CRLF: {}", excerpt(&line))),
                };
            }
            searched = self.buffer.len();
            self.must_have_more()?;
        }
    }

    fn exactly(&mut self, count: usize) -> Result<Vec<u8>, ReceiveError> {
        while self.buffer.len() - self.used < count {
            self.must_have_more()?;
        }
        let bytes = self.buffer[self.used..self.used + count].to_vec();
        self.used += count;
        Ok(bytes)
    }

    fn until_close(&mut self) -> Result<Vec<u8>, ReceiveError> {
        while self.more()? {}
        let bytes = self.buffer[self.used..].to_vec();
        self.used = self.buffer.len();
        Ok(bytes)
    }
}

fn read_response<R: Read>(
    input: &mut Input<'_, R>,
    asked: Asked,
) -> Result<Response, ReceiveError> {
    let (minor_version, status, reason) = status_line(&input.line()?)?;
    let mut response = Response {
        minor_version,
        status,
        reason,
        fields: field_lines(input)?,
        body: Vec::new(),
        trailers: Vec::new(),
        framing: Framing::None,
    };
    response.framing = framing(&response, asked)?;
    response.body = match response.framing {
        Framing::None => Vec::new(),
        Framing::Length => {
            let length = content_length(&response)?.unwrap_or(0);
            input.exactly(length)?
        }
        Framing::Chunked => {
            let body = chunked(input)?;
            response.trailers = field_lines(input)?;
            body
        }
        Framing::Close => input.until_close()?,
    };
    Ok(response)
}

fn status_line(line: &[u8]) -> Result<(u8, u16, String), ReceiveError> {
    let text = printable(line)?;
    let minor = match text.get(..9) {
        Some("HTTP/1.1 ") => 1,
        Some("HTTP/1.0 ") => 0,
        _ => return malformed(&format!("status line {text:?}")),
    };
    let (digits, reason) = match (text.get(9..12), text.get(12..13), text.get(13..)) {
        (Some(digits), Some(" "), Some(reason)) => (digits, reason),
        _ => return malformed(&format!("status line {text:?}")),
    };
    let three_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    match digits.parse() {
        Ok(status @ 100..600) if three_digits => Ok((minor, status, reason.to_owned())),
        _ => malformed(&format!("status {digits:?}")),
    }
}

/// To the empty line.
fn field_lines<R: Read>(input: &mut Input<'_, R>) -> Result<Vec<(String, String)>, ReceiveError> {
    let mut fields = Vec::new();
    loop {
        let line = input.line()?;
        if line.is_empty() {
            return Ok(fields);
        }
        fields.push(field_line(&line)?);
    }
}

fn field_line(line: &[u8]) -> Result<(String, String), ReceiveError> {
    let text = printable(line)?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    match text.split_once(':') {
        Some((name, value)) if !name.is_empty() && name.bytes().all(is_token) => {
            Ok((name.to_owned(), value.trim_matches([' ', '\t']).to_owned()))
        }
        _ => malformed(&format!("field line {text:?}")),
    }
}

fn framing(response: &Response, asked: Asked) -> Result<Framing, ReceiveError> {
    let codings: Vec<&str> = response.values("transfer-encoding").collect();
    let length = content_length(response)?;
    if !codings.is_empty() && length.is_some() {
        return malformed("Transfer-Encoding and Content-Length together");
    }
    let bodiless = asked == Asked::Head || matches!(response.status, 100..200 | 204 | 304);
    match (codings.as_slice(), length) {
        (_, Some(_)) if matches!(response.status, 100..200 | 204) => {
            malformed("Content-Length in a 1xx or 204 response (RFC 9110, 8.6)")
        }
        _ if bodiless => Ok(Framing::None),
        (["chunked"], _) => Ok(Framing::Chunked),
        ([], Some(_)) => Ok(Framing::Length),
        ([], None) => Ok(Framing::Close),
        _ => malformed(&format!("Transfer-Encoding {codings:?}")),
    }
}

fn content_length(response: &Response) -> Result<Option<usize>, ReceiveError> {
    let values: Vec<&str> = response.values("content-length").collect();
    match values.as_slice() {
        [] => Ok(None),
        [digits] if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().map(Some).or_else(|_| malformed("huge Content-Length"))
        }
        _ => malformed(&format!("Content-Length {values:?}")),
    }
}

/// To the last chunk.
fn chunked<R: Read>(input: &mut Input<'_, R>) -> Result<Vec<u8>, ReceiveError> {
    let mut body = Vec::new();
    loop {
        let line = input.line()?;
        let digits = printable(&line)?;
        let size = match usize::from_str_radix(&digits, 16) {
            Ok(size) if digits.len() <= 8 && !digits.starts_with('+') => size,
            _ => return malformed(&format!("chunk size {digits:?}")),
        };
        if size == 0 {
            return Ok(body);
        }
        body.extend(input.exactly(size)?);
        if !input.line()?.is_empty() {
            return malformed("chunk longer than its size");
        }
    }
}

fn printable(line: &[u8]) -> Result<String, ReceiveError> {
    match line.iter().all(|byte| matches!(byte, b'\t' | 0x20..0x7f)) {
        true => Ok(String::from_utf8_lossy(line).into_owned()),
        false => malformed(&format!("bytes that are no printable ASCII: {}", excerpt(line))),
    }
}

fn malformed<T>(why: &str) -> Result<T, ReceiveError> {
    Err(ReceiveError::Malformed(why.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &str, asked: Asked) -> (Result<Response, ReceiveError>, Vec<u8>) {
        let mut left = Vec::new();
        let result = receive(&mut bytes.as_bytes(), &mut left, asked);
        (result.map(|(response, _)| response), left)
    }

    #[test]
    fn a_response_ends_where_its_length_says() {
        let bytes = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nA:  b \r\n\r\nhiHTTP/1.1 ...";
        let (response, left) = read(bytes, Asked::Body);
        let response = response.expect("a response");
        assert_eq!((response.status, response.text(), response.field("a")), (200, "hi", Some("b")));
        assert_eq!(left, b"HTTP/1.1 ...");
    }

    #[test]
    fn a_response_to_head_and_a_304_have_no_body() {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
        assert_eq!(read(head, Asked::Head).0.expect("a response").framing, Framing::None);
        let unmodified = "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\nnext";
        let (response, left) = read(unmodified, Asked::Body);
        assert_eq!((response.expect("a response").body.len(), left.as_slice()), (0, &b"next"[..]));
    }

    #[test]
    fn chunks_are_joined() {
        let bytes =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
        assert_eq!(read(bytes, Asked::Body).0.expect("a response").body, b"abc");
        let bytes = bytes.replace("0\r\n\r\n", "0\r\nA: b\r\n\r\nnext");
        let (response, left) = read(&bytes, Asked::Body);
        let trailers = response.expect("a response").trailers;
        assert_eq!((&trailers[..], &left[..]), (&[("A".into(), "b".into())][..], &b"next"[..]));
    }

    #[test]
    fn what_is_not_exactly_right_is_refused() {
        for bytes in [
            "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 20 OK\r\n\r\n",
            "HTTP/1.1 200\r\n\r\n",
            "HTTP/2.0 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nBad Name: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
            "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\nx",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\na\r\n0\r\n\r\n",
        ] {
            let result = read(bytes, Asked::Body).0;
            assert!(matches!(result, Err(ReceiveError::Malformed(_))), "{bytes:?}: {result:?}");
        }
    }

    #[test]
    fn an_early_end_is_told_from_no_response() {
        assert!(matches!(read("", Asked::Body).0, Err(ReceiveError::Closed)));
        let cut = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc";
        assert!(matches!(read(cut, Asked::Body).0, Err(ReceiveError::Truncated(_))));
    }
}
