//! The counted budget of the fast path: the system calls that one pinned hit on a kept-alive connection
//! may make.

use std::sync::Arc;
use std::time::Duration;

use afpa_testkit::{
    Client, Launch, Server, Tree, eventually, figure, skip,
    strace::{Counts, Strace},
};
use afpa_tests::allocations::Allocations;
use afpa_tests::h2::H2Client;
use afpa_tests::proxy::Raw;
use afpa_tests::quic::QuicClient;
use afpa_tests::tls::{self, Authority, TlsServer, Way};
use rustix::process::Signal;

const HITS: u64 = 1000;

/// Calls that time makes, not hits: the clock's tick, a helper thread that ends.
fn slack(counts: &Counts) -> u64 {
    50 + counts.made_by_time()
}

const WAITS: [&str; 3] = ["epoll_wait", "epoll_pwait", "epoll_pwait2"];
const READS: [&str; 6] = ["read", "recv", "recvfrom", "recvmsg", "recvmmsg", "readv"];
const WRITES: [&str; 5] = ["write", "send", "sendto", "sendmsg", "writev"];

/// Whether the file system of a tree forgets at once what was not found, as tmpfs does.
fn forgets_what_is_absent(tree: &Tree) -> bool {
    const TMPFS: i64 = 0x0102_1994;
    rustix::fs::statfs(tree.path()).expect("a file system").f_type == TMPFS
}

const LAST_REQUEST: &str = "GET /hello.txt HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

/// Counts the system calls of a server from now on.
macro_rules! trace {
    ($server:expr) => {
        match Strace::of(&$server) {
            Ok(strace) => strace,
            Err(why) => skip!("{why}"),
        }
    };
}

/// A server of one worker that waits by readiness, and the tree with its only file.
fn serve(name: &str, content: impl AsRef<[u8]>) -> (Tree, Server) {
    serve_waiting("readiness", name, content)
}

fn serve_waiting(io: &str, name: &str, content: impl AsRef<[u8]>) -> (Tree, Server) {
    let tree = Tree::new();
    tree.file(name, content);
    let server = Server::start(tree.path(), |launch| {
        launch.arg("--workers").arg("1").arg("--io").arg(io);
        launch.set(|settings| {
            settings.set("http2.cleartext", true);
        });
    });
    (tree, server)
}

/// The same, by completion.
macro_rules! serve_by_completion {
    ($name:expr, $content:expr) => {
        match serve_waiting("completion", $name, $content) {
            (_, server) if server.summary("waiting").contains("refuses io_uring") => {
                skip!("the system refuses io_uring")
            }
            served => served,
        }
    };
}

/// The same, over TLS.
macro_rules! serve_tls_by_completion {
    ($authority:expr, $tree:expr) => {{
        let launch = |launch: &mut Launch| {
            launch.arg("--workers").arg("1").arg("--io").arg("completion");
        };
        let plan = tls::Plan { launch: Box::new(launch), ..tls::Plan::default() };
        let server = TlsServer::with($authority, $tree.path(), plan);
        if server.server.summary("waiting").contains("refuses io_uring") {
            skip!("the system refuses io_uring");
        }
        server
    }};
}

/// The system calls of hits on one connection, one after the other.
macro_rules! counts_of_lone_hits {
    ($server:expr, $client:expr) => {{
        for _ in 0..100 {
            assert_eq!($client.get("/hello.txt").body.len(), 512);
        }
        let strace = trace!($server);
        for _ in 0..HITS {
            assert_eq!($client.get("/hello.txt").status, 200);
        }
        strace.counts()
    }};
}

/// By completion: the request is taken, the answer handed over, and between them is a wait.
fn assert_lone_hits(counts: &Counts) {
    let slack = slack(counts);
    let enters = sum(counts, &["io_uring_enter"]);
    assert!((HITS..=2 * HITS + slack).contains(&enters), "{enters} enters");
    let waits = sum(counts, &WAITS);
    assert!(waits <= HITS + slack, "{waits} waits");
    let all: u64 = counts.values().sum();
    assert!(all - enters - waits <= slack, "{counts:?}");
}

