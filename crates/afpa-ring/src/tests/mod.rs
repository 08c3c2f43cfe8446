//! Rings against sockets of this process.

use std::fs;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::*;

mod bytes;
mod life;

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
