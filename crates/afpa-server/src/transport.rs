//! The operations of a socket that a connection needs. Its loop does not know how bytes move: *readiness* asks when an
//! operation may succeed, and then does it; *completion* hands it to the kernel, which reports when it is done.
//!
//! | operation | by readiness | by completion |
//! |---|---|---|
//! | receive | `recv` | copied from a buffer that the kernel has filled |
//! | send what was gathered | `send` | the buffer is lent to the kernel, and comes back |
//! | send long or pinned bytes, and the rest for a slow client | `send` | leaves the ring |
//! | send a part of a file | `sendfile`, or `splice` from the core's pipe | leaves the ring |
//! | know whether anything is unread | the last receive did not fill its buffer | the kernel says so with the last receive |
//! | wait | `registration`: epoll learns of a socket when it has to wait | `afpa_ring::RingStream` |
//! | time out | the sweep of the worker's table | the same |
//!
//! `stream` has both behind one [`Transport`], and changes between them when a connection waits for its next request.
//! `tls` is a transport over that one.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::task::{Context, Poll};

use afpa_framework::BreakOff;
use bytes::Bytes;

pub use crate::io::Leaving;
pub(crate) use registration::{Direction, Exhausted, Socket};
pub(crate) use stream::{Stream, send};

pub(crate) use tls::{Tls, TlsBuffers};

mod registration;
mod stream;
mod tls;

/// A byte stream to a client: its socket, or TLS over that.
pub trait Transport: Unpin {
    /// Whether it sends pages of files without copying them, so that it is worth while to hold them in a pipe.
    const SENDS_PAGES: bool = true;

    /// Whether it keeps bytes that others hold as well, and no copy of them.
    const KEEPS_BYTES: bool = false;

    /// Whether the FIN leaves in the segment of bytes that were sent with `more`, and never in a later one.
    const JOINS_END: bool = false;

    /// Whether connections of HTTP/2 may come over it. Where none does, the engine's code for them is left out.
    const MAY_BE_H2: bool = true;

    /// Receives into `buffer`; `Ok(0)` is the end of the stream. Not to be called while a gathered send is pending.
    fn poll_receive(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;

    /// The client has more to send before it is answered, and may wait for an acknowledgement meanwhile (RFC 9293 section 3.7.4).
    fn expects_more(&mut self) {}

    /// Sends from `bytes`. `more` says that more follows at once, so that no short packet is made.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        more: bool,
    ) -> Poll<io::Result<usize>>;

    /// Sends from `bytes` as much as the socket takes now, which may be nothing; it never waits for the client. While
    /// it is pending, it is to be called again with the same vector, which may be empty until then.
    fn poll_send_gathered(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut Vec<u8>,
        more: bool,
    ) -> Poll<io::Result<usize>>;

    /// Sends from the front of `bytes`, of which the rest is left. They are kept as they are until the client has them: only
    /// for a transport that [keeps bytes](Transport::KEEPS_BYTES).
    fn poll_send_kept(
        &mut self,
        _cx: &mut Context<'_>,
        _bytes: &mut Bytes,
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }

    /// So many bytes at the front of what is sent next are a response's head in the form that connections with streams
    /// send, and so many bytes of content follow. A module leaves such a head for requests of this transport alone
    /// ([`Outbox::block`](afpa_framework::Outbox::block)).
    fn begin_section(&mut self, _section: usize, _content: u64) {}

    /// A descriptor of its own for the socket, if another thread can send plain bytes to that.
    fn duplicate(&self) -> Option<OwnedFd> {
        None
    }

    /// Whether gathered bytes are lent to the kernel now: other sends would leave the ring.
    fn lends(&self) -> bool;

    /// Leaves completion, if it is used, for some time: readiness suits the next operations better.
    fn poll_leave_ring(&mut self, cx: &mut Context<'_>, why: Leaving) -> Poll<io::Result<()>>;

    /// Sends up to `len` bytes of `file` from `offset` without copying them to user mode.
    /// `Ok(0)` says that the file ends before `offset`.
    fn poll_send_file(
        &mut self,
        cx: &mut Context<'_>,
        file: &File,
        offset: u64,
        len: usize,
    ) -> Poll<io::Result<usize>>;

    /// Sends up to `len` bytes from a pipe; `more` as in [`poll_send`](Transport::poll_send). Nothing is held for a transport
    /// that copies pages ([`SENDS_PAGES`](Transport::SENDS_PAGES)).
    fn poll_send_held(
        &mut self,
        _cx: &mut Context<'_>,
        _pipe: BorrowedFd<'_>,
        _len: usize,
        _more: bool,
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }

    /// Whether everything that was taken to be sent is the system's affair now.
    fn is_flushed(&self) -> bool {
        true
    }

    /// Waits until that is so.
    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Whether nothing more comes and nothing more is sent: a stream whose request and answer are whole.
    fn is_over(&self) -> bool {
        false
    }

    /// Whether the handshake is not complete: received bytes are early data then, which may be a replay.
    fn is_early(&self) -> bool {
        false
    }

    /// Waits for the end of the handshake. Bytes that arrive meanwhile are kept.
    fn poll_handshake_end(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Tells the client that the connection ends here, if the transport has a message for that. It never waits for the
    /// client.
    fn poll_goodbye(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    /// Whether the last receive took everything that had arrived.
    fn is_drained(&self) -> bool;

    /// Whether the socket was empty at the last receive, and nothing tells when more arrives: the event loop has not had
    /// to learn of it.
    fn is_unwatched(&self) -> bool {
        false
    }

    /// Whether something has arrived since. It asks the system.
    fn has_arrived(&self) -> bool;

    /// The addresses of client and server, if they have any.
    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)>;

    /// The connection will end with a reset, and without a goodbye.
    fn reset_at_end(&mut self);

    /// The request that ended the stream because it is none by the rules of its protocol, as far as it could be read.
    fn take_malformed(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// A response has broken off. Not every protocol has words for the reason.
    fn breaks_off(&mut self, _why: BreakOff) {}

    /// Shuts down the sending direction.
    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}
