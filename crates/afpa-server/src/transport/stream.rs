//! A client's socket.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use afpa_ring::{RingStream, Stop};
use rustix::net::sockopt::set_tcp_quickack;
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use rustix::pipe::{SpliceFlags, splice};
use socket2::SockRef;

use super::{Direction, Exhausted, Leaving, Socket, Transport};
use crate::io::WorkerIo;

/// A connected stream socket of any family. The event loop does not learn of it before it has to wait for the first
/// time: a connection whose only request had arrived when it was accepted is never registered.
///
/// When something has been received, the connection follows the strategy of its core, and changes with it between two
/// requests. For a connection of one request the ring would not pay. A long answer, a slow client, or a client that
/// sends much at a time ends completion for a connection until it has been without these for some time.
pub(crate) struct Stream {
    way: Way,
    worker: Rc<WorkerIo>,
    /// The last receive has emptied the socket.
    drained: bool,
    /// Bytes that had arrived in the ring when the connection left it.
    ahead: Vec<u8>,
    /// Something has been received.
    begun: bool,
    /// The system acknowledges at once what is received, as it does by itself.
    acknowledges: bool,
    /// So many receives by readiness are to come before it enters the ring again.
    apart: u32,
    /// A send waits for readiness. If the connection entered the ring, nothing would wake that send.
    blocked: bool,
    /// Why it is about to leave the ring.
    leaving: Option<Leaving>,
}

/// Receives by readiness before a connection that has left the ring for its load enters it again. To leave and to enter
/// costs some microseconds, which one long answer in so many requests is worth.
const APART: u32 = 8;
/// Bytes of a piece that is not gathered.
const LONG: usize = 32 * 1024;
/// For a connection with an operation that the ring could not do: it may never be able to.
const FOR_EVER: u32 = u32::MAX;

/// The way in which the connection receives and sends.
enum Way {
    Readiness(Socket),
    Completion(RingStream),
}

impl Stream {
    /// `socket` does not block.
    pub(crate) fn new(socket: OwnedFd, worker: Rc<WorkerIo>) -> Self {
        let way = Way::Readiness(Socket::new(socket));
        Self {
            way,
            worker,
            drained: false,
            ahead: Vec::new(),
            begun: false,
            acknowledges: false,
            apart: 0,
            blocked: false,
            leaving: None,
        }
    }

