//! A connected socket that the event loop learns of late, and then only what arrives on it.
//!
//! A new connection takes a request at once: nothing has to be waited for before it is written. Registered for
//! both directions, the event loop would report twice that there is room, before the request and when the server has taken
//! it, and each report is a round in which nothing happens.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll, Waker};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use socket2::Socket;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A connected socket that is registered late. It does not block.
#[derive(Debug)]
pub(super) struct LateSocket {
    state: State,
    /// The task that waits for bytes.
    reader: Option<Waker>,
}

#[derive(Debug)]
enum State {
    /// The event loop does not know it.
    Unknown(Socket),
    /// The event loop tells when bytes arrive.
    Reads(AsyncFd<Socket>),
    /// The event loop could not take it.
    Lost,
}

impl LateSocket {
    pub(super) fn new(socket: Socket) -> Self {
        Self { state: State::Unknown(socket), reader: None }
    }

    /// Receives into `room`; `Ok(0)` is the end of the stream.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        room: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let socket = match self.registered() {
            Ok(socket) => socket,
            Err(error) => return Poll::Ready(Err(error)),
        };
        loop {
            let Poll::Ready(guard) = socket.poll_read_ready(cx) else {
                match &mut self.reader {
                    Some(reader) => reader.clone_from(cx.waker()),
                    none => *none = Some(cx.waker().clone()),
                }
                return Poll::Pending;
            };
            let mut guard = guard?;
            match recv(socket.get_ref(), &mut *room, RecvFlags::empty()) {
                Err(Errno::AGAIN) => guard.clear_ready(),
                Err(Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
                Ok((_, n)) => {
                    // All has been read: the event loop tells of later bytes anew.
                    if n > 0 && n < room.len() {
                        guard.clear_ready();
                    }
                    return Poll::Ready(Ok(n));
                }
            }
        }
    }

    /// Whether the event loop has nothing to tell about it.
    pub(super) fn is_unknown(&self) -> bool {
        matches!(self.state, State::Unknown(_))
    }

    /// Whether neither bytes nor the end have arrived, as the system tells.
    pub(super) fn has_nothing(&self) -> bool {
        let Some(socket) = self.socket() else { return false };
        let peeked = recv(socket, &mut [0; 1], RecvFlags::PEEK);
        matches!(peeked, Err(Errno::AGAIN | Errno::INTR))
    }

    /// Sends from `bytes`. `None`: that has to be waited for.
    pub(super) fn write(&self, bytes: &[u8]) -> Option<io::Result<usize>> {
        let Some(socket) = self.socket() else { return Some(Err(lost())) };
        loop {
            match send(socket, bytes, SendFlags::NOSIGNAL) {
                Err(Errno::AGAIN) => return None,
                Err(Errno::INTR) => {}
                Err(error) => return Some(Err(error.into())),
                Ok(n) => return Some(Ok(n)),
            }
        }
    }

    /// The socket, as the event loop does not know it. The task that waits for bytes is woken.
    pub(super) fn into_socket(self) -> io::Result<Socket> {
        if let Some(reader) = self.reader {
            reader.wake();
        }
        match self.state {
            State::Unknown(socket) => Ok(socket),
            State::Reads(socket) => Ok(socket.into_inner()),
            State::Lost => Err(lost()),
        }
    }

    /// The socket, to be asked or set.
    pub(super) fn socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            State::Unknown(socket) => Some(socket.as_fd()),
            State::Reads(socket) => Some(socket.get_ref().as_fd()),
            State::Lost => None,
        }
    }

    fn registered(&mut self) -> io::Result<&AsyncFd<Socket>> {
        if let State::Unknown(_) = &self.state
            && let State::Unknown(socket) = std::mem::replace(&mut self.state, State::Lost)
        {
            self.state = State::Reads(register(socket)?);
        }
        match &self.state {
            State::Reads(socket) => Ok(socket),
            State::Unknown(_) | State::Lost => Err(lost()),
        }
    }
}

#[expect(
    deprecated,
    reason = "what replaces it is unsafe; a Socket keeps its descriptor open, and the same"
)]
fn register(socket: Socket) -> io::Result<AsyncFd<Socket>> {
    AsyncFd::with_interest(socket, Interest::READABLE)
}

fn lost() -> io::Error {
    io::ErrorKind::NotConnected.into()
}
