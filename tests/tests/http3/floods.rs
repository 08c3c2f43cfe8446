//! Clients that break rules, or ask for too much.

use std::fs;
use std::time::{Duration, Instant};

use afpa_testkit::{Launch, eventually};
use afpa_tests::tls::{Authority, TlsServer};
use serde_json::json;

use crate::{both, site};

const FRAME_UNEXPECTED: u64 = 0x105;
const EXCESSIVE_LOAD: u64 = 0x107;
const MESSAGE_ERROR: u64 = 0x10e;

#[test]
fn malformed_requests_end_their_stream_and_broken_frames_the_connection() {
    let (tree, authority) = (site(), Authority::new());
    let log = |launch: &mut Launch| {
        let log = launch.home().join("access.log");
        launch.arg("--access-log").arg(log);
    };
    let Some((server, mut client)) = both(&authority, &tree, "", "", log) else { return };
    let mut raw = |on: &str, bytes: &str, ends: bool| {
        let order = json!({"do": "raw", "on": on, "bytes": bytes, "ends": ends, "wait": 60_000});
        client.one(&order)
    };
    // A field section without a path: `:method GET`, `:scheme https`.
    let got = raw("a", "01040000d1d7", true);
    assert_eq!(got["code"], MESSAGE_ERROR, "{got}");
    // DATA before HEADERS.
    let got = raw("b", "0003616263", true);
    assert_eq!(got["code"], FRAME_UNEXPECTED, "{got}");
    // A reference to the dynamic table, which there is not: QPACK_DECOMPRESSION_FAILED.
    let got = raw("c", "0103010080", true);
    assert_eq!(got["code"], 0x200, "{got}");
    // A stream that ends within a frame: H3_FRAME_ERROR.
    let got = raw("d", "010a0000d1", true);
    assert_eq!(got["code"], 0x106, "{got}");
    assert_eq!(client.get("/hello.txt")["status"], 200, "only the stream has ended");
    assert_eq!(server.number("/connections/http3_faults"), 4);
    eventually("the log names what was no request", || {
        let log = fs::read_to_string(server.server.home().join("access.log")).unwrap_or_default();
        log.lines().any(|line| line.contains("\"GET - HTTP/3.0\" 400 0"))
    });
}

#[test]
fn a_head_that_does_not_come_whole_is_answered_with_408_or_ends() {
    let (tree, authority) = (site(), Authority::new());
    let times = "[timeouts]\nhead = \"1s\"\n";
    let Some((_server, mut client)) = both(&authority, &tree, times, "", |_| {}) else { return };
    let start = Instant::now();
    let order = json!({"do": "raw", "on": "a", "bytes": "010a0000d1", "wait": 30_000});
    let got = client.one(&order);
    assert!(got["error"] != "" || got["length"].as_u64() > Some(0), "{got}");
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    assert_eq!(client.get("/hello.txt")["status"], 200);
}

#[test]
fn resets_and_streams_that_say_nothing_end_the_connection_in_the_end() {
    let (tree, authority) = (site(), Authority::new());
    let Some((server, mut client)) = both(&authority, &tree, "", "", |_| {}) else { return };
    let ask =
        json!({"do": "resets", "on": "a", "path": "/large.bin", "count": 20_000, "wait": 60_000});
    let got = client.one(&ask);
    assert_eq!(got["code"], EXCESSIVE_LOAD, "{got}");
    // Streams of an unknown type, and such whose type never comes.
    for (on, bytes) in [("b", "21"), ("c", "")] {
        // Without it the client may find no stream left for its own settings, and end the connection itself.
        assert_eq!(
            client.one(&json!({"do": "ask", "on": on, "path": "/hello.txt"}))["status"],
            200
        );
        let got = client.one(&json!({
            "do": "uni", "on": on, "bare": true, "bytes": bytes, "ends": true, "count": 20_000, "wait": 60_000,
        }));
        assert_eq!(got["code"], EXCESSIVE_LOAD, "{got}");
    }
    assert_eq!(client.one(&json!({"do": "ask", "on": "d", "path": "/hello.txt"}))["status"], 200);
    assert!(server.number("/connections/http3_faults") >= 3);
}

/// As many as a client may cancel in a short time: each one frees its stream.
#[test]
fn a_client_that_cancels_requests_can_go_on_asking() {
    let (tree, authority) = (site(), Authority::new());
    let http2 = "[http2]\nstreams = 10\n";
    let Some((_server, mut client)) = both(&authority, &tree, http2, "", |_| {}) else { return };
    let ask = json!({"do": "resets", "on": "a", "path": "/large.bin", "count": 50, "wait": 200});
    let got = client.one(&ask);
    assert_eq!(got["error"], "", "{got}");
    let all = client.all(&json!({"do": "ask", "on": "a", "path": "/hello.txt", "count": 30}));
    assert!(all.iter().all(|got| got["status"] == 200), "{all:?}");
}

