//! A socket that is registered with the event loop only when a task has to wait for it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll, ready};

use tokio::io::Interest;
use tokio::net::TcpStream;

/// A socket that does not block, and its registration with the event loop.
///
/// To register a socket costs a system call, and to take it out again another one. A socket for which no task has
/// to wait costs neither.
pub(crate) struct Socket(Registration);

enum Registration {
    /// Operations are just tried; the first one that would block registers the socket.
    Unknown(OwnedFd),
    /// Operations are tried when the event loop says that they may succeed. The type stands for sockets of any
    /// family, and for those that listen: only readiness is used of it, which is the same for all.
    Watched(TcpStream),
    /// The event loop could not take it, or it was taken away.
    Lost,
}

/// The readiness that an operation waits for.
#[derive(Clone, Copy)]
pub(crate) enum Direction {
    /// Something to receive, or a connection to accept.
    Receive,
    /// Room for bytes to send.
    Send,
}

/// Whether the event loop has to speak before an operation is tried again: nothing is left to be received, or no
/// room to send.
pub(crate) type Exhausted = bool;

impl Socket {
    pub(crate) fn new(descriptor: OwnedFd) -> Self {
        Self(Registration::Unknown(descriptor))
    }

    /// A place for a socket that has been taken away.
    pub(crate) fn lost() -> Self {
        Self(Registration::Lost)
    }

    pub(crate) fn descriptor(&self) -> io::Result<BorrowedFd<'_>> {
        match &self.0 {
            Registration::Unknown(descriptor) => Ok(descriptor.as_fd()),
            Registration::Watched(stream) => Ok(stream.as_fd()),
            Registration::Lost => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Whether the event loop knows the socket.
    pub(crate) fn is_watched(&self) -> bool {
        matches!(self.0, Registration::Watched(_))
    }

    /// Has the event loop watch the socket, beginning with its present readiness.
    pub(crate) fn register(&mut self) -> io::Result<()> {
        self.0 = match std::mem::replace(&mut self.0, Registration::Lost) {
            Registration::Unknown(descriptor) => {
                Registration::Watched(TcpStream::from_std(descriptor.into())?)
            }
            known => known,
        };
        Ok(())
    }

    /// Takes the socket out of the event loop, if that knows it.
    pub(crate) fn into_descriptor(self) -> io::Result<OwnedFd> {
        match self.0 {
            Registration::Unknown(descriptor) => Ok(descriptor),
            Registration::Watched(stream) => Ok(stream.into_std()?.into()),
            Registration::Lost => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Tries `op` once, without regard to the event loop.
    pub(crate) fn attempt<R>(
        &self,
        mut op: impl FnMut(BorrowedFd<'_>) -> io::Result<(R, Exhausted)>,
    ) -> io::Result<R> {
        loop {
            match op(self.descriptor()?) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done.map(|(result, _)| result),
            }
        }
    }

    /// Tries `op`, whenever the event loop says that it may succeed, until it does not say that it would block.
    pub(crate) fn poll<R>(
        &mut self,
        cx: &mut Context<'_>,
        direction: Direction,
        mut op: impl FnMut(BorrowedFd<'_>) -> io::Result<(R, Exhausted)>,
    ) -> Poll<io::Result<R>> {
        loop {
            let done = match &self.0 {
                Registration::Watched(stream) => {
                    ready!(direction.poll_ready(stream, cx))?;
                    direction.attempt(stream, &mut op)
                }
                _ => op(self.descriptor()?).map(|(result, _)| result),
            };
            match done {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.register()?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return Poll::Ready(done),
            }
        }
    }
}

impl Direction {
    fn poll_ready(self, stream: &TcpStream, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Receive => stream.poll_read_ready(cx),
            Self::Send => stream.poll_write_ready(cx),
        }
    }

    /// Tries `op` once. When it has exhausted the socket, this tells the event loop so, as if `op` had been tried again
    /// and would have blocked. That saves the system call that would block.
    fn attempt<R>(
        self,
        stream: &TcpStream,
        op: &mut impl FnMut(BorrowedFd<'_>) -> io::Result<(R, Exhausted)>,
    ) -> io::Result<R> {
        let interest = match self {
            Self::Receive => Interest::READABLE,
            Self::Send => Interest::WRITABLE,
        };
        let mut done = None;
        let tried = stream.try_io(interest, || match op(stream.as_fd())? {
            (result, false) => Ok(result),
            (result, true) => {
                done = Some(result);
                Err(io::ErrorKind::WouldBlock.into())
            }
        });
        done.map_or(tried, Ok)
    }
}
