//! Writes stored responses: whole, as 304, or in parts.
//!
//! A hit copies the head, adds its age and length, and copies the content behind it.

use afpa_cache::{Object, Payload};
use afpa_framework::{GATHERED, Now, Outbox, Part};
use afpa_h3::{FieldCode as _, Qpack};
use afpa_http::caching::cache_status::{self, Outcome};
use afpa_http::caching::condition::{is_known_to_client, may_send_part};
use afpa_http::caching::fields;
use afpa_http::edits::Edits;
use afpa_http::multipart::{Boundary, Multipart};
use afpa_http::{Connection, Known, KnownSet, Method, Ranges, Request, Version, range};
use smallvec::SmallVec;

use crate::store::partial::Partial;
use crate::store::stored::{Response, StoredResponse};

/// Most ranges of one request; with more, the whole is sent.
const RANGES: usize = 16;

/// A stored response that answers a request.
#[derive(Clone, Copy)]
pub struct Answering<'a> {
    /// The response, or the parts of it.
    pub object: &'a Object<StoredResponse>,
    /// The outcome for Cache-Status, if the response has that field.
    pub cache_status: Option<Outcome>,
}

/// The request that a stored response answers, and its connection.
#[derive(Clone, Copy)]
pub struct Recipient<'a, 's, 'b> {
    /// The request.
    pub request: &'a Request<'s, 'b>,
    /// Whether its connection persists.
    pub connection: Connection,
    /// The value of Strict-Transport-Security, if the answer is to have one.
    pub hsts: Option<&'a str>,
    /// The changes of its fields.
    pub edits: Option<Edits<'a>>,
    /// Makes the boundary of an answer with several ranges, which no content may contain.
    pub boundary: fn() -> Boundary,
    /// Now.
    pub now: Now,
}

/// The result of writing an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// An answer with this status, and so many bytes of content.
    Answer(u16, u64),
    /// Nothing: no range can be satisfied, of so many bytes (416).
    Unsatisfiable(u64),
    /// Nothing: there is no response in the object.
    Nothing,
}

