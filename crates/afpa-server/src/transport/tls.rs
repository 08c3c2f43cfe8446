//! TLS over another transport.
//!
//! Plaintext to send is encrypted as a whole and counts as sent, like bytes in a socket's buffer. Ciphertext that the
//! client does not take at once stays here, no more than one burst: the next send waits for it, and so does
//! [`Transport::poll_flush`].

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use afpa_tls::machine::{LONGEST, RECORD};
use afpa_tls::{Facts, Failure, ListenerTls, Reason};

use super::{Leaving, Transport};
use begun::Begun;

mod begun;
mod file;

/// Plaintext that is encrypted at a time for a client that takes it at once.
const BURST: usize = 2 * RECORD;

/// Bytes of a file that are sent before the version of the file is checked again.
const STRETCH: usize = 8 * BURST;

/// Ciphertext that is received at a time.
const ARRIVAL: usize = 64 * 1024;

/// Buffers of a core. A connection uses them from one wait to the next.
#[derive(Debug, Default)]
pub(crate) struct TlsBuffers {
    /// Ciphertext that has arrived.
    cipher: RefCell<Vec<u8>>,
    /// Of a file: a burst of records, or their content on its way into them.
    file: RefCell<Vec<u8>>,
    /// Ciphertext to send.
    out: RefCell<Vec<u8>>,
}

/// A connection of TLS.
pub(crate) struct Tls<T> {
    below: T,
    begun: Begun,
    buffers: Rc<TlsBuffers>,
    /// Plaintext that has arrived and did not fit the room.
    ahead: Vec<u8>,
    /// Ciphertext that is still to be sent.
    unsent: Vec<u8>,
    /// How much of it was sent.
    sent: usize,
    /// Ciphertext that is lent to the kernel, and how much plaintext it stands for.
    lent: Option<(Vec<u8>, usize)>,
    /// The client did not take the last burst at once.
    slow: bool,
    peer_closed: bool,
    /// Nothing more is encrypted: close_notify was, or the connection is to end with a reset.
    closed: bool,
}

