use afpa_h2::FieldCode;
use afpa_h2::request::Framing;

use super::*;
use crate::{Limits, Qpack, varint};

fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    crate::frame::put_header(&mut out, kind, payload.len() as u64);
    out.extend_from_slice(payload);
    out
}

fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    Qpack::begin(&mut out);
    fields.iter().for_each(|(n, v)| Qpack::put_field(&mut out, n.as_bytes(), v.as_bytes()));
    out
}

const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", "/x")];

fn head(fields: &[(&str, &str)]) -> Vec<u8> {
    frame(kind::HEADERS, &section(fields))
}

/// The parts of a stream that comes in pieces of this size: heads and trailers as text, content as bytes.
fn said(bytes: &[u8], piece: usize) -> Result<Vec<String>, Fault> {
    let mut connection = Connection::new(Limits::default());
    let mut stream = RequestStream::default();
    let mut head = RequestHead::default();
    let mut all = Vec::new();
    let mut content = String::new();
    for mut piece in bytes.chunks(piece) {
        while !piece.is_empty() {
            let (n, event) = stream.read(&mut connection, piece, &mut head, 0)?;
            assert!(n > 0, "bytes are taken");
            piece = &piece[n..];
            match event {
                Some(Event::Head) => {
                    let asked =
                        head.finish(false).map_err(|_| Fault::Stream(ErrorCode::Message))?;
                    stream.expect(asked.content_length, head.framing() == Framing::Tunnel);
                    // The key is random.
                    let lines = head.text().split_inclusive(|byte| *byte == b'\n');
                    let lines = lines.filter(|line| !line.starts_with(b"Sec-WebSocket-Key"));
                    all.push(
                        String::from_utf8_lossy(&lines.collect::<Vec<_>>().concat()).into_owned(),
                    );
                }
                Some(Event::Data(bytes)) => content += &String::from_utf8_lossy(bytes),
                Some(Event::Trailers) => {
                    head.finish_trailers().map_err(|_| Fault::Stream(ErrorCode::Message))?;
                    all.push(std::mem::take(&mut content));
                    all.push(String::from_utf8_lossy(head.text()).into_owned());
                }
                None => {}
            }
        }
    }
    stream.finish()?;
    if !content.is_empty() {
        all.push(content);
    }
    Ok(all)
}

fn code(bytes: &[u8]) -> ErrorCode {
    let all: Vec<_> = [1, 2, 7, 4096].map(|piece| said(bytes, piece)).into();
    assert!(all.iter().all(|one| *one == all[0]), "pieces change nothing");
    match &all[0] {
        Err(Fault::Stream(code)) => *code,
        Err(Fault::Connection(fatal)) => fatal.code,
        Ok(said) => panic!("it is right: {said:?}"),
    }
}

fn right(bytes: &[u8]) -> Vec<String> {
    let all: Vec<_> = [1, 2, 7, 4096].map(|piece| said(bytes, piece)).into();
    assert!(all.iter().all(|one| *one == all[0]), "pieces change nothing");
    all[0].clone().unwrap()
}

#[test]
fn a_request_with_content_and_trailers() {
    let fields =
        [(":method", "POST"), GET[1], GET[2], GET[3], ("cookie", "a=1"), ("cookie", "b=2")];
    let grease = frame(0x21, b"anything");
    let bytes = [
        grease.clone(),
        head(&fields),
        frame(kind::DATA, b"con"),
        grease.clone(),
        frame(kind::DATA, b""),
        frame(kind::DATA, b"tent"),
        frame(kind::HEADERS, &section(&[("x-sum", "7")])),
        grease,
    ]
    .concat();
    let text = "POST /x HTTP/1.1\r\nHost: a.example\r\ncookie: a=1; b=2\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(right(&bytes), [text, "content", "x-sum: 7\r\n"]);
}

