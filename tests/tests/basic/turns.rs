//! Long responses that wait for one another when a worker is behind.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use afpa_testkit::{Server, Tree, tree::patterned};

const LARGE: usize = 2_000_000;
const MIDDLE: usize = 60_000;

fn waits(server: &Server) -> u64 {
    let output = server.command(&["stats", "--json"]);
    let stats: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    stats["connections"]["turns_waited_for"].as_u64().expect("a count")
}

/// Downloads, and responses that are pinned and too long to be gathered, at the same time.
fn many_long_responses(long_sends: &str, more: &str) -> u64 {
    let tree = Tree::new();
    tree.file("large.bin", patterned(LARGE));
    tree.file("middle.bin", patterned(MIDDLE));
    let root = tree.path().display();
    let server = Server::start(tree.path(), |launch| {
        launch.written(|endpoint| {
            format!(
                "workers = 1\n[internals]\nlong_sends = \"{long_sends}\"\n\
                 [[site]]\nlisten = [\"{endpoint}\"]\nroot = \"{root}\"\n{more}"
            )
        });
    });
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let downloads: Vec<_> = (0..6)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = server.connect();
                    for _ in 0..3 {
                        assert!(client.get("/large.bin").body == patterned(LARGE), "whole");
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = server.connect();
                while !done.load(Ordering::Relaxed) {
                    assert!(client.get("/middle.bin").body == patterned(MIDDLE), "whole");
                }
            });
        }
        let joined: Vec<_> = downloads.into_iter().map(|download| download.join()).collect();
        done.store(true, Ordering::Relaxed);
        assert!(joined.iter().all(Result::is_ok));
    });
    waits(&server)
}

#[test]
fn long_responses_wait_for_their_turns_and_arrive_whole() {
    assert!(many_long_responses("64KiB", "") > 0);
}

/// No response starves, not even one of the lowest priority.
#[test]
fn those_of_low_priority_arrive_beside_those_of_high_priority() {
    let more = "[[site.hint]]\nprefix = \"/large\"\npriority = \"low\"\n\
                [[site.hint]]\nprefix = \"/middle\"\npriority = \"high\"\n";
    assert!(many_long_responses("64KiB", more) > 0);
}

#[test]
fn without_a_limit_nobody_waits() {
    assert_eq!(many_long_responses("0B", ""), 0);
}

/// A client that goes away while its response waits for a turn leaves its place.
#[test]
fn who_leaves_does_not_keep_its_turn() {
    let tree = Tree::new();
    tree.file("large.bin", patterned(LARGE));
    let root = tree.path().display();
    let server = Server::start(tree.path(), |launch| {
        launch.written(|endpoint| {
            format!(
                "workers = 1\n[internals]\nlong_sends = \"16KiB\"\n\
                 [[site]]\nlisten = [\"{endpoint}\"]\nroot = \"{root}\"\n"
            )
        });
    });
    for _ in 0..10 {
        let mut leaving: Vec<_> = (0..8).map(|_| server.connect()).collect();
        for client in &mut leaving {
            client.send("GET /large.bin HTTP/1.1\r\nHost: h\r\n\r\n");
        }
        let mut staying = server.connect();
        staying.send("GET /large.bin HTTP/1.1\r\nHost: h\r\n\r\n");
        for client in leaving {
            client.abort().expect("reset");
        }
        assert!(staying.receive().body == patterned(LARGE), "whole");
    }
}
