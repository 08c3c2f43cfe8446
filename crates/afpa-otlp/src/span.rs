//! From an answered request to its spans: one of the server's kind, and one of the client's kind if a server was asked.
//! Names and values are those of OpenTelemetry's semantic conventions for HTTP (stable since 1.23).

use std::net::Ipv6Addr;

use afpa_framework::{Client, SpanIds};

use crate::messages::{Code, KeyValue, Kind, Span, Status};

/// An answered request.
#[derive(Clone, Copy, Debug)]
pub struct Served<'a> {
    /// The numbers of its spans.
    pub ids: SpanIds,
    /// The place in the configuration that has answered; empty if none has.
    pub route: &'a [u8],
    /// Microseconds since the Unix epoch at which it was understood.
    pub time_unix_us: u64,
    /// Microseconds until its answer was handed to the kernel.
    pub duration_us: u32,
    /// As sent.
    pub method: &'a [u8],
    /// As sent.
    pub target: &'a [u8],
    /// For example `HTTP/1.1`.
    pub version: &'a [u8],
    /// The Host field.
    pub host: &'a [u8],
    /// The User-Agent field.
    pub user_agent: &'a [u8],
    /// The client that has asked.
    pub client: Client,
    /// Whether it came by TLS.
    pub is_secure: bool,
    /// Status of the answer.
    pub status: u16,
    /// The exchange with a server, if one took place.
    pub exchange: Option<Exchange<'a>>,
}

/// The exchange with a server.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    /// The last server that was asked.
    pub server: &'a [u8],
    /// Status of its response; 0 if there was none.
    pub status: u16,
    /// How many servers were asked.
    pub attempts: u8,
    /// Microseconds that it took.
    pub total_us: u32,
    /// A word for its failure; empty if there was none.
    pub failure: &'a [u8],
}

/// Longest value of an attribute.
const LONGEST: usize = 1024;

/// The methods that an attribute may have (RFC 9110, RFC 5789); all others are `_OTHER`.
const METHODS: [&[u8]; 10] = [
    b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH",
    b"QUERY",
];

/// The flags of a span whose trace is recorded (bit 0), and of one whose parent is known to be of this program or of
/// another one (bits 8 and 9 of `SpanFlags`).
const RECORDED: u32 = 1;
const PARENT_IS_KNOWN: u32 = 1 << 8;
const PARENT_IS_REMOTE: u32 = 1 << 9;

/// Appends the spans of a request.
pub fn put_spans(served: &Served<'_>, out: &mut Vec<Span>) {
    out.push(of_server(served));
    out.extend(served.exchange.as_ref().map(|exchange| of_exchange(served, exchange)));
}

fn of_server(served: &Served<'_>) -> Span {
    let Served { ids, time_unix_us, duration_us, status, .. } = *served;
    let method = method(served.method);
    let name = match served.route {
        b"" => method.unwrap_or("HTTP").to_owned(),
        route => format!("{} {}", method.unwrap_or("HTTP"), text(route)),
    };
    let mut attributes = vec![KeyValue::text("http.request.method", method.unwrap_or("_OTHER"))];
    let mut put = |key: &str, value: &[u8]| {
        if !value.is_empty() {
            attributes.push(KeyValue::text(key, text(value)));
        }
    };
    if method.is_none() {
        put("http.request.method_original", served.method);
    }
    put("url.scheme", if served.is_secure { b"https" } else { b"http" });
    put("url.path", path(served.target));
    put("http.route", served.route);
    put("user_agent.original", served.user_agent);
    put("network.protocol.version", version(served.version));
    if let Client::Ip(address) = served.client {
        put("client.address", address.to_canonical().to_string().as_bytes());
    }
    put_server(served.host, &mut attributes);
    attributes.push(KeyValue::number("http.response.status_code", status));
    let is_error = status >= 500;
    if is_error {
        attributes.push(KeyValue::text("error.type", status.to_string()));
    }
    let remote = if ids.parent == [0; 8] { 0 } else { PARENT_IS_KNOWN | PARENT_IS_REMOTE };
    Span {
        trace_id: ids.trace.into(),
        span_id: ids.own.into(),
        parent_span_id: if ids.parent == [0; 8] { Vec::new() } else { ids.parent.into() },
        name,
        kind: Kind::Server.into(),
        start_time_unix_nano: nanos(time_unix_us),
        end_time_unix_nano: nanos(time_unix_us.saturating_add(duration_us.into())),
        attributes,
        status: error(is_error),
        flags: RECORDED | remote,
    }
}

