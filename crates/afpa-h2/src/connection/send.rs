//! Responses: field blocks, content as far as the windows allow, and whose turn it is.

use super::{Connection, DRAIN_PING, ErrorCode, Leaving, Stream, StreamId};
use crate::frame::{self, FrameHeader, HEADER, MAX_PAYLOAD, flag, kind};
use crate::hpack::encode;
use crate::priority::Claim;

/// DATA frames shorter than this, sent because a window has no more room, count as overhead.
const SMALL: usize = 256;

/// WINDOW_UPDATE frames that may be outstanding.
const MOST_UPDATES: u32 = 4096;

impl Connection {
    /// The bytes for the client. Take them, and leave the memory.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Sends a response head, an interim one, or a trailer section: `put` appends its field block. `end`: no content
    /// follows. Nothing is sent on a stream that is gone.
    pub fn send_head(&mut self, id: StreamId, end: bool, put: impl FnOnce(&mut Vec<u8>)) {
        if !self.streams.get(id).is_some_and(|stream| stream.we_open) {
            return;
        }
        let start = self.output.len();
        self.output.extend_from_slice(&[0; HEADER]);
        if !std::mem::replace(&mut self.table_said, true) {
            encode::put_no_table(&mut self.output);
        }
        put(&mut self.output);
        let length = self.output.len() - start - HEADER;
        let end_stream = if end { flag::END_STREAM } else { 0 };
        if length <= MAX_PAYLOAD {
            let flags = flag::END_HEADERS | end_stream;
            self.patch(start, FrameHeader { length, kind: kind::HEADERS, flags, stream: id });
        } else {
            let block = self.output.split_off(start + HEADER);
            self.output.truncate(start);
            self.put_long_block(id, end_stream, &block);
        }
        if end {
            self.sent_last(id);
        }
    }

    /// A field block that needs CONTINUATION frames.
    fn put_long_block(&mut self, id: StreamId, end_stream: u8, block: &[u8]) {
        let count = block.chunks(MAX_PAYLOAD).count();
        for (at, fragment) in block.chunks(MAX_PAYLOAD).enumerate() {
            let (kind, flags) = match at {
                0 => (kind::HEADERS, end_stream),
                _ => (kind::CONTINUATION, 0),
            };
            let last = if at + 1 == count { flag::END_HEADERS } else { 0 };
            frame::put(&mut self.output, kind, flags | last, id, fragment);
        }
    }

    /// Bytes of content that one DATA frame may carry on this stream now.
    #[inline]
    pub fn room(&self, id: StreamId) -> usize {
        let Some(stream) = self.streams.get(id).filter(|stream| stream.we_open) else { return 0 };
        let window = self.send_window.min(stream.send_window).clamp(0, MAX_PAYLOAD as i64);
        window as usize
    }

    /// Whether the client lets a stream send nothing, whatever else it takes.
    pub fn is_stopped(&self, id: StreamId) -> bool {
        self.streams.get(id).is_none_or(|stream| stream.send_window <= 0)
    }

    /// Sends content, not more than there is [room](Connection::room) for.
    #[inline]
    pub fn send_data(&mut self, id: StreamId, bytes: &[u8], end: bool) {
        let start = self.begin_data();
        self.output.extend_from_slice(bytes);
        self.end_data(start, id, end);
    }

    /// Begins a DATA frame: append its content to the output, not more than there is room for. Returns where it begins,
    /// for [`end_data`](Connection::end_data).
    pub fn begin_data(&mut self) -> usize {
        let start = self.output.len();
        self.output.extend_from_slice(&[0; HEADER]);
        start
    }

    /// Ends a DATA frame. If the stream is gone, so is the frame.
    #[inline]
    pub fn end_data(&mut self, start: usize, id: StreamId, end: bool) {
        let length = self.output.len().saturating_sub(start + HEADER);
        self.turn += 1;
        let turn = self.turn;
        let Some(stream) = self.streams.get_mut(id).filter(|stream| stream.we_open) else {
            self.output.truncate(start);
            return;
        };
        stream.send_window -= length as i64;
        stream.own.last_turn = turn;
        self.send_window -= length as i64;
        debug_assert!(length == 0 || stream.send_window >= 0 && self.send_window >= 0);
        self.expected_updates = (self.expected_updates + 2).min(MOST_UPDATES);
        let flags = if end { flag::END_STREAM } else { 0 };
        self.patch(start, FrameHeader { length, kind: kind::DATA, flags, stream: id });
        if end {
            self.sent_last(id);
        }
    }

