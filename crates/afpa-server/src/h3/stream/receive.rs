//! The request, as its bytes arrive on the stream.

use std::io;
use std::rc::Rc;
use std::time::Instant;

use afpa_framework::Module;
use afpa_h2::CodedReader;
use afpa_h2::request::Framing;
use afpa_h3::request::Fault;
use afpa_h3::{ErrorCode, Event};
use quinn_proto::ReadError;

use super::{Looked, PIECE, Stream};
use crate::h2::Upload;
use crate::h3::peer::Peer;

impl<M: Module> Stream<M> {
    /// Reads what the connection has for the stream, until there is something to take. A head is put in the room.
    pub(super) fn look(&mut self, room: &mut [u8]) -> io::Result<Looked> {
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
}