fn of_exchange(served: &Served<'_>, exchange: &Exchange<'_>) -> Span {
    let Served { ids, time_unix_us, duration_us, .. } = *served;
    let method = method(served.method);
    let mut attributes = vec![KeyValue::text("http.request.method", method.unwrap_or("_OTHER"))];
    put_server(exchange.server, &mut attributes);
    if exchange.status != 0 {
        attributes.push(KeyValue::number("http.response.status_code", exchange.status));
    }
    if exchange.attempts > 1 {
        attributes.push(KeyValue::number("http.request.resend_count", exchange.attempts - 1));
    }
    let cause = match (exchange.failure, exchange.status) {
        (b"", 400..) => Some(exchange.status.to_string()),
        (b"", _) => None,
        (failure, _) => Some(text(failure)),
    };
    let is_error = cause.is_some();
    attributes.extend(cause.map(|cause| KeyValue::text("error.type", cause)));
    let end = time_unix_us.saturating_add(duration_us.into());
    let start = end.saturating_sub(exchange.total_us.into()).max(time_unix_us);
    Span {
        trace_id: ids.trace.into(),
        span_id: ids.exchange.into(),
        parent_span_id: ids.own.into(),
        name: method.unwrap_or("HTTP").to_owned(),
        kind: Kind::Client.into(),
        start_time_unix_nano: nanos(start),
        end_time_unix_nano: nanos(end),
        attributes,
        status: error(is_error),
        flags: RECORDED | PARENT_IS_KNOWN,
    }
}

fn method(sent: &[u8]) -> Option<&'static str> {
    let known = METHODS.iter().find(|known| **known == sent)?;
    str::from_utf8(known).ok()
}

/// The path of a target, which may be a whole URL; empty: it has none.
fn path(target: &[u8]) -> &[u8] {
    let end = target.iter().position(|byte| matches!(byte, b'?' | b'#'));
    let target = end.and_then(|end| target.get(..end)).unwrap_or(target);
    if target.starts_with(b"/") {
        return target;
    }
    let Some(scheme) = target.windows(3).position(|part| part == b"://") else { return b"" };
    let rest = target.get(scheme + 3..).unwrap_or_default();
    let slash = rest.iter().position(|byte| *byte == b'/');
    slash.and_then(|slash| rest.get(slash..)).unwrap_or(b"/")
}

/// `1.1` of `HTTP/1.1`, and `2` of `HTTP/2` and `HTTP/2.0`.
fn version(name: &[u8]) -> &[u8] {
    match name.strip_prefix(b"HTTP/").unwrap_or_default() {
        b"2.0" => b"2",
        version => version,
    }
}

/// `server.address` and `server.port` of a host with or without a port. The path of a unix socket has none.
fn put_server(host: &[u8], attributes: &mut Vec<KeyValue>) {
    let host = text(host);
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (name, port),
        _ => (&*host, ""),
    };
    // A colon of an IPv6 address without a port.
    let (name, port) = if host.parse::<Ipv6Addr>().is_ok() { (&*host, "") } else { (name, port) };
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    if name.is_empty() {
        return;
    }
    attributes.push(KeyValue::text("server.address", name));
    if let Ok(port) = port.parse::<u16>() {
        attributes.push(KeyValue::number("server.port", port));
    }
}

/// Text for an attribute: of limited length, and with U+FFFD for bytes that are not UTF-8.
fn text(bytes: &[u8]) -> String {
    let cut = bytes.get(..LONGEST).unwrap_or(bytes);
    String::from_utf8_lossy(cut).into_owned()
}

fn error(is_error: bool) -> Option<Status> {
    is_error.then(|| Status { code: Code::Error.into() })
}

