//! Servers of HTTP/2 that were silent for a while.

use std::time::{Duration, Instant};

use afpa_h2::frame::kind;
use afpa_testkit::eventually;

use crate::http2_peer::{by_http2, peers};
use crate::rig::Rig;

/// Asks once, and for something that must not be repeated when the server was silent for more than a second. A quarter
/// of the time for a connection is for the server to say that it is there.
fn said_after_a_silence(is_deaf: bool, connect: Duration) -> String {
    let server = peers(&[], move |mut peer| {
        peer.is_deaf = is_deaf;
        while let Some(asked) = peer.request() {
            let pings = peer.passed.iter().filter(|(passed, ..)| *passed == kind::PING).count();
            let text = format!("connection {}, {pings} PING", peer.conn.number);
            peer.answer(asked.id, &text);
        }
    });
    let rig = Rig::to(&[&server], |plan| {
        by_http2(plan);
        plan.exchange.connect = connect;
    });
    let mut client = rig.connect();
    assert_eq!(client.get("/x").text(), "connection 0, 0 PING");
    let begun = Instant::now();
    eventually("the server was silent", || begun.elapsed() > Duration::from_millis(1_300));
    client.exchange("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx").text().to_owned()
}

#[test]
fn a_server_that_says_that_it_is_there_gets_the_request_on_the_same_connection() {
    let said = said_after_a_silence(false, Duration::from_secs(60));
    assert_eq!(said, "connection 0, 1 PING");
}

#[test]
fn a_server_that_does_not_say_so_gets_it_on_another_connection() {
    let said = said_after_a_silence(true, Duration::from_secs(8));
    assert_eq!(said, "connection 1, 0 PING");
}
