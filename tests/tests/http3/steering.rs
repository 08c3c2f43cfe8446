//! Connections that outlive reloads, upgrades and other addresses of their clients.

use std::io::Write as _;
use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use afpa_testkit::server::program;
use afpa_testkit::until::with_patience;
use afpa_testkit::{eventually, eventually_within, tree::patterned};
use afpa_tests::proxy::{Raw, read_head};
use afpa_tests::quic::sum;
use afpa_tests::tls::{Authority, TlsServer};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{LARGE, both, site};

/// Workers of the tests: a datagram without a name has as many ways to go wrong.
const WORKERS: &str = "4";

/// A way to a server whose own address changes after every so many datagrams, as that of a router does (RFC 9000 section
/// 9.3). It ends with the test.
fn rebinding(server: SocketAddr, each: u64) -> SocketAddr {
    let fresh = move || {
        let far = UdpSocket::bind("127.0.0.1:0").expect("bound");
        far.connect(server).expect("connected");
        Arc::new(far)
    };
    let near = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("bound"));
    let address = near.local_addr().expect("an address");
    let client = Arc::new(RwLock::new(None));
    let back = {
        let (near, client) = (Arc::clone(&near), Arc::clone(&client));
        move |far: Arc<UdpSocket>| {
            let (near, client) = (Arc::clone(&near), Arc::clone(&client));
            std::thread::spawn(move || {
                let mut room = [0; 65_536];
                while let Ok(n) = far.recv(&mut room) {
                    let client: Option<SocketAddr> = *client.read().expect("not poisoned");
                    if let Some(client) = client
                        && near.send_to(&room[..n], client).is_err()
                    {
                        return;
                    }
                }
            });
        }
    };
    std::thread::spawn(move || {
        let mut room = [0; 65_536];
        let mut far = fresh();
        back(Arc::clone(&far));
        for count in 1_u64.. {
            let Ok((n, from)) = near.recv_from(&mut room) else { return };
            *client.write().expect("not poisoned") = Some(from);
            if far.send(&room[..n]).is_err() {
                return;
            }
            if count % each == 0 {
                far = fresh();
                back(Arc::clone(&far));
            }
        }
    });
    address
}

/// A process that an upgrade has started. It is ended when this is dropped.
pub(crate) struct Next(pub(crate) u32);

impl Next {
    /// Has the process replaced, and waits until the next one takes orders.
    fn of(server: &TlsServer, process: u32) -> Self {
        signal(process, Signal::USR2);
        let mut next = process;
        eventually("the next process takes orders", || {
            next = server.number("/pid") as u32;
            next != 0 && next != process
        });
        Self(next)
    }

    /// As [`of`](Self::of), and waits until the process before has ended.
    pub(crate) fn alone(server: &TlsServer, process: u32) -> Self {
        let next = Self::of(server, process);
        // A client whose farewell was lost holds it up, at most for `[timeouts] shutdown`.
        let limit = with_patience(Duration::from_secs(90));
        eventually_within(limit, "the process before has ended", || is_gone(process));
        next
    }
}

