//! Bytes that nobody meant.

use std::{
    thread,
    time::{Duration, Instant},
};

use afpa_testkit::{Asked, Random, ReceiveError, Server, figure};

use crate::small_site;

#[test]
fn nonsense_from_many_threads_never_ends_the_server() {
    let tree = small_site();
    let server = Server::start(tree.path(), |launch| {
        launch.set(|settings| {
            settings.head_time(Duration::from_millis(200)).body_time(Duration::from_millis(200));
        });
    });
    let seed = Random::seed_or(1);
    figure!("seed {seed}");
    thread::scope(|scope| {
        for number in 0..4 {
            let server = &server;
            scope.spawn(move || talk_nonsense(server, Random::new(seed + number)));
        }
    });
    assert_eq!(server.get("/hello.txt").text(), "hello");
}

/// For a second: random bytes, and requests with random damage.
fn talk_nonsense(server: &Server, mut random: Random) {
    let end = Instant::now() + Duration::from_secs(1);
    while Instant::now() < end {
        let mut client = server.connect();
        client.set_patience(Duration::from_millis(20)).expect("time-out");
        for _ in 0..1 + random.below(4) {
            let bytes = match random.below(3) {
                0 => {
                    let size = random.below(5000);
                    random.bytes(size)
                }
                _ => damaged(&mut random),
            };
            if client.try_send(bytes).is_err() {
                break;
            }
        }
        match client.try_receive(Asked::Body) {
            // Every answer must be HTTP.
            Err(ReceiveError::Malformed(why)) if !why.is_empty() => {
                panic!("{why}");
            }
            _ if random.one_in(2) => drop(client.abort()),
            _ => {}
        }
    }
}

/// A good request with a few bytes changed, dropped or doubled.
fn damaged(random: &mut Random) -> Vec<u8> {
    let good: &[&str] = &[
        "GET /hello.txt HTTP/1.1\r\nHost: h\r\nRange: bytes=0-1,2-3\r\nAccept-Encoding: gzip\r\n\r\n",
        "POST /hello.txt HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "GET /%2e%2e/..//%68?x HTTP/1.0\r\nConnection: keep-alive\r\nIf-None-Match: \"a\", W/\"b\"\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 5\r\n\r\nabcde",
    ];
    let mut bytes = random.pick(good).as_bytes().to_vec();
    for _ in 0..random.below(4) {
        let at = random.below(bytes.len());
        match random.below(4) {
            0 => bytes[at] = random.next() as u8,
            1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, random.next() as u8),
            _ => bytes.insert(at, *random.pick(b"\r\n :;,\0/%")),
        }
    }
    bytes
}
