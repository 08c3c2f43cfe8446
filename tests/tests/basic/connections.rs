//! Which connections there are, and how long they go on.

use std::time::Duration;

use afpa_testkit::{Client, Server, Tree, client::has_ipv6_loopback, skip, tree::patterned};

use crate::site;

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

/// RFC 9112 section 9.6: a server that closes while something is unread resets the connection, and that may destroy
/// the response. A client that asks for the end must not send more, but some do.
#[test]
fn what_follows_a_last_request_does_not_destroy_its_response() {
    let (_tree, server) = site();
    for behind in [2, 1000, 300_000] {
        let mut client = server.connect();
        let request = "GET /hello.txt HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        client.send([request.as_bytes(), &vec![b'x'; behind]].concat());
        assert_eq!(client.receive().text(), "hello");
        assert!(client.take_all().is_empty(), "{behind} bytes behind it: an orderly end");
    }
}

/// Bytes behind the last request come while earlier responses are on their way. A reset would destroy the part of these
/// responses that is still in the server's socket.
#[test]
fn what_follows_a_last_request_does_not_destroy_the_responses_before_it() {
    for (size, pinned) in [(1_000_000, false), (100_000, false), (30_000, true), (30_000, false)] {
        let (content, tree) = (patterned(size), Tree::new());
        tree.file("large.bin", &content);
        let server = Server::start(tree.path(), |launch| {
            if !pinned {
                launch.set(|settings| _ = settings.set("cache.pin_threshold", "\"0B\""));
            }
        });
        for pause in [Duration::ZERO, Duration::from_millis(20)] {
            let mut client = Client::connect_narrow(server.address(), 4096).unwrap();
            client.send("GET /large.bin HTTP/1.1\r\nHost: h\r\n\r\nGET /none HTTP/1.0\r\n\r\n");
            std::thread::sleep(pause);
            client.send("GET /none HTTP/1.1\r\nHost: h\r\n\r\n");
            assert!(client.receive().body == content, "{size} bytes, {pinned}");
            assert_eq!(client.receive().status, 404);
            assert!(client.take_all().is_empty(), "an orderly end");
        }
    }
}

#[test]
fn content_of_a_last_request_does_not_destroy_its_response() {
    let (_tree, server) = site();
    let mut client = server.connect();
    let fields = "Host: h\r\nConnection: close\r\nContent-Length: 300000\r\n";
    client.send(format!("GET /hello.txt HTTP/1.1\r\n{fields}\r\n"));
    assert_eq!(client.receive().text(), "hello", "content is not waited for");
    client.send_in_pieces(&[b'x'; 300_000], 10_000, Duration::ZERO).expect("no reset meets it");
    assert!(client.take_all().is_empty(), "an orderly end");
}

/// The server has closed before the client has read much.
#[test]
fn a_long_last_response_arrives_whole() {
    let tree = Tree::new();
    tree.file("large.bin", patterned(2_000_000));
    let server = Server::start(tree.path(), |_| {});
    let mut client = server.connect();
    let response = client.get_with("/large.bin", "Connection: close\r\n");
    assert!(response.body == patterned(2_000_000));
    assert!(client.take_all().is_empty(), "an orderly end");
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
    client.send_in_pieces(request, 1, Duration::ZERO).expect("send");
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
