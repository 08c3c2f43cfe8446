//! A keep-alive client that keeps every byte.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// One connection.
pub struct Client {
    pub stream: TcpStream,
    rest: Vec<u8>,
}

/// One response, as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Reply {
    /// Did the kernel answer? Pinned samples say so in their Server field.
    pub fn is_from_kernel(&self) -> bool {
        self.head.contains("Server: afpa-kernel\r\n")
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        let stream =
            TcpStream::connect_timeout(&address, Duration::from_secs(20)).expect("connected");
        stream.set_nodelay(true).expect("no delay");
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
        // The handshake's last segment is on its way: let the server's side be established.
        std::thread::sleep(Duration::from_millis(5));
        Self { stream, rest: Vec::new() }
    }

    pub fn get(&mut self, path: &str) -> Reply {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: server\r\n\r\n"))
    }

    pub fn ask(&mut self, request: &str) -> Reply {
        self.send(request.as_bytes());
        self.read(request.starts_with("HEAD"))
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("sent");
    }

    /// The next response; `to_head`: without a body.
    pub fn read(&mut self, to_head: bool) -> Reply {
        let end = loop {
            if let Some(at) = self.rest.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            self.more();
        };
        let head = String::from_utf8(self.rest.drain(..end).collect()).expect("ASCII");
        let status = head.get(9..12).and_then(|digits| digits.parse().ok()).expect("a status");
        let mut reply = Reply { status, head, body: Vec::new() };
        if !to_head && status != 304 && status != 204 {
            let length: usize =
                reply.field("Content-Length").expect("a length").parse().expect("a number");
            while self.rest.len() < length {
                self.more();
            }
            reply.body = self.rest.drain(..length).collect();
        }
        reply
    }

    fn more(&mut self) {
        let mut buffer = [0; 65536];
        let read = self.stream.read(&mut buffer).expect("more bytes in time");
        assert_ne!(read, 0, "connection ended; {:?} was left", String::from_utf8_lossy(&self.rest));
        self.rest.extend_from_slice(&buffer[..read]);
    }

    /// Nothing more arrives for a while.
    pub fn assert_quiet(&mut self) {
        self.stream.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
        let mut byte = [0];
        let result = self.stream.read(&mut byte);
        assert!(result.is_err() && self.rest.is_empty(), "stray bytes: {result:?} {:?}", self.rest);
        self.stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
    }
}
