//! From a request of HTTP/1.1 to a field block and content (RFC 9113 section 8.3.1).
//!
//! The requests come from our own code, which has written them anew from what was parsed. They are read strictly all the
//! same, and what is about a connection never goes out.

use afpa_http::chunked::ChunkedDecoder;
use afpa_http::syntax::{number, trim};

use crate::hpack::encode;
use crate::request::is_word;
use crate::response::Lines;

/// This is no request of HTTP/1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no request of HTTP/1.1 that can be sent by HTTP/2")]
pub struct BadRequest;

/// What a request consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// The head; its field block is [`RequestReader::block`].
    Head {
        /// The request has no content.
        end: bool,
    },
    /// Content.
    Content {
        /// Some of it.
        bytes: &'a [u8],
        /// Whether it is the last.
        end: bool,
    },
    /// The trailer section, which ends the request; its field block is [`RequestReader::block`].
    Trailers,
}

/// Reads one request.
#[derive(Debug)]
pub struct RequestReader {
    state: State,
    block: Vec<u8>,
    /// The beginning of a head whose end has not come.
    partial: Vec<u8>,
    scheme: &'static str,
    asks_head: bool,
}

#[derive(Debug)]
enum State {
    Head,
    Length(u64),
    Chunked(Box<ChunkedDecoder>),
    Done,
}

/// The longest head that is waited for.
const MOST_HEAD: usize = 256 * 1024;

impl RequestReader {
    /// For a request to a server that is reached by TLS or not.
    pub fn new(secure: bool) -> Self {
        let scheme = if secure { "https" } else { "http" };
        Self {
            state: State::Head,
            block: Vec::new(),
            partial: Vec::new(),
            scheme,
            asks_head: false,
        }
    }

    /// The field block of what was read last.
    pub fn block(&self) -> &[u8] {
        &self.block
    }

    /// Whether the request's method is HEAD.
    pub fn asks_head(&self) -> bool {
        self.asks_head
    }

    /// Reads from the front of `input`. Returns how many bytes it took, and what they were; all bytes are taken in the
    /// end.
    ///
    /// # Errors
    /// [`BadRequest`]: the request cannot go on.
    pub fn read<'a>(&mut self, input: &'a [u8]) -> Result<(usize, Option<Part<'a>>), BadRequest> {
        if input.is_empty() {
            return Ok((0, None));
        }
        match &mut self.state {
            State::Head => self.read_head(input),
            State::Length(left) => {
                let n = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                *left -= n as u64;
                let end = *left == 0;
                if end {
                    self.state = State::Done;
                }
                let bytes = input.get(..n).unwrap_or_default();
                Ok((n, Some(Part::Content { bytes, end })))
            }
            State::Chunked(decoder) => {
                let progress = decoder.decode(input).map_err(|_| BadRequest)?;
                let bytes = input.get(progress.data).unwrap_or_default();
                if progress.done {
                    return Ok((progress.consumed, Some(self.end_of_chunks())));
                }
                let part = Part::Content { bytes, end: false };
                Ok((progress.consumed, (!bytes.is_empty()).then_some(part)))
            }
            State::Done => Err(BadRequest),
        }
    }

    /// The end of a chunked request comes behind its content, with a trailer section.
    fn end_of_chunks<'a>(&mut self) -> Part<'a> {
        self.block.clear();
        if let State::Chunked(decoder) = std::mem::replace(&mut self.state, State::Done) {
            for (name, value) in decoder.into_trailers().fields() {
                if !is_about_connection(name) {
                    encode::put_field(&mut self.block, name, value);
                }
            }
        }
        match self.block.is_empty() {
            true => Part::Content { bytes: b"", end: true },
            false => Part::Trailers,
        }
    }

    fn read_head<'a>(&mut self, input: &[u8]) -> Result<(usize, Option<Part<'a>>), BadRequest> {
        if self.partial.is_empty()
            && let Some(end) = end_of_head(input, 0)
        {
            let part = self.whole_head(input.get(..end).unwrap_or_default())?;
            return Ok((end, Some(part)));
        }
        // Seldom: the head comes in pieces.
        let before = self.partial.len();
        self.partial.extend_from_slice(input);
        match end_of_head(&self.partial, before.saturating_sub(3)) {
            Some(end) => {
                let mut head = std::mem::take(&mut self.partial);
                head.truncate(end);
                let part = self.whole_head(&head)?;
                Ok((end - before, Some(part)))
            }
            None if self.partial.len() > MOST_HEAD => Err(BadRequest),
            None => Ok((input.len(), None)),
        }
    }

    /// Encodes a head, and finds out how its content ends (RFC 9112 section 6.3).
    fn whole_head<'a>(&mut self, head: &[u8]) -> Result<Part<'a>, BadRequest> {
        let mut lines = Lines(head);
        let mut words = lines.next().unwrap_or_default().split(|&byte| byte == b' ');
        let (Some(method), Some(target), Some(b"HTTP/1.1"), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(BadRequest);
        };
        if !is_word(method) || !is_word(target) || !target.starts_with(b"/") {
            return Err(BadRequest);
        }
        self.asks_head = method == b"HEAD";
        let fields = lines.take_while(|line| !line.is_empty()).map(split_field);
        let host = fields.clone().flatten().find(|(name, _)| name.eq_ignore_ascii_case(b"host"));
        self.block.clear();
        let pseudo: [(&[u8], &[u8]); 4] = [
            (b":method", method),
            (b":scheme", self.scheme.as_bytes()),
            (b":authority", host.map_or(b"", |(_, host)| host)),
            (b":path", target),
        ];
        for (name, value) in pseudo {
            if !value.is_empty() {
                encode::put_field(&mut self.block, name, value);
            }
        }
        let (mut length, mut chunked) = (None, false);
        for field in fields {
            let (name, value) = field.ok_or(BadRequest)?;
            match name.len() {
                4 if name.eq_ignore_ascii_case(b"host") => continue,
                14 if name.eq_ignore_ascii_case(b"content-length") => {
                    length = Some(number(value).ok_or(BadRequest)?);
                }
                17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                    chunked = value.eq_ignore_ascii_case(b"chunked");
                }
                _ => {}
            }
            if !is_about_connection(name) {
                encode::put_field(&mut self.block, name, value);
            }
        }
        self.state = match (chunked, length) {
            (true, _) => State::Chunked(Box::new(ChunkedDecoder::default().keeping_trailers())),
            (false, None | Some(0)) => State::Done,
            (false, Some(length)) => State::Length(length),
        };
        Ok(Part::Head { end: matches!(self.state, State::Done) })
    }
}

