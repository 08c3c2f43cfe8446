//! Responses: field blocks, content as far as the windows allow, and the order of streams.

use super::{Connection, DRAIN_PING, ErrorCode, Leaving, StreamId};
use crate::endpoint::stream::Stream;
use crate::frame::{self, kind};
use crate::priority::Claim;

/// DATA frames shorter than this, sent because a window has no more room, count as overhead.
const SMALL: usize = 256;

impl Connection {
    /// The bytes for the client. Take them, and leave the memory.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.endpoint.output
    }

    /// Sends a response head, an interim one, or a trailer section: `put` appends its field block. `end`: no content
    /// follows. Nothing is sent on a stream that is gone.
    pub fn send_head(&mut self, id: StreamId, end: bool, put: impl FnOnce(&mut Vec<u8>)) {
        if self.endpoint.streams.get(id).is_some_and(|stream| stream.we_open) {
            self.endpoint.put_head(id, end, put);
            if end {
                self.sent_last(id);
            }
        }
    }

    /// Bytes of content that one DATA frame may carry on this stream now.
    #[inline]
    pub fn room(&self, id: StreamId) -> usize {
        self.endpoint.room(id)
    }

    /// Bytes of content that the windows let a stream send.
    pub fn window(&self, id: StreamId) -> usize {
        let window = self.endpoint.streams.get(id).map_or(0, |stream| stream.send_window);
        usize::try_from(self.endpoint.send_window.min(window)).unwrap_or_default()
    }

    /// Whether the client's window for the stream is closed, even if other streams may send.
    pub fn is_stopped(&self, id: StreamId) -> bool {
        self.endpoint.streams.get(id).is_none_or(|stream| stream.send_window <= 0)
    }

    /// Sends content, not more than there is [room](Connection::room) for.
    #[inline]
    pub fn send_data(&mut self, id: StreamId, bytes: &[u8], end: bool) {
        let start = self.begin_data();
        self.endpoint.output.extend_from_slice(bytes);
        self.end_data(start, id, end);
    }

    /// Begins a DATA frame: append its content to the output, not more than there is room for. Returns where it begins,
    /// for [`end_data`](Connection::end_data).
    pub fn begin_data(&mut self) -> usize {
        self.endpoint.begin_data()
    }

    /// Ends a DATA frame. If the stream is gone, so is the frame.
    #[inline]
    pub fn end_data(&mut self, start: usize, id: StreamId, end: bool) {
        self.turn += 1;
        let Some(stream) = self.endpoint.end_data(start, id, end) else { return };
        stream.own.last_turn = self.turn;
        if end {
            self.sent_last(id);
        }
    }

    /// The response has ended. If the request has not, nobody will look at the rest of it (section 8.1), unless the two are
    /// a tunnel (RFC 8441 section 5). Some clients lose a response behind which RST_STREAM(NO_ERROR) comes at once, so the
    /// stream lingers: its window grows no more, and its owner ends it some time later.
    fn sent_last(&mut self, id: StreamId) {
        let Some(stream) = self.endpoint.streams.get_mut(id) else { return };
        (stream.we_open, stream.own.pending) = (false, None);
        match (stream.peer_open, stream.own.is_tunnel) {
            (true, true) => {}
            (true, false) => {
                let unread = std::mem::take(&mut stream.unread);
                self.endpoint.give_room(unread);
                self.lingering.push_back(id);
            }
            (false, _) => drop(self.endpoint.forget(id, false)),
        }
    }

    /// Whether the response on a stream has ended before the request.
    pub(super) fn lingers(&self, id: StreamId) -> bool {
        let stream = self.endpoint.streams.get(id);
        stream.is_some_and(|stream| !stream.we_open && !stream.own.is_tunnel)
    }

    /// A stream whose response has ended before its request, and that was not returned before: the client has to be asked
    /// to send no more ([`ask_to_stop`](Self::ask_to_stop)) after a while.
    pub fn next_lingering(&mut self) -> Option<StreamId> {
        while let Some(id) = self.lingering.pop_front() {
            if self.has(id) {
                return Some(id);
            }
        }
        None
    }

    /// Asks the client to send no more of a request whose response has ended, if it does not know yet.
    pub fn ask_to_stop(&mut self, id: StreamId) {
        self.reset(id, ErrorCode::NoError);
    }

    /// Forgets a stream that has ended in both directions.
    pub(super) fn forget_if_ended(&mut self, id: StreamId) {
        if self.endpoint.streams.get(id).is_some_and(Stream::has_ended) {
            self.endpoint.forget(id, false);
        }
    }

    /// Ends a stream for a reason of ours.
    pub fn reset(&mut self, id: StreamId, code: ErrorCode) {
        if self.endpoint.streams.get(id).is_some() {
            frame::put_reset(&mut self.endpoint.output, id, code);
            self.endpoint.forget(id, true);
        }
    }

    /// Says how many bytes a stream has to send now; `None`: nothing.
    pub fn set_pending(&mut self, id: StreamId, bytes: Option<u64>) {
        if let Some(stream) = self.endpoint.streams.get_mut(id) {
            stream.own.pending = bytes;
        }
    }

    /// The stream that sends next, and how much (RFC 9218 section 10). It has something to send and room for it; a
    /// stream with only its end to send (0 bytes) needs no room.
    pub fn next_to_send(&self) -> Option<(StreamId, usize)> {
        let waiting = self.endpoint.streams.iter().filter_map(|stream| {
            let bytes = stream.own.pending?;
            let room = self.endpoint.send_window.min(stream.send_window);
            (bytes == 0 || room > 0)
                .then(|| (Claim::new(stream.own.priority, bytes, stream.own.last_turn), stream.id))
        });
        let (_, id) = waiting.min()?;
        Some((id, self.room(id)))
    }

    /// Whether a stream has something to send, whether or not it may.
    pub fn has_pending(&self) -> bool {
        self.endpoint.streams.iter().any(|stream| stream.own.pending.is_some())
    }

    /// Charges the client for a DATA frame that was short because its window had no more room.
    ///
    /// # Errors
    /// The client's windows are so small that they are an attack. GOAWAY is in the output.
    pub fn charge_short(&mut self, length: usize, now_ms: u64) -> Result<(), super::Fatal> {
        if length >= SMALL {
            return Ok(());
        }
        self.endpoint.charge(now_ms).map_err(|fatal| self.die(fatal))
    }

    /// Begins to end the connection without losing a request (section 6.8): GOAWAY asks the client to open no more
    /// streams, and the answer to a PING shows that the client has received it.
    pub fn leave(&mut self) {
        if self.leaving == Leaving::No {
            self.leaving = Leaving::Announced;
            let most = frame::MAX_WINDOW as u32;
            frame::put_goaway(&mut self.endpoint.output, most, ErrorCode::NoError, "");
            frame::put(&mut self.endpoint.output, kind::PING, 0, 0, &DRAIN_PING);
        }
    }

    /// Serves no stream beyond those that were opened.
    pub fn finish_leaving(&mut self) {
        if !matches!(self.leaving, Leaving::After(_)) {
            self.leaving = Leaving::After(self.newest);
            frame::put_goaway(&mut self.endpoint.output, self.newest, ErrorCode::NoError, "");
        }
    }

    /// Whether [`leave`](Connection::leave) was called.
    pub fn is_leaving(&self) -> bool {
        self.leaving != Leaving::No
    }

    /// Whether the connection has said that it ends, and all its streams have ended.
    pub fn is_done(&self) -> bool {
        matches!(self.leaving, Leaving::After(_)) && self.endpoint.streams.len() == 0
    }
}
