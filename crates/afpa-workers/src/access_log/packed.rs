//! Records as bytes, in the buffers between a worker and the log thread.
//!
//! Fixed numbers first, then the lengths of the texts, then the texts. Both ends run in one
//! process: the byte order is the machine's.

use std::net::IpAddr;

use afpa_framework::{Client, Secured, SpanIds};
use afpa_http::MOST_CHOSEN;
use afpa_module_http::{AccessRecord, AskedServer, Span};

/// Longest field that is kept; longer ones are cut.
const FIELD_LIMIT: usize = 8 * 1024;

/// Longest method, version, source, server, user, id or word of TLS that is kept.
const WORD_LIMIT: usize = 255;

/// Longest field of the operator's choice that is kept.
const CHOSEN_LIMIT: usize = 1024;

/// Bytes before the texts.
const FIXED: usize = 8 + 8 + 4 + 2 + 4 + 1 + 4 + 17 + 1 + 11 + (4 + MOST_CHOSEN) * 2 + 1;

/// Bytes of a span before its texts.
const FIXED_OF_SPAN: usize = 16 + 3 * 8 + 1 + 2 + 1 + 4 + 3;

/// More than any packed record has.
pub(crate) const LARGEST: usize = FIXED
    + 11 * WORD_LIMIT
    + 4 * FIELD_LIMIT
    + MOST_CHOSEN * CHOSEN_LIMIT
    + FIXED_OF_SPAN
    + 3 * WORD_LIMIT;

/// A record read back from a buffer.
#[derive(Debug, PartialEq, Eq)]
pub struct Unpacked<'a> {
    /// When it was answered, since 1970.
    pub time_unix_us: u64,
    /// Bytes of content.
    pub body_bytes: u64,
    /// From the request to its answer.
    pub duration_us: u32,
    /// Of the answer.
    pub status: u16,
    /// The client that asked.
    pub client: Client,
    /// Its method.
    pub method: &'a [u8],
    /// Its version of HTTP, or that of TLS.
    pub version: &'a [u8],
    /// Where the answer came from.
    pub source: &'a [u8],
    /// As the client wrote it.
    pub target: &'a [u8],
    /// The field of this name.
    pub host: &'a [u8],
    /// Likewise.
    pub referer: &'a [u8],
    /// Likewise.
    pub user_agent: &'a [u8],
    /// The user whose password was checked; empty if none was.
    pub user: &'a [u8],
    /// The id of the request; empty if it has none.
    pub request_id: &'a [u8],
    /// The number of its trace; empty if there is none.
    pub trace_id: &'a [u8],
    /// The server that was asked; empty if none was.
    pub server: &'a [u8],
    /// Until the server's answer began.
    pub first_byte_us: u32,
    /// How often servers were asked.
    pub attempts: u8,
    /// For how many requests it stands.
    pub weight: u32,
    /// Of the connection, if it has TLS.
    pub tls: UnpackedTls<'a>,
    /// The fields of the operator's choice; empty where there is none.
    pub chosen: [&'a [u8]; MOST_CHOSEN],
    /// Its span, if that was packed.
    pub span: Option<UnpackedSpan<'a>>,
}

/// A span read back from a buffer.
#[derive(Debug, PartialEq, Eq)]
pub struct UnpackedSpan<'a> {
    /// Its numbers.
    pub ids: SpanIds,
    /// The rule that it met.
    pub route: &'a [u8],
    /// With the server, if one was asked.
    pub exchange: Option<UnpackedExchange<'a>>,
}

/// The exchange of a span.
#[derive(Debug, PartialEq, Eq)]
pub struct UnpackedExchange<'a> {
    /// Its address.
    pub server: &'a [u8],
    /// Of the answer.
    pub status: u16,
    /// How often servers were asked.
    pub attempts: u8,
    /// Until its end.
    pub total_us: u32,
    /// A word; empty if there was none.
    pub failure: &'a [u8],
}

/// The parameters that the TLS handshake agreed on; empty for a connection without TLS.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct UnpackedTls<'a> {
    /// Its version of HTTP, or that of TLS.
    pub version: &'a [u8],
    /// The suite.
    pub cipher: &'a [u8],
    /// By ALPN.
    pub protocol: &'a [u8],
    /// Of the client's certificate.
    pub subject: &'a [u8],
    /// With a ticket.
    pub resumed: bool,
    /// The request was answered before the handshake was complete.
    pub early_data: bool,
}

