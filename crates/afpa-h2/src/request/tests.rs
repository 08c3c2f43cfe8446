//! Requests as the fields of HTTP/2 say them, and as HTTP/1.1 writes them.

use super::*;

const MOST: usize = 200;

fn head(fields: &[(&str, &str)], end: bool) -> Result<(String, Framing, Asked), Malformed> {
    let mut head = RequestHead::default();
    head.begin(MOST);
    for (name, value) in fields {
        head.field(name.as_bytes(), value.as_bytes());
    }
    let asked = head.finish(end)?;
    Ok((head.text().escape_ascii().to_string(), head.framing(), asked))
}

fn get<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let begin = [(":method", "GET"), (":scheme", "http"), (":path", "/a?b"), (":authority", "h")];
    [&begin[..], more].concat()
}

fn text(fields: &[(&str, &str)], end: bool) -> Result<String, Malformed> {
    head(fields, end).map(|(text, ..)| text)
}

#[test]
fn a_request_is_written_as_http_1_1_writes_it() {
    let begin = "GET /a?b HTTP/1.1\\r\\nHost: h\\r\\n";
    assert_eq!(text(&get(&[]), true), Ok(format!("{begin}\\r\\n")));
    let fields = [("cookie", "a=1"), ("x", ""), ("cookie", "b=2"), ("te", "trailers")];
    let written = "x: \\r\\nte: trailers\\r\\ncookie: a=1; b=2\\r\\n\\r\\n";
    assert_eq!(text(&get(&fields), true), Ok(format!("{begin}{written}")));
    let (chunked, framing, asked) = head(&get(&[("priority", "u=1")]), false).unwrap();
    assert_eq!(
        chunked,
        format!("{begin}priority: u=1\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n")
    );
    assert_eq!((framing, asked.content_length), (Framing::Chunked, None));
    assert_eq!(asked.priority.urgency, 1);
    let (_, framing, asked) = head(&get(&[("content-length", "7")]), false).unwrap();
    assert_eq!((framing, asked.content_length), (Framing::Length, Some(7)));
}

#[test]
fn host_and_authority_are_one() {
    let begin = "GET /a?b HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n";
    assert_eq!(text(&get(&[("host", "H")]), true).as_deref(), Ok(begin));
    assert_eq!(text(&get(&[("host", "other")]), true), Err(Malformed));
    assert_eq!(text(&get(&[("host", "h"), ("host", "h")]), true), Err(Malformed));
    let only_host = [(":method", "GET"), (":scheme", "http"), (":path", "/"), ("host", "h")];
    assert_eq!(text(&only_host, true).as_deref(), Ok("GET / HTTP/1.1\\r\\nhost: h\\r\\n\\r\\n"));
}

#[test]
fn what_is_malformed_is_no_request() {
    let plain: &[&[(&str, &str)]] = &[
        &[("connection", "close")],
        &[("transfer-encoding", "chunked")],
        &[("upgrade", "h2c")],
        &[("keep-alive", "1")],
        &[("proxy-connection", "close")],
        &[("te", "gzip")],
        &[("Upper", "1")],
        &[("a b", "1")],
        &[("", "1")],
        &[("a:", "1")],
        &[("x", "a\r\nb: c")],
        &[("x", "a\0")],
        &[("x", " a")],
        &[("x", "a\t")],
        &[("x", "1"), (":path", "/")],
        &[(":method", "GET")],
        &[(":unknown", "1")],
        &[(":status", "200")],
        &[(":protocol", "websocket")],
        &[("content-length", "1")],
    ];
    for more in plain {
        assert_eq!(text(&get(more), true), Err(Malformed), "{more:?}");
    }
    let (method, scheme, path) = ((":method", "GET"), (":scheme", "http"), (":path", "/"));
    let whole: &[&[(&str, &str)]] = &[
        &[],
        &[("x", "1")],
        &[method, scheme],
        &[method, path],
        &[scheme, path],
        &[method, scheme, (":path", "")],
        &[method, scheme, (":path", "http://other/")],
        &[method, scheme, (":path", "/ HTTP/1.1")],
        &[method, scheme, (":path", "/\r\nX: y")],
        &[method, scheme, (":path", "a")],
        &[method, (":scheme", "ftp"), path],
        &[(":method", "GET /"), scheme, path],
        &[(":method", ""), scheme, path],
        &[method, scheme, path, (":authority", "a\r\nb: c")],
        &[(":method", "CONNECT"), scheme, path, (":authority", "a:1")],
        &[(":method", "CONNECT")],
        &[(":method", "CONNECT"), (":authority", "a b")],
        &[(":method", "CONNECT"), (":protocol", "websocket"), (":authority", "a")],
    ];
    for fields in whole {
        assert_eq!(text(fields, true), Err(Malformed), "{fields:?}");
        assert_eq!(text(fields, false), Err(Malformed), "{fields:?}");
    }
}

