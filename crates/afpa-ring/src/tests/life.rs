//! How a ring begins, rests, is woken, and ends with operations under way.

use super::*;

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

/// Otherwise the core would sleep: the event tells of nothing any more.
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

/// A failing ring: one that was never enabled refuses each call.
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
    // Bytes that come before the ring rests prevent that.
    other.write_all(b"early").expect("written");
    assert!(!ring.rest());
    assert_eq!(receive(&ring, &mut stream, 10).expect("received"), b"early");
}
