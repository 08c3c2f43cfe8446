//! A connection that carries HTTP to a server: a socket, or TLS over it.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use super::connect::{Connector, To};
use super::socket::ServerSocket;
use super::tls::{TlsStream, TlsToServers};

/// The carrier of requests of HTTP/1.1, or of streams of HTTP/2.
#[derive(Debug)]
pub(crate) enum Carrier {
    /// Over TCP or a unix socket.
    Plain(ServerSocket),
    /// TLS over that.
    Tls(Box<TlsStream>),
}

impl Carrier {
    /// Connects to a server, by TLS if there are settings for it, and perhaps with an offer of HTTP/2.
    ///
    /// # Errors
    /// With the error of the system, or the fault of the server's certificate.
    pub(super) async fn connect(
        connector: &Connector,
        to: To<'_>,
        tls: Option<&TlsToServers>,
        offers_http2: bool,
    ) -> io::Result<Self> {
        let mut socket = ServerSocket::connect(connector, to).await?;
        let mut rest = to.preface;
        while !rest.is_empty() {
            match poll_fn(|cx| socket.poll_write(cx, rest)).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                n => rest = rest.get(n..).unwrap_or_default(),
            }
        }
        let Some(tls) = tls else { return Ok(Self::Plain(socket)) };
        let connecting = Box::pin(TlsStream::connect(socket, tls, to, offers_http2));
        Ok(Self::Tls(Box::new(connecting.await?)))
    }

    /// Whether HTTP/2 may be spoken: the server has chosen it, or there is no TLS in which it could choose.
    pub(super) fn may_speak_http2(&self) -> bool {
        match self {
            Self::Plain(_) => true,
            Self::Tls(stream) => stream.speaks_http2(),
        }
    }

    /// Receives into `room`; `Ok(0)` is the end of the stream.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        room: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(socket) => socket.poll_read(cx, room),
            Self::Tls(stream) => stream.poll_read(cx, room),
        }
    }

    /// Sends from `bytes`. While it is pending, it is to be called again with bytes that begin like these.
    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(socket) => socket.poll_write(cx, bytes),
            Self::Tls(stream) => stream.poll_write(cx, bytes),
        }
    }

    /// Ends the sending direction.
    pub(super) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(socket) => socket.poll_shutdown(cx),
            Self::Tls(stream) => stream.poll_shutdown(cx),
        }
    }
}
