//! Connections without a socket: opened, answered and closed by the programs, or assigned to nginx.

mod admission;
mod alone;
mod anew;
mod assigning;
mod bad_path;
mod closing;
mod cores;
mod count;
mod flood;
mod guessing;
mod lists;
mod loss;
mod opening;
mod options;
mod requests;
mod syn_flood;

use std::time::Duration;

use crate::support::{Lent, SERVER_V4, SERVER_V6, Sample, World, counted, inside};
use afpa_bpf::{FastPath, Reason, Settings};
use afpa_testkit::{Client, eventually};

/// nginx, one pinned object, and SYNs answered by the programs.
fn world() -> Option<(World, Lent)> {
    world_with(Settings::default())
}

fn world_with(settings: Settings) -> Option<(World, Lent)> {
    let (world, fast_path) = World::with_one_pinned(Settings { socketless: true, ..settings })?;
    match inside(world.server(), || fast_path.socketless.look_at_tcp()) {
        Ok(()) => Some((world, fast_path)),
        Err(why) => {
            println!("SKIP: {why}");
            None
        }
    }
}

/// A connection without a socket: the client is known, because its handshake before was the kernel's.
fn connect(world: &World, fast_path: &FastPath, address: &str) -> Client {
    // A client is not known for long: on a busy machine it may be forgotten before it comes back.
    for _ in 0..10 {
        fast_path.clock.beat();
        let mut known = world.connect(address);
        assert!(known.get("/kernel.html").is_from_kernel());
        let before = counted(fast_path, Reason::SocketlessSyn);
        let client = world.connect(address);
        if counted(fast_path, Reason::SocketlessSyn) == before + 1 {
            return client;
        }
    }
    panic!("not without a socket: {:?}", counts(fast_path));
}

fn counts(fast_path: &FastPath) -> Vec<(&'static str, u64)> {
    let counters = fast_path.stats.counters().expect("counters");
    counters
        .iter()
        .filter(|(_, count)| *count != 0)
        .map(|(why, count)| (why.text(), count))
        .collect()
}

fn hits_and_then_a_miss(world: &World, fast_path: &FastPath, address: &str) {
    let mut client = connect(world, fast_path, address);
    for _ in 0..5 {
        assert!(client.get("/kernel.html").is_from_kernel(), "{:?}", counts(fast_path));
    }
    let reply = client.get("/user.html");
    assert!(!reply.is_from_kernel());
    assert_eq!(reply.body, b"from nginx");
    assert_eq!(client.get("/large.bin").body.len(), 3_000_000);
    assert_eq!(counted(fast_path, Reason::SocketlessToKernel), 1);
    assert!(client.get("/kernel.html").is_from_kernel(), "it came back: {:?}", counts(fast_path));
    assert_eq!(client.get("/user.html").body, b"from nginx");
    client.assert_quiet();
}

#[test]
fn hits_and_then_a_miss_ipv4() {
    let Some((world, fast_path)) = world() else { return };
    hits_and_then_a_miss(&world, &fast_path, SERVER_V4);
}

#[test]
fn hits_and_then_a_miss_ipv6() {
    let Some((world, fast_path)) = world() else { return };
    hits_and_then_a_miss(&world, &fast_path, SERVER_V6);
}

#[test]
fn a_miss_at_once() {
    let Some((world, fast_path)) = world() else { return };
    let mut client = connect(&world, &fast_path, SERVER_V4);
    assert_eq!(client.get("/user.html").body, b"from nginx");
    assert_eq!(counted(&fast_path, Reason::SocketlessToKernel), 1);
}

#[test]
fn a_client_that_closes_is_forgotten() {
    let Some((world, fast_path)) = world() else { return };
    let mut client = connect(&world, &fast_path, SERVER_V4);
    assert!(client.get("/kernel.html").is_from_kernel());
    let before = counted(&fast_path, Reason::SocketlessClosed);
    drop(client);
    eventually("it is closed", || counted(&fast_path, Reason::SocketlessClosed) == before + 1);
}

/// The answer closes the connection, and nothing of it is left.
fn one_request_a_connection(address: &str) {
    let Some((world, fast_path)) = world() else { return };
    let sample = Sample::new([b'c'; 700]);
    sample.pin_both(&fast_path, "/closing.html");
    for target in ["/closing.html", "/closing.html", "/user.html"] {
        let mut client = connect(&world, &fast_path, address);
        let closed = counted(&fast_path, Reason::SocketlessClosed);
        let reply = client.get_with(target, "Connection: close\r\n");
        assert_eq!(reply.field("connection"), Some("close"));
        assert_eq!(reply.is_from_kernel(), target == "/closing.html", "{:?}", counts(&fast_path));
        client.assert_closed();
        drop(client);
        // More of them where the connection that made the client known had no socket, either.
        let expected = closed + u64::from(target == "/closing.html");
        std::thread::sleep(Duration::from_millis(20));
        eventually("it is closed", || counted(&fast_path, Reason::SocketlessClosed) >= expected);
    }
}

#[test]
fn one_request_a_connection_ipv4() {
    one_request_a_connection(SERVER_V4);
}

#[test]
fn one_request_a_connection_ipv6() {
    one_request_a_connection(SERVER_V6);
}

#[test]
fn several_segments_and_then_the_end() {
    let settings = Settings { answer_max: 65_536, pages: 64, transfers: 64, ..Settings::default() };
    let Some((world, fast_path)) = world_with(settings) else { return };
    let sample = Sample::new(vec![b'l'; 30_000]);
    sample.pin_both(&fast_path, "/long.html");
    for _ in 0..3 {
        let mut client = connect(&world, &fast_path, SERVER_V4);
        let reply = client.get_with("/long.html", "Connection: close\r\n");
        assert!(reply.is_from_kernel(), "{:?}", counts(&fast_path));
        assert_eq!(reply.body, vec![b'l'; 30_000]);
        client.assert_closed();
    }
}