impl Answering<'_> {
    /// Appends the answer to the outbox.
    pub fn write(self, to: Recipient<'_, '_, '_>, out: &mut Outbox) -> Written {
        let header = self.object.header();
        if let Some(partial) = header.partial() {
            return self.part(to, partial, out);
        }
        let Some(response) = header.response() else { return Written::Nothing };
        let request = to.request;
        let unusual = KnownSet::CONDITIONAL.union(KnownSet::RANGE);
        if request.has_any(unusual) && response.draft.facts.status == 200 {
            let validators = response.validators();
            let conditional =
                request.has(Known::IfNoneMatch) || request.has(Known::IfModifiedSince);
            if conditional && is_known_to_client(request, &validators) {
                let begin = out.bytes.len();
                response.draft.put_not_modified(&mut out.bytes);
                self.put_rest(b"", response, to, None, out);
                let kind = response.draft.content_type().map(str::as_bytes);
                edit(to, &mut out.bytes, begin, 304, kind);
                return Written::Answer(304, 0);
            }
            if may_send_part(request, &validators) && !response.draft.is_coded_anew() {
                return self.ranges(to, response, out);
            }
        }
        self.whole(to, response, out)
    }

    fn whole(self, to: Recipient<'_, '_, '_>, response: &Response, out: &mut Outbox) -> Written {
        let draft = &response.draft;
        let length = (draft.facts.status != 204).then_some(response.len);
        // Each stream has an outbox of its own.
        let may_be_section = to.request.version == Version::Http3 && out.is_empty();
        let section = draft.section().filter(|_| may_be_section);
        match section.zip(added(to, draft.head(), draft.facts.status)) {
            Some((section, added)) => {
                let rest = self.rest(response, to, length);
                rest.put_section((draft.head(), section), &mut out.bytes);
                for (name, value) in added {
                    Qpack::put_field(&mut out.bytes, name.as_bytes(), value);
                }
                out.block = out.bytes.len();
            }
            None => self.put_head((draft.head(), draft.facts.status), response, to, length, out),
        }
        let mut sent = 0;
        if to.request.method == Method::Get {
            sent = response.len;
            push(self.object, 0..sent, out);
        }
        Written::Answer(draft.facts.status, sent)
    }

    /// 206 from parts that have all of the range that the request asks for.
    fn part(self, to: Recipient<'_, '_, '_>, partial: &Partial, out: &mut Outbox) -> Written {
        let range = partial.range_for(to.request);
        let found = range.as_ref().and_then(|range| partial.parts.find(range));
        let (Some(range), Some(found)) = (range, found) else { return Written::Nothing };
        let sent = range.end - range.start;
        let response = &partial.response;
        let head = head_of_part(response, &range, partial.parts.complete());
        self.put_head((&head, 206), response, to, Some(sent), out);
        for (piece, place) in found {
            if sent <= GATHERED {
                out.bytes.extend_from_slice(piece.bytes.get(place).unwrap_or_default());
            } else {
                out.push(Part::Pinned(piece.bytes.clone(), place));
            }
        }
        Written::Answer(206, sent)
    }

    /// 206, 416, or the whole after all (RFC 9110 section 14.2).
    fn ranges(self, to: Recipient<'_, '_, '_>, response: &Response, out: &mut Outbox) -> Written {
        let len = response.len;
        let draft = &response.draft;
        match range::select_current(to.request, len, RANGES) {
            Ranges::Whole => self.whole(to, response, out),
            Ranges::One(range) => {
                let sent = range.end - range.start;
                let head = head_of_part(response, &range, len);
                self.put_head((&head, 206), response, to, Some(sent), out);
                push(self.object, range, out);
                Written::Answer(206, sent)
            }
            Ranges::Many(ranges) => {
                let of = draft.content_type().unwrap_or("application/octet-stream");
                let parts = Multipart::new((to.boundary)(), of, len, &ranges);
                let sent = parts.content_length();
                let mut head = without(&head_of_parts(draft.head()), b"content-type");
                let line = format!("Content-Type: {}\r\n", parts.content_type());
                head.extend_from_slice(line.as_bytes());
                self.put_head((&head, 206), response, to, Some(sent), out);
                for part in parts.parts() {
                    out.push(Part::Bytes(part.head.clone()));
                    push_part(self.object, part.range.clone(), out);
                }
                out.push(Part::Bytes(parts.closing().to_vec()));
                Written::Answer(206, sent)
            }
            Ranges::Unsatisfiable => Written::Unsatisfiable(len),
        }
    }

    fn put_head(
        self,
        (head, status): (&[u8], u16),
        response: &Response,
        to: Recipient<'_, '_, '_>,
        length: Option<u64>,
        out: &mut Outbox,
    ) {
        let begin = out.bytes.len();
        self.put_rest(head, response, to, length, out);
        edit(to, &mut out.bytes, begin, status, None);
    }

    fn put_rest(
        self,
        head: &[u8],
        response: &Response,
        to: Recipient<'_, '_, '_>,
        length: Option<u64>,
        out: &mut Outbox,
    ) {
        self.rest(response, to, length).put(head, &mut out.bytes);
    }

    fn rest<'a>(
        self,
        response: &Response,
        to: Recipient<'a, '_, '_>,
        length: Option<u64>,
    ) -> Rest<'a> {
        let age = response.draft.arrival.age(to.now.steady_ms() / 1000);
        let Recipient { hsts, connection, .. } = to;
        Rest { age, cache_status: self.cache_status, hsts, length, connection }
    }
}

/// The fields that the operator's changes put behind a head; `None`: they change what it has.
fn added<'a>(
    to: Recipient<'a, '_, '_>,
    head: &[u8],
    status: u16,
) -> Option<impl Iterator<Item = (&'a str, &'a [u8])> + use<'a>> {
    const REST: [&[u8]; 4] =
        [b"age", b"cache-status", b"content-length", b"strict-transport-security"];
    let is_rest = |name: &[u8]| REST.iter().any(|own| own.eq_ignore_ascii_case(name));
    let is_there = |name: &[u8]| is_rest(name) || has(head, name);
    let added = match to.edits {
        Some(edits) => Some(edits.added(status, &is_there)?),
        None => None,
    };
    Some(added.into_iter().flatten())
}