fn sum(counts: &Counts, names: &[&str]) -> u64 {
    names.iter().filter_map(|name| counts.get(*name)).sum()
}

#[test]
fn a_pinned_hit_costs_one_read_one_write_and_the_wait() {
    let (_tree, server) = serve("hello.txt", "x".repeat(512));
    let mut client = server.connect();
    for _ in 0..100 {
        assert_eq!(client.get("/hello.txt").body.len(), 512);
    }
    let strace = trace!(server);
    for _ in 0..HITS {
        assert_eq!(client.get("/hello.txt").status, 200);
    }
    let counts = strace.counts();
    let slack = slack(&counts);
    figure!("system calls of {HITS} hits: {counts:?}");
    let reads = sum(&counts, &READS);
    let writes = sum(&counts, &WRITES);
    let waits = sum(&counts, &WAITS);
    assert!((HITS..=HITS + slack).contains(&reads), "{reads} reads");
    assert!((HITS..=HITS + slack).contains(&writes), "{writes} writes");
    assert!(waits <= HITS + slack, "{waits} waits");
    let all: u64 = counts.values().sum();
    let other = all - reads - writes - waits;
    assert!(other <= slack, "{other} other calls: {counts:?}");
    let files =
        sum(&counts, &["open", "openat", "openat2", "stat", "fstat", "newfstatat", "statx"]);
    // The watcher compares the file that was used with the kept object, once in some seconds.
    assert!(files < 5, "no hit looks at the file system: {counts:?}");
}

/// The code, the object and the buffers are in memory from the first hits on.
#[test]
fn a_pinned_hit_faults_no_page() {
    let (_tree, server) = serve("hello.txt", "x".repeat(512));
    let mut client = server.connect();
    for _ in 0..100 {
        assert_eq!(client.get("/hello.txt").body.len(), 512);
    }
    server.settle();
    let faults = || server.process().faults_of("afpa-0").expect("a worker");
    let before = faults();
    assert!(before > 0, "it was seen at its start");
    for _ in 0..HITS {
        assert_eq!(client.get("/hello.txt").status, 200);
    }
    let more = faults() - before;
    figure!("page faults of {HITS} hits: {more}");
    assert!(more <= 2, "{more} page faults");
}

/// Random bits come from a generator that asks the system once, when the core starts.
#[test]
fn a_pinned_hit_with_an_id_costs_no_call_more() {
    let tree = Tree::new();
    tree.file("hello.txt", "x".repeat(512));
    let server = Server::start(tree.path(), |launch| {
        launch.arg("--workers").arg("1").arg("--io").arg("readiness").arg("--request-id").arg("on");
    });
    let mut client = server.connect();
    for _ in 0..100 {
        assert_eq!(client.get("/hello.txt").body.len(), 512);
    }
    let strace = trace!(server);
    let mut before = String::new();
    for _ in 0..HITS {
        let answer = client.get("/hello.txt");
        let id = answer.field("x-request-id").expect("an id");
        assert_ne!(id, before);
        id.clone_into(&mut before);
    }
    let counts = strace.counts();
    let slack = slack(&counts);
    let (reads, writes) = (sum(&counts, &READS), sum(&counts, &WRITES));
    assert!((HITS..=HITS + slack).contains(&reads), "{reads} reads");
    assert!((HITS..=HITS + slack).contains(&writes), "{writes} writes");
    let other = counts.values().sum::<u64>() - reads - writes - sum(&counts, &WAITS);
    assert!(other <= slack, "{other} other calls: {counts:?}");
}

