//! A response of the attached server, as the bytes that arrived (RFC 9112).
//!
//! Parsing is strict, because the kernel sends these bytes to other clients: a response that says its end
//! in another way than by one Content-Length or by chunks, or one that only a lenient parser would accept, is
//! an error.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use afpa_http::chunked::{ChunkLimits, ChunkedDecoder};
use afpa_http::date;

/// The method of the request, on which the length of the response depends (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// GET
    Get,
    /// HEAD: no content, even if the fields announce some.
    Head,
}

/// One whole response.
#[derive(Clone, Debug)]
pub struct Answer {
    bytes: Vec<u8>,
    head: usize,
    status: u16,
    fields: Vec<(Range<usize>, Range<usize>)>,
    /// The content without the chunked coding, if the answer had that coding.
    unchunked: Option<Vec<u8>>,
    /// Expires tells of a time that goes on, as Date does.
    moves: bool,
}

/// Why bytes are not a response. The connection cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A response of HTTP/1.0.
    #[error(
        "answer is one of HTTP/1.0, which ends each connection (let the server speak HTTP/1.1: \
         python3 -m http.server does with --protocol HTTP/1.1)"
    )]
    Old,
    /// Not `HTTP/1.1 NNN reason`.
    #[error("status line is not one of HTTP/1.1")]
    StatusLine,
    /// An interim response, which the request did not ask for.
    #[error("interim response")]
    Interim,
    /// A line that is not `name: value`, or does not end with CRLF.
    #[error("malformed field line")]
    Field,
    /// The head is longer than any that could be pinned.
    #[error("head is too long")]
    TooLong,
    /// Delimited by the end of the connection, contradictory, or malformed.
    #[error("length is given neither by one Content-Length nor by chunks")]
    Unframed,
}

/// Longest head that is read. Longer ones could never be pinned.
const HEAD_MAX: usize = 16 << 10;
/// Longest content that is read.
const BODY_MAX: usize = 1 << 20;

impl Answer {
    /// Reads the response at the start of `input`; `None`: more bytes are needed.
    ///
    /// # Errors
    /// When the bytes are no response, or the end of the response cannot be known.
    pub fn read(input: &[u8], asked: Asked) -> Result<Option<Self>, Malformed> {
        let Some(head) = input.windows(4).position(|window| window == b"\r\n\r\n") else {
            return if input.len() > HEAD_MAX { Err(Malformed::TooLong) } else { Ok(None) };
        };
        let head = head + 4;
        if head > HEAD_MAX {
            return Err(Malformed::TooLong);
        }
        let mut lines = lines(input.get(..head - 2).unwrap_or_default());
        let status = status(input.get(lines.next().unwrap_or_default()).unwrap_or_default())?;
        let fields = lines.map(|line| field(input, line)).collect::<Result<Vec<_>, _>>()?;
        let mut answer =
            Self { bytes: Vec::new(), head, status, fields, unchunked: None, moves: false };
        let length = match answer.framing(input, asked)? {
            Framing::Length(length) => length,
            Framing::Chunked => match unchunk(input.get(head..).unwrap_or_default())? {
                Some((length, content)) => {
                    answer.unchunked = Some(content);
                    length
                }
                None => return Ok(None),
            },
        };
        let Some(bytes) = input.get(..head + length) else { return Ok(None) };
        answer.bytes = bytes.to_vec();
        Ok(Some(answer))
    }

    /// The same answer, but comparisons with it leave out the dates of Expires as well.
    pub fn with_moving_expires(self) -> Self {
        Self { moves: true, ..self }
    }

    /// Three digits.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Status line to blank line.
    pub fn head(&self) -> &[u8] {
        self.bytes.get(..self.head).unwrap_or_default()
    }

    /// The bytes after the head, as the server sent them; empty for HEAD and 304.
    pub fn body(&self) -> &[u8] {
        self.bytes.get(self.head..).unwrap_or_default()
    }

    /// The content: the bytes after the head, without the chunked coding.
    pub fn content(&self) -> &[u8] {
        self.unchunked.as_deref().unwrap_or_else(|| self.body())
    }

    /// Whether the content came in chunks.
    pub fn is_chunked(&self) -> bool {
        self.unchunked.is_some()
    }