/// Appends `record`, with or without its span, if it fits in the capacity there is; a buffer never grows.
pub(crate) fn pack(record: &AccessRecord<'_>, with_span: bool, buffer: &mut Vec<u8>) -> bool {
    let span = record.span.filter(|_| with_span);
    let remote = record.remote.unwrap_or(AskedServer { server: "", first_byte_us: 0, attempts: 0 });
    let [version, cipher, subject] = record.tls.map_or([""; 3], |tls| {
        [tls.version, tls.cipher, tls.subject.as_deref().unwrap_or_default()]
    });
    let protocol = record.tls.and_then(|tls| tls.protocol.as_deref()).unwrap_or_default();
    let [method, http, source, server, user] =
        [record.method, record.version, record.source, remote.server, record.user]
            .map(str::as_bytes);
    let [version, cipher, subject] = [version, cipher, subject].map(str::as_bytes);
    let (id, trace) = (record.request_id, record.trace_id);
    let words = [method, http, source, server, version, cipher, protocol, subject, user, id, trace]
        .map(|word| cut(word, WORD_LIMIT));
    let fields = [record.target, record.host, record.referer, record.user_agent]
        .map(|field| cut(field, FIELD_LIMIT));
    let chosen = record.chosen.map(|value| cut(value, CHOSEN_LIMIT));
    let texts = words.iter().chain(&fields).chain(&chosen).map(|text| text.len());
    let of_span = span.as_ref().map_or(0, size_of_span);
    if buffer.capacity() - buffer.len() < FIXED + texts.sum::<usize>() + of_span {
        return false;
    }
    buffer.extend_from_slice(&record.time_unix_us.to_ne_bytes());
    buffer.extend_from_slice(&record.body_bytes.to_ne_bytes());
    buffer.extend_from_slice(&record.duration_us.to_ne_bytes());
    buffer.extend_from_slice(&record.status.to_ne_bytes());
    buffer.extend_from_slice(&remote.first_byte_us.to_ne_bytes());
    buffer.push(remote.attempts);
    buffer.extend_from_slice(&record.weight.to_ne_bytes());
    pack_client(record.client, buffer);
    let flag = |tls: &Secured| u8::from(tls.resumed) | u8::from(tls.is_early) << 1;
    buffer.push(record.tls.map_or(0, flag));
    // Cut above: the lengths fit.
    buffer.extend(words.map(|word| word.len() as u8));
    for field in fields.iter().chain(&chosen) {
        buffer.extend_from_slice(&(field.len() as u16).to_ne_bytes());
    }
    buffer.push(u8::from(span.is_some()));
    for text in words.into_iter().chain(fields).chain(chosen) {
        buffer.extend_from_slice(text);
    }
    if let Some(span) = &span {
        pack_span(span, buffer);
    }
    true
}

/// The texts of a span: its route, the server, and the word for a failure.
fn texts_of_span<'s>(span: &Span<'s>) -> [&'s [u8]; 3] {
    let (server, failure) = span.exchange.map_or(("", ""), |own| (own.server, own.failure));
    [span.route, server, failure].map(|text| cut(text.as_bytes(), WORD_LIMIT))
}

fn size_of_span(span: &Span<'_>) -> usize {
    FIXED_OF_SPAN + texts_of_span(span).iter().map(|text| text.len()).sum::<usize>()
}

fn pack_span(span: &Span<'_>, buffer: &mut Vec<u8>) {
    let SpanIds { trace, own, parent, exchange } = &span.ids;
    buffer.extend_from_slice(trace);
    for id in [own, parent, exchange] {
        buffer.extend_from_slice(id);
    }
    let (status, attempts, total_us) =
        span.exchange.map_or((0, 0, 0), |own| (own.status, own.attempts, own.total_us));
    buffer.push(u8::from(span.exchange.is_some()));
    buffer.extend_from_slice(&status.to_ne_bytes());
    buffer.push(attempts);
    buffer.extend_from_slice(&total_us.to_ne_bytes());
    let texts = texts_of_span(span);
    buffer.extend(texts.map(|text| text.len() as u8));
    for text in texts {
        buffer.extend_from_slice(text);
    }
}

fn unpack_span<'a>(bytes: &mut &'a [u8]) -> Option<UnpackedSpan<'a>> {
    let ids = SpanIds {
        trace: array(bytes)?,
        own: array(bytes)?,
        parent: array(bytes)?,
        exchange: array(bytes)?,
    };
    let [has_exchange] = array(bytes)?;
    let status = u16::from_ne_bytes(array(bytes)?);
    let [attempts] = array(bytes)?;
    let total_us = u32::from_ne_bytes(array(bytes)?);
    let lengths: [u8; 3] = array(bytes)?;
    let [route, server, failure] = lengths.map(usize::from);
    let route = bytes.split_off(..route)?;
    let server = bytes.split_off(..server)?;
    let failure = bytes.split_off(..failure)?;
    let exchange = UnpackedExchange { server, status, attempts, total_us, failure };
    Some(UnpackedSpan { ids, route, exchange: (has_exchange != 0).then_some(exchange) })
}

