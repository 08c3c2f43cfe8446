//! From a response of HTTP/1.1 to field blocks and content (RFC 9113 section 8.3.2).
//!
//! The responses come from our own code: a cache object, an error page, a server's response that the proxy has checked.
//! They are read strictly all the same, and fields about a connection never go out.

use afpa_http::syntax::number;

use crate::code::FieldCode;
use crate::hpack::encode::Hpack;
use crate::message::{BadMessage, MessagePart, MessageReader, State, split_head};

/// This is no response, or it breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no whole response of HTTP/1.1")]
pub struct BadResponse;

impl From<BadMessage> for BadResponse {
    fn from(_: BadMessage) -> Self {
        Self
    }
}

/// A part of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseEvent<'a> {
    /// A head; its field block is [`CodedReader::block`].
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
    /// The trailer section, which ends the response; its field block is [`CodedReader::block`].
    Trailers,
}

/// Reads one response, and writes its field sections for HTTP/2.
pub type ResponseReader = CodedReader<Hpack>;

/// Reads one response, and writes its field sections in a code.
#[derive(Debug)]
pub struct CodedReader<C> {
    message: MessageReader<C>,
    asked_head: bool,
    may_tunnel: bool,
}

impl<C: FieldCode> CodedReader<C> {
    /// For the response to a request; whether its method was HEAD, and whether it asked for another protocol.
    pub fn new(asked_head: bool, may_tunnel: bool) -> Self {
        Self { message: MessageReader::new(), asked_head, may_tunnel }
    }

    /// Makes it ready for another response; its memory stays.
    pub fn renew(&mut self, asked_head: bool) {
        self.message.renew();
        (self.asked_head, self.may_tunnel) = (asked_head, false);
    }

    /// The field block of the head or trailer section that was read last.
    pub fn block(&self) -> &[u8] {
        &self.message.block
    }

    /// Whether the response has been read to its end.
    pub fn is_done(&self) -> bool {
        self.message.is_done()
    }

    /// Whether the response ends where the bytes end.
    pub fn ends_with_bytes(&self) -> bool {
        matches!(self.message.state, State::UntilEnd)
    }

    /// The head was sent by another way: so much content follows.
    pub fn skip_head(&mut self, content: u64) {
        self.message.state = match content {
            0 => State::Done,
            length => State::Length(length),
        };
    }

    /// Bytes of content that are left, if the head has told the length.
    pub fn left(&self) -> Option<u64> {
        match self.message.state {
            State::Length(left) => Some(left),
            _ => None,
        }
    }

    /// Content of a known length was sent by another way.
    pub fn skip(&mut self, bytes: u64) {
        self.message.skip(bytes);
    }

    /// Reads from the front of `input`. Returns how many bytes it took, and the part that they are, if any; all bytes
    /// are taken in the end.
    ///
    /// # Errors
    /// [`BadResponse`]: the response cannot go on.
    pub fn read<'a>(
        &mut self,
        input: &'a [u8],
    ) -> Result<(usize, Option<ResponseEvent<'a>>), BadResponse> {
        let (n, part) = self.message.read(input)?;
        let event = match part {
            Some(MessagePart::Head(head)) => Some(self.whole_head(&head)?),
            Some(MessagePart::Content { bytes, end }) => {
                Some(ResponseEvent::Content { bytes, end })
            }
            Some(MessagePart::Trailers) => Some(ResponseEvent::Trailers),
            None => None,
        };
        Ok((n, event))
    }

    /// Encodes a head, and finds out how its content ends (RFC 9112 section 6.3).
    fn whole_head<'a>(&mut self, head: &[u8]) -> Result<ResponseEvent<'a>, BadResponse> {
        let (line, fields) = split_head(head)?;
        let status = status_of(line).ok_or(BadResponse)?;
        let tunnels = status == 101 && self.may_tunnel;
        let message = &mut self.message;
        message.begin_head();
        message.put_status(if tunnels { 200 } else { status });
        for field in fields {
            let (name, value) = field?;
            if !(tunnels && name.eq_ignore_ascii_case(b"sec-websocket-accept")) {
                message.put_field(name, value)?;
            }
        }
        let interim = (100..200).contains(&status) && !tunnels;
        message.state = match status {
            101 if tunnels => State::UntilEnd,
            101 => return Err(BadResponse),
            // The client would take it for a tunnel.
            200..=299 if self.may_tunnel => return Err(BadResponse),
            _ if interim => State::Head,
            204 | 304 => State::Done,
            _ if self.asked_head => State::Done,
            _ => message.announced().unwrap_or(State::UntilEnd),
        };
        Ok(ResponseEvent::Head { interim, end: self.is_done() })
    }
}

fn status_of(line: &[u8]) -> Option<u16> {
    let rest = line.strip_prefix(b"HTTP/1.1 ").or_else(|| line.strip_prefix(b"HTTP/1.0 "))?;
    let (digits, reason) = rest.split_at_checked(3)?;
    let status = number(digits).filter(|status| (100..1000).contains(status))?;
    let is_whole = reason.is_empty() || reason.starts_with(b" ");
    u16::try_from(status).ok().filter(|_| is_whole && !reason.contains(&b'\n'))
}

#[cfg(test)]
mod tests;
