//! The stream of a request as a transport of HTTP/1.1: its head and content come as HTTP/1.1 has them, and the answer is
//! taken as HTTP/1.1 has it.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use afpa_framework::{BreakOff, Module};
use afpa_h2::request::Framing;
use afpa_h2::{CodedReader, ResponseEvent};
use afpa_h3::frame::{HEADER, kind, put_header, size};
use afpa_h3::request::Fault;
use afpa_h3::{ErrorCode, Event, Qpack, RequestStream};
use bytes::{Buf as _, Bytes};
use quinn_proto::{ReadError, StreamId, WriteError};

use super::buffers;
use super::peer::{Peer, code_of};
use crate::h2::Upload;
use crate::transport::{Leaving, Transport};
use crate::worker::Worker;

/// A request's stream.
pub(super) struct Stream<M: Module> {
    worker: Rc<Worker<M>>,
    peer: Rc<RefCell<Peer>>,
    id: StreamId,
    request: RequestStream,
    /// Bytes of HTTP/1.1 that wait to be taken: a head for which there was no room when it came.
    arrived: Vec<u8>,
    /// Bytes that are in the room of the present receive.
    received: usize,
    /// The content behind it, once the head has come.
    upload: Option<Upload>,
    /// The client has sent all.
    is_whole: bool,
    is_tunnel: bool,
    /// Of the answer.
    reader: CodedReader<Qpack>,
    /// The front of what is sent next is a field section of its length, behind which so much content comes.
    section: Option<(usize, u64)>,
    /// Frames that are being put together.
    out: Vec<u8>,
    /// Frames that the connection could not take yet, and content behind them.
    waiting: [Bytes; 2],
    /// The connection took all of the last long piece: the next one may be longer.
    flows: bool,
    /// The end of the answer, or of the stream, was sent.
    is_finished: bool,
    /// The answer breaks off.
    is_broken: bool,
    /// Why the response of a server has broken off.
    why_broken: Option<BreakOff>,
    /// The readable part of a request that is none.
    malformed: Option<Vec<u8>>,
}

/// Content of an answer that is taken at a time.
const PIECE: usize = 16 * 1024;

/// The result of looking at what has arrived.
enum Looked {
    /// There are bytes to take, or all were taken and the client sends no more.
    Ready,
    /// Nothing more has come.
    Nothing,
}

impl<M: Module> Stream<M> {
    pub(super) fn new(worker: &Rc<Worker<M>>, peer: &Rc<RefCell<Peer>>, id: StreamId) -> Self {
        Self {
            worker: Rc::clone(worker),
            peer: Rc::clone(peer),
            id,
            request: RequestStream::default(),
            arrived: Vec::new(),
            received: 0,
            upload: None,
            is_whole: false,
            is_tunnel: false,
            reader: CodedReader::new(false, false),
            section: None,
            out: Vec::new(),
            waiting: [Bytes::new(), Bytes::new()],
            flows: false,
            is_finished: false,
            is_broken: false,
            why_broken: None,
            malformed: None,
        }
    }

    /// The error code for the client, as the answer does not end. Codes about the connection to a server say nothing about
    /// the client's connection (T5 of docs/rules).
    fn code(&self) -> ErrorCode {
        match self.why_broken {
            // A reset connection is a request that is cancelled in a tunnel (RFC 9220 section 3).
            _ if self.is_tunnel => ErrorCode::RequestCancelled,
            Some(BreakOff::Failed) => ErrorCode::Internal,
            Some(BreakOff::Cancelled) => ErrorCode::RequestCancelled,
            Some(BreakOff::TooMuch) => ErrorCode::ExcessiveLoad,
            None if self.is_broken => ErrorCode::Internal,
            None => ErrorCode::RequestCancelled,
        }
    }

    fn has_bytes(&self) -> bool {
        !self.arrived.is_empty() || self.upload.as_ref().is_some_and(Upload::has_arrived)
    }