/// Makes the operator's changes of a head that begins at `begin`.
fn edit(
    to: Recipient<'_, '_, '_>,
    bytes: &mut Vec<u8>,
    begin: usize,
    status: u16,
    kind: Option<&[u8]>,
) {
    if let Some(edits) = to.edits {
        edits.apply(bytes, begin, status, kind);
    }
}

/// The fields after the server's in the head of a stored response.
pub(crate) struct Rest<'a> {
    pub(crate) age: u64,
    /// For Cache-Status.
    pub(crate) cache_status: Option<Outcome>,
    /// The value of Strict-Transport-Security.
    pub(crate) hsts: Option<&'a str>,
    /// For Content-Length.
    pub(crate) length: Option<u64>,
    pub(crate) connection: Connection,
}

impl Rest<'_> {
    /// Appends the head. The parts that change each second stand together, because the kernel writes them as one: the
    /// `ttl` of a hit at the end of Cache-Status, and Age in the next line. Returns where they begin in the head: at
    /// the `ttl`, or at the value of Age if there is none.
    pub(crate) fn put(&self, head: &[u8], bytes: &mut Vec<u8>) -> usize {
        const AGE: &[u8] = b"Age: ";
        bytes.reserve(head.len() + 192);
        let begin = bytes.len();
        bytes.extend_from_slice(head);
        let ttl_at = self.cache_status.as_ref().and_then(|outcome| put_status(outcome, bytes));
        bytes.extend_from_slice(AGE);
        let changing_at = ttl_at.unwrap_or(bytes.len());
        let mut digits = itoa::Buffer::new();
        bytes.extend_from_slice(digits.format(self.age).as_bytes());
        bytes.extend_from_slice(b"\r\n");
        put_hsts(self.hsts, head, bytes);
        if let Some(length) = self.length {
            bytes.extend_from_slice(b"Content-Length: ");
            bytes.extend_from_slice(digits.format(length).as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(self.connection.ending());
        changing_at - begin
    }
}

impl Rest<'_> {
    /// Appends the field section of the head, and the same fields behind it.
    fn put_section(&self, (head, section): (&[u8], &[u8]), bytes: &mut Vec<u8>) {
        bytes.reserve(section.len() + 192);
        bytes.extend_from_slice(section);
        if let Some(outcome) = &self.cache_status {
            let begin = bytes.len();
            cache_status::put(outcome, bytes);
            // Its length comes before it.
            let value = SmallVec::<[u8; 192]>::from_slice(bytes.get(begin..).unwrap_or_default());
            bytes.truncate(begin);
            Qpack::put_field(bytes, b"cache-status", &value);
        }
        let mut digits = itoa::Buffer::new();
        Qpack::put_field(bytes, b"age", digits.format(self.age).as_bytes());
        if let Some(value) = self.hsts.filter(|_| !has(head, HSTS)) {
            Qpack::put_field(bytes, HSTS, value.as_bytes());
        }
        if let Some(length) = self.length {
            Qpack::put_field(bytes, b"content-length", digits.format(length).as_bytes());
        }
    }
}

/// Appends Cache-Status. Returns where the `ttl` of a hit stands.
fn put_status(outcome: &Outcome, bytes: &mut Vec<u8>) -> Option<usize> {
    bytes.extend_from_slice(b"Cache-Status: ");
    let ttl_at = bytes.len() + cache_status::BEFORE_TTL.len();
    cache_status::put(outcome, bytes);
    bytes.extend_from_slice(b"\r\n");
    matches!(outcome, Outcome::Hit { .. }).then_some(ttl_at)
}

const HSTS: &[u8] = b"Strict-Transport-Security";

/// Adds Strict-Transport-Security, unless the server's head has one.
pub(crate) fn put_hsts(value: Option<&str>, head: &[u8], out: &mut Vec<u8>) {
    if let Some(value) = value.filter(|_| !has(head, HSTS)) {
        for text in [HSTS, b": ", value.as_bytes(), b"\r\n"] {
            out.extend_from_slice(text);
        }
    }
}

