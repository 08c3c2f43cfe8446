//! Methods, targets, statuses, and whether the connection goes on after each.

use std::fmt::Write;

use afpa_testkit::{
    Asked, Client, Response, Server, Tree, client::has_ipv6_loopback, curl::curl, skip,
    tree::patterned,
};
use afpa_tests::dates;

/// A root with one of everything, and a server for it.
fn site() -> (Tree, Server) {
    let tree = Tree::new();
    tree.file("index.html", "<h1>home</h1>");
    tree.file("hello.txt", "hello");
    tree.file("empty.bin", "");
    tree.file("deep/er/index.html", "deeper");
    tree.file("bare/file.txt", "no index beside me");
    tree.file("with space.txt", "space");
    tree.file(".hidden", "secret");
    tree.file(".git/config", "secret");
    let server = Server::start(tree.path(), |_| ());
    (tree, server)
}

/// The connection does what the response said of it.
#[track_caller]
fn connection_keeps_its_word(client: &mut Client, response: &Response) {
    if response.says_close() {
        client.assert_closed();
    } else {
        client.assert_open("/hello.txt");
    }
}

/// Asserts an error response: status, a small HTML page of known length, and a connection that
/// does what it says.
#[track_caller]
fn refused(server: &Server, request: &str, status: u16) -> Response {
    let mut client = server.connect();
    let response = client.exchange(request);
    assert_eq!(response.status, status, "{request:.200?}: {response:?}");
    if !request.starts_with("HEAD") {
        assert!(response.text().contains(&status.to_string()), "{response:?}");
        assert!(response.body.len() < 4096, "a small page");
        let media_type = response.field("content-type").unwrap_or_default();
        assert!(media_type.starts_with("text/html"), "{response:?}");
    }
    connection_keeps_its_word(&mut client, &response);
    response
}

/// As [`refused`], and the connection must close: the server cannot know where the next request
/// begins.
#[track_caller]
fn refused_for_good(server: &Server, request: &str, status: u16) {
    let response = refused(server, request, status);
    assert!(response.says_close(), "{request:.200?}: {response:?}");
}

#[test]
fn get_gives_the_file_with_the_fields_of_a_static_response() {
    let (tree, server) = site();
    tree.set_modified("hello.txt", 1_600_000_000);
    let response = server.get("/hello.txt");
    assert_eq!((response.status, response.reason.as_str()), (200, "OK"));
    assert_eq!((response.minor_version, response.text()), (1, "hello"));
    assert_eq!(response.field("content-length"), Some("5"));
    assert_eq!(response.field("accept-ranges"), Some("bytes"));
    assert_eq!(response.field("server"), Some("afpa"));
    let expected = dates::http_date(1_600_000_000);
    assert_eq!(response.field("last-modified"), Some(expected.as_str()));
    let date = dates::parse(response.field("date").expect("a date")).expect("an HTTP date");
    let now = std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_secs();
    assert!(now.abs_diff(date) <= 2, "Date is {date}, now is {now}");
    let tag = response.field("etag").expect("an entity tag");
    assert!(tag.len() > 2 && tag.starts_with('"') && tag.ends_with('"'), "strong: {tag}");
}

#[test]
fn head_gives_the_fields_of_get_and_no_body() {
    let (_tree, server) = site();
    for target in ["/hello.txt", "/", "/empty.bin", "/none", "/bare/", "/bare"] {
        let mut client = server.connect();
        let get = client.get(target);
        let head = client.head_with(target, "");
        assert_eq!(head.status, get.status, "{target}");
        for field in ["content-type", "content-length", "etag", "last-modified", "location"] {
            assert_eq!(head.field(field), get.field(field), "{field} of {target}");
        }
        connection_keeps_its_word(&mut client, &head);
    }
}

#[test]
fn options_tells_the_methods() {
    let (_tree, server) = site();
    for target in ["*", "/hello.txt", "/none"] {
        let request = format!("OPTIONS {target} HTTP/1.1\r\nHost: h\r\n\r\n");
        let mut client = server.connect();
        let response = client.exchange(request);
        assert_eq!(response.status, 204, "{target}: {response:?}");
        for method in ["GET", "HEAD", "OPTIONS"] {
            assert!(response.lists("allow", method), "{target}: {response:?}");
        }
        client.assert_open("/hello.txt");
    }
}

