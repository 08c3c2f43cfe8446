//! Servers that are down, slow, or talk nonsense.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use afpa_proxy::exchange::HalfClosed;
use afpa_testkit::eventually;

use crate::rig::{Backend, Rig};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// An address on which nobody listens.
fn nobody() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
    listener.local_addr().expect("bound").to_string()
}

#[test]
fn a_server_that_is_down_is_a_bad_gateway_that_says_when_to_ask_again() {
    let rig = Rig::to_places(&[nobody()], |_| {});
    let mut client = rig.connect();
    for _ in 0..2 {
        let response = client.get("/");
        assert_eq!(response.status, 502, "{response:?}");
        assert!(response.field("Retry-After").is_some(), "{response:?}");
        assert!(response.text().contains("server"), "{}", response.text());
    }
    assert_eq!(client.get("/static/a.txt").text(), "from the cache");
}

#[test]
fn no_request_is_lost_while_another_server_is_up() {
    let server = Backend::saying(OK);
    let rig = Rig::to_places(&[nobody(), server.place(), nobody()], |_| {});
    let mut client = rig.connect();
    for _ in 0..6 {
        assert_eq!(client.get("/").text(), "ok");
        // Nothing was sent to the servers that are down: any request may go elsewhere.
        let post = client.exchange("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
        assert_eq!(post.text(), "ok");
    }
}

#[test]
fn a_connection_that_the_server_has_closed_meanwhile_costs_no_request() {
    let server = Backend::start(|mut conn| {
        conn.request();
        conn.send(OK);
        // Said to be kept, and closed all the same.
    });
    let rig = Rig::to(&[&server], |_| {});
    let mut client = rig.connect();
    for _ in 0..20 {
        assert_eq!(client.get("/").text(), "ok");
    }
    assert_eq!(server.accepted(), 20);
}

/// The server may be closing a connection that has rested, and a POST that it may have read is not sent again.
#[test]
fn a_post_takes_only_a_connection_that_was_in_use_a_moment_ago() {
    const RESTED: Duration = Duration::from_millis(1_200);
    let server = Backend::saying(OK);
    let rig = Rig::to(&[&server], |_| {});
    let mut client = rig.connect();
    let mut new = |method: &str, rest: Duration| {
        std::thread::sleep(rest);
        let before = server.accepted();
        let head = format!("{method} / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(client.exchange(&head).text(), "ok");
        server.accepted() - before
    };
    assert_eq!(new("GET", Duration::ZERO), 1);
    assert_eq!(new("POST", RESTED), 1, "it rested for longer than a second");
    assert_eq!(new("PUT", RESTED), 0, "another one may be sent again");
    // This machine may be so busy that a second goes by between two requests.
    let at_once =
        (0..20).any(|_| new("GET", Duration::ZERO) == 0 && new("POST", Duration::ZERO) == 0);
    assert!(at_once, "a second has not gone by");
}

#[test]
fn a_request_that_breaks_off_is_repeated_elsewhere_if_it_may_be() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let bad = Backend::start(move |mut conn| {
        conn.request();
        count.fetch_add(1, Ordering::SeqCst);
        conn.reset();
    });
    let good = Backend::saying(OK);
    let rig = Rig::to(&[&bad, &good], |_| {});
    let mut client = rig.connect();
    for _ in 0..4 {
        assert_eq!(client.get("/").text(), "ok");
    }
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(client.exchange("DELETE / HTTP/1.1\r\nHost: x\r\n\r\n").status);
    }
    assert_eq!(statuses, [200; 4], "an idempotent method");
    assert!(asked.load(Ordering::SeqCst) >= 1);

    let rig = Rig::to(&[&bad], |_| {});
    let post = rig.connect().exchange("POST / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(post.status, 502, "it may have been done");
}

/// A server answers one request of a connection, reads the next one, and closes: it took its leave just before.
#[test]
fn content_that_is_held_whole_is_sent_again_when_a_kept_connection_was_closed() {
    let server = Backend::start(|mut conn| {
        if conn.request().is_some_and(|(_, content)| !content.is_empty()) {
            // A new connection serves.
            conn.send(OK);
            return;
        }
        conn.send(OK);
        conn.request();
        conn.reset();
    });
    let rig = Rig::to(&[&server], |_| {});
    let send = |method: &str, framing: &str, content: &str| {
        let mut client = rig.connect();
        assert_eq!(client.get("/").text(), "ok", "this connection is kept");
        let head = format!("{method} / HTTP/1.1\r\nHost: x\r\n{framing}\r\n\r\n");
        client.exchange(format!("{head}{content}")).status
    };
    assert_eq!(send("PUT", "Content-Length: 5", "hello"), 200);
    assert_eq!(send("PUT", "Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n"), 200);
    assert_eq!(send("POST", "Content-Length: 5", "hello"), 502, "it may have been done");
    let long = "x".repeat(3_000_000);
    assert_eq!(send("PUT", "Content-Length: 3000000", &long), 502, "not all of it is held");
}

#[test]
fn a_put_goes_to_another_server_with_its_content() {
    let bad = Backend::start(|mut conn| {
        conn.request();
        conn.reset();
    });
    let good = Backend::start(|mut conn| {
        while let Some((_, content)) = conn.request() {
            let length = content.len();
            conn.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"));
            conn.send(content);
        }
    });
    let rig = Rig::to(&[&bad, &good], |_| {});
    let mut client = rig.connect();
    for _ in 0..4 {
        let put = "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello";
        assert_eq!(client.exchange(put).text(), "hello");
    }
    assert!(bad.accepted() >= 1);
}

#[test]
fn what_is_no_response_is_a_bad_gateway_and_that_connection_is_not_used_again() {
    for answer in [
        "garbage\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "",
    ] {
        let said = answer.to_owned();
        let server = Backend::start(move |mut conn| {
            conn.request();
            conn.send(&said);
            if said.is_empty() {
                return;
            }
            conn.wait_for_end();
        });
        let rig = Rig::to(&[&server], |_| {});
        let mut client = rig.connect();
        for _ in 0..2 {
            assert_eq!(client.get("/").status, 502, "{answer:?}");
        }
        assert_eq!(server.accepted(), 2, "{answer:?}");
    }
}

#[test]
fn what_a_server_says_unasked_is_nobody_s_answer() {
    let server = Backend::start(|mut conn| {
        while conn.request().is_some() {
            conn.send(format!("{OK}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"));
        }
    });
    let rig = Rig::to(&[&server], |_| {});
    let mut client = rig.connect();
    for _ in 0..5 {
        assert_eq!(client.get("/").text(), "ok");
    }
    assert_eq!(server.accepted(), 5, "each connection said too much");
}

#[test]
fn a_silent_server_is_a_gateway_time_out() {
    let server = Backend::start(|mut conn| {
        conn.request();
        conn.wait_for_end();
    });
    let rig = Rig::to(&[&server], |plan| {
        plan.exchange.first_byte = Duration::from_millis(300);
    });
    let begun = Instant::now();
    let response = rig.connect().get("/");
    assert_eq!(response.status, 504, "{response:?}");
    assert!(response.field("Retry-After").is_some());
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(3), "{took:?}");
}

