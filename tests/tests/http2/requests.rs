//! Requests that are right and wrong in ways that only HTTP/2 knows.

use afpa_h2::frame::{flag, kind};
use afpa_testkit::{Server, eventually};
use afpa_tests::h2::{H2Client, block, request};

use crate::{server, server_with, site};

#[test]
fn one_connection_has_all_kinds_of_answers() {
    let tree = site();
    let server = server(&tree);
    let mut client = H2Client::connect(&server);
    let whole = client.get("/hello.txt");
    assert_eq!((whole.status, whole.text()), (200, "hello"));
    assert_eq!(whole.field("content-length"), Some("5"));
    assert_eq!(client.get("/empty.txt").body, b"");
    let tag = whole.field("etag").expect("a tag").to_owned();
    let mut again = request("GET", "/hello.txt");
    again.push(("if-none-match", &tag));
    let id = client.request(&again, b"");
    assert_eq!(client.response(id).status, 304);
    let id = client.request(&request("HEAD", "/large.bin"), b"");
    let head = client.response(id);
    assert_eq!(
        (head.status, head.field("content-length"), head.body.len()),
        (200, Some("3000000"), 0)
    );
    for (method, target, status) in [
        ("GET", "/none", 404),
        ("GET", "/../x", 400),
        ("GET", "/a#b", 400),
        ("POST", "/hello.txt", 405),
        ("OPTIONS", "*", 204),
        ("TRACE", "/", 405),
    ] {
        let id = client.request(&request(method, target), b"");
        assert_eq!(client.response(id).status, status, "{method} {target}");
    }
    let id = client.request(&[(":method", "CONNECT"), (":authority", "h:1")], b"");
    assert_eq!(client.response(id).status, 405);
}

#[test]
fn malformed_requests_end_their_stream_and_no_other() {
    let tree = site();
    let server = server(&tree);
    let mut client = H2Client::connect(&server);
    let with = |name, value| [request("GET", "/hello.txt"), vec![(name, value)]].concat();
    for fields in [
        with("connection", "close"),
        with("transfer-encoding", "chunked"),
        with("te", "gzip"),
        with("Upper", "1"),
        with("host", "other"),
        with("x", "a\r\nx-injected: b"),
        with(":path", "/other"),
        with(":unknown", "1"),
        request("GET", ""),
        request("GET", "http://test/hello.txt"),
        request("GET", "/hello.txt HTTP/1.1\r\nx: "),
        vec![(":method", "GET"), (":scheme", "http")],
    ] {
        let id = client.request(&fields, b"");
        assert_eq!(client.whole(id).reset, Some(1), "{fields:?}");
    }
    assert_eq!(client.get("/hello.txt").text(), "hello");
}

#[test]
fn content_that_is_not_as_long_as_announced_ends_its_stream() {
    let tree = site();
    let server = server(&tree);
    let mut client = H2Client::connect(&server);
    for (announced, content) in [("5", &b"four"[..]), ("3", b"four"), ("0", b"four")] {
        let mut fields = request("POST", "/hello.txt");
        fields.push(("content-length", announced));
        let id = client.request(&fields, content);
        assert_eq!(client.whole(id).reset, Some(1), "{announced}");
    }
    let mut fields = request("POST", "/hello.txt");
    fields.push(("content-length", "4"));
    let id = client.request(&fields, b"four");
    assert_eq!(client.response(id).status, 405);
}

#[test]
fn an_answer_does_not_wait_for_content_that_waits_for_it() {
    let tree = site();
    let server = server(&tree);
    let mut client = H2Client::connect(&server);
    let mut fields = request("POST", "/hello.txt");
    fields.push(("expect", "100-continue"));
    let id = client.open(&fields, false);
    let answer = client.whole(id);
    assert_eq!(answer.fields[0].1, "405");
    // More than a window of content is not waited for either.
    let id = client.open(&request("POST", "/hello.txt"), false);
    for _ in 0..17 {
        client.frame(kind::DATA, 0, id, &[0; 16_000]);
    }
    assert_eq!(client.response(id).status, 405);
    assert_eq!(client.get("/hello.txt").text(), "hello");
}

/// The whole answer comes, and some time later NO_ERROR, which asks the client to send no more (RFC 9113 section 8.1).
/// A client must not throw the answer away then; curl 7.88 does if both come at once.
#[test]
fn content_beyond_the_limit_is_413_whether_there_is_a_file_or_not() {
    let tree = site();
    let server = server(&tree);
    let mut client = H2Client::connect(&server);
    for (method, target) in [("PUT", "/hello.txt"), ("PUT", "/hello.txt"), ("POST", "/none")] {
        let mut fields = request(method, target);
        fields.push(("content-length", "3000000"));
        let id = client.open(&fields, false);
        client.frame(kind::DATA, 0, id, &[0; 16_000]);
        client.until("it is to send no more", |client| client.so_far(id).reset.is_some());
        let answer = client.whole(id);
        assert_eq!(answer.fields[0].1, "413", "{method} {target}");
        assert!(answer.ended && !answer.body.is_empty(), "{method} {target}: {answer:?}");
        assert_eq!(answer.reset, Some(0), "{method} {target}");
    }
    assert_eq!(client.get("/hello.txt").text(), "hello");
}

