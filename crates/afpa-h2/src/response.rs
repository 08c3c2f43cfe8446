//! From a response of HTTP/1.1 to field blocks and content (RFC 9113 section 8.3.2).
//!
//! The responses come from our own code: a cache object, an error page, a server's response that the proxy has checked.
//! They are read strictly all the same, and what is about a connection never goes out.

use afpa_http::chunked::ChunkedDecoder;
use afpa_http::syntax::{number, trim};

use crate::hpack::encode;

/// This is no response, or it breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no whole response of HTTP/1.1")]
pub struct BadResponse;

/// What a response consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseEvent<'a> {
    /// A head; its field block is [`ResponseReader::block`].
    Head {
        /// Another head follows (RFC 9110 section 15.2).
        interim: bool,
        /// The response has no content.
        end: bool,
    },
    /// Content.
    Content {
        /// Some of it.
        bytes: &'a [u8],
        /// Whether it is the last.
        end: bool,
    },
    /// The trailer section, which ends the response; its field block is [`ResponseReader::block`].
    Trailers,
}

/// Reads one response.
#[derive(Debug)]
pub struct ResponseReader {
    state: State,
    block: Vec<u8>,
    /// The beginning of a head whose end has not come.
    partial: Vec<u8>,
    asked_head: bool,
    may_tunnel: bool,
}

#[derive(Debug)]
enum State {
    Head,
    Length(u64),
    Chunked(Box<ChunkedDecoder>),
    /// Everything up to the end is content.
    UntilEnd,
    Done,
}

/// The longest head that is waited for.
const MOST_HEAD: usize = 256 * 1024;

impl ResponseReader {
    /// For the response to a request; whether its method was HEAD, and whether it asked for another protocol.
    pub fn new(asked_head: bool, may_tunnel: bool) -> Self {
        let (block, partial) = (Vec::new(), Vec::new());
        Self { state: State::Head, block, partial, asked_head, may_tunnel }
    }

    /// Makes it ready for another response; its memory stays.
    pub fn renew(&mut self, asked_head: bool) {
        self.state = State::Head;
        self.partial.clear();
        (self.asked_head, self.may_tunnel) = (asked_head, false);
    }

    /// The field block of what was read last.
    pub fn block(&self) -> &[u8] {
        &self.block
    }

    /// Whether the response has been read to its end.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Whether the response ends where the bytes end.
    pub fn ends_with_bytes(&self) -> bool {
        matches!(self.state, State::UntilEnd)
    }

    /// Content of a known length was sent by another way.
    pub fn skip(&mut self, bytes: u64) {
        if let State::Length(left) = &mut self.state {
            *left = left.saturating_sub(bytes);
            if *left == 0 {
                self.state = State::Done;
            }
        }
    }

