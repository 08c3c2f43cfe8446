//! Promises that hold for any bytes that a client of HTTP/2 sends.

use afpa_h2::client::{self, ResponseHead, Tunnel};
use afpa_h2::hpack::{Decoder, TABLE_SIZE, encode};
use afpa_h2::request::Framing;
use afpa_h2::{Connection, Event, Limits, PREFACE, RequestHead, ResponseEvent, ResponseReader};

/// Small enough for inputs of a fuzzer to reach every limit.
fn limits() -> Limits {
    Limits {
        streams: 4,
        stream_window: 64,
        connection_window: 0,
        head: 256,
        block: 512,
        continuations: 3,
        ..Limits::default()
    }
}

/// The events and the output of a connection for an input that came in pieces.
struct Heard {
    events: Vec<String>,
    output: Vec<u8>,
    fatal: bool,
}

/// Frames: the events do not depend on how the bytes were split, memory is bounded, every request is one head of
/// HTTP/1.1, and the answers stay within the client's windows.
pub fn h2_frames(data: &[u8]) {
    let input = [&PREFACE[..], data].concat();
    let whole = hear(&input, input.len().max(1));
    for piece in [1, 7] {
        let pieces = hear(&input, piece);
        assert_eq!(whole.events, pieces.events);
        assert_eq!(whole.fatal, pieces.fatal);
        assert_eq!(whole.output, pieces.output);
    }
}

fn hear(input: &[u8], piece: usize) -> Heard {
    let mut connection = Connection::new(limits());
    let mut head = RequestHead::default();
    let mut heard = Heard { events: Vec::new(), output: Vec::new(), fatal: false };
    let mut held = Vec::new();
    let mut unread = 0;
    for part in input.chunks(piece) {
        held.extend_from_slice(part);
        loop {
            let (length, event) = match connection.receive(&held, &mut head, 0) {
                Ok((length, Some(event))) => (length, event),
                Ok((length, None)) => {
                    held.drain(..length);
                    break;
                }
                Err(_) => {
                    heard.fatal = true;
                    heard.output.append(connection.output());
                    return heard;
                }
            };
            heard.events.push(format!("{event:?}"));
            match event {
                Event::Request { id, .. } => {
                    check_head(&head);
                    connection.send_head(id, false, |out| encode::put_status(out, 200));
                    let room = connection.room(id).min(100);
                    connection.send_data(id, &[b'a'; 100][..room], id % 4 == 1);
                }
                Event::Data { id, bytes, .. } => {
                    unread += bytes.len();
                    // Half of them are read, so that windows are used up.
                    if id % 3 == 0 {
                        let length = bytes.len();
                        connection.read(id, length);
                    }
                }
                Event::Trailers { .. } => assert!(!head.text().starts_with(b":")),
                Event::Reset { id } => assert!(!connection.has(id)),
            }
            held.drain(..length);
            assert!(connection.open() <= 4);
        }
    }
    let _ = unread;
    heard.output.append(connection.output());
    heard
}

/// Checks that a head is one request line and lines of fields, for any content of the fields.
fn check_head(head: &RequestHead) {
    let text = head.text();
    // Its lines count against the limit, its end does not.
    assert!(text.len() <= limits().head + 2);
    let Some(lines) = text.strip_suffix(b"\r\n\r\n") else {
        return assert_eq!(text.len(), limits().head + 1);
    };
    let mut lines = lines.split(|&byte| byte == b'\n');
    let first = lines.next().unwrap_or_default();
    assert!(first.ends_with(b" HTTP/1.1\r") || first.ends_with(b" HTTP/1.1"));
    assert_eq!(first.iter().filter(|&&byte| byte == b' ').count(), 2);
    let mut codings = 0;
    for line in lines {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        assert!(!line.contains(&b'\r') && !line.contains(&0) && line.contains(&b':'));
        codings += usize::from(line.starts_with(b"Transfer-Encoding: "));
        assert!(!line.starts_with(b"transfer-encoding"));
    }
    assert_eq!(codings == 1, head.framing() == Framing::Chunked);
}

/// Field blocks: decoding ends, gives no more than it can, and leaves a table that the next block can use.
pub fn hpack(data: &[u8]) {
    let mut decoder = Decoder::default();
    for block in data.split(|&byte| byte == b'|').take(4) {
        let mut given = 0;
        let mut again = Vec::new();
        let good = decoder.decode(block, |name, value| {
            given += name.len() + value.len();
            encode::put_field(&mut again, name, value);
        });
        assert!(given <= block.len() * (TABLE_SIZE + 8));
        if good.is_err() {
            return;
        }
        // Fields that we encode are decoded as the same fields, apart from upper case.
        let mut repeated = 0;
        Decoder::default()
            .decode(&again, |name, value| repeated += name.len() + value.len())
            .expect("our own block");
        assert_eq!(given, repeated);
    }
}

/// Responses: the same events however the bytes are split, and no field about the connection goes out.
pub fn h2_response(data: &[u8]) {
    let whole = read(data, data.len().max(1));
    for piece in [1, 5] {
        assert_eq!(whole, read(data, piece));
    }
}

