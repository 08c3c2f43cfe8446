//! Promises that hold for any bytes: one function per fuzz target.
//!
//! The functions panic when a promise is broken. They are driven by libFuzzer (`fuzz_targets/`)
//! and by an ordinary test of afpa-http, which includes this file.

/// The target of translations of nginx's configurations; an ordinary test of afpa-adapt has the file.
#[cfg(not(test))]
pub mod adapt;
/// Targets of DNS; an ordinary test of afpa-dns has the file.
#[cfg(not(test))]
pub mod dns;
/// The target of FastCGI; an ordinary test of afpa-fastcgi has the file.
#[cfg(not(test))]
pub mod fastcgi;
/// Targets of fleets; an ordinary test of afpa-fleet has the file.
#[cfg(not(test))]
pub mod fleet;
/// Targets of HTTP/2; ordinary tests of afpa-h2 have the file.
#[cfg(not(test))]
pub mod h2;
/// Targets of HTTP/3; ordinary tests of afpa-h3 have the file.
#[cfg(not(test))]
pub mod h3;
/// The target of server-side includes; an ordinary test of afpa-includes has the file.
#[cfg(not(test))]
pub mod includes;
/// Targets of the proxy. An ordinary test of afpa-http includes this file, and has no use for them.
#[cfg(not(test))]
pub mod proxy;
/// Targets of the router; likewise.
#[cfg(not(test))]
pub mod routing;
/// Targets of TLS; likewise.
#[cfg(not(test))]
pub mod tls;
/// The target of names and passwords; an ordinary test of afpa-users has the file.
#[cfg(not(test))]
pub mod users;

use afpa_http::body::BodySkipper;
use afpa_http::chunked::ChunkedDecoder;
use afpa_http::multipart::{Boundary, Multipart};
use afpa_http::{
    BodyLength, Coding, CodingSet, EntityTag, FieldSlots, HttpDate, Precondition, Ranges, Request,
    RequestLimits, Validators, coding, conditional, range, request, target, trace::Trace,
};

/// Small enough for inputs of a fuzzer to reach every limit.
const LIMITS: RequestLimits = RequestLimits { request_line: 64, head: 512, fields: 8 };

/// Request heads: an answer never changes once it is given, a good head is what it says it is.
pub fn request(data: &[u8]) {
    let answer = |input: &[u8]| {
        let mut slots = FieldSlots::new();
        let answer = request::parse(input, &mut slots, &LIMITS);
        answer.map(|request| request.map(|request| summary(&request, input)))
    };
    let whole = answer(data);
    // Behind the limit of the head nothing can change any more.
    let mut given = false;
    for end in 0..data.len().min(LIMITS.head + 2) {
        let now = answer(&data[..end]);
        given |= now != Ok(None);
        assert!(!given || now == whole, "{now:?} after {end} bytes, {whole:?} in the end");
    }
}

fn summary(request: &Request<'_, '_>, input: &[u8]) -> (usize, BodyLength, bool) {
    let head = &input[..request.head_len];
    assert!(head.ends_with(b"\r\n\r\n") && head.len() <= LIMITS.head);
    for (at, &byte) in head.iter().enumerate() {
        assert!(byte != 0 && byte != 0x7f);
        assert!(byte != b'\n' || head[at - 1] == b'\r', "bare LF");
        assert!(byte != b'\r' || head[at + 1] == b'\n', "bare CR");
    }
    assert!(request.raw_target.is_ascii() && request.fields().len() <= LIMITS.fields);
    if let Some(path) = request.target.path() {
        target(path);
    }
    (request.head_len, request.body, request.keep_alive)
}

