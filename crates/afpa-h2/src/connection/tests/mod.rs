//! Frames in, events and frames out.

mod bounds;

use super::*;
use crate::frame::{MAX_PAYLOAD, flag, kind, put};

const GET: &[u8] = b"\x82\x86\x84\x41\x01h";

/// A connection, and its events and answers to each input.
struct Talk {
    connection: Connection,
    head: RequestHead,
    now_ms: u64,
}

impl Talk {
    fn with(limits: Limits) -> Self {
        let connection = Connection::new(limits);
        let mut talk = Self { connection, head: RequestHead::default(), now_ms: 1000 };
        let mut hello = PREFACE.to_vec();
        put(&mut hello, kind::SETTINGS, 0, 0, &[]);
        let said = talk.hear(&hello);
        assert!(said.ends_with("SETTINGS+1 "), "{said}");
        talk
    }

    fn new() -> Self {
        Self::with(Limits::default())
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> String {
        let mut bytes = Vec::new();
        put(&mut bytes, kind, flags, stream, payload);
        self.hear(&bytes)
    }

    fn request(&mut self, stream: u32) -> String {
        self.frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, GET)
    }

    /// A request whose content is to come.
    fn upload(&mut self, stream: u32) -> String {
        self.frame(kind::HEADERS, flag::END_HEADERS, stream, GET)
    }

    /// The events, then the frames of the answer.
    fn hear(&mut self, mut input: &[u8]) -> String {
        let mut said = String::new();
        while let Ok((n, event)) = self.connection.receive(input, &mut self.head, self.now_ms) {
            input = &input[n..];
            match event {
                None => break,
                Some(Event::Request { id, end }) => said += &format!("request {id} {end} "),
                Some(Event::Data { id, bytes, end }) => {
                    self.connection.read(id, bytes.len());
                    said += &format!("data {id} {} {end} ", bytes.len());
                }
                Some(Event::Trailers { id }) => said += &format!("trailers {id} "),
                Some(Event::Reset { id }) => said += &format!("gone {id} "),
            }
        }
        said + &self.answer()
    }

    fn answer(&mut self) -> String {
        let output = std::mem::take(self.connection.output());
        let (mut said, mut rest) = (String::new(), &output[..]);
        while let Some(header) = FrameHeader::read(rest) {
            let payload = &rest[HEADER..HEADER + header.length];
            rest = &rest[HEADER + header.length..];
            let number = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().unwrap());
            said += &match header.kind {
                kind::RST_STREAM => format!("RST {} {} ", header.stream, number(0)),
                kind::GOAWAY => format!("GOAWAY {} {} ", number(0), number(4)),
                kind::WINDOW_UPDATE => format!("WINDOW {} {} ", header.stream, number(0)),
                kind::SETTINGS => format!("SETTINGS+{} ", header.flags),
                kind::PING => format!("PING+{} {} ", header.flags, payload.escape_ascii()),
                kind::HEADERS => format!("HEADERS+{} {} ", header.flags, header.stream),
                kind::CONTINUATION => format!("CONTINUATION+{} {} ", header.flags, header.stream),
                kind::DATA => {
                    format!("DATA+{} {} {} ", header.flags, header.stream, header.length)
                }
                kind => format!("{kind}? "),
            };
        }
        said
    }
}

const PROTOCOL: &str = "GOAWAY 0 1 ";
const FRAME_SIZE: &str = "GOAWAY 0 6 ";

