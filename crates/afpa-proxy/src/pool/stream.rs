//! A connection to a server, of either family.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, Waker};

use super::carrier::Carrier;
use super::connect::{Connector, To};
use super::fastcgi::{FastCgiStream, FastCgiTerms};
use super::http2::Http2Stream;
use super::socket::ServerSocket;
use super::tls::{TlsStream, TlsToServers};

/// A byte stream to a server.
#[derive(Debug)]
pub enum ServerStream {
    /// Over TCP or a unix socket.
    Plain(ServerSocket),
    /// TLS over that.
    Tls(Box<TlsStream>),
    /// A stream of a connection of HTTP/2, in the words of HTTP/1.1.
    Http2(Box<Http2Stream>),
    /// FastCGI, in the words of HTTP/1.1.
    FastCgi(Box<FastCgiStream>),
}

impl From<Carrier> for ServerStream {
    fn from(carrier: Carrier) -> Self {
        match carrier {
            Carrier::Plain(socket) => Self::Plain(socket),
            Carrier::Tls(stream) => Self::Tls(stream),
        }
    }
}

impl ServerStream {
    /// Connects to a server, by TLS if there are settings for it.
    ///
    /// # Errors
    /// With the error of the system, or the fault of the server's certificate.
    pub async fn connect(
        connector: &Connector,
        to: To<'_>,
        tls: Option<&TlsToServers>,
    ) -> io::Result<Self> {
        Ok(Carrier::connect(connector, to, tls, false).await?.into())
    }

    /// Connects to a FastCGI server, for a request.
    ///
    /// # Errors
    /// With the error of the system.
    pub(crate) async fn connect_by_fastcgi(
        connector: &Connector,
        to: To<'_>,
        terms: FastCgiTerms,
    ) -> io::Result<Self> {
        let below = ServerSocket::connect(connector, to).await?;
        Ok(Self::FastCgi(Box::new(FastCgiStream::new(below, to.name, terms))))
    }

    /// Whether it was made with these settings of TLS, for HTTP.
    pub(crate) fn is_of(&self, tls: Option<&TlsToServers>) -> bool {
        match self {
            Self::Plain(_) => tls.is_none(),
            Self::Tls(stream) => stream.is_of(tls),
            // A stream is never on the list of idle connections.
            Self::Http2(_) | Self::FastCgi(_) => false,
        }
    }

    /// The server took too long, on a connection that others may use, too.
    pub(crate) fn distrust(&self) {
        if let Self::Http2(stream) = self {
            stream.distrust();
        }
    }

    /// Receives into `room`; `Ok(0)` is the end of the stream.
    ///
    /// # Errors
    /// With the error of the system.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(socket) => socket.poll_read(cx, room),
            Self::Tls(stream) => stream.poll_read(cx, room),
            Self::Http2(stream) => stream.poll_read(cx, room),
            Self::FastCgi(stream) => stream.poll_read(cx, room),
        }
    }

    /// Sends from `bytes`. While it is pending, it is to be called again with bytes that begin like these.
    ///
    /// # Errors
    /// With the error of the system.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(socket) => socket.poll_write(cx, bytes),
            Self::Tls(stream) => stream.poll_write(cx, bytes),
            Self::Http2(stream) => stream.poll_write(cx, bytes),
            Self::FastCgi(stream) => stream.poll_write(cx, bytes),
        }
    }

    /// Ends the sending direction.
    ///
    /// # Errors
    /// With the error of the system.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(socket) => socket.poll_shutdown(cx),
            Self::Tls(stream) => stream.poll_shutdown(cx),
            Self::Http2(stream) => stream.poll_shutdown(cx),
            // A request shows its end itself.
            Self::FastCgi(_) => Poll::Ready(Ok(())),
        }
    }

    /// Whether an idle connection is still good: neither bytes nor its end have arrived. This asks only what the event loop
    /// and the ring know already, so it costs no system call while nothing has happened.
    pub(crate) fn is_silent(&mut self) -> bool {
        match self {
            Self::Plain(socket) => socket.is_silent(),
            Self::FastCgi(stream) => stream.is_quiet(),
            Self::Tls(stream) => stream.is_silent(),
            other => {
                let mut cx = Context::from_waker(Waker::noop());
                other.poll_read(&mut cx, &mut [0; 1]).is_pending()
            }
        }
    }

    /// Leaves the ring for good, because a tunnel needs readiness: see [`ServerSocket`].
    pub(crate) fn become_tunnel(&mut self) {
        match self {
            Self::Plain(socket) => socket.become_tunnel(),
            Self::Tls(stream) => stream.become_tunnel(),
            Self::Http2(_) | Self::FastCgi(_) => {}
        }
    }

    /// The connection will end with a reset, which leaves no port of this machine behind (RFC 9293 section 3.6.1).
    pub(crate) fn reset_at_end(&self) {
        match self {
            Self::Plain(socket) => socket.reset_at_end(),
            Self::Tls(stream) => stream.reset_at_end(),
            Self::FastCgi(stream) => stream.reset_at_end(),
            // Others use its connection.
            Self::Http2(_) => {}
        }
    }

    /// Sends all of `bytes`.
    ///
    /// # Errors
    /// With the error of the system.
    pub(crate) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match poll_fn(|cx| self.poll_write(cx, rest)).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                n => rest = rest.get(n..).unwrap_or_default(),
            }
        }
        Ok(())
    }

    /// Fills `room`.
    ///
    /// # Errors
    /// With the error of the system, or when the stream ends before.
    pub(crate) async fn read_exact(&mut self, mut room: &mut [u8]) -> io::Result<()> {
        while !room.is_empty() {
            match poll_fn(|cx| self.poll_read(cx, room)).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => room = room.get_mut(n..).unwrap_or_default(),
            }
        }
        Ok(())
    }
}
