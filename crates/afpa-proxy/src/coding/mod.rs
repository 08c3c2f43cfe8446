//! The compression of servers' answers as they pass: which of them, and what their heads say then.
//!
//! [`Compress::recode`] judges the head of an answer. If it has to change, the head is written anew and read again, so
//! that everything behind it - a cache, the changes of fields, the client's framing - sees the answer as if the server
//! had compressed it: with Content-Encoding, a weak ETag, `Vary: Accept-Encoding`, and without the fields that are about
//! the other bytes. T7 to T11 of docs/rules are the rules.

mod encoder;

use std::sync::Arc;

use afpa_http::etag::SentTag;
use afpa_http::syntax::list;
use afpa_http::{Coding, CodingSet, Known, Request, coding, media};

pub use encoder::{Encoder, MOST_ENCODERS, Places, compress_by_brotli};

use crate::fields::{self, Kind, put};
use crate::response::{self, Asked, Response, Slots};

/// Which answers are compressed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodingRules {
    /// The codings that clients may get.
    pub codings: CodingSet,
    /// Media types, in lower case; `type/*` stands for all of a kind.
    pub types: Vec<String>,
    /// Bytes of the shortest answer that is compressed. An answer that announces no length may be shorter.
    pub least: u64,
}

/// The compression of the answer to one request.
#[derive(Clone, Debug)]
pub struct Compress {
    rules: Arc<CodingRules>,
    /// The coding that the client prefers.
    coding: Coding,
    /// The client asks for content as it is: with `no-transform` (RFC 9111 section 5.2.1.6), or for a part of it.
    as_it_is: bool,
}

/// The coding of an answer, as it came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coded {
    /// It was compressed.
    Yes,
    /// It was to be compressed, but there were too many encoders.
    NoRoom,
}

/// The facts of an answer with a new head.
pub(crate) struct Recoded {
    /// Encodes its content, if it has any.
    pub(crate) encoder: Option<Encoder>,
    pub(crate) coded: Option<Coded>,
    /// The same request would get it compressed at another time, so no cache may keep it as it is.
    is_makeshift: bool,
}

impl Recoded {
    /// Reads the new head, which has one line more than the server's. `None`: the server has sent as many lines as an
    /// answer can have, and it passes as it is; no cache may keep it then.
    pub(crate) fn read<'s, 'b>(
        self,
        head: &'b [u8],
        slots: &'s mut Slots<'b>,
        (old, asked): (&Response<'_, '_>, Asked),
    ) -> Option<(Response<'s, 'b>, Self)> {
        let mut new = response::parse(head, slots, usize::MAX, asked).ok()??;
        (new.keeps, new.is_makeshift) = (old.keeps, self.is_makeshift);
        Some((new, self))
    }
}

impl Compress {
    /// For the answer to a request. A part of a compressed answer means nothing to a client that asks for a part, so
    /// its coding is that of the server.
    pub fn of(rules: &Arc<CodingRules>, request: &Request<'_, '_>) -> Self {
        let coding = coding::choose(request, rules.codings);
        let mut controls =
            request.fields().filter(|(name, _)| name.eq_ignore_ascii_case("cache-control"));
        let as_it_is = coding != Coding::Identity
            && (request.has(Known::Range) || controls.any(|(_, value)| says_no_transform(value)));
        Self { rules: Arc::clone(rules), coding, as_it_is }
    }

    /// Whether the client may get a coding.
    pub fn codes(&self) -> bool {
        self.coding != Coding::Identity && !self.as_it_is
    }

    /// Whether the content of which a request wants a part may be the compressed one. A date in If-Range is the same for
    /// both, so it is weak (RFC 9110 section 8.8.1), and a weak tag is none for If-Range (section 13.1.5). Then the
    /// server has to be asked for all of it.
    pub fn may_mix(&self, request: &Request<'_, '_>) -> bool {
        let is_strong = || {
            let tag = request.only(Known::IfRange).and_then(SentTag::parse);
            tag.is_some_and(|tag| !tag.weak)
        };
        self.coding != Coding::Identity && request.has(Known::IfRange) && !is_strong()
    }

    /// The new head of a final response, for [`Recoded::read`]; `None`: it stays as it is. `keeps`: as for
    /// [`Encoder::new`].
    pub(crate) fn recode(
        &self,
        response: &Response<'_, '_>,
        asked: Asked,
        (places, keeps): (&Places, &dyn Fn() -> bool),
    ) -> Option<(Vec<u8>, Recoded)> {
        // A 304 without a type does not tell whether the answer that it stands for was compressed. A weak tag and a longer
        // Vary are true of both.
        if response.status == 304 {
            if self.is_of_other_type(response) {
                return None;
            }
            let head = head(response, self.coding, false);
            return Some((head, Recoded { encoder: None, coded: None, is_makeshift: false }));
        }
        let length = response.announced();
        if !self.may_be_coded(response) {
            return None;
        }
        // The whole may get a coding, so a cache must not take the part for one that all clients may get.
        if response.status == 206 {
            let head = head(response, Coding::Identity, false);
            let is_makeshift = self.coding != Coding::Identity;
            return Some((head, Recoded { encoder: None, coded: None, is_makeshift }));
        }
        let wants = self.codes();
        let encoder = match wants && !asked.head {
            true => Encoder::new(self.coding, length, places, keeps),
            false => None,
        };
        let is_coded = wants && (asked.head || encoder.is_some());
        let coded = match (wants && !asked.head, is_coded) {
            (false, _) => None,
            (true, true) => Some(Coded::Yes),
            (true, false) => Some(Coded::NoRoom),
        };
        let coding = if is_coded { self.coding } else { Coding::Identity };
        let head = head(response, coding, !asked.head);
        Some((head, Recoded { encoder, coded, is_makeshift: self.coding != coding }))
    }

