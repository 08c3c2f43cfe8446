//! One request over a connection of its own, to see whether a server is ready and what it has.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);

/// The content of a response with status 200. The connection is closed after it.
///
/// # Errors
///
/// When the server does not answer, or otherwise, or not in time.
pub fn fetch(to: SocketAddr, path: &str) -> io::Result<Vec<u8>> {
    ask(&mut connect(to)?, &to.to_string(), path)
}

/// The same, for the head alone: whether it comes, with status 200.
///
/// # Errors
///
/// As [`fetch`].
pub fn fetch_head(to: SocketAddr, path: &str) -> io::Result<()> {
    let mut stream = connect(to)?;
    send(&mut stream, "HEAD", &to.to_string(), path)?;
    receive(&mut stream, |received| Ok(head(received)?.map(|_| ())))
}

fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Asks for a path over a connection that stays open: the content of a response with status 200.
///
/// # Errors
///
/// As [`fetch`].
pub fn ask(stream: &mut TcpStream, host: &str, path: &str) -> io::Result<Vec<u8>> {
    send(stream, "GET", host, path)?;
    receive(stream, |received| {
        let whole = head(received)?.filter(|(head, length)| received.len() >= head + length);
        Ok(whole.map(|(head, _)| received[head..].to_vec()))
    })
}

fn send(stream: &mut TcpStream, method: &str, host: &str, path: &str) -> io::Result<()> {
    stream.write_all(format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
}

/// Reads until `done` finds what it looks for.
fn receive<T>(
    stream: &mut TcpStream,
    done: impl Fn(&[u8]) -> io::Result<Option<T>>,
) -> io::Result<T> {
    let mut received = Vec::new();
    let mut piece = [0; 16384];
    loop {
        match stream.read(&mut piece)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => received.extend_from_slice(&piece[..count]),
        }
        if let Some(found) = done(&received)? {
            return Ok(found);
        }
    }
}

/// The length of the head and of the content, once the head is complete.
fn head(received: &[u8]) -> io::Result<Option<(usize, usize)>> {
    let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&received[..end]);
    let mut lines = text.split("\r\n");
    let status = lines.next().unwrap_or_default();
    if !status.starts_with("HTTP/1.1 200") {
        return Err(io::Error::other(status.to_owned()));
    }
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let length = length.ok_or_else(|| io::Error::other("no Content-Length"))?;
    Ok(Some((end + 4, length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_told_from_content_and_a_wrong_status_from_both() {
        let whole = b"HTTP/1.1 200 OK\r\nA: b\r\ncontent-length: 3\r\n\r\nabc";
        assert_eq!(head(whole).unwrap(), Some((whole.len() - 3, 3)));
        assert_eq!(head(&whole[..20]).unwrap(), None);
        assert!(head(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").is_err());
        assert!(head(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
