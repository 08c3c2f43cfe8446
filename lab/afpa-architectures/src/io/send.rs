//! Sending an answer: from memory or from a file, together or apart, all of it or what fits.

use std::io::{self, IoSlice, Write};
use std::net::TcpStream;

use rustix::fs::sendfile;
use rustix::net::SendFlags;

use crate::Body;

/// Most bytes of a file that are asked for at once.
const CHUNK: u64 = 2 << 20;

/// Sends head and body over a stream whose writes block.
pub(super) fn all(stream: &TcpStream, head: &[u8], body: &Body, gather: bool) -> io::Result<()> {
    let mut sending = Sending::default();
    match sending.some(stream, head, body, gather)? {
        Progress::Done => Ok(()),
        Progress::Blocked => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// How much of an answer has been sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sending {
    head: usize,
    body: u64,
}

/// Whether there is more to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The whole answer was sent.
    Done,
    /// The socket takes no more for now.
    Blocked,
}

impl Sending {
    /// Sends what is left, as far as the socket takes it. The same `head` and `body` each time.
    pub(super) fn some(
        &mut self,
        stream: &TcpStream,
        head: &[u8],
        body: &Body,
        gather: bool,
    ) -> io::Result<Progress> {
        loop {
            match self.once(stream, head, body, gather) {
                Ok(true) => return Ok(Progress::Done),
                Ok(false) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Progress::Blocked);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// One system call; whether it was the last one.
    fn once(
        &mut self,
        mut stream: &TcpStream,
        head: &[u8],
        body: &Body,
        gather: bool,
    ) -> io::Result<bool> {
        let rest = head.get(self.head..).unwrap_or_default();
        match body {
            Body::None => self.sent(stream.write(rest)?, head.len())?,
            Body::Memory(bytes) => {
                let from = usize::try_from(self.body).unwrap_or(usize::MAX);
                let bytes = bytes.get(from..).unwrap_or_default();
                let count = match (rest.is_empty(), gather) {
                    (true, _) => stream.write(bytes)?,
                    (false, true) => {
                        stream.write_vectored(&[IoSlice::new(rest), IoSlice::new(bytes)])?
                    }
                    (false, false) => stream.write(rest)?,
                };
                self.sent(count, head.len())?;
            }
            Body::File(file, length) if rest.is_empty() => {
                let chunk = (length - self.body).min(CHUNK) as usize;
                let mut offset = self.body;
                // A file that has become shorter has no answer any more: the connection ends.
                self.sent(sendfile(stream, file, Some(&mut offset), chunk)?, head.len())?;
            }
            Body::File(..) => {
                // The head waits for the first bytes of the file: gathered, though by two calls.
                let flags = if gather { SendFlags::MORE } else { SendFlags::empty() };
                let count = rustix::net::send(stream, rest, flags | SendFlags::NOSIGNAL)?;
                self.sent(count, head.len())?;
            }
        }
        Ok(self.head == head.len() && self.body == length(body))
    }

    /// Counts bytes: the head's first.
    fn sent(&mut self, count: usize, head: usize) -> io::Result<()> {
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let of_head = count.min(head - self.head);
        self.head += of_head;
        self.body += (count - of_head) as u64;
        Ok(())
    }
}

fn length(body: &Body) -> u64 {
    match body {
        Body::None => 0,
        Body::Memory(bytes) => bytes.len() as u64,
        Body::File(_, length) => *length,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;
    use std::sync::Arc;

    use afpa_cache::root::FileBody;
    use bytes::Bytes;

    use super::*;

    /// More than a socket takes at once, so that each form is continued in its middle.
    const LONG: usize = 9 << 20;

    fn content() -> Vec<u8> {
        (0..LONG).map(|place| (place % 251) as u8).collect()
    }

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        (listener.accept().expect("accepted").0, client)
    }

    /// Sends without blocking to a slow reader. Returns the bytes that arrived, and how often the sender waited.
    fn received(body: &Body, gather: bool) -> (Vec<u8>, usize) {
        let (server, mut client) = pair();
        server.set_nonblocking(true).expect("set");
        let (head, mut sending, mut waits) = (b"the head".as_slice(), Sending::default(), 0);
        let mut arrived = Vec::new();
        while sending.some(&server, head, body, gather).expect("sent") == Progress::Blocked {
            waits += 1;
            let mut piece = vec![0; 100_000];
            let count = client.read(&mut piece).expect("read");
            arrived.extend_from_slice(piece.get(..count).expect("in it"));
        }
        drop(server);
        client.read_to_end(&mut arrived).expect("read");
        (arrived, waits)
    }

    fn body_of(file: std::fs::File, length: u64) -> Arc<FileBody> {
        Arc::new(FileBody::growing(file, length).expect("it is long enough"))
    }

    #[test]
    fn every_form_arrives_whole_though_the_socket_fills() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&content()).expect("written");
        let forms = [
            Body::Memory(Bytes::from(content())),
            Body::File(body_of(file, LONG as u64), LONG as u64),
        ];
        let expected = [b"the head".as_slice(), &content()].concat();
        for body in &forms {
            for gather in [true, false] {
                let (arrived, waits) = received(body, gather);
                assert!(arrived == expected && waits > 0, "{} bytes, {waits}", arrived.len());
            }
        }
        assert_eq!(received(&Body::None, true).0, b"the head");
    }

    #[test]
    fn a_file_that_has_become_shorter_ends_the_connection() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(10).expect("set");
        let (server, _client) = pair();
        let body = Body::File(body_of(file, 10), 20);
        let error = all(&server, b"head", &body, true).expect_err("too short");
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
    }
}