#[test]
fn connect_and_websocket() {
    let connect = [(":method", "CONNECT"), (":authority", "a:1")];
    assert_eq!(
        text(&connect, true).as_deref(),
        Ok("CONNECT a:1 HTTP/1.1\\r\\nHost: a:1\\r\\n\\r\\n")
    );
    let socket = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", "/chat"),
        (":authority", "a"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "of the client"),
    ];
    let (text, framing, _) = head(&socket, false).unwrap();
    assert_eq!(framing, Framing::Tunnel);
    let begin = "GET /chat HTTP/1.1\\r\\nHost: a\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\
                 Sec-WebSocket-Key: ";
    let (key, rest) = text.strip_prefix(begin).unwrap().split_at(24);
    assert!(key.ends_with("==") && key[..22].bytes().all(|byte| byte != b'='), "{key}");
    assert_eq!(rest, "\\r\\nsec-websocket-version: 13\\r\\n\\r\\n");
    assert!(head(&socket, true).is_err(), "it has to have content");
}

#[test]
fn a_head_beyond_the_limit_is_cut_and_has_no_end() {
    let value = "v".repeat(MOST);
    for fields in [[("x", value.as_str())], [("cookie", &value)]] {
        let (text, ..) = head(&get(&fields), true).unwrap();
        assert_eq!(text.replace("\\r\\n", "\r\n").len(), MOST + 1);
        assert!(!text.ends_with("\\r\\n\\r\\n"));
    }
    // A long pseudo-field may stand before others.
    let long = format!("/{}", "v".repeat(3 * MOST));
    let mut fields =
        [(":method", "GET"), (":path", &long), (":scheme", "http"), (":authority", &long)];
    for _ in 0..fields.len() {
        fields.rotate_left(1);
        let (text, ..) = head(&fields, true).unwrap();
        assert_eq!(text.len(), MOST + 1, "{fields:?}");
        assert!(text.starts_with("GET /vv"));
    }
    let mut bomb = RequestHead::default();
    bomb.begin(MOST);
    for (name, value) in get(&[]) {
        bomb.field(name.as_bytes(), value.as_bytes());
    }
    (0..100_000).for_each(|_| bomb.field(b"cookie", value.as_bytes()));
    assert_eq!(bomb.cookies.len(), MOST, "the first one, and nothing of those behind it");
    assert!(bomb.finish(true).is_ok());
    assert!(bomb.text.bytes.capacity() < 4 * MOST, "{}", bomb.text.bytes.capacity());
}

/// O7 of docs/rules.
#[test]
fn what_could_be_read_of_a_head_that_is_none_is_kept_for_logs() {
    let mut head = RequestHead::default();
    let cases: [(&[(&str, &str)], &str); 4] = [
        (
            &[
                (":method", "GET"),
                (":path", "/a"),
                (":scheme", "http"),
                (":authority", "h"),
                ("A", ""),
            ],
            "GET /a HTTP/1.1\r\nhost: h\r\n",
        ),
        (&[(":method", "GET"), (":scheme", "http")], "GET - HTTP/1.1\r\nhost: \r\n"),
        (&[(":method", "G T"), (":path", "/a\r\nb")], "G?T /a??b HTTP/1.1\r\nhost: \r\n"),
        (&[], "- - HTTP/1.1\r\nhost: \r\n"),
    ];
    for (fields, said) in cases {
        head.begin(MOST);
        fields.iter().for_each(|(name, value)| head.field(name.as_bytes(), value.as_bytes()));
        assert!(head.finish(true).is_err());
        let kept = head.take_refused();
        assert_eq!(kept, [said.as_bytes()], "{fields:?}");
        assert!(head.take_refused().is_empty());
    }
    let long = "/".repeat(100_000);
    for _ in 0..100 {
        head.begin(usize::MAX / 2);
        head.field(b":path", long.as_bytes());
        assert!(head.finish(true).is_err());
    }
    let bytes: usize = head.take_refused().iter().map(Vec::len).sum();
    assert!(bytes < MOST_REFUSED * (LONGEST_REFUSED + 50), "{bytes}");
}

#[test]
fn trailers_are_field_lines() {
    let mut head = RequestHead::default();
    head.begin(MOST);
    head.field(b"grpc-status", b"0");
    assert_eq!(head.finish_trailers(), Ok(()));
    assert_eq!(head.text(), b"grpc-status: 0\r\n");
    for (name, value) in
        [(":path", "/"), ("content-length", "1"), ("connection", "close"), ("A", "")]
    {
        head.begin(MOST);
        head.field(name.as_bytes(), value.as_bytes());
        assert_eq!(head.finish_trailers(), Err(Malformed), "{name}");
    }
}
