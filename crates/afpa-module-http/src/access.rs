//! The record of an answered request, and where records go.

use afpa_framework::{Client, Secured, SpanIds, duration_us};
use afpa_http::MOST_CHOSEN;

/// One answered request, as the access log writes it.
#[derive(Clone, Copy, Debug)]
pub struct AccessRecord<'a> {
    /// Microseconds since the Unix epoch at which the request was understood.
    pub time_unix_us: u64,
    /// The client.
    pub client: Client,
    /// Method as sent.
    pub method: &'a str,
    /// Request target as sent, undecoded.
    pub target: &'a [u8],
    /// Protocol version, for example `HTTP/1.1`.
    pub version: &'static str,
    /// Status code of the answer.
    pub status: u16,
    /// Bytes of content sent, without the head.
    pub body_bytes: u64,
    /// Microseconds from the arrival of the request to the last byte handed to the kernel. It is 0 for an
    /// answer that is sent at once, for which the clock is not read again.
    pub duration_us: u32,
    /// The Host field, empty if there was none.
    pub host: &'a [u8],
    /// The Referer field, empty if there was none.
    pub referer: &'a [u8],
    /// The User-Agent field, empty if there was none.
    pub user_agent: &'a [u8],
    /// The name of the user whose password was checked, empty if none was.
    pub user: &'a str,
    /// The id of the request, empty if it has none.
    pub request_id: &'a [u8],
    /// The number of the trace that it belongs to, empty if there is none.
    pub trace_id: &'a [u8],
    /// Answers that the record stands for: more than one where only a sample is recorded.
    pub weight: u32,
    /// The state that answered: `hit`, `uncached`, `remote` ...
    pub source: &'static str,
    /// The server that was asked, if one was.
    pub remote: Option<AskedServer<'a>>,
    /// The result of the TLS handshake, on a connection with TLS.
    pub tls: Option<&'a Secured>,
    /// Its span, if one is to be recorded.
    pub span: Option<Span<'a>>,
    /// The values of the request's fields that the sink has asked for, in its order; empty where there is none.
    pub chosen: [&'a [u8]; MOST_CHOSEN],
}

/// The part of a trace that a request is, where the trace is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span<'a> {
    /// Its number, and those of the trace and of the spans around it.
    pub ids: SpanIds,
    /// The place in the configuration that has answered; empty if none has.
    pub route: &'a str,
    /// The exchange with a server, if one took place.
    pub exchange: Option<ExchangeSpan<'a>>,
}

/// The exchange with a server, as its span tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeSpan<'a> {
    /// The last server that was asked.
    pub server: &'a str,
    /// Status of its response; 0 if there was none.
    pub status: u16,
    /// How many servers were asked.
    pub attempts: u8,
    /// Microseconds that it took.
    pub total_us: u32,
    /// A word for its failure; empty if there was none.
    pub failure: &'static str,
}

/// The part of a server group in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedServer<'a> {
    /// The last server that was asked.
    pub server: &'a str,
    /// Microseconds until its response began; 0 if none did.
    pub first_byte_us: u32,
    /// How many servers were asked.
    pub attempts: u8,
}

