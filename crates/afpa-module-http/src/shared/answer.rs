//! Writes stored responses: whole, as 304, or in parts.
//!
//! A hit copies the head, adds its age and length, and copies the content behind it.

use afpa_cache::{Object, Payload};
use afpa_framework::{Outbox, Part, Persistence};
use afpa_http::caching::cache_status::{self, Outcome};
use afpa_http::caching::condition::{is_known_to_client, may_send_part};
use afpa_http::multipart::Multipart;
use afpa_http::{Connection, Known, KnownSet, Method, Ranges, page, range};

use super::parts::Partial;
use super::stored::{Response, StoredResponse};
use crate::asked::Asked;
use crate::respond::{GATHERED, Responder, boundary};

/// Most ranges of one request; with more, the whole is sent.
const RANGES: usize = 16;

/// A stored response that answers a request.
#[derive(Clone, Copy)]
pub(crate) struct Answering<'a> {
    pub(crate) object: &'a Object<StoredResponse>,
    /// The outcome for Cache-Status, if the response has that field.
    pub(crate) told: Option<Outcome>,
}

impl Responder {
    /// Answers from a stored response.
    pub(crate) fn stored(
        &mut self,
        asked: Asked<'_, '_, '_>,
        answering: Answering<'_>,
        out: &mut Outbox,
    ) -> Persistence {
        if let Some(partial) = answering.object.header().partial() {
            return self.stored_part(asked, answering, partial, out);
        }
        let Some(response) = answering.object.header().response() else {
            return self.page(asked, afpa_http::Status::INTERNAL_SERVER_ERROR, out);
        };
        let request = asked.request;
        let unusual = KnownSet::CONDITIONAL.union(KnownSet::RANGE);
        if request.has_any(unusual) && response.draft.facts.status == 200 {
            let validators = response.validators();
            let conditional =
                request.has(Known::IfNoneMatch) || request.has(Known::IfModifiedSince);
            if conditional && is_known_to_client(request, &validators) {
                return self.stored_not_modified(asked, answering, response, out);
            }
            if may_send_part(request, &validators) {
                return self.stored_parts(asked, answering, response, out);
            }
        }
        self.stored_whole(asked, answering, response, out)
    }

    fn stored_whole(
        &mut self,
        asked: Asked<'_, '_, '_>,
        answering: Answering<'_>,
        response: &Response,
        out: &mut Outbox,
    ) -> Persistence {
        let (connection, persistence) = self.connection(asked);
        let draft = &response.draft;
        let length = (draft.facts.status != 204).then_some(response.len);
        put_head(draft.head(), response, (asked, answering), length, connection, out);
        let mut sent = 0;
        if asked.request.method == Method::Get {
            sent = response.len;
            push(answering.object, 0..sent, out);
        }
        self.counters.shared_bytes.add(sent);
        self.note_code(asked, draft.facts.status, sent, out);
        persistence
    }

    fn stored_not_modified(
        &mut self,
        asked: Asked<'_, '_, '_>,
        answering: Answering<'_>,
        response: &Response,
        out: &mut Outbox,
    ) -> Persistence {
        let (connection, persistence) = self.connection(asked);
        response.draft.put_not_modified(&mut out.bytes);
        rest_of(response, (asked, answering), None, connection).put(b"", &mut out.bytes);
        self.note_code(asked, 304, 0, out);
        persistence
    }

    /// 206 from parts that have all of the range that the request asks for.
    fn stored_part(
        &mut self,
        asked: Asked<'_, '_, '_>,
        answering: Answering<'_>,
        partial: &Partial,
        out: &mut Outbox,
    ) -> Persistence {
        let range = partial.range_for(asked.request);
        let found = range.as_ref().and_then(|range| partial.parts.find(range));
        let (Some(range), Some(found)) = (range, found) else {
            return self.page(asked, afpa_http::Status::INTERNAL_SERVER_ERROR, out);
        };
        let (connection, persistence) = self.connection(asked);
        let sent = range.end - range.start;
        let response = &partial.response;
        let head = head_of_part(response, &range, partial.parts.complete());
        put_head(&head, response, (asked, answering), Some(sent), connection, out);
        for (piece, place) in found {
            if sent <= GATHERED {
                out.bytes.extend_from_slice(piece.bytes.get(place).unwrap_or_default());
            } else {
                out.push(Part::Pinned(piece.bytes.clone(), place));
            }
        }
        self.note_part(asked, sent, out);
        persistence
    }

    fn note_part(&mut self, asked: Asked<'_, '_, '_>, sent: u64, out: &mut Outbox) {
        self.counters.shared_bytes.add(sent);
        self.note_code(asked, 206, sent, out);
    }

