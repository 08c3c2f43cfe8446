use std::io::{Read, Write};
use std::os::unix::net::UnixStream as Peer;
use std::time::Duration;

use tokio::net::UnixStream;

use super::*;

/// A connection, and the server's end of it.
fn pair() -> (ServerStream, Peer) {
    let (near, far) = Peer::pair().expect("a pair");
    near.set_nonblocking(true).expect("a setting");
    (ServerStream::Unix(UnixStream::from_std(near).expect("registered")), far)
}

/// Lets the event loop learn what has happened.
async fn look() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

#[tokio::test]
async fn the_connection_that_was_used_last_is_used_first() {
    let (pool, wanted) = (Pool::default(), Wanted::default());
    let ((first, _a), (second, mut b)) = (pair(), pair());
    pool.keep((7, &wanted), first, (0, 1000), 9);
    pool.keep((7, &wanted), second, (10, 1010), 9);
    assert!(pool.take(8, 10, 1000).is_none(), "another server's");
    let mut taken = pool.take(7, 10, 1000).expect("one is idle");
    b.write_all(b"x").expect("sent");
    look().await;
    assert!(!is_silent(&mut taken), "it is the second");
    assert_eq!(pool.waiting(), (1, 0));
}

#[tokio::test]
async fn dead_talkative_and_old_connections_are_not_given_out() {
    let (pool, wanted) = (Pool::default(), Wanted::default());
    let ((dead, a), (talkative, mut b)) = (pair(), pair());
    pool.keep((7, &wanted), dead, (0, 1000), 9);
    pool.keep((7, &wanted), talkative, (0, 1000), 9);
    drop(a);
    b.write_all(b"HTTP/1.1 408 Request Timeout\r\n").expect("sent");
    look().await;
    assert!(pool.take(7, 1, 1000).is_none());
    let (old, _c) = pair();
    pool.keep((7, &wanted), old, (0, 1000), 9);
    assert!(pool.take(7, 1000, 5000).is_none(), "idle for too long");
    let (old, _d) = pair();
    pool.keep((7, &wanted), old, (0, 1000), 9);
    assert!(pool.take(7, 300, 200).is_none(), "idle for longer than the caller wants");
}

#[tokio::test]
async fn no_more_are_kept_than_wanted_and_a_tick_closes_what_is_over() {
    let (pool, wanted) = (Pool::default(), Wanted::default());
    let ((a, _a), (b, _b), (c, _c), (d, ended)) = (pair(), pair(), pair(), pair());
    pool.keep((7, &wanted), a, (0, 1000), 1);
    pool.keep((7, &wanted), b, (0, 1000), 1);
    assert_eq!(pool.waiting(), (1, 0));
    pool.leave_to_server(c, 0);
    pool.leave_to_server(d, 0);
    drop(ended);
    look().await;
    pool.tick(10);
    assert_eq!(pool.waiting(), (1, 1), "one was closed by its server");
    pool.tick(CLOSING_MS);
    assert_eq!(pool.waiting(), (0, 0));
}

#[tokio::test]
async fn connections_to_a_server_that_gets_no_more_requests_are_closed() {
    let (pool, wanted) = (Pool::default(), Wanted::default());
    let ((before, mut seen), (after, mut other)) = (pair(), pair());
    pool.keep((7, &wanted), before, (0, 1000), 9);
    pool.tick(1);
    assert_eq!(pool.waiting(), (1, 0));
    wanted.set(false);
    pool.tick(2);
    pool.keep((7, &wanted), after, (2, 1002), 9);
    assert_eq!(pool.waiting(), (0, 0));
    for end in [&mut seen, &mut other] {
        end.set_read_timeout(Some(Duration::from_secs(5))).expect("a setting");
        assert_eq!(end.read(&mut [0]).expect("the end"), 0);
    }
}
