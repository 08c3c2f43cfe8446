//! A raw HTTP/1 client: sends any bytes in any rhythm, reads strictly.

use std::{
    fmt,
    io::{self, Read, Write},
    net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::PathBuf,
    time::Duration,
};

use socket2::{Domain, Socket, Type};

use crate::response::{self, Asked, ReceiveError, Response, excerpt};

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A TCP port.
    Tcp(SocketAddr),
    /// A unix stream socket.
    Unix(PathBuf),
}

impl fmt::Display for Endpoint {
    /// As `--listen` takes it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(out, "{address}"),
            Self::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

/// Whether `::1` can be bound here.
pub fn has_ipv6_loopback() -> bool {
    TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok()
}

/// One connection. Reading and writing give up after ten seconds by default.
#[derive(Debug)]
pub struct Client {
    stream: Stream,
    received: Vec<u8>,
}

impl Client {
    /// Connects to `endpoint`.
    ///
    /// # Errors
    /// Those of connect(2).
    pub fn connect(endpoint: &Endpoint) -> io::Result<Self> {
        let stream = match endpoint {
            Endpoint::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, PATIENCE)?;
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
            Endpoint::Unix(path) => Stream::Unix(UnixStream::connect(path)?),
        };
        Self::over(stream)
    }

    /// Connects from the address `from`: to a server another loopback address is another client.
    ///
    /// # Errors
    /// Those of socket(2), bind(2) and connect(2).
    pub fn connect_from(from: IpAddr, to: SocketAddr) -> io::Result<Self> {
        Self::connect_within(PATIENCE, from, to)
    }

    /// The same, without waiting any longer than `patience` for the server to answer the SYN.
    ///
    /// # Errors
    /// Those of socket(2), bind(2) and connect(2).
    pub fn connect_within(patience: Duration, from: IpAddr, to: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
        socket.bind(&SocketAddr::new(from, 0).into())?;
        socket.connect_timeout(&to.into(), patience)?;
        Self::over(Stream::Tcp(socket.into()))
    }

