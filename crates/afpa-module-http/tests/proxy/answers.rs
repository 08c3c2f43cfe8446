//! Responses of every kind, and where they end.

use afpa_testkit::eventually;
use afpa_testkit::response::{Asked, Framing};

use crate::rig::{Backend, Rig};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

#[test]
fn a_request_goes_to_the_server_and_the_next_one_on_the_same_connection() {
    let server = Backend::saying(OK);
    let rig = Rig::to(&[&server], |_| {});
    let mut client = rig.connect();
    for _ in 0..3 {
        let response = client.get("/hello?x=1");
        assert_eq!((response.status, response.text()), (200, "hello"));
        assert!(response.field("Date").is_some(), "{response:?}");
    }
    assert_eq!(rig.connect().get("/other").text(), "hello");
    assert_eq!(server.accepted(), 1, "one connection serves them all");
    let one = "GET /hello?x=1 HTTP/1.1\r\nHost: test\r\nVia: 1.1 afpa\r\n\
        X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Host: test\r\nX-Forwarded-Proto: http\r\n\r\n";
    let received = server.first();
    assert!(received.starts_with(&one.repeat(3)), "{received}");
    // A response is counted when it has left, which its reader may see first.
    eventually("all four are counted", || rig.counters.remote.get() == 4);
}

#[test]
fn the_router_decides_between_cache_redirect_and_servers() {
    let server = Backend::saying(OK);
    let rig = Rig::to(&[&server], |_| {});
    let mut client = rig.connect();
    for _ in 0..2 {
        assert_eq!(client.get("/static/a.txt").text(), "from the cache");
    }
    assert_eq!(rig.counters.hits.get(), 1);
    let moved = client.get("/old/a/b?c");
    assert_eq!((moved.status, moved.field("Location")), (308, Some("/new/a/b?c")));
    assert_eq!(server.accepted(), 0);
    assert_eq!(client.get("/static/../x").text(), "hello", "one meaning for router and server");
    assert!(server.first().starts_with("GET /x HTTP/1.1\r\n"));
    let post =
        client.exchange("POST /static/a.txt HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab");
    assert_eq!(post.status, 405);
    assert_eq!(client.get("/static/a.txt").text(), "from the cache", "content was skipped");
}

#[test]
fn each_way_to_end_a_response_is_understood_and_the_connection_goes_on() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let ranges = "HTTP/1.1 206 Partial Content\r\n\
        Content-Type: multipart/byteranges; boundary=B\r\n\r\n";
    for (answer, closes, content, framing) in [
        (OK.to_owned(), false, "hello", Framing::Length),
        (
            format!("{chunked}3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nA: b\r\n\r\n"),
            false,
            "hello",
            Framing::Chunked,
        ),
        ("HTTP/1.1 200 OK\r\n\r\nhello".into(), true, "hello", Framing::Chunked),
        ("HTTP/1.0 200 OK\r\n\r\nhello".into(), true, "hello", Framing::Chunked),
        (
            format!("{ranges}--B\r\n\r\nx\r\n--B--"),
            false,
            "--B\r\n\r\nx\r\n--B--",
            Framing::Chunked,
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".into(), false, "", Framing::Length),
        ("HTTP/1.1 204 No Content\r\n\r\n".into(), false, "", Framing::None),
        ("HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n".into(), false, "", Framing::None),
        (
            format!("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n{OK}"),
            false,
            "hello",
            Framing::Length,
        ),
    ] {
        let said = answer.clone();
        let server = Backend::start(move |mut conn| {
            while conn.request().is_some() {
                conn.send(&said);
                if closes {
                    return;
                }
            }
        });
        let rig = Rig::to(&[&server], |_| {});
        let mut client = rig.connect();
        for _ in 0..3 {
            let mut response = client.get("/");
            if response.status == 103 {
                response = client.receive();
            }
            assert_eq!(response.text(), content, "{answer}");
            assert_eq!(response.framing, framing, "{answer}");
        }
    }
}