/// A span is packed into a buffer that is there already. It is handed over when it is full, or a second has gone.
#[test]
fn a_pinned_hit_with_a_span_costs_no_call_more() {
    let tree = Tree::new();
    tree.file("hello.txt", "x".repeat(512));
    let collector = Raw::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Duration::ZERO);
    let (root, to) = (tree.path().display().to_string(), collector.to());
    let server = Server::start("/", |launch| {
        launch.arg("--workers").arg("1").arg("--io").arg("readiness");
        launch.written(|listen| {
            format!(
                "[tracing]\notlp = \"http://{to}\"\n[[site]]\nlisten = [\"{listen}\"]\n\
                 root = \"{root}\"\ntraceparent = \"on\"\n"
            )
        });
    });
    let mut client = server.connect();
    for _ in 0..100 {
        assert_eq!(client.get("/hello.txt").body.len(), 512);
    }
    eventually("spans are sent", || collector.connections() > 0);
    let strace = trace!(server);
    for _ in 0..HITS {
        assert_eq!(client.get("/hello.txt").status, 200);
    }
    let counts = strace.counts();
    figure!("system calls of {HITS} hits with spans: {counts:?}");
    // The export: some calls for each batch, of which there is one in two seconds or for each 512 spans.
    let slack = slack(&counts) + 100 + 20 * HITS / 512;
    let (reads, writes) = (sum(&counts, &READS), sum(&counts, &WRITES));
    assert!((HITS..=HITS + slack).contains(&reads), "{reads} reads");
    assert!((HITS..=HITS + slack).contains(&writes), "{writes} writes");
    let other = counts.values().sum::<u64>() - reads - writes - sum(&counts, &WAITS);
    assert!(other <= slack, "{other} other calls: {counts:?}");
}

#[test]
fn what_is_absent_is_answered_without_a_thread() {
    let (tree, server) = serve("hello.txt", "hello");
    if forgets_what_is_absent(&tree) {
        skip!("this file system keeps no names of what is absent");
    }
    let mut client = server.connect();
    for _ in 0..100 {
        assert_eq!(client.get("/none.txt").status, 404);
    }
    let strace = trace!(server);
    for _ in 0..HITS {
        assert_eq!(client.get("/none.txt").status, 404);
    }
    let counts = strace.counts();
    let slack = slack(&counts);
    figure!("system calls of {HITS} answers that nothing is there: {counts:?}");
    let opens = sum(&counts, &["openat2"]);
    assert!((HITS..=HITS + slack).contains(&opens), "{opens} look-ups: {counts:?}");
    let wakes = sum(&counts, &["futex"]);
    assert!(wakes <= slack, "{wakes} calls of a thread: {counts:?}");
    tree.file("none.txt", "now");
    assert_eq!(client.get("/none.txt").text(), "now");
}

/// Answers that are there leave together with those that nothing is there, because no thread is asked.
#[test]
fn what_is_absent_does_not_part_what_is_answered_together() {
    const BURSTS: u64 = HITS / AT_ONCE;
    let (tree, server) = serve("hello.txt", "hello");
    if forgets_what_is_absent(&tree) {
        skip!("this file system keeps no names of what is absent");
    }
    let mut client = server.connect();
    let targets: Vec<&str> =
        ["/hello.txt", "/none.txt"].into_iter().cycle().take(AT_ONCE as usize).collect();
    let one = |target: &&str| format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n");
    let all: String = targets.iter().map(one).collect();
    let mut burst = || {
        client.send(&all);
        for target in &targets {
            let expected = if *target == "/none.txt" { 404 } else { 200 };
            assert_eq!(client.receive().status, expected);
        }
    };
    (0..10).for_each(|_| burst());
    let strace = trace!(server);
    (0..BURSTS).for_each(|_| burst());
    let counts = strace.counts();
    let slack = slack(&counts);
    figure!(
        "system calls of {BURSTS} times {AT_ONCE} answers, every other that nothing is there: {counts:?}"
    );
    let writes = sum(&counts, &WRITES);
    assert!((BURSTS..=BURSTS + slack).contains(&writes), "{writes} writes: {counts:?}");
}

