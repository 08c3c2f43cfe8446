use super::*;
use crate::frame::MAX_PAYLOAD;
use crate::hpack::encode;
use crate::limits::Budget;

/// A connection whose server has said SETTINGS, without output.
pub(super) fn ready(limits: Limits) -> Connection {
    let mut connection = Connection::new(limits);
    assert!(!connection.is_ready() && connection.room_for_streams() == 0);
    let most = settings(&[(setting::MAX_CONCURRENT_STREAMS, 3)]);
    assert_eq!(events(&mut connection, &most), Ok(vec![]));
    assert_eq!(connection.room_for_streams(), 3);
    connection.output().clear();
    connection
}

/// The events of `input`, in words.
pub(super) fn events(connection: &mut Connection, input: &[u8]) -> Result<Vec<String>, ErrorCode> {
    let (mut head, mut at, mut said) = (ResponseHead::default(), 0, Vec::new());
    loop {
        let (n, event) =
            connection.receive(&input[at..], &mut head, 0).map_err(|fatal| fatal.code)?;
        at += n;
        let Some(event) = event else {
            assert_eq!(at, input.len(), "whole frames are read");
            return Ok(said);
        };
        said.push(match event {
            Event::Head { id, interim, end } => {
                let line = head.text().split(|&byte| byte == b'\r').next().unwrap_or_default();
                format!("{id} {} {interim} {end}", line.escape_ascii())
            }
            Event::Trailers { id } => format!("{id} {}", head.text().escape_ascii()),
            Event::Data { id, bytes, end } => format!("{id} {} {end}", bytes.escape_ascii()),
            other => format!("{other:?}"),
        });
    }
}

fn open(connection: &mut Connection, end: bool) -> StreamId {
    let mut block = Vec::new();
    encode::put_field(&mut block, b":method", b"GET");
    connection.open(&block, end, false).expect("room")
}

pub(super) fn head(id: StreamId, end: bool, fields: &[(&str, &str)]) -> Vec<u8> {
    let (mut block, mut out) = (Vec::new(), Vec::new());
    fields.iter().for_each(|(n, v)| encode::put_field(&mut block, n.as_bytes(), v.as_bytes()));
    let end = if end { flags::END } else { 0 };
    frame::put(&mut out, kind::HEADERS, flags::WHOLE | end, id, &block);
    out
}

pub(super) fn data(id: StreamId, end: bool, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::put(&mut out, kind::DATA, if end { flags::END } else { 0 }, id, bytes);
    out
}

pub(super) fn raw(kind: u8, flags: u8, id: StreamId, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::put(&mut out, kind, flags, id, payload);
    out
}

pub(super) fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::put_settings(&mut out, settings);
    out
}

mod flags {
    pub(super) const END: u8 = crate::frame::flag::END_STREAM;
    pub(super) const WHOLE: u8 = crate::frame::flag::END_HEADERS;
}

const OK: (&str, &str) = (":status", "200");

/// The kinds of the frames in the output, and their streams.
pub(super) fn sent(connection: &mut Connection) -> Vec<(u8, StreamId)> {
    let (output, mut frames) = (std::mem::take(connection.output()), Vec::new());
    let mut rest = &output[..];
    while let Some(header) = FrameHeader::read(rest) {
        frames.push((header.kind, header.stream));
        rest = &rest[HEADER + header.length..];
    }
    frames
}

#[test]
fn responses_of_several_streams_come_in_any_order() {
    let mut connection = ready(Limits::default());
    let (a, b) = (open(&mut connection, true), open(&mut connection, true));
    let input = [
        head(b, false, &[(":status", "103")]),
        head(b, false, &[OK]),
        head(a, false, &[OK, ("content-length", "3")]),
        data(b, false, b"xx"),
        data(a, true, b"abc"),
        head(b, true, &[("x-sum", "1")]),
    ]
    .concat();
    assert_eq!(
        events(&mut connection, &input).unwrap(),
        [
            "3 HTTP/1.1 103 Early Hints true false",
            "3 HTTP/1.1 200 OK false false",
            "1 HTTP/1.1 200 OK false false",
            "3 xx false",
            "1 abc true",
            "3 x-sum: 1\\r\\n",
        ]
    );
    assert_eq!((connection.open_streams(), connection.room_for_streams()), (0, 3));
}

