//! `afpa serve` whose clients' connections begin without a socket.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use afpa_netlab::Bed;
use afpa_testkit::tree::patterned;
use afpa_testkit::{Asked, Client, Endpoint, ReceiveError, Server, Tree, eventually};
use rustix::process::Signal;
use serde_json::Value;

use crate::lab::{Lab, PORT, answers, stats, warm};

const LARGE: usize = 300_000;

fn site() -> Tree {
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    tree.file("large.bin", vec![b'l'; LARGE]);
    tree
}

/// None: this kernel cannot, and SKIP was said.
fn lab() -> Option<Lab> {
    if let Some(why) = afpa_bpf::Socketless::refusal() {
        afpa_testkit::aloud::say("SKIP", &why.to_string());
        return None;
    }
    Lab::new()
}

#[track_caller]
fn server(lab: &Lab, tree: &Tree, settings: &[(&'static str, &'static str)]) -> Server {
    let server = lab.server(tree, |launch| {
        let log = launch.home().join("access.log");
        launch.arg("--access-log").arg(log).arg("--log-format").arg("json");
        launch.set(|all| {
            all.set("fast_path.connections", "\"known\"");
            for (name, value) in settings {
                all.set(name, *value);
            }
        });
    });
    warm(&server, "/hello.txt");
    server
}

/// The programs' counter of this name.
fn count(server: &Server, name: &str) -> u64 {
    stats(server)["fast_path"]["packets"][name].as_u64().unwrap_or_default()
}

fn opened(server: &Server) -> u64 {
    count(server, "socketless_opened")
}

/// A connection without a socket, on which an answer has arrived.
#[track_caller]
fn open(server: &Server) -> Client {
    open_with(server, "hello")
}

#[track_caller]
fn open_with(server: &Server, content: &str) -> Client {
    open_to(server, server.endpoint(), content)
}

#[track_caller]
fn open_to(server: &Server, endpoint: &Endpoint, content: &str) -> Client {
    let mut found = None;
    eventually("a connection without a socket", || {
        let before = opened(server);
        let mut client = Client::connect(endpoint).expect("connected");
        assert_eq!(client.get("/hello.txt").text(), content);
        let is_new = opened(server) > before;
        found = is_new.then_some(client);
        is_new
    });
    found.expect("one")
}

/// The end of a connection, and nothing wrong before it.
#[track_caller]
fn ends_or_says(client: &mut Client, right: &str) {
    let sent = client.try_send("GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n").is_ok();
    match client.try_receive(Asked::Body) {
        Ok(response) => assert!(sent && response.text() == right, "{response:?}"),
        Err(ReceiveError::Closed) => {}
        Err(ReceiveError::Io(error)) => {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        }
        Err(other) => panic!("{other:?}"),
    }
}

/// Connections that user mode does not see.
fn without_socket(server: &Server) -> u64 {
    stats(server)["connections"]["without_socket"].as_u64().expect("a count")
}

/// Where connections begin, in words.
fn sockets(server: &Server) -> String {
    stats(server)["fast_path"]["sockets"].as_str().unwrap_or_default().to_owned()
}

const BY_DEFAULT: &str = "those of clients that are let in begin without one";

/// By both families, and the start and the statistics say so.
#[test]
fn by_default_connections_of_known_clients_begin_without_a_socket() {
    let Some(lab) = lab() else { return };
    let tree = site();
    let v6 = Endpoint::Tcp(SocketAddr::new(IpAddr::V6(Bed::SERVER_V6), PORT));
    let mut server = lab.server(&tree, |launch| {
        launch.listen(v6.clone());
    });
    warm(&server, "/hello.txt");
    assert!(server.log().contains(&format!("  sockets    {BY_DEFAULT}")), "{}", server.log());
    assert_eq!(sockets(&server), BY_DEFAULT);
    assert_eq!(without_socket(&server), 0);
    let endpoint = server.endpoint().clone();
    let mut clients =
        [&endpoint, &v6, &endpoint, &v6].map(|endpoint| open_to(&server, endpoint, "hello"));
    assert_eq!(without_socket(&server), 4);
    for client in &mut clients[..2] {
        assert_eq!(client.get("/large.bin").body.len(), LARGE);
    }
    assert_eq!(without_socket(&server), 2, "two have sockets now");
    drop(clients);
    eventually("they are gone", || without_socket(&server) == 0);
    server.signal(Signal::TERM);
    assert!(server.wait(Duration::from_secs(20)).is_some_and(|status| status.success()));
}

