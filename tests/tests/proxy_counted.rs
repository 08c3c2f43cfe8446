//! The counted budget of a distributed request: the system calls that one small response over kept
//! connections may make, and how much memory a very large one takes.

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use afpa_testkit::strace::{Counts, Strace};
use afpa_testkit::{Client, Endpoint, Server, Tree, eventually, figure, skip};
use afpa_tests::allocations::Allocations;
use afpa_tests::proxy::{PhpFpm, Raw, configuration, read_head};
use rustix::process::Signal;

const REQUESTS: u64 = 1000;

/// Calls that time makes, not requests: the clock's tick, a helper thread that ends.
fn slack(counts: &Counts) -> u64 {
    200 + counts.made_by_time()
}

fn sum(counts: &Counts, names: &[&str]) -> u64 {
    names.iter().filter_map(|name| counts.get(*name)).sum()
}

/// One worker before these servers, so that every request meets the same idle connections.
fn proxy(servers: &[String]) -> Server {
    proxy_by("readiness", servers)
}

fn proxy_by(io: &str, servers: &[String]) -> Server {
    Server::start("/", |launch| {
        launch.arg("--io").arg(io);
        launch.written(|listen| format!("workers = 1\n{}", configuration(listen, servers, "")));
    })
}

#[test]
fn a_small_distributed_request_costs_a_read_and_a_write_on_each_side() {
    let response = [
        &b"HTTP/1.1 200 OK\r\nServer: s\r\nContent-Type: text/plain\r\nContent-Length: 102\r\n\r\n"
            [..],
        &[b'x'; 102],
    ]
    .concat();
    let raw = Raw::answering(response, Duration::ZERO);
    let server = proxy(&[raw.to()]);
    let mut client = server.connect();
    for _ in 0..100 {
        assert_eq!(client.get("/small").body.len(), 102);
    }
    let strace = match Strace::of(&server) {
        Ok(strace) => strace,
        Err(why) => skip!("{why}"),
    };
    for _ in 0..REQUESTS {
        assert_eq!(client.get("/small").status, 200);
    }
    let counts = strace.counts();
    let slack = slack(&counts);
    figure!("system calls of {REQUESTS} distributed requests: {counts:?}");
    let reads = sum(&counts, &["read", "recv", "recvfrom", "recvmsg", "readv"]);
    let writes = sum(&counts, &["write", "send", "sendto", "sendmsg", "writev"]);
    let waits = sum(&counts, &["epoll_wait", "epoll_pwait", "epoll_pwait2"]);
    assert!((2 * REQUESTS..=2 * REQUESTS + slack).contains(&reads), "{reads} reads");
    assert!((2 * REQUESTS..=2 * REQUESTS + slack).contains(&writes), "{writes} writes");
    assert!(waits <= 2 * REQUESTS + slack, "{waits} waits");
    let all: u64 = counts.values().sum();
    let other = all - reads - writes - waits;
    assert!(other <= slack, "{other} other calls: {counts:?}");
    assert_eq!(raw.connections(), 1, "one connection carries them all");
}

macro_rules! trace {
    ($server:expr) => {
        match Strace::of(&$server) {
            Ok(strace) => strace,
            Err(why) => skip!("{why}"),
        }
    };
}