#[test]
fn the_server_says_how_many_streams_there_may_be() {
    let mut connection = ready(Limits::default());
    (0..3).for_each(|_| assert!(open(&mut connection, true) > 0));
    assert_eq!(connection.open(b"\x82", true, false), None);
    let ended = head(1, true, &[OK]);
    events(&mut connection, &ended).unwrap();
    assert_eq!(connection.room_for_streams(), 1);
    events(&mut connection, &settings(&[(setting::MAX_CONCURRENT_STREAMS, 0)])).unwrap();
    assert_eq!((connection.room_for_streams(), connection.takes_streams()), (0, true));
}

#[test]
fn goaway_names_the_streams_that_were_not_processed() {
    let mut connection = ready(Limits::default());
    let (a, b, c) =
        (open(&mut connection, true), open(&mut connection, true), open(&mut connection, false));
    let goaway = |last: StreamId| {
        let mut out = Vec::new();
        frame::put_goaway(&mut out, last, ErrorCode::NoError, "");
        out
    };
    assert_eq!(events(&mut connection, &goaway(b)).unwrap(), ["Leaving"]);
    assert_eq!((connection.next_unprocessed(), connection.next_unprocessed()), (Some(c), None));
    assert!(!connection.takes_streams());
    // A later one may name fewer, but not more.
    assert_eq!(events(&mut connection, &goaway(a)).unwrap(), ["Leaving"]);
    assert_eq!((connection.next_unprocessed(), connection.next_unprocessed()), (Some(b), None));
    events(&mut connection, &goaway(99)).unwrap();
    assert_eq!(connection.next_unprocessed(), None);
    let answer = head(a, true, &[OK]);
    assert_eq!(events(&mut connection, &answer).unwrap().len(), 1, "it was processed");
}

#[test]
fn only_an_untouched_stream_can_be_refused() {
    for (before, why) in [(false, Gone::Unprocessed), (true, Gone::Reset(7))] {
        let mut connection = ready(Limits::default());
        let id = open(&mut connection, true);
        if before {
            events(&mut connection, &head(id, false, &[OK])).unwrap();
        }
        let reset = raw(kind::RST_STREAM, 0, id, &7u32.to_be_bytes());
        let gone = format!("{:?}", Event::Gone { id, why });
        assert_eq!(events(&mut connection, &reset).unwrap(), [gone]);
    }
}

#[test]
fn content_of_another_length_than_announced_ends_the_stream() {
    let length = [OK, ("content-length", "3")];
    let no_content = [(":status", "204")];
    for (fields, content, end) in
        [(&length[..], &b"abcd"[..], false), (&length, b"ab", true), (&no_content, b"a", true)]
    {
        let mut connection = ready(Limits::default());
        let id = open(&mut connection, true);
        events(&mut connection, &head(id, false, fields)).unwrap();
        let malformed = format!("{:?}", Event::Gone { id, why: Gone::Malformed });
        assert_eq!(events(&mut connection, &data(id, end, content)).unwrap(), [malformed]);
        assert!(sent(&mut connection).contains(&(kind::RST_STREAM, id)));
        assert_eq!(events(&mut connection, &data(id, true, b"late")), Ok(vec![]));
    }
    for early in [data(1, true, b"content before its head"), head(1, true, &[("a", "b")])] {
        let mut connection = ready(Limits::default());
        open(&mut connection, true);
        let said = events(&mut connection, &early).unwrap();
        assert_eq!(said, ["Gone { id: 1, why: Malformed }"]);
    }
}

