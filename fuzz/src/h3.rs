//! Promises that hold for any bytes that a client of HTTP/3 sends.

use afpa_h2::{FieldCode as _, RequestHead, request::Framing};
use afpa_h3::request::Fault;
use afpa_h3::{Connection, Control, Event, Limits, Qpack, RequestStream, qpack};

/// Small enough for inputs of a fuzzer to reach every limit.
fn limits() -> Limits {
    Limits { head: 256, section: 128, ..Limits::default() }
}

/// Field sections: decoding gives no more than it can, and our own section of the same fields means the same.
pub fn h3_fields(data: &[u8]) {
    let mut fields = Vec::new();
    let good = qpack::decode(data, |name, value| fields.push((name.to_vec(), value.to_vec())));
    let given: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
    // The longest entry of the static table has 78 bytes, the shortest Huffman code 5 bits.
    assert!(given <= data.len() * 80);
    if good.is_err() {
        return;
    }
    let mut again = Vec::new();
    Qpack::begin(&mut again);
    for (name, value) in &mut fields {
        name.make_ascii_lowercase();
        Qpack::put_field(&mut again, name, value);
    }
    let mut repeated = Vec::new();
    qpack::decode(&again, |name, value| repeated.push((name.to_vec(), value.to_vec())))
        .expect("our own section");
    assert_eq!(fields, repeated);
}

/// The parts of a request's stream.
#[derive(Debug, PartialEq, Eq)]
struct Heard {
    heads: Vec<Vec<u8>>,
    content: Vec<u8>,
    end: Result<(), Fault>,
}

/// The stream of a request: the same however the bytes are split; a head is one of HTTP/1.1, and memory is bounded.
pub fn h3_request(data: &[u8]) {
    let whole = hear(data, data.len().max(1));
    for piece in [1, 7] {
        let pieces = hear(data, piece);
        assert_eq!((&whole.heads, whole.end), (&pieces.heads, pieces.end));
        // Content before a fault may have been given out.
        assert!(whole.end.is_err() || whole.content == pieces.content);
    }
}

fn hear(data: &[u8], piece: usize) -> Heard {
    let mut connection = Connection::new(limits());
    let (mut stream, mut head) = (RequestStream::default(), RequestHead::default());
    let mut heard = Heard { heads: Vec::new(), content: Vec::new(), end: Ok(()) };
    for mut part in data.chunks(piece) {
        while !part.is_empty() {
            let (n, event) = match stream.read(&mut connection, part, &mut head, 0) {
                Ok(read) => read,
                Err(fault) => {
                    heard.end = Err(fault);
                    return heard;
                }
            };
            assert!(n > 0 && n <= part.len());
            part = &part[n..];
            match event {
                None => {}
                Some(Event::Data(content)) => heard.content.extend_from_slice(content),
                Some(Event::Head) => {
                    let Ok(asked) = head.finish(false) else { return heard };
                    stream.expect(asked.content_length, head.framing() == Framing::Tunnel);
                    check_head(&head);
                    heard.heads.push(head.text().to_vec());
                }
                Some(Event::Trailers) => {
                    if head.finish_trailers().is_err() {
                        return heard;
                    }
                    assert!(!head.text().starts_with(b":"));
                    heard.heads.push(head.text().to_vec());
                }
            }
        }
    }
    heard.end = stream.finish();
    heard
}

/// A head is one request of HTTP/1.1, or it is too long.
fn check_head(head: &RequestHead) {
    let text = head.text();
    assert!(text.len() <= limits().head + 2);
    let Some(lines) = text.strip_suffix(b"\r\n\r\n") else {
        return assert_eq!(text.len(), limits().head + 1);
    };
    for (at, line) in lines.split(|&byte| byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        assert!(!line.contains(&b'\r') && !line.contains(&0));
        assert!(if at == 0 { line.ends_with(b" HTTP/1.1") } else { line.contains(&b':') });
    }
}

/// The streams beside those of requests, one after another: the same however the bytes are split.
pub fn h3_control(data: &[u8]) {
    let whole = told(data, data.len().max(1));
    for piece in [1, 5] {
        assert_eq!(whole, told(data, piece));
    }
}

fn told(data: &[u8], piece: usize) -> (Vec<Control>, Option<afpa_h3::Fatal>) {
    let mut connection = Connection::new(limits());
    let mut told = Vec::new();
    for (number, bytes) in (0..).zip(data.split(|&byte| byte == b'|').take(8)) {
        // Streams of the client in one direction (RFC 9000 section 2.1).
        let id = number * 4 + 2;
        for part in bytes.chunks(piece) {
            let read = connection.read(id, part, 0, |control| told.push(control));
            if let Err(fatal) = read {
                return (told, Some(fatal));
            }
            if told.contains(&Control::Stop(id)) {
                break;
            }
        }
        if number % 3 == 2
            && let Err(fatal) = connection.ended(id)
        {
            return (told, Some(fatal));
        }
    }
    (told, None)
}