    /// A number that two answers share if they are the same response except for Date, and that differs otherwise.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.undated_head().hash(&mut hasher);
        self.body().hash(&mut hasher);
        hasher.finish()
    }

    /// Bytes of head and content.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Never true: there is at least a status line.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The values of all lines of a field, in their order.
    pub fn values<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        self.lines(name).filter_map(|range| self.bytes.get(range.clone()))
    }

    /// The value of a field, if it has exactly one line.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        let mut values = self.values(name);
        values.next().filter(|_| values.next().is_none())
    }

    /// Where its value stands in the head.
    pub(crate) fn lone(&self, name: &str) -> Option<Range<usize>> {
        let mut lines = self.lines(name);
        let line = lines.next()?.clone();
        lines.next().is_none().then_some(line)
    }

    /// Names and values of all lines.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
        let text = |range: &Range<usize>| self.bytes.get(range.clone()).unwrap_or_default();
        self.fields.iter().map(move |(name, value)| (text(name), text(value)))
    }

    /// The Date in seconds since the epoch, if there is exactly one that can be written anew.
    pub fn date(&self) -> Option<u64> {
        self.date_offset()?;
        date::parse(self.field("date")?)
    }

    /// Whether the field is there.
    pub fn has(&self, name: &str) -> bool {
        self.values(name).next().is_some()
    }

    /// The offset of the 29 bytes of Date in the head, if there is exactly one Date.
    pub fn date_offset(&self) -> Option<usize> {
        Some(self.lone("date").filter(|range| range.len() == DATE_LENGTH)?.start)
    }

    /// Whether both are the same response, except for Date.
    pub fn same(&self, other: &Self) -> bool {
        self.same_head(other) && self.body() == other.body()
    }

    /// Whether both heads are the same, except for Date.
    pub fn same_head(&self, other: &Self) -> bool {
        self.undated_head() == other.undated_head()
    }

    /// Whether it is the same response, except for Date, on a connection that ends with it: `Connection: close` stands
    /// where the other one may have `Connection: keep-alive` and `Keep-Alive`, and nothing else differs.
    pub fn same_but_closing(&self, other: &Self, with_body: bool) -> bool {
        let lines = |answer: &Self| {
            let (head, _) = answer.undated_head();
            let text = String::from_utf8_lossy(&head).into_owned();
            let is_of_connection = |line: &&str| {
                let line = line.to_ascii_lowercase();
                line.starts_with("connection:") || line.starts_with("keep-alive:")
            };
            text.split("\r\n")
                .filter(|line| !is_of_connection(line))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let closes =
            self.field("connection").is_some_and(|value| value.eq_ignore_ascii_case(b"close"));
        closes
            && !self.has("keep-alive")
            && lines(self) == lines(other)
            && (!with_body || self.body() == other.body())
    }

    /// The head with a blank Date, and what else moves, and where these stand.
    fn undated_head(&self) -> (Vec<u8>, [Option<usize>; 2]) {
        let mut head = self.head().to_vec();
        let expires = self.lone("expires").filter(|range| self.moves && range.len() == DATE_LENGTH);
        let places = [self.date_offset(), expires.map(|range| range.start)];
        for at in places.into_iter().flatten() {
            if let Some(date) = head.get_mut(at..at + DATE_LENGTH) {
                date.fill(0);
            }
        }
        (head, places)
    }

    fn lines<'a, 'n>(
        &'a self,
        name: &'n str,
    ) -> impl Iterator<Item = &'a Range<usize>> + use<'a, 'n> {
        let named = move |have: &Range<usize>| {
            let have = self.bytes.get(have.clone()).unwrap_or_default();
            have.eq_ignore_ascii_case(name.as_bytes())
        };
        self.fields.iter().filter(move |(have, _)| named(have)).map(|(_, value)| value)
    }

    /// How the end of the content is marked (RFC 9112, 6.3). `input` still holds the bytes of the fields.
    fn framing(&self, input: &[u8], asked: Asked) -> Result<Framing, Malformed> {
        let values = |name: &'static [u8]| {
            self.fields.iter().filter_map(move |(have, value)| {
                let have = input.get(have.clone())?;
                have.eq_ignore_ascii_case(name).then(|| input.get(value.clone()))?
            })
        };
        if asked == Asked::Head || matches!(self.status, 204 | 304) {
            return Ok(Framing::Length(0));
        }
        let only = |name| {
            let mut values = values(name);
            values.next().filter(|_| values.next().is_none())
        };
        let is_there = |name| values(name).next().is_some();
        if is_there(b"transfer-encoding") {
            let chunked = only(b"transfer-encoding") == Some(&b"chunked"[..]);
            let alone = !is_there(b"content-length");
            return if chunked && alone { Ok(Framing::Chunked) } else { Err(Malformed::Unframed) };
        }
        let length = only(b"content-length").ok_or(Malformed::Unframed)?;
        let digits = !length.is_empty() && length.iter().all(u8::is_ascii_digit);
        let length = str::from_utf8(length).ok().filter(|_| digits);
        let length = length.and_then(|length| length.parse().ok());
        let length = length.filter(|length| *length <= BODY_MAX).ok_or(Malformed::Unframed)?;
        Ok(Framing::Length(length))
    }
}

