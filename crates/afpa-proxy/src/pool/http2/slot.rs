//! The data that a stream holds for its owner, and its owner's for the server.

use std::collections::VecDeque;
use std::io::Read as _;
use std::task::Waker;

use afpa_h2::StreamId;
use afpa_h2::client::response::Framing;
use afpa_h2::client::{Connection, Gone, ResponseHead};

/// The two directions of a stream, between the connection's task and the owner's.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Text of HTTP/1.1 for the owner: heads, the framing of chunks.
    text: Vec<u8>,
    /// How much of it the owner has.
    read: usize,
    /// Content for the owner. The window of the stream bounds it.
    content: VecDeque<u8>,
    framing: Framing,
    /// Bytes of the chunk that the owner has begun to read; only with [`Framing::Chunked`].
    chunk: usize,
    /// Whether there was a chunk.
    chunks: bool,
    /// Lines of the trailer section.
    trailers: Vec<u8>,
    end: End,
    gone: Option<Gone>,
    /// Content of the owner that waits for a window.
    out: Vec<u8>,
    sent: usize,
    out_end: Option<OutEnd>,
    pub(super) reader: Option<Waker>,
    pub(super) writer: Option<Waker>,
}

/// How far the end of the response is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    #[default]
    ToCome,
    Arrived,
    /// The last chunk is among the text.
    Written,
}

/// How the content of the owner ends.
#[derive(Debug)]
pub(super) enum OutEnd {
    /// With its last byte.
    Plain,
    /// With a trailer section of this field block.
    Trailers(Box<[u8]>),
}

/// The fate of content that waited to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// All of it was sent.
    All,
    /// Some of it.
    Some,
    /// The windows let none through.
    Blocked,
}

/// Bytes of heads that may wait for an owner that does not read.
const MOST_TEXT: usize = 128 * 1024;

impl Slot {
    /// A head has arrived; false if there are too many that the owner has not read.
    pub(super) fn head(&mut self, head: &ResponseHead, end: bool) -> bool {
        if self.text.len() + head.text().len() > MOST_TEXT {
            return false;
        }
        self.text.extend_from_slice(head.text());
        self.framing = head.framing();
        if end {
            self.end = End::Arrived;
        }
        self.wake_reader();
        true
    }

    pub(super) fn content(&mut self, bytes: &[u8], end: bool) {
        self.content.extend(bytes);
        if end {
            self.end = End::Arrived;
        }
        self.wake_reader();
    }

    pub(super) fn trailers(&mut self, lines: &[u8]) {
        self.trailers = lines.to_vec();
        self.end = End::Arrived;
        self.wake_reader();
    }

    /// The stream is gone.
    pub(super) fn gone(&mut self, why: Gone) {
        self.gone.get_or_insert(why);
        self.wake_reader();
        self.wake_writer();
    }

    /// How the stream ended before its response did; `None`: it did not.
    pub(super) fn why_gone(&self) -> Option<Gone> {
        self.gone.filter(|_| self.end == End::ToCome)
    }

    /// Whether the server has ended its response, and then has ended the stream, too (RFC 9113 section 8.1).
    pub(super) fn is_done(&self) -> bool {
        self.is_closed() && self.has_ended()
    }

    /// Whether nothing more can be sent on it.
    pub(super) fn is_closed(&self) -> bool {
        self.gone.is_some()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.end != End::ToCome
    }

    /// Copies the response as HTTP/1.1 has it. Returns how many bytes, and how many of them are content.
    pub(super) fn read(&mut self, room: &mut [u8]) -> (usize, usize) {
        let (mut at, mut content) = (0, 0);
        while let Some(rest) = room.get_mut(at..).filter(|rest| !rest.is_empty()) {
            let text = self.text.get(self.read..).unwrap_or_default();
            let n = text.len().min(rest.len());
            if n > 0 {
                rest.iter_mut().zip(text).for_each(|(to, from)| *to = *from);
                self.read += n;
                at += n;
                continue;
            }
            self.text.clear();
            self.read = 0;
            let most = match self.framing {
                Framing::Chunked if self.chunk == 0 => match self.put_chunk_line() {
                    true => continue,
                    false => break,
                },
                Framing::Chunked => self.chunk.min(rest.len()),
                Framing::Length | Framing::None | Framing::Tunnel => rest.len(),
            };
            let rest = rest.get_mut(..most).unwrap_or_default();
            // Reading from memory cannot fail.
            let n = self.content.read(rest).unwrap_or_default();
            if n == 0 {
                break;
            }
            self.chunk = self.chunk.saturating_sub(n);
            (at, content) = (at + n, content + n);
        }
        (at, content)
    }

