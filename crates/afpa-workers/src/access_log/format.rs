//! Lines of the access log.

use std::io::Write as _;

use afpa_framework::Client;
use afpa_http::date::civil;

use super::chosen;
use super::packed::Unpacked;
use afpa_config::{AccessFormat, LogField};

/// Writes records as lines of one format.
pub(super) struct Formatter {
    format: AccessFormat,
    /// The fields of a line; empty: those that the format has.
    fields: Vec<LogField>,
    clock: Clock,
}

impl Formatter {
    pub(super) fn new(format: AccessFormat, fields: Vec<LogField>) -> Self {
        Formatter { format, fields, clock: Clock::default() }
    }

    /// Appends `record` and a line feed.
    pub(super) fn line(&mut self, record: &Unpacked<'_>, out: &mut Vec<u8>) {
        self.clock.set(record.time_unix_us / 1_000_000);
        match self.format {
            AccessFormat::Combined => combined(record, &self.clock, out),
            AccessFormat::Json if self.fields.is_empty() => json(record, &self.clock, out),
            AccessFormat::Json => chosen::json(record, &self.clock, &self.fields, out),
            AccessFormat::Logfmt => chosen::logfmt(record, &self.clock, &self.fields, out),
        }
        out.push(b'\n');
    }
}

/// nginx's `combined`:
/// `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer"
/// "$http_user_agent"`. The zone is UTC; the user is one whose password was checked. Behind it, if a server was asked: its name,
/// microseconds to its first byte and to the end of the answer, and how many servers were asked.
fn combined(record: &Unpacked<'_>, clock: &Clock, out: &mut Vec<u8>) {
    client(record.client, out);
    out.extend_from_slice(b" - ");
    put_user(record.user, out);
    out.extend_from_slice(b" [");
    out.extend_from_slice(clock.local.as_bytes());
    out.extend_from_slice(b"] \"");
    if record.method.is_empty() && record.target.is_empty() {
        out.push(b'-');
    } else {
        escape_nginx(record.method, out);
        out.push(b' ');
        escape_nginx(record.target, out);
        out.push(b' ');
        escape_nginx(record.version, out);
    }
    out.extend_from_slice(b"\" ");
    number(record.status, out);
    out.push(b' ');
    number(record.body_bytes, out);
    for field in [record.referer, record.user_agent] {
        out.extend_from_slice(b" \"");
        if field.is_empty() {
            out.push(b'-');
        }
        escape_nginx(field, out);
        out.push(b'"');
    }
    if !record.server.is_empty() {
        out.extend_from_slice(b" \"");
        escape_nginx(record.server, out);
        out.extend_from_slice(b"\" ");
        number(record.first_byte_us, out);
        out.push(b' ');
        number(record.duration_us, out);
        out.push(b' ');
        number(record.attempts, out);
    }
}

fn json(record: &Unpacked<'_>, clock: &Clock, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"time\":\"");
    out.extend_from_slice(clock.iso.as_bytes());
    let _ = write!(out, ".{:06}Z\",\"client\":\"", record.time_unix_us % 1_000_000);
    client(record.client, out);
    out.push(b'"');
    if !record.user.is_empty() {
        text("user", record.user, out);
    }
    if !record.request_id.is_empty() {
        text("request_id", record.request_id, out);
    }
    if !record.trace_id.is_empty() {
        text("trace_id", record.trace_id, out);
    }
    text("method", record.method, out);
    text("target", record.target, out);
    text("version", record.version, out);
    text("host", record.host, out);
    out.extend_from_slice(b",\"status\":");
    number(record.status, out);
    out.extend_from_slice(b",\"body_bytes\":");
    number(record.body_bytes, out);
    out.extend_from_slice(b",\"duration_us\":");
    number(record.duration_us, out);
    text("source", record.source, out);
    if record.weight != 1 {
        out.extend_from_slice(b",\"weight\":");
        number(record.weight, out);
    }
    if !record.server.is_empty() {
        text("server", record.server, out);
        out.extend_from_slice(b",\"first_byte_us\":");
        number(record.first_byte_us, out);
        out.extend_from_slice(b",\"attempts\":");
        number(record.attempts, out);
    }
    let tls = &record.tls;
    if !tls.version.is_empty() {
        text("tls", tls.version, out);
        text("cipher", tls.cipher, out);
        out.extend_from_slice(b",\"resumed\":");
        out.extend_from_slice(if tls.resumed { b"true" } else { b"false" });
        if tls.early_data {
            out.extend_from_slice(b",\"early_data\":true");
        }
        for (name, value) in [("protocol", tls.protocol), ("subject", tls.subject)] {
            if !value.is_empty() {
                text(name, value, out);
            }
        }
    }
    text("referer", record.referer, out);
    text("user_agent", record.user_agent, out);
    out.push(b'}');
}

/// Readers split a line at spaces, so a user has none; one whose name is a dash is no user.
fn put_user(user: &[u8], out: &mut Vec<u8>) {
    match user {
        b"" => out.push(b'-'),
        b"-" => out.extend_from_slice(b"\\x2D"),
        _ => {
            for part in user.split_inclusive(|&byte| byte == b' ') {
                escape_nginx(part.strip_suffix(b" ").unwrap_or(part), out);
                if part.ends_with(b" ") {
                    out.extend_from_slice(b"\\x20");
                }
            }
        }
    }
}

fn text(name: &str, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":\"");
    escape_json(value, out);
    out.push(b'"');
}

pub(super) fn client(client: Client, out: &mut Vec<u8>) {
    // A Vec takes every write.
    let _ = match client {
        // An IPv4 client of a dual-stack listener is shown with its IPv4 address.
        Client::Ip(address) => write!(out, "{}", address.to_canonical()),
        unix => write!(out, "{unix}"),
    };
}

