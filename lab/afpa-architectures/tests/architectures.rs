//! Each architecture, and each combination of strategies, as a process: all serve the same bytes.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use afpa_architectures::{ALL, Architecture};
use afpa_cache::root::resident;
use afpa_testkit::strace::{Counts, Strace};
use afpa_testkit::{Client, Endpoint, Tree, eventually, tree::patterned};

/// Sizes below, at and above what a segment, a socket buffer and a chunk hold.
const SIZES: [usize; 6] = [0, 64, 1460, 16_384, 300_000, 5_000_000];

struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(root: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_afpa-architectures"))
            .arg(root)
            .args(["--listen", "127.0.0.1:0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let mut line = String::new();
        let output = child.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("http://").and_then(|rest| rest.strip_suffix('/'));
        let address = address.and_then(|text| text.parse().ok());
        Self { address: address.unwrap_or_else(|| panic!("{arguments:?}: {line:?}")), child }
    }

    fn connect(&self) -> Client {
        Client::connect(&Endpoint::Tcp(self.address)).expect("connected")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("gone");
    }
}

fn root() -> Tree {
    let tree = Tree::new();
    for size in SIZES {
        tree.file(format!("{size}.bin"), patterned(size));
    }
    tree
}

fn skip(architecture: &Architecture) -> bool {
    let reason = architecture.lacks();
    if let Some(reason) = &reason {
        eprintln!("SKIP {}: {reason}", architecture.name);
    }
    reason.is_some()
}

/// Every file, on one connection where there may be one.
fn assert_serves(server: &Server, keeps: bool, what: &str) {
    let mut client = server.connect();
    for size in SIZES {
        let response = client.get(&format!("/{size}.bin"));
        assert_eq!(response.status, 200, "{what}");
        assert!(response.body == patterned(size), "{what}: {size} bytes");
        if !keeps {
            client.assert_closed();
            client = server.connect();
        }
    }
    assert_eq!(client.get("/missing.bin").status, 404, "{what}");
}

#[test]
fn every_architecture_serves_every_file() {
    let tree = root();
    for architecture in ALL.iter().filter(|architecture| !skip(architecture)) {
        for extra in [&[][..], &["--pin-threshold", "0"], &["--without", "gather-write"]] {
            let arguments = [&["--architecture", architecture.name, "--pool", "3"], extra].concat();
            let server = Server::start(tree.path(), &arguments);
            assert_serves(&server, architecture.keeps_connections(), &format!("{arguments:?}"));
        }
    }
}

#[test]
fn concurrency_and_io_are_chosen_apart() {
    let tree = root();
    for concurrency in ["single", "processes", "threads"] {
        for (io, name) in [("sync", "sped"), ("reactive", "amped"), ("async", "io-uring")] {
            if skip(Architecture::named(name).expect("it is one")) {
                continue;
            }
            let strategies = ["--concurrency", concurrency, "--io", io, "--pool", "2"];
            let server = Server::start(tree.path(), &[&["-a", name], &strategies[..]].concat());
            assert_serves(&server, true, &format!("{strategies:?}"));
        }
    }
}

#[test]
fn requests_that_come_together_or_in_pieces_are_answered_in_order() {
    let tree = root();
    for architecture in ALL.iter().filter(|architecture| architecture.keeps_connections()) {
        if skip(architecture) {
            continue;
        }
        let server = Server::start(tree.path(), &["-a", architecture.name, "--pool", "2"]);
        let mut client = server.connect();
        let request = |size| format!("GET /{size}.bin HTTP/1.1\r\nHost: x\r\n\r\n");
        let together: String = SIZES.map(request).concat();
        client.send(&together);
        for size in SIZES {
            let response = client.receive();
            assert!(response.body == patterned(size), "{}: {size}", architecture.name);
        }
        for at in [1, 20, 32] {
            client.send_split(request(64).as_bytes(), at).expect("sent");
            assert!(client.receive().body == patterned(64), "{}: {at}", architecture.name);
        }
    }
}

#[test]
fn many_connections_are_served_at_once() {
    let tree = root();
    let concurrent = |architecture: &&Architecture| architecture.keeps_connections();
    for architecture in ALL.iter().filter(concurrent) {
        if skip(architecture) {
            continue;
        }
        let server = Server::start(tree.path(), &["-a", architecture.name, "--pool", "12"]);
        let mut clients: Vec<_> = (0..12).map(|_| server.connect()).collect();
        for _ in 0..3 {
            for client in &mut clients {
                client.send("GET /300000.bin HTTP/1.1\r\nHost: x\r\n\r\n");
            }
            for client in &mut clients {
                assert!(client.receive().body == patterned(300_000), "{}", architecture.name);
            }
        }
    }
}

#[test]
fn a_connection_beyond_the_pool_waits_for_its_turn() {
    let tree = root();
    for name in ["thread-pool", "thread-per-request", "mp"] {
        let server = Server::start(tree.path(), &["-a", name, "--pool", "2"]);
        let (mut first, mut second) = (server.connect(), server.connect());
        for client in [&mut first, &mut second] {
            assert!(client.get("/64.bin").body == patterned(64), "{name}");
        }
        let mut third = server.connect();
        third.send("GET /1460.bin HTTP/1.1\r\nHost: x\r\n\r\n");
        drop(first);
        assert!(third.receive().body == patterned(1460), "{name}");
        assert!(second.get("/64.bin").body == patterned(64), "{name}");
    }
}

#[test]
fn a_file_that_is_not_in_memory_is_fetched_and_served() {
    let tree = root();
    let file = std::fs::File::open(tree.at("5000000.bin")).expect("opened");
    file.sync_all().expect("written");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advised");
    if resident(&file, 0, 5_000_000) {
        eprintln!("SKIP: this file system keeps its files in memory");
        return;
    }
    let server = Server::start(tree.path(), &["-a", "amped", "--pin-threshold", "0"]);
    let mut client = server.connect();
    // The second request waits behind the first one's helper.
    client.send("GET /5000000.bin HTTP/1.1\r\nHost: x\r\n\r\n");
    client.send("GET /64.bin HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(client.receive().body == patterned(5_000_000));
    assert!(client.receive().body == patterned(64));
    assert!(resident(&file, 0, 5_000_000));
}

/// System calls of a server for so many requests for an object that it has; `None` where strace may not
/// attach.
fn calls(root: &Path, arguments: &[&str], requests: usize) -> Option<Counts> {
    let server = Server::start(root, arguments);
    let closes = arguments.contains(&"howl");
    let ask = |client: &mut Client| assert!(client.get("/1460.bin").body == patterned(1460));
    let mut client = server.connect();
    ask(&mut client);
    let strace = match Strace::attach(server.child.id()) {
        Ok(strace) => strace,
        Err(reason) => {
            eprintln!("SKIP: {reason}");
            return None;
        }
    };
    for _ in 0..requests {
        if closes {
            client = server.connect();
        }
        ask(&mut client);
    }
    Some(strace.counts())
}

#[test]
fn each_strategy_makes_the_calls_that_are_its_own() {
    const REQUESTS: u64 = 50;
    let tree = root();
    let each = |arguments: &[&str]| -> Option<Vec<(String, u64)>> {
        let counts = calls(tree.path(), arguments, REQUESTS as usize)?;
        // Rounding drops the calls of connections that were opened or closed while strace was attached.
        let each = counts.iter().map(|(name, count)| (name.clone(), (count + 2) / REQUESTS));
        // With debug assertions the library looks at each descriptor that it closes.
        Some(each.filter(|(name, count)| *count > 0 && name != "fcntl").collect())
    };
    let expect = |arguments: &[&str], names: &[&str]| {
        let expected: Vec<_> = names.iter().map(|name| ((*name).to_owned(), 1)).collect();
        if let Some(each) = each(arguments) {
            assert_eq!(each, expected, "{arguments:?}");
        }
    };
    expect(&["-a", "howl"], &["accept4", "close", "recvfrom", "writev"]);
    expect(&["-a", "thread-pool", "--pool", "2"], &["recvfrom", "writev"]);
    expect(&["-a", "sped"], &["epoll_pwait", "recvfrom", "writev"]);
    expect(&["-a", "amped"], &["epoll_pwait", "recvfrom", "writev"]);
    let file = ["-a", "thread-pool", "--pin-threshold", "0"];
    expect(&file, &["recvfrom", "sendfile", "sendto"]);
    let apart = ["-a", "thread-pool", "--without", "gather-write"];
    if let Some(each) = each(&apart) {
        assert_eq!(each, [("recvfrom".to_owned(), 1), ("sendto".to_owned(), 2)]);
    }
    if skip(Architecture::named("io-uring").expect("it is one")) {
        return;
    }
    if let Some(each) = each(&["-a", "io-uring"]) {
        // Neither reads nor writes: those are the kernel's now.
        assert!(each.iter().all(|(name, _)| name.contains("uring") || name.contains("epoll")));
    }
}

#[test]
fn the_processes_of_a_pool_end_with_the_one_that_started_them() {
    let tree = root();
    let server = Server::start(tree.path(), &["-a", "mp", "--pool", "3"]);
    let children = format!("/proc/{0}/task/{0}/children", server.child.id());
    let children = || std::fs::read_to_string(&children).unwrap_or_default();
    eventually("the pool is there", || children().split_whitespace().count() == 3);
    let children: Vec<String> = children().split_whitespace().map(str::to_owned).collect();
    drop(server);
    let lives = |id: &String| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
    };
    eventually("the pool has ended", || !children.iter().any(lives));
}