impl Drop for Next {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.0.cast_signed()).expect("a process id");
        if kill_process(pid, Signal::TERM).is_ok() {
            let start = Instant::now();
            while !is_gone(self.0) && start.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

fn signal(process: u32, signal: Signal) {
    let pid = Pid::from_raw(process.cast_signed()).expect("a process id");
    kill_process(pid, signal).expect("it is there");
}

/// Whether it has ended; nobody may have waited for it yet.
fn is_gone(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = status.rsplit(") ").next().and_then(|rest| rest.chars().next());
    matches!(state, None | Some('Z'))
}

#[test]
fn a_client_whose_address_changes_keeps_its_connection() {
    let (tree, authority) = (site(), Authority::new());
    let Some((server, mut client)) = both(&authority, &tree, "", "", |launch| {
        launch.arg("--workers").arg(WORKERS);
    }) else {
        return;
    };
    let way = rebinding(server.tls, 100).to_string();
    for _ in 0..3 {
        let order = json!({"do": "ask", "on": "a", "to": way, "path": "/large.bin"});
        let got = client.one(&order);
        assert_eq!((&got["status"], &got["error"]), (&json!(200), &json!("")), "{got}");
        assert_eq!(got["sum"], sum(&patterned(LARGE)));
    }
    let order = json!({"do": "ask", "on": "b", "path": "/hello.txt", "moves": true});
    for time in 0..8 {
        assert_eq!(client.one(&order)["status"], 200, "{time}");
        let moved = client.one(&json!({"do": "move", "on": "b"}));
        assert_eq!(
            (&moved["status"], &moved["error"]),
            (&json!(200), &json!("")),
            "{time}: {moved}"
        );
    }
    assert_eq!(server.number("/connections/http3"), 2);
}

/// Reloads, upgrades and other numbers of workers, while clients ask. `AFPA_CONNECTIONS` and `AFPA_RELOADS` want more.
#[test]
fn no_request_is_lost_while_processes_and_workers_change() {
    let number = |name, default: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (count, reloads) = (number("AFPA_CONNECTIONS", 300), number("AFPA_RELOADS", 6));
    let (tree, authority) = (site(), Authority::new());
    // A client that moves has both of its connections for a moment.
    let limits =
        format!("[limits]\nconnections = {}\nconnections_per_client = 100000\n", 1000 + 4 * count);
    let Some((server, mut client)) = both(&authority, &tree, &limits, "", |_| {}) else { return };
    let file = server.server.configuration();
    let text = std::fs::read_to_string(&file).expect("read");
    let end = authority.folder().join("end");
    client.order(&json!({
        "do": "load", "path": "/hello.txt", "count": count, "delay": 100 + count, "until": end,
        "wait": 600_000,
    }));
    let limit = with_patience(Duration::from_secs(120));
    eventually_within(limit, "all are connected", || server.number("/connections/http3") >= count);
    let answered = || {
        let of = |worker| server.number(&format!("/workers/{worker}/responses"));
        (0..5).map(of).sum::<u64>()
    };
    let (mut process, mut next) = (server.server.pid(), None);
    for workers in [5, 1] {
        for _ in 0..reloads / 2 {
            let before = answered();
            signal(process, Signal::HUP);
            eventually("clients are answered", || answered() > before + 20);
        }
        std::fs::write(&file, format!("workers = {workers}\n{text}")).expect("written");
        let upgraded = Next::alone(&server, process);
        process = upgraded.0;
        next = Some(upgraded);
    }
    // Most clients have asked since, and so have noticed that they have to move.
    let before = answered();
    eventually_within(limit, "the last process answers", || answered() > before + count);
    std::fs::write(&end, "").expect("written");
    let got = client.answers().remove(0);
    eprintln!("{got}");
    assert_eq!((&got["lost"], &got["error"]), (&json!(0), &json!("")), "{got}");
    assert!(
        got["moved"].as_u64() >= Some(count + count / 2) && got["asked"].as_u64() > Some(count),
        "{got}"
    );
    drop(next);
}

/// A server behind AFPA that waits for a word before it answers, and a site that asks it.
fn slow() -> (Raw, Receiver<()>, Sender<()>, String) {
    let (told, asked) = channel();
    let (go, gone) = channel::<()>();
    let gone = Mutex::new(gone);
    let backend = Raw::start(move |mut stream| {
        while read_head(&mut stream).is_some() {
            let _ = told.send(());
            let _ = gone.lock().expect("one at a time").recv_timeout(Duration::from_secs(30));
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n");
            let _ = stream.write_all(&[b'x'; 2_000_000]);
        }
    });
    let path = format!("[[site.path]]\nprefix = \"/app/\"\nto = \"{}\"\n", backend.to());
    (backend, asked, go, path)
}

#[test]
fn the_process_before_serves_on_when_the_next_one_is_killed() {
    let (tree, authority) = (site(), Authority::new());
    let (_backend, asked, go, path) = slow();
    let Some((server, mut client)) = both(&authority, &tree, "", &path, |_| {}) else { return };
    assert_eq!(client.get("/hello.txt")["status"], 200);
    client.order(&json!({"do": "ask", "on": "a", "path": "/app/slow"}));
    asked.recv_timeout(Duration::from_secs(20)).expect("it is asked");
    let next = Next::of(&server, server.server.pid());
    signal(next.0, Signal::KILL);
    eventually("the next process is gone", || is_gone(next.0));
    go.send(()).expect("the server waits");
    let got = client.answers().remove(0);
    assert_eq!((&got["status"], &got["error"]), (&json!(200), &json!("")), "{got}");
    assert_eq!(got["sum"], sum(&[b'x'; 2_000_000]));
}

#[test]
fn connections_of_the_next_process_outlive_the_one_before() {
    let (tree, authority) = (site(), Authority::new());
    let Some((mut server, mut client)) = both(&authority, &tree, "", "", |_| {}) else { return };
    // It keeps the process before from its end.
    client.order(&json!({"do": "stall", "on": "a", "path": "/large.bin"}));
    assert_eq!(client.answers()[0]["status"], 200);
    let before = server.server.pid();
    let next = Next::of(&server, before);
    // While both read, a connection may still be that of the process before.
    let (mut number, mut ask) = (0, json!(null));
    eventually("the next process answers", || {
        number += 1;
        ask = json!({"do": "ask", "on": format!("b{number}"), "path": "/large.bin"});
        client.one(&ask)["status"] == 200 && server.number("/connections/http3") > 0
    });
    assert!(!is_gone(before), "a client has not got its answer");
    server.server.kill();
    for _ in 0..5 {
        let got = client.one(&ask);
        assert_eq!((&got["status"], &got["error"]), (&json!(200), &json!("")), "{got}");
    }
    // The client of the other one learns of it by its next packet.
    let ended = client.one(&json!({"do": "end", "on": "a", "wait": 20_000}));
    assert!(
        ended["error"].as_str().is_some_and(|said| said.contains("stateless reset")),
        "{ended}"
    );
    drop(next);
}

/// The text of a file of keys.
const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";

#[test]
fn with_a_key_clients_learn_at_once_that_a_server_has_crashed() {
    let (tree, authority) = (site(), Authority::new());
    let file = authority.folder().join("quic.key");
    std::fs::write(&file, KEY).expect("written");
    let key = format!("key = \"{}\"\n", file.display());
    let Some((mut server, mut client)) = both(&authority, &tree, &key, "", |_| {}) else { return };
    assert_eq!(client.get("/hello.txt")["status"], 200);
    server.server.kill_and_restart();
    // By the packet that keeps the connection alive.
    let ended = client.one(&json!({"do": "end", "on": "a", "wait": 20_000}));
    assert!(
        ended["error"].as_str().is_some_and(|said| said.contains("stateless reset")),
        "{ended}"
    );
    std::fs::write(&file, &KEY[2..]).expect("written");
    let configuration = server.server.configuration();
    let mut command = Command::new(program());
    let output = command.args(["serve", "--config"]).arg(configuration).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("openssl rand -hex 32"), "{said}");
}
