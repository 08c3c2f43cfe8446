//! Lines of the access log with the fields that the operator has chosen.

use std::borrow::Cow;
use std::io::Write as _;

use afpa_config::{AccessField, Choice as _, LogField};

use super::format::{Clock, client, escape_json, escape_nginx, number};
use super::packed::Unpacked;

/// The fields of `logfmt`, unless others are chosen.
const USUAL: [AccessField; 17] = [
    AccessField::Time,
    AccessField::Client,
    AccessField::User,
    AccessField::Method,
    AccessField::Target,
    AccessField::Version,
    AccessField::Host,
    AccessField::Status,
    AccessField::BodyBytes,
    AccessField::Duration,
    AccessField::Source,
    AccessField::Server,
    AccessField::FirstByte,
    AccessField::RequestId,
    AccessField::TraceId,
    AccessField::Referer,
    AccessField::UserAgent,
];

/// The value of a field.
enum Value<'r> {
    Time,
    Client,
    Number(u64),
    Flag(bool),
    /// As a client or a server has sent it.
    Text(&'r [u8]),
    None,
}

/// A JSON object whose fields are always there: `null` where there is no value.
pub(super) fn json(record: &Unpacked<'_>, clock: &Clock, fields: &[LogField], out: &mut Vec<u8>) {
    let mut chosen = record.chosen.iter();
    for (place, field) in fields.iter().enumerate() {
        out.push(if place == 0 { b'{' } else { b',' });
        // The names of fields have neither quotes nor controls.
        let _ = write!(out, "\"{field}\":");
        match value(record, field, &mut chosen) {
            Value::None => out.extend_from_slice(b"null"),
            Value::Text(text) => {
                out.push(b'"');
                escape_json(text, out);
                out.push(b'"');
            }
            value @ (Value::Time | Value::Client) => {
                out.push(b'"');
                plain(&value, record, clock, out);
                out.push(b'"');
            }
            value => plain(&value, record, clock, out),
        }
    }
    out.push(b'}');
}

/// `name=value`, separated by spaces; `-` where there is no value. A text that has another byte than letters, digits and
/// plain signs is in quotes, with `\xHH` for what a log must not have.
pub(super) fn logfmt(record: &Unpacked<'_>, clock: &Clock, fields: &[LogField], out: &mut Vec<u8>) {
    let mut chosen = record.chosen.iter();
    let usual = if fields.is_empty() { &USUAL[..] } else { &[] }.iter();
    let usual = usual.map(|field| (Cow::Borrowed(field.word()), own_value(record, *field)));
    let fields = fields.iter().map(|field| {
        let name = Cow::Owned(field.to_string());
        (name, value(record, field, &mut chosen))
    });
    for (place, (name, value)) in usual.chain(fields).enumerate() {
        if place > 0 {
            out.push(b' ');
        }
        let _ = write!(out, "{name}=");
        match value {
            Value::None => out.push(b'-'),
            Value::Text(text) if is_plain(text) => out.extend_from_slice(text),
            Value::Text(text) => {
                out.push(b'"');
                escape_nginx(text, out);
                out.push(b'"');
            }
            value => plain(&value, record, clock, out),
        }
    }
}

/// Whether a text needs no quotes.
fn is_plain(text: &[u8]) -> bool {
    let is_sign = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'=' | b'\\');
    text != b"-" && text.iter().all(is_sign)
}

/// Writes a value that no client has chosen.
fn plain(value: &Value<'_>, record: &Unpacked<'_>, clock: &Clock, out: &mut Vec<u8>) {
    match value {
        Value::Time => {
            let _ = write!(out, "{}.{:06}Z", clock.iso, record.time_unix_us % 1_000_000);
        }
        Value::Client => client(record.client, out),
        Value::Number(value) => number(*value, out),
        Value::Flag(flag) => out.extend_from_slice(if *flag { b"true" } else { b"false" }),
        Value::Text(_) | Value::None => {}
    }
}

/// The value of a field; those of the operator's choice stand in `chosen`, in the same order.
fn value<'r>(
    record: &Unpacked<'r>,
    field: &LogField,
    chosen: &mut std::slice::Iter<'_, &'r [u8]>,
) -> Value<'r> {
    match field {
        LogField::Own(field) => own_value(record, *field),
        LogField::Request(_) => match chosen.next() {
            Some(text) if !text.is_empty() => Value::Text(text),
            _ => Value::None,
        },
    }
}