    fn descriptor(&self) -> io::Result<BorrowedFd<'_>> {
        match &self.way {
            Way::Readiness(socket) => socket.descriptor(),
            Way::Completion(stream) => {
                stream.socket().ok_or_else(|| io::ErrorKind::NotConnected.into())
            }
        }
    }

    /// Sends by readiness. The connection leaves the ring for it.
    fn poll_send_ready(
        &mut self,
        cx: &mut Context<'_>,
        why: Leaving,
        send: impl FnMut(BorrowedFd<'_>) -> io::Result<(usize, Exhausted)>,
    ) -> Poll<io::Result<usize>> {
        if let Way::Completion(_) = self.way {
            ready!(self.poll_leave_ring(cx, why))?;
        }
        let Way::Readiness(socket) = &mut self.way else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        let sent = socket.poll(cx, Direction::Send, send);
        self.blocked = sent.is_pending();
        if self.blocked {
            self.stay_apart();
        }
        sent
    }

    /// Leaves the ring between two operations. Bytes that had arrived there are read first.
    fn poll_change(&mut self, cx: &mut Context<'_>, why: Leaving) -> Poll<io::Result<()>> {
        let Way::Completion(stream) = &mut self.way else { return Poll::Ready(Ok(())) };
        let why = *self.leaving.get_or_insert(why);
        let (socket, unread) = ready!(stream.poll_release(cx))?;
        self.ahead = unread;
        self.drained = false;
        self.way = Way::Readiness(Socket::new(socket));
        self.leaving = None;
        self.worker.left(why);
        Poll::Ready(Ok(()))
    }

    /// Enters the ring, if that is the strategy of the core.
    fn enter_ring(&mut self) -> io::Result<()> {
        if let Some(ring) = self.worker.ring()
            && let Way::Readiness(socket) = &mut self.way
        {
            let socket = std::mem::replace(socket, Socket::lost()).into_descriptor()?;
            self.way = Way::Completion(ring.stream(socket));
            self.worker.entered();
        }
        Ok(())
    }

    /// Does not enter the ring before it has been without such load for some time.
    fn stay_apart(&mut self) {
        self.apart = self.apart.max(APART);
    }

    /// Why it is to leave the ring when it has read the bytes that have arrived there.
    fn why_leave(&self) -> Option<Leaving> {
        let Way::Completion(stream) = &self.way else { return None };
        if self.leaving.is_some() {
            self.leaving
        } else if stream.is_held_back() {
            Some(Leaving::HeldBack)
        } else {
            (!self.worker.completes()).then_some(Leaving::Strategy)
        }
    }

    fn poll_receive_ready(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let Way::Readiness(socket) = &mut self.way else { return Poll::Pending };
        // The last receive has emptied the socket: another attempt now would block.
        if self.drained {
            socket.register()?;
        }
        let room = buffer.len();
        let received = socket.poll(cx, Direction::Receive, |socket| receive(socket, buffer));
        self.drained = match &received {
            Poll::Ready(Ok(n)) => 0 < *n && *n < room,
            Poll::Ready(Err(_)) => false,
            Poll::Pending => true,
        };
        self.begun |= received.is_ready();
        if received.is_ready() && self.apart != FOR_EVER {
            self.apart = self.apart.saturating_sub(1);
        }
        received
    }

    /// Tries to receive without waiting. Then the socket enters the ring, and `None` says so.
    fn receive_or_enter(&mut self, buffer: &mut [u8]) -> Option<io::Result<usize>> {
        if !self.drained
            && let Way::Readiness(socket) = &self.way
        {
            let room = buffer.len();
            match socket.attempt(|socket| receive(socket, buffer)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => {
                    self.drained = matches!(done, Ok(n) if 0 < n && n < room);
                    return Some(done);
                }
            }
        }
        self.enter_ring().err().map(Err)
    }
}

impl Transport for Stream {
    /// By TCP: `close` and `shutdown` mark the last segment that has not left (`tcp_send_fin`).
    const JOINS_END: bool = true;

    fn poll_receive(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        if !self.ahead.is_empty() {
            let n = self.ahead.len().min(buffer.len());
            buffer[..n].copy_from_slice(&self.ahead[..n]);
            self.ahead.drain(..n);
            return Poll::Ready(Ok(n));
        }
        if self.begun
            && self.apart == 0
            && !self.blocked
            && self.worker.completes()
            && let Way::Readiness(_) = self.way
            && let Some(received) = self.receive_or_enter(buffer)
        {
            return Poll::Ready(received);
        }
        let leaving = self.why_leave();
        let Way::Completion(stream) = &mut self.way else {
            return self.poll_receive_ready(cx, buffer);
        };
        if let Some(why) = leaving.filter(|_| stream.is_idle()) {
            if why == Leaving::HeldBack {
                self.stay_apart();
            }
            ready!(self.poll_change(cx, why))?;
        } else {
            match ready!(stream.poll_receive(cx, buffer)) {
                Ok(n) => {
                    self.drained = n > 0 && stream.is_drained();
                    return Poll::Ready(Ok(n));
                }
                Err(Stop::Broken(error)) => return Poll::Ready(Err(error)),
                Err(Stop::Refused(_)) => {
                    self.apart = FOR_EVER;
                    ready!(self.poll_change(cx, Leaving::Refused))?;
                }
            }
        }
        // The bytes that had arrived in the ring are read first.
        self.poll_receive(cx, buffer)
    }

    fn expects_more(&mut self) {
        if !std::mem::replace(&mut self.acknowledges, true)
            && let Ok(socket) = self.descriptor()
        {
            // A socket of another family has no such option, and needs none.
            let _ = set_tcp_quickack(socket, true);
        }
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        more: bool,
    ) -> Poll<io::Result<usize>> {
        if bytes.len() > LONG {
            self.stay_apart();
        }
        self.poll_send_ready(cx, Leaving::SlowClient, |socket| send(socket, bytes, more))
    }

