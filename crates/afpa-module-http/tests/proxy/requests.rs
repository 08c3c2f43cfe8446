//! The requests that servers receive: each is well-formed, whatever clients send.

use std::time::Duration;

use crate::rig::{Backend, Rig};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn content_is_passed_on_in_its_framing_and_what_follows_is_the_next_request() {
    let server = Backend::saying(OK);
    let rig = Rig::to(&[&server], |_| {});
    let mut client = rig.connect();
    client.send(
        "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello\
         POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, Host\r\n\r\n\
         2;evil=1\r\nab\r\n00003\r\ncde\r\n0\r\nHost: evil\r\nX-Sum:  1 \r\n\r\n\
         GET /c HTTP/1.1\r\nHost: x\r\n\r\n",
    );
    for _ in 0..3 {
        assert_eq!(client.receive().text(), "ok");
    }
    let received = server.first();
    assert!(received.contains("Content-Length: 5\r\n"), "{received}");
    assert!(received.contains("\r\n\r\nhelloPOST /b HTTP/1.1\r\n"), "{received}");
    assert!(
        received.contains("\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\nX-Sum: 1\r\n\r\nGET /c "),
        "{received}"
    );
}

/// Fields of a trailer section that no server may get, though `Trailer` names them: AFPA writes or removes them in
/// heads, or they mean something only there.
const FORGED: &str = "X-Client-Subject: CN=admin\r\nX_Client_Subject: CN=admin\r\nx-client_subject: CN=admin\r\n\
    X-Forwarded-For: 6.6.6.6\r\nX_Forwarded_For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nVia: 1.1 x\r\n\
    X-Real-IP: 6.6.6.6\r\nAuthorization: x\r\nCookie: x\r\nX-Hop: x\r\nX_Sum: x\r\nEarly-Data: 1\r\n\
    X-HTTP-Method-Override: x\r\nContent-Length: 5\r\nTransfer-Encoding: x\r\nProxy-Anything: x\r\n";

#[test]
fn trailer_fields_that_nobody_named_or_that_mean_something_in_heads_reach_no_server() {
    let server = Backend::saying(OK);
    let rig = Rig::to(&[&server], |plan| {
        plan.exchange.request.client_subject = Some("X-Client-Subject".into());
        plan.exchange.request.x_forwarded = afpa_proxy::request::Mark::Keep;
        plan.exchange.request.forwarded = afpa_proxy::request::Mark::Keep;
    });
    let names: Vec<&str> = FORGED.lines().filter_map(|line| line.split(':').next()).collect();
    let mut client = rig.connect();
    for named in [names.join(","), format!("X-Sum\r\nTrailer: {}", names.join(" , "))] {
        let response = client.exchange(format!(
            "POST / HTTP/1.1\r\nHost: x\r\nConnection: x-hop\r\nTransfer-Encoding: chunked\r\n\
             Trailer: {named}\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\nX-Unnamed: 2\r\n{FORGED}\r\n"
        ));
        assert_eq!(response.status, 200);
    }
    let received = String::from_utf8_lossy(&server.received().concat()).into_owned();
    let trailers = received.split("\r\n0\r\n").skip(1).map(|rest| rest.split("POST").next());
    assert!(trailers.eq([Some("\r\n"), Some("X-Sum: 1\r\n\r\n")]), "{received}");
}

#[test]
fn content_that_comes_piece_by_piece_arrives_whole() {
    let server = Backend::start(|mut conn| {
        while let Some((_, content)) = conn.request() {
            let length = content.len();
            conn.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"));
            conn.send(content);
        }
    });
    let rig = Rig::to(&[&server], |_| {});
    for size in [1, 7, 100] {
        let mut client = rig.connect();
        let request = b"PUT /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\
            b\r\nhello world\r\n1\r\n!\r\n0\r\n\r\n";
        client.send_in_pieces(request, size, Duration::from_millis(1)).expect("sent");
        assert_eq!(client.receive().text(), "hello world!", "by {size}");
        client.assert_open("/static/a.txt");
    }
}

/// Requests that two readers could understand differently. Each is followed by one that must not reach
/// the server as part of anything, and must never be answered as a second request of a refused one.
const SMUGGLED: &[&str] = &[
    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\n\r\n",
    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello",
    "POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: x\r\n Content-Length: 5\r\n\r\nhello",
    "GET / HTTP/1.1\r\nHost: x\nContent-Length: 5\r\n\r\nhello",
    "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: x\r\nX: a\rContent-Length: 5\r\n\r\n",
    "GET /\x0bevil HTTP/1.1\r\nHost: x\r\n\r\n",
    "CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n",
];

#[test]
fn what_could_be_understood_in_two_ways_reaches_no_server_whole() {
    let server = Backend::saying(OK);
    let rig = Rig::to(&[&server], |_| {});
    for input in SMUGGLED {
        let mut client = rig.connect();
        client.send(format!("{input}GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"));
        let response = client.receive();
        assert!((400..=501).contains(&response.status), "{input:?}: {response:?}");
        client.assert_closed();
    }
    for received in server.received() {
        let received = String::from_utf8_lossy(&received).into_owned();
        assert!(!received.contains("smuggled"), "{received}");
    }
}