/// Whether a head has a field of this name.
fn has(head: &[u8], name: &[u8]) -> bool {
    let is = |line: &[u8]| {
        line.split_at_checked(name.len())
            .is_some_and(|(own, rest)| rest.starts_with(b":") && own.eq_ignore_ascii_case(name))
    };
    head.split_inclusive(|&byte| byte == b'\n').any(is)
}

/// The head of a 206 with one part.
fn head_of_part(response: &Response, range: &std::ops::Range<u64>, complete: u64) -> Vec<u8> {
    let mut head = head_of_parts(response.draft.head());
    let content_range = range::content_range(range, complete);
    head.extend_from_slice(format!("Content-Range: {content_range}\r\n").as_bytes());
    head
}

/// The head of a 206, without the fields that say which parts it has. A digest of the whole content is that of no part.
fn head_of_parts(head: &[u8]) -> Vec<u8> {
    let mut new = b"HTTP/1.1 206 Partial Content\r\n".to_vec();
    for line in head.split_inclusive(|&byte| byte == b'\n').skip(1) {
        let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
        if !fields::is_of_message(name) {
            new.extend_from_slice(line);
        }
    }
    new
}

/// The head without the lines of a field.
fn without(head: &[u8], name: &[u8]) -> Vec<u8> {
    let is = |line: &[u8]| {
        let own = line.split(|&byte| byte == b':').next().unwrap_or_default();
        own.eq_ignore_ascii_case(name)
    };
    head.split_inclusive(|&byte| byte == b'\n')
        .filter(|line| !is(line))
        .flatten()
        .copied()
        .collect()
}

/// Appends a range of the content: a short one is copied, a longer one is sent from the object.
fn push(object: &Object<StoredResponse>, range: std::ops::Range<u64>, out: &mut Outbox) {
    match object.payloads().first() {
        Some(Payload::Pinned(bytes)) if range.end - range.start <= GATHERED => {
            let bytes = bytes.get(range.start as usize..range.end as usize);
            out.bytes.extend_from_slice(bytes.unwrap_or_default());
        }
        _ => push_part(object, range, out),
    }
}

fn push_part(object: &Object<StoredResponse>, range: std::ops::Range<u64>, out: &mut Outbox) {
    if let Some(Payload::Pinned(bytes)) = object.payloads().first() {
        out.push(Part::Pinned(bytes.clone(), range.start as usize..range.end as usize));
    }
}

#[cfg(test)]
mod tests {
    use afpa_h3::{qpack, section_of};

    use super::*;

    fn said(section: &[u8]) -> String {
        let mut said = String::new();
        qpack::decode(section, |name, value| {
            said += &format!("{}: {}\n", name.escape_ascii(), value.escape_ascii());
        })
        .expect("a section");
        said
    }

    #[test]
    fn a_section_says_what_the_head_says() {
        let plain = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Own: 1\r\n";
        let secure = "HTTP/1.1 404 Not Found\r\nSTRICT-transport-security: max-age=1\r\n";
        let hit = Outcome::Hit { ttl: -70 };
        for (head, cache_status, hsts, length) in [
            (plain, None, None, Some(512)),
            (plain, Some(hit), Some("max-age=31536000"), Some(0)),
            (secure, None, Some("max-age=31536000"), None),
        ] {
            let connection = Connection::Implied;
            let rest = Rest { age: 71, cache_status, hsts, length, connection };
            let mut whole = Vec::new();
            rest.put(head.as_bytes(), &mut whole);
            let kept = section_of(format!("{head}\r\n").as_bytes()).expect("a head");
            let mut section = Vec::new();
            rest.put_section((head.as_bytes(), &kept), &mut section);
            let expected = section_of(&whole).expect("a head");
            assert_eq!(said(&section), said(&expected), "{head}");
        }
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let head = b"HTTP/1.1 200 OK\r\nX-Own: 1\r\nage: 5\r\n";
        for (name, is_there) in
            [("x-own", true), ("X-OWN", true), ("x-ow", false), ("AGE", true), ("own", false)]
        {
            assert_eq!(has(head, name.as_bytes()), is_there, "{name}");
        }
    }
}
