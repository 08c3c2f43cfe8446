//! A client's socket.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::net::{RecvFlags, SendFlags, Shutdown};
use rustix::pipe::{SpliceFlags, splice};
use socket2::SockRef;

use super::{Direction, Socket, Transport};

/// A connected stream socket of any family. The event loop learns of it when it has to wait for the first time:
/// a connection whose only request had arrived when it was accepted never does.
pub(crate) struct Stream {
    socket: Socket,
    drained: bool,
}

impl Stream {
    /// `socket` does not block.
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket: Socket::new(socket), drained: false }
    }
}

impl Transport for Stream {
    fn poll_receive(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        // What was received last has emptied the socket: another attempt now would only say so.
        if self.drained {
            self.socket.register()?;
        }
        let room = buffer.len();
        let received = self.socket.poll(cx, Direction::Receive, |socket| {
            let (n, _) = rustix::net::recv(socket, &mut *buffer, RecvFlags::empty())?;
            Ok((n, 0 < n && n < room))
        });
        self.drained = matches!(received, Poll::Ready(Ok(n)) if 0 < n && n < room);
        received
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        more: bool,
    ) -> Poll<io::Result<usize>> {
        let flags = match more {
            true => SendFlags::NOSIGNAL | SendFlags::MORE,
            false => SendFlags::NOSIGNAL,
        };
        self.socket.poll(cx, Direction::Send, |socket| {
            let n = rustix::net::send(socket, bytes, flags)?;
            Ok((n, 0 < n && n < bytes.len()))
        })
    }

    fn poll_send_file(
        &mut self,
        cx: &mut Context<'_>,
        file: &File,
        offset: u64,
        len: usize,
    ) -> Poll<io::Result<usize>> {
        self.socket.poll(cx, Direction::Send, |socket| {
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
        self.socket.poll(cx, Direction::Send, |socket| {
            Ok((splice(pipe, None, socket, None, len, flags)?, false))
        })
    }

    fn is_drained(&self) -> bool {
        self.drained
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        let socket = self.socket.descriptor().ok()?;
        let socket = SockRef::from(&socket);
        let client = socket.peer_addr().ok()?.as_socket()?;
        Some((client, socket.local_addr().ok()?.as_socket()?))
    }

    fn reset_at_end(&self) {
        if let Ok(socket) = self.socket.descriptor() {
            // A socket without this option ends without a reset.
            let _ = SockRef::from(&socket).set_linger(Some(Duration::ZERO));
        }
    }

    fn poll_shutdown(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(rustix::net::shutdown(self.socket.descriptor()?, Shutdown::Write)?))
    }
}