/// All connections and requests are there when the server looks, so how fast a client is does not matter. The server
/// accepts, reads, writes and closes. It neither registers the connection nor reads only to see its end.
#[test]
fn one_request_a_connection_takes_four_calls_and_a_share_of_the_wait() {
    const ROUNDS: u64 = HITS / AT_ONCE;
    let (_tree, server) = serve("hello.txt", "x".repeat(512));
    ask_at_once(&server);
    let strace = trace!(server);
    for _ in 0..ROUNDS {
        ask_at_once(&server);
    }
    let counts = strace.counts();
    let slack = slack(&counts);
    figure!("system calls of {HITS} connections that are there already: {counts:?}");
    let reads = sum(&counts, &READS);
    assert!((HITS..=HITS + slack).contains(&reads), "{reads} reads");
    // Threads that wait when a process is stopped begin their waits again: the other threads, too.
    let begun_again = sum(&counts, &["futex", "ppoll", "restart_syscall"]);
    let all = all_but_checks(&counts) - begun_again;
    assert!(all <= 4 * HITS + 5 * ROUNDS + slack, "{all} calls: {counts:?}");
}

/// One after the other, each as fast as its client: the server may look before the request is there.
#[test]
fn one_request_a_connection_takes_at_most_five_calls_beside_the_wait() {
    let (_tree, server) = serve("hello.txt", "x".repeat(512));
    let ask = || {
        let mut client = server.connect();
        client.send(LAST_REQUEST);
        is_answered_to_the_end(&mut client);
    };
    ask();
    let strace = trace!(server);
    for _ in 0..HITS {
        ask();
    }
    let counts = strace.counts();
    let slack = slack(&counts);
    figure!("system calls of {HITS} connections, one after the other: {counts:?}");
    // A request that comes after the server has looked is waited for: a read in vain, registered, and taken out again.
    let late = sum(&counts, &["epoll_ctl"]) / 2;
    let reads = sum(&counts, &READS);
    assert!((HITS..=HITS + late + slack).contains(&reads), "{reads} reads");
    let waits = sum(&counts, &WAITS);
    let all = all_but_checks(&counts) - waits;
    assert!(all <= 5 * HITS + 3 * late + slack, "{all} calls beside {waits} waits: {counts:?}");
    assert_eq!(counts.get("shutdown"), None, "{counts:?}");
}

/// A client that does not say that it closes: the server has to wait for it, and its end is seen by a read.
#[test]
fn a_client_that_closes_without_a_word_costs_no_more_than_eight_calls() {
    let (_tree, server) = serve("hello.txt", "x".repeat(512));
    let ask = || assert_eq!(server.connect().get("/hello.txt").body.len(), 512);
    ask();
    let strace = trace!(server);
    for _ in 0..HITS {
        ask();
    }
    let counts = strace.counts();
    let slack = slack(&counts);
    figure!("system calls of {HITS} connections that their clients close: {counts:?}");
    let all = all_but_checks(&counts) - sum(&counts, &WAITS);
    assert!(all <= 8 * HITS + slack, "{all} calls: {counts:?}");
}

/// Connections of one request that come together.
const AT_ONCE: u64 = 50;

/// So many connections and their requests are there when the server looks. All of them are answered.
#[track_caller]
fn ask_at_once(server: &Server) {
    server.signal(Signal::STOP);
    let mut clients: Vec<Client> = (0..AT_ONCE).map(|_| server.connect()).collect();
    clients.iter_mut().for_each(|client| client.send(LAST_REQUEST));
    server.signal(Signal::CONT);
    clients.iter_mut().for_each(is_answered_to_the_end);
}

/// The response to [`LAST_REQUEST`] comes, and then the end of the connection.
#[track_caller]
fn is_answered_to_the_end(client: &mut Client) {
    assert_eq!(client.receive().body.len(), 512);
    assert!(client.take_all().is_empty(), "an orderly end");
}

/// All calls, but those by which only a debug build looks whether what it closes is open.
fn all_but_checks(counts: &Counts) -> u64 {
    counts.values().sum::<u64>() - sum(counts, &["fcntl"])
}

