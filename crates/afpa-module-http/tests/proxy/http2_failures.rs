//! Servers of HTTP/2 that break off, refuse, flood or say nothing, and clients that go.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use afpa_h2::Limits;
use afpa_h2::frame::kind;
use afpa_testkit::eventually;

use crate::http2_peer::{OK, Peer, by_http2, peers, rig, until_closed};
use crate::rig::{Backend, Rig};

#[test]
fn a_request_that_the_server_did_not_look_at_is_sent_again() {
    let goes_away = |mut peer: Peer| {
        if peer.conn.number > 0 {
            return peer.answer_all();
        }
        let first = peer.request().expect("a request");
        let second = peer.request().expect("another");
        peer.go_away(first.id, 0);
        peer.answer(first.id, "first");
        assert!(second.id > first.id);
        peer.conn.wait_for_end();
    };
    let refuses = |mut peer: Peer| {
        let first = peer.request().expect("a request");
        if let Some(second) = peer.request() {
            peer.reset(second.id, 7);
        }
        peer.answer(first.id, "first");
        peer.answer_all();
    };
    for server in [peers(&[], goes_away), peers(&[], refuses)] {
        let rig = rig(&server);
        let (mut first, mut second) = (rig.connect(), rig.connect());
        first.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n");
        eventually("the first has arrived", || server.asked() == 1);
        // POST is not idempotent, and sent again all the same.
        second.send("POST /2 HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(first.receive().text(), "first");
        assert_eq!(second.receive().text(), "/2");
    }
}

#[test]
fn a_server_that_looks_at_nothing_is_not_asked_for_ever() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let server = peers(&[], move |mut peer| {
        while let Some(asked) = peer.request() {
            count.fetch_add(1, Ordering::SeqCst);
            peer.reset(asked.id, 7);
        }
    });
    let rig = rig(&server);
    assert_eq!(rig.connect().get("/").status, 502);
    assert!((2..=6).contains(&asked.load(Ordering::SeqCst)));
    // Another one gets it.
    let good = peers(&[], |mut peer| peer.answer_all());
    let rig = Rig::to(&[&server, &good], by_http2);
    for _ in 0..4 {
        assert_eq!(rig.connect().get("/x").text(), "/x");
    }
}

#[test]
fn a_stream_that_breaks_off_breaks_no_other() {
    let server = peers(&[], |mut peer| {
        let mut whole = None;
        while let Some(asked) = peer.request() {
            let length = [OK, ("content-length", "10")];
            match asked.path() {
                "/whole" => {
                    peer.fields_on(asked.id, false, &length);
                    peer.data(asked.id, false, b"01234");
                    whole = Some(asked.id);
                    continue;
                }
                "/reset" => {
                    peer.fields_on(asked.id, false, &length);
                    peer.data(asked.id, false, b"01234");
                    peer.reset(asked.id, 2);
                }
                "/short" => {
                    peer.fields_on(asked.id, false, &length);
                    peer.data(asked.id, true, b"01234");
                }
                "/long" => {
                    peer.fields_on(asked.id, false, &length);
                    peer.data(asked.id, false, b"01234");
                    peer.data(asked.id, true, b"0123456789");
                }
                "/silent" => peer.reset(asked.id, 2),
                _ => {
                    peer.data(whole.take().expect("it began"), true, b"56789");
                    peer.answer(asked.id, "ok");
                }
            }
        }
    });
    let rig = rig(&server);
    let mut whole = rig.connect();
    whole.send("GET /whole HTTP/1.1\r\nHost: x\r\n\r\n");
    for path in ["/reset", "/short", "/long"] {
        let mut client = rig.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
        let text = until_closed(&mut client);
        let is_broken = text.contains(" 200 ") && !text.ends_with("0123456789");
        assert!(is_broken || text.starts_with("HTTP/1.1 502 "), "{path}: {text}");
    }
    // A request whose stream is reset before a byte of the answer is sent once more; then the server has failed.
    assert_eq!(rig.connect().get("/silent").status, 502);
    assert_eq!(rig.connect().get("/end").text(), "ok");
    assert_eq!(whole.receive().text(), "0123456789");
    assert_eq!(server.accepted(), 1);
}

