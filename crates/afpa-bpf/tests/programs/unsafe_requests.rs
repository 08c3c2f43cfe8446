//! Unsafe requests to an attached server, and requests for targets that are not pinned: V5 of `docs/rules`.

use std::time::Duration;

use afpa_bpf::{FastPath, Reason, Settings, monotonic_ns};
use afpa_testkit::eventually;
use afpa_testkit::packet::Segment;
use afpa_testkit::tcp::RawClient;

use crate::servers_answers::{HOST, NUMBER, Pinned};
use crate::support::lab::settings;
use crate::support::{LISTENER, Lent, SITE, World, counted};

/// nginx, which has other content, and the fast path, which notes requests.
pub(crate) fn world() -> Option<(World, Lent)> {
    let settings = Settings { bypass_after: 3, bypass_time: Duration::ZERO, ..settings() };
    let (world, fast_path) = World::with_one_pinned(settings)?;
    assert!(fast_path.listeners.map_host_as(LISTENER, HOST, SITE, NUMBER).expect("mapped"));
    fast_path.reports.note_requests();
    Some((world, fast_path))
}

/// Pinned at a path of its own, asked for at this moment.
pub(crate) fn pin(fast_path: &FastPath, path: &str) {
    Pinned { path, asked: monotonic_ns(), ..Pinned::default() }.pin(fast_path);
    fast_path.clock.beat();
}

pub(crate) fn text(client: &RawClient, text: &str) -> Segment {
    Segment { payload: text.as_bytes().to_vec(), ..client.get("/") }
}

pub(crate) fn request(method: &str, target: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nHost: {HOST}\r\n\r\n")
}

/// Whether the kernel answers, on a connection of its own.
pub(crate) fn is_answered(world: &World, fast_path: &FastPath, path: &str) -> bool {
    fast_path.clock.beat();
    let mut client = world.connected();
    client.ask(&text(&client, &request("GET", path))).is_from_kernel()
}

/// The kernel answers: at the latest when the moment of a busy machine that let user mode answer instead is over.
#[track_caller]
pub(crate) fn await_answered(world: &World, fast_path: &FastPath, path: &str) {
    eventually(&format!("the kernel answers {path}"), || is_answered(world, fast_path, path));
}

/// A request that was sent after this moment is noted for the path, and ends its answers. A packet may wait while those of
/// other connections overtake it, so the note is awaited.
#[track_caller]
pub(crate) fn await_ended(world: &World, fast_path: &FastPath, path: &str, after: u64, sent: &str) {
    eventually(&format!("a note of {sent}"), || fast_path.reports.noted(path.as_bytes()) > after);
    assert!(!is_answered(world, fast_path, path), "after {sent}");
}

#[test]
fn an_unsafe_request_ends_the_answers_for_its_target() {
    let Some((world, fast_path)) = world() else { return };
    let post =
        |path: &str| format!("POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 0\r\n\r\n");
    let unsafe_ones = [
        post("/0"),
        request("DELETE", "/1"),
        request("PURGE", "/2"),
        request("VERSION-CONTROL", "/3"),
        request("PATCH", "http://shop.example/4"),
        request("PUT", "https://shop.example:8080/5"),
        // Behind another one, in the same segment.
        format!("{}{}", request("GET", "/user.html"), post("/6")),
    ];
    for (at, bytes) in unsafe_ones.iter().enumerate() {
        let path = format!("/{at}");
        pin(&fast_path, &path);
        await_answered(&world, &fast_path, &path);
        let before = monotonic_ns();
        // User mode has all of a connection whose request comes when a slow machine's heartbeat is late.
        eventually(&format!("a note of {bytes}"), || {
            fast_path.clock.beat();
            let client = world.connected();
            client.send(&text(&client, bytes));
            fast_path.reports.noted(path.as_bytes()) > before
        });
        let outdated = || counted(&fast_path, Reason::PassOutdated);
        let passed = outdated();
        eventually(&format!("a request finds an outdated answer after {bytes}"), || {
            assert!(!is_answered(&world, &fast_path, &path), "after {bytes}");
            outdated() > passed
        });
    }
}

#[test]
fn other_targets_and_safe_methods_end_nothing() {
    let Some((world, fast_path)) = world() else { return };
    pin(&fast_path, "/answer");
    let harmless = [
        request("POST", "/answer2"),
        request("POST", "/answe"),
        request("POST", "/answer?x"),
        request("OPTIONS", "/answer"),
        request("TRACE", "/answer"),
        request("HEAD", "/answer"),
        "POST".into(),
        "POST x".into(),
        "POST http://shop.example".into(),
        "a POST /answer HTTP/1.1\r\n".into(),
    ];
    for bytes in harmless {
        let mut client = world.connected();
        client.deliver(&text(&client, &bytes));
        await_answered(&world, &fast_path, "/answer");
        assert_eq!(fast_path.reports.noted(b"/answer"), 0, "{bytes:?}");
    }
}

#[test]
fn no_connection_is_left_unread() {
    let Some((world, fast_path)) = world() else { return };
    let user = request("GET", "/user.html");
    let odd = "GET /user.html HTTP/1.1\r\nHost: server\r\nTransfer-Encoding: x\r\n\r\n";
    let ways: [(&str, &[&str], &[&str]); 4] = [
        ("/pieces", &[], &["DELETE /pie", "ces HTTP/1.1\r\nHost: shop.example\r\n\r\n"]),
        ("/unknown", &[odd], &["DELETE /unknown HTTP/1.1\r\nHost: shop.example\r\n\r\n"]),
        ("/final", &[&user, odd], &["DELETE /final HTTP/1.1\r\nHost: shop.example\r\n\r\n"]),
        (
            "/bypassed",
            &[&user, &user, &user, &user, &user],
            &["DELETE /bypassed HTTP/1.1\r\nHost: shop.example\r\n\r\n"],
        ),
    ];
    for (path, before, pieces) in ways {
        let mut client = world.connected();
        for bytes in before {
            fast_path.clock.beat();
            client.ask(&text(&client, bytes));
        }
        pin(&fast_path, path);
        await_answered(&world, &fast_path, path);
        let before = monotonic_ns();
        for piece in pieces {
            fast_path.clock.beat();
            client.push(&text(&client, piece));
        }
        await_ended(&world, &fast_path, path, before, path);
    }
    assert!(counted(&fast_path, Reason::FlowBypassed) > 0);
}

#[test]
fn what_is_not_pinned_is_reported() {
    let Some((world, fast_path)) = world() else { return };
    let misses = fast_path.reports.misses().expect("a ring buffer");
    misses.drain().expect("misses");
    let long = format!("/{}", "x".repeat(200));
    for target in ["/user.html", "/user.html?a=b", &long] {
        let mut client = world.connected();
        client.ask(&text(&client, &request("GET", target)));
        fast_path.clock.beat();
    }
    let expected = [(SITE, b"/user.html".to_vec()), (SITE, b"/user.html?a=b".to_vec())];
    let told = misses.drain().expect("misses");
    assert!(told.iter().all(|missed| missed.client == told[0].client && missed.client != 0));
    let told: Vec<_> = told.into_iter().map(|missed| (missed.site, missed.target)).collect();
    assert_eq!(told, expected);
    pin(&fast_path, "/answer");
    assert!(!fast_path.objects.was_used(NUMBER, b"/answer"));
    await_answered(&world, &fast_path, "/answer");
    assert!(fast_path.objects.was_used(NUMBER, b"/answer"));
    assert!(misses.drain().expect("misses").is_empty(), "it is pinned");
}