#[test]
fn one_connection_serves_many_requests() {
    let (_tree, server) = site();
    let mut client = server.connect();
    for _ in 0..200 {
        let response = client.get("/hello.txt");
        assert_eq!((response.status, response.text()), (200, "hello"));
        assert!(!response.says_close());
    }
}

#[test]
fn a_request_to_close_is_obeyed() {
    let (_tree, server) = site();
    for value in ["close", "Close", "foo, close"] {
        let mut client = server.connect();
        let response = client.get_with("/hello.txt", &format!("Connection: {value}\r\n"));
        assert!(response.says_close(), "{value}: {response:?}");
        client.assert_closed();
    }
}

#[test]
fn a_hundred_pipelined_requests_are_answered_in_their_order() {
    let tree = Tree::new();
    let mut requests = String::new();
    for index in 0..100 {
        tree.file(format!("{index}.txt"), format!("file {index}"));
        write!(requests, "GET /{index}.txt HTTP/1.1\r\nHost: h\r\n\r\n").expect("text");
    }
    let server = Server::start(tree.path(), |_| ());
    for _round in 0..3 {
        let mut client = server.connect();
        client.send(&requests);
        for index in 0..100 {
            assert_eq!(client.receive().text(), format!("file {index}"));
        }
        client.assert_open("/0.txt");
    }
}

#[test]
fn pipelined_methods_and_errors_keep_their_places() {
    let (_tree, server) = site();
    let mut client = server.connect();
    client.send(
        "HEAD /hello.txt HTTP/1.1\r\nHost: h\r\n\r\nGET /none HTTP/1.1\r\nHost: h\r\n\r\n\
         POST /hello.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nGET /\
         GET /bare/ HTTP/1.1\r\nHost: h\r\n\r\nGET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n",
    );
    assert_eq!(client.try_receive(Asked::Head).expect("a response").status, 200);
    let statuses = [(); 3].map(|()| client.receive().status);
    assert_eq!(statuses, [404, 405, 403]);
    assert_eq!(client.receive().text(), "hello");
}

#[test]
fn a_pipeline_of_large_and_small_files_stays_in_order() {
    let tree = Tree::new();
    let large = patterned(3_000_000);
    tree.file("large.bin", &large);
    tree.file("small.txt", "small");
    let server = Server::start(tree.path(), |_| ());
    let one = |name: &str| format!("GET /{name} HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut client = server.connect();
    client.send((one("small.txt") + &one("large.bin")).repeat(4));
    for _ in 0..4 {
        assert_eq!(client.receive().text(), "small");
        assert!(client.receive().body == large, "the large file is whole");
    }
}

#[test]
fn http_1_0_closes_unless_asked_to_stay() {
    let (_tree, server) = site();
    let mut client = server.connect();
    let response = client.exchange("GET /hello.txt HTTP/1.0\r\n\r\n");
    assert_eq!((response.status, response.text()), (200, "hello"));
    client.assert_closed();

    let mut client = server.connect();
    for _ in 0..3 {
        let request = "GET /hello.txt HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
        let response = client.exchange(request);
        assert!(response.lists("connection", "keep-alive"), "{response:?}");
        assert_eq!(response.text(), "hello");
    }
    client.exchange("GET /hello.txt HTTP/1.0\r\n\r\n");
    client.assert_closed();
}

#[test]
fn what_is_not_there_or_not_to_be_seen_is_refused() {
    let (_tree, server) = site();
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n");
    for target in [
        "/none",
        "/deep/none",
        "/hello.txt/",
        "/hello.txt/x",
        "/.hidden",
        "/.git/config",
        "/.git/",
        "/deep/../.hidden",
        "/%2ehidden",
        "/hello%2Ftxt",
        "/deep%2fer/",
    ] {
        refused(&server, &get(target), 404);
    }
    refused(&server, &get("/bare/"), 403);
    refused(&server, &get("/none").replace("GET", "HEAD"), 404);
}

#[test]
fn other_methods_are_told_what_is_allowed() {
    let (_tree, server) = site();
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE"] {
        let request = format!("{method} /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n");
        let response = refused(&server, &request, 405);
        assert!(["GET", "HEAD", "OPTIONS"].iter().all(|m| response.lists("allow", m)));
    }
    refused(&server, "CONNECT test:80 HTTP/1.1\r\nHost: test:80\r\n\r\n", 405);
    refused(&server, "BREW /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n", 501);
    refused(&server, "get /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n", 501);
}

