//! A client that sends or reads too slowly is cut off at its time limit.

use std::{
    thread,
    time::{Duration, Instant},
};

use afpa_testkit::{Client, Tree, tree::patterned};

use crate::{server, small_site};

const SHORT: Duration = Duration::from_millis(500);

/// A time-out of half a second may take this long on a busy machine.
const LATE: Duration = Duration::from_secs(30);

#[test]
fn a_head_that_dribbles_is_408_when_its_time_is_over() {
    let tree = small_site();
    let server = server(&tree, |settings| {
        settings.head_time(SHORT);
    });
    let mut clients: Vec<Client> = (0..30).map(|_| server.connect()).collect();
    let start = Instant::now();
    let head = b"GET /hello.txt HTTP/1.1\r\nHost: h\r\nX-Slow: ".iter().chain(&[b'x'; 200]);
    for byte in head {
        for client in &mut clients {
            // The server may have lost its patience.
            let _ = client.try_send([*byte]);
        }
        if start.elapsed() > SHORT {
            break;
        }
        // Everybody else is served at once meanwhile.
        assert_eq!(server.get("/hello.txt").status, 200);
        thread::sleep(Duration::from_millis(10));
    }
    for mut client in clients {
        let response = client.receive();
        assert_eq!(response.status, 408, "{response:?}");
        assert!(response.says_close());
        client.assert_closed();
    }
    let took = start.elapsed();
    assert!(SHORT <= took && took < LATE, "{took:?}");
}

#[test]
fn time_runs_from_the_first_byte_of_a_head_not_from_the_last() {
    let tree = small_site();
    let server = server(&tree, |settings| {
        settings.head_time(SHORT).idle_time(Duration::from_secs(30));
    });
    let mut client = server.connect();
    assert_eq!(client.get("/hello.txt").status, 200);
    // A second request on the same connection gets no more time than the first.
    let start = Instant::now();
    let mut sent = client.try_send("GET /hello.txt HTTP/1.1\r\n");
    while sent.is_ok() && start.elapsed() < LATE {
        thread::sleep(Duration::from_millis(50));
        sent = client.try_send("A: b\r\n");
    }
    let took = start.elapsed();
    assert!(SHORT <= took && took < LATE, "{took:?}");
}

#[test]
fn a_connection_at_rest_is_closed_in_silence() {
    let tree = small_site();
    let server = server(&tree, |settings| {
        settings.idle_time(SHORT).head_time(SHORT);
    });
    let start = Instant::now();
    let mut fresh = server.connect();
    let mut used = server.connect();
    assert_eq!(used.get("/hello.txt").status, 200);
    used.assert_closed();
    fresh.assert_closed();
    let took = start.elapsed();
    assert!(SHORT / 2 <= took && took < LATE, "{took:?}");
}

#[test]
fn a_body_that_stops_coming_ends_the_connection() {
    let tree = small_site();
    let server = server(&tree, |settings| {
        settings.body_time(SHORT);
    });
    for head in ["Content-Length: 1000", "Transfer-Encoding: chunked"] {
        let mut client = server.connect();
        let start = Instant::now();
        client.send(format!("POST /hello.txt HTTP/1.1\r\nHost: h\r\n{head}\r\n\r\n3\r\nabc"));
        let bytes = client.read_to_close().expect("the server closes");
        let took = start.elapsed();
        assert!(SHORT / 2 <= took && took < LATE, "{head}: {took:?}");
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains(" 405 ") || text.contains(" 408 "), "{head}: {text:?}");
        assert!(!text.contains(" 200 "), "{head}: {text:?}");
    }
}

#[test]
fn a_reader_that_stands_still_is_cut_off_and_a_slow_one_is_not() {
    const PAST_IT: Duration = Duration::from_secs(5);
    let tree = Tree::new();
    let large = patterned(4_000_000);
    tree.file("large.bin", &large);
    let server = server(&tree, |settings| {
        settings.write_time(Duration::from_secs(2));
    });
    let ask = "GET /large.bin HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    let mut still = Client::connect_narrow(server.address(), 4096).expect("connect");
    let mut slow = Client::connect_narrow(server.address(), 4096).expect("connect");
    still.send(ask);
    slow.send(ask);
    let start = Instant::now();
    let mut got = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let count = slow.read_raw(&mut piece).expect("the slow reader is not cut off");
        if count == 0 {
            break;
        }
        got.extend_from_slice(&piece[..count]);
        if start.elapsed() < PAST_IT {
            thread::sleep(Duration::from_millis(6));
        }
    }
    thread::sleep(PAST_IT.saturating_sub(start.elapsed()));
    let (count, took) = (got.len(), start.elapsed());
    assert!(got.ends_with(&large), "the slow reader got {count} bytes in {took:?}, not all");
    let bytes = still.read_to_close().expect("the still one is cut off");
    assert!(bytes.len() < large.len(), "{} bytes", bytes.len());
}
