//! The counted budget of a distributed request: what one small response over kept connections may ask
//! of the kernel, and how much memory a very large one takes.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use afpa_testkit::strace::{Counts, Strace};
use afpa_testkit::{Client, Endpoint, Server, figure, skip};
use afpa_tests::proxy::{Raw, configuration, read_head};

const REQUESTS: u64 = 1000;

/// Calls that time makes, not requests: the clock's tick, a helper thread that ends.
const SLACK: u64 = 250;

fn sum(counts: &Counts, names: &[&str]) -> u64 {
    names.iter().filter_map(|name| counts.get(*name)).sum()
}

/// One worker before these servers, so that every request meets the same idle connections.
fn proxy(servers: &[String]) -> Server {
    Server::start("/", |launch| {
        launch.written(|listen| format!("workers = 1\n{}", configuration(listen, servers, "")));
    })
}

#[test]
fn a_small_distributed_request_costs_a_read_and_a_write_on_each_side() {
    let response = [
        &b"HTTP/1.1 200 OK\r\nServer: s\r\nContent-Type: text/plain\r\nContent-Length: 102\r\n\r\n"
            [..],
        &[b'x'; 102],
    ]
    .concat();
    let raw = Raw::answering(response, Duration::ZERO);
    let server = proxy(&[raw.to()]);
    let mut client = server.connect();
    for _ in 0..100 {
        assert_eq!(client.get("/small").body.len(), 102);
    }
    let strace = match Strace::attach(server.pid()) {
        Ok(strace) => strace,
        Err(why) => skip!("{why}"),
    };
    for _ in 0..REQUESTS {
        assert_eq!(client.get("/small").status, 200);
    }
    let counts = strace.counts();
    figure!("system calls of {REQUESTS} distributed requests: {counts:?}");
    let reads = sum(&counts, &["read", "recv", "recvfrom", "recvmsg", "readv"]);
    let writes = sum(&counts, &["write", "send", "sendto", "sendmsg", "writev"]);
    let waits = sum(&counts, &["epoll_wait", "epoll_pwait", "epoll_pwait2"]);
    assert!((2 * REQUESTS..=2 * REQUESTS + SLACK).contains(&reads), "{reads} reads");
    assert!((2 * REQUESTS..=2 * REQUESTS + SLACK).contains(&writes), "{writes} writes");
    assert!(waits <= 2 * REQUESTS + SLACK, "{waits} waits");
    let all: u64 = counts.values().sum();
    let other = all - reads - writes - waits;
    assert!(other <= SLACK, "{other} other calls: {counts:?}");
    assert_eq!(raw.connections(), 1, "one connection carries them all");
}

const GIGABYTE: u64 = 1 << 30;

/// A byte that depends on its place, so that what is lost, doubled or mixed up shows.
fn pattern() -> Vec<u8> {
    (0..1_048_573u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Holds bytes against the endless repetition of a pattern.
struct Checker {
    pattern: Vec<u8>,
    at: u64,
}

impl Checker {
    fn new() -> Self {
        Self { pattern: pattern(), at: 0 }
    }

    fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let from = (self.at % self.pattern.len() as u64) as usize;
            let n = bytes.len().min(self.pattern.len() - from);
            assert!(bytes[..n] == self.pattern[from..from + n], "other bytes behind {}", self.at);
            self.at += n as u64;
            bytes = &bytes[n..];
        }
    }
}

/// The first gigabyte of that repetition.
fn pour(mut put: impl FnMut(&[u8]) -> bool) {
    let (pattern, mut left) = (pattern(), GIGABYTE);
    while left > 0 {
        let n = (pattern.len() as u64).min(left) as usize;
        if !put(&pattern[..n]) {
            return;
        }
        left -= n as u64;
    }
}

#[test]
fn a_gigabyte_up_and_down_takes_little_memory_and_arrives_whole() {
    let raw = Raw::start(|mut stream| {
        while let Some(head) = read_head(&mut stream) {
            if head.starts_with("PUT") {
                let (mut checker, mut room) = (Checker::new(), vec![0; 1 << 20]);
                while checker.at < GIGABYTE {
                    let n = stream.read(&mut room).expect("content");
                    assert!(n > 0, "content broke off at {}", checker.at);
                    checker.take(&room[..n]);
                }
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").expect("sent");
            } else {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {GIGABYTE}\r\n\r\n");
                stream.write_all(head.as_bytes()).expect("sent");
                pour(|bytes| stream.write_all(bytes).is_ok());
            }
        }
    });
    let server = proxy(&[raw.to()]);
    let mut client = Client::connect(&Endpoint::Tcp(server.address())).expect("connects");
    let before = server.process().resident().expect("memory");

    client.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    let (mut checker, mut room, mut head) = (Checker::new(), vec![0; 1 << 20], Vec::new());
    while checker.at < GIGABYTE {
        let n = client.read_raw(&mut room).expect("content");
        assert!(n > 0, "content broke off at {}", checker.at);
        if checker.at > 0 {
            checker.take(&room[..n]);
            continue;
        }
        head.extend_from_slice(&room[..n]);
        if let Some(end) = head.windows(4).position(|w| w == b"\r\n\r\n") {
            checker.take(&head[end + 4..]);
        }
    }
    let during = server.process().resident().expect("memory");

    client.send(format!("PUT /large HTTP/1.1\r\nHost: x\r\nContent-Length: {GIGABYTE}\r\n\r\n"));
    pour(|bytes| client.try_send(bytes).is_ok());
    assert_eq!(client.receive().text(), "ok");
    let after = server.process().resident().expect("memory");
    figure!("resident: {before} before, {during} after a gigabyte down, {after} after one up");
    assert!(during.max(after) < before + (8 << 20), "{before} became {during} and {after}");
}
