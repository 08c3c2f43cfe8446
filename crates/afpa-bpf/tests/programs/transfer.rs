//! Mixed requests through a wire that loses, repeats and reorders: every response is compared, and no
//! connection may hang.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::{ETAG, SERVER_V4, SERVER_V6, Sample, World};
use afpa_bpf::{FastPath, Reason, Settings};

const CONNECTIONS: usize = 24;
const REQUESTS: usize = 60;
const PERCENT: u64 = 5;

/// Sends request number `turn` of connection `serial`, and checks the response.
fn exchange(client: &mut afpa_testkit::Client, serial: usize, turn: usize, large: &[u8]) {
    let ask = |client: &mut afpa_testkit::Client, method: &str, path: &str, more: &str| {
        client.exchange(format!("{method} {path} HTTP/1.1\r\nHost: server\r\n{more}\r\n"))
    };
    match (serial * 7 + turn * 13) % 8 {
        0..3 => {
            let path = format!("/kernel-{}.html", turn % 4);
            let reply = ask(client, "GET", &path, "");
            assert_eq!(
                (reply.status, reply.body),
                (200, vec![b'0' + (turn % 4) as u8; 200 + 300 * (turn % 4)])
            );
        }
        3 => {
            let reply = ask(client, "GET", "/kernel-1.html", &format!("If-None-Match: {ETAG}\r\n"));
            assert!(reply.status == 304 || reply.status == 200, "{reply:?}");
        }
        4 => assert_eq!(
            ask(client, "HEAD", "/kernel-2.html", "").field("Content-Length"),
            Some("800")
        ),
        5 => assert_eq!(ask(client, "GET", "/large.bin", "").body, large),
        6 => assert_eq!(ask(client, "GET", "/absent", "").status, 404),
        _ => {
            // Two at once: the second must wait for the first, no matter which side answers.
            client.send(b"GET /kernel-0.html HTTP/1.1\r\nHost: server\r\n\r\n");
            client.send(b"GET /user.html HTTP/1.1\r\nHost: server\r\n\r\n");
            assert_eq!(client.receive().body, [b'0'; 200]);
            assert_eq!(client.receive().body, b"from nginx");
        }
    }
}

fn transfer(address: &'static str, prepare: impl Fn(&World)) {
    let Some(mut world) = World::lossy(PERCENT, 0x5eed) else { return };
    prepare(&world);
    let large: Vec<u8> = (0..60_000u32).map(|i| ((i * 31) >> 3) as u8).collect();
    world.file("user.html", b"from nginx");
    world.file("large.bin", &large);
    for number in 0..4 {
        world
            .file(&format!("kernel-{number}.html"), &vec![b'0' + number as u8; 200 + 300 * number]);
    }
    world.nginx("");
    world.await_server();
    let Some(fast_path) = world.fast_path(Settings::default()) else { return };
    for number in 0..4 {
        Sample::new(vec![b'0' + number as u8; 200 + 300 * number])
            .pin(&fast_path, &format!("/kernel-{number}.html"));
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = Finish(&done); // a panic must not leave the heart beating for ever
        scope.spawn(|| keep_beating(&fast_path, &done));
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|serial| {
                let mut client = world.connect(address);
                client.set_patience(Duration::from_secs(20)).expect("a timeout");
                let large = &large;
                scope.spawn(move || {
                    (0..REQUESTS).for_each(|turn| exchange(&mut client, serial, turn, large))
                })
            })
            .collect();
        let results: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
        let failed = results.iter().filter(|result| result.is_err()).count();
        assert_eq!(failed, 0, "connections that failed, of {CONNECTIONS}");
    });
    let counters = fast_path.stats.counters().expect("counters");
    for (reason, count) in counters.iter().filter(|(_, count)| *count != 0) {
        println!("{count:>8} {}", reason.text());
    }
    let lost = world.bed.injector().expect("an injector").counts();
    println!("{:>8} packets lost on the wire", lost.0.lost + lost.1.lost);
    assert!(counters.answered() > 100 && counters[Reason::AnsweredRetransmission] > 0);
    assert_eq!(counters[Reason::ResetLostVersion] + counters[Reason::TranslateFailed], 0);
}

struct Finish<'a>(&'a AtomicBool);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn keep_beating(fast_path: &FastPath, done: &AtomicBool) {
    while !done.load(Ordering::Relaxed) {
        fast_path.clock.beat();
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn ipv4() {
    transfer(SERVER_V4, |_| ());
}

#[test]
fn ipv6() {
    transfer(SERVER_V6, |_| ());
}

#[test]
fn without_timestamps() {
    transfer(SERVER_V4, |world| world.sysctl("net.ipv4.tcp_timestamps=0"));
}
