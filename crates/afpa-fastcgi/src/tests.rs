//! Requests as records, and records as responses.

use crate::{Fault, NotARequest, RequestWriter, ResponseReader, put_param};

/// A record with padding.
fn record(kind: u8, id: u16, content: &[u8], padding: usize) -> Vec<u8> {
    let mut bytes = vec![1, kind];
    bytes.extend_from_slice(&id.to_be_bytes());
    bytes.extend_from_slice(&(content.len() as u16).to_be_bytes());
    bytes.extend_from_slice(&[padding as u8, 0]);
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len() + padding, 0xee);
    bytes
}

fn output(text: &str) -> Vec<u8> {
    record(6, 1, text.as_bytes(), 3)
}

fn end(status: u8) -> Vec<u8> {
    record(3, 1, &[0, 0, 0, 0, status, 0, 0, 0], 0)
}

/// The answer that comes of these records, in one piece and byte by byte; its chunks are joined.
fn read(records: &[Vec<u8>], asks_head: bool) -> Result<(String, ResponseReader), Fault> {
    let bytes = records.concat();
    let mut reader = ResponseReader::new(asks_head, true, 1024);
    let mut whole = Vec::new();
    let outcome = reader.read(&bytes, &mut whole);
    let (mut again, mut slowly) = (ResponseReader::new(asks_head, true, 1024), Vec::new());
    let by_bytes = bytes.iter().try_for_each(|byte| again.read(&[*byte], &mut slowly).map(drop));
    assert_eq!(outcome.err(), by_bytes.err(), "however the network splits it");
    outcome?;
    assert_eq!(reader.has_ended(), again.has_ended());
    Ok((String::from_utf8(whole).expect("text"), reader))
}

fn answer(records: &[Vec<u8>]) -> String {
    let (text, reader) = read(records, false).expect("an answer");
    assert!(reader.has_ended());
    text
}

fn fault(records: &[Vec<u8>]) -> Fault {
    read(records, false).expect_err("a fault")
}

#[test]
fn a_request_is_begun_described_and_fed() {
    let mut told = Vec::new();
    put_param(&mut told, b"SCRIPT_NAME", &[b"/x", b".php"]);
    let head = "POST /x.php?a HTTP/1.1\r\nHost: a.org\r\nContent-Length: 5\r\nContent-Type: text/x\r\n\
                X-A: 1\r\nx-a: 2\r\nX_A: 3\r\nProxy: evil\r\nCookie: a\r\nCookie: b\r\nX.B: 4\r\n\
                Content_Length: 9\r\nExpect: 100-continue\r\n\r\nab";
    let (mut writer, mut out) = (RequestWriter::new(true), Vec::new());
    writer.write(head.as_bytes(), &told, &mut out).expect("a request");
    assert!(!writer.is_done() && writer.takes_expectation() && !writer.takes_expectation());
    writer.write(b"cde", &told, &mut out).expect("content");
    assert!(writer.is_done() && !writer.asks_head());

    let mut params = told.clone();
    for (name, value) in [
        ("REQUEST_METHOD", "POST"),
        ("HTTP_HOST", "a.org"),
        ("HTTP_X_A", "1, 2"),
        ("HTTP_COOKIE", "a; b"),
        ("CONTENT_TYPE", "text/x"),
        ("CONTENT_LENGTH", "5"),
    ] {
        put_param(&mut params, name.as_bytes(), &[value.as_bytes()]);
    }
    let expected = [
        record(1, 1, &[0, 1, 1, 0, 0, 0, 0, 0], 0),
        record(4, 1, &params, 0),
        record(4, 1, b"", 0),
        record(5, 1, b"ab", 0),
        record(5, 1, b"cde", 0),
        record(5, 1, b"", 0),
    ];
    assert_eq!(out, expected.concat());
}

#[test]
fn long_parameters_have_long_lengths_and_several_records() {
    let mut pair = Vec::new();
    put_param(&mut pair, &[b'N'; 127], &[&[b'v'; 128]]);
    assert_eq!(pair[..5], [127, 0x80, 0, 0, 128]);
    let head = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(70_000));
    let mut out = Vec::new();
    RequestWriter::new(false).write(head.as_bytes(), b"", &mut out).expect("a request");
    assert_eq!(out[16..24], [1, 4, 0, 1, 0xff, 0xff, 0, 0], "a full record first");
    assert_eq!(out[10], 0, "the server closes the connection");
}

#[test]
fn content_without_a_length_and_lines_that_are_no_fields_are_refused() {
    let write = |head: &str| RequestWriter::new(true).write(head.as_bytes(), b"", &mut Vec::new());
    let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(write(chunked), Err(NotARequest::Length));
    assert_eq!(write("GET / HTTP/1.1\r\nnothing\r\n\r\n"), Err(NotARequest::Malformed));
    assert_eq!(write(" / HTTP/1.1\r\n\r\n"), Err(NotARequest::Malformed));
}