#[test]
fn windows_bound_both_sides() {
    let limits = Limits { stream_window: 100, connection_window: 0, ..Limits::default() };
    let mut connection = ready(limits);
    let id = open(&mut connection, false);
    assert_eq!(connection.room(id), MAX_PAYLOAD);
    for _ in 0..3 {
        connection.send_data(id, &[0; MAX_PAYLOAD], false);
    }
    assert_eq!(connection.room(id), 65_535 - 3 * MAX_PAYLOAD);
    connection.send_data(id, &vec![0; 65_535 - 3 * MAX_PAYLOAD], false);
    assert_eq!(connection.room(id), 0);
    connection.send_data(id, b"", true);
    assert!(!connection.may_send(id));
    connection.output().clear();

    events(&mut connection, &head(id, false, &[OK])).unwrap();
    events(&mut connection, &data(id, false, &[0; 60])).unwrap();
    connection.read(id, 60);
    assert_eq!(sent(&mut connection), [(kind::WINDOW_UPDATE, id)]);
    events(&mut connection, &data(id, false, &[0; 100])).unwrap();
    let said = events(&mut connection, &data(id, false, &[0; 1])).unwrap();
    assert_eq!(said, ["Gone { id: 1, why: Malformed }"]);
    // All streams together.
    let mut connection = ready(Limits { stream_window: 1 << 20, ..limits });
    let id = open(&mut connection, true);
    events(&mut connection, &head(id, false, &[OK])).unwrap();
    for _ in 0..3 {
        events(&mut connection, &data(id, false, &[0; MAX_PAYLOAD])).unwrap();
    }
    let too_much = events(&mut connection, &data(id, false, &[0; MAX_PAYLOAD]));
    assert_eq!(too_much, Err(ErrorCode::FlowControl));
}

#[test]
fn a_stream_that_only_its_end_is_missing_of_is_left_alone() {
    let mut connection = ready(Limits::default());
    let answer = [OK, ("content-length", "2")];
    let ids: Vec<_> = (0..3).map(|_| open(&mut connection, true)).collect();
    for &id in &ids {
        events(&mut connection, &[head(id, false, &answer), data(id, false, b"ab")].concat())
            .unwrap();
    }
    connection.output().clear();
    ids.iter().for_each(|&id| connection.abandon(id));
    assert_eq!((sent(&mut connection), connection.open_streams()), (vec![], 0));
    events(&mut connection, &data(ids[0], true, b"")).unwrap();
    // A fourth stream has room, a fifth one only in place of one that was left.
    open(&mut connection, true);
    assert!(!sent(&mut connection).contains(&(kind::RST_STREAM, ids[1])));
    let fifth = open(&mut connection, true);
    assert!(sent(&mut connection).contains(&(kind::RST_STREAM, ids[1])));
    connection.abandon(fifth);
    assert_eq!(sent(&mut connection), [(kind::RST_STREAM, fifth)]);
}

#[test]
fn every_flood_ends() {
    let budget = Budget { burst: 20, per_second: 1 };
    let limits = Limits { overhead: budget, continuations: 3, block: 1000, ..Limits::default() };
    let empty_settings = raw(kind::SETTINGS, 0, 0, b"");
    let floods = [
        empty_settings.repeat(40),
        raw(kind::PING, 0, 0, b"12345678").repeat(40),
        raw(kind::PRIORITY, 0, 1, b"12345").repeat(40),
        raw(0x77, 0, 0, b"").repeat(40),
        [head(1, false, &[OK]), data(1, false, b"").repeat(40)].concat(),
        raw(kind::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]).repeat(60),
        raw(kind::RST_STREAM, 0, 1, &[0; 4]).repeat(40),
        raw(kind::GOAWAY, 0, 0, &[0x7f; 8]).repeat(40),
        [raw(kind::HEADERS, 0, 1, b""), raw(kind::CONTINUATION, 0, 1, b"").repeat(9)].concat(),
        [raw(kind::HEADERS, 0, 1, &[0x88]), raw(kind::CONTINUATION, 0, 1, &[0; 1000])].concat(),
    ];
    for flood in floods {
        let mut connection = ready(limits);
        open(&mut connection, true);
        assert_eq!(events(&mut connection, &flood), Err(ErrorCode::EnhanceYourCalm));
        assert!(connection.output().len() < 4096);
        assert_eq!(connection.room_for_streams(), 0);
    }
    let mut connection = ready(limits);
    open(&mut connection, true);
    let said = events(&mut connection, &head(1, false, &[(":status", "103")]).repeat(33)).unwrap();
    assert_eq!(said.last().unwrap(), "Gone { id: 1, why: Malformed }");
}