enum Framing {
    Length(usize),
    Chunked,
}

/// Decodes the chunks at the start of `input`: their length with all framing, and their content; `None`: more bytes
/// are needed. Extensions and trailer fields are refused: a server that sends a file needs none.
fn unchunk(input: &[u8]) -> Result<Option<(usize, Vec<u8>)>, Malformed> {
    let mut decoder = ChunkedDecoder::new(ChunkLimits { extensions: 0, trailers: 2 });
    let (mut at, mut content) = (0, Vec::new());
    loop {
        let rest = input.get(at..).unwrap_or_default();
        let progress = decoder.decode(rest).map_err(|_| Malformed::Unframed)?;
        content.extend_from_slice(rest.get(progress.data).unwrap_or_default());
        at += progress.consumed;
        match (progress.done, progress.consumed) {
            _ if content.len() > BODY_MAX => return Err(Malformed::Unframed),
            (true, _) => return Ok(Some((at, content))),
            (false, 0) => return Ok(None),
            (false, _) => {}
        }
    }
}

/// Bytes of an IMF-fixdate.
pub(crate) const DATE_LENGTH: usize = 29;

/// Ranges of the lines, without their CRLF; `head` ends with one.
fn lines(head: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = head.get(at..).filter(|rest| !rest.is_empty())?;
        let end = rest.windows(2).position(|pair| pair == b"\r\n").unwrap_or(rest.len());
        let line = at..at + end;
        at += end + 2;
        Some(line)
    })
}

fn status(line: &[u8]) -> Result<u16, Malformed> {
    if line.starts_with(b"HTTP/1.0 ") {
        return Err(Malformed::Old);
    }
    let code = line.strip_prefix(b"HTTP/1.1 ").and_then(|rest| rest.split_first_chunk::<3>());
    let (code, rest) = code.ok_or(Malformed::StatusLine)?;
    let plain = rest.first().is_none_or(|byte| *byte == b' ') && rest.iter().all(is_text);
    let code = str::from_utf8(code).ok().filter(|code| code.bytes().all(|b| b.is_ascii_digit()));
    match code.and_then(|code| code.parse().ok()) {
        Some(100..=199) => Err(Malformed::Interim),
        Some(status @ 200..=599) if plain => Ok(status),
        _ => Err(Malformed::StatusLine),
    }
}

/// Name and value; a name is a token (RFC 9110 section 5.6.2) right before its colon.
fn field(input: &[u8], line: Range<usize>) -> Result<(Range<usize>, Range<usize>), Malformed> {
    let text = input.get(line.clone()).unwrap_or_default();
    let colon = text.iter().position(|byte| *byte == b':').ok_or(Malformed::Field)?;
    let (name, value) = (&text[..colon], &text[colon + 1..]);
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    if name.is_empty() || !name.iter().all(token) || !value.iter().all(is_text) {
        return Err(Malformed::Field);
    }
    let blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    let before = value.iter().take_while(blank).count();
    let after = value.iter().rev().take_while(blank).count().min(value.len() - before);
    let start = line.start + colon + 1;
    Ok((line.start..line.start + colon, start + before..line.end - after))
}

