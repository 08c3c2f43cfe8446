//! From a request of HTTP/1.1 to a field block and content (RFC 9113 section 8.3.1).
//!
//! The requests come from our own code, which has written them anew after parsing. They are read strictly all the same,
//! and fields about a connection never go out.

use super::tunnel::Upgrade;
use crate::head::is_word;
use crate::hpack::encode;
use crate::message::{BadMessage, MessagePart, MessageReader, State, split_head};

/// This is no request of HTTP/1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no request of HTTP/1.1 that can be sent by HTTP/2")]
pub struct BadRequest;

impl From<BadMessage> for BadRequest {
    fn from(_: BadMessage) -> Self {
        Self
    }
}

/// A part of a request.
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
    message: MessageReader,
    scheme: &'static str,
    asks_head: bool,
    upgrade: Option<Upgrade>,
}

impl RequestReader {
    /// For a request to a server that is reached by TLS or not.
    pub fn new(secure: bool) -> Self {
        let scheme = if secure { "https" } else { "http" };
        Self { message: MessageReader::new(), scheme, asks_head: false, upgrade: None }
    }

    /// The field block of the head or trailer section that was read last.
    pub fn block(&self) -> &[u8] {
        &self.message.block
    }

    /// Whether the request's method is HEAD.
    pub fn asks_head(&self) -> bool {
        self.asks_head
    }

    /// The protocol that the request asks for with Upgrade, if it does. The request then goes out as an extended
    /// CONNECT, and its content has no end.
    pub fn upgrade(&self) -> Option<&Upgrade> {
        self.upgrade.as_ref()
    }

    /// Reads from the front of `input`. Returns how many bytes it took, and the part that they are, if any; all bytes
    /// are taken in the end.
    ///
    /// # Errors
    /// [`BadRequest`]: the request cannot go on.
    pub fn read<'a>(&mut self, input: &'a [u8]) -> Result<(usize, Option<Part<'a>>), BadRequest> {
        let (n, part) = self.message.read(input)?;
        let part = match part {
            Some(MessagePart::Head(head)) => Some(self.whole_head(&head)?),
            Some(MessagePart::Content { bytes, end }) => Some(Part::Content { bytes, end }),
            Some(MessagePart::Trailers) => Some(Part::Trailers),
            None => None,
        };
        Ok((n, part))
    }

    /// Encodes a head, and finds out how its content ends (RFC 9112 section 6.3).
    fn whole_head<'a>(&mut self, head: &[u8]) -> Result<Part<'a>, BadRequest> {
        let (line, fields) = split_head(head)?;
        let mut words = line.split(|&byte| byte == b' ');
        let (Some(method), Some(target), Some(b"HTTP/1.1"), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(BadRequest);
        };
        if !is_word(method) || !is_word(target) || !target.starts_with(b"/") {
            return Err(BadRequest);
        }
        self.asks_head = method == b"HEAD";
        let find = |wanted: &[u8]| {
            let mut found = fields.clone().flatten();
            found.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value)
        };
        let upgrade = match find(b"upgrade") {
            // RFC 8441 section 5: it stands for a GET.
            Some(value) if method == b"GET" => Some(Upgrade::of(value).ok_or(BadRequest)?),
            Some(_) => return Err(BadRequest),
            None => None,
        };
        let key = upgrade.as_ref().filter(|upgrade| upgrade.is_websocket());
        let key = key.and_then(|_| find(b"sec-websocket-key")).map(Box::from);
        let pseudo: [(&[u8], &[u8]); 5] = [
            (b":method", if upgrade.is_some() { b"CONNECT" } else { method }),
            (b":protocol", upgrade.as_ref().map_or(b"", |upgrade| &upgrade.protocol)),
            (b":scheme", self.scheme.as_bytes()),
            (b":authority", find(b"host").unwrap_or_default()),
            (b":path", target),
        ];
        let message = &mut self.message;
        message.begin_head();
        for (name, value) in pseudo {
            if !value.is_empty() {
                encode::put_field(&mut message.block, name, value);
            }
        }
        for field in fields {
            let (name, value) = field?;
            let is_left_out = name.eq_ignore_ascii_case(b"host")
                || upgrade.as_ref().is_some_and(|upgrade| is_of_http11(name, upgrade));
            if !is_left_out {
                message.put_field(name, value)?;
            }
        }
        message.state = match upgrade.is_some() {
            true => State::UntilEnd,
            false => message.announced().unwrap_or(State::Done),
        };
        self.upgrade = upgrade.map(|upgrade| Upgrade { key, ..upgrade });
        Ok(Part::Head { end: message.is_done() })
    }
}

/// Whether a field of a request for another protocol has no place in an extended CONNECT: it has no content, and WebSocket no
/// key (RFC 8441 section 5).
fn is_of_http11(name: &[u8], upgrade: &Upgrade) -> bool {
    name.eq_ignore_ascii_case(b"content-length")
        || (upgrade.is_websocket() && name.eq_ignore_ascii_case(b"sec-websocket-key"))
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
    fn an_upgrade_is_an_extended_connect_without_an_end() {
        let input = b"GET /chat?a HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nSec-WebSocket-Key: k\r\n\
                      Sec-WebSocket-Protocol: p\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\n\r\n\0\r\n\r\n";
        for piece in [1, 2, 3, 7, 1000] {
            assert_eq!(
                parts(input, piece).unwrap(),
                ":method=CONNECT\n:protocol=websocket\n:scheme=https\n:authority=h\n:path=/chat?a\n\
                 sec-websocket-protocol=p\nfalse\n"
            );
        }
        let mut reader = RequestReader::new(false);
        reader.read(input).unwrap();
        let upgrade = reader.upgrade().expect("it asks for one");
        assert!(upgrade.is_websocket() && upgrade.key.as_deref() == Some(b"k"));
        // For a protocol other than WebSocket the key has no known meaning, so it is sent on as a field.
        let other = b"GET / HTTP/1.1\r\nSec-WebSocket-Key: k\r\nUpgrade: chat\r\n\r\n";
        assert!(parts(other, 1000).unwrap().contains("\nsec-websocket-key=k\n"));
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
            b"POST / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n",
            b"GET / HTTP/1.1\r\nUpgrade: websocket, chat\r\n\r\n",
        ] {
            assert_eq!(parts(bad, 1000), Err(BadRequest), "{}", bad.escape_ascii());
        }
    }
}