/// Takes the first record off `bytes`; `None` at the end.
pub fn unpack<'a>(bytes: &mut &'a [u8]) -> Option<Unpacked<'a>> {
    let time_unix_us = u64::from_ne_bytes(array(bytes)?);
    let body_bytes = u64::from_ne_bytes(array(bytes)?);
    let duration_us = u32::from_ne_bytes(array(bytes)?);
    let status = u16::from_ne_bytes(array(bytes)?);
    let first_byte_us = u32::from_ne_bytes(array(bytes)?);
    let [attempts] = array(bytes)?;
    let weight = u32::from_ne_bytes(array(bytes)?);
    let client = unpack_client(array(bytes)?);
    let [flags] = array(bytes)?;
    let words: [u8; 11] = array(bytes)?;
    let mut fields = [0; 4];
    for length in &mut fields {
        *length = u16::from_ne_bytes(array(bytes)?);
    }
    let mut lengths = [0; MOST_CHOSEN];
    for length in &mut lengths {
        *length = usize::from(u16::from_ne_bytes(array(bytes)?));
    }
    let [has_span] = array(bytes)?;
    let [method, version, source, server, tls, cipher, protocol, subject, user, id, trace] =
        words.map(usize::from);
    let [target, host, referer, user_agent] = fields.map(usize::from);
    Some(Unpacked {
        time_unix_us,
        body_bytes,
        duration_us,
        status,
        client,
        method: bytes.split_off(..method)?,
        version: bytes.split_off(..version)?,
        source: bytes.split_off(..source)?,
        server: bytes.split_off(..server)?,
        tls: UnpackedTls {
            version: bytes.split_off(..tls)?,
            cipher: bytes.split_off(..cipher)?,
            protocol: bytes.split_off(..protocol)?,
            subject: bytes.split_off(..subject)?,
            resumed: flags & 1 != 0,
            early_data: flags & 2 != 0,
        },
        user: bytes.split_off(..user)?,
        request_id: bytes.split_off(..id)?,
        trace_id: bytes.split_off(..trace)?,
        target: bytes.split_off(..target)?,
        host: bytes.split_off(..host)?,
        referer: bytes.split_off(..referer)?,
        user_agent: bytes.split_off(..user_agent)?,
        first_byte_us,
        attempts,
        weight,
        chosen: {
            let mut chosen = [&b""[..]; MOST_CHOSEN];
            for (value, length) in chosen.iter_mut().zip(lengths) {
                *value = bytes.split_off(..length)?;
            }
            chosen
        },
        span: match has_span {
            0 => None,
            _ => Some(unpack_span(bytes)?),
        },
    })
}

fn cut(text: &[u8], limit: usize) -> &[u8] {
    text.get(..limit).unwrap_or(text)
}

/// A byte that says what follows, and room for the longest address.
fn pack_client(client: Client, buffer: &mut Vec<u8>) {
    let mut packed = [0; 17];
    let [kind, address @ ..] = &mut packed;
    match client {
        Client::Unix => *kind = 0,
        Client::Ip(IpAddr::V4(v4)) => {
            *kind = 4;
            for (place, octet) in address.iter_mut().zip(v4.octets()) {
                *place = octet;
            }
        }
        Client::Ip(IpAddr::V6(v6)) => {
            *kind = 6;
            *address = v6.octets();
        }
    }
    buffer.extend_from_slice(&packed);
}

fn unpack_client(packed: [u8; 17]) -> Client {
    let [kind, address @ ..] = packed;
    match kind {
        4 => {
            let [a, b, c, d, ..] = address;
            Client::Ip(IpAddr::from([a, b, c, d]))
        }
        6 => Client::Ip(IpAddr::from(address)),
        _ => Client::Unix,
    }
}

