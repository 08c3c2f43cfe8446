//! An ordinary connection that keeps every byte, with a deadline for each response.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const DATE: &[u8] = b"\r\nDate: ";
const DATE_LENGTH: usize = 29;
const PATIENCE: Duration = Duration::from_secs(20);

/// One connection.
pub struct Client {
    /// The socket.
    pub stream: TcpStream,
    rest: Vec<u8>,
}

/// One response, as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Status code.
    pub status: u16,
    /// Status line to blank line.
    pub head: String,
    /// Content, transfer coding removed.
    pub body: Vec<u8>,
}

impl Reply {
    /// Did the kernel answer? [`Sample`](super::Sample)s say so in their Server field.
    pub fn is_from_kernel(&self) -> bool {
        self.head.contains("Server: afpa-kernel\r\n")
    }

    /// The value of a field that stands in the head as `name: value`.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

impl Client {
    /// Connect from the current namespace.
    pub fn connect(server: SocketAddr) -> Self {
        Self::over(TcpStream::connect_timeout(&server, PATIENCE).expect("connected"))
    }

    /// Use a connected socket.
    pub fn over(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("no delay");
        Self { stream, rest: Vec::new() }
    }

    /// GET, and the response.
    pub fn get(&mut self, path: &str) -> Reply {
        self.send(get(path));
        self.read(false)
    }

    /// Write all of it.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("sent");
    }

    /// The next response that is not an interim one; `to_head`: it has no content.
    pub fn read(&mut self, to_head: bool) -> Reply {
        let end = loop {
            if let Some(at) = find(&self.rest, b"\r\n\r\n") {
                break at + 4;
            }
            assert!(self.more(), "connection ended within a head");
        };
        let head = String::from_utf8(self.rest.drain(..end).collect()).expect("ASCII");
        let status = head.get(9..12).and_then(|digits| digits.parse().ok());
        let status: u16 = status.unwrap_or_else(|| panic!("no status in {head:?}"));
        let mut reply = Reply { status, head, body: Vec::new() };
        if to_head || matches!(status, 100..200 | 204 | 304) {
            return reply;
        }
        reply.body = match reply.field("Content-Length").map(|value| value.parse()) {
            Some(length) => self.take(length.expect("a number")),
            None if reply.field("Transfer-Encoding") == Some("chunked") => self.take_chunks(),
            None => self.take_all(),
        };
        reply
    }

    /// Exactly so many bytes.
    pub fn take(&mut self, length: usize) -> Vec<u8> {
        while self.rest.len() < length {
            assert!(self.more(), "connection ended after {} of {length} bytes", self.rest.len());
        }
        self.rest.drain(..length).collect()
    }

    /// Everything until the server ends the connection.
    pub fn take_all(&mut self) -> Vec<u8> {
        while self.more() {}
        std::mem::take(&mut self.rest)
    }

    fn take_chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let line = self.take_line();
            let size = usize::from_str_radix(line.trim(), 16).expect("a chunk size");
            body.extend(self.take(size));
            assert_eq!(self.take_line(), "\r\n");
            if size == 0 {
                return body;
            }
        }
    }

    fn take_line(&mut self) -> String {
        let end = loop {
            if let Some(at) = find(&self.rest, b"\r\n") {
                break at + 2;
            }
            assert!(self.more(), "connection ended within a line");
        };
        String::from_utf8(self.rest.drain(..end).collect()).expect("ASCII")
    }

    /// Our FIN; then nothing more may come but the server's.
    pub fn end(mut self) {
        self.stream.shutdown(Shutdown::Write).expect("shut down");
        let stray = self.take_all();
        assert!(stray.is_empty(), "stray bytes: {:?}", String::from_utf8_lossy(&stray));
    }

    /// False: the server has ended the connection.
    fn more(&mut self) -> bool {
        let mut buffer = [0; 65536];
        let length = read_by(&mut self.stream, &mut buffer, Instant::now() + PATIENCE);
        let length = length.unwrap_or_else(|error| {
            panic!("{error}; had {:?}", String::from_utf8_lossy(&self.rest))
        });
        self.rest.extend_from_slice(&buffer[..length]);
        length > 0
    }
}

/// A GET of the shortest kind.
pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: server\r\n\r\n")
}

/// Read once, but no later than this.
pub(crate) fn read_by(
    stream: &mut TcpStream,
    into: &mut [u8],
    deadline: Instant,
) -> std::io::Result<usize> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(std::io::Error::new(ErrorKind::TimedOut, "nothing came in time"));
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(into) {
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            result => return result,
        }
    }
}

/// A request that stores `content` under `/upload/`.
pub fn put(name: &str, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let head =
        format!("PUT /upload/{name} HTTP/1.1\r\nHost: server\r\nContent-Length: {length}\r\n\r\n");
    [head.as_bytes(), content].concat()
}

/// The response with its Date made blank; `Err` says what is wrong with the Date.
pub fn blank_date(response: &[u8]) -> Result<Vec<u8>, String> {
    let mut blank = response.to_vec();
    let head = find(&blank, b"\r\n\r\n").ok_or("no whole head")?;
    let at = find(&blank[..head], DATE).ok_or("no Date")? + DATE.len();
    let date = blank.get_mut(at..at + DATE_LENGTH).ok_or("a short Date")?;
    let text = String::from_utf8_lossy(date).into_owned();
    let value = httpdate::parse_http_date(&text).map_err(|_| format!("Date: {text}"))?;
    let now = std::time::SystemTime::now();
    let off = now.duration_since(value).unwrap_or_else(|ahead| ahead.duration());
    if off > Duration::from_secs(300) {
        return Err(format!("Date: {text} is {off:?} off"));
    }
    date.fill(b'_');
    Ok(blank)
}

pub(crate) fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