#[test]
fn what_is_no_response_is_a_bad_gateway() {
    let server = peers(&[], |mut peer| {
        while let Some(asked) = peer.request() {
            let id = asked.id;
            match asked.path() {
                "/upper" => peer.fields_on(id, true, &[OK, ("X-Upper", "1")]),
                "/connection" => peer.fields_on(id, true, &[OK, ("connection", "close")]),
                "/coding" => peer.fields_on(id, true, &[OK, ("transfer-encoding", "chunked")]),
                "/line" => peer.fields_on(id, true, &[OK, ("x", "a\r\nSet-Cookie: b=c")]),
                "/control" => peer.fields_on(id, true, &[OK, ("x", "a\u{1}")]),
                "/none" => peer.fields_on(id, true, &[("x", "a")]),
                "/late" => peer.fields_on(id, true, &[("x", "a"), OK]),
                "/101" => peer.fields_on(id, false, &[(":status", "101")]),
                "/999" => peer.fields_on(id, true, &[(":status", "999")]),
                "/length" => peer.fields_on(id, false, &[OK, ("content-length", "1x")]),
                "/lengths" => {
                    let length = ("content-length", "1");
                    peer.fields_on(id, false, &[OK, length, length]);
                    peer.data(id, true, b"a");
                }
                "/early" => peer.data(id, true, b"content before the head"),
                "/head" => {
                    let long = "v".repeat(3000);
                    let field = ("x-long", long.as_str());
                    peer.fields_on(id, true, &[OK, field, field, field, field, field]);
                }
                _ => peer.answer(id, "ok"),
            }
        }
    });
    let rig = Rig::to(&[&server], |plan| {
        plan.group.http2 = Some(Limits { head: 8000, ..Limits::default() });
        plan.exchange.head_limit = 8000;
    });
    for path in [
        "upper",
        "connection",
        "coding",
        "line",
        "control",
        "none",
        "late",
        "101",
        "999",
        "length",
        "lengths",
        "early",
        "head",
    ] {
        assert_eq!(rig.connect().get(&format!("/{path}")).status, 502, "{path}");
    }
    assert_eq!(rig.connect().get("/ok").text(), "ok");
}