    /// Reads from the front of `input`. Returns how many bytes it took, and what they were; all bytes are taken in the
    /// end.
    ///
    /// # Errors
    /// [`BadResponse`]: the response cannot go on.
    pub fn read<'a>(
        &mut self,
        input: &'a [u8],
    ) -> Result<(usize, Option<ResponseEvent<'a>>), BadResponse> {
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
                Ok(content(n, bytes, end))
            }
            State::UntilEnd => Ok(content(input.len(), input, false)),
            State::Chunked(decoder) => {
                let progress = decoder.decode(input).map_err(|_| BadResponse)?;
                let bytes = input.get(progress.data).unwrap_or_default();
                match progress.done {
                    true => Ok((progress.consumed, Some(self.end_of_chunks()))),
                    false => Ok(content(progress.consumed, bytes, false)),
                }
            }
            State::Done => Err(BadResponse),
        }
    }

    /// The end of a chunked response comes behind its content, with a trailer section.
    fn end_of_chunks<'a>(&mut self) -> ResponseEvent<'a> {
        self.block.clear();
        if let State::Chunked(decoder) = std::mem::replace(&mut self.state, State::Done) {
            for (name, value) in decoder.into_trailers().fields() {
                if !is_about_connection(name) {
                    encode::put_field(&mut self.block, name, value);
                }
            }
        }
        match self.block.is_empty() {
            true => ResponseEvent::Content { bytes: b"", end: true },
            false => ResponseEvent::Trailers,
        }
    }

    fn read_head<'a>(
        &mut self,
        input: &[u8],
    ) -> Result<(usize, Option<ResponseEvent<'a>>), BadResponse> {
        if self.partial.is_empty()
            && let Some(end) = end_of_head(input, 0)
        {
            let head = input.get(..end).unwrap_or_default();
            return self.whole_head(head).map(|event| (end, Some(event)));
        }
        // Seldom: the head comes in pieces.
        let before = self.partial.len();
        self.partial.extend_from_slice(input);
        match end_of_head(&self.partial, before.saturating_sub(3)) {
            Some(end) => {
                let mut head = std::mem::take(&mut self.partial);
                head.truncate(end);
                self.whole_head(&head).map(|event| (end - before, Some(event)))
            }
            None if self.partial.len() > MOST_HEAD => Err(BadResponse),
            None => Ok((input.len(), None)),
        }
    }

    /// Encodes a head, and finds out how its content ends (RFC 9112 section 6.3).
    fn whole_head<'a>(&mut self, head: &[u8]) -> Result<ResponseEvent<'a>, BadResponse> {
        let mut lines = Lines(head);
        let status = status_of(lines.next().ok_or(BadResponse)?).ok_or(BadResponse)?;
        let tunnels = status == 101 && self.may_tunnel;
        self.block.clear();
        encode::put_status(&mut self.block, if tunnels { 200 } else { status });
        let (mut length, mut chunked) = (None, false);
        for line in lines.take_while(|line| !line.is_empty()) {
            let colon = line.iter().position(|&byte| byte == b':').ok_or(BadResponse)?;
            let (name, value) = line.split_at_checked(colon).ok_or(BadResponse)?;
            let value = trim(value.get(1..).unwrap_or_default());
            if !is_field(name, value) {
                return Err(BadResponse);
            }
            match name.len() {
                14 if name.eq_ignore_ascii_case(b"content-length") => {
                    length = Some(number(value).ok_or(BadResponse)?);
                }
                17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                    chunked = value.eq_ignore_ascii_case(b"chunked");
                    continue;
                }
                20 if tunnels && name.eq_ignore_ascii_case(b"sec-websocket-accept") => continue,
                _ if is_about_connection(name) => continue,
                _ => {}
            }
            encode::put_field(&mut self.block, name, value);
        }
        let nothing = self.asked_head || matches!(status, 204 | 304);
        let interim = (100..200).contains(&status) && !tunnels;
        self.state = match (nothing, chunked, length) {
            _ if interim && status == 101 => return Err(BadResponse),
            _ if interim => State::Head,
            _ if tunnels => State::UntilEnd,
            (true, _, _) | (false, false, Some(0)) => State::Done,
            (false, true, _) => {
                State::Chunked(Box::new(ChunkedDecoder::default().keeping_trailers()))
            }
            (false, false, Some(length)) => State::Length(length),
            (false, false, None) => State::UntilEnd,
        };
        Ok(ResponseEvent::Head { interim, end: self.is_done() })
    }
}

/// What reading these bytes has brought.
fn content(consumed: usize, bytes: &[u8], end: bool) -> (usize, Option<ResponseEvent<'_>>) {
    let event = ResponseEvent::Content { bytes, end };
    (consumed, (!bytes.is_empty() || end).then_some(event))
}

/// Where a head ends that is looked for from `from` on.
fn end_of_head(input: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let rest = input.get(at..)?;
        at += rest.iter().position(|&byte| byte == b'\r')?;
        if input.get(at..at + 4)? == b"\r\n\r\n" {
            return Some(at + 4);
        }
        at += 1;
    }
}

/// The lines of a head, without their ends. One with a CR alone in it is the last, and keeps it.
#[derive(Clone)]
pub(crate) struct Lines<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|&byte| byte == b'\r')?;
        let (line, rest) = self.0.split_at_checked(end)?;
        let Some(rest) = rest.strip_prefix(b"\r\n") else {
            return Some(std::mem::take(&mut self.0));
        };
        self.0 = rest;
        Some(line)
    }
}

fn status_of(line: &[u8]) -> Option<u16> {
    let rest = line.strip_prefix(b"HTTP/1.1 ").or_else(|| line.strip_prefix(b"HTTP/1.0 "))?;
    let (digits, reason) = rest.split_at_checked(3)?;
    let status = number(digits).filter(|status| (100..1000).contains(status))?;
    let is_line = !reason.iter().any(|byte| matches!(byte, b'\r' | b'\n'));
    let is_whole = is_line && (reason.is_empty() || reason.starts_with(b" "));
    u16::try_from(status).ok().filter(|_| is_whole)
}

fn is_field(name: &[u8], value: &[u8]) -> bool {
    let is_value = value.iter().all(|byte| !matches!(byte, 0 | b'\r' | b'\n'));
    let is_name = name.iter().all(|&byte| byte > b' ' && byte < 0x7f && byte != b':');
    !name.is_empty() && is_name && is_value
}

/// Fields that HTTP/2 has no use for (RFC 9113 section 8.2.2).
fn is_about_connection(name: &[u8]) -> bool {
    const ABOUT: [&[u8]; 5] =
        [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"];
    ABOUT.iter().any(|about| name.eq_ignore_ascii_case(about))
}

#[cfg(test)]
mod tests;
