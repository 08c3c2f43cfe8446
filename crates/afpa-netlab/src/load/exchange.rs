//! One exchange over an ordinary socket, which learns the form of a response before responses are counted.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::{LoadOptions, Target};

const PATIENCE: Duration = Duration::from_secs(5);
/// Larger responses are no work for a generator that acknowledges in softirq.
const LARGEST: usize = 64 << 20;

/// The field in a lower-case head.
const AGE: &[u8] = b"\r\nage: ";

/// A target with its request's bytes and the length of its response, head and body.
#[derive(Debug, Clone)]
pub(crate) struct Learned {
    pub(crate) target: Target,
    pub(crate) request: Vec<u8>,
    pub(crate) response_length: usize,
    /// Where the digits of an Age may differ, if they may.
    pub(crate) age: Option<Range<usize>>,
}

/// Fetches every target once.
pub(crate) fn learn(options: &LoadOptions) -> Result<Vec<Learned>> {
    let learn_one = |target: &Target| {
        let request = target.request(&options.to.to_string());
        let mut stream = TcpStream::connect_timeout(&options.to, PATIENCE)
            .with_context(|| format!("cannot connect to {}", options.to))?;
        let response = exchange(&mut stream, &request, target)?;
        let age = if options.ages { age(&response) } else { None };
        Ok(Learned { target: target.clone(), request, response_length: response.len(), age })
    };
    options.targets.iter().map(learn_one).collect()
}

/// Sends a request and reads the response to its end; the status must be the target's.
pub(crate) fn exchange(stream: &mut TcpStream, request: &[u8], target: &Target) -> Result<Vec<u8>> {
    stream.write_all(request)?;
    receive(stream, target).with_context(|| format!("{} {}", target.method, target.path))
}

/// Reads one response to its end.
pub(crate) fn receive(stream: &mut TcpStream, target: &Target) -> Result<Vec<u8>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut response = Vec::new();
    let mut buffer = [0; 65536];
    let length = loop {
        if let Some(length) = response_length(&response, target.method == "HEAD")? {
            break length;
        }
        ensure!(response.len() < LARGEST, "the response is larger than {LARGEST} bytes");
        let count = stream.read(&mut buffer).context("no complete response")?;
        ensure!(count > 0, "the connection was closed before the response was complete");
        response.extend_from_slice(&buffer[..count]);
    };
    ensure!(response.len() == length, "{} bytes too many", response.len() - length);
    let status = format!("HTTP/1.1 {} ", target.status);
    ensure!(
        response.starts_with(status.as_bytes()),
        "wanted {status}, got {}",
        String::from_utf8_lossy(&response[..response.len().min(40)])
    );
    Ok(response)
}

/// Length of a response with its head, once `bytes` holds all of it; `None`: more are needed.
/// Knows Content-Length, chunked, and responses without a body (RFC 9112 section 6.3).
///
/// # Errors
///
/// When the head does not say where the response ends, for example because only the close of the connection would.
pub fn response_length(bytes: &[u8], to_head: bool) -> Result<Option<usize>> {
    let Some(head) = find(bytes, b"\r\n\r\n").map(|at| at + 4) else { return Ok(None) };
    let text = std::str::from_utf8(&bytes[..head]).context("the head is not text")?;
    let status = text.split(' ').nth(1).unwrap_or("");
    if to_head || status == "304" || status == "204" {
        return Ok(Some(head));
    }
    let field = |name: &str| {
        text.lines().skip(1).filter_map(|line| line.split_once(':')).find_map(|(key, value)| {
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_ascii_lowercase())
        })
    };
    if field("transfer-encoding").as_deref() == Some("chunked") {
        return Ok(chunked_length(&bytes[head..])?.map(|body| head + body));
    }
    let Some(length) = field("content-length") else {
        bail!("the response has neither Content-Length nor chunks");
    };
    let body: usize = length.parse().context("Content-Length")?;
    let end = head.checked_add(body).context("Content-Length")?;
    Ok((bytes.len() >= end).then_some(end))
}

fn chunked_length(body: &[u8]) -> Result<Option<usize>> {
    let mut at = 0_usize;
    loop {
        let Some(rest) = body.get(at..) else { return Ok(None) };
        let Some(line) = find(rest, b"\r\n") else { return Ok(None) };
        let digits = std::str::from_utf8(&rest[..line])?.split(';').next().unwrap_or("");
        let size = usize::from_str_radix(digits.trim(), 16).context("chunk size")?;
        if size == 0 {
            // Trailer fields, if any, end with an empty line as well.
            return Ok(find(&rest[line..], b"\r\n\r\n").map(|end| at + line + end + 4));
        }
        let chunk = size.checked_add(line + 4).and_then(|chunk| at.checked_add(chunk));
        at = chunk.context("chunk size")?;
    }
}

/// Where the digits of the response's Age are. The program reads them at the same place of each response, so
/// a head in which anything before them changes its length is wrong.
fn age(response: &[u8]) -> Option<Range<usize>> {
    let head = &response[..find(response, b"\r\n\r\n")?];
    let begin = find(&head.to_ascii_lowercase(), AGE)? + AGE.len();
    let digits = response[begin..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    (digits > 0).then_some(begin..begin + digits)
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The length is known as soon as all bytes are there, and not before.
    fn assert_complete_at_its_end(response: &[u8], to_head: bool) {
        for length in 0..response.len() {
            assert_eq!(response_length(&response[..length], to_head).unwrap(), None, "{length}");
        }
        assert_eq!(response_length(response, to_head).unwrap(), Some(response.len()));
    }

    #[test]
    fn an_age_is_found_in_the_head_only() {
        let at = |response: &str| age(response.as_bytes()).map(|age| response[age].to_owned());
        assert_eq!(at("HTTP/1.1 200 OK\r\nage: 12\r\nX: 3\r\n\r\n"), Some("12".into()));
        assert_eq!(at("HTTP/1.1 200 OK\r\nX: 3\r\nAge: 0\r\n\r\n"), Some("0".into()));
        assert_eq!(at("HTTP/1.1 200 OK\r\nX: 3\r\n\r\n\r\nAge: 0\r\n\r\n"), None);
        assert_eq!(at("HTTP/1.1 200 OK\r\nAge: soon\r\n\r\n"), None);
    }

    #[test]
    fn every_framing_is_known() {
        assert_complete_at_its_end(b"HTTP/1.1 200 OK\r\ncontent-LENGTH: 3\r\n\r\nabc", false);
        assert_complete_at_its_end(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", true);
        assert_complete_at_its_end(b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n", false);
        assert_complete_at_its_end(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: v\r\n\r\n",
            false,
        );
    }

    #[test]
    fn a_response_that_only_closing_ends_is_refused() {
        assert!(response_length(b"HTTP/1.1 200 OK\r\n\r\n", false).is_err());
        let huge = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", usize::MAX);
        assert!(response_length(huge.as_bytes(), false).is_err());
        let chunk =
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n", usize::MAX);
        assert!(response_length(chunk.as_bytes(), false).is_err());
    }
}