pub(super) fn number(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// As nginx's ngx_http_log_escape: `"`, `\`, and all bytes but printable ASCII become `\xHH`.
pub(super) fn escape_nginx(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        match byte {
            b'"' | b'\\' | 0..=31 | 127..=255 => {
                let _ = write!(out, "\\x{byte:02X}");
            }
            plain => out.push(plain),
        }
    }
}

/// Escapes text for JSON. Bytes that are not UTF-8 become U+FFFD, so that a line is always JSON. All controls are
/// escaped, also those beyond ASCII: some terminals obey them.
pub(super) fn escape_json(bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' | '\\' => out.extend([b'\\', character as u8]),
                control if control.is_control() => {
                    let _ = write!(out, "\\u{:04x}", control as u32);
                }
                plain => out.extend_from_slice(plain.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}

/// The current second as text: many records share it.
#[derive(Default)]
pub(super) struct Clock {
    second: Option<u64>,
    /// `10/Oct/2000:13:55:36 +0000`
    local: String,
    /// `2000-10-10T13:55:36`
    pub(super) iso: String,
}

impl Clock {
    fn set(&mut self, second: u64) {
        if self.second == Some(second) {
            return;
        }
        self.second = Some(second);
        let (year, month, day) = civil(second / 86_400);
        let (hour, minute, rest) = (second / 3600 % 24, second / 60 % 60, second % 60);
        let name = MONTHS.get(month.saturating_sub(1) as usize).unwrap_or(&"");
        self.local = format!("{day:02}/{name}/{year:04}:{hour:02}:{minute:02}:{rest:02} +0000");
        self.iso = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{rest:02}");
    }
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::access_log) fn record() -> Unpacked<'static> {
        Unpacked {
            time_unix_us: 971_186_136_123_456,
            body_bytes: 612,
            duration_us: 250,
            status: 200,
            client: Client::Ip("::ffff:192.0.2.7".parse().unwrap()),
            method: b"GET",
            version: b"HTTP/1.1",
            source: b"hit",
            target: b"/a?b=\"\\\xfc\n",
            host: b"example.org",
            referer: b"",
            user_agent: b"curl/8 (\"x\")",
            user: b"",
            request_id: b"",
            trace_id: b"",
            server: b"",
            first_byte_us: 0,
            attempts: 0,
            weight: 1,
            tls: Default::default(),
            chosen: Default::default(),
            span: None,
        }
    }

    fn line(format: AccessFormat, record: &Unpacked<'_>) -> String {
        let mut out = Vec::new();
        Formatter::new(format, Vec::new()).line(record, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn combined_is_nginx_s() {
        let expected = "192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] \
            \"GET /a?b=\\x22\\x5C\\xFC\\x0A HTTP/1.1\" 200 612 \"-\" \"curl/8 (\\x22x\\x22)\"\n";
        assert_eq!(line(AccessFormat::Combined, &record()), expected);
    }

    #[test]
    fn a_server_that_was_asked_stands_behind_with_its_times() {
        let record = Unpacked { server: b"a\"b:80", first_byte_us: 120, attempts: 2, ..record() };
        let combined = line(AccessFormat::Combined, &record);
        assert!(combined.ends_with(" \"a\\x22b:80\" 120 250 2\n"), "{combined}");
        let parsed: serde_json::Value =
            serde_json::from_str(&line(AccessFormat::Json, &record)).unwrap();
        assert_eq!(parsed["server"], "a\"b:80");
        assert_eq!((&parsed["first_byte_us"], &parsed["attempts"]), (&120.into(), &2.into()));
    }

    #[test]
    fn a_request_that_was_not_understood_is_a_dash() {
        let record = Unpacked { method: b"", target: b"", client: Client::Unix, ..record() };
        let line = line(AccessFormat::Combined, &record);
        assert!(line.starts_with("unix: - - ["), "{line}");
        assert!(line.contains("] \"-\" 200 "), "{line}");
    }

    #[test]
    fn a_user_stands_where_nginx_has_it_without_spaces() {
        for (user, said) in [("ann", "ann"), ("ann b [x", "ann\\x20b\\x20[x"), ("-", "\\x2D")] {
            let record = Unpacked { user: user.as_bytes(), ..record() };
            let combined = line(AccessFormat::Combined, &record);
            assert!(combined.starts_with(&format!("192.0.2.7 - {said} [10/")), "{combined}");
            let parsed: serde_json::Value =
                serde_json::from_str(&line(AccessFormat::Json, &record)).unwrap();
            assert_eq!(parsed["user"], user);
        }
        assert!(!line(AccessFormat::Json, &record()).contains("\"user\""));
    }

    #[test]
    fn json_is_json_whatever_was_sent() {
        let every: Vec<u8> = (0..=255).collect();
        let record = Unpacked { user_agent: &every, ..record() };
        let line = line(AccessFormat::Json, &record);
        let parsed: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(parsed["time"], "2000-10-10T13:55:36.123456Z");
        assert_eq!(parsed["client"], "192.0.2.7");
        assert_eq!(parsed["target"], "/a?b=\"\\\u{fffd}\n");
        assert_eq!(parsed["status"], 200);
        assert_eq!(parsed["body_bytes"], 612);
        assert_eq!(parsed["duration_us"], 250);
        assert_eq!(parsed["source"], "hit");
        assert_eq!(parsed["referer"], "");
        let agent = parsed["user_agent"].as_str().unwrap();
        assert_eq!(&agent.as_bytes()[..128], &every[..128]);
    }
}
