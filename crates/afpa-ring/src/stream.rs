//! A connected socket whose operations are the ring's.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::LARGEST_COPY;
use crate::kernel::Kernel;
use crate::operations::{End, Send, Stop};

/// A connected stream socket in a ring.
///
/// One task uses it. Dropping it ends the operations under way, then closes the socket.
pub struct RingStream {
    kernel: Rc<RefCell<Kernel>>,
    key: usize,
    /// `None` when it was released.
    socket: Option<OwnedFd>,
}

impl RingStream {
    pub(crate) fn new(kernel: Rc<RefCell<Kernel>>, socket: OwnedFd) -> Self {
        let key = kernel.borrow_mut().enter_socket();
        Self { kernel, key, socket: Some(socket) }
    }

    /// Receives into `room`, which is not empty. `Ok(0)` is the end of the stream.
    ///
    /// # Errors
    /// [`Stop::Broken`] when the connection is; [`Stop::Refused`] when the ring has no buffer or cannot receive: the
    /// socket is to be [released](Self::poll_release), and nothing that arrived is lost.
    pub fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        room: &mut [u8],
    ) -> Poll<Result<usize, Stop>> {
        let mut kernel = self.kernel.borrow_mut();
        if let Some(read) = kernel.read(self.key, room) {
            return Poll::Ready(Ok(read));
        }
        let Some(socket) = self.socket.as_ref() else { return Poll::Ready(Err(released())) };
        let end = kernel.socket(self.key).and_then(|operations| operations.end);
        match end {
            Some(End::Closed) => return Poll::Ready(Ok(0)),
            Some(End::Broken(error)) => return Poll::Ready(Err(Stop::Broken(error.into()))),
            Some(End::Refused(error)) => return Poll::Ready(Err(Stop::Refused(error.into()))),
            None => {}
        }
        if let Err(error) = kernel.receive(self.key, socket.as_fd()) {
            return Poll::Ready(Err(Stop::Refused(error)));
        }
        wait(&mut kernel, self.key, cx);
        Poll::Pending
    }

    /// Sends from `bytes` as much as the socket takes at once, and tells how much that was. While it is pending, the
    /// bytes are lent, `bytes` is empty, and it is to be called again with the same vector; then they are back.
    /// `more` says that more follows at once.
    ///
    /// # Errors
    /// [`Stop::Broken`] when the connection is; [`Stop::Refused`] when the socket takes nothing now, or the ring
    /// cannot send.
    pub fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut Vec<u8>,
        more: bool,
    ) -> Poll<Result<usize, Stop>> {
        let mut kernel = self.kernel.borrow_mut();
        if let Err(error) = kernel.check() {
            return Poll::Ready(Err(Stop::Broken(error)));
        }
        let Some(operations) = kernel.socket(self.key) else { return Poll::Ready(Err(released())) };
        match std::mem::take(&mut operations.send) {
            Send::Done(lent, result) => {
                *bytes = lent;
                return Poll::Ready(result.map_err(Stop::of));
            }
            lent @ Send::Lent(_) => operations.send = lent,
            Send::Idle => {
                let Some(socket) = self.socket.as_ref() else {
                    return Poll::Ready(Err(released()));
                };
                if let Err(error) = kernel.send(self.key, socket.as_fd(), bytes, more) {
                    return Poll::Ready(Err(Stop::Refused(error)));
                }
            }
        }
        wait(&mut kernel, self.key, cx);
        Poll::Pending
    }

    /// As [`poll_send`](Self::poll_send), from a copy of at most [`LARGEST_COPY`] bytes. While it is pending, it is to be
    /// called again, and `bytes` are not looked at.
    ///
    /// # Errors
    /// As [`poll_send`](Self::poll_send).
    pub fn poll_send_copy(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, Stop>> {
        let mut copy = match self.is_sending() {
            true => Vec::new(),
            false => {
                let bytes = bytes.get(..LARGEST_COPY).unwrap_or(bytes);
                self.kernel.borrow_mut().copy(bytes)
            }
        };
        let sent = self.poll_send(cx, &mut copy, false);
        if sent.is_ready() {
            self.kernel.borrow_mut().give_back_copy(copy);
        }
        sent
    }

    /// Ends the operations under way, and gives the socket back with the bytes that had arrived and were not read.
    /// Bytes that arrive afterwards, and the end of the stream, are in the socket. Not to be called while a send is
    /// pending.
    ///
    /// # Errors
    /// When the ring cannot cancel the operations under way: the connection cannot be used any more.
    pub fn poll_release(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<(OwnedFd, Vec<u8>)>> {
        let mut kernel = self.kernel.borrow_mut();
        kernel.check()?;
        kernel.cancel(self.key)?;
        if kernel.socket(self.key).is_some_and(|operations| operations.is_under_way()) {
            wait(&mut kernel, self.key, cx);
            return Poll::Pending;
        }
        let Some(socket) = self.socket.take() else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        Poll::Ready(Ok((socket, kernel.leave(self.key))))
    }

    /// Whether everything that had arrived when the last receive was done is read.
    pub fn is_drained(&self) -> bool {
        let mut kernel = self.kernel.borrow_mut();
        kernel.socket(self.key).is_none_or(|socket| socket.arrived.is_empty() && !socket.more)
    }

    /// Whether bytes have arrived that are not read.
    pub fn has_arrived(&self) -> bool {
        let mut kernel = self.kernel.borrow_mut();
        kernel.socket(self.key).is_some_and(|socket| !socket.arrived.is_empty())
    }

    /// Whether there is nothing to be read, and nothing is being sent.
    pub fn is_idle(&self) -> bool {
        let mut kernel = self.kernel.borrow_mut();
        kernel.socket(self.key).is_none_or(|socket| {
            socket.arrived.is_empty() && socket.end.is_none() && matches!(socket.send, Send::Idle)
        })
    }

    /// Whether bytes are lent to the kernel, or are to be taken back.
    pub fn is_sending(&self) -> bool {
        let mut kernel = self.kernel.borrow_mut();
        kernel.socket(self.key).is_some_and(|socket| !matches!(socket.send, Send::Idle))
    }

    /// Whether so many bytes had arrived unread that the other side is held back. These bytes are still there.
    pub fn is_held_back(&self) -> bool {
        let mut kernel = self.kernel.borrow_mut();
        kernel.socket(self.key).is_some_and(|socket| socket.held_back)
    }

    /// The socket. `None` when it was released.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(OwnedFd::as_fd)
    }
}

impl fmt::Debug for RingStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RingStream({:?})", self.socket)
    }
}

impl Drop for RingStream {
    fn drop(&mut self) {
        if let Some(socket) = self.socket.take() {
            self.kernel.borrow_mut().close(self.key, socket);
        }
    }
}

fn wait(kernel: &mut Kernel, key: usize, cx: &Context<'_>) {
    let Some(operations) = kernel.socket(key) else { return };
    if !operations.waker.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
        operations.waker = Some(cx.waker().clone());
    }
}

fn released() -> Stop {
    Stop::Broken(io::ErrorKind::NotConnected.into())
}
