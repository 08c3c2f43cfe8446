//! A connection to a server, of either family.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::http2::Http2Stream;
use super::tls::{TlsStream, TlsToServers};
use crate::select::Address;

/// A byte stream to a server.
#[derive(Debug)]
pub enum ServerStream {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a unix socket.
    Unix(UnixStream),
    /// TLS over one of them.
    Tls(Box<TlsStream>),
    /// A stream of a connection of HTTP/2, in the words of HTTP/1.1.
    Http2(Box<Http2Stream>),
}

impl ServerStream {
    /// Connects to the server that logs call `name`, by TLS if there are settings for it.
    ///
    /// # Errors
    /// What the system says, or what is wrong with the server's certificate.
    pub async fn connect(
        address: &Address,
        name: &str,
        tls: Option<&TlsToServers>,
    ) -> io::Result<Self> {
        let below = Self::connect_plainly(address).await?;
        match tls {
            None => Ok(below),
            Some(tls) => {
                let connecting = Box::pin(TlsStream::connect(below, tls, (name, address), false));
                Ok(Self::Tls(Box::new(connecting.await?)))
            }
        }
    }

    /// Whether it was made with these settings of TLS.
    pub(crate) fn is_of(&self, tls: Option<&TlsToServers>) -> bool {
        match self {
            Self::Tcp(_) | Self::Unix(_) => tls.is_none(),
            Self::Tls(stream) => stream.is_of(tls),
            // It is never on the list of those that wait for one request after the other.
            Self::Http2(_) => false,
        }
    }

    pub(super) async fn connect_plainly(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                // A request is written as a whole: there is nothing to wait for.
                stream.set_nodelay(true)?;
                Ok(Self::Tcp(stream))
            }
            Address::Unix(path) => UnixStream::connect(path).await.map(Self::Unix),
        }
    }

    /// Receives into `room`; `Ok(0)` is the end of the stream.
    ///
    /// # Errors
    /// What the system says.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut room = match self {
            Self::Tls(stream) => return stream.poll_read(cx, room),
            Self::Http2(stream) => return stream.poll_read(cx, room),
            _ => ReadBuf::new(room),
        };
        ready!(match self {
            Self::Tls(_) | Self::Http2(_) => Poll::Ready(Ok(())),
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, &mut room),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, &mut room),
        })?;
        Poll::Ready(Ok(room.filled().len()))
    }

    /// Sends from `bytes`.
    ///
    /// # Errors
    /// What the system says.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Tls(stream) => stream.poll_write(cx, bytes),
            Self::Http2(stream) => stream.poll_write(cx, bytes),
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    /// Ends the sending direction.
    ///
    /// # Errors
    /// What the system says.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tls(stream) => stream.poll_shutdown(cx),
            Self::Http2(stream) => stream.poll_shutdown(cx),
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    /// Sends all of `bytes`.
    ///
    /// # Errors
    /// What the system says.
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
    /// What the system says, or that the stream ends before.
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
