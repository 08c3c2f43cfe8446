//! The answer, as frames that the connection takes.

use std::io;
use std::task::Context;

use afpa_framework::Module;
use afpa_h2::ResponseEvent;
use afpa_h3::frame::{HEADER, kind, put_header, size};
use bytes::Bytes;
use quinn_proto::WriteError;

use super::{PIECE, Stream};

impl<M: Module> Stream<M> {
    /// Gives the connection the frames that wait. Whether it has taken all.
    pub(super) fn flush(&mut self, cx: Option<&Context<'_>>) -> io::Result<bool> {
        let mut peer = self.peer.borrow_mut();
        if peer.is_lost {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if self.is_taken() && !self.out.is_empty() {
            // The connection keeps them until the client has acknowledged them: without another copy.
            self.waiting[0] = self.worker.h3_answers.keep(std::mem::take(&mut self.out));
        }
        while !self.is_taken() {
            match peer.quic.send_stream(self.id).write_chunks(&mut self.waiting) {
                Ok(_) => {
                    let handle = peer.handle;
                    peer.touched.touch(handle);
                }
                Err(WriteError::Blocked) => {
                    if let (Some(cx), Some(waiting)) = (cx, peer.streams.get_mut(&self.id)) {
                        waiting.sender = Some(cx.waker().clone());
                    }
                    return Ok(false);
                }
                // The client wants no answer: the stream was reset when it said so.
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => {
                    self.is_finished = true;
                    self.is_broken = true;
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
            }
        }
        if self.reader.is_done() && !std::mem::replace(&mut self.is_finished, true) {
            peer.finish(self.id);
        }
        Ok(true)
    }

    /// Whether the connection has all frames that were complete.
    pub(super) fn is_taken(&self) -> bool {
        self.waiting.iter().all(Bytes::is_empty)
    }

    /// Content of the answer's known length is sent that stands in `waiting`, framed.
    pub(super) fn send_framed(&mut self, content: usize) -> io::Result<usize> {
        self.reader.skip(content as u64);
        self.flows = self.flush(None)?;
        Ok(content)
    }

    /// Whether the answer has so much content left, of the length that its head has told.
    pub(super) fn announces(&self, content: usize) -> bool {
        self.section.is_none() && self.reader.left().is_some_and(|left| left >= content as u64)
    }

    /// Takes bytes of the answer, as frames, as long as the connection takes these. Returns how many. If `more` follows at once,
    /// little of it waits for that here: a head that has a packet of its own costs a call of its own.
    pub(super) fn put(
        &mut self,
        bytes: &[u8],
        cx: Option<&Context<'_>>,
        more: bool,
    ) -> io::Result<usize> {
        let mut taken = 0;
        if !self.flush(cx)? {
            return Ok(0);
        }
        while taken < bytes.len() {
            let rest = bytes.get(taken..).unwrap_or_default();
            taken += match self.section.take() {
                Some(section) => self.put_section(section, rest)?,
                None => self.put_part(rest)?,
            };
            let is_all = taken == bytes.len() && !more;
            if (is_all || self.out.len() >= PIECE) && !self.flush(cx)? {
                break;
            }
        }
        Ok(taken)
    }

    /// Puts a head that is a field section already in a frame, and content behind it. Returns their length.
    fn put_section(&mut self, (section, content): (usize, u64), bytes: &[u8]) -> io::Result<usize> {
        let Some((section, behind)) = bytes.split_at_checked(section) else {
            self.is_broken = true;
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let behind = behind.get(..PIECE).unwrap_or(behind);
        let content_frame = if behind.is_empty() { 0 } else { size(kind::DATA, behind.len()) };
        let length = size(kind::HEADERS, section.len()) + content_frame;
        match self.out.capacity() {
            0 => self.out = self.worker.h3_answers.begin(length),
            _ => self.out.reserve_exact(length),
        }
        put_header(&mut self.out, kind::HEADERS, section.len() as u64);
        self.out.extend_from_slice(section);
        self.reader.skip_head(content);
        match behind.is_empty() {
            true => Ok(section.len()),
            false => self.put_part(behind).map(|n| section.len() + n),
        }
    }

    /// Puts the next part of an answer in a frame. Returns how many bytes it has taken.
    fn put_part(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = bytes.get(..PIECE).unwrap_or(bytes);
        let Ok((n, event)) = self.reader.read(piece) else {
            self.is_broken = true;
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let (kind, payload) = match event {
            Some(ResponseEvent::Head { .. } | ResponseEvent::Trailers) => {
                (kind::HEADERS, self.reader.block())
            }
            Some(ResponseEvent::Content { bytes, .. }) => (kind::DATA, bytes),
            None => (kind::DATA, &[][..]),
        };
        let before = self.out.len();
        if kind == kind::HEADERS || !payload.is_empty() {
            if before == 0 {
                // With room for content behind a head, and for not much more: the connection keeps it.
                let length = piece.len().max(payload.len()) + HEADER + HEADER;
                match self.out.capacity() {
                    0 => self.out = self.worker.h3_answers.begin(length),
                    _ => self.out.reserve_exact(length),
                }
            }
            put_header(&mut self.out, kind, payload.len() as u64);
            self.out.extend_from_slice(payload);
        }
        if n == 0 && self.out.len() == before {
            // Bytes behind the end of the answer.
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(n)
    }
}