/// The head and the file, which waits in a pipe while its version is looked at, leave in one burst; nothing of
/// it is read into memory.
#[test]
fn a_file_from_the_page_cache_is_handed_on_in_one_piece() {
    const SIZE: usize = 120_000;
    let (_tree, server) = serve("large.bin", vec![b'x'; SIZE]);
    let mut client = server.connect();
    for _ in 0..100 {
        assert_eq!(client.get("/large.bin").body.len(), SIZE);
    }
    let strace = trace!(server);
    for _ in 0..HITS {
        assert_eq!(client.get("/large.bin").body.len(), SIZE);
    }
    let counts = strace.counts();
    let slack = slack(&counts);
    figure!("system calls of {HITS} files: {counts:?}");
    let writes = sum(&counts, &WRITES);
    let looks = sum(&counts, &["stat", "fstat", "newfstatat", "statx"]);
    assert!((HITS..=HITS + slack).contains(&writes), "{writes} writes: the heads");
    assert!((HITS..=HITS + slack).contains(&looks), "{looks} looks at the version");
    let moved = sum(&counts, &["splice", "sendfile"]);
    assert!((2 * HITS..=2 * HITS + slack).contains(&moved), "{moved}: into the pipe, out of it");
    let read = sum(&counts, &["pread64", "read"]);
    assert!(read <= slack, "{read} times a file was read");
}

#[test]
fn pipelined_hits_share_their_reads_and_writes() {
    const BATCH: usize = 16;
    let (_tree, server) = serve("hello.txt", "x".repeat(128));
    let requests = "GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n".repeat(BATCH);
    let mut client = server.connect();
    let mut round = || {
        client.send(&requests);
        for _ in 0..BATCH {
            assert_eq!(client.receive().status, 200);
        }
    };
    round();
    let strace = trace!(server);
    for _ in 0..50 {
        round();
    }
    let counts = strace.counts();
    let slack = slack(&counts);
    figure!("system calls of 50 pipelines of {BATCH}: {counts:?}");
    let writes = sum(&counts, &WRITES);
    let gathered = (50..=50 + slack).contains(&writes);
    assert!(gathered, "answers are gathered into one write: {writes}");
}

const KEPT_REQUEST: &str = "GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n";

/// Requests on many kept connections are there when the server looks: it takes them all with one call or two, and
/// hands all answers over with another.
#[test]
fn by_completion_busy_hits_share_their_calls() {
    const AT_ONCE: u64 = 20;
    const ROUNDS: u64 = HITS / AT_ONCE;
    let (_tree, server) = serve_by_completion!("hello.txt", "x".repeat(512));
    let mut clients: Vec<Client> = (0..AT_ONCE).map(|_| server.connect()).collect();
    let mut round = || {
        server.signal(Signal::STOP);
        clients.iter_mut().for_each(|client| client.send(KEPT_REQUEST));
        server.signal(Signal::CONT);
        for client in &mut clients {
            assert_eq!(client.receive().body.len(), 512);
        }
    };
    round();
    round();
    let strace = trace!(server);
    for _ in 0..ROUNDS {
        round();
    }
    let counts = strace.counts();
    let slack = slack(&counts);
    figure!("system calls of {HITS} hits, {AT_ONCE} at a time, by completion: {counts:?}");
    let enters = sum(&counts, &["io_uring_enter"]);
    assert!(enters > 0 && enters <= HITS / 4, "{enters} enters for {HITS} hits");
    let begun_again = sum(&counts, &["futex", "ppoll", "restart_syscall"]);
    let all = all_but_checks(&counts) - begun_again;
    assert!(all <= HITS / 2 + slack, "{all} calls: {counts:?}");
    assert_eq!(sum(&counts, &READS) + sum(&counts, &["sendto", "epoll_ctl"]), 0, "{counts:?}");
}

/// One after the other there is nothing to share: the request is taken, the answer handed over.
#[test]
fn by_completion_a_lone_hit_costs_two_enters_and_the_wait() {
    let (_tree, server) = serve_by_completion!("hello.txt", "x".repeat(512));
    let mut client = server.connect();
    let counts = counts_of_lone_hits!(&server, client);
    figure!("system calls of {HITS} hits, one at a time, by completion: {counts:?}");
    assert_lone_hits(&counts);
}

/// TLS is between the ring and the request: it costs no call of its own.
#[test]
fn by_completion_a_lone_hit_over_tls_costs_what_it_costs_without() {
    let (tree, authority) = (Tree::new(), Authority::new());
    tree.file("hello.txt", "x".repeat(512));
    let server = serve_tls_by_completion!(&authority, &tree);
    let way = authority.way(&server);
    let mut client = way.connect();
    let counts = counts_of_lone_hits!(&server.server, client);
    figure!("system calls of {HITS} hits over TLS, one at a time, by completion: {counts:?}");
    assert_lone_hits(&counts);
}

