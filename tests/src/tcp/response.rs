//! Bytes of responses: read by a deadline, their Date made blank.

use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const DATE: &[u8] = b"\r\nDate: ";
const DATE_LENGTH: usize = 29;

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
