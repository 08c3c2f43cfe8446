//! The cases of the interoperability runner of QUIC, over ways that lose, repeat and delay datagrams.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use afpa_testkit::tree::patterned;
use afpa_testkit::{Tree, eventually};
use afpa_tests::proxy::{Raw, read_content, read_head};
use afpa_tests::quic::{QuicClient, sum};
use afpa_tests::tls::Authority;
use afpa_tests::way::{Fate, Way, bad};
use serde_json::{Value, json};

use crate::{LARGE, both, site};

const MIDDLE: usize = 100_000;

/// Requests of all kinds, and the sums of their answers.
fn parts(tree: &Tree) -> Value {
    let (middle, large) = (patterned(MIDDLE), patterned(LARGE));
    tree.file("middle.bin", &middle);
    json!([
        {"path": "/hello.txt", "status": 200, "sum": sum(b"hello")},
        {"path": "/empty.txt", "status": 200, "sum": sum(b"")},
        {"path": "/", "status": 200, "sum": sum(b"index")},
        {"path": "/middle.bin", "status": 200, "sum": sum(&middle)},
        {"path": "/large.bin", "range": "bytes=1000-50999", "status": 206, "sum": sum(&large[1000..51_000])},
        {"path": "/large.bin", "method": "HEAD", "status": 200, "sum": sum(b"")},
        {"path": "/none", "status": 404},
        {"path": "/app/x", "method": "POST", "content": 20_000, "status": 200, "sum": sum(b"20000")},
        {"path": "/app/x", "status": 200, "sum": sum(b"0")},
    ])
}

/// Answers with the length of the content.
fn counting() -> Raw {
    Raw::start(|mut stream| {
        while let Some(head) = read_head(&mut stream) {
            let length = match head.starts_with("GET") {
                true => 0,
                false => match read_content(&mut stream, &head) {
                    Some(content) => content.matches('z').count(),
                    None => return,
                },
            };
            let said = length.to_string();
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{said}", said.len());
            if std::io::Write::write_all(&mut stream, answer.as_bytes()).is_err() {
                return;
            }
        }
    })
}

/// None is wrong, and none hangs. `AFPA_REQUESTS` wants more than those of every run.
#[test]
fn mixed_requests_are_answered_over_bad_networks() {
    let all = std::env::var("AFPA_REQUESTS").ok().and_then(|text| text.parse().ok());
    let each = all.unwrap_or(1200_u64) / 4;
    let (tree, authority, app) = (site(), Authority::new(), counting());
    let parts = parts(&tree);
    let path = format!("[[site.path]]\nprefix = \"/app/\"\nto = \"{}\"\n", app.to());
    let Some((server, mut client)) = both(&authority, &tree, "", &path, |_| {}) else { return };
    for (seed, network) in [(1, [0, 0, 0]), (2, [3, 0, 0]), (3, [8, 0, 0]), (4, [1, 5, 10])] {
        let way = Way::to(server.tls, bad(seed, network));
        let begun = Instant::now();
        let got = client.one(&json!({
            "do": "mixed", "to": way.address().to_string(), "count": 10, "requests": each, "parts": parts,
        }));
        eprintln!("{network:?}: {} in {:?}", got["asked"], begun.elapsed());
        assert_eq!((&got["error"], &got["lost"]), (&json!(""), &json!(0)), "{network:?}: {got}");
        assert_eq!(got["asked"], each, "{network:?}: {got}");
    }
    assert_eq!(server.number("/connections/http3_faults"), 0);
}

#[test]
fn handshakes_are_completed_where_a_fifth_of_all_datagrams_is_lost() {
    let (tree, authority) = (site(), Authority::new());
    let times = "[timeouts]\nhead = \"30s\"\n";
    let Some((server, mut client)) = both(&authority, &tree, times, "", |_| {}) else { return };
    let way = Way::to(server.tls, bad(7, [20, 0, 0]));
    let got = client.one(&json!({
        "do": "mixed", "to": way.address().to_string(), "count": 20, "requests": 40,
        "parts": [{"path": "/hello.txt", "status": 200, "sum": sum(b"hello")}],
    }));
    assert_eq!((&got["error"], &got["asked"]), (&json!(""), &json!(40)), "{got}");
    assert!(server.number("/connections/http3") >= 20);
}