/// Takes the records of a core. Its calls must not block.
pub trait AccessSink {
    /// Whether records are wanted at all. This is asked before a record is put together.
    fn enabled(&self) -> bool;
    /// Whether a record is wanted of a request whose span is recorded. This is asked before it is put together.
    fn takes_spans(&self) -> bool {
        false
    }
    /// The names of the fields of requests that records are to have, in lower case: the first [`MOST_CHOSEN`] count.
    fn chosen(&self) -> &[Box<str>] {
        &[]
    }
    /// Takes a record, or drops and counts it when the writer is behind.
    fn record(&mut self, record: &AccessRecord<'_>);
    /// Hands the gathered records to the writer; called about once a second.
    fn flush(&mut self);
}

/// No access log.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoAccessLog;

impl AccessSink for NoAccessLog {
    fn enabled(&self) -> bool {
        false
    }
    fn record(&mut self, _: &AccessRecord<'_>) {}
    fn flush(&mut self) {}
}

/// A record that owns its bytes, for a response that is not sent at once.
#[derive(Clone, Debug)]
pub(crate) struct KeptRecord {
    time_unix_us: u64,
    client: Client,
    version: &'static str,
    status: u16,
    source: &'static str,
    method: Box<str>,
    target: Box<[u8]>,
    host: Box<[u8]>,
    referer: Box<[u8]>,
    user_agent: Box<[u8]>,
    user: Box<str>,
    request_id: Box<[u8]>,
    trace_id: Box<[u8]>,
    remote: Option<(Box<str>, u32, u8)>,
    tls: Option<Box<Secured>>,
    span: Option<Box<KeptSpan>>,
    /// As far as the last that is there.
    chosen: Vec<Box<[u8]>>,
}

/// A span that owns its texts.
#[derive(Clone, Debug)]
struct KeptSpan {
    ids: SpanIds,
    route: Box<str>,
    /// The server, and the rest of the exchange with it.
    exchange: Option<(Box<str>, ExchangeSpan<'static>)>,
}

impl KeptSpan {
    fn keep(span: &Span<'_>) -> Box<Self> {
        let kept = |exchange: ExchangeSpan<'_>| {
            let ExchangeSpan { server, status, attempts, total_us, failure } = exchange;
            let rest = ExchangeSpan { server: "", status, attempts, total_us, failure };
            (server.into(), rest)
        };
        let exchange = span.exchange.map(kept);
        Box::new(Self { ids: span.ids, route: span.route.into(), exchange })
    }

    fn span(&self) -> Span<'_> {
        let exchange = self.exchange.as_ref();
        let exchange = exchange.map(|(server, rest)| ExchangeSpan { server, ..*rest });
        Span { ids: self.ids, route: &self.route, exchange }
    }
}

impl KeptRecord {
    /// Copies what `record` borrows.
    pub(crate) fn keep(record: &AccessRecord<'_>) -> Box<Self> {
        Box::new(Self {
            time_unix_us: record.time_unix_us,
            client: record.client,
            version: record.version,
            status: record.status,
            source: record.source,
            method: record.method.into(),
            target: record.target.into(),
            host: record.host.into(),
            referer: record.referer.into(),
            user_agent: record.user_agent.into(),
            user: record.user.into(),
            request_id: record.request_id.into(),
            trace_id: record.trace_id.into(),
            remote: record.remote.map(|r| (r.server.into(), r.first_byte_us, r.attempts)),
            tls: record.tls.cloned().map(Box::new),
            span: record.span.as_ref().map(KeptSpan::keep),
            chosen: {
                let last = record.chosen.iter().rposition(|value| !value.is_empty());
                let count = last.map_or(0, |last| last + 1);
                record.chosen.iter().take(count).map(|value| Box::from(*value)).collect()
            },
        })
    }

    /// The complete record: `body_bytes` of the response had been sent by `unix_us`.
    pub(crate) fn complete(&self, body_bytes: u64, unix_us: u64) -> AccessRecord<'_> {
        AccessRecord {
            time_unix_us: self.time_unix_us,
            client: self.client,
            method: &self.method,
            target: &self.target,
            version: self.version,
            status: self.status,
            body_bytes,
            duration_us: duration_us(self.time_unix_us, unix_us),
            host: &self.host,
            referer: &self.referer,
            user_agent: &self.user_agent,
            user: &self.user,
            request_id: &self.request_id,
            trace_id: &self.trace_id,
            weight: 1,
            source: self.source,
            remote: self.remote.as_ref().map(|(server, first_byte_us, attempts)| AskedServer {
                server,
                first_byte_us: *first_byte_us,
                attempts: *attempts,
            }),
            tls: self.tls.as_deref(),
            span: self.span.as_deref().map(KeptSpan::span),
            chosen: std::array::from_fn(|at| self.chosen.get(at).map_or(&[][..], |value| value)),
        }
    }
}
