//! The counted budget of the fast path: what one pinned hit on a kept-alive connection may ask of
//! the kernel.

use afpa_testkit::{
    Server, Tree, figure, skip,
    strace::{Counts, Strace},
};

const HITS: u64 = 1000;

/// Calls that time makes, not hits: the clock's tick, a helper thread that ends.
const SLACK: u64 = 60;

fn sum(counts: &Counts, names: &[&str]) -> u64 {
    names.iter().filter_map(|name| counts.get(*name)).sum()
}

#[test]
fn a_pinned_hit_costs_one_read_one_write_and_the_wait() {
    let tree = Tree::new();
    tree.file("hello.txt", "x".repeat(512));
    let server = Server::start(tree.path(), |launch| {
        launch.arg("--workers").arg("1");
    });
    let mut client = server.connect();
    for _ in 0..100 {
        assert_eq!(client.get("/hello.txt").body.len(), 512);
    }
    let strace = match Strace::attach(server.pid()) {
        Ok(strace) => strace,
        Err(why) => skip!("{why}"),
    };
    for _ in 0..HITS {
        assert_eq!(client.get("/hello.txt").status, 200);
    }
    let counts = strace.counts();
    figure!("system calls of {HITS} hits: {counts:?}");
    let reads = sum(&counts, &["read", "recv", "recvfrom", "recvmsg", "readv"]);
    let writes = sum(&counts, &["write", "send", "sendto", "sendmsg", "writev"]);
    let waits = sum(&counts, &["epoll_wait", "epoll_pwait", "epoll_pwait2"]);
    assert!((HITS..=HITS + SLACK).contains(&reads), "{reads} reads");
    assert!((HITS..=HITS + SLACK).contains(&writes), "{writes} writes");
    assert!(waits <= HITS + SLACK, "{waits} waits");
    let all: u64 = counts.values().sum();
    let other = all - reads - writes - waits;
    assert!(other <= SLACK, "{other} other calls: {counts:?}");
    let files =
        sum(&counts, &["open", "openat", "openat2", "stat", "fstat", "newfstatat", "statx"]);
    assert_eq!(files, 0, "no hit looks at the file system: {counts:?}");
}

/// The head and the file, which waits in a pipe while its version is looked at, leave in one burst; nothing of
/// it is read into memory.
#[test]
fn a_file_from_the_page_cache_is_handed_on_in_one_piece() {
    const SIZE: usize = 120_000;
    let tree = Tree::new();
    tree.file("large.bin", vec![b'x'; SIZE]);
    let server = Server::start(tree.path(), |launch| {
        launch.arg("--workers").arg("1");
    });
    let mut client = server.connect();
    for _ in 0..100 {
        assert_eq!(client.get("/large.bin").body.len(), SIZE);
    }
    let strace = match Strace::attach(server.pid()) {
        Ok(strace) => strace,
        Err(why) => skip!("{why}"),
    };
    for _ in 0..HITS {
        assert_eq!(client.get("/large.bin").body.len(), SIZE);
    }
    let counts = strace.counts();
    figure!("system calls of {HITS} files: {counts:?}");
    let writes = sum(&counts, &["write", "send", "sendto", "sendmsg", "writev"]);
    let looks = sum(&counts, &["stat", "fstat", "newfstatat", "statx"]);
    assert!((HITS..=HITS + SLACK).contains(&writes), "{writes} writes: the heads");
    assert!((HITS..=HITS + SLACK).contains(&looks), "{looks} looks at the version");
    let moved = sum(&counts, &["splice", "sendfile"]);
    assert!((2 * HITS..=2 * HITS + SLACK).contains(&moved), "{moved}: into the pipe, out of it");
    let read = sum(&counts, &["pread64", "read"]);
    assert!(read <= SLACK, "{read} times a file was read");
}

#[test]
fn pipelined_hits_share_their_reads_and_writes() {
    const BATCH: usize = 16;
    let tree = Tree::new();
    tree.file("hello.txt", "x".repeat(128));
    let server = Server::start(tree.path(), |launch| {
        launch.arg("--workers").arg("1");
    });
    let requests = "GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n".repeat(BATCH);
    let mut client = server.connect();
    let mut round = || {
        client.send(&requests);
        for _ in 0..BATCH {
            assert_eq!(client.receive().status, 200);
        }
    };
    round();
    let strace = match Strace::attach(server.pid()) {
        Ok(strace) => strace,
        Err(why) => skip!("{why}"),
    };
    for _ in 0..50 {
        round();
    }
    let counts = strace.counts();
    figure!("system calls of 50 pipelines of {BATCH}: {counts:?}");
    let writes = sum(&counts, &["write", "send", "sendto", "sendmsg", "writev"]);
    let gathered = (50..=50 + SLACK).contains(&writes);
    assert!(gathered, "answers are gathered into one write: {writes}");
}
