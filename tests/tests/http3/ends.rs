//! The ends of connections: idle ones, and those of a server that ends, or gives its place to the next one.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use afpa_testkit::eventually;
use afpa_tests::proxy::{Raw, read_head};
use afpa_tests::quic::sum;
use afpa_tests::tls::Authority;
use rustix::process::Signal;
use serde_json::json;

use crate::early::Gate;
use crate::{LARGE, both, site};

/// H3_NO_ERROR and H3_REQUEST_REJECTED.
const NO_ERROR: u64 = 0x100;
const REQUEST_REJECTED: u64 = 0x10b;

#[test]
fn an_idle_connection_ends_although_its_client_pings() {
    let (tree, authority) = (site(), Authority::new());
    let idle = "[timeouts]\nidle = \"7s\"\n";
    let Some((server, mut client)) = both(&authority, &tree, idle, "", |_| {}) else { return };
    assert_eq!(client.get("/hello.txt")["status"], 200);
    let start = Instant::now();
    let got = client.one(&json!({"do": "end", "on": "a", "wait": 60_000}));
    assert_eq!(got["code"], NO_ERROR, "{got}");
    assert!(start.elapsed() > Duration::from_secs(5), "{:?}", start.elapsed());
    eventually("its place is free", || server.number("/connections/open") == 0);
}

#[test]
fn a_server_that_ends_answers_what_is_due() {
    let (tree, authority) = (site(), Authority::new());
    let (told, asked) = std::sync::mpsc::channel();
    let backend = Raw::start(move |mut stream| {
        while read_head(&mut stream).is_some() {
            let _ = told.send(());
            std::thread::sleep(Duration::from_secs(1));
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n");
            let _ = stream.write_all(&[b'x'; 2_000_000]);
        }
    });
    let path = format!("[[site.path]]\nprefix = \"/app/\"\nto = \"{}\"\n", backend.to());
    let Some((mut server, mut client)) = both(&authority, &tree, "", &path, |_| {}) else { return };
    assert!(
        client
            .all(&json!({"do": "open", "on": "idle", "count": 5}))
            .iter()
            .all(|got| got["error"] == "")
    );
    client.order(&json!({"do": "ask", "on": "a", "path": "/app/slow"}));
    asked.recv_timeout(Duration::from_secs(20)).expect("it is asked");
    server.server.signal(Signal::QUIT);
    let got = client.answers().remove(0);
    assert_eq!((&got["status"], &got["error"]), (&json!(200), &json!("")), "{got}");
    assert_eq!(got["sum"], sum(&[b'x'; 2_000_000]));
    assert!(server.server.wait(Duration::from_secs(20)).is_some_and(|status| status.success()));
    let got = client.one(&json!({"do": "end", "on": "a", "wait": 5000}));
    assert_eq!(got["code"], NO_ERROR, "{got}");
}

/// Its client has sent a request of which the server knows nothing. An answer says that nobody has looked at it.
#[test]
fn a_client_whose_handshake_is_nearly_complete_learns_that_its_request_was_not_looked_at() {
    let (tree, authority) = (site(), Authority::new());
    let Some((mut server, mut client)) = both(&authority, &tree, "", "", |_| {}) else { return };
    let gate = Gate::to(server.tls);
    client.order(&json!({"do": "ask", "on": "a", "to": gate.to_it(), "path": "/hello.txt"}));
    eventually("its first packets have come", || server.number("/connections/accepted") > 0);
    std::thread::sleep(Duration::from_millis(300));
    server.server.signal(Signal::QUIT);
    std::thread::sleep(Duration::from_millis(100));
    gate.open();
    let got = client.answers().remove(0);
    let is_told = got["code"] == REQUEST_REJECTED
        || got["error"].as_str().is_some_and(|said| said.contains("graceful shutdown"));
    assert!(is_told, "{got}");
    assert!(server.server.wait(Duration::from_secs(20)).is_some_and(|status| status.success()));
}

#[test]
fn idle_connections_hold_up_no_end_and_learn_of_it() {
    for signal in [Signal::QUIT, Signal::TERM] {
        ends_with_idle_connections(signal);
    }
}

fn ends_with_idle_connections(signal: Signal) {
    let (tree, authority) = (site(), Authority::new());
    let Some((mut server, mut client)) = both(&authority, &tree, "", "", |_| {}) else { return };
    let opened = client.all(&json!({"do": "open", "on": "idle", "count": 50}));
    assert!(opened.iter().all(|got| got["error"] == ""), "{opened:?}");
    let start = Instant::now();
    server.server.signal(signal);
    assert!(server.server.wait(Duration::from_secs(20)).is_some_and(|status| status.success()));
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    let got = client.one(&json!({"do": "end", "on": "idle-0", "wait": 5000}));
    assert_eq!(got["code"], NO_ERROR, "{got}");
}

