//! Requests that do not wait for answers.

use std::fmt::Write;

use afpa_testkit::{Asked, Server, Tree, tree::patterned};

use crate::site;

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