    /// Connects with a receive buffer of about `bytes`, so that a sender soon meets a full window
    /// when this client does not read.
    ///
    /// # Errors
    /// Those of socket(2) and connect(2).
    pub fn connect_narrow(to: SocketAddr, bytes: usize) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
        socket.set_recv_buffer_size(bytes)?;
        socket.connect_timeout(&to.into(), PATIENCE)?;
        Self::over(Stream::Tcp(socket.into()))
    }

    /// Connects to `server`, which may be a bad network away: it waits twice as long.
    ///
    /// # Panics
    /// When the server takes no connection.
    #[track_caller]
    pub fn to(server: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&server, 2 * PATIENCE);
        Self::of(stream.unwrap_or_else(|error| panic!("connect {server}: {error}")))
    }

    /// Uses a connected socket, as [`Client::to`] does.
    ///
    /// # Panics
    /// When the socket takes no options.
    #[track_caller]
    pub fn of(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("no delay");
        let mut client = Self::over(Stream::Tcp(stream)).expect("time-outs");
        client.set_patience(2 * PATIENCE).expect("time-outs");
        client
    }

    fn over(stream: Stream) -> io::Result<Self> {
        let mut client = Self { stream, received: Vec::new() };
        client.set_patience(PATIENCE)?;
        Ok(client)
    }

    /// The socket of a connection over TCP.
    ///
    /// # Panics
    /// When it is one over a unix socket.
    #[track_caller]
    pub fn tcp(&self) -> &TcpStream {
        match &self.stream {
            Stream::Tcp(stream) => stream,
            Stream::Unix(_) => panic!("a unix socket"),
        }
    }

    /// How long a read or a write may stand still.
    ///
    /// # Errors
    /// Those of setsockopt(2).
    pub fn set_patience(&mut self, patience: Duration) -> io::Result<()> {
        match &self.stream {
            Stream::Tcp(stream) => {
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))
            }
            Stream::Unix(stream) => {
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))
            }
        }
    }

    /// Sends `bytes` in one write, as far as the socket takes them.
    ///
    /// # Errors
    /// Those of write(2): a server that has closed gives a broken pipe or a reset.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    /// Sends `bytes` in one write.
    ///
    /// # Panics
    /// When the server does not take them.
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.try_send(bytes).unwrap_or_else(|error| panic!("send {}: {error}", excerpt(bytes)));
    }

    /// Sends `bytes` in pieces of `size` bytes, each in a segment of its own, `pause` apart.
    ///
    /// # Errors
    /// As [`Client::try_send`].
    pub fn send_in_pieces(&mut self, bytes: &[u8], size: usize, pause: Duration) -> io::Result<()> {
        for piece in bytes.chunks(size) {
            self.try_send(piece)?;
            if !pause.is_zero() {
                std::thread::sleep(pause);
            }
        }
        Ok(())
    }

    /// Sends `bytes` with a cut after `at` bytes, and a pause there that lets the server see the
    /// first part alone.
    ///
    /// # Errors
    /// As [`Client::try_send`].
    pub fn send_split(&mut self, bytes: &[u8], at: usize) -> io::Result<()> {
        self.send_in_pieces(&bytes[..at], at.max(1), Duration::from_millis(1))?;
        self.try_send(&bytes[at..])
    }

    /// Says that no more will be sent.
    ///
    /// # Errors
    /// Those of shutdown(2).
    pub fn finish_sending(&mut self) -> io::Result<()> {
        match &self.stream {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
        }
    }

    /// Reads the next response.
    ///
    /// # Errors
    /// See [`ReceiveError`].
    pub fn try_receive(&mut self, asked: Asked) -> Result<Response, ReceiveError> {
        response::receive(&mut self.stream, &mut self.received, asked).map(|(response, _)| response)
    }

    /// Sends `request` and gives one response as it came, byte for byte.
    ///
    /// # Panics
    /// As [`Client::exchange`].
    #[track_caller]
    pub fn exchange_bytes(&mut self, request: impl AsRef<[u8]>) -> Vec<u8> {
        self.exchange_whole(request.as_ref()).1
    }

    /// Reads the next response to a request other than HEAD.
    ///
    /// # Panics
    /// When none comes.
    #[track_caller]
    pub fn receive(&mut self) -> Response {
        self.try_receive(Asked::Body).unwrap_or_else(|error| panic!("no response: {error}"))
    }

    /// Sends `request`, which may be any bytes, and reads one response.
    ///
    /// # Panics
    /// When the request cannot be sent or no response comes.
    #[track_caller]
    pub fn exchange(&mut self, request: impl AsRef<[u8]>) -> Response {
        self.exchange_whole(request.as_ref()).0
    }

    #[track_caller]
    fn exchange_whole(&mut self, request: &[u8]) -> (Response, Vec<u8>) {
        self.send(request);
        let asked = if request.starts_with(b"HEAD ") { Asked::Head } else { Asked::Body };
        response::receive(&mut self.stream, &mut self.received, asked)
            .unwrap_or_else(|error| panic!("no response to {}: {error}", excerpt(request)))
    }

    /// GET of `target` over HTTP/1.1.
    ///
    /// # Panics
    /// As [`Client::exchange`].
    #[track_caller]
    pub fn get(&mut self, target: &str) -> Response {
        self.get_with(target, "")
    }

    /// GET of `target` with more field lines, each ended by CRLF.
    ///
    /// # Panics
    /// As [`Client::exchange`].
    #[track_caller]
    pub fn get_with(&mut self, target: &str, lines: &str) -> Response {
        self.exchange(format!("GET {target} HTTP/1.1\r\nHost: test\r\n{lines}\r\n"))
    }

    /// HEAD of `target` with more field lines, each ended by CRLF.
    ///
    /// # Panics
    /// As [`Client::exchange`].
    #[track_caller]
    pub fn head_with(&mut self, target: &str, lines: &str) -> Response {
        self.exchange(format!("HEAD {target} HTTP/1.1\r\nHost: test\r\n{lines}\r\n"))
    }

    /// Reads raw bytes past the response parser.
    ///
    /// # Errors
    /// Those of read(2); a time-out is `WouldBlock`.
    pub fn read_raw(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.received.is_empty() {
            return self.stream.read(into);
        }
        let count = into.len().min(self.received.len());
        into[..count].copy_from_slice(&self.received[..count]);
        self.received.drain(..count);
        Ok(count)
    }

    /// Reads exactly so many bytes past the response parser.
    ///
    /// # Panics
    /// When they do not come.
    #[track_caller]
    pub fn take(&mut self, length: usize) -> Vec<u8> {
        let had = self.received.len().min(length);
        let mut bytes: Vec<u8> = self.received.drain(..had).collect();
        bytes.resize(length, 0);
        let result = self.stream.read_exact(&mut bytes[had..]);
        result.unwrap_or_else(|error| panic!("fewer than {length} bytes: {error}"));
        bytes
    }

    /// Says that no more will be sent; then the server closes without another byte.
    ///
    /// # Panics
    /// When it does not, or sends more.
    #[track_caller]
    pub fn end(mut self) {
        self.finish_sending().expect("shut down");
        let stray = self.take_all();
        assert!(stray.is_empty(), "stray bytes: {}", excerpt(&stray));
    }

    /// Reads all that comes until the server closes in an orderly way.
    ///
    /// # Panics
    /// When it resets the connection, or does not close.
    #[track_caller]
    pub fn take_all(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.received);
        let result = self.stream.read_to_end(&mut bytes);
        result.unwrap_or_else(|error| panic!("{error} after {}", excerpt(&bytes)));
        bytes
    }

    /// Asserts that nothing more arrives for a while.
    ///
    /// # Panics
    /// When something does, or the server closes.
    #[track_caller]
    pub fn assert_quiet(&mut self) {
        let before = self.tcp().read_timeout().expect("a time-out");
        self.tcp().set_read_timeout(Some(Duration::from_millis(100))).expect("a time-out");
        let got = self.read_raw(&mut [0]);
        assert!(got.is_err(), "stray bytes: {got:?}");
        self.tcp().set_read_timeout(before).expect("a time-out");
    }

    /// Reads all that comes until the server closes.
    ///
    /// # Errors
    /// Those of read(2), other than a reset, which ends the bytes as a close does.
    pub fn read_to_close(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = std::mem::take(&mut self.received);
        match self.stream.read_to_end(&mut bytes) {
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => Err(error),
            _ => Ok(bytes),
        }
    }

    /// Asserts that the server closes without another byte.
    ///
    /// # Panics
    /// When it does not, or sends more.
    #[track_caller]
    pub fn assert_closed(&mut self) {
        let left = self.read_to_close().unwrap_or_else(|error| panic!("still open: {error}"));
        assert!(left.is_empty(), "more after the last response: {}", excerpt(&left));
    }

    /// Asserts that the connection still answers, by getting `target` with 200.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn assert_open(&mut self, target: &str) {
        assert_eq!(self.get(target).status, 200, "the connection goes on");
    }

    /// Closes with a reset instead of an orderly end.
    ///
    /// # Errors
    /// Those of setsockopt(2).
    pub fn abort(self) -> io::Result<()> {
        match self.stream {
            Stream::Tcp(stream) => Socket::from(stream).set_linger(Some(Duration::ZERO)),
            Stream::Unix(_) => Ok(()),
        }
    }
}

