//! Rings against sockets of this process.

use std::fs;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::*;

/// Numbers of operations, for [`Kernel::restrict`].
const ASYNC_CANCEL: u8 = 14;
const SEND: u8 = 26;
const RECEIVE: u8 = 27;

fn prepared(settings: &Settings) -> Option<PreparedRing> {
    match PreparedRing::new(settings) {
        Ok(ring) => Some(ring),
        Err(error) => {
            println!("SKIP: the kernel refuses io_uring: {error}");
            None
        }
    }
}

fn ring(settings: Settings) -> Option<Ring> {
    prepared(&settings).map(|ring| ring.enable().expect("this thread owns it"))
}

/// A stream of the ring, and its other end.
fn pair(ring: &Ring) -> (RingStream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    theirs.set_read_timeout(Some(Duration::from_secs(5))).expect("a time-out");
    (ring.stream(ours.into()), theirs)
}

/// Turns the ring until `poll` is ready.
fn until<T>(ring: &Ring, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..100_000 {
        if let Poll::Ready(output) = poll(&mut cx) {
            return output;
        }
        ring.turn().expect("a turn");
    }
    panic!("it is never ready: {:?}", ring.counts());
}

fn receive(ring: &Ring, stream: &mut RingStream, most: usize) -> Result<Vec<u8>, Stop> {
    let mut room = vec![0; most];
    let n = until(ring, |cx| stream.poll_receive(cx, &mut room))?;
    room.truncate(n);
    Ok(room)
}

fn send(ring: &Ring, stream: &mut RingStream, bytes: &[u8]) -> Result<usize, Stop> {
    let mut lent = bytes.to_vec();
    let sent = until(ring, |cx| stream.poll_send(cx, &mut lent, false));
    assert_eq!(lent, bytes, "what was lent comes back as it was");
    sent
}

fn release(ring: &Ring, stream: &mut RingStream) -> (UnixStream, Vec<u8>) {
    let (socket, unread) = until(ring, |cx| stream.poll_release(cx)).expect("released");
    (socket.into(), unread)
}

/// Turns the ring until no operation is under way.
fn settle(ring: &Ring) -> Counts {
    until(ring, |_| match ring.counts() {
        counts if counts.under_way == 0 => Poll::Ready(counts),
        _ => Poll::Pending,
    })
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("/proc").count()
}

fn is_told(event: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(event, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::default())).expect("a poll") == 1
}

#[test]
fn a_ring_can_be_made_on_one_thread_and_used_by_another() {
    let Some(prepared) = prepared(&Settings::default()) else { return };
    let used = std::thread::spawn(move || {
        let ring = prepared.enable().expect("this thread owns it");
        let (mut stream, mut other) = pair(&ring);
        other.write_all(b"question").expect("written");
        assert_eq!(receive(&ring, &mut stream, 100).expect("received"), b"question");
        assert_eq!(send(&ring, &mut stream, b"answer").expect("sent"), 6);
        let mut answer = [0; 6];
        other.read_exact(&mut answer).expect("read");
        assert_eq!(&answer, b"answer");
    });
    used.join().expect("no panic");
}

#[test]
fn bytes_are_read_in_their_order_whatever_the_room_and_then_the_end() {
    let Some(ring) = ring(Settings { buffer_size: 16, ..Settings::default() }) else { return };
    let (mut stream, mut other) = pair(&ring);
    let sent: Vec<u8> = (0..40).collect();
    other.write_all(&sent).expect("written");
    other.shutdown(Shutdown::Write).expect("shut down");
    let mut received = Vec::new();
    loop {
        match receive(&ring, &mut stream, 7).expect("received") {
            bytes if bytes.is_empty() => break,
            bytes => received.extend(bytes),
        }
    }
    assert_eq!(received, sent);
    assert!(receive(&ring, &mut stream, 7).expect("received").is_empty(), "it stays at the end");
    assert_eq!(ring.counts().buffers, 0);
}