#[test]
fn a_request_and_its_response() {
    let mut talk = Talk::new();
    assert_eq!(talk.request(1), "request 1 true ");
    assert_eq!(talk.head.text(), b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    talk.connection.send_head(1, false, |out| out.push(0x88));
    assert_eq!(talk.connection.room(1), MAX_PAYLOAD);
    talk.connection.send_data(1, b"hello", true);
    assert_eq!(talk.answer(), "HEADERS+4 1 DATA+1 1 5 ");
    assert_eq!((talk.connection.open(), talk.connection.room(1)), (0, 0));
    talk.connection.send_data(1, b"late", true);
    talk.connection.send_head(1, true, |out| out.push(0x88));
    assert_eq!(talk.answer(), "", "nothing is sent on a stream that is gone");
}

#[test]
fn a_request_in_any_pieces_is_the_same() {
    let mut input = PREFACE.to_vec();
    put(&mut input, kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 1]);
    put(&mut input, kind::HEADERS, 0, 1, &GET[..2]);
    put(&mut input, kind::CONTINUATION, 0, 1, &GET[2..4]);
    put(&mut input, kind::CONTINUATION, flag::END_HEADERS, 1, &GET[4..]);
    put(&mut input, kind::DATA, flag::END_STREAM | flag::PADDED, 1, b"\x02hello\0\0");
    for piece in 1..input.len() {
        let mut connection = Connection::new(Limits::default());
        let (mut head, mut held, mut events) = (RequestHead::default(), Vec::new(), Vec::new());
        for part in input.chunks(piece) {
            held.extend_from_slice(part);
            loop {
                let (n, event) = connection.receive(&held, &mut head, 0).unwrap();
                let Some(event) = event else {
                    held.drain(..n);
                    break;
                };
                events.push(format!("{event:?}"));
                held.drain(..n);
            }
        }
        let data = Event::Data { id: 1, bytes: b"hello", end: true };
        let request = Event::Request { id: 1, end: false };
        assert_eq!(events, [format!("{request:?}"), format!("{data:?}")], "pieces of {piece}");
        assert_eq!(connection.room(1), 1);
    }
}

