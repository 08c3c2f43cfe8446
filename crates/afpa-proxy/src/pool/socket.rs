//! The socket of a connection to a server, by readiness or by completion.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use afpa_ring::{CoreRing, LARGEST_COPY, Ring, RingStream, Stop};
use rustix::net::{Shutdown, shutdown};
use socket2::{Domain, SockAddr, SockRef, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::connect::{Connected, Connector, To};
use super::late::LateSocket;
use crate::select::{Address, Tally};

/// A connected socket. Once something has been received on it, it follows its core into the ring and out of it, each time
/// that something is to be sent: for a connection that is used once, the ring would only be more to undo.
///
/// A server that sends more at a time than may wait in the ring, a long piece for it, and a tunnel end completion for a
/// connection until it has been without them for some time.
#[derive(Debug)]
pub struct ServerSocket {
    way: Way,
    ring: CoreRing,
    is_unix: bool,
    /// Something has been received.
    begun: bool,
    /// So many pieces are to be sent by readiness before it enters the ring again.
    apart: u32,
    /// Bytes that had arrived in the ring when the connection left it.
    ahead: Vec<u8>,
    /// How many bytes of the present piece were sent while the connection left the ring.
    sent: Option<usize>,
    counted: Counted,
}

/// A connection in the counts of its server, from its beginning to its end.
#[derive(Debug)]
struct Counted {
    tally: Option<Tally>,
    /// The server has ended it, or said something unasked, behind which it will.
    by_server: bool,
}

impl Counted {
    fn opened(tally: Option<&Tally>) -> Self {
        if let Some(tally) = tally {
            tally.opened();
        }
        Self { tally: tally.cloned(), by_server: false }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(tally) = &self.tally {
            tally.closed(self.by_server);
        }
    }
}

/// The way in which the connection receives and sends.
#[derive(Debug)]
enum Way {
    /// A new one, until something cannot be sent at once.
    Late(LateSocket),
    Tcp(TcpStream),
    Unix(UnixStream),
    Ring(RingStream),
    /// The event loop could not take it, or it has ended.
    Lost,
}

/// Short pieces that are sent by readiness before a connection that has left the ring for its load enters it again.
const APART: u32 = 8;

/// Connects to a unix socket. That never waits: the server's queue takes the connection, or there is an error (unix(7)).
fn unix(path: &Path) -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    socket.connect(&SockAddr::unix(path)?)?;
    Ok(socket)
}

impl ServerSocket {
    /// Connects to a server.
    ///
    /// # Errors
    /// With the error of the system.
    pub(super) async fn connect(connector: &Connector, to: To<'_>) -> io::Result<Self> {
        let (way, is_unix) = match to.address {
            Address::Tcp(address) => {
                // A request is written as a whole: there is nothing to wait for.
                let way = match connector.tcp(*address, to.sources).await? {
                    Connected::AtOnce(socket) => {
                        socket.set_tcp_nodelay(true)?;
                        Way::Late(LateSocket::new(socket))
                    }
                    Connected::Later(stream) => {
                        stream.set_nodelay(true)?;
                        Way::Tcp(stream)
                    }
                };
                (way, false)
            }
            Address::Unix(path) => (Way::Late(LateSocket::new(unix(path)?)), true),
        };
        Ok(Self::new((way, is_unix), connector.ring(), to.tally))
    }

    /// Whether it is a unix socket.
    pub(super) fn is_unix(&self) -> bool {
        self.is_unix
    }

    /// A stream that is connected already.
    #[cfg(test)]
    pub(super) fn of_unix(stream: UnixStream, ring: &CoreRing) -> Self {
        Self::new((Way::Unix(stream), true), ring, None)
    }

    fn new((way, is_unix): (Way, bool), ring: &CoreRing, tally: Option<&Tally>) -> Self {
        let (begun, apart, ahead, sent) = (false, 0, Vec::new(), None);
        let counted = Counted::opened(tally);
        Self { way, ring: ring.clone(), is_unix, begun, apart, ahead, sent, counted }
    }