    fn poll_send_gathered(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut Vec<u8>,
        more: bool,
    ) -> Poll<io::Result<usize>> {
        match &mut self.way {
            Way::Readiness(socket) => {
                match socket.poll(cx, Direction::Send, |socket| send(socket, bytes, more)) {
                    Poll::Pending => Poll::Ready(Ok(0)),
                    sent => sent,
                }
            }
            Way::Completion(stream) => {
                Poll::Ready(match ready!(stream.poll_send(cx, bytes, more)) {
                    Ok(n) => Ok(n),
                    Err(Stop::Refused(_)) => Ok(0),
                    Err(Stop::Broken(error)) => Err(error),
                })
            }
        }
    }

    fn duplicate(&self) -> Option<OwnedFd> {
        match &self.way {
            Way::Readiness(socket) => socket.descriptor().ok()?.try_clone_to_owned().ok(),
            Way::Completion(_) => None,
        }
    }

    fn lends(&self) -> bool {
        self.leaving.is_none() && matches!(self.way, Way::Completion(_))
    }

    fn poll_leave_ring(&mut self, cx: &mut Context<'_>, why: Leaving) -> Poll<io::Result<()>> {
        self.stay_apart();
        self.poll_change(cx, why)
    }

    fn poll_send_file(
        &mut self,
        cx: &mut Context<'_>,
        file: &File,
        offset: u64,
        len: usize,
    ) -> Poll<io::Result<usize>> {
        self.poll_send_ready(cx, Leaving::LongAnswer, |socket| {
            let mut at = offset;
            Ok((rustix::fs::sendfile(socket, file, Some(&mut at), len)?, false))
        })
    }

    fn poll_send_held(
        &mut self,
        cx: &mut Context<'_>,
        pipe: BorrowedFd<'_>,
        len: usize,
        more: bool,
    ) -> Poll<io::Result<usize>> {
        let flags = match more {
            true => SpliceFlags::NONBLOCK | SpliceFlags::MORE,
            false => SpliceFlags::NONBLOCK,
        };
        self.poll_send_ready(cx, Leaving::LongAnswer, |socket| {
            Ok((splice(pipe, None, socket, None, len, flags)?, false))
        })
    }

    fn is_drained(&self) -> bool {
        self.drained && self.ahead.is_empty()
    }

    fn is_unwatched(&self) -> bool {
        self.is_drained() && matches!(&self.way, Way::Readiness(socket) if !socket.is_watched())
    }

    fn has_arrived(&self) -> bool {
        let look = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let arrived =
            |socket| rustix::net::recv(socket, &mut [0; 1], look).is_ok_and(|(n, _)| n > 0);
        let in_ring = matches!(&self.way, Way::Completion(stream) if !stream.is_drained());
        in_ring || !self.is_drained() || self.descriptor().is_ok_and(arrived)
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        let socket = self.descriptor().ok()?;
        let socket = SockRef::from(&socket);
        let client = socket.peer_addr().ok()?.as_socket()?;
        Some((client, socket.local_addr().ok()?.as_socket()?))
    }

    fn reset_at_end(&mut self) {
        if let Ok(socket) = self.descriptor() {
            // A socket without this option ends without a reset.
            let _ = SockRef::from(&socket).set_linger(Some(Duration::ZERO));
        }
    }

    fn poll_shutdown(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(rustix::net::shutdown(self.descriptor()?, Shutdown::Write)?))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Way::Completion(_) = self.way {
            self.worker.closed();
        }
    }
}

/// Receives once. The second value says that the socket is empty now.
fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, bool)> {
    let room = buffer.len();
    let (n, _) = rustix::net::recv(socket, &mut *buffer, RecvFlags::empty())?;
    Ok((n, 0 < n && n < room))
}

/// Sends once. The second value says that the socket is full now.
pub(crate) fn send(socket: BorrowedFd<'_>, bytes: &[u8], more: bool) -> io::Result<(usize, bool)> {
    let flags = match more {
        true => SendFlags::NOSIGNAL | SendFlags::MORE,
        false => SendFlags::NOSIGNAL,
    };
    let n = rustix::net::send(socket, bytes, flags)?;
    Ok((n, 0 < n && n < bytes.len()))
}