#[test]
fn what_breaks_the_connection() {
    let long = vec![0; MAX_PAYLOAD + 1];
    for (kind, flags, stream, payload, said) in [
        (kind::DATA, 0, 0, &b"a"[..], PROTOCOL),
        (kind::DATA, 0, 1, b"a", PROTOCOL),
        (kind::HEADERS, 4, 0, GET, PROTOCOL),
        (kind::HEADERS, 4, 2, GET, PROTOCOL),
        (kind::HEADERS, 4 | 8, 1, b"\x07\x82\x86", PROTOCOL),
        (kind::HEADERS, 4 | 8, 1, b"", FRAME_SIZE),
        (kind::HEADERS, 4 | 32, 1, b"\0\0\0", FRAME_SIZE),
        (kind::HEADERS, 4, 1, b"\xff", "GOAWAY 1 9 "),
        (kind::CONTINUATION, 4, 1, GET, PROTOCOL),
        (kind::PRIORITY, 0, 0, b"\0\0\0\0\0", PROTOCOL),
        (kind::RST_STREAM, 0, 0, b"\0\0\0\0", PROTOCOL),
        (kind::RST_STREAM, 0, 1, b"\0\0\0\0", PROTOCOL),
        (kind::SETTINGS, 0, 1, b"", PROTOCOL),
        (kind::SETTINGS, 0, 0, b"\0\0\0", FRAME_SIZE),
        (kind::SETTINGS, 1, 0, b"\0\0\0\0\0\0", FRAME_SIZE),
        (kind::SETTINGS, 0, 0, b"\0\x02\0\0\0\x02", PROTOCOL),
        (kind::SETTINGS, 0, 0, b"\0\x04\x80\0\0\0", "GOAWAY 0 3 "),
        (kind::SETTINGS, 0, 0, b"\0\x05\0\0\x3f\xff", PROTOCOL),
        (kind::SETTINGS, 0, 0, b"\0\x05\x01\0\0\0", PROTOCOL),
        (kind::PUSH_PROMISE, 4, 1, b"\0\0\0\x02\x82", PROTOCOL),
        (kind::PING, 0, 1, b"12345678", PROTOCOL),
        (kind::PING, 0, 0, b"1234567", FRAME_SIZE),
        (kind::GOAWAY, 0, 1, b"\0\0\0\0\0\0\0\0", PROTOCOL),
        (kind::GOAWAY, 0, 0, b"\0\0\0\0", FRAME_SIZE),
        (kind::WINDOW_UPDATE, 0, 0, b"\0\0\0\0", PROTOCOL),
        (kind::WINDOW_UPDATE, 0, 0, b"\0\0\x01", FRAME_SIZE),
        (kind::WINDOW_UPDATE, 0, 1, b"\0\0\0\x01", PROTOCOL),
        (kind::WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff", "GOAWAY 0 3 "),
        (kind::PRIORITY_UPDATE, 0, 1, b"\0\0\0\x01", PROTOCOL),
        (kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\0", PROTOCOL),
        (99, 0, 0, &long, FRAME_SIZE),
    ] {
        let mut talk = Talk::new();
        assert_eq!(talk.frame(kind, flags, stream, payload), said, "{kind} {flags} {payload:?}");
        assert_eq!(talk.request(3), "", "nothing more is read");
    }
}

#[test]
fn the_preface_comes_first_and_then_settings() {
    for input in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\rX", b"P\0"] {
        let mut connection = Connection::new(Limits::default());
        let got = connection.receive(input, &mut RequestHead::default(), 0);
        assert_eq!(got.unwrap_err().code, ErrorCode::Protocol, "{}", input.escape_ascii());
    }
    let mut input = PREFACE.to_vec();
    put(&mut input, kind::PING, 0, 0, b"12345678");
    let mut connection = Connection::new(Limits::default());
    assert!(connection.receive(&input, &mut RequestHead::default(), 0).is_err());
}

#[test]
fn a_field_block_is_not_interrupted() {
    for (kind, stream) in [(kind::DATA, 1), (kind::PING, 0), (99, 1), (kind::CONTINUATION, 3)] {
        let mut talk = Talk::new();
        assert_eq!(talk.frame(kind::HEADERS, 0, 1, GET), "");
        assert!(talk.connection.is_within_head());
        assert_eq!(talk.frame(kind, 0, stream, b"12345678"), PROTOCOL);
    }
}

#[test]
fn what_breaks_only_a_stream() {
    for (kind, flags, payload, said) in [
        (kind::HEADERS, 5, &b"\x82"[..], "gone 1 RST 1 5 "),
        (kind::DATA, 0, b"a", "gone 1 RST 1 5 "),
        (kind::WINDOW_UPDATE, 0, b"\0\0\0\0", "gone 1 RST 1 1 "),
        (kind::WINDOW_UPDATE, 0, b"\x7f\xff\xff\xff", "gone 1 RST 1 3 "),
        (kind::PRIORITY, 0, b"\0\0\0\x01\0", "gone 1 RST 1 1 "),
        (kind::PRIORITY, 0, b"\0\0\0\x01", "gone 1 RST 1 6 "),
    ] {
        let mut talk = Talk::new();
        talk.request(1);
        assert_eq!(talk.frame(kind, flags, 1, payload), said, "{kind}");
        assert_eq!(talk.request(3), "request 3 true ", "others go on");
    }
    let mut talk = Talk::new();
    assert_eq!(talk.frame(kind::HEADERS, 5, 1, b"\x82\x86"), "RST 1 1 ", "no path");
    assert_eq!(talk.frame(kind::HEADERS, 5 | 32, 3, &[b"\0\0\0\x03\0", GET].concat()), "RST 3 1 ");
}

#[test]
fn frames_on_streams_that_have_ended() {
    let mut talk = Talk::new();
    talk.request(5);
    assert_eq!(
        talk.frame(kind::HEADERS, 5, 3, GET),
        "GOAWAY 5 1 ",
        "a number that was passed over"
    );

    let mut talk = Talk::new();
    talk.request(1);
    talk.connection.send_head(1, true, |out| out.push(0x88));
    talk.answer();
    assert_eq!(talk.frame(kind::DATA, 0, 1, b"a"), "RST 1 5 ");
    assert_eq!(talk.frame(kind::WINDOW_UPDATE, 0, 1, b"\0\0\0\x01"), "");

    let mut talk = Talk::new();
    talk.request(1);
    assert_eq!(talk.frame(kind::RST_STREAM, 0, 1, b"\0\0\0\x08"), "gone 1 ");
    assert_eq!(talk.frame(kind::HEADERS, 5, 1, GET), "GOAWAY 1 5 ");

    // We have answered and want no more content. Frames that are already on their way are no fault of the client.
    let mut talk = Talk::new();
    talk.upload(1);
    talk.connection.send_head(1, true, |out| out.push(0x88));
    assert_eq!(talk.answer(), "HEADERS+5 1 ");
    assert_eq!(talk.connection.next_lingering(), Some(1));
    assert_eq!(talk.connection.next_lingering(), None);
    talk.connection.ask_to_stop(1);
    assert_eq!(talk.answer(), "RST 1 0 ");
    assert_eq!(talk.frame(kind::DATA, 0, 1, b"a"), "");
    assert_eq!(talk.frame(kind::HEADERS, 5, 1, b"\x40\x01a\x01b"), "");
    assert_eq!(talk.frame(kind::HEADERS, 5, 3, &[GET, b"\xbf"].concat()), "request 3 true ");
    assert!(talk.head.text().ends_with(b"a: b\r\n\r\n"), "its fields went into the table");
}

#[test]
fn a_stream_that_is_answered_early_lingers_for_a_window_of_content() {
    let mut talk = Talk::with(Limits { stream_window: 20_000, ..Limits::default() });
    talk.upload(1);
    talk.upload(3);
    talk.connection.send_head(1, true, |out| out.push(0x88));
    talk.answer();
    let content = [0; 12_000];
    for id in [3, 1] {
        let said = talk.frame(kind::DATA, 0, id, &content);
        assert_eq!(said.contains(&format!("WINDOW {id} ")), id == 3, "{said}");
    }
    talk.frame(kind::DATA, 0, 1, &content[..8_000]);
    assert_eq!(talk.frame(kind::DATA, 0, 1, b"a"), "gone 1 RST 1 3 ", "beyond the window");
    // One that the client ends is not asked to.
    talk.connection.send_head(3, true, |out| out.push(0x88));
    talk.frame(kind::DATA, 1, 3, b"");
    assert_eq!((talk.connection.open(), talk.connection.next_lingering()), (0, None));
}

#[test]
fn a_client_may_stop_each_request_that_is_answered() {
    let mut talk = Talk::new();
    for id in (1..2000).step_by(2) {
        talk.upload(id);
        talk.connection.send_head(id, true, |out| out.push(0x88));
        talk.answer();
        assert_eq!(talk.frame(kind::RST_STREAM, 0, id, b"\0\0\0\x08"), format!("gone {id} "));
        assert_eq!((talk.connection.open(), talk.connection.next_lingering()), (0, None));
    }
    let mut talk = Talk::new();
    let mut reset = |id| {
        talk.upload(id);
        talk.frame(kind::RST_STREAM, 0, id, b"\0\0\0\x08")
    };
    assert!((1..2000).step_by(2).any(|id| reset(id).contains("GOAWAY")), "not before its answer");
}

#[test]
fn content_has_the_length_that_was_announced() {
    let announced = [GET, b"\x5c\x015"].concat();
    for (data, said) in [
        (vec![(b"hello", 1)], "data 1 5 true "),
        (vec![(b"hello", 0), (b"extra", 1)], "data 1 5 false gone 1 RST 1 1 "),
    ] {
        let mut talk = Talk::new();
        assert_eq!(talk.frame(kind::HEADERS, 4, 1, &announced), "request 1 false ");
        let heard: String =
            data.iter().map(|(bytes, flags)| talk.frame(kind::DATA, *flags, 1, *bytes)).collect();
        assert_eq!(heard, said);
    }
    let mut talk = Talk::new();
    talk.frame(kind::HEADERS, 4, 1, &announced);
    assert_eq!(talk.frame(kind::DATA, 1, 1, b"hell"), "gone 1 RST 1 1 ");
    assert_eq!(talk.frame(kind::HEADERS, 4, 3, &announced), "request 3 false ");
    assert_eq!(
        talk.frame(kind::HEADERS, 5, 3, b"\x40\x01a\x01b"),
        "gone 3 RST 3 1 ",
        "trailers, too soon"
    );
}

#[test]
fn trailers_end_a_request() {
    let mut talk = Talk::new();
    talk.upload(1);
    assert_eq!(talk.frame(kind::HEADERS, 5, 1, b"\0\x01a\x01b"), "trailers 1 ");
    assert_eq!(talk.head.text(), b"a: b\r\n");
    for (flags, block) in [(4, &b"\0\x01a\x01b"[..]), (5, b"\x82")] {
        let mut talk = Talk::new();
        talk.upload(1);
        assert_eq!(talk.frame(kind::HEADERS, flags, 1, block), "gone 1 RST 1 1 ");
    }
}

#[test]
fn each_side_of_a_tunnel_ends_by_itself() {
    let mut block = Vec::new();
    for (name, value) in [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "h"),
    ] {
        for text in [&[0][..], &[name.len() as u8], name.as_bytes(), &[value.len() as u8]] {
            block.extend_from_slice(text);
        }
        block.extend_from_slice(value.as_bytes());
    }
    for client_first in [false, true] {
        let mut talk = Talk::new();
        assert_eq!(talk.frame(kind::HEADERS, 4, 1, &block), "request 1 false ");
        talk.connection.send_head(1, false, |out| out.push(0x88));
        if client_first {
            assert_eq!(talk.frame(kind::DATA, 1, 1, b"bye"), "data 1 3 true HEADERS+4 1 ");
            talk.connection.send_data(1, b"bye", true);
            assert_eq!(talk.answer(), "DATA+1 1 3 ");
        } else {
            talk.connection.send_data(1, b"bye", true);
            assert_eq!(talk.answer(), "HEADERS+4 1 DATA+1 1 3 ", "and no reset");
            assert_eq!((talk.connection.open(), talk.connection.room(1)), (1, 0));
            assert_eq!(talk.frame(kind::DATA, 0, 1, b"more"), "data 1 4 false ");
            assert_eq!(talk.frame(kind::DATA, 1, 1, b"bye"), "data 1 3 true ");
        }
        assert_eq!(talk.connection.open(), 0);
    }
}

