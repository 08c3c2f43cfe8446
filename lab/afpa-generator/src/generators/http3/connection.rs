//! One connection: its requests, and what comes back.

use std::collections::HashMap;
use std::time::Instant;

use afpa_h3::frame::{ErrorCode, kind, put_header, stream_kind};
use afpa_h3::varint;
use bytes::Bytes;
use quinn_proto::{
    ConnectionHandle, Dir, Endpoint, Event, ReadError, StreamEvent, StreamId, VarInt,
};

use super::answer::{Answer, Heads};
use super::socket::{SEGMENTS, Socket};
use crate::workload::{Request, Steps};

/// A connection and its socket.
pub(super) struct Connection {
    quic: quinn_proto::Connection,
    handle: ConnectionHandle,
    socket: Socket,
    answers: HashMap<StreamId, Asked>,
    /// Requests that are made as soon as there may be another stream.
    due: u32,
}

/// A request that was sent.
struct Asked {
    request: usize,
    at: Instant,
    answer: Answer,
}

/// The requests of all connections.
pub(super) struct Requests<'w> {
    pub(super) wanted: &'w [Request],
    /// HEADERS frames, one for each.
    pub(super) frames: Vec<Bytes>,
    pub(super) steps: Steps<'w>,
    pub(super) heads: Heads,
    /// Of so many answers one is compared.
    pub(super) compared: u64,
    pub(super) asked: u64,
}

/// News of a connection.
pub(super) enum Told {
    /// The handshake is complete.
    Open,
    /// An answer is complete, and right: when it was asked for, and its bytes of content.
    Answered(Instant, u64),
    /// An answer is wrong.
    Wrong(String),
    /// The connection has ended.
    Lost(String),
}

impl Connection {
    pub(super) fn new(
        handle: ConnectionHandle,
        quic: quinn_proto::Connection,
        socket: Socket,
    ) -> Self {
        Self { quic, handle, socket, answers: HashMap::new(), due: 0 }
    }

    pub(super) fn handle(&self) -> ConnectionHandle {
        self.handle
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(super) fn quic(&mut self) -> &mut quinn_proto::Connection {
        &mut self.quic
    }

    /// So many further requests.
    pub(super) fn ask(&mut self, more: u32) {
        self.due += more;
    }

    /// Opens the control stream (RFC 9114 section 6.2.1): we have no settings.
    pub(super) fn begin(&mut self) {
        if let Some(id) = self.quic.streams().open(Dir::Uni) {
            let mut bytes = Vec::new();
            varint::put(&mut bytes, stream_kind::CONTROL);
            put_header(&mut bytes, kind::SETTINGS, 0);
            let _ = self.quic.send_stream(id).write(&bytes);
        }
    }

    /// Tells the next thing that has happened, if any has.
    pub(super) fn poll(
        &mut self,
        endpoint: &mut Endpoint,
        requests: &mut Requests<'_>,
    ) -> Option<Told> {
        loop {
            self.tell_endpoint(endpoint);
            match self.quic.poll()? {
                Event::Connected => return Some(Told::Open),
                Event::ConnectionLost { reason } => return Some(Told::Lost(reason.to_string())),
                Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                    while let Some(id) = self.quic.streams().accept(Dir::Uni) {
                        self.pass_over(id);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) if id.dir() == Dir::Uni => {
                    self.pass_over(id);
                }
                Event::Stream(StreamEvent::Readable { id }) => {
                    if let Some(told) = self.read(id, requests) {
                        return Some(told);
                    }
                }
                _ => {}
            }
        }
    }

    /// Sends the requests that are due, as far as the server lets us.
    pub(super) fn send_requests(&mut self, requests: &mut Requests<'_>, now: Instant) {
        while self.due > 0 {
            let Some(id) = self.quic.streams().open(Dir::Bi) else { return };
            let (request, frame, is_compared) = requests.next();
            let mut stream = self.quic.send_stream(id);
            // A request is shorter than any window; one that were not would be answered by a fault.
            let _ = stream.write_chunks(&mut [frame]);
            let _ = stream.finish();
            let answer = Answer::new(is_compared);
            self.answers.insert(id, Asked { request, at: now, answer });
            self.due -= 1;
        }
    }

    /// Sends packets; how often the kernel took none.
    pub(super) fn transmit(&mut self, now: Instant, room: &mut Vec<u8>) -> u64 {
        let mut lost = 0;
        loop {
            room.clear();
            let Some(packets) = self.quic.poll_transmit(now, SEGMENTS, room) else { return lost };
            lost += u64::from(!self.socket.send(&packets, room));
        }
    }

    /// Ends it, and tells the server. The socket is left: packets of the server may still come.
    pub(super) fn close(mut self, endpoint: &mut Endpoint, now: Instant) -> Socket {
        self.quic.close(now, code(ErrorCode::NoError), Bytes::new());
        self.transmit(now, &mut Vec::new());
        self.tell_endpoint(endpoint);
        if !self.quic.is_drained() {
            endpoint.handle_event(self.handle, quinn_proto::EndpointEvent::drained());
        }
        self.socket
    }

    fn tell_endpoint(&mut self, endpoint: &mut Endpoint) {
        while let Some(event) = self.quic.poll_endpoint_events() {
            if let Some(event) = endpoint.handle_event(self.handle, event) {
                self.quic.handle_event(event);
            }
        }
    }

    /// Streams of the server's settings and field compression: without a dynamic table they say nothing that matters.
    fn pass_over(&mut self, id: StreamId) {
        let mut stream = self.quic.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        while let Ok(Some(_)) = chunks.next(usize::MAX) {}
        let _ = chunks.finalize();
    }

    /// Reads an answer as far as it has come.
    fn read(&mut self, id: StreamId, requests: &mut Requests<'_>) -> Option<Told> {
        let asked = self.answers.get_mut(&id)?;
        let wanted = requests.wanted.get(asked.request)?;
        let mut stream = self.quic.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return None };
        let outcome = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    let taken = (asked.request, wanted);
                    if let Err(why) = asked.answer.take(&chunk.bytes, taken, &mut requests.heads) {
                        break Err(why);
                    }
                }
                Ok(None) => break asked.answer.end(wanted),
                Err(ReadError::Blocked) => {
                    let _ = chunks.finalize();
                    return None;
                }
                Err(ReadError::Reset(code)) => break Err(format!("reset by {code}")),
            }
        };
        let _ = chunks.finalize();
        let asked = self.answers.remove(&id)?;
        Some(match outcome {
            Ok(()) => Told::Answered(asked.at, asked.answer.received()),
            Err(why) => {
                let _ = self.quic.recv_stream(id).stop(code(ErrorCode::RequestCancelled));
                Told::Wrong(format!("{}: {why}", wanted.path))
            }
        })
    }
}

impl Requests<'_> {
    fn next(&mut self) -> (usize, Bytes, bool) {
        let request = self.steps.next().map_or(0, |step| step.request);
        let frame = self.frames.get(request).cloned().unwrap_or_default();
        self.asked += 1;
        (request, frame, self.asked.is_multiple_of(self.compared))
    }
}

fn code(code: ErrorCode) -> VarInt {
    VarInt::from_u64(code as u64).unwrap_or(VarInt::MAX)
}
