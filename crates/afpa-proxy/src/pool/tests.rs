use std::future::poll_fn;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream as Peer;
use std::task::{Context, Poll};
use std::time::Duration;

use afpa_ring::{PreparedRing, Ring};
use tokio::net::UnixStream;

use super::socket::ServerSocket;
use super::*;

/// A connection, and the server's end of it.
fn pair() -> (ServerStream, Peer) {
    pair_of(&CoreRing::default())
}

fn pair_of(ring: &CoreRing) -> (ServerStream, Peer) {
    let (near, far) = Peer::pair().expect("a pair");
    near.set_nonblocking(true).expect("a setting");
    let near = UnixStream::from_std(near).expect("registered");
    (ServerStream::Plain(ServerSocket::of_unix(near, ring)), far)
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
    assert!(!taken.is_silent(), "it is the second");
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

/// A core with a ring that is used, and a pool on it.
fn by_completion() -> Option<(Ring, CoreRing, Pool)> {
    let prepared = PreparedRing::new(&afpa_ring::Settings { buffers: 8, ..Default::default() });
    let ring = match prepared {
        Ok(prepared) => prepared.enable().expect("this thread owns it"),
        Err(error) => {
            println!("SKIP: the kernel refuses io_uring: {error}");
            return None;
        }
    };
    let core = CoreRing::new(Some(ring.clone()));
    core.set_used(true);
    Some((ring, core.clone(), Pool::new(core)))
}

/// Turns the ring until `poll` is ready.
async fn until<T>(ring: &Ring, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    let turning = poll_fn(|cx| {
        let polled = poll(cx);
        ring.turn().expect("a turn");
        cx.waker().wake_by_ref();
        polled
    });
    tokio::time::timeout(Duration::from_secs(5), turning).await.expect("in time")
}

/// One exchange: a question that arrives, and an answer that comes back.
async fn exchange(ring: &Ring, stream: &mut ServerStream, far: &mut Peer, size: usize) {
    let mut question = *b"question";
    let sent = until(ring, |cx| stream.poll_write(cx, &question)).await;
    assert_eq!(sent.expect("sent"), question.len());
    far.read_exact(&mut question).expect("read");
    assert_eq!(&question, b"question");
    let answer: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
    let (mut rest, mut received, mut room) = (&answer[..], Vec::new(), vec![0; 100_000]);
    far.set_nonblocking(true).expect("a setting");
    while received.len() < size {
        while let Ok(n @ 1..) = far.write(rest) {
            rest = &rest[n..];
        }
        let n = until(ring, |cx| stream.poll_read(cx, &mut room)).await.expect("received");
        received.extend_from_slice(&room[..n]);
    }
    far.set_nonblocking(false).expect("a setting");
    assert!(received == answer, "{size}");
}

#[tokio::test]
async fn by_completion_dead_and_talkative_connections_are_not_given_out() {
    let Some((ring, core, pool)) = by_completion() else { return };
    let wanted = Wanted::default();
    let kept = async |dies: bool| {
        let (mut stream, mut far) = pair_of(&core);
        // It enters the ring with the second one.
        exchange(&ring, &mut stream, &mut far, 102).await;
        exchange(&ring, &mut stream, &mut far, 102).await;
        assert_eq!(ring.counts().under_way, 1, "a receive waits");
        pool.keep((7, &wanted), stream, (0, 1000), 9);
        match dies {
            true => drop(far),
            false => far.write_all(b"HTTP/1.1 408 Request Timeout\r\n").expect("sent"),
        }
    };
    for dies in [true, false] {
        kept(dies).await;
        ring.turn().expect("a turn");
        assert!(pool.take(7, 1, 1000).is_none(), "{dies}");
        until(&ring, |_| if ring.counts().sockets == 0 { Poll::Ready(()) } else { Poll::Pending })
            .await;
    }
}

#[tokio::test]
async fn a_kept_connection_follows_the_strategy_of_its_core() {
    let Some((ring, core, pool)) = by_completion() else { return };
    let wanted = Wanted::default();
    let (mut stream, mut far) = pair_of(&core);
    for round in 0..6 {
        let used = round % 2 == 0;
        core.set_used(used);
        for _ in 0..3 {
            exchange(&ring, &mut stream, &mut far, 102).await;
            pool.keep((7, &wanted), stream, (0, 1000), 9);
            stream = pool.take(7, 1, 1000).expect("it is silent");
        }
        assert_eq!(ring.counts().sockets, usize::from(used), "{round}");
    }
}

/// The ring of this test has eight buffers of 4 KB.
#[tokio::test]
async fn without_buffers_and_held_back_an_exchange_goes_on_by_readiness() {
    let Some((ring, core, _)) = by_completion() else { return };
    let (mut stream, mut far) = pair_of(&core);
    let (mut other, mut other_far) = pair_of(&core);
    for _ in 0..2 {
        exchange(&ring, &mut stream, &mut far, 102).await;
        exchange(&ring, &mut other, &mut other_far, 102).await;
    }
    assert_eq!(ring.counts().sockets, 2);
    // It takes all buffers, because nobody reads.
    other_far.set_nonblocking(true).expect("a setting");
    while other_far.write(&[7; 10_000]).is_ok() {}
    ring.turn().expect("a turn");
    assert!(ring.counts().buffers >= 4, "{:?}", ring.counts());
    exchange(&ring, &mut stream, &mut far, 1_000_000).await;
    assert!(ring.counts().sockets <= 1, "it has left");
    // After some short ones it is back.
    drop((other, other_far));
    for _ in 0..10 {
        exchange(&ring, &mut stream, &mut far, 102).await;
    }
    assert_eq!(ring.counts().sockets, 1);
    exchange(&ring, &mut stream, &mut far, 1_000_000).await;
    assert_eq!(ring.counts().buffers, 0);
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
