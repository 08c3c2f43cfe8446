//! The operations of a socket in the ring, and the effects of their completions.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::task::Waker;

use rustix::io::Errno;

use crate::buffers::Piece;

/// Buffers that a socket may hold unread, before its receive is cancelled: a client that sends more than is read
/// is held back by TCP then, not by what others need.
pub(crate) const MOST_UNREAD: usize = 4;

/// The operations of one socket.
#[derive(Default)]
pub(crate) struct Operations {
    pub(crate) receive: Receive,
    /// Received bytes that are not read yet, the oldest first.
    pub(crate) arrived: VecDeque<Piece>,
    /// The kernel said that there is more in the socket.
    pub(crate) more: bool,
    /// More had arrived than may wait: the receive was cancelled.
    pub(crate) held_back: bool,
    /// Why the last receive ended, if that tells anything.
    pub(crate) end: Option<End>,
    pub(crate) send: Send,
    /// The waker of the task that waits for any of them.
    pub(crate) waker: Option<Waker>,
    /// The socket, when its stream was dropped: it is closed when nothing is under way.
    pub(crate) closing: Option<OwnedFd>,
}

/// A receive in multishot: one operation for all that arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Receive {
    #[default]
    Idle,
    Armed,
    /// It was cancelled, and has not ended yet.
    Cancelled,
}

/// Bytes to send. While they are lent, the kernel reads them: nobody may touch, move or drop them.
#[derive(Default)]
pub(crate) enum Send {
    #[default]
    Idle,
    Lent(Vec<u8>),
    Done(Vec<u8>, Result<usize, Errno>),
}

/// Why a receive ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The other side has shut its direction down.
    Closed,
    /// The connection broke.
    Broken(Errno),
    /// The ring cannot; the socket is as it was.
    Refused(Errno),
}

/// Why an operation did not succeed.
#[derive(Debug)]
pub enum Stop {
    /// The connection is broken.
    Broken(io::Error),
    /// The ring cannot do it, or not without waiting; the socket is as it was.
    Refused(io::Error),
}

impl Operations {
    /// Whether the kernel has any of them.
    pub(crate) fn is_under_way(&self) -> bool {
        self.receive != Receive::Idle || matches!(self.send, Send::Lent(_))
    }

    /// A completion of the receive: so many bytes in a buffer, or why there are none. `goes_on`: it is still armed.
    pub(crate) fn received(
        &mut self,
        result: Result<usize, Errno>,
        piece: Option<Piece>,
        (goes_on, more): (bool, bool),
    ) {
        if !goes_on {
            self.receive = Receive::Idle;
        }
        self.more = more;
        self.arrived.extend(piece);
        self.end = match result {
            Ok(0) => Some(End::Closed),
            Ok(_) => None,
            // The cancellation that we have asked for.
            Err(Errno::CANCELED) => self.end,
            Err(error) if is_of_the_ring(error) => Some(End::Refused(error)),
            Err(error) => Some(End::Broken(error)),
        };
    }

    /// The completion of the send.
    pub(crate) fn sent(&mut self, result: Result<usize, Errno>) {
        self.send = match std::mem::take(&mut self.send) {
            Send::Lent(bytes) => Send::Done(bytes, result),
            other => other,
        };
    }

    /// Whether more has arrived than may wait.
    pub(crate) fn is_behind(&self) -> bool {
        self.receive == Receive::Armed && self.arrived.len() >= MOST_UNREAD
    }
}

impl Stop {
    pub(crate) fn of(error: Errno) -> Self {
        if is_of_the_ring(error) { Self::Refused(error.into()) } else { Self::Broken(error.into()) }
    }
}

/// Whether the connection is as good as before: no buffer, no room, an operation that this kernel does not know or
/// that is forbidden.
fn is_of_the_ring(error: Errno) -> bool {
    [
        Errno::NOBUFS,
        Errno::NOMEM,
        Errno::AGAIN,
        Errno::BUSY,
        Errno::INVAL,
        Errno::OPNOTSUPP,
        Errno::NOSYS,
        Errno::ACCESS,
        Errno::PERM,
        Errno::CANCELED,
        Errno::INTR,
    ]
    .contains(&error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn armed() -> Operations {
        Operations { receive: Receive::Armed, ..Operations::default() }
    }

    #[test]
    fn a_receive_goes_on_until_the_kernel_says_that_it_does_not() {
        let mut operations = armed();
        operations.received(Ok(10), None, (true, true));
        assert!(operations.is_under_way() && operations.more && operations.end.is_none());
        operations.received(Ok(10), None, (false, false));
        assert!(!operations.is_under_way() && !operations.more && operations.end.is_none());
    }

    #[test]
    fn an_end_is_kept_apart_from_a_refusal_and_a_cancelled_receive_is_neither() {
        let after = |result| {
            let mut operations = armed();
            operations.received(result, None, (false, false));
            assert_eq!(operations.receive, Receive::Idle);
            operations.end
        };
        assert_eq!(after(Ok(0)), Some(End::Closed));
        assert_eq!(after(Err(Errno::CONNRESET)), Some(End::Broken(Errno::CONNRESET)));
        assert_eq!(after(Err(Errno::NOBUFS)), Some(End::Refused(Errno::NOBUFS)));
        assert_eq!(after(Err(Errno::ACCESS)), Some(End::Refused(Errno::ACCESS)));
        assert_eq!(after(Err(Errno::CANCELED)), None);
    }

    #[test]
    fn what_was_lent_comes_back_with_its_result_and_only_once() {
        let mut operations = Operations { send: Send::Lent(vec![1, 2]), ..Operations::default() };
        assert!(operations.is_under_way());
        operations.sent(Ok(1));
        assert!(!operations.is_under_way());
        operations.sent(Ok(2));
        assert!(matches!(&operations.send, Send::Done(bytes, Ok(1)) if bytes == &[1, 2]));
    }
}
