//! A keep-alive connection to the attached server.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use crate::answer::{Answer, Asked};
use crate::gather::{Ask, AskError};

/// The server. It is asked one request at a time; a connection is made when there is none.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    timeout: Duration,
    connection: Option<TcpStream>,
}

impl Server {
    /// A server that listens on `address`. If that is the unspecified address, loopback is used.
    pub fn new(address: SocketAddr, timeout: Duration) -> Self {
        let ip = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        Self { address: SocketAddr::new(ip, address.port()), timeout, connection: None }
    }

    /// Whether it accepts a connection.
    ///
    /// # Errors
    /// When it does not.
    pub fn reach(&mut self) -> io::Result<()> {
        let stream = TcpStream::connect_timeout(&self.address, self.timeout)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.timeout))?;
        stream.set_write_timeout(Some(self.timeout))?;
        self.connection = Some(stream);
        Ok(())
    }

    fn exchange(&mut self, asked: Asked, request: &str) -> Result<Answer, AskError> {
        if self.connection.is_none() {
            self.reach()?;
        }
        // Put back only after a whole answer on a connection that goes on.
        let mut stream =
            self.connection.take().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
        stream.write_all(request.as_bytes())?;
        let mut input = Vec::new();
        loop {
            if let Some(answer) = Answer::read(&input, asked)? {
                if answer.len() == input.len() && !closes(&answer) {
                    self.connection = Some(stream);
                }
                return Ok(answer);
            }
            let mut buffer = [0; 4096];
            match stream.read(&mut buffer)? {
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                count => input.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            }
        }
    }
}

impl Ask for Server {
    /// Servers close connections that were idle, or after a number of requests, and may say so in an answer.
    /// Then the request is sent again on a new connection.
    fn ask(&mut self, asked: Asked, request: &str) -> Result<Answer, AskError> {
        let fresh = self.connection.is_none();
        match self.exchange(asked, request) {
            Err(AskError::Unreachable(_)) if !fresh => self.exchange(asked, request),
            Ok(answer) if !fresh && closes(&answer) => self.exchange(asked, request),
            outcome => outcome,
        }
    }
}

fn closes(answer: &Answer) -> bool {
    answer.values("connection").any(|value| value.eq_ignore_ascii_case(b"close"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn asks_again_where_the_server_has_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let mut served = 0;
            // One request a connection, the end announced, or not.
            for fields in ["", "Connection: close\r\n", "", ""] {
                let (mut peer, _) = listener.accept().unwrap();
                let mut buffer = [0; 1024];
                if peer.read(&mut buffer).unwrap() > 0 {
                    served += 1;
                    let text = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 1\r\n\r\nx");
                    peer.write_all(text.as_bytes()).unwrap();
                }
            }
            served
        });
        let mut asker = Server::new(address, Duration::from_secs(5));
        let request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        for _ in 0..4 {
            assert_eq!(asker.ask(Asked::Get, request).unwrap().body(), b"x");
        }
        assert_eq!(server.join().unwrap(), 4);
        assert!(matches!(asker.ask(Asked::Get, request), Err(AskError::Unreachable(_))));
    }
}