/// The name and the value of a line.
fn split_field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let (name, value) = line.split_at_checked(colon)?;
    let value = trim(value.get(1..).unwrap_or_default());
    let is_value = value.iter().all(|byte| !matches!(byte, 0 | b'\r' | b'\n'));
    let is_name = name.iter().all(|&byte| byte > b' ' && byte < 0x7f);
    (!name.is_empty() && is_name && is_value).then_some((name, value))
}

/// Where a head ends that is looked for from `from` on.
fn end_of_head(input: &[u8], from: usize) -> Option<usize> {
    let rest = input.get(from..)?;
    let at = rest.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some(from + at + 4)
}

/// Fields that HTTP/2 has no use for (RFC 9113 section 8.2.2).
fn is_about_connection(name: &[u8]) -> bool {
    const ABOUT: [&[u8]; 5] =
        [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"];
    ABOUT.iter().any(|about| name.eq_ignore_ascii_case(about))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hpack::Decoder;

    fn fields(block: &[u8]) -> String {
        let mut said = String::new();
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        Decoder::default()
            .decode(block, |name, value| said += &format!("{}={}\n", text(name), text(value)))
            .unwrap();
        said
    }

    /// The parts of a request that comes in pieces of this length.
    fn parts(input: &[u8], piece: usize) -> Result<String, BadRequest> {
        let (mut reader, mut said) = (RequestReader::new(true), String::new());
        let mut content = Vec::new();
        for mut rest in input.chunks(piece) {
            while !rest.is_empty() {
                let (n, part) = reader.read(rest)?;
                match part {
                    Some(Part::Head { end }) => {
                        said += &format!("{}{end}\n", fields(reader.block()));
                    }
                    Some(Part::Content { bytes, end }) => {
                        content.extend_from_slice(bytes);
                        if end {
                            said += &format!("{}|\n", content.escape_ascii());
                        }
                    }
                    Some(Part::Trailers) => {
                        let trailers = fields(reader.block());
                        said += &format!("{}|{trailers}", content.escape_ascii());
                    }
                    None => {}
                }
                rest = &rest[n..];
            }
        }
        Ok(said)
    }

    #[test]
    fn a_request_in_any_pieces_is_the_same() {
        let get =
            b"GET /a?b HTTP/1.1\r\nHost: h:80\r\nX-A: 1\r\nConnection: TE\r\nTE: trailers\r\n\r\n";
        let put = b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello";
        let post = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\
                     2\r\nhe\r\n3\r\nllo\r\n0\r\nX-Sum: 1\r\n\r\n";
        for piece in [1, 2, 3, 7, 1000] {
            assert_eq!(
                parts(get, piece).unwrap(),
                ":method=GET\n:scheme=https\n:authority=h:80\n:path=/a?b\nx-a=1\nte=trailers\ntrue\n"
            );
            assert_eq!(
                parts(put, piece).unwrap(),
                ":method=PUT\n:scheme=https\n:authority=h\n:path=/\ncontent-length=5\nfalse\nhello|\n"
            );
            assert_eq!(
                parts(post, piece).unwrap(),
                ":method=POST\n:scheme=https\n:authority=h\n:path=/\nfalse\nhello|x-sum=1\n"
            );
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for bad in [
            &b"GET /  HTTP/1.1\r\n\r\n"[..],
            b"GET / HTTP/1.0\r\n\r\n",
            b"GET * HTTP/1.1\r\n\r\n",
            b"GET /a\rb HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\nHost: h\r\n\r\n",
            b"GET / HTTP/1.1\r\nno field\r\n\r\n",
            b"GET / HTTP/1.1\r\nA: b\rC: d\r\n\r\n",
            b"GET / HTTP/1.1\r\nA: b\nC: d\r\n\r\n",
            b"GET / HTTP/1.1\r\nA: b\r\r\n\r\n",
            b"GET / HTTP/1.1\r\nA: b\n\r\n\r\n",
            b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: h\r\n\r\nmore",
            b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        ] {
            assert_eq!(parts(bad, 1000), Err(BadRequest), "{}", bad.escape_ascii());
        }
    }
}
