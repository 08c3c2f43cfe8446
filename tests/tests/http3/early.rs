//! Early data (0-RTT) by HTTP/3: answered before the handshake is complete where that harms nobody, and replays of it.

use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afpa_testkit::{Tree, eventually};
use afpa_tests::proxy::{Raw, read_head};
use afpa_tests::quic::QuicClient;
use afpa_tests::tls::{Authority, TlsServer};
use afpa_tests::way::{Fate, Way, is_behind_an_answer};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::steering::Next;
use crate::{both, site};

/// Sessions with which a client tries its luck.
const TRIES: u64 = 6;

/// The setting.
const ON: &str = "[tls]\nearly_data = true\n";

/// A way on which clients' handshakes cannot be completed until it is opened.
pub(crate) struct Gate {
    way: Way,
    is_open: Arc<AtomicBool>,
    /// The datagrams that have passed to the server.
    passed: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Gate {
    pub(crate) fn to(server: SocketAddr) -> Self {
        let is_open = Arc::new(AtomicBool::new(false));
        let passed: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let (open, all) = (Arc::clone(&is_open), Arc::clone(&passed));
        let way = Way::to(server, move |passing| {
            let is_held = passing.to_server && is_behind_an_answer(passing.bytes);
            if is_held && !open.load(Ordering::Relaxed) {
                return Fate::Lose;
            }
            if passing.to_server {
                all.lock().expect("one at a time").push(passing.bytes.to_vec());
            }
            Fate::Pass
        });
        Self { way, is_open, passed }
    }

    pub(crate) fn open(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }

    pub(crate) fn to_it(&self) -> String {
        self.way.address().to_string()
    }
}

/// A client that has a session and a token of a server, and no connection.
fn remember(client: &mut QuicClient, memory: &str) {
    let on = format!("first-{memory}");
    let got = client.one(&json!({"do": "ask", "on": on, "path": "/hello.txt", "memory": memory}));
    assert_eq!((&got["status"], &got["early"]), (&json!(200), &json!(false)), "{got}");
    // The session comes behind the handshake.
    let again = client.one(&json!({"do": "ask", "on": on, "path": "/large.bin", "memory": memory}));
    assert_eq!(again["status"], 200, "{again}");
    client.one(&json!({"do": "close", "on": on}));
}

/// The first request of a client that comes back.
fn early(memory: &str, on: &str, to: &str, path: &str) -> Value {
    json!({
        "do": "ask", "on": on, "to": to, "path": path, "memory": memory, "early": true, "method": "GET_0RTT",
    })
}

fn accepted(server: &TlsServer) -> u64 {
    server.number("/tls/early_data/accepted")
}

fn answered(server: &TlsServer) -> u64 {
    server.number("/requests/responses")
}

#[test]
fn a_get_is_answered_before_the_handshake_is_complete_and_a_replay_is_not() {
    let (tree, authority) = (site(), Authority::new());
    let log = format!("[log]\naccess = \"-\"\naccess_format = \"json\"\n{ON}");
    let Some((server, mut client)) = both(&authority, &tree, &log, "", |_| {}) else { return };
    remember(&mut client, "m");
    let (gate, before) = (Gate::to(server.tls), answered(&server));
    client.order(&early("m", "back", &gate.to_it(), "/hello.txt"));
    eventually("it is answered, and the handshake is not complete", || {
        answered(&server) == before + 1
    });
    assert_eq!(accepted(&server), 1);
    let recorded = gate.passed.lock().expect("one at a time").clone();
    gate.open();
    let got = client.answers().remove(0);
    assert_eq!((&got["status"], &got["text"]), (&json!(200), &json!("hello")), "{got}");
    assert_eq!((&got["early"], &got["resumed"]), (&json!(true), &json!(true)), "{got}");
    // Later requests of the connection are no early data.
    let got = client.one(&json!({"do": "ask", "on": "back", "path": "/empty.txt"}));
    assert_eq!(got["status"], 200, "{got}");
    eventually("the lines are written", || server.server.log().contains("/empty.txt"));
    let log = server.server.log();
    let marked: Vec<_> = log.lines().filter(|line| line.contains("\"early_data\":true")).collect();
    assert!(marked.len() == 1 && marked[0].contains("/hello.txt"), "{log}");

    // Somebody sends the same datagrams again: with the connection there, and when it has ended.
    let replay = || {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("bound");
        socket.set_read_timeout(Some(Duration::from_millis(300))).expect("set");
        for datagram in &recorded {
            socket.send_to(datagram, server.tls).expect("sent");
        }
        let mut bytes = 0;
        while let Ok(n) = socket.recv(&mut [0; 2000]) {
            bytes += n;
        }
        bytes
    };
    let before = answered(&server);
    replay();
    client.one(&json!({"do": "close", "on": "back"}));
    eventually("the connection has ended", || server.number("/connections/open") == 0);
    let mut bytes = 0;
    eventually("a whole handshake is offered", || {
        bytes = replay();
        bytes > 0
    });
    let sent: usize = recorded.iter().map(Vec::len).sum();
    assert!(bytes <= 3 * sent, "{bytes} bytes for {sent}: the address is not proven");
    assert_eq!((answered(&server), accepted(&server)), (before, 1));
}

#[test]
fn a_client_that_has_not_proved_its_address_waits_for_the_handshake() {
    let (tree, authority) = (site(), Authority::new());
    let Some((server, mut client)) = both(&authority, &tree, ON, "", |_| {}) else { return };
    remember(&mut client, "m");
    let (gate, before) = (Gate::to(server.tls), answered(&server));
    let met = server.number("/connections/accepted");
    let mut order = early("m", "back", &gate.to_it(), "/hello.txt");
    order["unproven"] = json!(true);
    client.order(&order);
    eventually("its first packets have come", || server.number("/connections/accepted") > met);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(answered(&server), before);
    gate.open();
    let got = client.answers().remove(0);
    assert_eq!((&got["status"], &got["early"]), (&json!(200), &json!(true)), "{got}");
    assert_eq!((answered(&server), accepted(&server)), (before + 1, 1));
}

/// A server behind, which answers with this and says what it was asked.
fn behind(status: &'static str) -> Raw {
    Raw::start(move |mut stream| {
        while let Some(head) = read_head(&mut stream) {
            let content = format!("<{head}>");
            let length = content.len();
            let said = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{content}");
            if stream.write_all(said.as_bytes()).is_err() {
                return;
            }
        }
    })
}

/// A server of AFPA before it.
fn before(
    authority: &Authority,
    tree: &Tree,
    app: &Raw,
    knows: bool,
) -> Option<(TlsServer, QuicClient)> {
    let sections = format!(
        "{ON}[[server_group]]\nname = \"app\"\nservers = [\"{}\"]\n[server_group.request]\nearly_data = {knows}\n",
        app.to()
    );
    let path = "[[site.path]]\nprefix = \"/app/\"\nto = \"app\"\n";
    both(authority, tree, &sections, path, |_| {})
}

#[test]
fn what_may_change_something_waits_for_the_end_of_the_handshake() {
    let (tree, authority, app) = (site(), Authority::new(), behind("200 OK"));
    let Some((server, mut client)) = before(&authority, &tree, &app, true) else { return };
    remember(&mut client, "m");
    let gate = Gate::to(server.tls);
    client.order(&json!({
        "do": "raw", "on": "back", "to": gate.to_it(), "memory": "m", "early": true, "bare": true, "ends": true,
        "wait": 30_000, "lines": [
            [":method", "POST"], [":scheme", "https"], [":authority", "localhost"], [":path", "/app/page"],
            ["content-length", "0"],
        ],
    }));
    eventually("it has arrived", || accepted(&server) == 1);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(app.connections(), 0, "nobody has asked the server");
    gate.open();
    let got = client.answers().remove(0);
    assert_eq!(got["error"], "", "{got}");
    assert_eq!(app.connections(), 1);
    let text = got["text"].as_str().expect("bytes").to_owned();
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert!(text.contains(&hex("<POST /app/page HTTP/1.1")), "{text}");
    assert!(!text.contains(&hex("Early-Data")), "{text}");
}

#[test]
fn a_server_that_knows_early_data_is_asked_at_once_and_may_say_that_it_is_too_early() {
    for knows in [true, false] {
        let (tree, authority, app) = (site(), Authority::new(), behind("425 Too Early"));
        let Some((server, mut client)) = before(&authority, &tree, &app, knows) else { return };
        remember(&mut client, "m");
        let gate = Gate::to(server.tls);
        client.order(&early("m", "back", &gate.to_it(), "/app/page"));
        eventually("it has arrived", || accepted(&server) == 1);
        match knows {
            true => eventually("the server is asked", || app.connections() == 1),
            false => {
                std::thread::sleep(Duration::from_millis(300));
                assert_eq!(app.connections(), 0);
            }
        }
        gate.open();
        let got = client.answers().remove(0);
        let text = got["text"].as_str().unwrap_or_default();
        assert_eq!(got["status"], 425, "{got}");
        assert_eq!(text.contains("Early-Data: 1\r\n"), knows, "{got}");
    }
}

#[test]
fn a_client_whose_session_nobody_has_is_refused_and_comes_again() {
    let (tree, authority) = (site(), Authority::new());
    let Some((server, mut client)) = both(&authority, &tree, ON, "", |_| {}) else { return };
    let Some((other, _)) = both(&authority, &tree, ON, "", |_| {}) else { return };
    remember(&mut client, "m");
    let got = client.one(&early("m", "back", &other.tls.to_string(), "/hello.txt"));
    assert!(got["error"].as_str().is_some_and(|said| said.contains("0-RTT rejected")), "{got}");
    assert_eq!((accepted(&server), accepted(&other)), (0, 0));
    let again = json!({"do": "ask", "on": "again", "to": other.tls.to_string(), "path": "/hello.txt", "memory": "m"});
    assert_eq!(client.one(&again)["status"], 200);
}

#[test]
fn sessions_outlive_a_reload_that_leaves_the_limits_and_no_process() {
    let (tree, authority) = (site(), Authority::new());
    let more = format!("[http2]\nstreams = 90\n{ON}");
    let Some((server, mut client)) = both(&authority, &tree, &more, "", |_| {}) else { return };
    let file = server.server.configuration();
    let text = fs::read_to_string(&file).expect("read");
    let reload = |text: &str| {
        fs::write(&file, text).expect("written");
        let before = server.server.log().matches("reloaded").count();
        server.server.signal(Signal::HUP);
        eventually("it is reloaded", || server.server.log().matches("reloaded").count() > before);
    };
    let here = server.tls.to_string();
    remember(&mut client, "a");
    (0..TRIES).for_each(|at| remember(&mut client, &format!("b{at}")));
    reload(&text);
    let got = client.one(&early("a", "a", &here, "/hello.txt"));
    assert_eq!((&got["status"], &got["early"]), (&json!(200), &json!(true)), "{got}");
    // A client may count on 90 streams.
    reload(&text.replace("streams = 90", "streams = 50"));
    let is_refused =
        |got: &Value| got["error"].as_str().is_some_and(|said| said.contains("0-RTT rejected"));
    // A worker takes up its settings in its time.
    let refused = (0..TRIES).any(|at| {
        std::thread::sleep(Duration::from_millis(50 * at));
        let name = format!("b{at}");
        is_refused(&client.one(&early(&name, &name, &here, "/hello.txt")))
    });
    assert!(refused, "sessions of other limits are accepted");

    remember(&mut client, "c");
    let _next = Next::alone(&server, server.server.pid());
    let got = client.one(&early("c", "c", &here, "/hello.txt"));
    assert!(is_refused(&got), "{got}");
    let ask = json!({"do": "ask", "on": "d", "path": "/hello.txt", "memory": "c"});
    assert_eq!(client.one(&ask)["status"], 200);
}

/// Whether a certificate is still valid would be known too late.
#[test]
fn sites_that_ask_for_certificates_accept_none() {
    let (tree, authority) = (site(), Authority::new());
    let path = authority.path();
    let issuer = path.display();
    let asks =
        format!("{ON}client_certificates = \"optional\"\nclient_authorities = \"{issuer}\"\n");
    let Some((server, mut client)) = both(&authority, &tree, &asks, "", |_| {}) else { return };
    remember(&mut client, "m");
    let got = client.one(&early("m", "back", &server.tls.to_string(), "/hello.txt"));
    assert_eq!((&got["status"], &got["early"]), (&json!(200), &json!(false)), "{got}");
    assert_eq!(accepted(&server), 0);
}

#[test]
fn without_early_data_sessions_are_resumed_after_a_reload_and_an_upgrade() {
    let (tree, authority) = (site(), Authority::new());
    let keys = authority.folder().join("tickets");
    fs::write(&keys, "0123456789abcdef".repeat(4) + "\n").expect("written");
    let tls = format!("[tls]\nticket_keys = \"{}\"\n", keys.display());
    let Some((server, mut client)) = both(&authority, &tree, &tls, "", |_| {}) else { return };
    remember(&mut client, "m");
    let here = server.tls.to_string();
    let comes_back = |client: &mut QuicClient, on: &str| {
        let got = client.one(&early("m", on, &here, "/hello.txt"));
        assert_eq!((&got["status"], &got["early"]), (&json!(200), &json!(false)), "{got}");
        assert_eq!(got["resumed"], true, "{got}");
        client.one(&json!({"do": "close", "on": on}));
    };
    comes_back(&mut client, "a");
    server.server.signal(Signal::HUP);
    eventually("it is reloaded", || server.server.log().contains("reloaded"));
    comes_back(&mut client, "b");
    let _next = Next::alone(&server, server.server.pid());
    comes_back(&mut client, "c");
    assert_eq!(accepted(&server), 0);
}