#[test]
fn a_long_head_is_431_and_the_connection_goes_on() {
    let tree = site();
    let server = server_with(&tree, |settings| {
        settings.set("limits.head", "\"1KiB\"");
    });
    let mut client = H2Client::connect(&server);
    let (long, longer) = ("v".repeat(900), "v".repeat(15_000));
    for (value, status) in [(&long, 200), (&longer, 431)] {
        let mut fields = request("GET", "/hello.txt");
        fields.push(("x", value));
        let id = client.request(&fields, b"");
        assert_eq!(client.response(id).status, status);
    }
    let target = format!("/{}", "a".repeat(700));
    assert_eq!(client.get(&target).status, 414);
    // Longer than a whole head, before other pseudo-fields, as curl and Firefox send them.
    let target = format!("/{}", "a".repeat(3000));
    let mut fields = request("GET", &target);
    for _ in 0..fields.len() {
        fields.rotate_left(1);
        let id = client.request(&fields, b"");
        assert_eq!(client.response(id).status, 414, "{fields:?}");
    }
    // Cookies come in pieces, and count as one.
    let mut fields = request("GET", "/hello.txt");
    fields.extend((0..200).map(|_| ("cookie", "crumb=1")));
    let id = client.request(&fields, b"");
    assert_eq!(client.response(id).status, 431);
}

#[test]
fn a_head_in_several_frames_is_one_head() {
    let tree = site();
    let server = server(&tree);
    let mut client = H2Client::connect(&server);
    let fields = block(&request("GET", "/hello.txt"));
    client.frame(kind::HEADERS, flag::END_STREAM, 1, &fields[..10]);
    client.frame(kind::CONTINUATION, 0, 1, &fields[10..20]);
    client.frame(kind::CONTINUATION, flag::END_HEADERS, 1, &fields[20..]);
    assert_eq!(client.response(1).text(), "hello");
}

#[test]
fn without_the_setting_the_preface_is_no_request() {
    let tree = site();
    let server = server_with(&tree, |settings| {
        settings.set("http2.cleartext", false);
    });
    let mut client = server.connect();
    client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert_eq!(client.receive().status, 505);
    client.assert_closed();
}

#[test]
fn a_preface_in_pieces_is_a_preface_and_another_request_is_none() {
    let tree = site();
    let server = server(&tree);
    let mut client = H2Client::begin(server.address());
    for byte in afpa_h2::PREFACE.chunks(5) {
        client.send(byte);
    }
    client.frame(kind::SETTINGS, 0, 0, &[]);
    assert_eq!(client.get("/hello.txt").text(), "hello");
    let mut old = server.connect();
    old.send_in_pieces(b"PRINT / HTTP/1.1\r\nHost: h\r\n\r\n", 2, std::time::Duration::ZERO)
        .expect("sent");
    assert_eq!(old.receive().status, 501);
    assert_eq!(old.get("/hello.txt").text(), "hello");
}

#[test]
fn what_is_neither_protocol_is_an_invalid_preface() {
    let tree = site();
    let server = server(&tree);
    for pieces in [26, 7, 1] {
        let mut client = H2Client::begin(server.address());
        for piece in b"INVALID CONNECTION PREFACE\r\n\r\n".chunks(pieces) {
            // The answer may come before the last of it, and a reset behind the answer.
            if client.try_send(piece).is_err() {
                break;
            }
        }
        assert_eq!(client.end(), Some((0, 1)), "PROTOCOL_ERROR, in pieces of {pieces}");
    }
}

#[test]
fn the_log_names_the_protocol() {
    let tree = site();
    let server = Server::start(tree.path(), |launch| {
        let log = launch.home().join("access.log");
        launch.arg("--access-log").arg(log).set(|settings| {
            settings.set("http2.cleartext", true);
        });
    });
    let log = server.home().join("access.log");
    let mut client = H2Client::connect(&server);
    client.get("/hello.txt");
    client.get("/large.bin");
    eventually("both requests are in the log", || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        text.contains("GET /hello.txt HTTP/2.0") && text.contains("GET /large.bin HTTP/2.0")
    });
}

#[test]
fn workers_that_wait_for_completion_serve_it_too() {
    let tree = site();
    let server = server_with(&tree, |settings| {
        settings.set("engine.io", "\"completion\"");
    });
    let mut clients: Vec<H2Client> = (0..20).map(|_| H2Client::connect(&server)).collect();
    for _ in 0..3 {
        for client in &mut clients {
            let small = client.request(&request("GET", "/hello.txt"), b"");
            let large = client.request(&request("GET", "/medium.bin"), b"");
            assert_eq!(client.response(small).text(), "hello");
            assert_eq!(client.response(large).body.len(), 100_000);
        }
    }
}
