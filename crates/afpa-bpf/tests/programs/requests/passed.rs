//! Requests that are left to user mode, with the reason that is counted.

use std::time::Duration;

use afpa_bpf::{Reason, Settings};
use afpa_testkit::eventually;

use super::outcome::{outcome, world};
use crate::support::{SERVER_V4, inside};

/// Requests whose meaning is left to user mode, with the reason that is counted.
const PASSED: &[(&str, Reason)] = &[
    ("POST /kernel.html HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", Reason::PassMethod),
    ("get /kernel.html HTTP/1.1\r\nHost: a\r\n\r\n", Reason::PassMethod),
    ("\r\nGET /kernel.html HTTP/1.1\r\nHost: a\r\n\r\n", Reason::PassMethod),
    ("GET  /kernel.html HTTP/1.1\r\nHost: a\r\n\r\n", Reason::PassRequestLine),
    ("GET /kernel.html  HTTP/1.1\r\nHost: a\r\n\r\n", Reason::PassRequestLine),
    ("GET /kernel.html HTTP/1.0\r\nHost: a\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\nHost: a\r\n\r\n", Reason::PassRequestLine),
    ("GET http://a/kernel.html HTTP/1.1\r\nHost: a\r\n\r\n", Reason::PassRequestLine),
    ("GET /kernel.html\tHTTP/1.1\r\nHost: a\r\n\r\n", Reason::PassRequestLine),
    ("GET /kernel.html?x HTTP/1.1\r\nHost: a\r\n\r\n", Reason::PassNotPinned),
    ("GET //kernel.html HTTP/1.1\r\nHost: a\r\n\r\n", Reason::PassNotPinned),
    ("GET /KERNEL.html HTTP/1.1\r\nHost: a\r\n\r\n", Reason::PassNotPinned),
    ("GET /kernel.html HTTP/1.1\r\nX: y\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost : a\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\n Host: a\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\n: empty\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nX: a\x01b\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nX: a\tb\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nX: caf\u{e9}\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nX@: b\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n", Reason::PassHeader),
    (
        "GET /kernel.html HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        Reason::PassHeader,
    ),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nConnection: x\r\n\r\n", Reason::PassHeader),
    (
        "GET /kernel.html HTTP/1.1\r\nHost: a\r\n\r\nGET /kernel.html HTTP/1.1\r\nHost: a\r\n\r\n",
        Reason::PassHeader,
    ),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\n\r\nx", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\n", Reason::PassInParts),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\n\r", Reason::PassInParts),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1\r\n\r\n", Reason::PassField),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nIf-Range: \"x\"\r\n\r\n", Reason::PassField),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nIf-Match: \"x\"\r\n\r\n", Reason::PassField),
    (
        "GET /kernel.html HTTP/1.1\r\nHost: a\r\nAuthorization: Basic eDp5\r\n\r\n",
        Reason::PassField,
    ),
    ("GET /kernel.html HTTP/1.1\r\nHost: \r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a b\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a:99999\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a:\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: :80\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a/b\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a@b\r\n\r\n", Reason::PassHeader),
    (
        "GET /kernel.html HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"x\", \"y\"\r\n\r\n",
        Reason::PassCondition,
    ),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n", Reason::PassCondition),
    (
        "GET /kernel.html HTTP/1.1\r\nHost: a\r\nIf-Modified-Since: Sun, 06 Nov 2022 08:49:37 GMT\r\n\r\n",
        Reason::PassCondition,
    ),
];

#[test]
fn doubtful_requests_go_to_user_mode() {
    let Some((world, fast_path)) = world(Settings::default()) else { return };
    for (request, reason) in PASSED {
        let outcome = outcome(&world, &fast_path, request);
        assert_eq!(outcome.as_ref().err(), Some(&vec![*reason]), "{request:?}: {outcome:?}");
    }
}

