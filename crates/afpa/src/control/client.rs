//! A small HTTP/1.1 client: one request, one answer, one connection.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};

/// A running process answers sooner; a stopped or hung one does not answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// More than any answer, less than harm.
const ANSWER_LIMIT: u64 = 64 << 20;

/// The control socket of a running afpa.
#[derive(Clone, Debug)]
pub struct Socket {
    path: PathBuf,
}

impl Socket {
    pub(super) fn new(path: &Path) -> Self {
        Socket { path: path.to_owned() }
    }

    /// Asks for `target` (path and query) and returns the content.
    ///
    /// # Errors
    /// When the process cannot be reached or does not answer in time; when the answer is not whole,
    /// or its status is not of class 2.
    pub fn get(&self, target: &str) -> anyhow::Result<String> {
        self.ask("GET", target, b"")
    }

    /// As [`get`](Self::get), for what changes something.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn post(&self, target: &str) -> anyhow::Result<String> {
        self.ask("POST", target, b"")
    }

    /// As [`post`](Self::post), with a content.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn post_content(&self, target: &str, content: &[u8]) -> anyhow::Result<String> {
        self.ask("POST", target, content)
    }

    fn ask(&self, method: &str, target: &str, content: &[u8]) -> anyhow::Result<String> {
        let shown = self.path.display();
        let answer =
            self.exchange(method, target, content).map_err(|error| explain(error, &shown))?;
        let answer = parse(&answer).with_context(|| format!("no valid answer from {shown}"))?;
        match answer.status {
            200..=299 => Ok(answer.content),
            status => bail!("the running afpa answered {status}: {}", answer.content.trim()),
        }
    }

    fn exchange(&self, method: &str, target: &str, content: &[u8]) -> io::Result<Vec<u8>> {
        let mut stream = UnixStream::connect(&self.path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let length = match method {
            "POST" => format!("Content-Length: {}\r\n", content.len()),
            _ => String::new(),
        };
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: localhost\r\n{length}Connection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(content)?;
        let mut answer = Vec::new();
        stream.take(ANSWER_LIMIT).read_to_end(&mut answer)?;
        Ok(answer)
    }
}

fn explain(error: io::Error, shown: &impl std::fmt::Display) -> anyhow::Error {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            "no afpa listens there; start one with: afpa serve DIR"
        }
        io::ErrorKind::PermissionDenied => "ask as the user that runs it, or with sudo",
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "it does not answer; is it stopped?",
        _ => "the connection broke",
    };
    anyhow::Error::new(error).context(format!("cannot ask {shown}: {remedy}"))
}

#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    content: String,
}

fn parse(bytes: &[u8]) -> anyhow::Result<Answer> {
    let text = str::from_utf8(bytes).context("it is not text")?;
    let (head, content) = text.split_once("\r\n\r\n").context("its head is not whole")?;
    let mut lines = head.split("\r\n");
    let status_line = lines.next().unwrap_or("");
    let status = status_line
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3)?.parse().ok())
        .with_context(|| format!("{status_line:?} is not a status line"))?;
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>())
    });
    match length {
        Some(Ok(length)) if length != content.len() => {
            bail!("{} of {length} bytes came", content.len())
        }
        Some(Err(_)) => bail!("its Content-Length is not a number"),
        _ => Ok(Answer { status, content: content.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufRead;
    use std::os::unix::net::UnixListener;
    use std::thread::JoinHandle;

    /// A server for one request; it returns the request's lines.
    fn serve(answer: &'static str) -> (tempfile::TempDir, Socket, JoinHandle<Vec<String>>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let reader = io::BufReader::new(stream.try_clone().unwrap());
            let head = reader.lines().map(Result::unwrap).take_while(|line| !line.is_empty());
            let head = head.collect();
            stream.write_all(answer.as_bytes()).unwrap();
            head
        });
        (folder, Socket::new(&path), server)
    }

    #[test]
    fn an_answer_is_returned() {
        let (_folder, socket, server) = serve(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        );
        assert_eq!(socket.get("/stats").unwrap(), "{}");
        let head = server.join().unwrap();
        assert_eq!(head, ["GET /stats HTTP/1.1", "Host: localhost", "Connection: close"]);
    }

    #[test]
    fn a_post_has_a_length() {
        let (_folder, socket, server) = serve("HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(socket.post("/purge?path=/a").unwrap(), "");
        assert!(server.join().unwrap().contains(&"Content-Length: 0".to_owned()));
    }

    #[test]
    fn a_refusal_is_an_error() {
        let (_folder, socket, server) =
            serve("HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n\r\nno such\r\n\n");
        let error = socket.get("/x").unwrap_err().to_string();
        assert_eq!(error, "the running afpa answered 404: no such");
        server.join().unwrap();
    }

    #[test]
    fn a_cut_answer_is_an_error() {
        let (_folder, socket, server) = serve("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}");
        let error = format!("{:#}", socket.get("/stats").unwrap_err());
        assert!(error.ends_with(": 2 of 9 bytes came"), "{error}");
        server.join().unwrap();
        for bytes in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 2\r\n\r\n", "\u{e9}\r\n\r\n"] {
            assert!(parse(bytes.as_bytes()).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn nobody_there_says_how_to_start_one() {
        let error = Socket::new(Path::new("/nowhere/1.sock")).get("/stats").unwrap_err();
        let text = format!("{error:#}");
        let expected =
            "cannot ask /nowhere/1.sock: no afpa listens there; start one with: afpa serve DIR: ";
        assert!(text.starts_with(expected), "{text}");
    }
}