    /// Writes the beginning of the next chunk, which is all of the content that is there, or the last chunk. False if
    /// there is neither.
    fn put_chunk_line(&mut self) -> bool {
        let is_last = self.content.is_empty();
        if is_last && self.end != End::Arrived {
            return false;
        }
        if std::mem::replace(&mut self.chunks, !is_last) {
            self.text.extend_from_slice(b"\r\n");
        }
        self.chunk = self.content.len();
        self.text.extend_from_slice(format!("{:x}\r\n", self.chunk).as_bytes());
        if is_last {
            self.text.append(&mut self.trailers);
            self.text.extend_from_slice(b"\r\n");
            self.end = End::Written;
        }
        true
    }

    /// Whether the owner has to wait before it gives more.
    pub(super) fn is_full(&self) -> bool {
        !self.out.is_empty()
    }

    /// Whether all that the owner gave was sent, its end included.
    pub(super) fn is_sent(&self) -> bool {
        self.out.is_empty() && self.out_end.is_none()
    }

    /// Takes content of the owner.
    pub(super) fn write(&mut self, bytes: &[u8], end: Option<OutEnd>) {
        self.out.extend_from_slice(bytes);
        self.out_end = end;
    }

    /// Sends one frame of the content that waits.
    pub(super) fn send(&mut self, id: StreamId, machine: &mut Connection) -> Sent {
        if !machine.may_send(id) {
            self.out = Vec::new();
            (self.sent, self.out_end) = (0, None);
            self.wake_writer();
            return Sent::All;
        }
        let rest = self.out.get(self.sent..).unwrap_or_default();
        let n = rest.len().min(machine.room(id));
        let is_last = n == rest.len();
        if n == 0 && !is_last {
            return Sent::Blocked;
        }
        let bytes = rest.get(..n).unwrap_or_default();
        match self.out_end.take_if(|_| is_last) {
            Some(OutEnd::Plain) => machine.send_data(id, bytes, true),
            Some(OutEnd::Trailers(block)) => {
                if !bytes.is_empty() {
                    machine.send_data(id, bytes, false);
                }
                machine.send_trailers(id, &block);
            }
            None if bytes.is_empty() => {}
            None => machine.send_data(id, bytes, false),
        }
        self.sent += n;
        if !is_last {
            return Sent::Some;
        }
        self.out.clear();
        self.sent = 0;
        self.wake_writer();
        Sent::All
    }

    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    fn wake_writer(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that is there, read with a room of this size.
    fn all(slot: &mut Slot, room: usize) -> String {
        let (mut all, mut room) = (Vec::new(), vec![0; room]);
        loop {
            match slot.read(&mut room) {
                (0, _) => return all.escape_ascii().to_string(),
                (n, _) => all.extend_from_slice(&room[..n]),
            }
        }
    }

    #[test]
    fn content_without_a_length_comes_in_chunks() {
        for room in [1, 2, 5, 100] {
            let mut slot = Slot { framing: Framing::Chunked, ..Slot::default() };
            slot.content(b"abc", false);
            slot.content(b"de", false);
            assert_eq!(all(&mut slot, room), "5\\r\\nabcde", "room for {room}");
            slot.content(b"f", false);
            slot.trailers(b"x: y\r\n");
            assert_eq!(all(&mut slot, room), "\\r\\n1\\r\\nf\\r\\n0\\r\\nx: y\\r\\n\\r\\n");
            assert_eq!(all(&mut slot, room), "", "its end comes once");
        }
        let mut empty = Slot { framing: Framing::Chunked, ..Slot::default() };
        empty.content(b"", true);
        assert_eq!(all(&mut empty, 100), "0\\r\\n\\r\\n");
    }

    #[test]
    fn content_with_a_length_comes_as_it_is() {
        let mut slot = Slot { framing: Framing::Length, ..Slot::default() };
        slot.text = b"head".to_vec();
        slot.content(b"abc", true);
        assert_eq!(slot.read(&mut [0; 100]), (7, 3));
        assert_eq!(slot.read(&mut [0; 100]), (0, 0));
        slot.gone(Gone::Reset(0));
        assert!(slot.why_gone().is_none() && slot.is_closed(), "the response was whole");
    }
}
