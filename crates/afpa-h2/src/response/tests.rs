//! Responses of HTTP/1.1, as HTTP/2 says them.

use super::*;
use crate::hpack::Decoder;

/// All events, the input cut into pieces of some size.
fn read(reader: &mut ResponseReader, input: &[u8], piece: usize) -> Result<String, BadResponse> {
    let mut said = String::new();
    for mut input in input.chunks(piece) {
        while !input.is_empty() {
            let (n, event) = reader.read(input)?;
            input = &input[n..];
            match event {
                Some(ResponseEvent::Content { bytes, end }) => {
                    said += &bytes.escape_ascii().to_string();
                    said += if end { "|" } else { "" };
                }
                Some(ResponseEvent::Head { end, .. }) => {
                    said += &fields(reader.block());
                    said += if end { "|" } else { "" };
                }
                Some(ResponseEvent::Trailers) => said += &format!("T{}|", fields(reader.block())),
                None => {}
            }
        }
    }
    Ok(said)
}

fn fields(block: &[u8]) -> String {
    let mut said = String::from("[");
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let field = |name: &[u8], value: &[u8]| said += &format!("{}={},", text(name), text(value));
    Decoder::default().decode(block, field).unwrap();
    said + "]"
}

#[test]
fn responses_in_any_pieces() {
    for (head, response, expected) in [
        (
            false,
            "HTTP/1.1 200 OK\r\nA-B: c\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi",
            "[:status=200,a-b=c,content-length=2,]hi|",
        ),
        (true, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", "[:status=200,content-length=2,]|"),
        (false, "HTTP/1.1 304 Not Modified\r\n\r\n", "[:status=304,]|"),
        (
            false,
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n",
            "[:status=100,][:status=404,content-length=0,]|",
        ),
        (
            false,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n1;x\r\n!\r\n0\r\n\r\n",
            "[:status=200,]hi!|",
        ),
        (
            false,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nA: b\r\n\r\n",
            "[:status=200,]hiT[a=b,]|",
        ),
        (
            false,
            "HTTP/1.1 200 OK\r\nKeep-Alive: 1\r\nUpgrade: h2c\r\n\r\nto the end",
            "[:status=200,]to the end",
        ),
    ] {
        for piece in 1..response.len() {
            let mut reader = ResponseReader::new(head, false);
            assert_eq!(read(&mut reader, response.as_bytes(), piece).as_deref(), Ok(expected));
            assert_eq!(reader.is_done(), expected.ends_with('|'));
            assert_eq!(reader.ends_with_bytes(), !expected.ends_with('|'));
        }
    }
}

#[test]
fn a_change_of_protocol_is_a_success_where_it_was_asked_for() {
    let response =
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                     Sec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: chat\r\n\r\nbytes";
    let mut reader = ResponseReader::new(false, true);
    let expected = "[:status=200,sec-websocket-protocol=chat,]bytes";
    assert_eq!(read(&mut reader, response, 1000).as_deref(), Ok(expected));
    assert_eq!(read(&mut ResponseReader::new(false, false), response, 1000), Err(BadResponse));
}

#[test]
fn what_is_no_response_is_refused() {
    for response in [
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA b: c\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\rC: d\r\nE: f\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\r\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\n\r\n\r\n",
        "HTTP/1.1 200 O\rK\r\n\r\n",
        "HTTP/1.1 200 O\nK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
        "HTTP/1.1 204 No Content\r\n\r\na",
    ] {
        let answer = read(&mut ResponseReader::new(false, false), response.as_bytes(), 1000);
        assert_eq!(answer, Err(BadResponse), "{response:?}");
    }
}