#[test]
fn the_order_of_frames() {
    let data = frame(kind::DATA, b"x");
    let trailers = frame(kind::HEADERS, &section(&[("x-sum", "7")]));
    for bytes in [
        data.clone(),
        [head(&GET), trailers.clone(), data.clone()].concat(),
        [head(&GET), trailers.clone(), trailers.clone()].concat(),
        frame(kind::SETTINGS, b""),
        frame(kind::GOAWAY, b"\0"),
        frame(kind::CANCEL_PUSH, b"\0"),
        frame(kind::MAX_PUSH_ID, b"\0"),
        frame(kind::PUSH_PROMISE, b"\0"),
        frame(kind::PRIORITY_UPDATE, b"\0u=1"),
        [head(&GET), frame(0x02, b"")].concat(),
        frame(0x06, b""),
        frame(0x08, b""),
        frame(0x09, b""),
    ] {
        assert_eq!(code(&bytes), ErrorCode::FrameUnexpected, "{bytes:02x?}");
    }
}

#[test]
fn streams_that_break_off() {
    assert_eq!(code(&frame(0x21, b"")), ErrorCode::RequestIncomplete);
    let whole = [head(&GET), frame(kind::DATA, b"content")].concat();
    for length in 1..whole.len() {
        if length != head(&GET).len() {
            assert_eq!(code(&whole[..length]), ErrorCode::Frame, "{length}");
        }
    }
}

#[test]
fn content_has_the_announced_length() {
    let with = |length: &str, content: &[u8]| {
        let fields = [GET[0], GET[1], GET[2], GET[3], ("content-length", length)];
        [head(&fields), frame(kind::DATA, content)].concat()
    };
    assert_eq!(right(&with("3", b"abc"))[1], "abc");
    assert_eq!(code(&with("2", b"abc")), ErrorCode::Message);
    assert_eq!(code(&with("4", b"abc")), ErrorCode::Message);
}

#[test]
fn malformed_heads_and_broken_sections() {
    assert_eq!(code(&head(&GET[..3])), ErrorCode::Message, "no path");
    assert_eq!(code(&head(&[GET[0], GET[0]])), ErrorCode::Message, "a method twice");
    assert_eq!(code(&frame(kind::HEADERS, b"")), ErrorCode::QpackDecompressionFailed);
    assert_eq!(code(&frame(kind::HEADERS, b"\0\0\x80")), ErrorCode::QpackDecompressionFailed);
}

#[test]
fn a_head_that_is_too_long_is_cut_and_the_stream_goes_on() {
    let limits = Limits::default();
    for length in [limits.head, limits.section, 4 * limits.section] {
        let long = "v".repeat(length);
        let fields = [GET[0], GET[1], GET[2], GET[3], ("x-long", &long)];
        let bytes = [head(&fields), frame(kind::DATA, b"content")].concat();
        let said = right(&bytes);
        assert_eq!(said[0].len(), limits.head + 1, "the parser sees that it is too long");
        assert_eq!(said[1], "content");
    }
}

#[test]
fn a_tunnel_has_data_alone() {
    let fields = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        GET[1],
        GET[2],
        GET[3],
        ("sec-websocket-version", "13"),
    ];
    let data = frame(kind::DATA, b"frames");
    assert_eq!(right(&[head(&fields), data.clone()].concat())[1], "frames");
    assert_eq!(code(&[head(&fields), data, head(&fields)].concat()), ErrorCode::FrameUnexpected);
}

#[test]
fn frames_that_say_nothing_are_counted() {
    let mut connection = Connection::new(Limits::default());
    let mut stream = RequestStream::default();
    let mut head = RequestHead::default();
    let mut empty = Vec::new();
    varint::put(&mut empty, 0x21);
    varint::put(&mut empty, 0);
    let end = (0..10_000).find_map(|at| {
        let mut rest = &empty[..];
        while !rest.is_empty() {
            match stream.read(&mut connection, rest, &mut head, 0) {
                Ok((n, _)) => rest = &rest[n..],
                Err(fault) => return Some((at, fault)),
            }
        }
        None
    });
    let (at, fault) = end.expect("a limit");
    assert_eq!(at, Limits::default().overhead.burst);
    assert!(matches!(fault, Fault::Connection(Fatal { code: ErrorCode::ExcessiveLoad, .. })));
}
