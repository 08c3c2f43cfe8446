//! Writes answers: from a request and its object to the bytes in the outbox.
//!
//! The common answer, the whole of a pinned object, copies a head that was generated when the object
//! entered the cache, patches the date, and copies the content behind it. This formats and allocates nothing.
//! All other answers (conditions, ranges, errors) are built when they are needed.

mod pages;

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::Arc;

use crate::access::{AccessRecord, AccessSink, AskedServer, ExchangeSpan, KeptRecord, Span};
use afpa_cache::{Object, Payload};
use afpa_framework::{GATHERED, Now, Outbox, Part, Persistence, SpanIds, duration_us};
use afpa_h2::FieldCode;
use afpa_h2::hpack::encode::Hpack;
use afpa_h3::Qpack;
use afpa_http::MOST_CHOSEN;
use afpa_http::edits::Edits;
use afpa_http::marks::Marks;
use afpa_http::trace::{Steps, Trace};
use afpa_http::{
    Connection, HttpDate, Known, KnownSet, Method, Precondition, Ranges, ResponseHead, Status,
    Version, conditional,
    multipart::{Boundary, Multipart},
    page, range,
};
use afpa_proxy::exchange::{End, Report};
use afpa_shared_cache::{Answering, Recipient, Written};

use crate::asked::{Asked, is_all_of_client};
use crate::counters::HttpCounters;
use crate::errors::{Problem, Wanted};
use crate::header::{HttpHeader, Variant};
use crate::settings::DocRootSettings;

/// The state that a core needs to write answers.
pub(crate) struct Responder {
    pub(crate) counters: Arc<HttpCounters>,
    pub(crate) sink: Box<dyn AccessSink>,
    /// The date of the present second, formatted once.
    date: HttpDate,
    second: u64,
    /// The engine drains: every answer is the last one on its connection.
    pub(crate) draining: bool,
    /// Instead of an answer: a request for the page of an error.
    pub(crate) wanted: Option<Box<Wanted>>,
}

impl Responder {
    pub(crate) fn new(counters: Arc<HttpCounters>, sink: Box<dyn AccessSink>) -> Self {
        Self { counters, sink, date: HttpDate::new(0), second: 0, draining: false, wanted: None }
    }

    /// Whether a server is to be asked for the page of an error, and nothing was answered yet.
    #[inline]
    pub(crate) fn wants_page(&self) -> bool {
        self.wanted.is_some()
    }

    /// Answers from a cache object.
    pub(crate) fn object(
        &mut self,
        asked: Asked<'_, '_, '_>,
        object: &Object<HttpHeader>,
        settings: &DocRootSettings,
        out: &mut Outbox,
    ) -> Persistence {
        let header = object.header();
        let edits = asked.edits.map(|edits| edits.with_mask(header.edits));
        let asked = Asked { edits, ..asked };
        let Some(variant) = header.choose(asked.request) else {
            return self.page(asked, Status::INTERNAL_SERVER_ERROR, out);
        };
        if asked.request.has_any(KnownSet::CONDITIONAL.union(KnownSet::RANGE)) {
            return self.special(asked, object, variant, settings, out);
        }
        self.whole(asked, object, variant, out)
    }

    /// Answers from a stored response of a server.
    pub(crate) fn stored(
        &mut self,
        asked: Asked<'_, '_, '_>,
        answering: Answering<'_>,
        out: &mut Outbox,
    ) -> Persistence {
        let (connection, persistence) = self.connection(asked);
        let Asked { request, now, .. } = asked;
        let hsts = asked.hsts.map(|value| &**value);
        let edits = asked.edits;
        match answering.write(Recipient { request, connection, hsts, edits, boundary, now }, out) {
            Written::Answer(status, sent) => {
                self.counters.shared_bytes.add(sent);
                self.note_code(asked, status, sent, out);
                persistence
            }
            Written::Unsatisfiable(length) => self.unsatisfiable(asked, length, out),
            Written::Nothing => self.page(asked, Status::INTERNAL_SERVER_ERROR, out),
        }
    }