    /// Whether some client gets the answer compressed; of a part, whether some client gets the whole compressed.
    fn may_be_coded(&self, response: &Response<'_, '_>) -> bool {
        let is_part = response.status == 206;
        let is_long = response.announced().is_none_or(|length| length >= self.rules.least.max(1));
        if !(is_long || is_part) || matches!(response.status, 0..200 | 204 | 205) {
            return false;
        }
        let mut is_of_type = false;
        for (name, value) in response.lines() {
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            let bars = match fields::kind(name) {
                Kind::ContentType => {
                    is_of_type = self.lists(value);
                    !is_of_type
                }
                // Trailer fields may be about the bytes before them.
                Kind::Trailer => true,
                _ if is("content-encoding") => list(value).any(is_coding),
                _ if is("cache-control") => says_no_transform(value),
                _ => is("content-range") && !is_part,
            };
            if bars {
                return false;
            }
        }
        is_of_type
    }

    fn lists(&self, content_type: &[u8]) -> bool {
        media::is_listed(content_type, &self.rules.types) && !streams(content_type)
    }

    /// Whether it has a type that is never compressed.
    fn is_of_other_type(&self, response: &Response<'_, '_>) -> bool {
        response
            .lines()
            .any(|(name, value)| fields::kind(name) == Kind::ContentType && !self.lists(value))
    }
}

fn says_no_transform(control: &[u8]) -> bool {
    list(control).any(|directive| directive.eq_ignore_ascii_case(b"no-transform"))
}

/// `identity` is no coding, though some servers say so (RFC 9110 section 8.4.1).
fn is_coding(token: &[u8]) -> bool {
    !token.eq_ignore_ascii_case(b"identity")
}

/// Types of answers that go on for as long as their client listens, each of which would hold an encoder, and of gRPC,
/// which compresses its messages itself.
fn streams(content_type: &[u8]) -> bool {
    const GRPC: &[u8] = b"application/grpc";
    let begin = content_type.get(..GRPC.len()).unwrap_or_default();
    media::is_events(content_type) || begin.eq_ignore_ascii_case(GRPC)
}

/// Fields about the bytes of the content as the server sends it. That of Repr-Digest has its coding, too (RFC 9530
/// section 3.1).
const OF_BYTES: [&str; 7] = [
    "accept-ranges",
    "content-digest",
    "content-encoding",
    "content-md5",
    "digest",
    "repr-digest",
    "content-length",
];

/// The head of a response with this coding, which varies by Accept-Encoding. Status line and fields for the connection stay.
fn head(response: &Response<'_, '_>, coding: Coding, has_content: bool) -> Vec<u8> {
    let is_coded = coding != Coding::Identity;
    let mut out = Vec::with_capacity(response.head_len + 96);
    response.put_status_line(&mut out);
    let mut vary = Vec::new();
    for (name, value) in response.lines() {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("vary") {
            vary.push(value);
        } else if is_coded && is("etag") && !value.starts_with(b"W/") {
            put(&mut out, name, &[b"W/", value].concat());
        } else if !(is_coded && (OF_BYTES.iter().any(|known| is(known)) || is("transfer-encoding")))
        {
            put(&mut out, name, value);
        }
    }
    put(&mut out, b"Vary", &merged(&vary));
    if is_coded && response.status != 304 {
        put(&mut out, b"Content-Encoding", coding.token().as_bytes());
        if has_content {
            put(&mut out, b"Transfer-Encoding", b"chunked");
        }
    }
    out.extend_from_slice(b"\r\n");
    out
}

/// The value of Vary that has Accept-Encoding beside all that it had.
fn merged(lines: &[&[u8]]) -> Vec<u8> {
    const NAME: &[u8] = b"Accept-Encoding";
    let mut value = lines.join(&b", "[..]);
    let has = list(&value).any(|name| name == b"*" || name.eq_ignore_ascii_case(NAME));
    if !has {
        if list(&value).next().is_none() {
            value.clear();
        } else {
            value.extend_from_slice(b", ");
        }
        value.extend_from_slice(NAME);
    }
    value
}

#[cfg(test)]
mod tests;
