//! Messages of HTTP/1.1 that go out by HTTP/2: the common part of the readers of [responses](crate::response) and of
//! [requests](crate::client::request).
//!
//! The readers are strict, though the messages are our own. Fields about a connection never go out.

use std::borrow::Cow;
use std::marker::PhantomData;

use afpa_http::chunked::ChunkedDecoder;
use afpa_http::syntax::{number, trim};

use crate::code::FieldCode;
use crate::hpack::encode::Hpack;

/// This is no message, or it breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadMessage;

/// A part of a message.
pub(crate) enum MessagePart<'a> {
    /// A whole head. The caller encodes it, and sets the state by which its content ends.
    Head(Cow<'a, [u8]>),
    Content {
        bytes: &'a [u8],
        end: bool,
    },
    /// The trailer section; its field block is that of the message.
    Trailers,
}

/// Reads one message.
#[derive(Debug)]
pub(crate) struct MessageReader<C = Hpack> {
    pub(crate) state: State,
    /// The field block of the head or trailer section that was read last.
    pub(crate) block: Vec<u8>,
    /// The beginning of a head whose end has not come.
    partial: Vec<u8>,
    /// The length of the content, if the head gives one.
    length: Option<u64>,
    chunked: bool,
    code: PhantomData<C>,
}

/// The input that has to come next.
#[derive(Debug)]
pub(crate) enum State {
    Head,
    Length(u64),
    Chunked(Box<ChunkedDecoder>),
    /// Everything up to the end is content.
    UntilEnd,
    Done,
}

/// The longest head that is waited for.
const MOST_HEAD: usize = 256 * 1024;

impl<C: FieldCode> MessageReader<C> {
    pub(crate) fn new() -> Self {
        let (block, partial) = (Vec::new(), Vec::new());
        let state = State::Head;
        Self { state, block, partial, length: None, chunked: false, code: PhantomData }
    }

    /// Makes it ready for another message; its memory stays.
    pub(crate) fn renew(&mut self) {
        self.state = State::Head;
        self.partial.clear();
    }

    pub(crate) fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Content of a known length was sent by another way.
    pub(crate) fn skip(&mut self, bytes: u64) {
        if let State::Length(left) = &mut self.state {
            *left = left.saturating_sub(bytes);
            if *left == 0 {
                self.state = State::Done;
            }
        }
    }