    /// The whole of a variant: 200.
    fn whole(
        &mut self,
        asked: Asked<'_, '_, '_>,
        object: &Object<HttpHeader>,
        variant: &Variant,
        out: &mut Outbox,
    ) -> Persistence {
        let (connection, persistence) = self.connection(asked);
        // Each stream has an outbox of its own.
        let may_be_block = out.is_empty() && !asked.gets_cookies();
        match variant.block(asked.request.version).filter(|_| may_be_block) {
            Some(block) => {
                block.write(&mut out.bytes, self.date_of(asked.now));
                match asked.request.version {
                    Version::Http3 => put_own::<Qpack>(asked, &mut out.bytes),
                    _ => put_own::<Hpack>(asked, &mut out.bytes),
                }
                out.block = out.bytes.len();
            }
            _ => {
                variant.ok.write(&mut out.bytes, self.date_of(asked.now), connection);
                asked.add_own(&mut out.bytes);
                asked.add_origin(&mut out.bytes);
            }
        }
        let mut length = 0;
        if asked.request.method == Method::Get {
            length = variant.len;
            push_content(object, variant, 0..length, out);
        }
        self.note(asked, Status::OK, length, out);
        persistence
    }

    /// Evaluates conditions and ranges: 304, 412, 206, 416, or 200 (RFC 9110 section 13.2.2).
    fn special(
        &mut self,
        asked: Asked<'_, '_, '_>,
        object: &Object<HttpHeader>,
        variant: &Variant,
        settings: &DocRootSettings,
        out: &mut Outbox,
    ) -> Persistence {
        let validators = object.header().validators(variant);
        match conditional::evaluate(asked.request, &validators) {
            Precondition::NotModified => {
                let (connection, persistence) = self.connection(asked);
                variant.not_modified.write(&mut out.bytes, self.date_of(asked.now), connection);
                asked.add_own(&mut out.bytes);
                asked.add_origin(&mut out.bytes);
                self.note(asked, Status::NOT_MODIFIED, 0, out);
                persistence
            }
            Precondition::Failed => self.page(asked, Status::PRECONDITION_FAILED, out),
            Precondition::Proceed => {
                let most = settings.ranges;
                match range::select(asked.request, &validators, variant.len, most, asked.now.unix())
                {
                    Ranges::Whole => self.whole(asked, object, variant, out),
                    Ranges::One(range) => self.one_range(asked, object, variant, range, out),
                    Ranges::Many(ranges) => self.many_ranges(asked, object, variant, &ranges, out),
                    Ranges::Unsatisfiable => self.unsatisfiable(asked, variant.len, out),
                }
            }
        }
    }

    fn one_range(
        &mut self,
        asked: Asked<'_, '_, '_>,
        object: &Object<HttpHeader>,
        variant: &Variant,
        range: Range<u64>,
        out: &mut Outbox,
    ) -> Persistence {
        let length = range.end - range.start;
        let header = object.header();
        let head = partial(header, variant)
            .field("Content-Type", header.content_type.as_bytes())
            .field("Content-Range", range::content_range(&range, variant.len))
            .content_length(length)
            .finish();
        let persistence = self.head(asked, (Status::PARTIAL_CONTENT, &head), out);
        push_content(object, variant, range, out);
        self.note(asked, Status::PARTIAL_CONTENT, length, out);
        persistence
    }

    fn many_ranges(
        &mut self,
        asked: Asked<'_, '_, '_>,
        object: &Object<HttpHeader>,
        variant: &Variant,
        ranges: &[Range<u64>],
        out: &mut Outbox,
    ) -> Persistence {
        let header = object.header();
        let parts = Multipart::new(boundary(), &header.content_type, variant.len, ranges);
        let length = parts.content_length();
        let head = partial(header, variant)
            .field("Content-Type", parts.content_type())
            .content_length(length)
            .finish();
        let persistence = self.head(asked, (Status::PARTIAL_CONTENT, &head), out);
        for part in parts.parts() {
            out.push(Part::Bytes(part.head.clone()));
            push_part(object, variant, part.range.clone(), out);
        }
        out.push(Part::Bytes(parts.closing().to_vec()));
        self.note(asked, Status::PARTIAL_CONTENT, length, out);
        persistence
    }

    fn unsatisfiable(
        &mut self,
        asked: Asked<'_, '_, '_>,
        length: u64,
        out: &mut Outbox,
    ) -> Persistence {
        let problem = Problem::new(Status::RANGE_NOT_SATISFIABLE)
            .with("Content-Range", range::content_range_unsatisfied(length));
        self.problem(asked, problem, out)
    }

    /// Records an answer that a server gave.
    pub(crate) fn record_remote(&mut self, asked: Asked<'_, '_, '_>, status: u16, report: &Report) {
        self.record_exchange(asked, (status, report.content_bytes), report);
    }