/// The start and the statistics name the reason and its remedy, for as long as it holds.
#[test]
fn a_host_that_does_not_let_them_be_right_says_why() {
    let Some(lab) = lab() else { return };
    let tree = site();
    let cookies = |on: &str| {
        lab.on_the_server(|| fs::write("/proc/sys/net/ipv4/tcp_syncookies", on)).expect("set");
    };
    cookies("0");
    let server = lab.server(&tree, |_| ());
    let why = "all connections have sockets of the kernel's: the kernel's TCP takes no cookies here \
               (net.ipv4.tcp_syncookies is 0) (sysctl net.ipv4.tcp_syncookies=1)";
    assert!(server.log().contains(&format!("  sockets    {why}")), "{}", server.log());
    assert_eq!(server.log().matches("all connections have").count(), 1, "{}", server.log());
    assert_eq!(sockets(&server), why);
    warm(&server, "/hello.txt");
    for _ in 0..20 {
        assert_eq!(server.connect().get("/hello.txt").text(), "hello");
    }
    assert_eq!(opened(&server), 0);
    cookies("1");
    eventually("it is noticed", || sockets(&server) == BY_DEFAULT);
    drop(open(&server));
    cookies("0");
    eventually("the other way round, too", || sockets(&server) == why);
}

/// With a configuration in which connections begin elsewhere.
#[track_caller]
fn reload_with(server: &Server, connections: &str, before: &str) {
    let text = fs::read_to_string(server.configuration()).expect("a file");
    let (old, new) =
        (format!("connections = \"{before}\""), format!("connections = \"{connections}\""));
    assert!(text.contains(&old), "{text}");
    let reloads = server.log().matches("reloaded").count();
    fs::write(server.configuration(), text.replace(&old, &new)).expect("written");
    server.signal(Signal::HUP);
    eventually("it has reloaded", || server.log().matches("reloaded").count() > reloads);
}

/// Open ones become the kernel's at their next request, and no request is lost.
#[test]
fn a_reload_gives_all_connections_sockets_and_takes_that_back() {
    let Some(lab) = lab() else { return };
    let tree = site();
    let server = server(&lab, &tree, &[]);
    let mut clients = [(); 4].map(|()| open(&server));
    reload_with(&server, "kernel", "known");
    assert_eq!(sockets(&server), "");
    let before = opened(&server);
    for client in &mut clients {
        assert_eq!(client.get("/hello.txt").text(), "hello");
        assert_eq!(client.get("/large.bin").body.len(), LARGE);
        assert_eq!(client.get("/hello.txt").text(), "hello");
    }
    assert_eq!(without_socket(&server), 0);
    for _ in 0..10 {
        assert_eq!(server.connect().get("/hello.txt").text(), "hello");
    }
    assert_eq!(opened(&server), before);
    reload_with(&server, "everyone", "kernel");
    assert!(server.log().contains("connections takes effect at the next start"));
    reload_with(&server, "known", "everyone");
    drop(open(&server));
    for client in &mut clients {
        assert_eq!(client.get("/hello.txt").text(), "hello");
    }
}

/// Of open ones without a word from their clients, and of those that ask at that moment.
#[test]
fn an_upgrade_ends_them_or_answers() {
    let Some(lab) = lab() else { return };
    let tree = site();
    let mut server = server(&lab, &tree, &[]);
    let mut clients = [(); 4].map(|()| open(&server));
    let first = u64::from(server.pid());
    server.signal(Signal::USR2);
    clients[..2].iter_mut().for_each(|client| ends_or_says(client, "hello"));
    eventually("the next process serves", || {
        let output = server.command(&["stats", "--json"]);
        let stats = serde_json::from_slice::<Value>(&output.stdout).ok();
        stats.and_then(|stats| stats["pid"].as_u64()).is_some_and(|pid| pid != first)
    });
    clients.iter_mut().for_each(|client| ends_or_says(client, "hello"));
    assert!(server.wait(Duration::from_secs(60)).is_some_and(|status| status.success()));
    clients.iter_mut().for_each(|client| ends_or_says(client, "hello"));
    drop(open(&server));
    assert_eq!(lab.attached(), 4, "taken over, not added to");
    let next = stats(&server)["pid"].as_u64().expect("a number");
    let next = rustix::process::Pid::from_raw(next as i32).expect("a process id");
    rustix::process::kill_process(next, Signal::TERM).expect("it is there");
    eventually("nothing is left", || lab.attached() == 0);
}

