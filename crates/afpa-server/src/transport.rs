//! The operations of a socket that a connection needs.

use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::SendFlags;
use rustix::pipe::{SpliceFlags, splice};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A byte stream to a client. TLS could be another implementation: it would encrypt in
/// [`poll_send`](Transport::poll_send), and read file and pipe in the other two.
pub trait Transport: Unpin {
    /// Receives into `buffer`; `Ok(0)` is the end of the stream.
    fn poll_receive(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Sends from `bytes`. `more` says that more follows at once, so that no short packet is made.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        more: bool,
    ) -> Poll<io::Result<usize>>;

    /// Sends up to `len` bytes of `file` from `offset` without copying them to user mode.
    /// `Ok(0)` says that the file ends before `offset`.
    fn poll_send_file(
        &mut self,
        cx: &mut Context<'_>,
        file: &File,
        offset: u64,
        len: usize,
    ) -> Poll<io::Result<usize>>;

    /// Sends up to `len` bytes from a pipe; `more` as in [`poll_send`](Transport::poll_send).
    fn poll_send_held(
        &mut self,
        cx: &mut Context<'_>,
        pipe: BorrowedFd<'_>,
        len: usize,
        more: bool,
    ) -> Poll<io::Result<usize>>;

    /// The addresses of client and server, if they have any.
    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)>;

    /// The connection will end with a reset.
    fn reset_at_end(&self);

    /// Shuts down the sending direction.
    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

/// Shuts down the sending direction of `transport`.
///
/// # Errors
/// The error of the system, for example that the client is gone.
pub async fn shutdown(transport: &mut impl Transport) -> io::Result<()> {
    poll_fn(|cx| transport.poll_shutdown(cx)).await
}

/// What a transport needs of tokio's stream sockets.
trait Socket: AsyncRead + AsyncWrite + AsFd + Unpin {
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    fn try_write<R>(&self, op: impl FnMut() -> io::Result<R>) -> io::Result<R>;
}

macro_rules! socket {
    ($stream:ty) => {
        impl Socket for $stream {
            fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.poll_write_ready(cx)
            }
            fn try_write<R>(&self, op: impl FnMut() -> io::Result<R>) -> io::Result<R> {
                self.try_io(Interest::WRITABLE, op)
            }
        }
    };
}
socket!(TcpStream);
socket!(UnixStream);

impl<S: Socket> Transport for S {
    fn poll_receive(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        // poll_read, not try_read: after a read that does not fill the buffer tokio knows that the
        // socket is empty and saves the system call that would only say so.
        let mut buffer = ReadBuf::new(buffer);
        ready!(Pin::new(self).poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        more: bool,
    ) -> Poll<io::Result<usize>> {
        if !more {
            return Pin::new(self).poll_write(cx, bytes);
        }
        let flags = SendFlags::MORE | SendFlags::NOSIGNAL;
        poll_try(self, cx, |socket| Ok(rustix::net::send(socket, bytes, flags)?))
    }

    fn poll_send_file(
        &mut self,
        cx: &mut Context<'_>,
        file: &File,
        offset: u64,
        len: usize,
    ) -> Poll<io::Result<usize>> {
        poll_try(self, cx, |socket| {
            let mut at = offset;
            Ok(rustix::fs::sendfile(socket, file, Some(&mut at), len)?)
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
        poll_try(self, cx, |socket| Ok(splice(pipe, None, socket, None, len, flags)?))
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        let socket = SockRef::from(self);
        let client = socket.peer_addr().ok()?.as_socket()?;
        Some((client, socket.local_addr().ok()?.as_socket()?))
    }

    fn reset_at_end(&self) {
        // A socket without this option ends without a reset.
        let _ = SockRef::from(self).set_linger(Some(Duration::ZERO));
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_shutdown(Pin::new(self), cx)
    }
}

/// Tries `op` whenever `socket` can take bytes, until it does not say that it would block.
fn poll_try<S: Socket, R>(
    socket: &S,
    cx: &mut Context<'_>,
    mut op: impl FnMut(&S) -> io::Result<R>,
) -> Poll<io::Result<R>> {
    loop {
        ready!(socket.poll_writable(cx))?;
        match socket.try_write(|| op(socket)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            result => return Poll::Ready(result),
        }
    }
}