fn nanos(us: u64) -> u64 {
    us.saturating_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{AnyValue, Value};

    fn served() -> Served<'static> {
        let numbers = |number: u8| [number; 8];
        Served {
            ids: SpanIds {
                trace: [7; 16],
                own: numbers(1),
                parent: numbers(2),
                exchange: numbers(3),
            },
            route: b"/app/*",
            time_unix_us: 1_000_000,
            duration_us: 500,
            method: b"GET",
            target: b"/app/a%20b?token=secret",
            version: b"HTTP/1.1",
            host: b"www.example.org:8080",
            user_agent: b"curl/8",
            client: Client::Ip("::ffff:192.0.2.7".parse().unwrap()),
            is_secure: true,
            status: 200,
            exchange: None,
        }
    }

    fn spans(served: &Served<'_>) -> Vec<Span> {
        let mut spans = Vec::new();
        put_spans(served, &mut spans);
        spans
    }

    fn value(span: &Span, key: &str) -> String {
        let mut found = span.attributes.iter().filter(|pair| pair.key == key);
        let value = match found.next().map(|pair| pair.value.clone()) {
            Some(Some(AnyValue { value: Some(Value::Text(text)) })) => text,
            Some(Some(AnyValue { value: Some(Value::Number(number)) })) => number.to_string(),
            _ => "none".to_owned(),
        };
        assert!(found.next().is_none(), "{key} is there once");
        value
    }

    #[test]
    fn a_request_has_the_attributes_of_the_conventions_and_no_query() {
        let [span] = &spans(&served())[..] else { panic!("one span") };
        assert_eq!((&*span.name, span.kind), ("GET /app/*", Kind::Server as i32));
        for (key, expected) in [
            ("http.request.method", "GET"),
            ("http.request.method_original", "none"),
            ("url.scheme", "https"),
            ("url.path", "/app/a%20b"),
            ("http.route", "/app/*"),
            ("user_agent.original", "curl/8"),
            ("network.protocol.version", "1.1"),
            ("client.address", "192.0.2.7"),
            ("server.address", "www.example.org"),
            ("server.port", "8080"),
            ("http.response.status_code", "200"),
            ("error.type", "none"),
        ] {
            assert_eq!(value(span, key), expected, "{key}");
        }
        assert!(!format!("{span:?}").contains("secret"));
        assert_eq!(
            (span.start_time_unix_nano, span.end_time_unix_nano),
            (1_000_000_000, 1_000_500_000)
        );
        assert_eq!((&*span.parent_span_id, span.flags), (&[2; 8][..], 0x301));
        assert_eq!(span.status, None);
    }

    #[test]
    fn an_exchange_is_a_span_below_that_of_the_request() {
        let exchange = Exchange {
            server: b"[::1]:3000",
            status: 0,
            attempts: 2,
            total_us: 200,
            failure: b"connect",
        };
        let ids = SpanIds { parent: [0; 8], ..served().ids };
        let served = Served { status: 502, exchange: Some(exchange), ids, ..served() };
        let [server, client] = &spans(&served)[..] else { panic!("two spans") };
        assert_eq!((server.parent_span_id.len(), server.flags), (0, 1));
        assert_eq!(value(server, "error.type"), "502");
        assert_eq!((&client.parent_span_id, &*client.span_id), (&server.span_id, &[3; 8][..]));
        assert_eq!((&*client.name, client.kind), ("GET", Kind::Client as i32));
        for (key, expected) in [
            ("server.address", "::1"),
            ("server.port", "3000"),
            ("http.response.status_code", "none"),
            ("http.request.resend_count", "1"),
            ("error.type", "connect"),
        ] {
            assert_eq!(value(client, key), expected, "{key}");
        }
        assert_eq!(client.status, Some(Status { code: Code::Error as i32 }));
        assert_eq!(client.start_time_unix_nano, 1_000_300_000);
        let long = Exchange { total_us: u32::MAX, ..exchange };
        let early = &spans(&Served { exchange: Some(long), ..served })[1];
        assert_eq!(early.start_time_unix_nano, 1_000_000_000, "no span begins before its parent");
    }

    #[test]
    fn odd_requests_have_what_can_be_said_of_them() {
        for (target, expected) in [
            (&b"*"[..], "none"),
            (b"http://a.example/x?y", "/x"),
            (b"http://a.example", "/"),
            (b"a.example:443", "none"),
            (b"", "none"),
            (b"/\xff", "/\u{fffd}"),
        ] {
            assert_eq!(value(&spans(&Served { target, ..served() })[0], "url.path"), expected);
        }
        for (host, name, port) in [
            (&b""[..], "none", "none"),
            (b"::1", "::1", "none"),
            (b"[::1]", "::1", "none"),
            (b"a:", "a", "none"),
            (b"a:99999", "a", "none"),
            (b"unix:/run/app.sock", "unix:/run/app.sock", "none"),
        ] {
            let span = &spans(&Served { host, ..served() })[0];
            assert_eq!(value(span, "server.address"), name, "{host:?}");
            assert_eq!(value(span, "server.port"), port, "{host:?}");
        }
        let odd = Served { method: b"BREW", route: b"", version: b"HTTP/2.0", ..served() };
        let span = &spans(&odd)[0];
        assert_eq!(span.name, "HTTP");
        assert_eq!(value(span, "http.request.method"), "_OTHER");
        assert_eq!(value(span, "http.request.method_original"), "BREW");
        assert_eq!(value(span, "network.protocol.version"), "2");
        let long = vec![b'a'; 100_000];
        let span = &spans(&Served { user_agent: &long, ..served() })[0];
        assert_eq!(value(span, "user_agent.original").len(), LONGEST);
    }
}