#[test]
fn many_sockets_share_a_call_of_the_kernel() {
    // Not more than the kernel lets arrive in one call.
    const SOCKETS: u64 = 16;
    let Some(ring) = ring(Settings::default()) else { return };
    let mut pairs: Vec<_> = (0..SOCKETS).map(|_| pair(&ring)).collect();
    let mut cx = Context::from_waker(Waker::noop());
    for (stream, _) in &mut pairs {
        assert!(stream.poll_receive(&mut cx, &mut [0; 10]).is_pending());
    }
    ring.turn().expect("a turn");
    for _ in 0..10 {
        let before = ring.counts();
        for (stream, other) in &mut pairs {
            other.write_all(b"question").expect("written");
            let mut answer = b"answer".to_vec();
            assert!(stream.poll_send(&mut cx, &mut answer, false).is_pending());
        }
        assert_eq!(ring.turn().expect("a turn") as u64, 2 * SOCKETS);
        for (stream, other) in &mut pairs {
            assert_eq!(receive(&ring, stream, 10).expect("received"), b"question");
            assert_eq!(send_is_done(stream), 6);
            other.read_exact(&mut [0; 6]).expect("the answer");
        }
        assert_eq!(ring.counts().enters - before.enters, 1);
    }
}

fn send_is_done(stream: &mut RingStream) -> usize {
    let mut cx = Context::from_waker(Waker::noop());
    match stream.poll_send(&mut cx, &mut Vec::new(), false) {
        Poll::Ready(sent) => sent.expect("sent"),
        Poll::Pending => panic!("it was under way"),
    }
}

#[test]
fn a_full_queue_is_submitted_early() {
    const SOCKETS: usize = 100;
    let Some(ring) = ring(Settings { entries: 8, ..Settings::default() }) else { return };
    let mut pairs: Vec<_> = (0..SOCKETS).map(|_| pair(&ring)).collect();
    for (stream, other) in &mut pairs {
        let mut cx = Context::from_waker(Waker::noop());
        assert!(stream.poll_receive(&mut cx, &mut [0; 10]).is_pending());
        other.write_all(b"question").expect("written");
    }
    assert!(ring.counts().full >= 10, "{:?}", ring.counts());
    for (stream, _) in &mut pairs {
        assert_eq!(receive(&ring, stream, 10).expect("received"), b"question");
    }
    drop(pairs);
    assert_eq!((settle(&ring).sockets, ring.counts().buffers), (0, 0));
}

/// More is done than the queue of completions holds: the kernel keeps the rest.
#[test]
fn no_completion_is_lost_when_their_queue_is_full() {
    const SOCKETS: usize = 200;
    let Some(ring) = ring(Settings { entries: 4, ..Settings::default() }) else { return };
    let mut pairs: Vec<_> = (0..SOCKETS).map(|_| pair(&ring)).collect();
    let mut cx = Context::from_waker(Waker::noop());
    for (stream, _) in &mut pairs {
        let mut answer = b"answer".to_vec();
        assert!(stream.poll_send(&mut cx, &mut answer, false).is_pending());
    }
    for (stream, other) in &mut pairs {
        let mut lent = Vec::new();
        let sent = until(&ring, |cx| stream.poll_send(cx, &mut lent, false));
        assert_eq!(sent.expect("sent"), 6);
        other.read_exact(&mut [0; 6]).expect("the answer");
    }
}

#[test]
fn without_buffers_a_socket_is_given_back_and_nothing_is_lost() {
    let Some(ring) = ring(Settings { buffers: 2, buffer_size: 8, ..Settings::default() }) else {
        return;
    };
    let sent: Vec<u8> = (0..100).collect();
    let mut pairs: Vec<_> = (0..3).map(|_| pair(&ring)).collect();
    let mut cx = Context::from_waker(Waker::noop());
    for (stream, other) in &mut pairs {
        assert!(stream.poll_receive(&mut cx, &mut [0; 1]).is_pending());
        other.write_all(&sent).expect("written");
        other.shutdown(Shutdown::Write).expect("shut down");
    }
    ring.turn().expect("a turn");
    ring.turn().expect("a turn");
    assert!(ring.counts().no_buffers >= 3, "{:?}", ring.counts());
    for (stream, _) in &mut pairs {
        let mut received = Vec::new();
        let refused = loop {
            match receive(&ring, stream, 3) {
                Ok(bytes) => received.extend(bytes),
                Err(stop) => break stop,
            }
        };
        assert!(matches!(refused, Stop::Refused(_)), "{refused:?}");
        let (mut socket, unread) = release(&ring, stream);
        received.extend(unread);
        socket.read_to_end(&mut received).expect("the rest");
        assert_eq!(received, sent);
    }
    assert_eq!(ring.counts().buffers, 0);
}