impl<T: Transport> Tls<T> {
    /// A connection whose handshake is still to come.
    ///
    /// # Errors
    /// When the settings cannot be used.
    pub(crate) fn new(
        below: T,
        settings: &ListenerTls,
        buffers: &Rc<TlsBuffers>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            below,
            begun: Begun::new(settings)?,
            buffers: Rc::clone(buffers),
            ahead: Vec::new(),
            unsent: Vec::new(),
            sent: 0,
            lent: None,
            slow: false,
            peer_closed: false,
            closed: false,
        })
    }

    /// Takes the bytes that had arrived before it was known that they are TLS.
    ///
    /// # Errors
    /// As [`poll_handshake`](Self::poll_handshake).
    pub(crate) fn take(&mut self, arrived: &mut [u8]) -> Result<(), Failure> {
        let Self { begun, ahead, unsent, .. } = self;
        match begun.process(arrived, ahead, unsent) {
            Ok(progress) => self.peer_closed = progress.peer_closed,
            Err(failure) => {
                self.tell_why(&mut Context::from_waker(Waker::noop()), &failure);
                return Err(failure);
            }
        }
        Ok(())
    }

    /// Moves the handshake on by one arrival. Ready with whether it is complete, or has brought early data. Output that
    /// remains then goes with the first answer.
    ///
    /// # Errors
    /// The failure, after one attempt to send an alert; `None`: the client is gone.
    pub(crate) fn poll_handshake(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<bool, Option<Failure>>> {
        if self.is_shaken() {
            return Poll::Ready(Ok(true));
        }
        ready!(self.poll_tickets(cx)).map_err(|_| None)?;
        let Self { begun, ahead, unsent, .. } = self;
        let moved = match ready!(begun.poll_begin(cx, ahead, unsent)) {
            Some(begun) => begun.map(|progress| self.peer_closed |= progress.peer_closed),
            None => match ready!(self.poll_arrival(cx)) {
                Ok(0) | Err(Broken::Gone(_)) => return Poll::Ready(Err(None)),
                Ok(_) => Ok(()),
                Err(Broken::Tls(failure)) => Err(failure),
            },
        };
        Poll::Ready(match moved {
            Ok(()) => Ok(self.is_shaken()),
            Err(failure) => {
                self.tell_why(cx, &failure);
                Err(Some(failure))
            }
        })
    }

    /// Whether requests can be looked at. Plaintext before the end of the handshake is early data.
    fn is_shaken(&self) -> bool {
        !self.begun.is_handshaking() || !self.ahead.is_empty()
    }

    /// Takes the plaintext that has arrived behind the handshake, or as early data.
    pub(crate) fn take_ahead(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.ahead)
    }

    /// The results of the handshake; `None` before its begin.
    ///
    /// # Errors
    /// When the certificate in the client's session is not valid any more.
    pub(crate) fn agreed(&self) -> Result<Option<Facts>, Failure> {
        match &self.begun {
            Begun::Machine(machine, settings) => machine.agreed(settings).map(Some),
            Begun::Greeting(_) | Begun::Waiting(_) => Ok(None),
        }
    }

    /// The transport itself, for a client that speaks no TLS.
    pub(crate) fn below(&mut self) -> &mut T {
        self.closed = true;
        &mut self.below
    }

    /// Sends the alert behind an error, unless the client speaks no TLS and would not understand it.
    fn tell_why(&mut self, cx: &mut Context<'_>, failure: &Failure) {
        if failure.reason != Reason::NotTls {
            self.tell(cx);
        }
    }

    /// Sends the alert behind an error, as far as the socket takes it.
    fn tell(&mut self, cx: &mut Context<'_>) {
        self.closed = true;
        let _ = self.poll_unsent(cx);
    }

    /// Tells the client why, if it is there.
    fn give_up(&mut self, cx: &mut Context<'_>, broken: Broken) -> io::Error {
        match broken {
            Broken::Gone(error) => error,
            Broken::Tls(failure) => {
                self.tell(cx);
                io::Error::new(io::ErrorKind::InvalidData, failure)
            }
        }
    }

    /// Receives once, and processes the ciphertext that has arrived. Returns its length.
    fn poll_arrival(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, Broken>> {
        let Self { below, begun, buffers, ahead, unsent, .. } = self;
        let mut cipher = buffers.cipher.borrow_mut();
        if cipher.is_empty() {
            cipher.resize(ARRIVAL.max(LONGEST), 0);
        }
        let n = ready!(below.poll_receive(cx, &mut cipher)).map_err(Broken::Gone)?;
        let arrived = cipher.get_mut(..n).unwrap_or_default();
        let progress = begun.process(arrived, ahead, unsent).map_err(Broken::Tls)?;
        self.peer_closed |= progress.peer_closed;
        Poll::Ready(Ok(n))
    }

    /// Sends the rest of earlier bursts.
    fn poll_unsent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_lent(cx))?;
        while let Some(rest) = self.unsent.get(self.sent..).filter(|rest| !rest.is_empty()) {
            self.sent += ready!(self.below.poll_send(cx, rest, false))?;
        }
        if !self.unsent.is_empty() {
            self.unsent = Vec::new();
            self.sent = 0;
        }
        Poll::Ready(Ok(()))
    }

    /// Sends the last output of the handshake, without leaving the ring.
    fn poll_tickets(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lent.is_none() && self.sent == 0 && !self.unsent.is_empty() && !self.slow {
            self.lent = Some((std::mem::take(&mut self.unsent), 0));
        }
        self.poll_unsent(cx)
    }

    /// Takes back lent ciphertext that stands for no plaintext. Nothing else is sent before.
    fn poll_lent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some((bytes, 0)) = &mut self.lent else { return Poll::Ready(Ok(())) };
        let sent = ready!(self.below.poll_send_gathered(cx, bytes, false));
        let mut bytes = self.lent.take().map(|(bytes, _)| bytes).unwrap_or_default();
        let sent = sent?;
        self.slow = sent < bytes.len();
        if self.slow {
            // Something may have been added meanwhile.
            bytes.append(&mut self.unsent);
            (self.unsent, self.sent) = (bytes, sent);
        }
        Poll::Ready(Ok(()))
    }

    /// The core's buffer with the ciphertext to send first, and `plain` encrypted behind it.
    fn encrypt(&mut self, plain: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = self.buffers.out.take();
        out.clear();
        if !self.unsent.is_empty() {
            out.extend_from_slice(self.unsent.get(self.sent..).unwrap_or_default());
            self.unsent = Vec::new();
            self.sent = 0;
        }
        let begun = &mut self.begun;
        if self.closed || begun.machine().and_then(|m| m.encrypt(plain, &mut out)).is_err() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        Ok(out)
    }

    /// Keeps the unsent bytes, and gives the buffer back.
    fn settle(&mut self, out: Vec<u8>, sent: usize) {
        self.slow = sent < out.len();
        if self.slow {
            self.unsent = out.get(sent..).unwrap_or_default().to_vec();
            self.sent = 0;
        }
        self.buffers.out.replace(out);
    }

    /// Encrypts up to a burst of `plain`, and sends what the socket takes of it. Returns how much was encrypted.
    fn send_burst(&mut self, cx: &mut Context<'_>, plain: &[u8], more: bool) -> io::Result<usize> {
        let plain = plain.get(..plain.len().min(self.burst())).unwrap_or_default();
        let out = self.encrypt(plain)?;
        let sent = match self.below.poll_send(cx, &out, more) {
            Poll::Ready(sent) => sent?,
            Poll::Pending => 0,
        };
        self.settle(out, sent);
        Ok(plain.len())
    }

    /// A slow client is not to hold much.
    fn burst(&self) -> usize {
        if self.slow { RECORD } else { BURST }
    }

    /// Copies arrived plaintext into `room`.
    fn give(&mut self, room: &mut [u8]) -> usize {
        let n = self.ahead.len().min(room.len());
        if let (Some(room), Some(ahead)) = (room.get_mut(..n), self.ahead.get(..n)) {
            room.copy_from_slice(ahead);
        }
        if n == self.ahead.len() {
            self.ahead = Vec::new();
        } else {
            self.ahead.drain(..n);
        }
        n
    }
}