/// Paths: a normalised path stays as it is, and names nothing outside the root.
pub fn target(data: &[u8]) {
    let mut scratch = Vec::new();
    let Ok(path) = target::normalise(data, &mut scratch) else { return };
    assert_eq!(path.first(), Some(&b'/'));
    assert!(!path.iter().any(|byte| byte.is_ascii_control() && *byte != target::ESCAPED_SLASH));
    let mut segments = path[1..].split(|&byte| byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        assert!(!matches!(segment, b"." | b".."));
        assert!(!segment.is_empty() || segments.peek().is_none());
    }
    let (mut encoded, mut again) = (Vec::new(), Vec::new());
    target::encode(path, &mut encoded);
    assert_eq!(target::normalise(&encoded, &mut again), Ok(path));
}

/// Chunked bodies: the first byte says how the rest is split; no split changes anything, and
/// skipping ends where decoding does.
pub fn chunked(data: &[u8]) {
    let Some((&step, wire)) = data.split_first() else { return };
    let whole = decode(wire, wire.len().max(1));
    assert_eq!(decode(wire, usize::from(step).max(1)), whole);
    let skipped = BodySkipper::new(BodyLength::Chunked, u64::MAX).feed(wire);
    match (whole, skipped) {
        (Some((_, consumed, done)), Ok(skipped)) => {
            assert_eq!((consumed, done), (skipped.consumed, skipped.done));
            assert!(done || consumed == wire.len());
        }
        (whole, skipped) => assert!(whole.is_none() && skipped.is_err()),
    }
}

fn decode(wire: &[u8], step: usize) -> Option<(Vec<u8>, usize, bool)> {
    let mut decoder = ChunkedDecoder::default();
    let (mut content, mut at) = (Vec::new(), 0);
    for piece in wire.chunks(step) {
        let mut rest = piece;
        while !rest.is_empty() && !decoder.is_done() {
            let progress = decoder.decode(rest).ok()?;
            assert!(progress.consumed > 0 && progress.data.end <= progress.consumed);
            content.extend_from_slice(&rest[progress.data]);
            rest = &rest[progress.consumed..];
            at += progress.consumed;
        }
    }
    Some((content, at, decoder.is_done()))
}

/// Caching: the bytes are field lines, of a request and of a response at once. The secondary key is the same each
/// time and holds no byte that separates keys but those that it wrote. A response that must not be used stale is not.
pub fn caching(data: &[u8]) {
    use afpa_http::caching::{RequestControl, ResponseFacts, fields, freshness, reuse, vary};
    with_fields(data, |request| {
        let lines = request.fields().map(|(name, value)| (name.as_bytes(), value));
        let facts = ResponseFacts::of(200, lines.clone(), &["CDN-Cache-Control"]);
        let heuristic = Some(freshness::Heuristic::default());
        let lifetime = freshness::lifetime(&facts, 784_111_777, heuristic);
        assert!(lifetime <= 1 << 31 && facts.age <= 1 << 31);
        let control =
            RequestControl::of(values(request, "cache-control"), values(request, "pragma"));
        let age = lifetime.saturating_add(1);
        let (control_of, grace) = (facts.control, u64::MAX);
        let stored_control = reuse::StoredControl::from(&control_of);
        let stored = reuse::Stored { control: stored_control, lifetime, age, purged: false, grace };
        if control_of.must_revalidate || control_of.no_cache {
            assert!(matches!(reuse::judge(&stored, &control), reuse::Reuse::Validate(_)));
            assert!(!reuse::may_replace_error(&stored, &control));
        }
        if let Some(names) = vary::names(values(request, "vary")) {
            let key = || {
                let mut key = Vec::new();
                vary::put_key(&names, request, &mut key);
                key
            };
            assert_eq!(key(), key());
            let ends = key().iter().filter(|&&byte| byte == b'\n').count();
            assert_eq!(ends, names.len());
        }
        for (name, value) in lines {
            assert!(fields::tags(name, value).iter().all(|tag| !tag.contains(&b'\n')));
        }
    });
}