#[test]
fn a_client_that_reads_nothing_costs_little_and_is_cut_off() {
    let (tree, authority) = (site(), Authority::new());
    tree.file("huge.bin", afpa_testkit::tree::patterned(40_000_000));
    let times = "[timeouts]\nwrite = \"8s\"\nidle = \"8s\"\n";
    let Some((server, mut client)) = both(&authority, &tree, times, "", |launch| {
        launch.arg("--workers").arg("1");
    }) else {
        return;
    };
    assert_eq!(client.get("/huge.bin")["status"], 200);
    let process = server.server.process();
    let before = process.resident().expect("its memory");
    let all = client.all(&json!({"do": "stall", "on": "b", "path": "/huge.bin", "count": 50}));
    assert!(all.iter().all(|got| got["status"] == 200), "{all:?}");
    let more = process.resident().expect("its memory").saturating_sub(before);
    eprintln!("{more} bytes of memory for 50 answers that nobody reads");
    assert!(more < 20_000_000, "{more} bytes of memory for 50 answers that nobody reads");
    eventually("the connection ends", || server.number("/connections/open") == 0);
}

#[test]
fn limits_of_connections_and_the_police_hold() {
    let (tree, authority) = (site(), Authority::new());
    let limits = "[limits]\nconnections_per_client = 5\n";
    let Some((server, mut client)) = both(&authority, &tree, limits, "", |_| {}) else { return };
    let all = client.all(&json!({"do": "open", "on": "many", "count": 8}));
    let opened = all.iter().filter(|got| got["error"] == "").count();
    assert!((4..=5).contains(&opened), "{all:?}");
    assert!(server.number("/connections/refused") >= 3);
    let denied = "[police]\ndeny = [\"127.0.0.0/8\"]\n";
    let Some((server, mut client)) = both(&authority, &tree, denied, "", |_| {}) else { return };
    let got = client.one(&json!({"do": "open", "on": "a"}));
    assert_ne!(got["error"], "", "{got}");
    assert_eq!(server.number("/connections/http3"), 0);
}

/// First packets in the name of a client, by somebody who hears no answer: each test's client has the same address.
#[test]
fn a_client_whose_address_others_forge_is_served_all_the_same() {
    let (tree, authority) = (site(), Authority::new());
    let limits = "[limits]\nconnections_per_client = 40\n";
    let Some((server, mut client)) = both(&authority, &tree, limits, "", |_| {}) else { return };
    let knocked = client.one(&json!({"do": "knock", "count": 300}));
    assert_eq!(knocked["error"], "", "{knocked}");
    let by_tcp = |server: &TlsServer| {
        let (is_served, said) = server.curl(&authority, &[&server.url("/hello.txt")]);
        assert!(is_served && said == b"hello", "{}", String::from_utf8_lossy(&said));
    };
    by_tcp(&server);
    assert_eq!(client.get("/hello.txt")["status"], 200);
    // A quarter of its share begins at once; further clients of the address have to prove it.
    let open = server.number("/connections/open");
    assert!(open <= 12, "{open} connections");
    let all = client.all(&json!({"do": "open", "on": "many", "count": 45}));
    let opened = all.iter().filter(|got| got["error"] == "").count();
    assert_eq!(opened, 39, "the limit holds for those that have proved it");

    let rates = "[police]\nclient_connections_per_second = 1\nclient_connections_burst = 4\n";
    let Some((server, mut client)) = both(&authority, &tree, rates, "", |_| {}) else { return };
    client.one(&json!({"do": "knock", "count": 50}));
    by_tcp(&server);
    assert_eq!(client.get("/hello.txt")["status"], 200);
    assert_eq!(server.number("/connections/refused"), 0);
    client.all(&json!({"do": "open", "on": "many", "count": 8}));
    assert!(server.number("/connections/refused") > 0, "rates hold for those that have proved it");
}

#[test]
fn strange_datagrams_are_answered_with_versions_or_not_at_all() {
    let (tree, authority) = (site(), Authority::new());
    let Some((server, mut client)) = both(&authority, &tree, "", "", |_| {}) else { return };
    // Datagrams of no known version, and of none at all.
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("bound");
    let mut strange = vec![0_u8; 1200];
    strange[..6].copy_from_slice(&[0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8]);
    strange[14] = 8;
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a time-out");
    // A core whose first datagram this is may not have begun.
    let mut room = [0; 1500];
    let mut n = 0;
    eventually("versions are negotiated", || {
        socket.send_to(&strange, server.tls).expect("sent");
        n = socket.recv(&mut room).unwrap_or_default();
        n > 0
    });
    assert!(n < 100 && room[0] & 0x80 != 0 && room[1..5] == [0; 4], "{:?}", &room[..n]);
    assert!(room[..n].windows(4).any(|version| version == [0, 0, 0, 1]));
    for length in [0, 1, 20, 1199, 1400] {
        socket.send_to(&vec![0xc3; length], server.tls).expect("sent");
        socket.send_to(&vec![0x43; length], server.tls).expect("sent");
    }
    assert_eq!(client.get("/hello.txt")["status"], 200);
}