/// Why nothing more is received.
enum Broken {
    Gone(io::Error),
    Tls(Failure),
}

impl<T: Transport> Transport for Tls<T> {
    const SENDS_PAGES: bool = false;

    fn poll_receive(&mut self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            if !self.ahead.is_empty() {
                return Poll::Ready(Ok(self.give(room)));
            }
            if self.peer_closed {
                return Poll::Ready(Ok(0));
            }
            // The client may wait for these bytes before it sends.
            if let Poll::Ready(Err(error)) = self.poll_tickets(cx) {
                return Poll::Ready(Err(error));
            }
            // A receive may leave the ring. Lent bytes come back first, or they would be lost.
            if self.lent.is_some() {
                return Poll::Pending;
            }
            match ready!(self.poll_arrival(cx)) {
                Ok(0) => return Poll::Ready(Ok(0)),
                Ok(_) => {}
                Err(broken) => return Poll::Ready(Err(self.give_up(cx, broken))),
            }
        }
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        more: bool,
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_unsent(cx))?;
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        Poll::Ready(self.send_burst(cx, bytes, more))
    }

    fn poll_send_gathered(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut Vec<u8>,
        more: bool,
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_lent(cx))?;
        let (mut out, taken) = match self.lent.take() {
            Some(lent) => lent,
            // The client has not taken earlier bytes yet; other calls wait for it.
            None if self.slow && self.sent < self.unsent.len() => return Poll::Ready(Ok(0)),
            None => (self.encrypt(bytes)?, bytes.len()),
        };
        match self.below.poll_send_gathered(cx, &mut out, more) {
            Poll::Ready(sent) => {
                self.settle(out, sent?);
                Poll::Ready(Ok(taken))
            }
            Poll::Pending => {
                self.lent = Some((out, taken));
                Poll::Pending
            }
        }
    }

    fn lends(&self) -> bool {
        self.below.lends()
    }

    fn poll_leave_ring(&mut self, cx: &mut Context<'_>, why: Leaving) -> Poll<io::Result<()>> {
        ready!(self.poll_lent(cx))?;
        self.below.poll_leave_ring(cx, why)
    }

    fn poll_send_file(
        &mut self,
        cx: &mut Context<'_>,
        file: &File,
        offset: u64,
        len: usize,
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_unsent(cx))?;
        let mut room = self.buffers.file.take();
        room.resize(file::ROOM, 0);
        let sent = self.send_file(cx, file, offset..offset + len.min(STRETCH) as u64, &mut room);
        self.buffers.file.replace(room);
        Poll::Ready(sent)
    }

    fn is_flushed(&self) -> bool {
        self.unsent.is_empty() && self.lent.is_none()
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_unsent(cx)
    }

    fn is_early(&self) -> bool {
        self.begun.is_handshaking()
    }

    fn poll_handshake_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.begun.is_handshaking() {
            ready!(self.poll_tickets(cx))?;
            match ready!(self.poll_arrival(cx)) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                Ok(_) => {}
                Err(broken) => return Poll::Ready(Err(self.give_up(cx, broken))),
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_goodbye(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let taken_back = ready!(self.poll_lent(cx));
        // An alert behind bytes that cannot be sent would not arrive.
        if taken_back.is_err() || self.closed || !self.unsent.is_empty() {
            return Poll::Ready(());
        }
        self.closed = true;
        let mut last = Vec::new();
        if self.begun.machine().and_then(|machine| machine.close(&mut last)).is_err() {
            return Poll::Ready(());
        }
        self.lent = Some((last, 0));
        self.poll_lent(cx).map(|_| ())
    }

    fn expects_more(&mut self) {
        self.below.expects_more();
    }

    fn is_drained(&self) -> bool {
        self.ahead.is_empty() && self.begun.is_drained() && self.below.is_drained()
    }

    fn has_arrived(&self) -> bool {
        !self.is_drained() || self.below.has_arrived()
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        self.below.addresses()
    }

    fn reset_at_end(&mut self) {
        self.closed = true;
        self.below.reset_at_end();
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.closed {
            let mut last = Vec::new();
            // Without keys there is nothing to be closed.
            let _ = self.begun.machine().and_then(|machine| machine.close(&mut last));
            self.unsent.append(&mut last);
            self.closed = true;
        }
        ready!(self.poll_unsent(cx))?;
        self.below.poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