#[test]
fn what_a_server_must_not_send_ends_the_connection() {
    for wrong in [
        raw(kind::PUSH_PROMISE, flags::WHOLE, 1, &[0, 0, 0, 2]),
        head(2, true, &[OK]),
        head(3, true, &[OK]),
        data(0, true, b""),
        data(5, true, b""),
        raw(kind::SETTINGS, 0, 0, &[0, 2, 0, 0, 0, 1]),
        raw(kind::SETTINGS, 0, 0, b"12345"),
        raw(kind::SETTINGS, 0, 0, &[0, 5, 0, 0, 0, 1]),
        raw(kind::SETTINGS, 0, 0, &[0, 4, 0x80, 0, 0, 0]),
        raw(kind::WINDOW_UPDATE, 0, 0, &[0; 4]),
        raw(kind::WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
        raw(kind::CONTINUATION, flags::WHOLE, 1, b""),
        [raw(kind::HEADERS, 0, 1, b""), data(1, true, b"")].concat(),
        raw(kind::HEADERS, flags::WHOLE, 1, b"\xff"),
        raw(kind::DATA, 8, 1, b"\x05abc"),
        vec![1, 0, 0, 0, 0, 0, 0, 0, 1],
    ] {
        let mut connection = ready(Limits::default());
        open(&mut connection, true);
        assert!(events(&mut connection, &wrong).is_err(), "{}", wrong.escape_ascii());
        assert!(sent(&mut connection).contains(&(kind::GOAWAY, 0)));
    }
    let mut connection = Connection::new(Limits::default());
    assert!(events(&mut connection, b"HTTP/1.1 400 Bad Request\r\n").is_err());
    // A frame after END_STREAM.
    let mut connection = ready(Limits::default());
    open(&mut connection, true);
    events(&mut connection, &head(1, true, &[OK])).unwrap();
    assert_eq!(events(&mut connection, &data(1, true, b"")), Err(ErrorCode::StreamClosed));
}

#[test]
fn the_two_sides_of_this_crate_understand_each_other() {
    let mut client = Connection::new(Limits::default());
    let mut server = crate::Connection::new(Limits { streams: 5, ..Limits::default() });
    let mut asked = crate::RequestHead::default();
    let (mut answer, mut content) = (ResponseHead::default(), Vec::new());
    let to_client = std::mem::take(server.output());
    assert!(matches!(client.receive(&to_client, &mut answer, 0), Ok((_, None))));
    assert_eq!(client.room_for_streams(), 5);
    let mut reader = RequestReader::new(false);
    let request = format!(
        "PUT /x HTTP/1.1\r\nHost: h\r\nX-Long: {}\r\nContent-Length: 3\r\n\r\n",
        "v".repeat(20_000)
    );
    assert_eq!(
        reader.read(request.as_bytes()),
        Ok((request.len(), Some(Part::Head { end: false })))
    );
    let id = client.open(reader.block(), false, false).unwrap();
    client.send_data(id, b"abc", true);
    let to_server = std::mem::take(client.output());
    let mut at = 0;
    while let (n, Some(event)) = server.receive(&to_server[at..], &mut asked, 0).unwrap() {
        at += n;
        match event {
            crate::Event::Request { id, end } => {
                assert!(!end && asked.text().starts_with(b"PUT /x HTTP/1.1\r\nHost: h\r\n"));
                server.send_head(id, false, |out| encode::put_status(out, 201));
            }
            crate::Event::Data { id, bytes, .. } => server.send_data(id, bytes, true),
            other => panic!("{other:?}"),
        }
    }
    let (to_client, mut at) = (std::mem::take(server.output()), 0);
    while let (n, Some(event)) = client.receive(&to_client[at..], &mut answer, 0).unwrap() {
        at += n;
        if let Event::Data { bytes, .. } = event {
            content.extend_from_slice(bytes);
        }
    }
    assert!(answer.text().starts_with(b"HTTP/1.1 201 Created\r\n"));
    assert_eq!((content, client.open_streams()), (b"abc".to_vec(), 0));
}