#[test]
fn the_next_process_serves_on_the_same_sockets() {
    let (tree, authority) = (site(), Authority::new());
    let Some((server, mut client)) = both(&authority, &tree, "", "", |_| {}) else { return };
    assert_eq!(client.get("/hello.txt")["status"], 200);
    let old = server.server.pid();
    server.server.signal(Signal::USR2);
    let mut next = old;
    eventually("the next process takes orders", || {
        next = server.number("/pid") as u32;
        next != 0 && next != old
    });
    let ended = client.one(&json!({"do": "end", "on": "a", "wait": 20_000}));
    assert_eq!(ended["code"], NO_ERROR, "{ended}");
    let mut tries = 0;
    let mut got = json!(null);
    eventually("the next process answers", || {
        tries += 1;
        let on = format!("next-{tries}");
        got = client.one(&json!({"do": "ask", "on": on, "path": "/large.bin"}));
        got["status"] == 200
    });
    assert_eq!((&got["length"], &got["error"]), (&json!(LARGE), &json!("")), "{got}");
    let pid = rustix::process::Pid::from_raw(next.cast_signed()).expect("a process id");
    rustix::process::kill_process(pid, Signal::TERM).expect("it runs");
    eventually("it has ended", || rustix::process::test_kill_process(pid).is_err());
}

#[test]
fn an_idle_endpoint_uses_no_time_and_little_memory() {
    const COUNT: u64 = 1000;
    let (tree, authority) = (site(), Authority::new());
    let limits = "[limits]\nconnections_per_client = 10000\n";
    let Some((server, mut client)) = both(&authority, &tree, limits, "", |launch| {
        launch.arg("--workers").arg("1");
    }) else {
        return;
    };
    assert_eq!(client.get("/hello.txt")["status"], 200);
    let process = server.server.process();
    let before = process.resident().expect("its memory");
    let opened = client.all(&json!({"do": "open", "on": "idle", "count": COUNT}));
    assert!(
        opened.iter().all(|got| got["error"] == ""),
        "{:?}",
        opened.iter().find(|got| got["error"] != "")
    );
    let each = (process.resident().expect("its memory") - before) / COUNT;
    eprintln!("{each} bytes of memory for each idle connection");
    assert!(each < 100_000, "{each} bytes for each idle connection");
    drop(client);
    // Their client is gone without a word: the connections are asked for signs of life, ever more seldom.
    std::thread::sleep(Duration::from_secs(2));
    let ticks = process.processor_ticks().expect("its time");
    std::thread::sleep(Duration::from_secs(3));
    let ticks = process.processor_ticks().expect("its time") - ticks;
    assert!(ticks < 60, "{ticks} ticks of the processor in three seconds");
}

/// A download that goes on has the sockets of the address, to which the datagrams of others still come.
#[test]
fn an_address_that_comes_back_is_served_while_a_connection_of_before_ends() {
    let (tree, authority) = (site(), Authority::new());
    let Some((server, mut client)) = both(&authority, &tree, "", "", |launch| {
        launch.arg("--workers").arg("3");
    }) else {
        return;
    };
    let stall = json!({"do": "stall", "on": "a", "path": "/large.bin"});
    assert_eq!(client.one(&stall)["status"], 200);
    let file = server.server.configuration();
    let text = std::fs::read_to_string(&file).expect("read");
    let without = text.replace(&format!("tls = [\"{}\"]\n", server.tls), "");
    assert_ne!(text, without);
    let listens = || TcpStream::connect(server.tls).is_ok();
    for time in 0..2 {
        for (text, is_there) in [(&without, false), (&text, true)] {
            std::fs::write(&file, text).expect("written");
            server.server.signal(Signal::HUP);
            eventually("the address is as configured", || listens() == is_there);
        }
        let order = json!({"do": "open", "on": format!("many-{time}"), "count": 15});
        let opened = client.all(&order);
        assert!(opened.iter().all(|got| got["error"] == ""), "{time}: {opened:?}");
        let ask = json!({"do": "ask", "on": format!("many-{time}-3"), "path": "/hello.txt"});
        assert_eq!(client.one(&ask)["status"], 200, "{time}");
    }
}

#[test]
fn an_address_that_gets_tls_by_a_reload_is_told_to_be_without_http_3() {
    let (tree, authority) = (site(), Authority::new());
    let Some((server, _client)) = both(&authority, &tree, "", "", |_| {}) else { return };
    let file = server.server.configuration();
    let text = std::fs::read_to_string(&file).expect("read");
    let both = text.replace("\"]\ntls = [\"", "\", \"").replace("listen = [", "tls = [");
    assert_ne!(text, both);
    std::fs::write(&file, both).expect("written");
    server.server.signal(Signal::HUP);
    eventually("it is told", || {
        server.server.log().contains("the running process has bound it without TLS")
    });
}