fn is_text(byte: &u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'~' | 0x80..)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "HTTP/1.1 200 OK\r\nServer: x\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 2\r\n\r\nhi";

    #[test]
    fn a_response_is_whole_or_not_there_yet() {
        for cut in 0..WHOLE.len() {
            assert!(Answer::read(&WHOLE.as_bytes()[..cut], Asked::Get).unwrap().is_none(), "{cut}");
        }
        let more = format!("{WHOLE}HTTP/1.1 404");
        let answer = Answer::read(more.as_bytes(), Asked::Get).unwrap().unwrap();
        assert_eq!((answer.status(), answer.body(), answer.len()), (200, &b"hi"[..], WHOLE.len()));
        assert_eq!(answer.field("SERVER"), Some(&b"x"[..]));
        assert_eq!(&answer.head()[answer.date_offset().unwrap()..][..3], b"Sun");
    }

    #[test]
    fn heads_without_content() {
        let (head, _) = WHOLE.split_at(WHOLE.len() - 2);
        assert_eq!(Answer::read(head.as_bytes(), Asked::Head).unwrap().unwrap().len(), head.len());
        let not_modified = "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n";
        let answer = Answer::read(not_modified.as_bytes(), Asked::Get).unwrap().unwrap();
        assert_eq!((answer.status(), answer.body()), (304, &b""[..]));
        assert_eq!(answer.date_offset(), None);
    }

    #[test]
    fn chunks_are_kept_as_they_came_and_their_content_is_known() {
        let whole =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n3\r\n hu\r\n0\r\n\r\n";
        for cut in 0..whole.len() {
            assert!(Answer::read(&whole.as_bytes()[..cut], Asked::Get).unwrap().is_none(), "{cut}");
        }
        let more = format!("{whole}HTTP/1.1 404");
        let answer = Answer::read(more.as_bytes(), Asked::Get).unwrap().unwrap();
        assert_eq!((answer.content(), answer.len()), (&b"hi hu"[..], whole.len()));
        assert!(answer.body().starts_with(b"2\r\nhi\r\n") && answer.body().ends_with(b"0\r\n\r\n"));
        let other = whole.replace("2\r\nhi\r\n3\r\n hu", "5\r\nhi hu");
        let other = Answer::read(other.as_bytes(), Asked::Get).unwrap().unwrap();
        assert!(other.content() == answer.content() && !other.same(&answer), "cut otherwise");
        assert_ne!(other.digest(), answer.digest());
    }

    #[test]
    fn the_date_alone_may_differ() {
        let read = |text: &str| Answer::read(text.as_bytes(), Asked::Get).unwrap().unwrap();
        let one = read(WHOLE);
        assert!(one.same(&read(&WHOLE.replace("08:49:37", "23:00:00"))));
        assert_eq!(one.digest(), read(&WHOLE.replace("08:49:37", "23:00:00")).digest());
        assert!(!one.same(&read(&WHOLE.replace("\nhi", "\nho"))));
        assert!(!one.same(&read(&WHOLE.replace("Server: x", "Server: y"))));
    }

    #[test]
    fn what_needs_leniency_is_refused() {
        let table = [
            ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", Malformed::Old),
            ("HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n", Malformed::StatusLine),
            ("HTTP/1.1 2000\r\nContent-Length: 0\r\n\r\n", Malformed::StatusLine),
            ("HTTP/1.1 100 Continue\r\n\r\n", Malformed::Interim),
            ("HTTP/1.1 200 OK\r\nA : b\r\n\r\n", Malformed::Field),
            ("HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n", Malformed::Field),
            ("HTTP/1.1 200 OK\r\nA: b\nB: c\r\n\r\n", Malformed::Field),
            ("HTTP/1.1 200 OK\r\n: b\r\n\r\n", Malformed::Field),
            ("HTTP/1.1 200 OK\r\n\r\n", Malformed::Unframed),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", Malformed::Unframed),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
                Malformed::Unframed,
            ),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx", Malformed::Unframed),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n\r\n",
                Malformed::Unframed,
            ),
            ("HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na", Malformed::Unframed),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\na", Malformed::Unframed),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
                Malformed::Unframed,
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\na",
                Malformed::Unframed,
            ),
        ];
        for (text, expected) in table {
            assert_eq!(Answer::read(text.as_bytes(), Asked::Get).err(), Some(expected), "{text:?}");
        }
        let endless = vec![b'x'; HEAD_MAX + 1];
        assert_eq!(Answer::read(&endless, Asked::Get).err(), Some(Malformed::TooLong));
    }
}