/// Those without a socket count, and beyond the limit user mode refuses, in its own words.
#[test]
fn all_clients_together_have_no_more_connections_than_they_may() {
    let Some(lab) = lab() else { return };
    const MOST: u64 = 40;
    let tree = site();
    let settings = [("limits.connections", "40"), ("limits.connections_per_client", "40")];
    let server = server(&lab, &tree, &settings);
    let mut clients = Vec::new();
    let mut is_refused = || {
        let mut client = server.connect();
        let sent = client.try_send("GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n").is_ok();
        match client.try_receive(Asked::Body) {
            Ok(response) if response.status == 200 => clients.push(client),
            Ok(response) => {
                assert!(sent && response.status == 503, "{response:?}");
                return true;
            }
            Err(_) => return true,
        }
        clients.len() as u64 >= 3 * MOST
    };
    eventually("one is refused", &mut is_refused);
    assert!((clients.len() as u64) < 3 * MOST, "{}", clients.len());
    assert!(without_socket(&server) >= MOST / 2, "{:#}", stats(&server)["connections"]);
    clients.truncate(clients.len() / 2);
    eventually("there is room again", || {
        let mut client = server.connect();
        let sent = client.try_send("GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n").is_ok();
        sent && client.try_receive(Asked::Body).is_ok_and(|response| response.status == 200)
    });
}

/// A request a connection, for objects of the kernel and for others, and all of them are in the log.
#[test]
fn one_request_a_connection() {
    let Some(lab) = lab() else { return };
    let tree = site();
    let server = server(&lab, &tree, &[]);
    let before = answers(&server);
    const TURNS: usize = 40;
    for turn in 0..TURNS {
        let hello = server.connect().get_with("/hello.txt", "Connection: close\r\n");
        assert_eq!((hello.status, hello.text()), (200, "hello"), "{turn}");
        assert_eq!(hello.field("Connection"), Some("close"), "{hello:?}");
        let large = server.connect().get("/large.bin");
        assert_eq!((large.status, large.body.len()), (200, LARGE), "{turn}");
        assert_eq!(server.connect().get("/missing").status, 404, "{turn}");
        let part = server.connect().get_with("/hello.txt", "Range: bytes=1-2\r\n");
        assert_eq!((part.status, part.text()), (206, "el"), "{turn}");
    }
    let turns = TURNS as u64;
    assert!(answers(&server) - before >= turns / 2, "{:#?}", stats(&server)["fast_path"]);
    assert!(opened(&server) >= 2 * turns, "{:#?}", stats(&server)["fast_path"]);
    let logged = |target: &str, status: u64| {
        let lines = lines(&server).into_iter();
        lines.filter(|line| line["target"] == target && line["status"] == status).count()
    };
    for (target, status) in [("/large.bin", 200), ("/missing", 404), ("/hello.txt", 206)] {
        eventually("every answer is logged", || logged(target, status) == TURNS);
    }
    eventually("the kernel's, too", || logged("/hello.txt", 200) >= TURNS);
    assert!(lines(&server).iter().all(|line| line["client"] == "10.77.64.1"));
}

/// For an answer that would need a socket for itself alone, the kernel is the better place up to a greater length.
#[test]
fn the_last_answer_of_a_connection_may_be_longer_than_others() {
    let Some(lab) = lab() else { return };
    let (tree, content) = (site(), patterned(20_000));
    tree.file("some.png", &content);
    let server = server(&lab, &tree, &[]);
    let ask = |lines: &str| {
        let before = answers(&server);
        assert!(server.connect().get_with("/some.png", lines).body == content, "{lines}");
        answers(&server) > before
    };
    eventually("the kernel answers", || ask("Connection: close\r\n"));
    for _ in 0..20 {
        assert!(!ask(""), "{:#?}", stats(&server)["fast_path"]);
    }
}

/// Processor 1, which is there again at the end.
struct Processor;

impl Processor {
    const ONLINE: &str = "/sys/devices/system/cpu/cpu1/online";

    /// None: there is none that may be taken, and SKIP was said.
    fn new() -> Option<Self> {
        if std::env::var_os("AFPA_TEST_HOTPLUG").is_none() {
            let why = "AFPA_TEST_HOTPLUG=1 would take a processor from the whole machine";
            afpa_testkit::aloud::say("SKIP", why);
            return None;
        }
        Some(Self)
    }

    fn set(is_online: bool) {
        fs::write(Self::ONLINE, if is_online { "1" } else { "0" }).expect("hotplug");
    }
}

impl Drop for Processor {
    fn drop(&mut self) {
        Self::set(true);
    }
}

/// Clients of one request a connection, and one that stays, while a processor goes and comes.
#[test]
fn a_processor_goes_and_comes_back() {
    let Some(_processor) = Processor::new() else { return };
    let Some(lab) = lab() else { return };
    let tree = site();
    let server = server(&lab, &tree, &[("workers", "2")]);
    let mut kept = server.connect();
    let mut all_is_right = |turns: usize| {
        for _ in 0..turns {
            assert_eq!(kept.get("/hello.txt").text(), "hello");
            assert_eq!(server.connect().get("/hello.txt").text(), "hello");
            assert_eq!(server.connect().get("/large.bin").body.len(), LARGE);
        }
    };
    let moves = |of: &dyn Fn(&Server) -> u64| {
        let before = of(&server);
        eventually("the kernel goes on", || {
            assert_eq!(server.connect().get("/hello.txt").text(), "hello");
            of(&server) > before
        });
    };
    for is_online in [false, true, false, true] {
        Processor::set(is_online);
        all_is_right(10);
        moves(&answers);
        moves(&opened);
    }
}