/// The values of the lines of a field.
fn values<'b>(request: &Request<'_, 'b>, wanted: &'static str) -> impl Iterator<Item = &'b [u8]> {
    let lines = request.fields().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted));
    lines.map(|(_, value)| value)
}

/// Conditions and ranges: the bytes are field lines. The selected ranges lie within the
/// representation, and the length of a multipart body is exact.
pub fn selection(data: &[u8]) {
    const LENGTH: u64 = 1000;
    const MODIFIED: u64 = 784_111_777;
    with_fields(data, |request| {
        let Some(etag) = EntityTag::new("tag") else { return };
        let validators = Validators { etag: &etag, last_modified: MODIFIED };
        let precondition = conditional::evaluate(request, &validators);
        let unconditional = !request.has_any(afpa_http::KnownSet::CONDITIONAL);
        assert!(!unconditional || precondition == Precondition::Proceed);
        match range::select(request, &validators, LENGTH, 8, MODIFIED + 1) {
            Ranges::Whole | Ranges::Unsatisfiable => {}
            Ranges::One(range) => assert!(range.start < range.end && range.end <= LENGTH),
            Ranges::Many(ranges) => check_parts(&ranges, LENGTH),
        }
        if let Some(date) = request.first(afpa_http::Known::IfModifiedSince) {
            let read = afpa_http::date::parse(date);
            let again = read.and_then(|at| afpa_http::date::parse(HttpDate::new(at).as_bytes()));
            assert_eq!(read, again);
        }
    });
}

fn check_parts(ranges: &[std::ops::Range<u64>], length: u64) {
    assert!((2..=8).contains(&ranges.len()));
    let mut sorted = ranges.to_vec();
    sorted.sort_by_key(|range| range.start);
    assert!(sorted.iter().all(|range| range.start < range.end && range.end <= length));
    assert!(sorted.windows(2).all(|pair| pair[0].end < pair[1].start));
    let multipart = Multipart::new(Boundary::new(7), "text/plain", length, ranges);
    let parts = multipart.parts().iter();
    let sum: u64 =
        parts.map(|part| part.head.len() as u64 + (part.range.end - part.range.start)).sum();
    assert_eq!(multipart.content_length(), sum + multipart.closing().len() as u64);
}

/// Parts of a representation: each line is a Content-Range, and the next one the bytes that come with it. A look-up finds
/// the bytes that were given last, nothing lies outside or beyond the limits, and a refused part changes nothing.
pub fn parts(data: &[u8]) {
    use afpa_http::caching::parts::{ContentRange, Most, Parts};
    type Bytes = std::sync::Arc<[u8]>;
    const MOST: Most = Most { pieces: 3, bytes: 64 };
    let mut parts: Option<Parts<Bytes>> = None;
    let mut said = std::collections::HashMap::new();
    let mut lines = data.split(|&byte| byte == b'\n');
    while let (Some(range), Some(bytes)) = (lines.next(), lines.next()) {
        let Some(part) = ContentRange::parse(range) else { continue };
        assert!(part.range.start < part.range.end && part.range.end <= part.complete);
        let held = parts.get_or_insert_with(|| Parts::new(part.complete));
        let before = format!("{held:?}");
        let start = part.range.start;
        if held.add(start, bytes, MOST, &mut |all| Some(all.concat().into())).is_err() {
            assert_eq!(before, format!("{held:?}"));
            continue;
        }
        said.extend((start..).zip(bytes.iter().copied()));
        let mut at = 0;
        for piece in held.pieces() {
            assert!(piece.start >= at && !piece.bytes.is_empty());
            at = piece.start + piece.bytes.len() as u64;
            assert!((piece.start..at).zip(&*piece.bytes).all(|(at, byte)| said[&at] == *byte));
            assert_eq!(held.find(&(piece.start..at)).map(|found| found.len()), Some(1));
        }
        assert!(at <= held.complete() && held.pieces().len() <= MOST.pieces);
        assert!(held.bytes() <= MOST.bytes);
        assert_eq!(held.is_complete(), held.find(&(0..held.complete())).is_some());
    }
}