    fn patch(&mut self, start: usize, header: FrameHeader) {
        if let Some(place) = self.output.get_mut(start..start + HEADER) {
            place.copy_from_slice(&header.bytes());
        }
    }

    /// The response has ended. If the request has not, nobody will look at the rest of it (section 8.1), unless the two are
    /// a tunnel (RFC 8441 section 5).
    fn sent_last(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        (stream.we_open, stream.own.pending) = (false, None);
        let peer_open = stream.peer_open;
        if peer_open && stream.own.is_tunnel {
            return;
        }
        if peer_open {
            frame::put_reset(&mut self.output, id, ErrorCode::NoError);
        }
        self.forget(id, peer_open);
    }

    /// Forgets a stream that has ended in both directions.
    pub(super) fn forget_if_ended(&mut self, id: StreamId) {
        if self.streams.get(id).is_some_and(Stream::has_ended) {
            self.forget(id, false);
        }
    }

    /// Ends a stream for a reason of ours.
    pub fn reset(&mut self, id: StreamId, code: ErrorCode) {
        if self.streams.get(id).is_some() {
            frame::put_reset(&mut self.output, id, code);
            self.forget(id, true);
        }
    }

    /// Says how many bytes a stream has to send now; `None`: nothing.
    pub fn set_pending(&mut self, id: StreamId, bytes: Option<u64>) {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.own.pending = bytes;
        }
    }

    /// The stream that sends next, and how much (RFC 9218 section 10): one that has something to send and room for it.
    /// One that has only its end to send (0 bytes) needs no room.
    pub fn next_to_send(&self) -> Option<(StreamId, usize)> {
        let waiting = self.streams.iter().filter_map(|stream| {
            let bytes = stream.own.pending?;
            let room = self.send_window.min(stream.send_window);
            (bytes == 0 || room > 0)
                .then(|| (Claim::new(stream.own.priority, bytes, stream.own.last_turn), stream.id))
        });
        let (_, id) = waiting.min()?;
        Some((id, self.room(id)))
    }

    /// Whether a stream has something to send, whether or not it may.
    pub fn has_pending(&self) -> bool {
        self.streams.iter().any(|stream| stream.own.pending.is_some())
    }

    /// Charges the client for a DATA frame that was short because its window had no more room.
    ///
    /// # Errors
    /// The client's windows are so small that they are an attack. GOAWAY is in the output.
    pub fn charge_short(&mut self, length: usize, now_ms: u64) -> Result<(), super::Fatal> {
        if length >= SMALL {
            return Ok(());
        }
        self.charge(now_ms).inspect_err(|fatal| {
            self.phase = super::Phase::Dead;
            let last = self.last_served();
            frame::put_goaway(&mut self.output, last, fatal.code, fatal.why);
        })
    }

    /// Begins to end the connection without losing a request (section 6.8): the client is told to open no more
    /// streams, and a PING tells when it has heard of it.
    pub fn leave(&mut self) {
        if self.leaving == Leaving::No {
            self.leaving = Leaving::Announced;
            let most = frame::MAX_WINDOW as u32;
            frame::put_goaway(&mut self.output, most, ErrorCode::NoError, "");
            frame::put(&mut self.output, kind::PING, 0, 0, &DRAIN_PING);
        }
    }

    /// Serves no stream beyond those that were opened.
    pub fn finish_leaving(&mut self) {
        if !matches!(self.leaving, Leaving::After(_)) {
            self.leaving = Leaving::After(self.newest);
            frame::put_goaway(&mut self.output, self.newest, ErrorCode::NoError, "");
        }
    }

    /// Whether [`leave`](Connection::leave) was called.
    pub fn is_leaving(&self) -> bool {
        self.leaving != Leaving::No
    }

    /// Whether the connection has said that it ends, and all its streams have ended.
    pub fn is_done(&self) -> bool {
        matches!(self.leaving, Leaving::After(_)) && self.streams.len() == 0
    }
}