#[test]
fn heads_of_cgi_become_heads_of_http() {
    for (cgi, http) in [
        (
            "Content-Type: text/html\r\nContent-Length: 2\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi",
        ),
        (
            "Status: 404 Not Found\nA: b\n\n",
            "HTTP/1.1 404 Not Found\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        (
            "Location: /login\r\n\r\n",
            "HTTP/1.1 302 Found\r\nLocation: /login\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        (
            "Status: 201\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 201 \r\nLocation: /a\r\nContent-Length: 0\r\n\r\n",
        ),
        (
            "Status: 204 No Content\r\nContent-Length: 3\r\n\r\nabc",
            "HTTP/1.1 204 No Content\r\n\r\n",
        ),
        (
            "HTTP/1.1 418 Teapot\r\nA: b\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 418 Teapot\r\nA: b\r\nContent-Length: 0\r\n\r\n",
        ),
        (
            "A: b\r\nTransfer-Encoding: chunked\r\nConnection: close\r\nUpgrade: x\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        ),
    ] {
        assert_eq!(answer(&[output(cgi), end(0)]), http, "{cgi}");
    }
    let (text, reader) =
        read(&[output("A: b\r\nContent-Length: 9\r\n\r\nx"), end(0)], true).expect("HEAD");
    assert_eq!(text, "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 9\r\n\r\n");
    assert!(reader.keeps());
}

#[test]
fn a_server_that_lies_gives_no_answer() {
    let ok = || output("A: b\r\nContent-Length: 2\r\n\r\nhi");
    let mut version = ok();
    version[0] = 2;
    let long = output(&format!("A: {}\r\n\r\n", "x".repeat(1024)));
    for (records, expected) in [
        (vec![version], Fault::Version(2)),
        (vec![record(6, 2, b"A: b\r\n\r\n", 0)], Fault::Request(2)),
        (vec![record(5, 1, b"x", 0)], Fault::Kind(5)),
        (vec![record(11, 1, b"x", 0)], Fault::Kind(11)),
        (vec![end(0)], Fault::NoHead),
        (vec![output("A: b\r\n"), end(0)], Fault::NoHead),
        (vec![output("\r\n\r\n"), end(0)], Fault::NoHead),
        (vec![end(2)], Fault::Overloaded),
        (vec![end(1)], Fault::Refused(1)),
        (vec![end(3)], Fault::Refused(3)),
        (vec![ok(), end(2)], Fault::Refused(2)),
        (vec![output("A: b\r\nContent-Length: 3\r\n\r\nhi"), end(0)], Fault::Short),
        (vec![record(3, 1, b"1234567", 0)], Fault::EndLength(7)),
        (vec![ok(), record(6, 1, b"", 0), output("more")], Fault::AfterEnd),
        (vec![long], Fault::HeadTooLong),
        (vec![output("A: b\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n")], Fault::Twice),
        (vec![output("Status: 200\r\nStatus: 404\r\n\r\n")], Fault::Twice),
        (vec![output("Content-Length: +1\r\n\r\n")], Fault::Length),
        (vec![output("Status: 103 Early\r\n\r\n")], Fault::Status),
        (vec![output("Status: 2000\r\n\r\n")], Fault::Status),
        (vec![output("Status: abc\r\n\r\n")], Fault::Status),
        (vec![record(9, 0, b"", 0); 300], Fault::Idle),
    ] {
        assert_eq!(fault(&records), expected, "{records:?}");
    }
    assert!(matches!(fault(&[output("no field\r\n\r\n")]), Fault::Head(_)));
}

#[test]
fn a_connection_is_kept_only_behind_an_exact_end() {
    let ok = output("A: b\r\nContent-Length: 2\r\n\r\nhi");
    let (_, reader) = read(&[ok.clone(), end(0)], false).expect("an answer");
    assert!(reader.keeps());
    let (_, reader) = read(&[ok], false).expect("an answer");
    assert!(!reader.has_ended() && !reader.keeps());
    let (text, reader) =
        read(&[output("A: b\r\nContent-Length: 2\r\n\r\nhi more"), end(0)], false).expect("cut");
    assert!(text.ends_with("hi") && reader.has_ended() && !reader.keeps());
    let mut reader = ResponseReader::new(false, true, 1024);
    let behind = [output("A: b\r\n\r\n"), end(0), output("x")].concat();
    let taken = reader.read(&behind, &mut Vec::new()).expect("an answer");
    assert!(reader.has_ended() && taken < behind.len());
}

#[test]
fn messages_are_lines_of_limited_number_and_length() {
    let text = format!("PHP message: \x1b[31mone\r\ntwo {}\n\nthree", "x".repeat(5000));
    let noise = record(7, 1, "a\n".repeat(100).as_bytes(), 0);
    let (_, mut reader) =
        read(&[record(7, 1, text.as_bytes(), 0), noise, output("A: b\r\n\r\n"), end(0)], false)
            .expect("an answer");
    let lines = reader.messages();
    assert_eq!(lines[0], "PHP message: \\u{1b}[31mone");
    assert!(lines[1].starts_with("two x") && lines[1].len() == 2048);
    assert_eq!(lines[2], "threea");
    assert_eq!(lines.len(), 33);
    assert!(lines[32].starts_with("further messages"));
}