fn lines(server: &Server) -> Vec<Value> {
    let text = std::fs::read_to_string(server.home().join("access.log")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn a_reload_keeps_what_is_open_and_shows_it_what_is_new() {
    let Some(lab) = lab() else { return };
    let tree = site();
    let server = server(&lab, &tree, &[]);
    let mut clients = [open(&server), open(&server)];
    tree.file("hello.txt", "hello again");
    eventually("the change is seen", || clients[0].get("/hello.txt").text() == "hello again");
    assert_eq!(clients[1].get("/hello.txt").text(), "hello again");
    let mut late = [open_with(&server, "hello again"), open_with(&server, "hello again")];
    server.signal(Signal::HUP);
    eventually("it has reloaded", || server.log().contains("reloaded"));
    for client in clients.iter_mut().chain(&mut late) {
        for _ in 0..3 {
            assert_eq!(client.get("/hello.txt").text(), "hello again");
            assert_eq!(client.get("/large.bin").body.len(), LARGE);
        }
    }
}

#[test]
fn every_end_tells_who_waits() {
    let Some(lab) = lab() else { return };
    let tree = site();
    for signal in [Signal::TERM, Signal::QUIT] {
        let mut server = server(&lab, &tree, &[]);
        let mut client = open(&server);
        server.signal(signal);
        let status = server.wait(Duration::from_secs(20)).expect("it ends");
        assert!(status.success(), "{signal:?}: {status:?}\n{}", server.log());
        client.set_patience(Duration::from_secs(2)).expect("set");
        client.assert_closed();
        assert_eq!(lab.attached(), 0, "after {signal:?}");
    }
}

#[test]
fn after_a_kill_no_wrong_byte_arrives() {
    let Some(lab) = lab() else { return };
    let tree = site();
    for _ in 0..2 {
        let mut server = server(&lab, &tree, &[]);
        let mut clients = [open(&server), open(&server), open(&server)];
        server.kill();
        clients.iter_mut().for_each(|client| ends_or_says(client, "hello"));
    }
}

/// User mode's own time-out holds for connections that it never saw.
#[test]
fn an_idle_connection_is_closed_in_time() {
    let Some(lab) = lab() else { return };
    let tree = site();
    let server = server(&lab, &tree, &[("timeouts.idle", "\"1s\"")]);
    let mut client = open(&server);
    client.set_patience(Duration::from_secs(10)).expect("set");
    client.assert_closed();
    eventually("it is counted", || count(&server, "socketless_idle") > 0);
}

/// Connections that nobody has accepted count, too. User mode has some of its own, and as many without a socket at most.
#[test]
fn a_client_has_no_more_connections_than_it_may() {
    let Some(lab) = lab() else { return };
    const MOST: usize = 6;
    let tree = site();
    let server = server(&lab, &tree, &[("limits.connections_per_client", "6")]);
    eventually("nothing is left of the start", || {
        stats(&server)["connections"]["open"].as_u64().is_some_and(|open| open < 2)
    });
    let before = connections(&server);
    let mut clients: Vec<Client> = (0..5 * MOST).map(|_| server.connect()).collect();
    // The kernel may answer on a connection until user mode has refused it.
    eventually("user mode has looked at all of its own", || {
        connections(&server) >= before + clients.len() as u64
    });
    let (mut served, mut refused) = (0, 0);
    for client in &mut clients {
        let sent = client.try_send("GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n").is_ok();
        match client.try_receive(Asked::Body) {
            Ok(response) if response.status == 200 => served += 1,
            Ok(response) => {
                assert!(sent && response.status == 503, "{response:?}");
                refused += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!((MOST..=2 * MOST).contains(&served), "{served}, {refused}");
    assert!(
        count(&server, "socketless_too_many") > 0,
        "{}",
        stats(&server)["fast_path"]["packets"]
    );
    drop(clients);
    eventually("there is room again", || {
        let mut client = server.connect();
        let sent = client.try_send("GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n").is_ok();
        sent && client.try_receive(Asked::Body).is_ok_and(|response| response.status == 200)
    });
}

/// Connections that were accepted, refused, or opened without a socket.
fn connections(server: &Server) -> u64 {
    let of_user_mode = &stats(server)["connections"];
    let own = ["accepted", "refused"].map(|name| of_user_mode[name].as_u64().expect("a count"));
    own.iter().sum::<u64>() + count(server, "socketless_opened")
}