#[test]
fn an_unwanted_body_is_skipped_and_the_next_request_found() {
    let (_tree, server) = site();
    let body = "GET /none HTTP/1.1\r\nHost: h\r\n\r\n";
    let by_length = format!(
        "POST /hello.txt HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let chunked = format!(
        "POST /hello.txt HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\
         {:x};note=1\r\n{body}\r\n0\r\nTrailer: x\r\n\r\n",
        body.len()
    );
    for request in [by_length, chunked] {
        let mut client = server.connect();
        client.send(request.clone() + &request + "GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(client.receive().status, 405);
        assert_eq!(client.receive().status, 405);
        assert_eq!(client.receive().text(), "hello");
    }
    // A body with GET means nothing, but it is there.
    let mut client = server.connect();
    client.send(format!(
        "GET /hello.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc{}",
        "GET /empty.bin HTTP/1.1\r\nHost: h\r\n\r\n"
    ));
    assert_eq!(client.receive().text(), "hello");
    assert_eq!(client.receive().text(), "");
}

#[test]
fn a_body_beyond_the_limit_is_413() {
    let (_tree, server) = site();
    let request = "POST /hello.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n";
    refused_for_good(&server, request, 413);

    let mut client = server.connect();
    client.send("POST /hello.txt HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    for _ in 0..40 {
        // The server may have answered and closed already.
        if client.try_send(&chunk).is_err() {
            break;
        }
    }
    // The answer may have left before the body turned out too long; there is no second one.
    let response = client.receive();
    assert!(matches!(response.status, 405 | 413), "{response:?}");
    client.assert_closed();
}

#[test]
fn a_refusal_reaches_a_client_that_is_still_sending() {
    let (_tree, server) = site();
    let mut client = server.connect();
    client.send("POST /hello.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 9000000\r\n\r\n");
    for _ in 0..64 {
        if client.try_send(vec![b'x'; 16 * 1024]).is_err() {
            break;
        }
    }
    assert_eq!(client.receive().status, 413, "not lost in a reset");
}

#[test]
fn too_long_a_target_is_414_and_too_long_a_head_431() {
    let (_tree, server) = site();
    let get =
        |target: &str, lines: &str| format!("GET {target} HTTP/1.1\r\nHost: h\r\n{lines}\r\n");
    let long = |count| format!("/{}", "a".repeat(count));
    refused(&server, &get(&long(8000), ""), 404);
    refused_for_good(&server, &get(&long(9000), ""), 414);
    refused_for_good(&server, &long(70_000).replacen('/', "GET /", 1), 414);
    let field = |size: usize| format!("X-Long: {}\r\n", "v".repeat(size));
    refused_for_good(&server, &get("/hello.txt", &field(40_000)), 431);
    refused_for_good(&server, &get("/hello.txt", &field(900).repeat(40)), 431);
    refused_for_good(&server, &get("/hello.txt", &"A: b\r\n".repeat(150)), 431);
    assert_eq!(server.connect().get_with("/hello.txt", &field(20_000)).status, 200);
    assert_eq!(server.connect().get_with("/hello.txt", &"A: b\r\n".repeat(90)).status, 200);
}

#[test]
fn what_is_not_http_1_is_refused_and_the_connection_closed() {
    let (_tree, server) = site();
    for (request, status) in [
        ("GET\r\n\r\n", 400),
        ("GET /hello.txt\r\n\r\n", 400),
        ("GET  /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET /hello.txt HTTP/1.1\r\n\r\n", 400),
        ("GET /hello.txt HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        ("GET /hello.txt HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        ("GET /hello.txt HTTP/1.1\r\nHost : a\r\n\r\n", 400),
        ("GET /hello.txt HTTP/1.1\r\nHost: h\r\nNo colon\r\n\r\n", 400),
        ("GET /hello.txt HTTP/1.1\nHost: h\n\n", 400),
        ("GET /hello.txt HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400),
        ("GET /hello.txt HTTP/2.0\r\nHost: h\r\n\r\n", 505),
        ("GET /hello.txt HTTP/1.2\r\nHost: h\r\n\r\n", 505),
        ("GET /hello.txt HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: br\r\n\r\n", 501),
        ("\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\r\n\r\n", 400),
    ] {
        refused_for_good(&server, request, status);
    }
}

#[test]
fn targets_that_no_file_can_have_are_400() {
    let (_tree, server) = site();
    for target in [
        "/..",
        "/../hello.txt",
        "/%2e%2e/hello.txt",
        "/deep/../../hello.txt",
        "/%",
        "/%zz",
        "/%4",
        "/a%00b",
        "/a%0d%0aX:y",
        "hello.txt",
        "*",
    ] {
        refused(&server, &format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"), 400);
    }
}

#[test]
fn an_expectation_other_than_continue_is_417() {
    let (_tree, server) = site();
    refused(&server, "GET /hello.txt HTTP/1.1\r\nHost: h\r\nExpect: tea\r\n\r\n", 417);
}

#[test]
fn a_client_waiting_for_100_continue_is_not_left_waiting() {
    let (_tree, server) = site();
    let mut client = server.connect();
    client.send(
        "POST /hello.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\
                 Expect: 100-continue\r\n\r\n",
    );
    // The server may answer at once, which makes the body needless, or ask for the body first.
    let mut response = client.receive();
    if response.status == 100 {
        client.send("abc");
        response = client.receive();
    }
    assert_eq!(response.status, 405);
    if response.says_close() {
        client.assert_closed();
    }
}

#[test]
fn an_empty_line_before_a_request_is_passed_over() {
    let (_tree, server) = site();
    let mut client = server.connect();
    for _ in 0..3 {
        assert_eq!(client.exchange("\r\nGET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n").status, 200);
    }
}

#[test]
fn a_unix_socket_serves_as_tcp_does() {
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    tree.file("large.bin", patterned(2_000_000));
    let mut endpoint = None;
    let server = Server::start(tree.path(), |launch| endpoint = Some(launch.listen_unix()));
    let mut client = Client::connect(&endpoint.expect("endpoint")).expect("connect");
    assert_eq!(client.get("/hello.txt").text(), "hello");
    assert!(client.get("/large.bin").body == patterned(2_000_000));
    assert_eq!(server.get("/hello.txt").text(), "hello");
}

#[test]
fn ipv6_serves_as_ipv4_does() {
    if !has_ipv6_loopback() {
        skip!("no ::1 on this machine");
    }
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    let mut endpoint = None;
    let _server = Server::start(tree.path(), |launch| endpoint = Some(launch.listen_ipv6()));
    let mut client = Client::connect(&endpoint.expect("endpoint")).expect("connect");
    assert_eq!(
        client.exchange("GET /hello.txt HTTP/1.1\r\nHost: [::1]:80\r\n\r\n").text(),
        "hello"
    );
}

#[test]
fn every_cut_of_a_request_into_two_gives_the_same_response() {
    let (_tree, server) = site();
    let request = b"GET /hello.txt?q HTTP/1.1\r\nHost: h\r\nAccept: */*\r\n\r\n";
    let mut client = server.connect();
    for at in 1..request.len() {
        client.send_split(request, at).expect("send");
        assert_eq!(client.receive().text(), "hello", "cut at {at}");
    }
    client.send_in_pieces(request, 1, std::time::Duration::ZERO).expect("send");
    assert_eq!(client.receive().text(), "hello", "byte by byte");
}

#[test]
fn a_client_that_has_finished_sending_still_gets_its_response() {
    let (_tree, server) = site();
    let mut client = server.connect();
    client.send("GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n");
    client.finish_sending().expect("shutdown");
    assert_eq!(client.receive().text(), "hello");
    client.assert_closed();
}

#[test]
fn curl_gets_what_is_there() {
    let (tree, server) = site();
    let large = patterned(5_000_000);
    tree.file("large.bin", &large);
    let url = server.url();
    let Some(answer) = curl([format!("{url}/large.bin")]) else { skip!("no curl") };
    assert!(answer.exit == 0 && answer.output == large, "{}", answer.errors);

    let twice = curl(["--fail", &format!("{url}/hello.txt"), &format!("{url}/with%20space.txt")]);
    assert_eq!(twice.expect("curl").output, b"hellospace");

    let followed = curl(["--location", &format!("{url}/deep/er")]).expect("curl");
    assert_eq!(followed.output, b"deeper", "{}", followed.errors);

    let head = curl(["--head", &format!("{url}/hello.txt")]).expect("curl");
    assert!(head.output.starts_with(b"HTTP/1.1 200 OK\r\n"), "{}", head.errors);

    let missing = curl(["--fail", &format!("{url}/none")]).expect("curl");
    assert_eq!(missing.exit, 22, "curl saw an error status: {}", missing.errors);
}
