//! HTTP/2 servers that break its rules: each violation costs an answer, and other requests go on.

use std::time::Duration;

use afpa_h2::Limits;
use afpa_h2::frame::{flag, kind, setting};
use afpa_testkit::eventually;

use crate::http2_peer::{OK, Peer, peers, until_closed};
use crate::rig::{Plan, Rig};

fn by_http2(plan: &mut Plan) {
    plan.group.http2 = Some(Limits::default());
    plan.exchange.repeats = 0;
}

/// More content than the window of a stream, nobody having read any, and some of another stream.
fn beyond_the_window(peer: &mut Peer, id: u32) {
    peer.fields_on(id, false, &[OK]);
    (0..64).for_each(|_| peer.data(id, false, &[b'x'; 16_384]));
}

/// Everything that the client gets, on a connection of its own.
fn all_of(rig: &Rig, path: &str) -> String {
    let mut client = rig.connect();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    until_closed(&mut client)
}

/// The status of its final response.
fn last_status(text: &str) -> &str {
    let line = text.rfind("HTTP/1.1 ").and_then(|at| text.get(at + 9..at + 12));
    line.unwrap_or_default()
}

fn misbehave(peer: &mut Peer, id: u32, how: &str) {
    match how {
        "/pseudo-trailer" => {
            peer.fields_on(id, false, &[OK]);
            peer.fields_on(id, true, &[("x-sum", "1"), OK]);
        }
        "/open-trailer" => {
            peer.fields_on(id, false, &[OK]);
            peer.fields_on(id, false, &[("x-sum", "1")]);
        }
        "/beyond" => beyond_the_window(peer, id),
        "/interims" => (0..1000).for_each(|_| peer.fields_on(id, false, &[(":status", "103")])),
        "/bomb" => {
            peer.send(kind::HEADERS, 0, id, b"");
            (0..64).for_each(|_| peer.send(kind::CONTINUATION, 0, id, &[b'x'; 16_384]));
        }
        "/twice" => {
            peer.answer(id, "ok");
            peer.answer(id, "ok again");
        }
        "/other" => {
            peer.fields_on(id + 2, true, &[OK]);
        }
        "/push" => peer.send(kind::PUSH_PROMISE, flag::END_HEADERS, id, &[0, 0, 0, 2, 0x88]),
        "/long-frame" => peer.send(kind::DATA, 0, id, &[0; 16_385]),
        _ => peer.answer(id, "ok"),
    }
}

#[test]
fn who_breaks_the_rules_costs_one_answer_at_most() {
    let server = peers(&[], |mut peer| {
        while let Some(asked) = peer.request() {
            misbehave(&mut peer, asked.id, asked.path());
        }
    });
    let rig = Rig::to(&[&server], by_http2);
    for how in ["interims", "bomb", "other", "push", "long-frame"] {
        assert_eq!(last_status(&all_of(&rig, &format!("/{how}"))), "502", "{how}");
        assert_eq!(rig.connect().get("/").text(), "ok", "after {how}");
    }
    // Its head is on its way already, so that it can only break off.
    for how in ["pseudo-trailer", "open-trailer", "beyond"] {
        let text = all_of(&rig, &format!("/{how}"));
        let is_whole = text.starts_with("HTTP/1.1 200 ") && text.ends_with("\r\n0\r\n\r\n");
        assert!(!is_whole, "{how}: {text}");
        assert_eq!(rig.connect().get("/").text(), "ok", "after {how}");
    }
    assert_eq!(rig.connect().get("/twice").text(), "ok");
    assert_eq!(rig.connect().get("/").text(), "ok");
}

/// A response on a stream that its client has left is nobody's.
#[test]
fn what_comes_on_a_stream_that_was_reset_is_passed_over() {
    let server = peers(&[], |mut peer| {
        let left = peer.request().expect("a request");
        peer.wait_for_reset().expect("its client has gone");
        peer.answer(left.id, "too late");
        peer.answer_all();
    });
    let rig = Rig::to(&[&server], by_http2);
    let mut client = rig.connect();
    client.send("GET /left HTTP/1.1\r\nHost: x\r\n\r\n");
    eventually("it is asked", || server.asked() == 1);
    let mut other = rig.connect();
    client.abort().expect("reset");
    assert_eq!(other.get("/other").text(), "/other");
    assert_eq!(server.accepted(), 1);
}

#[test]
fn a_server_that_takes_no_stream_is_a_fault_and_keeps_no_connection() {
    let server = peers(
        &[(setting::MAX_CONCURRENT_STREAMS, 0)],
        |mut peer| {
            while peer.pass_one().is_some() {}
        },
    );
    let rig = Rig::to(&[&server], by_http2);
    for _ in 0..20 {
        assert_eq!(rig.connect().get("/").status, 502);
    }
}

#[test]
fn a_server_that_leaves_with_each_request_gets_each_on_a_new_connection() {
    let server = peers(&[], |mut peer| {
        let asked = peer.request().expect("a request");
        peer.go_away(asked.id, 0);
        peer.answer(asked.id, "ok");
        peer.conn.wait_for_end();
    });
    let rig = Rig::to(&[&server], by_http2);
    let mut client = rig.connect();
    (0..20).for_each(|_| assert_eq!(client.get("/").text(), "ok"));
    assert_eq!(server.accepted(), 20);
}

/// It goes on to say 103 every now and then, which is no answer.
#[test]
fn who_only_announces_an_answer_is_silent() {
    let server = peers(&[], |mut peer| {
        let asked = peer.request().expect("a request");
        for _ in 0..100 {
            peer.fields_on(asked.id, false, &[(":status", "103")]);
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    let rig = Rig::to(&[&server], |plan| {
        by_http2(plan);
        plan.exchange.first_byte = Duration::from_secs(1);
    });
    let began = std::time::Instant::now();
    let text = all_of(&rig, "/");
    assert!(["502", "504"].contains(&last_status(&text)), "{text}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}