/// HTTP/2 is between the ring and the request, too.
#[test]
fn by_completion_a_lone_hit_by_http2_costs_two_enters_and_the_wait() {
    let (_tree, server) = serve_by_completion!("hello.txt", "x".repeat(512));
    let mut client = H2Client::connect(&server);
    // Nothing comes from it but its requests.
    client.open_wide();
    let counts = counts_of_lone_hits!(&server, client);
    figure!("system calls of {HITS} hits by HTTP/2, one at a time, by completion: {counts:?}");
    assert_lone_hits(&counts);
}

/// And both together.
#[test]
fn by_completion_a_lone_hit_by_http2_over_tls_costs_what_it_costs_without() {
    let (tree, authority) = (Tree::new(), Authority::new());
    tree.file("hello.txt", "x".repeat(512));
    let server = serve_tls_by_completion!(&authority, &tree);
    let way = Way::by_h2(&authority, &server);
    let mut client = H2Client::connect_with(way.address(), &[]);
    client.open_wide();
    let counts = counts_of_lone_hits!(&server.server, client);
    figure!("system calls of {HITS} hits by HTTP/2 over TLS, by completion: {counts:?}");
    assert_lone_hits(&counts);
}

/// A server of one worker that speaks HTTP/3, and a client of it.
macro_rules! serve_http3 {
    ($authority:expr, $tree:expr, $allocations:expr) => {{
        $tree.file("hello.txt", "x".repeat(512));
        let allocations: Option<Arc<Allocations>> = $allocations;
        let launch = move |launch: &mut Launch| {
            launch.arg("--workers").arg("1");
            allocations.iter().for_each(|allocations| allocations.load(launch));
        };
        let sections = "[http3]\nenabled = true\n".to_owned();
        let plan = tls::Plan { sections, launch: Box::new(launch), ..tls::Plan::default() };
        let server = TlsServer::with($authority, $tree.path(), plan);
        match QuicClient::start($authority, server.tls) {
            Ok(mut client) => {
                // The window of its control stream, a key of its own, and its path's MTU are settled then.
                for _ in 0..200 {
                    assert_eq!(client.get("/hello.txt")["length"], 512);
                }
                (server, client)
            }
            Err(why) => skip!("{why}"),
        }
    }};
}

/// A datagram brings the request, one takes the answer, and the client may acknowledge it by one of its own. The socket is
/// read until it is empty.
#[test]
fn a_lone_hit_by_http3_costs_a_few_reads_and_a_write_or_two() {
    let (tree, authority) = (Tree::new(), Authority::new());
    let (server, mut client) = serve_http3!(&authority, &tree, None);
    let strace = trace!(&server.server);
    for _ in 0..HITS {
        assert_eq!(client.get("/hello.txt")["status"], 200);
    }
    let counts = strace.counts();
    let slack = slack(&counts);
    figure!("system calls of {HITS} hits by HTTP/3, one at a time: {counts:?}");
    let (reads, writes) = (sum(&counts, &READS), sum(&counts, &WRITES));
    assert!((HITS..=4 * HITS + slack).contains(&reads), "{reads} reads");
    assert!((HITS..=2 * HITS + slack).contains(&writes), "{writes} writes");
    let waits = sum(&counts, &WAITS);
    assert!(waits <= 4 * HITS + slack, "{waits} waits");
    let other = counts.values().sum::<u64>() - reads - writes - waits;
    assert!(other <= slack, "{other} other calls: {counts:?}");
}

/// Allocations of a hit. The transport has most of them: it keeps a stream, the frames that it may have to send again, and
/// each packet that came or went.
const HTTP3_ALLOCATIONS: u64 = 7;