/// The heads, the content, and whether it was a whole response.
fn read(data: &[u8], piece: usize) -> (Vec<Vec<u8>>, Vec<u8>, Option<bool>) {
    let mut reader = ResponseReader::new(false, false);
    let (mut heads, mut content) = (Vec::new(), Vec::new());
    for mut part in data.chunks(piece) {
        while !part.is_empty() {
            let Ok((length, event)) = reader.read(part) else {
                return (heads, content, None);
            };
            assert!(length > 0 && length <= part.len());
            part = &part[length..];
            match event {
                Some(ResponseEvent::Head { .. } | ResponseEvent::Trailers) => {
                    let field = |name: &[u8], _: &[u8]| {
                        assert!(!matches!(name, b"connection" | b"transfer-encoding" | b"upgrade"));
                    };
                    Decoder::default().decode(reader.block(), field).expect("our own block");
                    heads.push(reader.block().to_vec());
                }
                Some(ResponseEvent::Content { bytes, .. }) => content.extend_from_slice(bytes),
                None => {}
            }
        }
    }
    (heads, content, Some(reader.is_done()))
}

/// Frames of a server: the events do not depend on how the bytes were split, memory is bounded, every response is one head
/// of HTTP/1.1, and the requests stay within the server's limits.
pub fn h2_client(data: &[u8]) {
    let whole = ask(data, data.len().max(1));
    for piece in [1, 7] {
        let pieces = ask(data, piece);
        assert_eq!(whole.events, pieces.events);
        assert_eq!(whole.fatal, pieces.fatal);
        assert_eq!(whole.output, pieces.output);
    }
}

fn ask(input: &[u8], piece: usize) -> Heard {
    let mut connection = client::Connection::new(limits());
    let mut head = ResponseHead::default();
    let mut heard = Heard { events: Vec::new(), output: Vec::new(), fatal: false };
    let mut held = Vec::new();
    // Without its SETTINGS a server is not asked.
    let settings = b"\0\0\x06\x04\0\0\0\0\0\0\x08\0\0\0\x01";
    connection.receive(settings, &mut head, 0).expect("SETTINGS with extended CONNECT");
    request(&mut connection, false);
    request(&mut connection, true);
    let tunnel =
        Tunnel { protocol: b"websocket".as_slice().into(), accept: Some("its hash".into()) };
    connection.open_tunnel(b"\x82", tunnel).expect("it is offered");
    request(&mut connection, true);
    for part in input.chunks(piece) {
        held.extend_from_slice(part);
        loop {
            let (length, event) = match connection.receive(&held, &mut head, 0) {
                Ok((length, event)) => (length, event),
                Err(_) => {
                    heard.fatal = true;
                    heard.output.append(connection.output());
                    return heard;
                }
            };
            let is_last = event.is_none();
            if let Some(event) = event {
                heard.events.push(format!("{event:?}"));
                heed(&mut connection, &head, event);
            }
            held.drain(..length);
            assert!(connection.open_streams() <= 4);
            if is_last {
                break;
            }
        }
    }
    heard.output.append(connection.output());
    heard
}

/// Asks something, with content or without.
fn request(connection: &mut client::Connection, end: bool) {
    let mut block = Vec::new();
    encode::put_field(&mut block, b":method", b"GET");
    if let Some(id) = connection.open(&block, end, false) {
        let room = connection.room(id).min(100);
        connection.send_data(id, &[b'a'; 100][..room], room < 100);
    }
}

/// Does what the owner of a stream does.
fn heed(connection: &mut client::Connection, head: &ResponseHead, event: client::Event<'_>) {
    match event {
        client::Event::Head { interim, .. } => check_response(head, interim),
        client::Event::Data { id, bytes, end } => {
            // Half of them are read, so that windows are used up.
            if id % 3 == 0 {
                connection.read(id, bytes.len());
            }
            if end {
                connection.abandon(id);
                request(connection, true);
            }
        }
        client::Event::Trailers { id } => {
            assert!(!head.text().contains(&0));
            connection.abandon(id);
        }
        client::Event::Gone { id, .. } => assert_eq!(connection.room(id), 0),
        client::Event::Leaving => while connection.next_unprocessed().is_some() {},
    }
}

/// Checks that a head is one status line and lines of fields, for any content of the fields.
fn check_response(head: &ResponseHead, interim: bool) {
    let text = head.text();
    assert!(text.starts_with(b"HTTP/1.1 "));
    if text.len() > limits().head + 2 {
        panic!("{} bytes", text.len());
    }
    let Some(lines) = text.strip_suffix(b"\r\n\r\n") else {
        return assert_eq!(text.len(), limits().head + 1);
    };
    let mut codings = 0;
    for line in lines.split(|&byte| byte == b'\n').skip(1) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        assert!(!line.contains(&b'\r') && !line.contains(&0) && line.contains(&b':'));
        codings += usize::from(line.starts_with(b"transfer-encoding: "));
    }
    assert_eq!(codings == 1, head.framing() == client::response::Framing::Chunked);
    assert!(!interim || codings == 0);
    let is_switch = text.starts_with(b"HTTP/1.1 101 ");
    assert_eq!(is_switch, head.framing() == client::response::Framing::Tunnel);
    let name = |line: &[u8]| line.split(|&byte| byte == b':').next().map(<[u8]>::to_vec);
    for own in [&b"upgrade"[..], b"connection"] {
        let found =
            lines.split(|&byte| byte == b'\n').filter(|line| name(line).as_deref() == Some(own));
        assert_eq!(found.count(), usize::from(is_switch));
    }
}