#[test]
fn a_response_that_stalls_or_breaks_off_is_seen_as_a_fragment() {
    for (head, stalls) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n", false),
    ] {
        let server = Backend::start(move |mut conn| {
            conn.request();
            conn.send(head);
            conn.send("part");
            if stalls {
                conn.wait_for_end();
            } else {
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let rig = Rig::to(&[&server], |plan| plan.exchange.idle = Duration::from_secs(2));
        let mut client = rig.connect();
        client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        let received = client.read_to_close().expect("it ends");
        let received = String::from_utf8_lossy(&received).into_owned();
        assert!(received.ends_with("part") || received.ends_with("part\r\n"), "{received}");
        assert!(!received.ends_with("0\r\n\r\n"), "{received}");
    }
    // Without a length only a reset tells it from a whole response.
    let server = Backend::start(|mut conn| {
        conn.request();
        conn.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n");
        std::thread::sleep(Duration::from_millis(50));
    });
    let rig = Rig::to(&[&server], |_| {});
    let mut client = rig.connect();
    client.send("GET / HTTP/1.0\r\n\r\n");
    let mut room = [0; 4096];
    let end = loop {
        match client.read_raw(&mut room) {
            Ok(0) => break None,
            Ok(_) => {}
            Err(error) => break Some(error.kind()),
        }
    };
    assert_eq!(end, Some(std::io::ErrorKind::ConnectionReset));
}

#[test]
fn a_client_that_goes_away_takes_the_exchange_with_it() {
    let ended = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ended);
    let server = Backend::start(move |mut conn| {
        conn.request();
        conn.wait_for_end();
        count.fetch_add(1, Ordering::SeqCst);
    });
    let rig = Rig::to(&[&server], |plan| plan.exchange.half_closed = HalfClosed::Cancel);
    let mut client = rig.connect();
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    eventually("the server has the request", || server.first().ends_with("\r\n\r\n"));
    drop(client);
    eventually("the server's connection is closed", || ended.load(Ordering::SeqCst) == 1);

    let mut client = rig.connect();
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    eventually("the server has the request", || server.asked() == 2);
    client.abort().expect("reset");
    eventually("the server's connection is closed", || ended.load(Ordering::SeqCst) == 2);
}

#[test]
fn a_drain_waits_for_the_exchange_and_tells_the_client() {
    let (drains, answers) = std::sync::mpsc::channel();
    let answers = std::sync::Mutex::new(answers);
    let server = Backend::start(move |mut conn| {
        conn.request();
        answers.lock().expect("one connection").recv().expect("it may answer");
        conn.send(OK);
        conn.wait_for_end();
    });
    let mut rig = Rig::to(&[&server], |_| {});
    let mut client = rig.connect();
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    eventually("the server has the request", || server.first().ends_with("\r\n\r\n"));
    rig.engine.drain();
    // A worker hears of it a moment later.
    std::thread::sleep(Duration::from_millis(100));
    drains.send(()).expect("the server waits");
    let response = client.receive();
    assert_eq!(response.text(), "ok");
    assert!(response.says_close(), "{response:?}");
    eventually("the workers have ended", || !rig.engine.is_running());
}