#[test]
fn a_download_goes_on_behind_two_seconds_without_a_network() {
    let (tree, authority) = (site(), Authority::new());
    let Some((server, mut client)) = both(&authority, &tree, "", "", |_| {}) else { return };
    let dark: Arc<Mutex<Option<Instant>>> = Arc::default();
    let since = Arc::clone(&dark);
    let way = Way::to(server.tls, move |passing| {
        let mut since = since.lock().expect("one at a time");
        if !passing.to_server && passing.number == 500 {
            *since = Some(Instant::now());
        }
        match since.is_some_and(|since| since.elapsed() < Duration::from_secs(2)) {
            true => Fate::Lose,
            false => Fate::Pass,
        }
    });
    let order =
        json!({"do": "ask", "on": "a", "to": way.address().to_string(), "path": "/large.bin"});
    let got = client.one(&order);
    assert_eq!((&got["error"], &got["sum"]), (&json!(""), &json!(sum(&patterned(LARGE)))), "{got}");
    let dark = dark.lock().expect("one at a time").expect("it was dark");
    assert!(dark.elapsed() >= Duration::from_secs(2));
}

/// RFC 9000 section 8.1: an address that is not proven gets three times what came from it, retransmissions included.
#[test]
fn a_client_that_has_not_proved_its_address_gets_three_times_its_own_bytes() {
    let (tree, authority) = (site(), Authority::new());
    let Some((server, mut client)) = both(&authority, &tree, "", "", |_| {}) else { return };
    let counts: Arc<[AtomicU64; 2]> = Arc::default();
    let counted = Arc::clone(&counts);
    let way = Way::to(server.tls, move |passing| {
        let bytes = passing.bytes.len() as u64;
        match passing.to_server {
            true if passing.number < 2 => {
                counted[0].fetch_add(bytes, Ordering::Relaxed);
                Fate::Pass
            }
            true => Fate::Lose,
            false => {
                counted[1].fetch_add(bytes, Ordering::Relaxed);
                Fate::Lose
            }
        }
    });
    client.order(&json!({"do": "open", "on": "a", "to": way.address().to_string()}));
    let [there, back] =
        [0, 1].map(|at| move |counts: &[AtomicU64; 2]| counts[at].load(Ordering::Relaxed));
    eventually("it answers", || back(&counts) > 0);
    // Its first retransmissions come within this time.
    std::thread::sleep(Duration::from_secs(4));
    let (there, back) = (there(&counts), back(&counts));
    eprintln!("{back} bytes for {there}");
    assert!(there >= 1200 && back <= 3 * there, "{back} bytes for {there}");
}

#[test]
fn keys_are_updated_on_the_way() {
    let (tree, authority) = (site(), Authority::new());
    let Some((_server, mut client)) = both(&authority, &tree, "", "", |_| {}) else { return };
    let mut got = json!(null);
    // The client begins an update with its hundredth packet.
    eventually("keys are updated", || {
        got = client.get("/large.bin");
        assert_eq!(got["sum"], sum(&patterned(LARGE)), "{got}");
        got["updates"].as_i64() > Some(0)
    });
    assert_eq!(client.get("/hello.txt")["status"], 200);
}

#[test]
fn a_client_may_prefer_chacha20() {
    let (tree, authority) = (site(), Authority::new());
    let Some((server, _)) = both(&authority, &tree, "", "", |_| {}) else { return };
    // So does one whose processor has no AES.
    let slow = [("GODEBUG", "cpu.aes=off,cpu.pclmulqdq=off")];
    let mut client = QuicClient::start_with(&authority, server.tls, &slow).expect("it was built");
    let got = client.get("/large.bin");
    assert_eq!(
        (&got["status"], &got["sum"]),
        (&json!(200), &json!(sum(&patterned(LARGE)))),
        "{got}"
    );
    match cfg!(target_arch = "x86_64") {
        true => assert_eq!(got["cipher"], "TLS_CHACHA20_POLY1305_SHA256"),
        false => eprintln!("SKIP: a client of this machine cannot be made to prefer it"),
    }
}

#[test]
fn addresses_are_proven_by_retry_where_connections_have_a_rate() {
    let (tree, authority) = (site(), Authority::new());
    let rate = "[police]\nclient_connections_per_second = 1000\nclient_connections_burst = 1000\n";
    for (sections, retries) in [(rate, 1), ("", 0)] {
        let Some((server, mut client)) = both(&authority, &tree, sections, "", |_| {}) else {
            return;
        };
        let got = client.get("/hello.txt");
        assert_eq!((&got["status"], &got["retries"]), (&json!(200), &json!(retries)), "{got}");
        // The token is lost with the first packet that bears it, and so on.
        let way = Way::to(server.tls, bad(5, [10, 5, 5]));
        let order =
            json!({"do": "ask", "on": "b", "to": way.address().to_string(), "path": "/hello.txt"});
        let got = client.one(&order);
        assert_eq!((&got["status"], &got["retries"]), (&json!(200), &json!(retries)), "{got}");
    }
}