/// A snapshot of stored responses: any bytes are read to an end or refused, and a record has one spelling.
pub fn snapshot(data: &[u8]) {
    use afpa_http::caching::snapshot::{Clocks, Decoder, Piece, Record, Writer};
    read_snapshot(data);
    // Checks would keep most inputs from the records, so the same bytes are also read as one record.
    let mut out = Vec::new();
    let mut writer = Writer::begin(&Clocks::default(), &mut out);
    let begin = out.len();
    let Some(record) = Record::parse(data) else { return };
    let seconds = record.took_us;
    assert!(record.age_after(seconds).is_none_or(|age| age >= record.age));
    assert!(writer.put(&record, usize::MAX, &mut out));
    assert_eq!(out.get(begin + 4..out.len() - 8), Some(data), "one record, one spelling");
    let mut decoder = Decoder::new(data.len());
    writer.end(&mut out);
    let mut rest = &out[..];
    while decoder.wants() > 0 {
        let (piece, more) = rest.split_at(decoder.wants());
        if let Piece::Record(again) = decoder.take(piece).expect("it was just written") {
            assert_eq!(*again, record);
        }
        rest = more;
    }
    assert!(rest.is_empty());
}

/// Reads any bytes as a snapshot.
fn read_snapshot(mut data: &[u8]) {
    use afpa_http::caching::snapshot::Decoder;
    let whole = data.len();
    let mut decoder = Decoder::new(whole);
    while decoder.wants() > 0 {
        assert!(decoder.wants() <= whole + 64, "no length is believed that cannot be true");
        let (piece, rest) = data.split_at(decoder.wants().min(data.len()));
        if decoder.take(piece).is_err() {
            return;
        }
        data = rest;
    }
}

/// Negotiation: the choice is always available, and identity when it is all there is.
pub fn coding(data: &[u8]) {
    let field = [b"Accept-Encoding: ", data, b"\r\n"].concat();
    with_fields(&field, |request| {
        let gzip = CodingSet::IDENTITY.with(Coding::Gzip);
        let every = Coding::ALL.into_iter().collect();
        for available in [CodingSet::IDENTITY, gzip, every] {
            assert!(available.contains(coding::choose(request, available)));
        }
    });
}

fn with_fields(lines: &[u8], check: impl Fn(&Request<'_, '_>)) {
    let head = [b"GET / HTTP/1.1\r\nHost: a\r\n", lines, b"\r\n"].concat();
    let mut slots = FieldSlots::new();
    if let Ok(Some(request)) = request::parse(&head, &mut slots, &RequestLimits::default()) {
        check(&request);
    }
}

/// Values of `traceparent`: a trace that goes on has the number that was sent, and its own value is valid and the same again.
/// The parts of a value show whether it is valid, too.
pub fn trace(data: &[u8]) {
    let parts: Vec<&[u8]> = data.split(|&byte| byte == b'-').collect();
    let is_hex = |part: &[u8], length| {
        part.len() == length && part.iter().all(|byte| b"0123456789abcdef".contains(byte))
    };
    let is_set = |part: &[u8]| part.iter().any(|byte| *byte != b'0');
    let is_valid = match parts[..] {
        [version, trace, step, flags, ref rest @ ..] => {
            let later = is_hex(version, 2) && version != b"ff" && version != b"00";
            (later || version == b"00" && rest.is_empty())
                && is_hex(trace, 32)
                && is_set(trace)
                && is_hex(step, 16)
                && is_set(step)
                && is_hex(flags, 2)
        }
        _ => false,
    };
    let given = Trace::given(data);
    assert_eq!(given.is_some(), is_valid);
    if let Some(given) = given {
        assert_eq!((given.id(), given.goes_on()), (parts[1], true));
        assert_eq!(Trace::given(given.line()), Some(given));
    }
}