fn array<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_log::tests::record;
    use afpa_module_http::ExchangeSpan;

    #[test]
    fn records_come_back_in_order() {
        let mut buffer = Vec::with_capacity(1024);
        let clients = [
            Client::Unix,
            Client::Ip("192.0.2.7".parse().unwrap()),
            Client::Ip("2001:db8::7".parse().unwrap()),
        ];
        for client in clients {
            assert!(pack(&AccessRecord { client, ..record() }, false, &mut buffer));
        }
        let mut bytes = buffer.as_slice();
        for client in clients {
            let unpacked = unpack(&mut bytes).unwrap();
            assert_eq!(unpacked.client, client);
            assert_eq!((unpacked.method, unpacked.target), (&b"GET"[..], record().target));
            assert_eq!((unpacked.status, unpacked.body_bytes), (200, 612));
            assert_eq!((unpacked.time_unix_us, unpacked.duration_us), (971_186_136_123_456, 250));
            assert_eq!((unpacked.host, unpacked.referer), (&b"example.org"[..], &b""[..]));
            assert_eq!((unpacked.user_agent, unpacked.source), (&b"curl/8"[..], &b"hit"[..]));
            assert_eq!((unpacked.server, unpacked.attempts), (&b""[..], 0));
        }
        assert_eq!(unpack(&mut bytes), None);
    }

    #[test]
    fn a_server_and_its_time_come_back() {
        let remote = Some(AskedServer { server: "10.0.0.1:80", first_byte_us: 1234, attempts: 2 });
        let weight = 64;
        let mut buffer = Vec::with_capacity(1024);
        assert!(pack(&AccessRecord { remote, weight, ..record() }, false, &mut buffer));
        let unpacked = unpack(&mut buffer.as_slice()).unwrap();
        assert_eq!((unpacked.server, unpacked.first_byte_us), (&b"10.0.0.1:80"[..], 1234));
        assert_eq!((unpacked.attempts, unpacked.target), (2, record().target));
        assert_eq!(unpacked.weight, 64);
    }

    fn span(text: &str) -> Span<'_> {
        let ids = SpanIds { trace: [1; 16], own: [2; 8], parent: [3; 8], exchange: [4; 8] };
        let (status, attempts, total_us) = (503, 2, 77);
        let exchange = ExchangeSpan { server: text, status, attempts, total_us, failure: "reset" };
        Span { ids, route: text, exchange: Some(exchange) }
    }

    #[test]
    fn a_span_and_chosen_fields_come_back_where_they_are_wanted() {
        let mut chosen = [&b""[..]; MOST_CHOSEN];
        (chosen[0], chosen[7]) = (b"first", b"last");
        let record = AccessRecord { span: Some(span("/a/*")), chosen, ..record() };
        let mut buffer = Vec::with_capacity(4096);
        assert!(pack(&record, false, &mut buffer) && pack(&record, true, &mut buffer));
        let mut bytes = buffer.as_slice();
        let (without, with) = (unpack(&mut bytes).unwrap(), unpack(&mut bytes).unwrap());
        assert_eq!((without.span, without.chosen), (None, chosen));
        let unpacked = with.span.unwrap();
        assert_eq!((unpacked.ids, unpacked.route), (span("").ids, &b"/a/*"[..]));
        let exchange = unpacked.exchange.unwrap();
        assert_eq!((exchange.server, exchange.failure), (&b"/a/*"[..], &b"reset"[..]));
        assert_eq!((exchange.status, exchange.attempts, exchange.total_us), (503, 2, 77));
        assert_eq!(unpack(&mut bytes), None);
    }

    #[test]
    fn a_buffer_never_grows() {
        let mut buffer = Vec::with_capacity(512);
        let capacity = buffer.capacity();
        let count = (0..100).take_while(|_| pack(&record(), false, &mut buffer)).count();
        assert!(count > 1 && buffer.capacity() == capacity);
        let mut bytes = buffer.as_slice();
        assert_eq!(std::iter::from_fn(|| unpack(&mut bytes)).count(), count);
    }

    #[test]
    fn long_fields_are_cut_and_the_largest_record_fits() {
        let long = vec![b'a'; 100_000];
        let word = "M".repeat(300);
        let record = AccessRecord {
            method: &word,
            target: &long,
            host: &long,
            referer: &long,
            user_agent: &long,
            chosen: [&long; MOST_CHOSEN],
            span: Some(span(&word)),
            ..record()
        };
        let mut buffer = Vec::with_capacity(LARGEST);
        assert!(pack(&record, true, &mut buffer));
        let unpacked = unpack(&mut buffer.as_slice()).unwrap();
        assert!(unpacked.chosen.iter().all(|value| value.len() == CHOSEN_LIMIT));
        assert_eq!(unpacked.span.unwrap().route.len(), WORD_LIMIT);
        assert_eq!((unpacked.method.len(), unpacked.user_agent.len()), (WORD_LIMIT, FIELD_LIMIT));
    }

    #[test]
    fn a_cut_buffer_ends_the_records() {
        let mut buffer = Vec::with_capacity(512);
        let chosen = std::array::from_fn(|at| &b"abcdefgh"[at..]);
        let record = AccessRecord { span: Some(span("/a")), chosen, ..record() };
        assert!(pack(&record, true, &mut buffer));
        for end in 0..buffer.len() {
            assert_eq!(unpack(&mut &buffer[..end]), None);
        }
    }
}
