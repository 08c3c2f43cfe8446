//! Much content, slow readers, and tunnels.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use afpa_testkit::{Client, eventually};

use crate::rig::{Backend, Rig};

const MUCH: u64 = 64 << 20;

#[test]
fn much_content_goes_both_ways_whole() {
    let server = Backend::start(|mut conn| {
        while let Some(head) = conn.head() {
            let mut left = MUCH;
            if head.starts_with("PUT") {
                while left > 0 {
                    let n = conn.exactly(65_536).expect("content");
                    assert!(n.iter().all(|&byte| byte == b'x'));
                    left -= 65_536;
                }
                conn.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            } else if head.starts_with("GET /chunked") {
                conn.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
                conn.send(format!("{MUCH:x}\r\n"));
                conn.flood(MUCH);
                conn.send("\r\n0\r\n\r\n");
            } else {
                conn.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {MUCH}\r\n\r\n"));
                conn.flood(MUCH);
            }
        }
    });
    let rig = Rig::to(&[&server], |_| {});
    let mut client = rig.connect();
    for path in ["/", "/chunked"] {
        let response = client.get(path);
        assert_eq!(response.body.len() as u64, MUCH, "{path}");
        assert!(response.body.iter().all(|&byte| byte == b'x'), "{path}");
    }
    client.send(format!("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: {MUCH}\r\n\r\n"));
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..MUCH >> 20 {
        client.send(&piece);
    }
    assert_eq!(client.receive().text(), "ok");
}

#[test]
fn a_slow_reader_slows_the_server_down() {
    let sent = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&sent);
    let server = Backend::start(move |mut conn| {
        conn.request();
        conn.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
        let mut total = 0;
        while total < 1_000_000_000 {
            let n = conn.flood(65_536);
            if n == 0 {
                break;
            }
            total += n;
            count.store(total, Ordering::SeqCst);
        }
    });
    let rig = Rig::to(&[&server], |_| {});
    let mut client = Client::connect_narrow(rig.address, 4096).expect("connects");
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut room = [0; 4096];
    client.read_raw(&mut room).expect("a beginning");
    // The kernel's buffers are limited, though not by us.
    let mut before = u64::MAX;
    eventually("the server has to wait", || {
        let now = sent.load(Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(300));
        now == std::mem::replace(&mut before, now)
    });
    assert!(before < 100_000_000, "{before} bytes were taken from the server");
    drop(client);
}

#[test]
fn a_websocket_is_a_tunnel_until_both_ends_are_done() {
    let server = Backend::start(|mut conn| {
        let head = conn.head().expect("a head");
        assert!(head.contains("\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"), "{head}");
        conn.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: x\r\n\r\nfirst",
        );
        while let Some(bytes) = conn.exactly(4) {
            conn.send(bytes.to_ascii_uppercase());
        }
        conn.send("bye");
    });
    let rig = Rig::to(&[&server], |_| {});
    let mut client = rig.connect();
    client.send(
        "GET /chat HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Key: x\r\n\r\nping",
    );
    let mut received = String::new();
    let mut room = [0; 4096];
    while !received.ends_with("firstPING") {
        let n = client.read_raw(&mut room).expect("an answer");
        assert!(n > 0, "{received}");
        received += &String::from_utf8_lossy(&room[..n]);
    }
    client.send("pong");
    client.finish_sending().expect("half closed");
    received += &String::from_utf8_lossy(&client.read_to_close().expect("it ends"));
    assert!(received.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{received}");
    assert!(received.contains("\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"), "{received}");
    assert!(received.ends_with("\r\n\r\nfirstPINGPONGbye"), "{received}");
}

#[test]
fn a_tunnel_that_its_server_resets_is_reset() {
    let server = Backend::start(|mut conn| {
        conn.head().expect("a head");
        conn.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        );
        conn.exactly(4);
        conn.reset();
    });
    let rig = Rig::to(&[&server], |_| {});
    let mut client = rig.connect();
    client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.extend(client.take(1));
    }
    client.send("ping");
    let error = client.read_raw(&mut [0; 1]).expect_err("it is no end");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[test]
fn events_reach_the_client_as_they_come() {
    let server = Backend::start(|mut conn| {
        conn.request();
        conn.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
        for n in 0..3 {
            conn.send(format!("data: {n}\n\n"));
            // The next one only when the client has this one.
            conn.exactly(1);
        }
        conn.wait_for_end();
    });
    let rig = Rig::to(&[&server], |plan| plan.exchange.request.upgrades.clear());
    let mut client = rig.connect();
    client.send("GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut received = String::new();
    let mut room = [0; 4096];
    while !received.contains("data: 0\n\n") {
        let n = client.read_raw(&mut room).expect("an event");
        assert!(n > 0, "{received}");
        received += &String::from_utf8_lossy(&room[..n]);
    }
}