#[test]
fn a_hit_by_http3_allocates_for_its_stream_and_packets_and_not_for_its_head() {
    let allocations = match Allocations::new() {
        Ok(allocations) => Arc::new(allocations),
        Err(why) => skip!("{why}"),
    };
    let (tree, authority) = (Tree::new(), Authority::new());
    let (_server, mut client) = serve_http3!(&authority, &tree, Some(Arc::clone(&allocations)));
    let begun = allocations.count();
    assert!(begun > 1000, "the library is loaded");
    for _ in 0..HITS {
        assert_eq!(client.get("/hello.txt")["status"], 200);
    }
    let each = (allocations.count() - begun) as f64 / HITS as f64;
    figure!("allocations of a hit by HTTP/3: {each}");
    assert!(each <= HTTP3_ALLOCATIONS as f64, "{each} allocations");
}

/// A connection of one request never meets the ring.
#[test]
fn by_completion_one_request_a_connection_costs_what_it_costs_by_readiness() {
    let (_tree, server) = serve_by_completion!("hello.txt", "x".repeat(512));
    ask_at_once(&server);
    let strace = trace!(server);
    for _ in 0..HITS / AT_ONCE {
        ask_at_once(&server);
    }
    let counts = strace.counts();
    let slack = slack(&counts);
    figure!("system calls of {HITS} connections of one request, by completion: {counts:?}");
    let begun_again = sum(&counts, &["futex", "ppoll", "restart_syscall"]);
    let all = all_but_checks(&counts) - begun_again;
    assert!(all <= 4 * HITS + 5 * HITS / AT_ONCE + slack, "{all} calls: {counts:?}");
    assert!(sum(&counts, &["io_uring_enter"]) <= slack, "{counts:?}");
}

/// How many sites there are at first, and then.
const SITES: [usize; 2] = [100, 600];

/// A server with so many sites, each with a root of its own.
fn serve_sites(tree: &Tree, sites: usize, configure: impl FnOnce(&mut Launch)) -> Server {
    for site in 0..sites {
        tree.file(format!("s{site}/index.html"), "x");
    }
    let server = Server::start(tree.path(), |launch| {
        configure(launch);
        launch.written(|listen| {
            let site = |site| {
                let root = tree.path().join(format!("s{site}"));
                let root = root.display();
                format!("[[site]]\nlisten = [\"{listen}\"]\nhosts = [\"h{site}.example\"]\nroot = \"{root}\"\n")
            };
            "workers = 1\n".to_owned() + &(0..sites).map(site).collect::<String>()
        });
    });
    eventually("the roots are watched", || server.log().contains("watched"));
    server
}

/// The calls that each site adds. Locks that threads wait for, and memory, depend on chance; and from time to time the watcher looks
/// whether the roots are still there (fstat).
fn of_a_site(counts: &[Counts; 2]) -> u64 {
    let by_chance =
        ["fstat", "futex", "brk", "mmap", "munmap", "madvise", "mprotect", "sched_yield"];
    let [few, many] = counts.each_ref().map(|counts| {
        let all: u64 = counts.values().sum();
        all - sum(counts, &by_chance)
    });
    many.saturating_sub(few) / (SITES[1] - SITES[0]) as u64
}

/// System calls that each site adds to a start, with the scan of its directory. All roots lie on one file system, which is
/// asked for its kind once.
#[test]
fn a_start_costs_a_site_few_calls() {
    if let Err(why) = Strace::can_start() {
        skip!("{why}");
    }
    let tree = Tree::new();
    let counts = SITES.map(|sites| {
        let mut server = serve_sites(&tree, sites, |launch| {
            launch.traced();
        });
        let counts = server.kill_for_calls();
        figure!("system calls of a start of {sites} sites: {counts:?}");
        assert!(sum(&counts, &["fstatfs", "statfs"]) < 8, "{counts:?}");
        counts
    });
    let added = |name| (sum(&counts[1], &[name]) - sum(&counts[0], &[name])) / 500;
    assert!(added("inotify_add_watch") == 1 && added("landlock_add_rule") <= 1, "{counts:?}");
    let a_site = of_a_site(&counts);
    assert!(a_site <= 18, "calls of a site: {a_site}");
}

