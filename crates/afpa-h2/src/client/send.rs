//! Requests: field blocks, and content as far as the windows allow.

use super::{Asking, Connection};
use crate::endpoint::StreamId;
use crate::endpoint::stream::{Stream, Window};
use crate::frame::{self, ErrorCode, MAX_PAYLOAD, flag, kind};
use crate::hpack::encode;

/// WINDOW_UPDATE frames that may be outstanding.
const MOST_UPDATES: u32 = 4096;

impl Connection {
    /// The bytes for the server. Take them, and leave the memory.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// How many bytes of output there are.
    pub fn unsent(&self) -> usize {
        self.output.len()
    }

    /// Sends a request head of this field block on a new stream; `end`: no content follows. `None` if there can be no
    /// more streams now.
    pub fn open(&mut self, block: &[u8], end: bool, asked_head: bool) -> Option<StreamId> {
        if self.room_for_streams() == 0 {
            return None;
        }
        if self.streams.len() >= self.most_streams() {
            // A stream that only END_STREAM is missing of counts as open at the server.
            let oldest =
                self.streams.iter().find(|stream| stream.own.left).map(|stream| stream.id)?;
            self.reset(oldest, ErrorCode::Cancel);
        }
        let id = self.next;
        self.next += 2;
        self.streams.push(Stream {
            id,
            peer_open: true,
            we_open: !end,
            send_window: self.server.initial_window,
            receive: Window::new(i64::from(self.limits.stream_window)),
            unread: 0,
            content_left: None,
            own: Asking { asked_head, headed: false, interims: 0, left: false },
        });
        self.put_block(id, end, block);
        Some(id)
    }

    fn put_block(&mut self, id: StreamId, end: bool, block: &[u8]) {
        let mut first = Vec::new();
        let block = match std::mem::replace(&mut self.table_said, true) {
            true => block,
            false => {
                encode::put_no_table(&mut first);
                first.extend_from_slice(block);
                &first
            }
        };
        let end_stream = if end { flag::END_STREAM } else { 0 };
        let count = block.len().div_ceil(MAX_PAYLOAD);
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
    pub fn room(&self, id: StreamId) -> usize {
        let Some(stream) = self.streams.get(id).filter(|stream| stream.we_open) else { return 0 };
        let most = self.server.max_payload.min(MAX_PAYLOAD) as i64;
        self.send_window.min(stream.send_window).clamp(0, most) as usize
    }

    /// Whether we may still send on a stream.
    pub fn may_send(&self, id: StreamId) -> bool {
        self.streams.get(id).is_some_and(|stream| stream.we_open)
    }

    /// Sends content, not more than there is [room](Connection::room) for; nothing on a stream that is gone.
    pub fn send_data(&mut self, id: StreamId, bytes: &[u8], end: bool) {
        debug_assert!(bytes.len() <= self.room(id), "within the windows");
        let Some(stream) = self.streams.get_mut(id).filter(|stream| stream.we_open) else { return };
        stream.send_window -= bytes.len() as i64;
        stream.we_open = !end;
        self.send_window -= bytes.len() as i64;
        self.expected_updates = (self.expected_updates + 2).min(MOST_UPDATES);
        let flags = if end { flag::END_STREAM } else { 0 };
        frame::put(&mut self.output, kind::DATA, flags, id, bytes);
        self.forget_if_ended(id);
    }

    /// Sends the trailer section of this field block, which ends the request.
    pub fn send_trailers(&mut self, id: StreamId, block: &[u8]) {
        let Some(stream) = self.streams.get_mut(id).filter(|stream| stream.we_open) else { return };
        stream.we_open = false;
        self.put_block(id, true, block);
        self.forget_if_ended(id);
    }

    /// Ends a stream for a reason of ours.
    pub fn reset(&mut self, id: StreamId, code: ErrorCode) {
        if self.streams.get(id).is_some() {
            frame::put_reset(&mut self.output, id, code);
            self.forget(id, true);
        }
    }

    /// The owner of a stream goes. If only END_STREAM is to come on it, it may: a reset would look like one of a flood.
    pub fn abandon(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        let is_whole = stream.own.headed && !stream.we_open && stream.content_left == Some(0);
        if !is_whole {
            self.reset(id, ErrorCode::Cancel);
            return;
        }
        if !std::mem::replace(&mut stream.own.left, true) {
            let unread = std::mem::take(&mut stream.unread);
            self.left += 1;
            self.give_room(unread);
        }
    }

    /// Forgets a stream that has ended in both directions.
    pub(super) fn forget_if_ended(&mut self, id: StreamId) {
        if self.streams.get(id).is_some_and(Stream::has_ended) {
            self.forget(id, false);
        }
    }
}