#[test]
fn trailer_fields_follow_chunks_to_whoever_can_have_them() {
    let server = Backend::saying(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\
         Connection: X-Hop\r\n\r\n5\r\nhello\r\n0\r\nX-Sum:\t1\r\nContent-Length: 9\r\nX-Hop: a\r\n\
         Set-Cookie: evil\r\nServer-Timing: db;dur=53\r\nX-Sum: 2\r\n\r\n",
    );
    let rig = Rig::to(&[&server], |_| {});
    let mut client = rig.connect();
    for _ in 0..2 {
        let response = client.get_with("/", "TE: trailers\r\nConnection: TE\r\n");
        assert_eq!((response.text(), response.field("Trailer")), ("hello", Some("X-Sum")));
        let expected = [("X-Sum", "1"), ("Server-Timing", "db;dur=53"), ("X-Sum", "2")];
        let trailers = response.trailers.iter().map(|(name, value)| (&name[..], &value[..]));
        assert!(trailers.eq(expected), "{response:?}");
    }
    assert!(server.first().contains("\r\nTE: trailers\r\n"), "{}", server.first());
    // A client that does not ask for trailer fields gets those that the head names.
    let response = client.get("/");
    let expected = [("X-Sum", "1"), ("X-Sum", "2")];
    let trailers = response.trailers.iter().map(|(name, value)| (&name[..], &value[..]));
    assert!(trailers.eq(expected), "{response:?}");
    let response = client.exchange("GET / HTTP/1.0\r\nHost: x\r\n\r\n");
    assert_eq!((response.text(), response.framing), ("hello", Framing::Close));
    assert_eq!(response.field("Trailer"), None);
}

#[test]
fn trailer_fields_are_bounded() {
    let many = format!("X-{}: y\r\n", "x".repeat(90)).repeat(100);
    let server = Backend::saying(&format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{many}\r\n"
    ));
    let rig = Rig::to(&[&server], |_| {});
    assert_eq!(rig.connect().get("/").status, 502);
}

#[test]
fn the_answer_to_head_has_no_content_whatever_it_says() {
    let server = Backend::saying("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    let rig = Rig::to(&[&server], |_| {});
    let mut client = rig.connect();
    for _ in 0..2 {
        let response = client.head_with("/", "");
        assert_eq!((response.status, response.field("Content-Length")), (200, Some("5")));
    }
    assert_eq!(server.accepted(), 1);
}

#[test]
fn a_client_of_http_1_0_gets_what_it_understands() {
    let server = Backend::saying(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    );
    let rig = Rig::to(&[&server], |_| {});
    let mut client = rig.connect();
    client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let response = client.try_receive(Asked::Body).expect("a response");
    assert_eq!((response.text(), response.framing), ("hello", Framing::Close));
    assert!(response.says_close());
    client.assert_closed();
    // The server was asked in its own name, as the client gave none.
    assert!(server.first().contains(&format!("\r\nHost: {}\r\n", server.place())));

    let server = Backend::saying(OK);
    let rig = Rig::to(&[&server], |_| {});
    let mut client = rig.connect();
    for _ in 0..2 {
        client.send("GET / HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n\r\n");
        let response = client.receive();
        assert_eq!(response.field("Connection"), Some("keep-alive"), "{response:?}");
    }
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let server = Backend::start(|mut conn| {
        while let Some((head, _)) = conn.request() {
            let path = head.split(' ').nth(1).expect("a path").to_owned();
            let length = path.len();
            conn.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{path}"));
        }
    });
    let rig = Rig::to(&[&server], |_| {});
    let mut client = rig.connect();
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    client.send([get("/1"), get("/static/a.txt"), get("/2"), get("/3")].concat());
    for expected in ["/1", "from the cache", "/2", "/3"] {
        assert_eq!(client.receive().text(), expected);
    }
}

#[test]
fn a_server_on_a_unix_socket_serves_like_any_other() {
    let server = Backend::start_unix(|mut conn| {
        while conn.request().is_some() {
            conn.send(OK);
        }
    });
    let rig = Rig::to(&[&server], |_| {});
    let mut client = rig.connect();
    for _ in 0..2 {
        assert_eq!(client.get("/").text(), "hello");
    }
    assert_eq!(server.accepted(), 1);
    client.send("GET /old-client HTTP/1.0\r\n\r\n");
    assert_eq!(client.receive().text(), "hello");
    let received = server.first();
    assert!(received.contains("GET /old-client HTTP/1.1\r\nHost: localhost\r\n"), "{received}");
}