#[test]
fn leaving_loses_no_request() {
    let mut talk = Talk::new();
    talk.request(1);
    talk.connection.leave();
    talk.connection.leave();
    assert_eq!(talk.answer(), "GOAWAY 2147483647 0 PING+0 afpa bye ");
    assert_eq!(talk.request(3), "request 3 true ", "it was on its way");
    assert_eq!(talk.frame(kind::PING, 1, 0, b"afpa bye"), "GOAWAY 3 0 ");
    assert_eq!(talk.request(5), "", "the client knows that it is not served");
    assert_eq!(talk.frame(kind::DATA, 0, 5, b"a"), "");
    assert!(!talk.connection.is_done());
    for id in [1, 3] {
        talk.connection.send_head(id, true, |out| out.push(0x88));
    }
    assert_eq!(talk.answer(), "HEADERS+5 1 HEADERS+5 3 ");
    assert!(talk.connection.is_done());
}

#[test]
fn long_field_blocks_are_continued() {
    let mut talk = Talk::new();
    talk.request(1);
    talk.connection.send_head(1, true, |out| out.extend_from_slice(&[0x88; 2 * MAX_PAYLOAD]));
    assert_eq!(talk.answer(), "HEADERS+1 1 CONTINUATION+0 1 CONTINUATION+4 1 ");
}

#[test]
fn the_urgent_and_the_small_go_first() {
    let mut talk = Talk::new();
    let with =
        |priority: &[u8]| [GET, b"\0\x08priority", &[priority.len() as u8], priority].concat();
    for (id, priority) in [(1, &b"u=5"[..]), (3, b""), (5, b""), (7, b"u=3, i"), (9, b"i")] {
        talk.frame(kind::HEADERS, 5, id, &with(priority));
        talk.connection.set_pending(id, Some(1000 * u64::from(id)));
    }
    let mut order = Vec::new();
    let mut next = |talk: &mut Talk, done: bool| {
        let (id, _) = talk.connection.next_to_send().unwrap();
        talk.connection.send_data(id, b"a", false);
        order.push(id);
        if done {
            talk.connection.set_pending(id, None);
        }
    };
    next(&mut talk, false);
    next(&mut talk, true);
    next(&mut talk, true);
    (0..4).for_each(|_| next(&mut talk, false));
    talk.frame(kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=0");
    next(&mut talk, true);
    assert_eq!(order, [3, 3, 5, 7, 9, 7, 9, 1]);
}
