//! TLS to a server.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, Waker, ready};

use afpa_tls::machine::{RECORD, ServerName};
use afpa_tls::{ClientMachine, ClientTls, Failure};

use super::connect::To;
use super::socket::ServerSocket;
use crate::select::Address;

/// How the servers of a group are reached by TLS.
#[derive(Clone, PartialEq, Eq)]
pub struct TlsToServers {
    /// The authorities that AFPA trusts, and its own certificate.
    pub tls: ClientTls,
    /// As `tls`, but HTTP/2 is offered before HTTP/1.1.
    pub http2: ClientTls,
    /// The name that their certificates must be for; `None`: the name by which each server is configured.
    pub name: Option<ServerName<'static>>,
}

impl fmt::Debug for TlsToServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TlsToServers({:?})", self.name)
    }
}

impl TlsToServers {
    /// The name for the server that logs call `configured`, at this address.
    fn name_of(&self, configured: &str, address: &Address) -> io::Result<ServerName<'static>> {
        if let Some(name) = &self.name {
            return Ok(name.clone());
        }
        match address {
            Address::Tcp(address) if configured.parse::<std::net::SocketAddr>().is_ok() => {
                Ok(ServerName::from(address.ip()))
            }
            _ => {
                let host = configured.split(':').next().unwrap_or_default();
                ServerName::try_from(host.to_owned()).map_err(io::Error::other)
            }
        }
    }
}

/// A connection of TLS to a server.
pub struct TlsStream {
    below: ServerSocket,
    machine: ClientMachine,
    settings: TlsToServers,
    /// Plaintext that has arrived and was not asked for yet.
    ahead: Vec<u8>,
    /// Ciphertext that is still to be sent, no more than a record.
    unsent: Vec<u8>,
    sent: usize,
    peer_closed: bool,
    closed: bool,
    /// Nothing can be sent any more.
    is_cut: bool,
}

impl fmt::Debug for TlsStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TlsStream({:?})", self.below)
    }
}

impl TlsStream {
    /// Shakes hands over a connection, and verifies the server's certificate.
    ///
    /// # Errors
    /// With the error of the system, or the fault of the server's certificate.
    pub(super) async fn connect(
        below: ServerSocket,
        settings: &TlsToServers,
        to: To<'_>,
        offers_http2: bool,
    ) -> io::Result<Self> {
        let name = settings.name_of(to.name, to.address)?;
        let tls = if offers_http2 { &settings.http2 } else { &settings.tls };
        let machine = ClientMachine::new(tls, name).map_err(refused)?;
        let settings = settings.clone();
        let (ahead, unsent, sent) = (Vec::new(), Vec::new(), 0);
        let (peer_closed, closed, is_cut) = (false, false, false);
        let mut stream =
            Self { below, machine, settings, ahead, unsent, sent, peer_closed, closed, is_cut };
        stream.machine.process(&mut [], &mut stream.ahead, &mut stream.unsent).map_err(refused)?;
        poll_fn(|cx| stream.poll_handshake(cx)).await.inspect_err(|error| {
            tracing::debug!(server = to.name, %error, "no TLS with a server");
        })?;
        Ok(stream)
    }

    /// Whether the server has chosen HTTP/2 (RFC 7301).
    pub(super) fn speaks_http2(&self) -> bool {
        self.machine.facts().and_then(|facts| facts.protocol).as_deref() == Some(b"h2")
    }

    /// Whether it was made with these settings.
    pub(super) fn is_of(&self, settings: Option<&TlsToServers>) -> bool {
        settings == Some(&self.settings)
    }

    fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_unsent(cx))?;
            if !self.machine.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            ready!(self.poll_arrival(cx))?;
        }
    }

    /// Receives once, and processes the ciphertext that has arrived.
    fn poll_arrival(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut room = [0; RECORD];
        let n = ready!(self.below.poll_read(cx, &mut room))?;
        if n == 0 {
            // An end without close_notify may be an attacker's (RFC 8446, section 6.1).
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        let arrived = room.get_mut(..n).unwrap_or_default();
        let progress = self.machine.process(arrived, &mut self.ahead, &mut self.unsent);
        match progress {
            Ok(progress) => self.peer_closed |= progress.peer_closed,
            Err(failure) => {
                // One attempt: the alert reaches the server if the socket takes it at once.
                let _ = self.poll_unsent(cx);
                return Poll::Ready(Err(refused(failure)));
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_unsent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.unsent.get(self.sent..).filter(|rest| !rest.is_empty()) {
            let sent = ready!(self.below.poll_write(cx, rest));
            self.is_cut |= sent.is_err();
            self.sent += sent?;
        }
        self.unsent.clear();
        self.sent = 0;
        Poll::Ready(Ok(()))
    }

    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        room: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let n = self.ahead.len().min(room.len());
            if n > 0 {
                if let (Some(room), Some(ahead)) = (room.get_mut(..n), self.ahead.get(..n)) {
                    room.copy_from_slice(ahead);
                }
                self.ahead.drain(..n);
                if self.ahead.is_empty() {
                    self.ahead = Vec::new();
                }
                return Poll::Ready(Ok(n));
            }
            if self.peer_closed || room.is_empty() {
                return Poll::Ready(Ok(0));
            }
            // The server may wait for these bytes before it sends. A server that takes none of them may have answered before.
            if !self.is_cut {
                let _ = self.poll_unsent(cx);
            }
            ready!(self.poll_arrival(cx))?;
        }
    }

    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_unsent(cx))?;
        let record = bytes.get(..bytes.len().min(RECORD)).unwrap_or_default();
        if self.machine.encrypt(record, &mut self.unsent).is_err() {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        }
        if let Poll::Ready(Err(error)) = self.poll_unsent(cx) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(record.len()))
    }

    /// Whether neither bytes nor an end have arrived, and it can be written to.
    pub(super) fn is_silent(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        self.poll_read(&mut cx, &mut [0; 1]).is_pending() && !self.is_cut
    }

    pub(super) fn become_tunnel(&mut self) {
        self.below.become_tunnel();
    }

    pub(super) fn reset_at_end(&self) {
        self.below.reset_at_end();
    }

    pub(super) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.closed {
            self.closed = true;
            // Without keys there is nothing to be closed.
            let _ = self.machine.close(&mut self.unsent);
        }
        ready!(self.poll_unsent(cx))?;
        self.below.poll_shutdown(cx)
    }
}

fn refused(failure: Failure) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, failure)
}