    /// Reads what the connection has for the stream, until there is something to take. A head is put in the room.
    fn look(&mut self, room: &mut [u8]) -> io::Result<Looked> {
        let peer = Rc::clone(&self.peer);
        let peer = &mut *peer.borrow_mut();
        while self.received == 0 && !self.has_bytes() {
            if peer.is_lost || peer.streams.get(&self.id).is_some_and(|stream| stream.is_stopped) {
                self.is_finished = true;
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            if self.is_whole {
                // The end of a request is no end of HTTP/1.1's connection, whose client would take no answer.
                return Ok(match self.is_tunnel || self.is_finished || self.reader.is_done() {
                    true => Looked::Ready,
                    false => Looked::Nothing,
                });
            }
            let mut stream = peer.quic.recv_stream(self.id);
            let Ok(mut chunks) = stream.read(true) else {
                return Err(io::ErrorKind::ConnectionReset.into());
            };
            let chunk = chunks.next(PIECE);
            // The client may have said that nothing follows: as a rule, nothing follows a head.
            let is_last = matches!(chunk, Ok(Some(_))) && matches!(chunks.next(0), Ok(None));
            if chunks.finalize().should_transmit() {
                peer.touched.touch(peer.handle);
            }
            match chunk {
                Ok(Some(chunk)) => {
                    self.take(peer, (&chunk.bytes, is_last), room)?;
                    if is_last && !self.is_whole {
                        self.end(peer)?;
                    }
                }
                Ok(None) => self.end(peer)?,
                Err(ReadError::Blocked) => return Ok(Looked::Nothing),
                Err(ReadError::Reset(_)) => {
                    let now_ms = self.worker.clock.cached_now().steady_ms();
                    if let Err(fatal) = peer.h3.charge_reset(now_ms) {
                        self.fail(peer, Fault::Connection(fatal));
                    }
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
            }
        }
        Ok(Looked::Ready)
    }

    /// Reads bytes of the stream, which may be its last ones.
    fn take(
        &mut self,
        peer: &mut Peer,
        (mut bytes, is_last): (&[u8], bool),
        room: &mut [u8],
    ) -> io::Result<()> {
        let worker = Rc::clone(&self.worker);
        let mut head = worker.h2_head.borrow_mut();
        let now_ms = worker.clock.cached_now().steady_ms();
        while !bytes.is_empty() {
            let read = self.request.read(&mut peer.h3, bytes, &mut head, now_ms);
            let (n, event) = read.map_err(|fault| self.fail(peer, fault))?;
            bytes = bytes.get(n..).unwrap_or_default();
            match event {
                Some(Event::Head) => {
                    let end = bytes.is_empty() && is_last;
                    let malformed = Fault::Stream(ErrorCode::Message);
                    let asked = head.finish(end).map_err(|_| {
                        self.malformed = head.take_refused().pop();
                        self.fail(peer, malformed)
                    })?;
                    let framing = head.framing();
                    self.is_tunnel = framing == Framing::Tunnel;
                    self.request.expect(asked.content_length, self.is_tunnel);
                    self.reader = CodedReader::new(head.asks_head(), self.is_tunnel);
                    peer.ask_priority(self.id, asked.priority);
                    match room.get_mut(..head.text().len()) {
                        Some(place) => {
                            place.copy_from_slice(head.text());
                            self.received = place.len();
                        }
                        None => self.arrived.extend_from_slice(head.text()),
                    }
                    self.upload = Some(Upload::new(framing, end));
                    self.is_whole = end;
                }
                Some(Event::Data(content)) => {
                    if let Some(upload) = &mut self.upload {
                        upload.push(content, false);
                    }
                }
                Some(Event::Trailers) => {
                    let malformed = Fault::Stream(ErrorCode::Message);
                    head.finish_trailers().map_err(|_| self.fail(peer, malformed))?;
                    if let Some(upload) = &mut self.upload {
                        upload.end(head.text());
                    }
                }
                None => {}
            }
        }
        Ok(())
    }

    /// The client has sent all.
    fn end(&mut self, peer: &mut Peer) -> io::Result<()> {
        self.request.finish().map_err(|fault| self.fail(peer, fault))?;
        self.is_whole = true;
        if let Some(upload) = &mut self.upload
            && !upload.is_done()
        {
            upload.end(b"");
        }
        Ok(())
    }

    /// Ends the stream, or the connection, for a fault of the client.
    fn fail(&mut self, peer: &mut Peer, fault: Fault) -> io::Error {
        let worker = &self.worker;
        worker.counters.h3_faults.add(1);
        self.is_finished = true;
        match fault {
            Fault::Stream(code) => {
                peer.refuse(self.id, code);
                let now_ms = worker.clock.cached_now().steady_ms();
                if let Err(fatal) = peer.h3.charge_reset(now_ms) {
                    peer.fail(fatal, Instant::now());
                }
            }
            Fault::Connection(fatal) => peer.fail(fatal, Instant::now()),
        }
        peer.touched.touch(peer.handle);
        io::ErrorKind::InvalidData.into()
    }

    /// Gives the connection the frames that wait. Whether it has taken all.
    fn flush(&mut self, cx: Option<&Context<'_>>) -> io::Result<bool> {
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
    fn is_taken(&self) -> bool {
        self.waiting.iter().all(Bytes::is_empty)
    }

    /// Content of the answer's known length is sent that stands in `waiting`, framed.
    fn send_framed(&mut self, content: usize) -> io::Result<usize> {
        self.reader.skip(content as u64);
        self.flows = self.flush(None)?;
        Ok(content)
    }

    /// Whether the answer has so much content left, of the length that its head has told.
    fn announces(&self, content: usize) -> bool {
        self.section.is_none() && self.reader.left().is_some_and(|left| left >= content as u64)
    }

    /// Takes bytes of the answer, as frames, as long as the connection takes these. Returns how many.
    fn put(&mut self, bytes: &[u8], cx: Option<&Context<'_>>) -> io::Result<usize> {
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
            let is_gathered = self.out.len() >= PIECE || taken == bytes.len();
            if is_gathered && !self.flush(cx)? {
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

impl<M: Module> Transport for Stream<M> {
    const SENDS_PAGES: bool = false;
    const KEEPS_BYTES: bool = true;
    const MAY_BE_H2: bool = false;

    fn poll_receive(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let looked = self.look(buffer);
        let received = std::mem::take(&mut self.received);
        match looked? {
            Looked::Ready if received > 0 => return Poll::Ready(Ok(received)),
            Looked::Ready => {}
            Looked::Nothing => {
                if let Some(waiting) = self.peer.borrow_mut().streams.get_mut(&self.id) {
                    waiting.receiver = Some(cx.waker().clone());
                }
                return Poll::Pending;
            }
        }
        if !self.arrived.is_empty() {
            let n = self.arrived.len().min(buffer.len());
            let (to, from) = (buffer.get_mut(..n), self.arrived.get(..n));
            if let (Some(to), Some(from)) = (to, from) {
                to.copy_from_slice(from);
            }
            self.arrived.drain(..n);
            return Poll::Ready(Ok(n));
        }
        let taken = self.upload.as_mut().map(|upload| upload.take(buffer));
        Poll::Ready(Ok(taken.map_or(0, |taken| taken.filled)))
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        _more: bool,
    ) -> Poll<io::Result<usize>> {
        match self.put(bytes, Some(cx)) {
            Ok(0) if !bytes.is_empty() => Poll::Pending,
            sent => Poll::Ready(sent),
        }
    }

    fn poll_send_gathered(
        &mut self,
        _cx: &mut Context<'_>,
        bytes: &mut Vec<u8>,
        _more: bool,
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(self.put(bytes, None))
    }

    fn poll_send_kept(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut Bytes,
    ) -> Poll<io::Result<usize>> {
        if !self.flush(Some(cx))? {
            return Poll::Pending;
        }
        let n = bytes.len().min(buffers::CONTENT);
        if !self.announces(n) {
            let taken = self.put(bytes, Some(cx))?;
            bytes.advance(taken);
            return if taken == 0 { Poll::Pending } else { Poll::Ready(Ok(taken)) };
        }
        let mut header = Vec::with_capacity(size(kind::DATA, n) - n);
        put_header(&mut header, kind::DATA, n as u64);
        self.waiting = [header.into(), bytes.split_to(n)];
        Poll::Ready(self.send_framed(n))
    }

    fn begin_section(&mut self, section: usize, content: u64) {
        self.section = Some((section, content));
    }

    fn lends(&self) -> bool {
        false
    }

    fn poll_leave_ring(&mut self, _: &mut Context<'_>, _: Leaving) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_send_file(
        &mut self,
        cx: &mut Context<'_>,
        file: &File,
        offset: u64,
        len: usize,
    ) -> Poll<io::Result<usize>> {
        if !self.flush(Some(cx))? {
            return Poll::Pending;
        }
        let most = len.min(if self.flows { buffers::CONTENT } else { PIECE });
        if !self.announces(most) {
            let mut bytes = vec![0; most];
            let n = file.read_at(&mut bytes, offset)?;
            bytes.truncate(n);
            return Poll::Ready(self.put(&bytes, Some(cx)));
        }
        let (n, frame) = self.worker.h3_buffers.read(file, offset, most)?;
        if n == 0 {
            return Poll::Ready(Ok(0));
        }
        self.waiting[0] = frame;
        Poll::Ready(self.send_framed(n))
    }

    fn is_flushed(&self) -> bool {
        self.out.is_empty() && self.is_taken()
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.flush(Some(cx)) {
            Ok(true) => Poll::Ready(Ok(())),
            Ok(false) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    fn is_over(&self) -> bool {
        self.is_whole && self.is_finished && !self.has_bytes()
    }

    fn is_early(&self) -> bool {
        self.peer.borrow().secured.is_none()
    }

    fn poll_handshake_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let peer = &mut *self.peer.borrow_mut();
        match peer.streams.get_mut(&self.id) {
            _ if peer.secured.is_some() => Poll::Ready(Ok(())),
            Some(waiting) if !peer.is_lost && !waiting.is_stopped => {
                waiting.handshake = Some(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        }
    }

    fn is_drained(&self) -> bool {
        true
    }

    fn has_arrived(&self) -> bool {
        false
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        None
    }

    fn reset_at_end(&mut self) {
        self.is_broken = true;
    }

    fn take_malformed(&mut self) -> Option<Vec<u8>> {
        self.malformed.take()
    }

    fn breaks_off(&mut self, why: BreakOff) {
        self.why_broken = Some(why);
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.flush(Some(cx))? {
            return Poll::Pending;
        }
        // An answer whose end is that of the bytes ends here; any other one was whole before, or breaks off.
        let ends = self.reader.is_done() || self.reader.ends_with_bytes();
        if !std::mem::replace(&mut self.is_finished, true) {
            let mut peer = self.peer.borrow_mut();
            match ends && !self.is_broken {
                true => peer.finish(self.id),
                false => peer.break_off(self.id, self.code()),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<M: Module> Drop for Stream<M> {
    fn drop(&mut self) {
        let mut peer = self.peer.borrow_mut();
        peer.streams.remove(&self.id);
        let handle = peer.handle;
        peer.touched.touch(handle);
        if peer.is_lost {
            return;
        }
        if !self.is_finished {
            peer.break_off(self.id, self.code());
        }
        if !self.is_whole {
            // RFC 9114 section 4.1: the answer did not need the rest of the request.
            let _ = peer.quic.recv_stream(self.id).stop(code_of(ErrorCode::NoError));
        }
    }
}