/// Fields, compression, passwords, rates, rules and error pages that a request does not meet cost it no system call, and no more
/// allocations than these.
#[test]
fn settings_that_a_distributed_request_does_not_meet_cost_it_no_call() {
    const ALLOCATIONS_MORE: u64 = 1;
    let response = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok";
    let raw = Raw::answering(response.to_vec(), Duration::ZERO);
    let tree = Tree::new();
    tree.file("users", "ann:$apr1$J2W9VTcy$8Ai2rpmdVVVNGz1sfq4S41\n");
    tree.file("404.html", "none");
    let (users, page) = (tree.path().join("users"), tree.path().join("404.html"));
    let to = raw.to();
    let furnished = format!(
        "compress = true\n[[site.header]]\nprefix = \"/other/\"\nset = {{ X-A = \"1\" }}\nrequest_set = {{ X-B = \"2\" }}\n\
         [[site.errors]]\nstatus = [404]\nfile = \"{}\"\n\
         [[site.path]]\nprefix = \"/admin/\"\nto = \"{to}\"\nbasic_auth = \"{}\"\n\
         [[site.path]]\nprefix = \"/asked/\"\nto = \"{to}\"\nforward_auth = \"{to}\"\nforward_auth_path = \"/\"\n\
         [[site.path]]\nprefix = \"/rare/\"\nto = \"{to}\"\nclient_rate = \"1/s\"\nif_query = {{ a = \"*\" }}\n\
         [[site.path]]\nprefix = \"/from/\"\nif_path = ['~^/from/(.*)$']\nrewrite = \"/to/{{1}}\"\n",
        page.display(),
        users.display(),
    );
    let mut counted = Vec::new();
    for more in ["", &furnished] {
        let allocations = match Allocations::new() {
            Ok(allocations) => allocations,
            Err(why) => skip!("{why}"),
        };
        let server = Server::start("/", |launch| {
            allocations.load(launch);
            launch.arg("--io").arg("readiness");
            launch.written(|listen| {
                let site = configuration(listen, &[raw.to()], "");
                format!("workers = 1\n{site}{more}")
            });
        });
        let mut client = server.connect();
        (0..100).for_each(|_| assert_eq!(client.get("/small").text(), "ok"));
        let begun = allocations.count();
        (0..REQUESTS).for_each(|_| assert_eq!(client.get("/small").text(), "ok"));
        let each = (allocations.count() - begun) / REQUESTS;
        let strace = trace!(server);
        (0..REQUESTS).for_each(|_| assert_eq!(client.get("/small").text(), "ok"));
        let counts = strace.counts();
        let slack = slack(&counts);
        counted.push((each, others(&counts, &WAITS), slack));
    }
    figure!(
        "allocations, calls of {REQUESTS} requests and the clock's, without and with settings: {counted:?}"
    );
    let [(plain, calls, _), (furnished, more_calls, slack)] = counted[..] else { unreachable!() };
    assert!(furnished <= plain + ALLOCATIONS_MORE, "{furnished} allocations, {plain} without");
    assert!(more_calls <= calls + slack, "{more_calls} calls, {calls} without");
}

