//! Requests: field blocks, and content as far as the windows allow.

use super::{Asking, Connection, Tunnel};
use crate::endpoint::StreamId;
use crate::endpoint::stream::Stream;
use crate::frame::{self, ErrorCode};

impl Connection {
    /// The bytes for the server. Take them, and leave the memory.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.endpoint.output
    }

    /// How many bytes of output there are.
    pub fn unsent(&self) -> usize {
        self.endpoint.output.len()
    }

    /// Sends a request head of this field block on a new stream; `end`: no content follows. `None` if there can be no
    /// more streams now.
    pub fn open(&mut self, block: &[u8], end: bool, asked_head: bool) -> Option<StreamId> {
        self.open_for(block, end, Asking { asked_head, ..Asking::default() })
    }

    /// Asks for a tunnel by an extended CONNECT of this field block (RFC 8441 section 4). `None` if the server does not take
    /// it, or there can be no more streams now.
    pub fn open_tunnel(&mut self, block: &[u8], tunnel: Tunnel) -> Option<StreamId> {
        let asking = Asking { tunnel: Some(Box::new(tunnel)), ..Asking::default() };
        self.takes_tunnels.then(|| self.open_for(block, false, asking))?
    }

    fn open_for(&mut self, block: &[u8], end: bool, own: Asking) -> Option<StreamId> {
        if self.room_for_streams() == 0 {
            return None;
        }
        if self.endpoint.streams.len() >= self.most_streams() {
            // A stream that only END_STREAM is missing of counts as open at the server.
            let oldest = self
                .endpoint
                .streams
                .iter()
                .find(|stream| stream.own.left)
                .map(|stream| stream.id)?;
            self.reset(oldest, ErrorCode::Cancel);
        }
        let id = self.next;
        self.next += 2;
        let stream = Stream { we_open: !end, ..self.endpoint.new_stream(id, own) };
        self.endpoint.streams.push(stream);
        self.put_block(id, end, block);
        Some(id)
    }

    fn put_block(&mut self, id: StreamId, end: bool, block: &[u8]) {
        self.endpoint.put_head(id, end, |out| out.extend_from_slice(block));
    }

    /// Bytes of content that one DATA frame may carry on this stream now.
    pub fn room(&self, id: StreamId) -> usize {
        self.endpoint.room(id)
    }

    /// Whether we may still send on a stream.
    pub fn may_send(&self, id: StreamId) -> bool {
        self.endpoint.streams.get(id).is_some_and(|stream| stream.we_open)
    }

    /// Sends content, not more than there is [room](Connection::room) for; nothing on a stream that is gone.
    pub fn send_data(&mut self, id: StreamId, bytes: &[u8], end: bool) {
        debug_assert!(bytes.len() <= self.room(id), "within the windows");
        let start = self.endpoint.begin_data();
        self.endpoint.output.extend_from_slice(bytes);
        self.endpoint.end_data(start, id, end);
        self.forget_if_ended(id);
    }

    /// Sends the trailer section of this field block, which ends the request.
    pub fn send_trailers(&mut self, id: StreamId, block: &[u8]) {
        let Some(stream) = self.endpoint.streams.get_mut(id).filter(|stream| stream.we_open) else {
            return;
        };
        stream.we_open = false;
        self.put_block(id, true, block);
        self.forget_if_ended(id);
    }

    /// Ends a stream for a reason of ours.
    pub fn reset(&mut self, id: StreamId, code: ErrorCode) {
        if self.endpoint.streams.get(id).is_some() {
            frame::put_reset(&mut self.endpoint.output, id, code);
            self.forget(id, true);
        }
    }

    /// The owner of a stream goes. If only END_STREAM is to come on it, it may: a reset would look like one of a flood.
    pub fn abandon(&mut self, id: StreamId) {
        let Some(stream) = self.endpoint.streams.get_mut(id) else { return };
        let is_whole = stream.headed && !stream.we_open && stream.content_left == Some(0);
        if !is_whole {
            self.reset(id, ErrorCode::Cancel);
            return;
        }
        if !std::mem::replace(&mut stream.own.left, true) {
            let unread = std::mem::take(&mut stream.unread);
            self.left += 1;
            self.endpoint.give_room(unread);
        }
    }

    /// Forgets a stream that has ended in both directions.
    pub(super) fn forget_if_ended(&mut self, id: StreamId) {
        if self.endpoint.streams.get(id).is_some_and(Stream::has_ended) {
            self.forget(id, false);
        }
    }
}