/// How long a client waits by default.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(from),
            Self::Unix(stream) => stream.write(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers one connection with fixed bytes after having read `expect` bytes.
    fn canned(expect: usize, answer: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let address = listener.local_addr().expect("address");
        std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("accept");
            peer.read_exact(&mut vec![0; expect]).expect("the request");
            peer.write_all(answer).expect("the answer");
        });
        address
    }

    #[test]
    fn pipelined_responses_come_one_by_one() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\nb";
        let mut client = Client::connect(&Endpoint::Tcp(canned(4, answer))).expect("connect");
        client.send_in_pieces(b"abcd", 1, Duration::ZERO).expect("send");
        assert_eq!((client.receive().status, client.receive().text()), (200, "b"));
        client.assert_closed();
    }

    #[test]
    #[should_panic(expected = "more after the last response")]
    fn bytes_after_the_last_response_are_noticed() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab";
        let mut client = Client::connect(&Endpoint::Tcp(canned(1, answer))).expect("connect");
        client.send("x");
        client.receive();
        client.assert_closed();
    }

    #[test]
    fn a_silent_server_is_a_time_out_not_a_hang() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let endpoint = Endpoint::Tcp(listener.local_addr().expect("address"));
        let mut client = Client::connect(&endpoint).expect("connect");
        client.set_patience(Duration::from_millis(30)).expect("time-out");
        assert!(matches!(client.try_receive(Asked::Body), Err(ReceiveError::TimedOut(_))));
    }
}
