//! The content of a request, framed as HTTP/1.1 frames it.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};

use afpa_h2::request::Framing;

/// Content of a request that a server gets. It is framed when it is taken, so that no more than the client's window
/// waits here, however small the DATA frames are.
pub(crate) struct Upload {
    framing: Framing,
    /// Content that has arrived and was not taken.
    content: VecDeque<u8>,
    /// The bytes behind the content: the last chunk and the trailer section.
    tail: VecDeque<u8>,
    done: bool,
}

/// The result of a take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Bytes of the room that were filled.
    pub(crate) filled: usize,
    /// Bytes of content among them, for which the client has room again.
    pub(crate) content: usize,
}

/// The bytes of a chunk beside its content: eight digits of its length at most, and two ends of lines.
const CHUNK: usize = 12;

impl Upload {
    pub(crate) fn new(framing: Framing, done: bool) -> Self {
        Self { framing, content: VecDeque::new(), tail: VecDeque::new(), done }
    }

    /// Content has arrived.
    pub(crate) fn push(&mut self, bytes: &[u8], end: bool) {
        self.content.extend(bytes);
        if end {
            self.end(b"");
        }
    }

    /// The content has ended, with these lines of fields.
    pub(crate) fn end(&mut self, trailers: &[u8]) {
        self.done = true;
        if self.framing == Framing::Chunked {
            for text in [b"0\r\n", trailers, b"\r\n"] {
                self.tail.extend(text);
            }
        }
    }

    /// Moves content that has arrived. Nothing is moved to a room of less than 13 bytes.
    pub(crate) fn take(&mut self, room: &mut [u8]) -> Taken {
        let mut taken = match self.framing {
            Framing::Chunked => self.take_chunk(room),
            _ => {
                let content = self.content.read(room).unwrap_or_default();
                Taken { filled: content, content }
            }
        };
        if self.content.is_empty() {
            let rest = room.get_mut(taken.filled..).unwrap_or_default();
            taken.filled += self.tail.read(rest).unwrap_or_default();
        }
        taken
    }

    fn take_chunk(&mut self, room: &mut [u8]) -> Taken {
        let nothing = Taken { filled: 0, content: 0 };
        let content = self.content.len().min(room.len().saturating_sub(CHUNK));
        if content == 0 {
            return nothing;
        }
        let size = room.len();
        let mut rest = &mut *room;
        let framed = write!(rest, "{content:x}\r\n").is_ok();
        let (place, mut rest) = rest.split_at_mut_checked(content).unwrap_or_default();
        let whole = framed && self.content.read_exact(place).is_ok();
        match whole && rest.write_all(b"\r\n").is_ok() {
            true => Taken { filled: size - rest.len(), content },
            false => nothing,
        }
    }

    /// Whether there is something to take.
    pub(crate) fn has_arrived(&self) -> bool {
        !self.content.is_empty() || !self.tail.is_empty()
    }

    /// Bytes of content that have arrived and were not taken.
    pub(crate) fn arrived(&self) -> usize {
        self.content.len()
    }

    /// Whether the client has ended it.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// Whether the end of the stream itself is the end of the content.
    pub(crate) fn is_tunnel(&self) -> bool {
        self.framing == Framing::Tunnel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything, taken with rooms of that size, and how much of it was content.
    fn taken(upload: &mut Upload, size: usize) -> (Vec<u8>, usize) {
        let (mut all, mut content) = (Vec::new(), 0);
        let mut room = vec![0; size];
        while upload.has_arrived() {
            let taken = upload.take(&mut room);
            assert!(taken.filled > 0, "a room of {size} gets nothing");
            all.extend_from_slice(&room[..taken.filled]);
            content += taken.content;
        }
        (all, content)
    }

    /// The content of chunks, and the bytes behind the last one.
    fn unchunked(mut bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let mut content = Vec::new();
        loop {
            let end = bytes.windows(2).position(|two| two == b"\r\n").expect("a size");
            let size = str::from_utf8(&bytes[..end]).expect("digits");
            let size = usize::from_str_radix(size, 16).expect("a number");
            bytes = &bytes[end + 2..];
            if size == 0 {
                return (content, bytes.to_vec());
            }
            content.extend_from_slice(&bytes[..size]);
            bytes = bytes[size..].strip_prefix(b"\r\n").expect("its end");
        }
    }

    #[test]
    fn chunks_are_made_of_what_has_arrived_whatever_the_frames_were() {
        let content: Vec<u8> = (0..1000_u32).map(|at| at as u8).collect();
        for size in [13, 14, 100, 5000] {
            let mut upload = Upload::new(Framing::Chunked, false);
            content.iter().for_each(|byte| upload.push(&[*byte], false));
            upload.end(b"x: y\r\n");
            let (bytes, read) = taken(&mut upload, size);
            assert_eq!(read, content.len());
            assert_eq!(unchunked(&bytes), (content.clone(), b"x: y\r\n\r\n".to_vec()));
        }
    }

    #[test]
    fn content_with_a_length_goes_as_it_is() {
        let mut upload = Upload::new(Framing::Length, false);
        upload.push(b"abc", true);
        assert_eq!(taken(&mut upload, 2), (b"abc".to_vec(), 3));
        assert!(upload.is_done());
        let mut upload = Upload::new(Framing::Chunked, false);
        upload.push(b"0123456789abcdef", true);
        let (bytes, _) = taken(&mut upload, 16_384);
        assert_eq!(bytes, b"10\r\n0123456789abcdef\r\n0\r\n\r\n");
    }
}