/// All that has arrived is read before anything leaves. The first message wakes the core that it is for, and the others come
/// before that one sleeps again.
#[test]
fn requests_that_are_ready_together_leave_one_after_another_and_so_do_answers() {
    const AT_ONCE: usize = 8;
    const ROUNDS: usize = 30;
    let (asked, answered) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let gate = Arc::new(Barrier::new(AT_ONCE + 1));
    let raw = {
        let (asked, answered, gate) = (asked.clone(), answered.clone(), gate.clone());
        Raw::start(move |mut stream| {
            while read_head(&mut stream).is_some() {
                asked.fetch_add(1, Ordering::SeqCst);
                gate.wait();
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").expect("sent");
                answered.fetch_add(1, Ordering::SeqCst);
            }
        })
    };
    let server = proxy(&[raw.to()]);
    let mut clients: Vec<_> = (0..AT_ONCE).map(|_| server.connect()).collect();
    let mut done = 0;
    let mut round = || {
        done += AT_ONCE;
        server.signal(Signal::STOP);
        clients.iter_mut().for_each(|client| client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
        server.signal(Signal::CONT);
        eventually("the server has all requests", || asked.load(Ordering::SeqCst) == done);
        server.signal(Signal::STOP);
        gate.wait();
        eventually("it has answered them", || answered.load(Ordering::SeqCst) == done);
        server.signal(Signal::CONT);
        clients.iter_mut().for_each(|client| assert_eq!(client.receive().text(), "ok"));
    };
    (0..4).for_each(|_| round());
    let strace = trace!(server);
    (0..ROUNDS).for_each(|_| round());
    let names = strace.names();
    let kind = |name: &String| match name.as_str() {
        "write" | "send" | "sendto" | "sendmsg" | "writev" => Some(true),
        "read" | "recv" | "recvfrom" | "recvmsg" | "readv" => Some(false),
        _ => None,
    };
    let moves: Vec<bool> = names.iter().filter_map(kind).collect();
    let sent = moves.iter().filter(|is_send| **is_send).count();
    let in_a_row = moves.windows(2).filter(|two| two[0] && two[1]).count();
    figure!("{in_a_row} of {sent} messages left right behind another one");
    assert!(sent >= 2 * AT_ONCE * ROUNDS, "{sent} messages");
    // Some come singly, because a process goes on for a moment before it stops.
    assert!(in_a_row >= sent / 2, "{in_a_row} of {sent} messages");
}

/// A proxy that waits by completion, and so many clients whose connections are in its ring.
macro_rules! by_completion {
    ($raw:expr, $clients:expr) => {{
        let server = Server::start("/", |launch| {
            let servers = [$raw.to()];
            launch
                .written(|listen| format!("workers = 1\n{}", configuration(listen, &servers, "")));
            launch.arg("--io").arg("completion");
        });
        if server.summary("waiting").contains("refuses io_uring") {
            skip!("the system refuses io_uring");
        }
        let mut clients: Vec<_> = (0..$clients).map(|_| server.connect()).collect();
        for client in &mut clients {
            (0..5).for_each(|_| assert_eq!(client.get("/small").body.len(), 102));
        }
        (server, clients)
    }};
}

/// A server of small answers. Answers to `/together` wait until so many have been asked for.
fn small(at_once: usize) -> Raw {
    let head =
        "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Type: text/plain\r\nContent-Length: 102\r\n\r\n";
    let answer = [head.as_bytes(), &[b'x'; 102]].concat();
    let together = Barrier::new(at_once);
    Raw::start(move |mut stream| {
        while let Some(head) = read_head(&mut stream) {
            if head.starts_with("GET /together") {
                together.wait();
            }
            stream.write_all(&answer).expect("sent");
        }
    })
}

/// The system calls that are neither of the ring nor for waiting.
fn others(counts: &Counts, waits: &[&str]) -> u64 {
    let begun_again = sum(counts, &["futex", "ppoll", "restart_syscall", "fcntl"]);
    let all: u64 = counts.values().sum();
    all - sum(counts, waits) - begun_again - sum(counts, &["io_uring_enter"])
}

const WAITS: [&str; 3] = ["epoll_wait", "epoll_pwait", "epoll_pwait2"];

/// Alone it has nobody to share with: each side takes one call to receive and one to send.
#[test]
fn by_completion_a_lone_distributed_request_costs_four_enters_and_two_waits() {
    let raw = small(1);
    let (server, mut clients) = by_completion!(raw, 1);
    let client = &mut clients[0];
    let strace = trace!(server);
    for _ in 0..REQUESTS {
        assert_eq!(client.get("/small").status, 200);
    }
    let counts = strace.counts();
    let slack = slack(&counts);
    figure!("system calls of {REQUESTS} distributed requests by completion: {counts:?}");
    let enters = sum(&counts, &["io_uring_enter"]);
    assert!((REQUESTS..=4 * REQUESTS + slack).contains(&enters), "{enters} enters");
    let waits = sum(&counts, &WAITS);
    assert!(waits <= 2 * REQUESTS + slack, "{waits} waits");
    let other = others(&counts, &WAITS);
    assert!(other <= slack, "{other} other calls: {counts:?}");
    assert_eq!(raw.connections(), 1, "one connection carries them all");
}

/// Requests on many connections are there when the proxy looks, and so are the answers.
#[test]
fn by_completion_busy_distributed_requests_share_their_calls() {
    const AT_ONCE: u64 = 20;
    const ROUNDS: u64 = REQUESTS / AT_ONCE;
    let raw = small(AT_ONCE as usize);
    let (server, mut clients) = by_completion!(raw, AT_ONCE);
    let mut round = || {
        server.signal(Signal::STOP);
        for client in &mut clients {
            client.send("GET /together HTTP/1.1\r\nHost: h\r\n\r\n");
        }
        server.signal(Signal::CONT);
        for client in &mut clients {
            assert_eq!(client.receive().body.len(), 102);
        }
    };
    // Each has a connection to the server, in the ring.
    (0..4).for_each(|_| round());
    let strace = trace!(server);
    (0..ROUNDS).for_each(|_| round());
    let counts = strace.counts();
    let slack = slack(&counts);
    figure!("system calls of {REQUESTS} distributed requests, {AT_ONCE} at a time: {counts:?}");
    let enters = sum(&counts, &["io_uring_enter"]);
    // The answers come as soon as the threads of the server are awake, which is not at once.
    assert!(enters > 0 && enters <= REQUESTS, "{enters} enters for {REQUESTS}");
    let other = others(&counts, &WAITS);
    assert!(other <= slack, "{other} other calls: {counts:?}");
}

const LAST_REQUEST: &str = "GET /small HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

/// Connections of one request, all of which are there when the proxy looks.
fn ask_for_the_last_time(server: &Server, at_once: u64) {
    server.signal(Signal::STOP);
    let mut clients: Vec<Client> = (0..at_once).map(|_| server.connect()).collect();
    clients.iter_mut().for_each(|client| client.send(LAST_REQUEST));
    server.signal(Signal::CONT);
    for client in &mut clients {
        assert_eq!(client.receive().body.len(), 102);
        assert!(client.take_all().is_empty(), "an orderly end");
    }
}

/// The connection is accepted, read, asked once more whether it is empty, written to and closed; a read and a write are
/// the server's. Nobody watches the client, waits for its end, or connects to the server again.
#[test]
fn one_distributed_request_a_connection_costs_seven_calls_and_a_share_of_the_waits() {
    one_request_a_connection("readiness");
}

/// A connection of one request never meets the ring.
#[test]
fn by_completion_one_distributed_request_a_connection_costs_no_more() {
    one_request_a_connection("completion");
}

fn one_request_a_connection(io: &str) {
    const AT_ONCE: u64 = 20;
    const ROUNDS: u64 = REQUESTS / AT_ONCE;
    let raw = small(1);
    let server = proxy_by(io, &[raw.to()]);
    if server.summary("waiting").contains("refuses io_uring") {
        skip!("the system refuses io_uring");
    }
    (0..4).for_each(|_| ask_for_the_last_time(&server, AT_ONCE));
    let strace = trace!(server);
    (0..ROUNDS).for_each(|_| ask_for_the_last_time(&server, AT_ONCE));
    let counts = strace.counts();
    let slack = slack(&counts);
    figure!("system calls of {REQUESTS} connections with a distributed request each: {counts:?}");
    assert_eq!(counts.get("shutdown"), None, "{counts:?}");
    // A server that takes longer than the proxy's sweep, on a busy machine, has it watch the client.
    let watched = sum(&counts, &["epoll_ctl"]);
    assert!(watched <= REQUESTS / 4, "{watched} times: {counts:?}");
    let all = others(&counts, &WAITS) - watched;
    let by_ring = sum(&counts, &["io_uring_enter"]);
    assert!(all + by_ring <= 7 * REQUESTS + 8 * ROUNDS + slack, "{all} calls: {counts:?}");
    assert!(raw.connections() <= AT_ONCE as usize, "{} connections", raw.connections());
}

/// A client that waits for an acknowledgement before it sends the rest gets one, and all others get it with their answer.
#[test]
fn a_request_is_acknowledged_by_its_answer_unless_the_rest_of_it_is_awaited() {
    let asked = Arc::new(AtomicUsize::new(0));
    let raw = {
        let asked = asked.clone();
        Raw::start(move |mut stream| {
            while let Some(head) = read_head(&mut stream) {
                asked.fetch_add(1, Ordering::SeqCst);
                if head.starts_with("POST") {
                    stream.read_exact(&mut [0; 3]).expect("content");
                }
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").expect("sent");
            }
        })
    };
    let server = proxy(&[raw.to()]);
    let strace = trace!(server);
    (0..5).for_each(|_| assert_eq!(server.connect().get("/").text(), "ok"));
    let lines = strace.lines();
    assert!(lines.iter().all(|line| !line.contains("TCP_QUICKACK")), "{lines:?}");
    let strace = trace!(server);
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n");
    eventually("the server has the head", || asked.load(Ordering::SeqCst) == 6);
    client.send("abc");
    assert_eq!(client.receive().text(), "ok");
    assert_eq!(client.get("/").text(), "ok");
    let lines = strace.lines();
    let set: Vec<_> =
        lines.iter().filter(|line| line.contains("TCP_QUICKACK, [1], 4) = 0")).collect();
    assert_eq!(set.len(), 1, "{set:?}");
}

/// The kernel marks the segment of the answer when the connection is closed, and sends no other for its end.
#[test]
fn the_end_of_a_connection_leaves_with_the_last_answer() {
    const AT_ONCE: u64 = 20;
    const ROUNDS: u64 = 10;
    let raw = small(1);
    let server = proxy(&[raw.to()]);
    (0..4).for_each(|_| ask_for_the_last_time(&server, AT_ONCE));
    let strace = trace!(server);
    (0..ROUNDS).for_each(|_| ask_for_the_last_time(&server, AT_ONCE));
    let lines = strace.lines();
    let has = |line: &&String, words: [&str; 2]| words.iter().all(|word| line.contains(word));
    let requests = lines.iter().filter(|line| has(line, ["sendto(", "\"GET "]));
    assert!(
        requests.clone().all(|line| !line.contains("MSG_MORE")),
        "the server waits for nothing"
    );
    assert_eq!(requests.count() as u64, AT_ONCE * ROUNDS);
    let answers: Vec<_> =
        lines.iter().filter(|line| has(line, ["sendto(", "\"HTTP/1.1 200"])).collect();
    assert_eq!(answers.len() as u64, AT_ONCE * ROUNDS);
    assert!(answers.iter().all(|line| line.contains("MSG_MORE")), "{:?}", answers.first());
    // A connection that goes on has no end to wait for.
    let strace = trace!(server);
    let mut client = server.connect();
    (0..ROUNDS).for_each(|_| assert_eq!(client.get("/small").body.len(), 102));
    let lines = strace.lines();
    assert!(lines.iter().all(|line| !line.contains("MSG_MORE")), "{lines:?}");
}

/// A script is asked for with a connection of its own: it is made, registered, forgotten and closed, and nothing else is waited
/// for than the client and the answer. The script's file is looked for once a second. nginx has fourteen calls in all.
#[test]
fn a_script_costs_nine_calls_beside_its_two_waits() {
    a_script_costs(true, "", 9);
}

/// It is asked whether it is connected, an option is set, and the end of PHP's side is awaited.
#[test]
fn by_tcp_a_script_costs_thirteen() {
    a_script_costs(false, "", 13);
}

/// Where PHP keeps a process for the connection.
#[test]
fn over_a_kept_connection_a_script_costs_four() {
    a_script_costs(true, "connections.idle = 1", 4);
}

fn a_script_costs(by_unix: bool, kept: &str, most: u64) {
    let fpm = match PhpFpm::start(by_unix, 2, "") {
        Ok(fpm) => fpm,
        Err(why) => skip!("{why}"),
    };
    let tree = Tree::new();
    let server = before(&fpm, &tree, kept);
    let mut client = server.connect();
    for _ in 0..100 {
        assert_eq!(client.get("/index.php").text(), "hello");
    }
    let strace = trace!(server);
    for _ in 0..REQUESTS {
        assert_eq!(client.get("/index.php").text(), "hello");
    }
    let counts = strace.counts();
    let slack = slack(&counts);
    figure!("system calls of {REQUESTS} scripts: {counts:?}");
    let all = others(&counts, &WAITS);
    assert!(all <= most * REQUESTS + slack, "{all} calls: {counts:?}");
    let waits = sum(&counts, &WAITS);
    assert!(waits <= 3 * REQUESTS + slack, "{waits} waits: {counts:?}");
    let looks = sum(&counts, &["openat2", "fstat", "newfstatat", "statx"]);
    assert!(looks <= slack, "{looks} looks at the script: {counts:?}");
}

/// A server with one script.
fn before(fpm: &PhpFpm, tree: &Tree, kept: &str) -> Server {
    tree.file("index.php", "<?php header('Content-Length: 5'); echo 'hello';");
    Server::start("/", |launch| {
        let (root, to) = (tree.path().display(), fpm.to());
        launch.written(|listen| {
            let group = format!("[[server_group]]\nname = \"php\"\nservers = [\"{to}\"]\n{kept}\n");
            let site = format!("listen = [\"{listen}\"]\nroot = \"{root}\"\nphp = \"php\"\n");
            format!("workers = 1\n{group}[[site]]\n{site}")
        });
        launch.arg("--io").arg("readiness");
    })
}

/// A process of PHP that keeps no connection waits behind its answer until it is closed.
#[test]
fn a_process_of_php_is_free_before_the_client_has_its_answer() {
    let fpm = match PhpFpm::start(true, 2, "") {
        Ok(fpm) => fpm,
        Err(why) => skip!("{why}"),
    };
    let tree = Tree::new();
    let server = before(&fpm, &tree, "");
    let mut client = server.connect();
    assert_eq!(client.get("/index.php").text(), "hello");
    let strace = trace!(server);
    for _ in 0..REQUESTS / 10 {
        assert_eq!(client.get("/index.php").text(), "hello");
    }
    let (mut open, mut answers) = (None, 0);
    for line in strace.lines() {
        if let Some((_, rest)) = line.split_once(" connect(").filter(|_| line.contains("AF_UNIX")) {
            open = rest.split(',').next().map(|descriptor| format!(" close({descriptor}"));
        } else if open.as_ref().is_some_and(|close| line.contains(close)) {
            open = None;
        } else if line.contains(" sendto(") && line.contains("\"HTTP/1.1 200") {
            answers += 1;
            assert_eq!(open, None, "answer {answers}: {line}");
        }
    }
    assert_eq!(answers, REQUESTS / 10);
}

const GIGABYTE: u64 = 1 << 30;

/// Bytes that depend on their places, so that lost, doubled or exchanged bytes show.
fn pattern() -> Vec<u8> {
    (0..1_048_573u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Holds bytes against the endless repetition of a pattern.
struct Checker {
    pattern: Vec<u8>,
    at: u64,
}

impl Checker {
    fn new() -> Self {
        Self { pattern: pattern(), at: 0 }
    }

    fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let from = (self.at % self.pattern.len() as u64) as usize;
            let n = bytes.len().min(self.pattern.len() - from);
            assert!(bytes[..n] == self.pattern[from..from + n], "other bytes behind {}", self.at);
            self.at += n as u64;
            bytes = &bytes[n..];
        }
    }
}

/// The first gigabyte of that repetition.
fn pour(mut put: impl FnMut(&[u8]) -> bool) {
    let (pattern, mut left) = (pattern(), GIGABYTE);
    while left > 0 {
        let n = (pattern.len() as u64).min(left) as usize;
        if !put(&pattern[..n]) {
            return;
        }
        left -= n as u64;
    }
}

#[test]
fn a_gigabyte_up_and_down_takes_little_memory_and_arrives_whole() {
    a_gigabyte_up_and_down("readiness");
}

#[test]
fn by_completion_a_gigabyte_does_so_too() {
    a_gigabyte_up_and_down("completion");
}

fn a_gigabyte_up_and_down(io: &str) {
    let raw = Raw::start(|mut stream| {
        while let Some(head) = read_head(&mut stream) {
            if head.starts_with("PUT") {
                let (mut checker, mut room) = (Checker::new(), vec![0; 1 << 20]);
                while checker.at < GIGABYTE {
                    let n = stream.read(&mut room).expect("content");
                    assert!(n > 0, "content broke off at {}", checker.at);
                    checker.take(&room[..n]);
                }
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").expect("sent");
            } else {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {GIGABYTE}\r\n\r\n");
                stream.write_all(head.as_bytes()).expect("sent");
                pour(|bytes| stream.write_all(bytes).is_ok());
            }
        }
    });
    let server = proxy_by(io, &[raw.to()]);
    let mut client = Client::connect(&Endpoint::Tcp(server.address())).expect("connects");
    let before = server.process().resident().expect("memory");

    client.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    let (mut checker, mut room, mut head) = (Checker::new(), vec![0; 1 << 20], Vec::new());
    while checker.at < GIGABYTE {
        let n = client.read_raw(&mut room).expect("content");
        assert!(n > 0, "content broke off at {}", checker.at);
        if checker.at > 0 {
            checker.take(&room[..n]);
            continue;
        }
        head.extend_from_slice(&room[..n]);
        if let Some(end) = head.windows(4).position(|w| w == b"\r\n\r\n") {
            checker.take(&head[end + 4..]);
        }
    }
    let during = server.process().resident().expect("memory");

    client.send(format!("PUT /large HTTP/1.1\r\nHost: x\r\nContent-Length: {GIGABYTE}\r\n\r\n"));
    pour(|bytes| client.try_send(bytes).is_ok());
    assert_eq!(client.receive().text(), "ok");
    let after = server.process().resident().expect("memory");
    figure!("resident: {before} before, {during} after a gigabyte down, {after} after one up");
    assert!(during.max(after) < before + (8 << 20), "{before} became {during} and {after}");
}