    /// Receives into `room`; `Ok(0)` is the end of the stream.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        room: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if !self.ahead.is_empty() {
            return Poll::Ready(Ok(self.take_ahead(room)));
        }
        let received = match &mut self.way {
            Way::Ring(stream) if stream.is_held_back() && !stream.has_arrived() => None,
            Way::Ring(stream) => match ready!(stream.poll_receive(cx, room)) {
                Err(Stop::Refused(_)) => None,
                Err(Stop::Broken(error)) => Some(Err(error)),
                Ok(n) => Some(Ok(n)),
            },
            Way::Late(socket) => Some(ready!(socket.poll_read(cx, room))),
            Way::Tcp(stream) => Some(ready!(poll_read(stream, cx, room))),
            Way::Unix(stream) => Some(ready!(poll_read(stream, cx, room))),
            Way::Lost => Some(Err(io::ErrorKind::NotConnected.into())),
        };
        match received {
            Some(received) => {
                self.begun = true;
                self.counted.by_server |= matches!(received, Ok(0) | Err(_));
                Poll::Ready(received)
            }
            None => {
                self.apart = self.apart.max(APART);
                ready!(self.poll_leave_ring(cx))?;
                // The bytes that had arrived in the ring are read first.
                self.poll_read(cx, room)
            }
        }
    }

    fn take_ahead(&mut self, room: &mut [u8]) -> usize {
        let n = self.ahead.len().min(room.len());
        if let (Some(room), Some(ahead)) = (room.get_mut(..n), self.ahead.get(..n)) {
            room.copy_from_slice(ahead);
        }
        match n == self.ahead.len() {
            true => self.ahead = Vec::new(),
            false => drop(self.ahead.drain(..n)),
        }
        n
    }

    /// Sends from `bytes`. While it is pending, it is to be called again with bytes that begin like these.
    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(sent) = self.sent.take() {
            return Poll::Ready(Ok(sent));
        }
        let is_long = bytes.len() > LARGEST_COPY;
        self.follow_core(is_long)?;
        if let Way::Ring(stream) = &mut self.way
            && (stream.is_sending() || (self.ring.is_used() && self.apart == 0))
        {
            match ready!(stream.poll_send_copy(cx, bytes)) {
                Ok(n) => return Poll::Ready(Ok(n)),
                Err(Stop::Broken(error)) => return Poll::Ready(Err(error)),
                // A server that does not take it at once, or a ring that cannot.
                Err(Stop::Refused(_)) => self.apart = self.apart.max(APART),
            }
        }
        ready!(self.poll_leave_ring(cx))?;
        if let Way::Late(socket) = &self.way {
            match socket.write(bytes) {
                Some(written) => return Poll::Ready(written),
                None => self.register()?,
            }
        }
        match &mut self.way {
            Way::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Way::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Way::Late(_) | Way::Ring(_) | Way::Lost => {
                Poll::Ready(Err(io::ErrorKind::NotConnected.into()))
            }
        }
    }

    /// Has the event loop tell both when bytes arrive and when there is room for more.
    fn register(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.way, Way::Lost) {
            Way::Late(socket) => self.way = self.by_readiness(socket.into_socket()?.into())?,
            other => self.way = other,
        }
        Ok(())
    }

    fn by_readiness(&self, socket: OwnedFd) -> io::Result<Way> {
        Ok(match self.is_unix {
            true => Way::Unix(UnixStream::from_std(socket.into())?),
            false => Way::Tcp(TcpStream::from_std(socket.into())?),
        })
    }

    /// Enters the ring, if that is the strategy of the core and nothing speaks against it.
    fn follow_core(&mut self, is_long: bool) -> io::Result<()> {
        if is_long {
            self.apart = self.apart.max(APART);
        }
        if !self.begun || matches!(self.way, Way::Ring(_) | Way::Lost) || !self.ring.is_used() {
            return Ok(());
        }
        match self.ring.ring() {
            Some(ring) if self.apart == 0 && self.ahead.is_empty() => self.enter_ring(&ring),
            _ => {
                let is_tunnel = self.apart == u32::MAX;
                self.apart = self.apart.saturating_sub(u32::from(!is_tunnel));
                Ok(())
            }
        }
    }

    fn enter_ring(&mut self, ring: &Ring) -> io::Result<()> {
        let socket: OwnedFd = match std::mem::replace(&mut self.way, Way::Lost) {
            Way::Tcp(stream) => stream.into_std()?.into(),
            Way::Unix(stream) => stream.into_std()?.into(),
            Way::Late(socket) => socket.into_socket()?.into(),
            other => {
                self.way = other;
                return Ok(());
            }
        };
        self.way = Way::Ring(ring.stream(socket));
        Ok(())
    }

    /// Leaves the ring between two operations, for readiness.
    fn poll_leave_ring(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_take_back(cx))?;
        let Way::Ring(stream) = &mut self.way else { return Poll::Ready(Ok(())) };
        let (socket, unread) = ready!(stream.poll_release(cx))?;
        self.ahead = unread;
        self.way = Way::Lost;
        self.way = self.by_readiness(socket)?;
        Poll::Ready(Ok(()))
    }

    /// Waits until the kernel holds nothing of a send. The number of bytes that it has sent is returned by the next
    /// [`poll_write`](Self::poll_write).
    fn poll_take_back(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Way::Ring(stream) = &mut self.way
            && stream.is_sending()
        {
            match ready!(stream.poll_send_copy(cx, &[])) {
                Ok(n) => self.sent = Some(n),
                Err(Stop::Broken(error)) => return Poll::Ready(Err(error)),
                Err(Stop::Refused(_)) => self.apart = self.apart.max(APART),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Whether neither bytes nor the end have arrived. This asks only what the event loop and the ring know already.
    pub(super) fn is_silent(&mut self) -> bool {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let is_silent = match &self.way {
            Way::Ring(stream) => stream.is_idle() && self.ahead.is_empty(),
            // It was never used, so the event loop has nothing to tell.
            Way::Late(socket) if socket.is_unknown() => socket.has_nothing(),
            _ => self.poll_read(&mut cx, &mut [0; 1]).is_pending(),
        };
        self.counted.by_server |= !is_silent;
        is_silent
    }

    /// See [`ServerStream::reset_at_end`](super::ServerStream::reset_at_end).
    pub(super) fn reset_at_end(&self) {
        let reset = |socket: SockRef<'_>| socket.set_linger(Some(Duration::ZERO));
        // A socket without this option ends without a reset.
        let _ = match &self.way {
            Way::Tcp(stream) => reset(SockRef::from(stream)),
            Way::Ring(stream) if !self.is_unix => {
                stream.socket().map_or(Ok(()), |socket| reset(SockRef::from(&socket)))
            }
            Way::Late(socket) if !self.is_unix => {
                socket.socket().map_or(Ok(()), |socket| reset(SockRef::from(&socket)))
            }
            Way::Late(_) | Way::Ring(_) | Way::Unix(_) | Way::Lost => Ok(()),
        };
    }

    /// Ends the connection: nothing can be sent or received any more.
    pub(super) fn end(&mut self) {
        self.way = Way::Lost;
    }

    /// Leaves the ring with the next piece, for good: the connection becomes a tunnel. In a tunnel a piece may be sent
    /// while a receive waits for readiness; if the send entered the ring, nothing would wake that receive.
    pub(super) fn become_tunnel(&mut self) {
        self.apart = u32::MAX;
    }

    /// Ends the sending direction.
    pub(super) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_take_back(cx))?;
        match &mut self.way {
            Way::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Way::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Way::Ring(stream) => Poll::Ready(end_sending(stream.socket())),
            Way::Late(socket) => Poll::Ready(end_sending(socket.socket())),
            Way::Lost => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }
}

fn end_sending(socket: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let socket = socket.ok_or(io::ErrorKind::NotConnected)?;
    Ok(shutdown(socket, Shutdown::Write)?)
}

fn poll_read(
    stream: &mut (impl AsyncRead + Unpin),
    cx: &mut Context<'_>,
    room: &mut [u8],
) -> Poll<io::Result<usize>> {
    let mut room = ReadBuf::new(room);
    ready!(Pin::new(stream).poll_read(cx, &mut room))?;
    Poll::Ready(Ok(room.filled().len()))
}