#[test]
fn what_arrived_before_a_release_comes_with_the_socket() {
    let Some(ring) = ring(Settings::default()) else { return };
    let (mut stream, mut other) = pair(&ring);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(stream.poll_receive(&mut cx, &mut [0; 10]).is_pending());
    ring.turn().expect("a turn");
    other.write_all(b"first").expect("written");
    ring.turn().expect("a turn");
    assert!(!stream.is_idle() && !stream.is_drained());
    let (mut socket, unread) = release(&ring, &mut stream);
    assert_eq!(unread, b"first");
    other.write_all(b"second").expect("written");
    let mut second = [0; 6];
    socket.read_exact(&mut second).expect("read");
    assert_eq!(&second, b"second");
    assert_eq!((ring.counts().sockets, ring.counts().buffers), (0, 0));
    assert!(matches!(stream.poll_receive(&mut cx, &mut [0; 10]), Poll::Ready(Err(_))));
}

#[test]
fn a_slow_reader_gets_what_fits_and_the_ring_waits_for_nobody() {
    const LONG: usize = 4 << 20;
    let Some(ring) = ring(Settings::default()) else { return };
    let (mut stream, mut other) = pair(&ring);
    let bytes: Vec<u8> = (0..LONG).map(|at| (at % 251) as u8).collect();
    let sent = send(&ring, &mut stream, &bytes).expect("some of it");
    assert!(0 < sent && sent < LONG, "{sent}");
    let refused = send(&ring, &mut stream, &bytes[sent..]).expect_err("it is full");
    assert!(matches!(refused, Stop::Refused(_)), "{refused:?}");
    drop(stream);
    settle(&ring);
    let mut read = Vec::new();
    other.read_to_end(&mut read).expect("read");
    assert!(read == bytes[..sent]);
}

