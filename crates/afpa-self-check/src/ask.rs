//! One question to the server, on a connection of its own.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use afpa_bpf::Sockets;

/// How long the server may take for each step.
const TIMEOUT: Duration = Duration::from_secs(2);
/// No answer that is compared is as long.
const LONGEST: usize = 1 << 17;

/// The server's own answer to this request.
pub(crate) fn ask(sockets: &Sockets, server: SocketAddr, request: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = sockets.connect_to_user_mode(server, TIMEOUT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(request)?;
    let answer = read_answer(&mut stream, request.starts_with(b"HEAD "))?;
    match says_nothing(&answer) {
        true => Err(io::Error::other("the server did not say what it has")),
        false => Ok(answer),
    }
}

/// Whether the server closed the connection without a word, as it does with clients that it does not let in, or asks
/// to be asked later (RFC 6585, section 4; RFC 9110, 15.6.4): then nothing is known of the object.
fn says_nothing(answer: &[u8]) -> bool {
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut fields);
    let _whole_or_not = response.parse(answer);
    let later =
        || response.headers.iter().any(|field| field.name.eq_ignore_ascii_case("Retry-After"));
    answer.is_empty() || response.code == Some(429) || (response.code == Some(503) && later())
}

/// Head and content of one response.
fn read_answer(stream: &mut impl Read, head_only: bool) -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    loop {
        if let Some(length) = answer_length(&answer, head_only)?
            && answer.len() >= length
        {
            return Ok(answer);
        }
        match stream.read(&mut piece)? {
            0 => return Ok(answer),
            count => answer.extend_from_slice(&piece[..count]),
        }
        if answer.len() > LONGEST {
            return Ok(answer);
        }
    }
}

/// Bytes of the whole response; `None`: its head is not whole, or it ends with its connection.
fn answer_length(answer: &[u8], head_only: bool) -> io::Result<Option<usize>> {
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut fields);
    let parsed = response.parse(answer);
    let parsed = parsed.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
    let httparse::Status::Complete(head) = parsed else { return Ok(None) };
    if head_only || matches!(response.code, Some(204 | 304)) {
        return Ok(Some(head));
    }
    let length =
        response.headers.iter().find(|field| field.name.eq_ignore_ascii_case("Content-Length"));
    let length = length.and_then(|field| std::str::from_utf8(field.value).ok()?.parse().ok());
    Ok(length.map(|length: usize| head.saturating_add(length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], head_only: bool) -> Vec<u8> {
        read_answer(&mut &bytes[..], head_only).unwrap()
    }

    #[test]
    fn an_answer_ends_where_its_length_says() {
        let ok = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
        assert_eq!(read(&[&ok[..], b"hello"].concat(), false)[ok.len()..], *b"hello"[..5].as_ref());
        assert_eq!(answer_length(ok, false).unwrap(), Some(ok.len() + 2));
        assert_eq!(answer_length(ok, true).unwrap(), Some(ok.len()));
        assert_eq!(answer_length(&ok[..20], false).unwrap(), None);
        let unmodified = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n";
        assert_eq!(answer_length(unmodified, false).unwrap(), Some(unmodified.len()));
    }

    #[test]
    fn without_a_length_it_ends_with_its_connection() {
        let ok = b"HTTP/1.1 200 OK\r\n\r\nhello";
        assert_eq!(read(ok, false), ok);
    }

    #[test]
    fn who_is_not_let_in_or_sent_away_for_a_while_learns_nothing() {
        assert!(says_nothing(b""));
        assert!(says_nothing(b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"));
        assert!(says_nothing(b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n\r\n"));
        assert!(!says_nothing(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"));
        assert!(!says_nothing(b"HTTP/1.1 200 OK\r\nRetry-After: 1\r\n\r\n"));
        assert!(!says_nothing(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"));
    }

    #[test]
    fn what_is_no_response_is_an_error() {
        assert!(read_answer(&mut &b"SSH-2.0\r\n\r\n"[..], false).is_err());
    }
}
