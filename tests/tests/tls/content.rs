//! Content arrives through a connection of TLS as it was sent.

use std::time::Duration;

use afpa_testkit::{Client, tree::patterned};
use afpa_tests::tls::{Authority, Plan, TlsServer};

use crate::site;

#[test]
fn pipelined_requests_ranges_and_long_files_arrive_byte_for_byte() {
    let (tree, authority) = (site(), Authority::new());
    let server = TlsServer::start(&authority, tree.path());
    let way = authority.way(&server);
    let mut client = way.connect();
    client.send("GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n".repeat(200));
    for _ in 0..200 {
        assert_eq!(client.receive().text(), "hello");
    }
    let large = patterned(10_000_000);
    for (first, last) in [(0, 0), (1, 20_000), (65_535, 65_536), (9_000_001, 9_999_999)] {
        let response = client.get_with("/large.bin", &format!("Range: bytes={first}-{last}\r\n"));
        assert_eq!(response.status, 206);
        assert!(response.body == large[first..=last], "{first}-{last}");
    }
    assert!(client.get("/large.bin").body == large);
    client.assert_open("/hello.txt");
}

#[test]
fn both_ways_of_waiting_carry_tls() {
    let (tree, authority) = (site(), Authority::new());
    for io in ["readiness", "completion"] {
        let launch = Box::new(move |launch: &mut afpa_testkit::Launch| {
            launch.arg("--io").arg(io);
        });
        let plan = Plan { launch, ..Plan::default() };
        let server = TlsServer::with(&authority, tree.path(), plan);
        let way = authority.way(&server);
        let mut clients: Vec<Client> = (0..8).map(|_| way.connect()).collect();
        for _ in 0..20 {
            for client in &mut clients {
                client.send("GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n");
            }
            for client in &mut clients {
                assert_eq!(client.receive().text(), "hello", "{io}");
            }
        }
        let mut client = clients.remove(0);
        assert!(client.get("/medium.bin").body == patterned(200_000), "{io}");
        assert!(client.get("/large.bin").body == patterned(10_000_000), "{io}");
        client.assert_open("/hello.txt");
        let response = client.get_with("/hello.txt", "Connection: close\r\n");
        assert_eq!(response.text(), "hello");
        client.assert_closed();
    }
}

#[test]
fn a_slow_reader_gets_everything_and_others_do_not_wait_for_it() {
    let (tree, authority) = (site(), Authority::new());
    let server = TlsServer::start(&authority, tree.path());
    let way = authority.way(&server);
    let mut slow = way.connect();
    slow.send("GET /large.bin HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    let mut got = slow.take(1000);
    for _ in 0..5 {
        way.connect().assert_open("/hello.txt");
    }
    slow.set_patience(Duration::from_secs(20)).expect("set");
    got.extend(slow.read_to_close().expect("the rest"));
    assert!(got.ends_with(&patterned(10_000_000)));
}

#[test]
fn content_of_requests_arrives_and_the_connection_goes_on() {
    let (tree, authority) = (site(), Authority::new());
    let server = TlsServer::start(&authority, tree.path());
    let way = authority.way(&server);
    let mut client = way.connect();
    let head = "GET /hello.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 300000\r\n\r\n";
    client.send([head.as_bytes(), &patterned(300_000)].concat());
    assert_eq!(client.receive().text(), "hello");
    client.assert_open("/hello.txt");
}

/// A client that sees no close_notify cannot tell an end from an attack (RFC 8446, section 6.1).
#[test]
fn a_connection_ends_with_close_notify_after_a_response_and_after_a_pause() {
    let (tree, authority) = (site(), Authority::new());
    let sections = "[timeouts]\nidle = \"300ms\"\n".to_owned();
    let server = TlsServer::with(&authority, tree.path(), Plan { sections, ..Plan::default() });
    let request = "GET /hello.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    for asks in [request.to_owned(), request.replace("close", "keep-alive")] {
        for version in ["-tls1_2", "-tls1_3"] {
            let arguments = ["-ign_eof", "-msg", version];
            let said = server.openssl(&authority, &arguments, &asks);
            let alert = said.lines().any(|l| l.starts_with("<<<") && l.contains("close_notify"));
            assert!(alert && said.contains("hello"), "{said}");
        }
    }
}
