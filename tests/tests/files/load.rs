//! Many changes, many readers, more events than the kernel keeps.

use std::{
    collections::HashMap,
    fs,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use afpa_testkit::{Response, Tree, eventually_within, exclusive::exclusive, figure};

use crate::{becomes, serve};

/// Reading a full queue of events takes so long in a debug build on a busy machine.
const FLOOD: Duration = Duration::from_secs(60);

/// Reads that are a load.
const ENOUGH: u64 = 50;

/// Version `n` of a file: its number again and again, in a length that depends on it.
fn version(n: u64, scale: usize) -> String {
    format!("{n:08}\n").repeat(scale + (n % 7) as usize * scale / 5)
}

/// The version of a response, all of which must be of that one.
#[track_caller]
fn version_of(response: &Response, scale: usize) -> u64 {
    assert_eq!(response.status, 200, "{response:?}");
    let n = response.text()[..8].parse().expect("a version number");
    assert!(response.text() == version(n, scale), "torn at version {n}: {response:?}");
    n
}

/// Replaces one file again and again while eight clients read it.
fn replaced_under_load(scale: usize) {
    let _alone = exclusive();
    let tree = Tree::new();
    tree.file("f.txt", version(0, scale));
    let server = serve(&tree);
    let stop = AtomicBool::new(false);
    let written = Mutex::new(vec![(Instant::now(), 0)]);
    let tags: Mutex<HashMap<String, u64>> = Mutex::new(HashMap::new());
    let reads = AtomicU64::new(0);
    thread::scope(|scope| {
        for number in 0..8 {
            let (stop, written, tags, reads) = (&stop, &written, &tags, &reads);
            let server = &server;
            scope.spawn(move || {
                let mut client = server.connect();
                let mut seen = 0;
                while !stop.load(Ordering::Relaxed) {
                    // Half of the clients meet another worker from time to time.
                    if number % 2 == 0 && seen % 5 == 0 {
                        client = server.connect();
                    }
                    let floor = oldest_allowed(written);
                    let response = client.get("/f.txt");
                    let n = version_of(&response, scale);
                    assert!(n >= seen, "version {n} after {seen} was seen");
                    assert!(n >= floor, "version {n} a second after {floor} was written");
                    seen = n;
                    let tag = response.field("etag").expect("an entity tag").to_owned();
                    let known = *tags.lock().expect("tags").entry(tag).or_insert(n);
                    assert_eq!(known, n, "one entity tag for two versions");
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let writer = scope.spawn(|| {
            let begun = Instant::now();
            let is_enough = || {
                let time = begun.elapsed();
                let reads = reads.load(Ordering::Relaxed);
                time > Duration::from_secs(2) && (reads > ENOUGH || time > FLOOD)
            };
            let mut n = 0;
            while !is_enough() {
                n += 1;
                tree.replace("f.txt", version(n, scale));
                written.lock().expect("writer").push((Instant::now(), n));
                thread::sleep(Duration::from_millis(n % 23));
            }
            stop.store(true, Ordering::Relaxed);
            n
        });
        let last = writer.join().expect("the writer");
        becomes(&server, "/f.txt", 200, &version(last, scale));
        figure!("{last} versions, {} reads", reads.load(Ordering::Relaxed));
    });
    assert!(reads.into_inner() > ENOUGH, "there was a load");
}

/// The newest version that is a second old: no request may get an older one.
fn oldest_allowed(written: &Mutex<Vec<(Instant, u64)>>) -> u64 {
    let now = Instant::now();
    let written = written.lock().expect("written");
    let old = written.iter().rev().find(|(at, _)| now - *at > Duration::from_secs(1));
    old.map_or(0, |(_, n)| *n)
}

#[test]
fn a_pinned_file_replaced_under_load_is_never_torn_and_never_stale() {
    replaced_under_load(200);
}

#[test]
fn a_large_file_replaced_under_load_is_never_torn_and_never_stale() {
    replaced_under_load(40_000);
}

#[test]
fn more_events_than_the_kernel_keeps_leave_nothing_stale() {
    const FILES: usize = 150;
    let _alone = exclusive();
    let tree = Tree::new();
    tree.dir("noise");
    for n in 0..FILES {
        tree.file(format!("f{n}.txt"), "old");
    }
    let server = serve(&tree);
    let mut client = server.connect();
    for n in 0..FILES {
        assert_eq!(client.get(&format!("/f{n}.txt")).text(), "old");
    }
    // A stopped server reads no events: the queue is sure to overflow.
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events");
    let limit = limit.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(16_384);
    server.signal(rustix::process::Signal::STOP);
    let mut events = 0;
    while events < limit + 1000 {
        let name = format!("noise/{}", events % 1000);
        tree.file(&name, "x");
        tree.remove(&name);
        // At least created, modified, closed and removed, in one watched folder.
        events += 3;
    }
    for n in 0..FILES {
        tree.replace(format!("f{n}.txt"), format!("new {n}"));
    }
    server.signal(rustix::process::Signal::CONT);
    // The word of the overflow stands at the end of the queue, behind all that it holds. Until it is read, single files are
    // found changed by comparison.
    let is_new = |n: usize| server.get(&format!("/f{n}.txt")).text() == format!("new {n}");
    let took = eventually_within(FLOOD, "the flood is over", || (0..FILES).all(is_new));
    figure!("{limit} events read in {took:?}");
    // And the watch goes on.
    tree.replace("f0.txt", "after the flood");
    becomes(&server, "/f0.txt", 200, "after the flood");
}