#[test]
fn floods_of_a_server_end_its_connection_and_nothing_else() {
    const FLOODS: usize = 9;
    let flood = |peer: &mut Peer, which: usize, id: u32| {
        let (kind, flags, id, payload): (_, _, _, &[u8]) = match which {
            0 => (kind::SETTINGS, 0, 0, b""),
            1 => (kind::PING, 0, 0, b"12345678"),
            2 => (kind::PRIORITY, 0, id, b"12345"),
            3 => (kind::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]),
            4 => (0x42, 0, 0, b"unknown"),
            5 => (kind::CONTINUATION, 0, id, b"\x88"),
            6 => (kind::GOAWAY, 0, 0, &[0x7f; 8]),
            7 => (kind::RST_STREAM, 0, id, &[0; 4]),
            _ => (kind::DATA, 0, id, b""),
        };
        match which {
            5 => peer.send(kind::HEADERS, 0, id, b""),
            8 => peer.fields_on(id, false, &[OK]),
            _ => {}
        }
        let mut frames = Vec::new();
        afpa_h2::frame::put(&mut frames, kind, flags, id, payload);
        (0..100).for_each(|_| peer.conn.send(frames.repeat(100)));
    };
    let server = peers(&[], move |mut peer| {
        while let Some(asked) = peer.request() {
            match asked.path().trim_start_matches('/').parse::<usize>() {
                Ok(which) => {
                    flood(&mut peer, which, asked.id);
                    return peer.conn.wait_for_end();
                }
                Err(_) => peer.answer(asked.id, "ok"),
            }
        }
    });
    let rig = rig(&server);
    for which in 0..FLOODS {
        // POST, so that it is flooded once.
        let mut client = rig.connect();
        client.send(format!("POST /{which} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
        let text = until_closed(&mut client);
        let is_broken =
            which == 8 && text.starts_with("HTTP/1.1 200 ") && !text.ends_with("0\r\n\r\n");
        assert!(is_broken || text.starts_with("HTTP/1.1 502 "), "{which}: {text}");
        assert_eq!(rig.connect().get("/x").text(), "ok", "after {which}");
    }
}

#[test]
fn a_client_that_goes_ends_its_stream_and_no_other() {
    let server = peers(&[], |mut peer| {
        let first = peer.request().expect("a request");
        let second = peer.request().expect("another");
        peer.fields_on(first.id, false, &[OK]);
        peer.fields_on(second.id, false, &[OK]);
        peer.data(first.id, false, &[b'x'; 1000]);
        let (id, code) = peer.wait_for_reset().expect("a reset");
        assert_eq!((id, code), (first.id, 8));
        peer.data(second.id, true, b"whole");
        peer.answer_all();
    });
    let rig = rig(&server);
    let mut first = rig.connect();
    first.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n");
    eventually("it has arrived", || server.asked() == 1);
    let mut second = rig.connect();
    second.send("GET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(first.take(200).starts_with(b"HTTP/1.1 200 "));
    drop(first);
    assert_eq!(second.receive().text(), "whole");
    assert_eq!(second.get("/3").text(), "/3");
    assert_eq!(server.accepted(), 1);
}

#[test]
fn silence_has_a_time_out() {
    // A server that says nothing at all.
    let mute = Backend::start(|conn| conn.wait_for_end());
    let rig = Rig::to(&[&mute], |plan| {
        by_http2(plan);
        plan.exchange.connect = Duration::from_millis(200);
    });
    assert_eq!(rig.connect().get("/").status, 504);
    // A server that does not answer: its connection gets no more requests.
    let server = peers(&[], |mut peer| match peer.conn.number {
        0 => peer.conn.wait_for_end(),
        _ => peer.answer_all(),
    });
    let rig = Rig::to(&[&server], |plan| {
        by_http2(plan);
        plan.exchange.first_byte = Duration::from_secs(1);
        plan.exchange.repeats = 0;
    });
    assert_eq!(rig.connect().get("/").status, 504);
    assert_eq!(rig.connect().get("/x").text(), "/x");
    assert_eq!(server.accepted(), 2);
    // A server that speaks only HTTP/1.1.
    let old = Backend::saying("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    let rig = Rig::to(&[&old], by_http2);
    assert_eq!(rig.connect().get("/").status, 502);
}

#[test]
fn all_that_wait_for_a_connection_hear_that_there_is_none() {
    let place = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
        listener.local_addr().expect("bound").to_string()
    };
    let mute = Backend::start(|conn| conn.wait_for_end());
    for place in [place, mute.place()] {
        let rig = Rig::to_places(&[place], |plan| {
            by_http2(plan);
            plan.exchange.connect = Duration::from_secs(1);
            plan.group.health.refused = 100;
            plan.group.health.timeouts = 100;
        });
        let mut clients: Vec<_> = (0..30).map(|_| rig.connect()).collect();
        clients.iter_mut().for_each(|client| client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
        for client in &mut clients {
            let status = client.receive().status;
            assert!(status == 502 || status == 504, "{status}");
        }
    }
    // Not one for each of them.
    assert!(mute.accepted() < 15, "{}", mute.accepted());
}

#[test]
fn who_makes_a_connection_may_go_and_the_others_have_it_all_the_same() {
    // Its SETTINGS come only when all wait for them.
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let slow = Backend::start(move |conn| {
        wait.lock().expect("no panic").recv_timeout(Duration::from_secs(20)).expect("told");
        if let Some(mut peer) = Peer::begin(conn, &[]) {
            peer.answer_all();
        }
    });
    let rig = Rig::to(&[&slow], |plan| {
        by_http2(plan);
        plan.exchange.connect = Duration::from_secs(20);
    });
    let mut first = rig.connect();
    first.send("GET /first HTTP/1.1\r\nHost: x\r\n\r\n");
    eventually("a connection is being made", || slow.accepted() == 1);
    let mut second = rig.connect();
    second.send("GET /second HTTP/1.1\r\nHost: x\r\n\r\n");
    // The second one makes another when the first has gone.
    first.abort().expect("reset");
    eventually("another is being made", || slow.accepted() == 2);
    (0..2).for_each(|_| go.send(()).expect("they wait"));
    assert_eq!(second.receive().text(), "/second");
}
