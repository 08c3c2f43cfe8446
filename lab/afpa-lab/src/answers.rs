//! Checks that every server gives the right answers, before its speed is measured.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use afpa_generator::Object;
use anyhow::{Context, Result, ensure};

const PATIENCE: Duration = Duration::from_secs(10);
const FOUND: &[u8] = b"HTTP/1.1 200 ";

/// Asks a server for a file, `times` times. Returns the length of the last answer's head.
///
/// The exact length of the head is subtracted from the bytes that a client counted, so that a server gains
/// nothing from long header fields.
///
/// # Errors
///
/// When the server cannot be asked, or an answer is wrong in status, length or content.
pub(crate) fn head_length(
    server: &str,
    to: SocketAddr,
    object: &Object,
    times: u32,
) -> Result<u64> {
    let mut length = 0;
    for _ in 0..times {
        let (head, body) = get(to, &object.path)
            .with_context(|| format!("{server} did not answer {}", object.path))?;
        verify(server, object, &head, &body)?;
        length = head.len() as u64;
    }
    Ok(length)
}

/// Holds an answer to what must come back.
fn verify(server: &str, object: &Object, head: &[u8], body: &[u8]) -> Result<()> {
    let (path, wanted) = (&object.path, object.body.length());
    let status = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let status = String::from_utf8_lossy(status);
    ensure!(head.starts_with(FOUND), "{server} answered {path} with: {status}");
    ensure!(
        body.len() as u64 == wanted,
        "{server} sent {} bytes for {path} of {wanted}",
        body.len()
    );
    ensure!(object.body.check(0, body), "{server} sent wrong bytes for {path}");
    Ok(())
}

/// Head (blank line included) and body of one answer; the connection is closed after it.
fn get(to: SocketAddr, path: &str) -> Result<(Vec<u8>, Vec<u8>)> {
    let mut connection = TcpStream::connect_timeout(&to, PATIENCE)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes())?;
    let mut head = Vec::new();
    connection.read_to_end(&mut head)?;
    let blank = head.windows(4).position(|four| four == b"\r\n\r\n");
    let body = head.split_off(blank.context("it has no end of its head")? + 4);
    Ok((head, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 512\r\n\r\n";

    fn object() -> (Object, Vec<u8>) {
        let (object, mut bytes) = (Object::new("/small.html", 512), Vec::new());
        object.body.write(&mut bytes).unwrap();
        (object, bytes)
    }

    #[test]
    fn a_right_answer_passes() {
        let (object, bytes) = object();
        verify("nginx", &object, HEAD, &bytes).unwrap();
    }

    #[test]
    fn wrong_status_length_and_bytes_do_not() {
        let (object, bytes) = object();
        let mut changed = bytes.clone();
        changed[511] ^= 1;
        let missing = b"HTTP/1.1 404 Not Found\r\n\r\n".as_slice();
        let wrong =
            [(missing, &bytes[..], "404"), (HEAD, &bytes[..511], "511"), (HEAD, &changed, "wrong")];
        for (head, body, word) in wrong {
            let error = verify("nginx", &object, head, body).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