#[test]
fn odd_but_honest_requests_reach_the_server_as_plain_ones() {
    for (input, expected) in [
        ("\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n"),
        ("GET http://y/a HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a HTTP/1.1\r\nHost: y\r\n"),
        ("GET //a/./%62 HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a/b HTTP/1.1\r\nHost: x\r\n"),
        (
            "GET / HTTP/1.1\r\nhOST:   x\t\r\nConnection: x-a, close\r\nX-A: 1\r\nX-B:\t2 \r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\nX-B: 2\r\n",
        ),
        (
            "GET / HTTP/1.1\r\nHost: x\r\nTransfer-encoding: CHUNKED\r\n\r\n0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n",
        ),
    ] {
        let server = Backend::saying(OK);
        let rig = Rig::to(&[&server], |plan| {
            plan.exchange.request.via = false;
            plan.exchange.request.x_forwarded = afpa_proxy::request::Mark::Remove;
        });
        assert_eq!(rig.connect().exchange(input).status, 200, "{input:?}");
        let received = server.first();
        let head = format!("{expected}\r\n");
        assert!(received.starts_with(&head), "{input:?} became {received:?}");
        let rest = &received[head.len()..];
        assert!(["", "0\r\n\r\n"].contains(&rest), "{input:?} became {received:?}");
    }
}

#[test]
fn an_expectation_is_passed_on_and_so_is_the_answer_to_it() {
    let server = Backend::start(|mut conn| {
        let head = conn.head().expect("a head");
        assert!(head.contains("\r\nExpect: 100-continue\r\n"), "{head}");
        conn.send("HTTP/1.1 100 Continue\r\n\r\n");
        assert_eq!(conn.exactly(5).expect("content"), b"hello");
        conn.send(OK);
        conn.wait_for_end();
    });
    let rig = Rig::to(&[&server], |_| {});
    let mut client = rig.connect();
    client.send("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.receive().status, 100);
    client.send("hello");
    assert_eq!(client.receive().text(), "ok");
}

#[test]
fn a_server_that_does_not_want_the_content_says_so_at_once() {
    let server = Backend::start(|mut conn| {
        conn.head().expect("a head");
        conn.send(
            "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        );
    });
    let rig = Rig::to(&[&server], |_| {});
    let mut client = rig.connect();
    client.send("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    let response = client.receive();
    assert_eq!(response.status, 413);
    assert!(response.says_close(), "content may follow or not: {response:?}");
    client.assert_closed();
}

#[test]
fn too_much_content_is_refused_announced_or_not() {
    let server = Backend::saying(OK);
    let rig = Rig::to(&[&server], |plan| plan.exchange.largest_content = Some(4));
    for framing in
        ["Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"]
    {
        let mut client = rig.connect();
        client.send(format!("PUT / HTTP/1.1\r\nHost: x\r\n{framing}"));
        assert_eq!(client.receive().status, 413, "{framing}");
        client.assert_closed();
    }
    let mut client = rig.connect();
    client.send("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nfour");
    assert_eq!(client.receive().status, 200);
}

#[test]
fn a_site_s_limits_refuse_what_goes_to_servers_and_not_what_is_cached() {
    let server = Backend::saying(OK);
    let rig = Rig::to(&[&server], |plan| {
        plan.limits.client_requests_per_second = 1;
        plan.limits.client_burst = 2;
    });
    let mut client = rig.connect();
    let statuses: Vec<u16> = (0..4).map(|_| client.get("/").status).collect();
    assert_eq!(statuses, [200, 200, 429, 429]);
    let refused = client.get("/");
    assert!(refused.field("Retry-After").is_some(), "{refused:?}");
    assert_eq!(client.get("/static/a.txt").status, 200);
}

#[test]
fn a_trusted_router_names_the_client_and_nobody_else_does() {
    let request = "GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n";
    for (trusted, expected) in [
        ("127.0.0.0/8", "X-Forwarded-For: 203.0.113.9, 127.0.0.1\r\n"),
        ("10.0.0.0/8", "X-Forwarded-For: 127.0.0.1\r\n"),
    ] {
        let server = Backend::saying(OK);
        let rig = Rig::to(&[&server], |plan| {
            plan.forwarded_from = [trusted.parse().expect("a network")].into();
            plan.limits.client_requests_per_second = 1;
            plan.limits.client_burst = 1;
        });
        let mut client = rig.connect();
        assert_eq!(client.exchange(request).status, 200);
        let received = server.first();
        assert!(received.contains(expected), "{received}");
        // The limit is that of the client that was named, if it may be named.
        let other = request.replace("203.0.113.9", "203.0.113.10");
        let status = if trusted == "127.0.0.0/8" { 200 } else { 429 };
        assert_eq!(client.exchange(&other).status, status, "{trusted}");
    }
}

#[test]
fn a_router_in_front_names_the_client_before_its_first_request() {
    let server = Backend::saying(OK);
    let rig = Rig::to(&[&server], |plan| {
        plan.proxy_from = ["127.0.0.0/8".parse().expect("a network")].into();
        plan.engine.head_timeout = Duration::from_secs(2);
    });
    let mut client = rig.connect();
    let request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    let preface = "PROXY TCP4 203.0.113.9 192.0.2.1 5000 80\r\n";
    let all = format!("{preface}{request}{request}");
    client.send_in_pieces(all.as_bytes(), 13, Duration::from_millis(2)).expect("sent");
    assert_eq!([client.receive().status, client.receive().status], [200, 200]);
    let received = server.first();
    assert_eq!(received.matches("X-Forwarded-For: 203.0.113.9\r\n").count(), 2, "{received}");

    // A connection without a valid and complete PROXY header gets no answer.
    for input in [request, "PROXY nonsense\r\n", "PROXY TCP4 203."] {
        let mut client = rig.connect();
        client.send(input);
        client.assert_closed();
    }
    // From anybody else such a beginning is no request.
    let rig = Rig::to(&[&server], |_| {});
    let mut client = rig.connect();
    client.send(all);
    assert_eq!(client.receive().status, 400);
    client.assert_closed();
}