    /// Reads from the front of `input`. Returns how many bytes it took, and the part that they are, if any.
    pub(crate) fn read<'a>(
        &mut self,
        input: &'a [u8],
    ) -> Result<(usize, Option<MessagePart<'a>>), BadMessage> {
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
                Ok(content(n, input.get(..n).unwrap_or_default(), end))
            }
            State::UntilEnd => Ok(content(input.len(), input, false)),
            State::Chunked(decoder) => {
                let progress = decoder.decode(input).map_err(|_| BadMessage)?;
                let bytes = input.get(progress.data).unwrap_or_default();
                match progress.done {
                    true => Ok((progress.consumed, Some(self.end_of_chunks()))),
                    false => Ok(content(progress.consumed, bytes, false)),
                }
            }
            State::Done => Err(BadMessage),
        }
    }

    fn read_head<'a>(
        &mut self,
        input: &'a [u8],
    ) -> Result<(usize, Option<MessagePart<'a>>), BadMessage> {
        if self.partial.is_empty()
            && let Some(end) = end_of_head(input, 0)
        {
            let head = Cow::Borrowed(input.get(..end).unwrap_or_default());
            return Ok((end, Some(MessagePart::Head(head))));
        }
        // Seldom: the head comes in pieces.
        let before = self.partial.len();
        self.partial.extend_from_slice(input);
        match end_of_head(&self.partial, before.saturating_sub(3)) {
            Some(end) => {
                let mut head = std::mem::take(&mut self.partial);
                head.truncate(end);
                Ok((end - before, Some(MessagePart::Head(Cow::Owned(head)))))
            }
            None if self.partial.len() > MOST_HEAD => Err(BadMessage),
            None => Ok((input.len(), None)),
        }
    }

    /// Begins to encode a head.
    pub(crate) fn begin_head(&mut self) {
        self.block.clear();
        C::begin(&mut self.block);
        (self.length, self.chunked) = (None, false);
    }

    /// Encodes the status of a response.
    pub(crate) fn put_status(&mut self, status: u16) {
        C::put_status(&mut self.block, status);
    }

    /// Encodes a field of a head. Notes the length and the coding of the content if the field gives them.
    pub(crate) fn put_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), BadMessage> {
        match name.len() {
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                self.length = Some(number(value).ok_or(BadMessage)?);
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                self.chunked = value.eq_ignore_ascii_case(b"chunked");
                return Ok(());
            }
            _ if is_about_connection(name) => return Ok(()),
            _ => {}
        }
        C::put_field(&mut self.block, name, value);
        Ok(())
    }

    /// How the content ends as far as the head has said (RFC 9112 section 6.3).
    pub(crate) fn announced(&self) -> Option<State> {
        match (self.chunked, self.length) {
            (true, _) => {
                Some(State::Chunked(Box::new(ChunkedDecoder::default().keeping_trailers())))
            }
            (false, length) => length.map(|length| match length {
                0 => State::Done,
                length => State::Length(length),
            }),
        }
    }

    /// The end of chunked content comes behind it, with a trailer section.
    fn end_of_chunks<'a>(&mut self) -> MessagePart<'a> {
        self.block.clear();
        let mut has_trailers = false;
        if let State::Chunked(decoder) = std::mem::replace(&mut self.state, State::Done) {
            for (name, value) in decoder.into_trailers().fields() {
                if !is_about_connection(name) {
                    if !std::mem::replace(&mut has_trailers, true) {
                        C::begin(&mut self.block);
                    }
                    C::put_field(&mut self.block, name, value);
                }
            }
        }
        match has_trailers {
            false => MessagePart::Content { bytes: b"", end: true },
            true => MessagePart::Trailers,
        }
    }
}

/// The part that these bytes are, if any.
fn content(consumed: usize, bytes: &[u8], end: bool) -> (usize, Option<MessagePart<'_>>) {
    let part = MessagePart::Content { bytes, end };
    (consumed, (!bytes.is_empty() || end).then_some(part))
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

/// The first line of a head, and the fields behind it.
pub(crate) fn split_head(head: &[u8]) -> Result<(&[u8], Fields<'_>), BadMessage> {
    let (line, rest) = split_line(head).ok_or(BadMessage)?;
    Ok((line, Fields(rest)))
}

/// The first line without its end, and the rest. A CR alone ends no line.
fn split_line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|&byte| byte == b'\r')?;
    let (line, rest) = text.split_at_checked(end)?;
    Some((line, rest.strip_prefix(b"\r\n")?))
}

/// The names and values of a head, up to the blank line.
#[derive(Clone)]
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(&'a [u8], &'a [u8]), BadMessage>;

    fn next(&mut self) -> Option<Self::Item> {
        let text = std::mem::take(&mut self.0);
        match split_line(text) {
            Some(([], _)) => None,
            Some((line, rest)) => {
                self.0 = rest;
                Some(split_field(line).ok_or(BadMessage))
            }
            None => (!text.is_empty()).then_some(Err(BadMessage)),
        }
    }
}

fn split_field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let (name, value) = line.split_at_checked(colon)?;
    let value = trim(value.get(1..).unwrap_or_default());
    let is_value = value.iter().all(|byte| !matches!(byte, 0 | b'\r' | b'\n'));
    let is_name = name.iter().all(|&byte| byte > b' ' && byte < 0x7f);
    (!name.is_empty() && is_name && is_value).then_some((name, value))
}

/// Fields that HTTP/2 has no use for (RFC 9113 section 8.2.2).
fn is_about_connection(name: &[u8]) -> bool {
    const ABOUT: [&[u8]; 5] =
        [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"];
    ABOUT.iter().any(|about| name.eq_ignore_ascii_case(about))
}