/// As from telnet, and from clients that write line by line. The server has the first line when the last one comes.
#[test]
fn a_request_whose_lines_come_by_themselves_goes_up_with_its_own_reason() {
    let Some((world, fast_path)) = world(Settings::default()) else { return };
    let mut client = world.connect(SERVER_V4);
    fast_path.clock.beat();
    assert!(client.get("/kernel.html").is_from_kernel());
    let cuts: [&[&str]; 3] = [
        &["GET /kernel.html HTTP/1.1\r\n", "Host: a\r\n\r\n"],
        &["GET /kernel.html HTTP/1.1\r\n", "Host: a\r\n", "\r\n"],
        &["GET ", "/kernel.html HTTP/1.1\r\nHost: a\r\n\r\n"],
    ];
    for lines in cuts {
        fast_path.clock.beat();
        let before = fast_path.stats.counters().expect("counters");
        let parts = || {
            let counters = fast_path.stats.counters().expect("counters").since(&before);
            counters[Reason::PassInParts]
        };
        for (already, line) in (0..).zip(lines) {
            // Lines that follow at once may come in one segment.
            eventually("the line before has come", || parts() >= already);
            client.send(line);
        }
        let reply = client.receive();
        assert_eq!((reply.is_from_kernel(), reply.body.as_slice()), (false, &b"from nginx"[..]));
        let counters = fast_path.stats.counters().expect("counters").since(&before);
        assert_eq!(counters[Reason::PassInParts], lines.len() as u64, "{lines:?}: {counters:?}");
        assert!(client.get("/kernel.html").is_from_kernel(), "the next one: {lines:?}");
    }
}

#[test]
fn silence_without_a_heartbeat() {
    let Some((world, fast_path)) = world(Settings::default()) else { return };
    let mut client = world.connect(SERVER_V4);
    fast_path.clock.beat();
    assert!(client.get("/kernel.html").is_from_kernel());
    fast_path.clock.pause();
    assert!(!client.get("/kernel.html").is_from_kernel(), "paused");
    fast_path.clock.beat();
    assert!(client.get("/kernel.html").is_from_kernel(), "beats again");
    std::thread::sleep(Duration::from_millis(2100));
    let reply = client.get("/kernel.html");
    assert_eq!(
        (reply.is_from_kernel(), reply.body.as_slice()),
        (false, &b"from nginx"[..]),
        "two seconds later"
    );
    let before = fast_path.stats.counters().expect("counters");
    assert!(!world.connect(SERVER_V4).get("/kernel.html").is_from_kernel());
    let counters = fast_path.stats.counters().expect("counters").since(&before);
    assert_eq!((counters.answered(), counters[Reason::PassNoHeartbeat]), (0, 1), "a new one, too");
}

#[test]
fn full_table_leaves_new_connections_to_user_mode() {
    let Some((world, fast_path)) = world(Settings { flows: 4, ..Settings::default() }) else {
        return;
    };
    let mut clients: Vec<_> = (0..8).map(|_| world.connect(SERVER_V4)).collect();
    for round in 0..3 {
        fast_path.clock.beat();
        let kernel = clients
            .iter_mut()
            .filter_map(|client| client.get("/kernel.html").is_from_kernel().then_some(()))
            .count();
        assert_eq!(kernel, 4, "round {round}");
    }
    drop(clients);
    // A flow without a socket may be of a connection that begins; after a second it counts as ended.
    let (mut flows, mut removed) = (None, 0);
    eventually("all are removed", || {
        let swept = inside(world.server(), || fast_path.sweep(Duration::from_secs(60)));
        let swept = swept.expect("swept");
        removed += swept.removed;
        *flows.get_or_insert(swept.flows) == removed
    });
    assert_eq!((flows, removed), (Some(4), 4));
    fast_path.clock.beat();
    assert!(world.connect(SERVER_V4).get("/kernel.html").is_from_kernel(), "there is room again");
}

/// An unmodified server closes connections on which it sees nothing for a while.
#[test]
fn idle_timer_of_the_server_sees_a_request_now_and_then() {
    let refresh = Duration::from_secs(2);
    let settings = Settings { refresh, ..Settings::default() };
    let Some((world, fast_path)) = world(settings) else { return };
    let mut client = world.connect(SERVER_V4);
    for _ in 0..3 {
        fast_path.clock.beat();
        assert!(client.get("/kernel.html").is_from_kernel());
        std::thread::sleep(refresh + Duration::from_millis(50));
        fast_path.clock.beat();
        assert_eq!(client.get("/kernel.html").body, b"from nginx");
        assert!(client.get("/kernel.html").is_from_kernel());
    }
    assert_eq!(fast_path.stats.counters().expect("counters")[Reason::PassRefresh], 3);
}