#[test]
fn a_client_that_sends_more_than_is_read_is_held_back() {
    let Some(ring) = ring(Settings { buffer_size: 1024, ..Settings::default() }) else { return };
    let (mut stream, mut other) = pair(&ring);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(stream.poll_receive(&mut cx, &mut [0; 10]).is_pending());
    other.set_nonblocking(true).expect("set");
    let mut sent = Vec::new();
    for at in 0..u8::MAX {
        let piece = [at; 1000];
        match other.write(&piece) {
            Ok(n) => sent.extend_from_slice(&piece[..n]),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
        ring.turn().expect("a turn");
    }
    let held = ring.counts().buffers;
    assert!((operations::MOST_UNREAD..2 * operations::MOST_UNREAD).contains(&held), "{held}");
    other.shutdown(Shutdown::Write).expect("shut down");
    let mut received = Vec::new();
    loop {
        match receive(&ring, &mut stream, 5000).expect("it goes on when it is read") {
            bytes if bytes.is_empty() => break,
            bytes => received.extend(bytes),
        }
    }
    assert!(received == sent);
}

/// Frames of HTTP/2 come so, each in a segment of its own. They take no more buffers than their bytes do.
#[test]
fn many_short_pieces_hold_nobody_back() {
    const PIECES: u8 = 100;
    let Some(ring) = ring(Settings { buffer_size: 1024, ..Settings::default() }) else { return };
    let (mut stream, mut other) = pair(&ring);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(stream.poll_receive(&mut cx, &mut [0; 10]).is_pending());
    for at in 0..PIECES {
        other.write_all(&[at; 13]).expect("written");
        ring.turn().expect("a turn");
    }
    assert!(!stream.is_held_back());
    assert_eq!(ring.counts().buffers, 2, "for 1300 bytes");
    let expected: Vec<u8> = (0..PIECES).flat_map(|at| [at; 13]).collect();
    // What was read of a buffer stays read when more comes into it.
    let mut received = receive(&ring, &mut stream, 1020).expect("received");
    other.write_all(b"more").expect("written");
    ring.turn().expect("a turn");
    received.extend(receive(&ring, &mut stream, 5000).expect("received"));
    assert_eq!(received, [expected.as_slice(), b"more"].concat());
    assert_eq!(ring.counts().buffers, 0);
}

#[test]
fn a_copy_is_sent_whatever_becomes_of_the_bytes_and_its_memory_is_used_again() {
    let Some(ring) = ring(Settings::default()) else { return };
    let (mut stream, mut other) = pair(&ring);
    let mut cx = Context::from_waker(Waker::noop());
    for n in 0..10u8 {
        let mut bytes = vec![n; 1000];
        assert!(stream.poll_send_copy(&mut cx, &bytes).is_pending());
        assert!(stream.is_sending() && !stream.is_idle());
        bytes.fill(b'x');
        let sent = until(&ring, |cx| stream.poll_send_copy(cx, &bytes));
        assert_eq!(sent.expect("sent"), 1000);
        assert!(!stream.is_sending());
        let mut read = [0; 1000];
        other.read_exact(&mut read).expect("read");
        assert_eq!(read, [n; 1000]);
        assert_eq!(ring.kernel.borrow().spare.len(), 1, "of each copy");
    }
    let long = vec![1; LARGEST_COPY + 1];
    let sent = until(&ring, |cx| stream.poll_send_copy(cx, &long));
    assert_eq!(sent.expect("sent"), LARGEST_COPY, "the rest is another copy");
}

/// So that one fast sender cannot take what all need.
#[test]
fn a_fast_sender_gets_no_more_than_its_share_of_the_buffers() {
    const MOST: usize = 128;
    let Some(ring) = ring(Settings::default()) else { return };
    let (mut stream, mut other) = pair(&ring);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(stream.poll_receive(&mut cx, &mut [0; 10]).is_pending());
    assert!(!stream.is_held_back());
    other.set_nonblocking(true).expect("set");
    let sent: Vec<u8> = (0..4 << 20).map(|at| (at % 251) as u8).collect();
    let mut at = 0;
    for _ in 0..100 {
        while let Ok(n) = other.write(&sent[at..(at + 65_536).min(sent.len())]) {
            at += n;
            if n == 0 {
                break;
            }
        }
        ring.turn().expect("a turn");
        assert!(ring.counts().buffers <= MOST, "{:?}", ring.counts());
    }
    assert!(stream.is_held_back() && stream.has_arrived());
    let (mut socket, mut received) = release(&ring, &mut stream);
    other.set_nonblocking(false).expect("set");
    let writer = std::thread::spawn(move || other.write_all(&sent[at..]).map(|()| sent));
    socket.read_to_end(&mut received).expect("the rest");
    assert!(received == writer.join().expect("no panic").expect("written"));
}

#[test]
fn what_was_done_while_the_ring_rested_is_known_before_anybody_turns_it() {
    let Some(ring) = ring(Settings::default()) else { return };
    let core = CoreRing::new(Some(ring.clone()));
    let event = ring.event().expect("an event");
    let (mut stream, other) = pair(&ring);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(stream.poll_receive(&mut cx, &mut [0; 10]).is_pending());
    ring.turn().expect("a turn");
    assert!(ring.rest() && ring.poll_queued(&cx).is_pending());
    let before = ring.enters();
    core.catch_up();
    assert_eq!(ring.enters(), before, "nothing was done");
    drop(other);
    assert!(stream.is_idle(), "nobody has looked");
    core.catch_up();
    assert!(!stream.is_idle(), "its end has come");
    assert_eq!(ring.enters(), before + 1);
    core.catch_up();
    assert_eq!(ring.enters(), before + 1, "it does not rest");
    assert!(is_told(&event), "as of the first");
}

/// Else the core would sleep: the event tells of nothing any more.
#[test]
fn who_submits_looks_again_when_somebody_else_has_caught_up() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    struct Told(AtomicBool);
    impl std::task::Wake for Told {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let Some(ring) = ring(Settings::default()) else { return };
    let (mut stream, mut other) = pair(&ring);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(stream.poll_receive(&mut cx, &mut [0; 10]).is_pending());
    ring.turn().expect("a turn");
    let told = Arc::new(Told(false.into()));
    assert!(ring.rest());
    assert!(ring.poll_queued(&Context::from_waker(&told.clone().into())).is_pending());
    ring.catch_up();
    assert!(!told.0.load(Ordering::Relaxed), "nothing was done");
    other.write_all(b"question").expect("written");
    ring.catch_up();
    assert!(told.0.load(Ordering::Relaxed));
    assert!(ring.poll_queued(&cx).is_ready(), "it does not sleep again");
    assert!(ring.rest() && ring.poll_queued(&cx).is_pending());
}

#[test]
fn a_core_without_a_ring_never_uses_one() {
    let none = CoreRing::default();
    assert!(!none.set_used(true) && !none.is_used() && none.ring().is_none());
    let Some(ring) = ring(Settings::default()) else { return };
    let core = CoreRing::new(Some(ring));
    assert!(!core.is_used() && core.set_used(true) && core.clone().is_used());
    core.lose();
    assert!(!core.is_used() && !core.set_used(true) && core.ring().is_none());
}

#[test]
fn a_dropped_stream_closes_its_socket_though_a_receive_is_under_way() {
    let Some(ring) = ring(Settings::default()) else { return };
    let (mut stream, mut other) = pair(&ring);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(stream.poll_receive(&mut cx, &mut [0; 10]).is_pending());
    ring.turn().expect("a turn");
    drop(stream);
    assert_eq!(settle(&ring).sockets, 0);
    assert_eq!(other.read(&mut [0; 10]).expect("the end"), 0);
}

#[test]
fn a_dropped_ring_closes_the_sockets_of_its_streams() {
    let Some(ring) = ring(Settings::default()) else { return };
    let mut pairs: Vec<_> = (0..10).map(|_| pair(&ring)).collect();
    let mut cx = Context::from_waker(Waker::noop());
    for (stream, other) in &mut pairs {
        assert!(stream.poll_receive(&mut cx, &mut [0; 10]).is_pending());
        other.write_all(b"never read").expect("written");
    }
    ring.turn().expect("a turn");
    drop(ring);
    for (stream, mut other) in pairs {
        drop(stream);
        // The last one ends the ring; it had closed none of the others before.
        other.set_read_timeout(Some(Duration::from_millis(1))).expect("a time-out");
        let _ = other.read(&mut [0; 10]);
    }
}

#[test]
fn many_connections_leave_neither_descriptors_nor_buffers_nor_memory() {
    let Some(ring) = ring(Settings { buffers: 16, ..Settings::default() }) else { return };
    let before = descriptors();
    for round in 0..2000 {
        let (mut stream, mut other) = pair(&ring);
        other.write_all(b"question").expect("written");
        assert_eq!(receive(&ring, &mut stream, 4).expect("received"), b"ques");
        match round % 4 {
            0 => drop(stream),
            1 => {
                drop(other);
                drop(stream);
            }
            2 => drop(release(&ring, &mut stream)),
            _ => {
                let mut cx = Context::from_waker(Waker::noop());
                let mut lent = b"answer".to_vec();
                let _ = stream.poll_send(&mut cx, &mut lent, false);
                drop(stream);
            }
        }
    }
    let counts = settle(&ring);
    assert_eq!((counts.sockets, counts.buffers), (0, 0));
    // Other tests of this process open and close some, too.
    let after = descriptors();
    assert!(after < before + 1000, "{before} descriptors, then {after}");
    assert_eq!(counts.no_buffers, 0);
}

#[test]
fn an_operation_that_the_kernel_refuses_leaves_the_socket_as_it_was() {
    for (allowed, receives) in
        [(vec![SEND, ASYNC_CANCEL], false), (vec![RECEIVE, ASYNC_CANCEL], true)]
    {
        let Some(prepared) = prepared(&Settings::default()) else { return };
        prepared.0.restrict(&allowed).expect("restricted");
        let ring = prepared.enable().expect("this thread owns it");
        let (mut stream, mut other) = pair(&ring);
        other.write_all(b"question").expect("written");
        if receives {
            assert_eq!(receive(&ring, &mut stream, 10).expect("received"), b"question");
            let refused = send(&ring, &mut stream, b"answer").expect_err("it may not");
            assert!(matches!(refused, Stop::Refused(_)), "{refused:?}");
        } else {
            let refused = receive(&ring, &mut stream, 10).expect_err("it may not");
            assert!(matches!(refused, Stop::Refused(_)), "{refused:?}");
            let (mut socket, unread) = release(&ring, &mut stream);
            assert!(unread.is_empty());
            socket.read_exact(&mut [0; 8]).expect("the question is still there");
        }
    }
}

/// What a failing ring looks like: one that was never enabled refuses each call.
#[test]
fn a_ring_that_fails_tells_all_who_wait() {
    let Some(prepared) = prepared(&Settings::default()) else { return };
    let ring = Ring { kernel: Rc::new(RefCell::new(prepared.0)), woken: Rc::default() };
    let (mut stream, mut other) = pair(&ring);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(stream.poll_receive(&mut cx, &mut [0; 10]).is_pending());
    ring.turn().expect_err("it is not enabled");
    let told = stream.poll_receive(&mut cx, &mut [0; 10]);
    assert!(matches!(told, Poll::Ready(Err(Stop::Broken(_)))), "{told:?}");
    assert!(matches!(stream.poll_release(&mut cx), Poll::Ready(Err(_))));
    let lent = &mut b"answer".to_vec();
    assert!(matches!(stream.poll_send(&mut cx, lent, false), Poll::Ready(Err(_))));
    drop(stream);
    drop(ring);
    assert_eq!(other.read(&mut [0; 10]).expect("the end"), 0, "the socket is closed");
}

#[test]
fn the_event_tells_only_those_who_rest() {
    let Some(ring) = ring(Settings::default()) else { return };
    let event = ring.event().expect("a descriptor");
    let (mut stream, mut other) = pair(&ring);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(stream.poll_receive(&mut cx, &mut [0; 10]).is_pending());
    assert!(!ring.rest(), "the receive is to be submitted");
    ring.turn().expect("a turn");
    other.write_all(b"question").expect("written");
    assert!(!is_told(&event), "nobody rests");
    assert!(!ring.rest(), "something has arrived");
    assert_eq!(receive(&ring, &mut stream, 10).expect("received"), b"question");
    assert!(ring.rest());
    other.write_all(b"question").expect("written");
    assert!(is_told(&event));
}

#[test]
fn an_operation_wakes_who_submits_and_its_completion_who_waits() {
    struct Counting(std::sync::atomic::AtomicUsize);
    impl std::task::Wake for Counting {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }
    let woken = || std::sync::Arc::new(Counting(0.into()));
    let count = |waker: &Counting| waker.0.load(std::sync::atomic::Ordering::Relaxed);
    let Some(ring) = ring(Settings::default()) else { return };
    let (submitter, waiter) = (woken(), woken());
    let (mut stream, mut other) = pair(&ring);
    assert!(ring.poll_queued(&Context::from_waker(&submitter.clone().into())).is_pending());
    let waker = waiter.clone().into();
    let mut cx = Context::from_waker(&waker);
    assert!(pin!(&mut stream).poll_receive(&mut cx, &mut [0; 10]).is_pending());
    assert_eq!((count(&submitter), count(&waiter)), (1, 0));
    other.write_all(b"question").expect("written");
    ring.turn().expect("a turn");
    ring.turn().expect("a turn");
    assert_eq!((count(&submitter), count(&waiter)), (1, 1));
}

#[test]
fn in_spite_of_an_old_note_of_work_the_ring_rests_and_misses_nothing() {
    let Some(ring) = ring(Settings::default()) else { return };
    let event = ring.event().expect("an event");
    let (mut stream, mut other) = pair(&ring);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(stream.poll_receive(&mut cx, &mut [0; 10]).is_pending());
    ring.turn().expect("a turn");
    ring.kernel.borrow_mut().keeps_an_old_note = true;
    assert_eq!(ring.turn().expect("a turn"), 0);
    assert!(ring.rest(), "there is nothing to do but a note");
    assert!(ring.poll_queued(&cx).is_pending());
    assert!(!is_told(&event));
    other.write_all(b"late").expect("written");
    assert!(is_told(&event), "what comes later is told");
    assert_eq!(receive(&ring, &mut stream, 10).expect("received"), b"late");
    // What came before the ring rests keeps it from that.
    other.write_all(b"early").expect("written");
    assert!(!ring.rest());
    assert_eq!(receive(&ring, &mut stream, 10).expect("received"), b"early");
}