    /// Records an answer for which a server was asked.
    fn record_exchange(
        &mut self,
        asked: Asked<'_, '_, '_>,
        (status, length): (u16, u64),
        report: &Report,
    ) {
        let asked = Asked { exchange: Some(report), ..asked };
        let record = record(asked, (status, length), self.sink.chosen());
        self.sink.record(&AccessRecord { remote: Some(remote_of(report)), ..record });
    }

    /// Whether the answer to a request with these marks is recorded.
    #[inline]
    pub(crate) fn records(&self, edits: Option<Edits<'_>>) -> bool {
        self.sink.enabled() || self.sink.takes_spans() && is_recorded(edits)
    }

    fn head(
        &self,
        asked: Asked<'_, '_, '_>,
        (status, head): (Status, &ResponseHead),
        out: &mut Outbox,
    ) -> Persistence {
        let (connection, persistence) = self.connection(asked);
        let begin = out.bytes.len();
        head.write(&mut out.bytes, &HttpDate::new(asked.now.unix()), connection);
        asked.add_own(&mut out.bytes);
        asked.edit(&mut out.bytes, begin, status.code());
        persistence
    }

    /// Whether the connection persists (RFC 9112 section 9.3). A client that waits for 100 (Continue) and gets a final
    /// answer instead may or may not send its content, so the connection has to end.
    pub(crate) fn connection(&self, asked: Asked<'_, '_, '_>) -> (Connection, Persistence) {
        let request = asked.request;
        if request.version == Version::Http2 {
            // The engine ends the connection, by a frame.
            return (Connection::Implied, Persistence::Keep);
        }
        let last = !request.keep_alive || request.expect_continue || asked.must_close;
        if last || self.draining {
            let persistence = match is_all_of_client(request) {
                true => Persistence::CloseAsAsked,
                false => Persistence::Close,
            };
            return (Connection::Close, persistence);
        }
        let connection = match request.version {
            Version::Http10 => Connection::KeepAlive,
            Version::Http11 | Version::Http2 | Version::Http3 => Connection::Implied,
        };
        (connection, Persistence::Keep)
    }

    fn date_of(&mut self, now: Now) -> &HttpDate {
        if self.second != now.unix() {
            self.second = now.unix();
            self.date = HttpDate::new(self.second);
        }
        &self.date
    }

    /// Counts the answer, and records it: at once, or when its parts have been sent.
    fn note(&mut self, asked: Asked<'_, '_, '_>, status: Status, length: u64, out: &mut Outbox) {
        self.note_code(asked, status.code(), length, out);
    }

    /// As `note`, with a status that a server chose.
    pub(crate) fn note_code(
        &mut self,
        asked: Asked<'_, '_, '_>,
        status: u16,
        length: u64,
        out: &mut Outbox,
    ) {
        self.counters.answered_code(status, length);
        asked.count(status);
        if !self.records(asked.edits) {
            return;
        }
        let record = record(asked, (status, length), self.sink.chosen());
        if out.parts.is_empty() {
            self.sink.record(&record);
        } else {
            out.receipt = Some(KeptRecord::keep(&record));
        }
    }
}

/// Appends the fields of this answer to the field block of its object.
fn put_own<C: FieldCode>(asked: Asked<'_, '_, '_>, out: &mut Vec<u8>) {
    if let Some(value) = asked.hsts {
        C::put_field(out, b"strict-transport-security", value.as_bytes());
    }
    for (name, value) in asked.edits.iter().flat_map(|edits| edits.own_fields()) {
        C::put_field(out, name.as_bytes(), value);
    }
}

/// The record of an answer, with these fields of its request.
fn record<'a>(
    asked: Asked<'a, '_, 'a>,
    (status, body_bytes): (u16, u64),
    names: &[Box<str>],
) -> AccessRecord<'a> {
    let request = asked.request;
    let mut chosen = [&b""[..]; MOST_CHOSEN];
    for (value, name) in chosen.iter_mut().zip(names) {
        let mut lines = request.fields();
        let line = lines.find(|(own, _)| own.eq_ignore_ascii_case(name));
        *value = line.map(|(_, value)| value).unwrap_or_default();
    }
    AccessRecord {
        time_unix_us: asked.arrived.unix_us,
        client: asked.client,
        method: request.method.as_str(),
        target: request.raw_target,
        version: request.version.name(),
        status,
        body_bytes,
        duration_us: duration_us(asked.arrived.unix_us, asked.now.unix_us),
        host: request.host.as_bytes(),
        referer: request.first(Known::Referer).unwrap_or_default(),
        user_agent: request.first(Known::UserAgent).unwrap_or_default(),
        user: asked.user().unwrap_or_default(),
        request_id: asked.marks().map(Marks::id).unwrap_or_default(),
        trace_id: asked.marks().map(Marks::trace_id).unwrap_or_default(),
        weight: 1,
        source: asked.source,
        remote: None,
        tls: asked.tls.map(|tls| &**tls),
        span: span(asked),
        chosen,
    }
}