fn own_value<'r>(record: &Unpacked<'r>, field: AccessField) -> Value<'r> {
    let text = |text: &'r [u8]| if text.is_empty() { Value::None } else { Value::Text(text) };
    let (of_server, of_tls) = (!record.server.is_empty(), !record.tls.version.is_empty());
    let number_if = |is: bool, number: u64| if is { Value::Number(number) } else { Value::None };
    let flag_if = |is: bool, flag: bool| if is { Value::Flag(flag) } else { Value::None };
    match field {
        AccessField::Time => Value::Time,
        AccessField::Client => Value::Client,
        AccessField::User => text(record.user),
        AccessField::RequestId => text(record.request_id),
        AccessField::TraceId => text(record.trace_id),
        AccessField::Method => text(record.method),
        AccessField::Target => text(record.target),
        AccessField::Version => text(record.version),
        AccessField::Host => text(record.host),
        AccessField::Status => Value::Number(record.status.into()),
        AccessField::BodyBytes => Value::Number(record.body_bytes),
        AccessField::Duration => Value::Number(record.duration_us.into()),
        AccessField::Source => text(record.source),
        AccessField::Weight => Value::Number(record.weight.into()),
        AccessField::Server => text(record.server),
        AccessField::FirstByte => number_if(of_server, record.first_byte_us.into()),
        AccessField::Attempts => number_if(of_server, record.attempts.into()),
        AccessField::Tls => text(record.tls.version),
        AccessField::Cipher => text(record.tls.cipher),
        AccessField::Resumed => flag_if(of_tls, record.tls.resumed),
        AccessField::EarlyData => flag_if(of_tls, record.tls.early_data),
        AccessField::Protocol => text(record.tls.protocol),
        AccessField::Subject => text(record.tls.subject),
        AccessField::Referer => text(record.referer),
        AccessField::UserAgent => text(record.user_agent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_log::format::Formatter;
    use crate::access_log::format::tests::record;
    use afpa_config::AccessFormat;

    fn line(format: AccessFormat, fields: &[AccessField], record: &Unpacked<'_>) -> String {
        line_of(format, fields.iter().copied().map(LogField::Own).collect(), record)
    }

    fn line_of(format: AccessFormat, fields: Vec<LogField>, record: &Unpacked<'_>) -> String {
        let mut out = Vec::new();
        Formatter::new(format, fields).line(record, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn fields_stand_in_the_order_of_the_operator() {
        use AccessField::{Attempts, Client, RequestId, Resumed, Status, Target, Time, User};
        let fields = [Status, RequestId, Target, Time, Client, User, Attempts, Resumed];
        let record = Unpacked { request_id: b"7a", ..record() };
        let json = line(AccessFormat::Json, &fields, &record);
        assert_eq!(
            json,
            "{\"status\":200,\"request_id\":\"7a\",\"target\":\"/a?b=\\\"\\\\\u{fffd}\\u000a\",\
             \"time\":\"2000-10-10T13:55:36.123456Z\",\"client\":\"192.0.2.7\",\"user\":null,\
             \"attempts\":null,\"resumed\":null}\n"
        );
        let logfmt = line(AccessFormat::Logfmt, &fields, &record);
        assert_eq!(
            logfmt,
            "status=200 request_id=7a target=\"/a?b=\\x22\\x5C\\xFC\\x0A\" \
             time=2000-10-10T13:55:36.123456Z client=192.0.2.7 user=- attempts=- resumed=-\n"
        );
    }

    #[test]
    fn no_value_can_pass_for_another_field() {
        use AccessField::{Host, Status, UserAgent};
        for agent in
            [&b"x status=404"[..], b"x\nstatus=404", b"x\" status=404", b"a=b", b"-", b"\x1b[31m"]
        {
            let record = Unpacked { user_agent: agent, ..record() };
            let line = line(AccessFormat::Logfmt, &[UserAgent, Status, Host], &record);
            let rest = line.strip_prefix("user_agent=\"").expect("quotes");
            let (value, rest) = rest.split_once('"').expect("their end");
            assert_eq!(rest, " status=200 host=example.org\n", "{value}");
            assert!(!value.contains(char::is_control), "{value:?}");
        }
    }

    #[test]
    fn fields_of_requests_stand_among_the_others_and_are_escaped() {
        let fields = || {
            let request = |name: &str| LogField::Request(name.into());
            vec![request("x-a"), LogField::Own(AccessField::Status), request("x-b"), request("x-c")]
        };
        let mut record = record();
        record.chosen[..2].copy_from_slice(&[b"plain", b"two words\n\"status\": 1"]);
        let json = line_of(AccessFormat::Json, fields(), &record);
        let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
        let expected = serde_json::json!({
            "header:x-a": "plain",
            "status": 200,
            "header:x-b": "two words\n\"status\": 1",
            "header:x-c": null,
        });
        assert_eq!(parsed, expected);
        assert_eq!(
            line_of(AccessFormat::Logfmt, fields(), &record),
            "header:x-a=plain status=200 header:x-b=\"two words\\x0A\\x22status\\x22: 1\" header:x-c=-\n"
        );
    }

    #[test]
    fn every_field_has_a_value_of_json_whatever_was_sent() {
        let every: Vec<u8> = (0..=255).collect();
        let record = Unpacked { user_agent: &every, host: &every, ..record() };
        let line = line(AccessFormat::Json, AccessField::ALL, &record);
        let parsed: serde_json::Value = serde_json::from_str(&line).unwrap();
        let names: Vec<&str> = AccessField::ALL.iter().map(|field| field.word()).collect();
        assert_eq!(parsed.as_object().map(serde_json::Map::len), Some(names.len()));
        assert!(names.iter().all(|name| parsed.get(name).is_some()), "{parsed}");
    }
}
