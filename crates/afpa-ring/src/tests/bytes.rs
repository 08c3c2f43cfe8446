//! Receiving, sending, and holding back a sender.

use super::*;

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
    // Bytes that were read from a buffer stay read when more comes into it.
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