/// Whether the trace of a request is recorded.
#[inline]
fn is_recorded(edits: Option<Edits<'_>>) -> bool {
    let marks = edits.and_then(|edits| edits.marks);
    marks.and_then(|marks| marks.trace.as_ref()).is_some_and(Trace::is_recorded)
}

/// The span of a request, if it is to be recorded.
fn span<'a>(asked: Asked<'a, '_, '_>) -> Option<Span<'a>> {
    let Steps { trace, parent, own, step } = asked.marks()?.trace.as_ref()?.recorded()?;
    let ids = SpanIds { trace, own, parent, exchange: step };
    let route = asked.scope.and_then(|scope| scope.route.as_deref()).unwrap_or_default();
    let exchange = asked.exchange.filter(|report| report.attempts > 0).map(|report| ExchangeSpan {
        server: report.server.as_deref().unwrap_or_default(),
        status: report.status,
        attempts: u8::try_from(report.attempts).unwrap_or(u8::MAX),
        total_us: report.total_us,
        failure: match report.end {
            End::Failed(failure) => failure.key(),
            End::Broken => "broken",
            End::ClientGone | End::Relayed(_) => "",
        },
    });
    Some(Span { ids, route, exchange })
}

fn remote_of(report: &Report) -> AskedServer<'_> {
    AskedServer {
        server: report.server.as_deref().unwrap_or_default(),
        first_byte_us: report.first_byte_us,
        attempts: u8::try_from(report.attempts).unwrap_or(u8::MAX),
    }
}

/// Begins the head of a small page.
fn page_head(status: Status, length: usize) -> afpa_http::head::HeadBuilder {
    ResponseHead::build(status)
        .field("Content-Type", page::CONTENT_TYPE)
        .content_length(length as u64)
}

/// The fields of every 206: those of a 200, without the ones about its content (RFC 9110 section 15.3.7).
fn partial(header: &HttpHeader, variant: &Variant) -> afpa_http::head::HeadBuilder {
    let coded = variant.coding != afpa_http::Coding::Identity;
    let head = ResponseHead::build(Status::PARTIAL_CONTENT)
        .last_modified(header.last_modified)
        .field("ETag", variant.etag.as_bytes())
        .field("Accept-Ranges", "bytes")
        .field_if("Vary", header.varies().then_some("Accept-Encoding"))
        .field_if("Content-Encoding", coded.then(|| variant.coding.token()));
    header.fields.iter().fold(head, |head, (name, value)| head.field(name, value))
}

/// A random boundary, from the keys of a new hasher, so that no file can be made to contain it.
fn boundary() -> Boundary {
    let half = || u128::from(RandomState::new().hash_one(()));
    Boundary::new(half() << 64 | half())
}

/// Appends a range of content: small pinned content is copied, all other content is sent from the object.
fn push_content(
    object: &Object<HttpHeader>,
    variant: &Variant,
    range: Range<u64>,
    out: &mut Outbox,
) {
    match object.payloads().get(variant.payload) {
        Some(Payload::Pinned(bytes)) if range.end - range.start <= GATHERED => {
            out.bytes.extend_from_slice(&bytes[range.start as usize..range.end as usize]);
        }
        _ => push_part(object, variant, range, out),
    }
}

fn push_part(object: &Object<HttpHeader>, variant: &Variant, range: Range<u64>, out: &mut Outbox) {
    out.priority = object.header().priority;
    match object.payloads().get(variant.payload) {
        Some(Payload::Pinned(bytes)) => {
            out.push(Part::Pinned(bytes.clone(), range.start as usize..range.end as usize));
        }
        Some(Payload::File(file, _)) => {
            out.push(Part::File { file: Arc::clone(file), stamp: variant.stamp, range })
        }
        None => debug_assert!(false, "a variant without payload"),
    }
}