    /// 206, 416, or the whole after all (RFC 9110 section 14.2).
    fn stored_parts(
        &mut self,
        asked: Asked<'_, '_, '_>,
        answering: Answering<'_>,
        response: &Response,
        out: &mut Outbox,
    ) -> Persistence {
        let len = response.len;
        let draft = &response.draft;
        let (connection, persistence) = self.connection(asked);
        match range::select_current(asked.request, len, RANGES) {
            Ranges::Whole => return self.stored_whole(asked, answering, response, out),
            Ranges::One(range) => {
                let sent = range.end - range.start;
                let head = head_of_part(response, &range, len);
                put_head(&head, response, (asked, answering), Some(sent), connection, out);
                push(answering.object, range, out);
                self.note_part(asked, sent, out);
            }
            Ranges::Many(ranges) => {
                let of = draft.content_type().unwrap_or("application/octet-stream");
                let parts = Multipart::new(boundary(), of, len, &ranges);
                let sent = parts.content_length();
                let head = status_line_of(draft.head(), "206 Partial Content");
                let mut head = without(&head, b"content-type");
                let line = format!("Content-Type: {}\r\n", parts.content_type());
                head.extend_from_slice(line.as_bytes());
                put_head(&head, response, (asked, answering), Some(sent), connection, out);
                for part in parts.parts() {
                    out.push(Part::Bytes(part.head.clone()));
                    push_part(answering.object, part.range.clone(), out);
                }
                out.push(Part::Bytes(parts.closing().to_vec()));
                self.note_part(asked, sent, out);
            }
            Ranges::Unsatisfiable => {
                let status = afpa_http::Status::RANGE_NOT_SATISFIABLE;
                let body = page::error_page(status);
                let head = afpa_http::ResponseHead::build(status)
                    .field("Content-Type", page::CONTENT_TYPE)
                    .content_length(body.len() as u64)
                    .field("Content-Range", range::content_range_unsatisfied(len))
                    .finish();
                return self.finish_page(asked, status, &head, &body, out);
            }
        }
        persistence
    }
}

fn put_head(
    head: &[u8],
    response: &Response,
    (asked, answering): (Asked<'_, '_, '_>, Answering<'_>),
    length: Option<u64>,
    connection: Connection,
    out: &mut Outbox,
) {
    rest_of(response, (asked, answering), length, connection).put(head, &mut out.bytes);
}

fn rest_of<'a>(
    response: &Response,
    (asked, answering): (Asked<'a, '_, '_>, Answering<'_>),
    length: Option<u64>,
    connection: Connection,
) -> Rest<'a> {
    let age = response.draft.arrival.age(asked.now.steady_ms() / 1000);
    let hsts = asked.hsts.map(|value| &**value);
    Rest { age, told: answering.told, hsts, length, connection }
}

/// The fields after the server's in the head of a stored response.
pub(super) struct Rest<'a> {
    pub(super) age: u64,
    /// For Cache-Status.
    pub(super) told: Option<Outcome>,
    /// The value of Strict-Transport-Security.
    pub(super) hsts: Option<&'a str>,
    /// For Content-Length.
    pub(super) length: Option<u64>,
    pub(super) connection: Connection,
}

impl Rest<'_> {
    /// Appends the head. The parts that change each second stand together, because the kernel writes them as one: the
    /// `ttl` of a hit at the end of Cache-Status, and Age in the next line. Returns where they begin in the head: at
    /// the `ttl`, or at the value of Age if there is none.
    pub(super) fn put(&self, head: &[u8], bytes: &mut Vec<u8>) -> usize {
        const AGE: &[u8] = b"Age: ";
        bytes.reserve(head.len() + 192);
        let begin = bytes.len();
        bytes.extend_from_slice(head);
        let ttl_at = self.told.as_ref().and_then(|outcome| put_status(outcome, bytes));
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

/// Appends Cache-Status. Returns where the `ttl` of a hit stands.
fn put_status(outcome: &Outcome, bytes: &mut Vec<u8>) -> Option<usize> {
    bytes.extend_from_slice(b"Cache-Status: ");
    let ttl_at = bytes.len() + cache_status::BEFORE_TTL.len();
    cache_status::put(outcome, bytes);
    bytes.extend_from_slice(b"\r\n");
    matches!(outcome, Outcome::Hit { .. }).then_some(ttl_at)
}

/// Adds Strict-Transport-Security, unless the server's head has one.
pub(super) fn put_hsts(value: Option<&str>, head: &[u8], out: &mut Vec<u8>) {
    const NAME: &[u8] = b"Strict-Transport-Security: ";
    let Some(value) = value else { return };
    let named = NAME.len() - 1;
    let is = |line: &[u8]| {
        line.get(..named).is_some_and(|name| name.eq_ignore_ascii_case(&NAME[..named]))
    };
    if !head.split_inclusive(|&byte| byte == b'\n').any(is) {
        for text in [NAME, value.as_bytes(), b"\r\n"] {
            out.extend_from_slice(text);
        }
    }
}

/// The head of a 206 with one part.
fn head_of_part(response: &Response, range: &std::ops::Range<u64>, complete: u64) -> Vec<u8> {
    let mut head = status_line_of(response.draft.head(), "206 Partial Content");
    let content_range = range::content_range(range, complete);
    head.extend_from_slice(format!("Content-Range: {content_range}\r\n").as_bytes());
    head
}

/// The head with another status.
fn status_line_of(head: &[u8], status: &str) -> Vec<u8> {
    let rest = head.iter().position(|&byte| byte == b'\n').map_or(head.len(), |end| end + 1);
    let mut new = format!("HTTP/1.1 {status}\r\n").into_bytes();
    new.extend_from_slice(head.get(rest..).unwrap_or_default());
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