/// System calls that each site adds to a reload. The directories that are served already are neither watched anew nor looked into, and
/// helpers that may read them go on.
#[test]
fn a_reload_costs_a_site_few_calls() {
    let tree = Tree::new();
    let mut calls = Vec::new();
    for sites in SITES {
        let server = serve_sites(&tree, sites, |_| ());
        let strace = trace!(server);
        server.signal(Signal::HUP);
        eventually("it is reloaded", || server.log().contains("reloaded"));
        let counts = strace.counts();
        figure!("system calls of a reload of {sites} sites: {counts:?}");
        assert!(sum(&counts, &["inotify_add_watch", "inotify_rm_watch"]) < 8, "{counts:?}");
        assert!(sum(&counts, &["getdents64"]) < 50, "{counts:?}");
        assert_eq!(sum(&counts, &["landlock_add_rule"]), 0, "{counts:?}");
        calls.push(counts);
    }
    let counts = <[Counts; 2]>::try_from(calls).expect("two");
    let a_site = of_a_site(&counts);
    assert!(a_site <= 5, "calls of a site: {a_site}");
}

/// The client may acknowledge an answer by a datagram of its own. Each wake-up reads once, and no read finds the socket empty.
#[test]
fn a_hit_by_http3_reads_no_empty_socket() {
    let (tree, authority) = (Tree::new(), Authority::new());
    tree.file("hello.txt", "x".repeat(512));
    let launch = |launch: &mut Launch| {
        launch.arg("--workers").arg("1");
    };
    let plan = tls::Plan { launch: Box::new(launch), ..tls::Plan::default() };
    let server = TlsServer::with(&authority, tree.path(), plan);
    let mut client = match afpa_tests::quic::QuicClient::start(&authority, server.tls) {
        Ok(client) => client,
        Err(why) => skip!("{why}"),
    };
    for _ in 0..100 {
        assert_eq!(client.get("/hello.txt")["length"], 512);
    }
    let strace = trace!(server.server);
    for _ in 0..HITS {
        assert_eq!(client.get("/hello.txt")["status"], 200);
    }
    let counts = strace.counts();
    let slack = slack(&counts);
    figure!("system calls of {HITS} hits by HTTP/3, one after the other: {counts:?}");
    let (reads, waits) = (sum(&counts, &["recvmmsg"]), sum(&counts, &WAITS));
    assert!((HITS..=waits + slack).contains(&reads), "{reads} reads, {waits} waits: {counts:?}");
}

/// Files that are longer than what is pinned are read in pieces of 59 KiB, less at the beginning, at the end, and where the client
/// is waited for. There are hardly more calls that send than pieces.
#[test]
fn a_long_answer_by_http3_is_read_and_sent_in_long_pieces() {
    const TIMES: u64 = 20;
    const LENGTH: usize = 1024 * 1024;
    let (tree, authority) = (Tree::new(), Authority::new());
    tree.file("long.bin", "x".repeat(LENGTH));
    let launch = |launch: &mut Launch| {
        launch.arg("--workers").arg("1");
    };
    let plan = tls::Plan { launch: Box::new(launch), ..tls::Plan::default() };
    let server = TlsServer::with(&authority, tree.path(), plan);
    let mut client = match afpa_tests::quic::QuicClient::start(&authority, server.tls) {
        Ok(client) => client,
        Err(why) => skip!("{why}"),
    };
    for _ in 0..5 {
        assert_eq!(client.get("/long.bin")["length"], LENGTH);
    }
    let strace = trace!(server.server);
    for _ in 0..TIMES {
        assert_eq!(client.get("/long.bin")["length"], LENGTH);
    }
    let counts = strace.counts();
    figure!("system calls of {TIMES} answers of 1 MiB by HTTP/3: {counts:?}");
    let reads = sum(&counts, &["pread64"]);
    assert!((17 * TIMES..=40 * TIMES).contains(&reads), "{reads} reads: {counts:?}");
    // Beside acknowledgements of what the client says.
    let sends = sum(&counts, &["sendmsg"]);
    assert!(
        sends <= reads + reads / 4 + slack(&counts),
        "{sends} sends of {reads} pieces: {counts:?}"
    );
}
