//! Conversations that last: a WebSocket session and server-sent events, with a Node application
//! behind the proxy.

use std::time::{Duration, Instant};

use afpa_testkit::{Client, eventually_within, skip};
use afpa_tests::proxy::{Backend, Kind, proxy, server_row};

const HANDSHAKE: &str = "GET /chat HTTP/1.1\r\nHost: site\r\nConnection: keep-alive, Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// The value that RFC 6455, section 1.3, has for that key.
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// A masked text frame (RFC 6455, section 5.2).
fn frame(text: &str) -> Vec<u8> {
    let mask = [0x37, 0xfa, 0x21, 0x3d];
    let length = u8::try_from(text.len()).expect("a short text");
    assert!(length < 126);
    let mut frame = vec![0x81, 0x80 | length];
    frame.extend(mask);
    frame.extend(text.bytes().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// Reads exactly `count` bytes.
#[track_caller]
fn read(client: &mut Client, count: usize) -> Vec<u8> {
    let mut all = vec![0; count];
    let mut have = 0;
    while have < count {
        let got = client.read_raw(&mut all[have..]).expect("bytes");
        assert!(got > 0, "the connection ended after {have} of {count} bytes");
        have += got;
    }
    all
}

/// Reads a head, byte by byte, so that nothing behind it is lost.
#[track_caller]
fn read_head(client: &mut Client) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.extend(read(client, 1));
        assert!(head.len() < 10_000);
    }
    String::from_utf8(head).expect("text")
}

#[test]
fn a_websocket_session_passes_both_ways_until_one_side_ends_it() {
    let server = match Backend::start(Kind::Node, "node") {
        Ok(server) => server,
        Err(why) => skip!("{why}"),
    };
    let proxy = proxy(&[server.to()], "");
    let mut client = proxy.connect();
    // The first frame comes with the handshake: it must not be lost.
    let mut first = HANDSHAKE.as_bytes().to_vec();
    first.extend(frame("early"));
    client.send(first);
    let head = read_head(&mut client);
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert!(head.contains(&format!("Sec-WebSocket-Accept: {ACCEPT}\r\n")), "{head}");
    let lower = head.to_ascii_lowercase();
    assert!(lower.contains("connection: upgrade\r\n") && lower.contains("upgrade: websocket\r\n"));
    assert_eq!(read(&mut client, frame("early").len()), frame("early"));
    for n in 0..200 {
        let sent = frame(&format!("message {n}"));
        client.send(&sent);
        assert_eq!(read(&mut client, sent.len()), sent, "{n}");
    }
    assert_eq!(server_row(&proxy, &server.to())["in_flight"], 1);
    // In a tunnel that is busy one way, the other is not held up.
    let many = frame(&"x".repeat(100)).repeat(5000);
    client.send(&many);
    assert_eq!(read(&mut client, many.len()), many);
    drop(client);
    eventually_within(Duration::from_secs(5), "the tunnel ends with its client", || {
        server_row(&proxy, &server.to())["in_flight"] == 0
    });
}

#[test]
fn a_websocket_ends_when_its_server_does() {
    let mut server = match Backend::start(Kind::Node, "node") {
        Ok(server) => server,
        Err(why) => skip!("{why}"),
    };
    let proxy = proxy(&[server.to()], "");
    let mut client = proxy.connect();
    client.send(HANDSHAKE);
    assert!(read_head(&mut client).starts_with("HTTP/1.1 101 "));
    server.kill();
    let mut rest = [0; 1];
    let ended = client.read_raw(&mut rest);
    assert!(!matches!(ended, Ok(1)), "{ended:?}");
}

#[test]
fn events_arrive_when_they_happen() {
    let server = match Backend::start(Kind::Node, "node") {
        Ok(server) => server,
        Err(why) => skip!("{why}"),
    };
    let proxy = proxy(&[server.to()], "");
    let mut client = proxy.connect();
    client.send("GET /events HTTP/1.1\r\nHost: site\r\n\r\n");
    let head = read_head(&mut client);
    assert!(head.contains("text/event-stream"), "{head}");
    let (mut seen, mut times) = (Vec::new(), Vec::new());
    while times.len() < 5 {
        seen.extend(read(&mut client, 1));
        if seen.ends_with(format!("data: event {}\n\n", times.len()).as_bytes()) {
            times.push(Instant::now());
        }
        assert!(seen.len() < 10_000);
    }
    // One event each 100 ms. A proxy that gathered them would deliver them all at once.
    let spread = times[4] - times[0];
    assert!(spread > Duration::from_millis(250), "{spread:?}");
    client.send("GET / HTTP/1.1\r\nHost: site\r\n\r\n");
    let mut rest = String::new();
    while !rest.ends_with("node") {
        rest.push(char::from(read(&mut client, 1)[0]));
        assert!(rest.len() < 10_000);
    }
    assert!(
        rest.contains("0\r\n\r\nHTTP/1.1 200 "),
        "the stream ends, and another answer follows: {rest}"
    );
}
