//! The memory that requests on a kept connection may allocate.

use afpa_h2::frame::{flag, kind, put, put_settings};
use afpa_h2::{Connection, Event, Limits, PREFACE, RequestHead};

/// A GET as browsers send it: indexed pseudo-fields, a path in Huffman's code, fields that are and become indexed, and one
/// that does not.
fn block(first: bool) -> Vec<u8> {
    let mut block = b"\x82\x86\x04\x88\x60\xd5\x48\x5f\x2b\xce\x9a\x68".to_vec();
    match first {
        true => block.extend_from_slice(b"\x41\x0bexample.org\x40\x0auser-agent\x07browser"),
        // The newest entry of the table is 62.
        false => block.extend_from_slice(b"\xbf\xbe"),
    }
    block.extend_from_slice(b"\x00\x08x-number\x017");
    block
}

fn frames(first_id: u32, requests: u32, table: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    for at in 0..requests {
        let flags = flag::END_HEADERS | flag::END_STREAM;
        put(&mut bytes, kind::HEADERS, flags, first_id + 2 * at, &block(table && at == 0));
    }
    bytes
}

/// Reads all frames, and answers each request with a small content at once.
fn serve(connection: &mut Connection, head: &mut RequestHead, mut input: &[u8]) -> u32 {
    let mut answered = 0;
    while let Ok((n @ 1.., event)) = connection.receive(input, head, 0) {
        input = &input[n..];
        let Some(Event::Request { id, end: true }) = event else { continue };
        let text = head.text();
        assert!(text.starts_with(b"GET /") && text.ends_with(b"\r\n\r\n"));
        assert!(text.windows(19).any(|line| line == b"user-agent: browser"));
        connection.send_head(id, false, |out| out.push(0x88));
        connection.send_data(id, &[b'x'; 512], true);
        answered += 1;
    }
    assert!(input.is_empty());
    answered
}

#[test]
fn requests_on_a_kept_connection_allocate_nothing() {
    const REQUESTS: u32 = 30;
    const ROUNDS: u32 = 20;
    let mut connection = Connection::new(Limits::default());
    let mut head = RequestHead::default();
    let mut hello = PREFACE.to_vec();
    put_settings(&mut hello, &[]);
    put(&mut hello, kind::WINDOW_UPDATE, 0, 0, &0x3fff_0000_u32.to_be_bytes());
    hello.extend(frames(1, REQUESTS, true));
    assert_eq!(serve(&mut connection, &mut head, &hello), REQUESTS);
    connection.output().clear();
    let rounds: Vec<Vec<u8>> =
        (1..=ROUNDS).map(|round| frames(1 + 2 * REQUESTS * round, REQUESTS, false)).collect();
    let counted = allocation_counter::measure(|| {
        for input in &rounds {
            assert_eq!(serve(&mut connection, &mut head, input), REQUESTS);
            assert!(connection.output().len() > 512 * REQUESTS as usize);
            connection.output().clear();
        }
    });
    assert_eq!(counted.count_total, 0, "{counted:?}");
}
