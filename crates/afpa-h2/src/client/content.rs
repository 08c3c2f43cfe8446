//! DATA, and the windows of both directions (RFC 9113 sections 5.2, 6.1, 6.9).

use super::{Connection, Event};
use crate::endpoint::{Fatal, StreamId, count_content, unpadded};
use crate::frame::{self, ErrorCode, FrameHeader, MAX_WINDOW, flag};

impl Connection {
    pub(super) fn on_data<'i>(
        &mut self,
        header: FrameHeader,
        payload: &'i [u8],
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        let (id, end) = (header.stream, header.has(flag::END_STREAM));
        self.must_be_opened(id, "DATA on a stream that was not opened")?;
        let bytes = unpadded(header, payload)?;
        // Padding counts as content, too (section 6.9.1), but nobody has to read it.
        if !self.receive.take(payload.len()) {
            return Err(Fatal {
                code: ErrorCode::FlowControl,
                why: "more content than the connection's window allows",
            });
        }
        if bytes.is_empty() && !end {
            self.charge(now_ms)?;
        }
        let padding = (payload.len() - bytes.len()) as u32;
        let Some(stream) = self.streams.get_mut(id).filter(|stream| stream.peer_open) else {
            self.give_room(payload.len() as u32);
            return self.on_late(id, now_ms);
        };
        // From here on the content counts as unread: whatever ends the stream makes room for it.
        stream.unread += bytes.len() as u32;
        let fault = if !stream.own.headed {
            Some(ErrorCode::Protocol)
        } else if !stream.receive.take(payload.len()) {
            Some(ErrorCode::FlowControl)
        } else {
            count_content(&mut stream.content_left, bytes.len() as u64, end)
        };
        stream.peer_open &= !end;
        let more = stream.receive.give(padding).filter(|_| stream.peer_open);
        let is_left = stream.own.left;
        self.give_room(padding);
        if let Some(code) = fault {
            return Ok(self.fail(id, code));
        }
        if let Some(more) = more {
            frame::put_window_update(&mut self.output, id, more);
        }
        self.forget_if_ended(id);
        match is_left || (bytes.is_empty() && !end) {
            true => Ok(None),
            false => Ok(Some(Event::Data { id, bytes, end })),
        }
    }

    pub(super) fn on_window_update<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        let bytes = <[u8; 4]>::try_from(payload).map_err(|_| Fatal::size())?;
        let increment = i64::from(u32::from_be_bytes(bytes) & 0x7fff_ffff);
        // Each DATA frame may be answered by one for its stream and one for the connection.
        match self.expected_updates.checked_sub(1) {
            Some(expected) => self.expected_updates = expected,
            None => self.charge(now_ms)?,
        }
        let id = header.stream;
        if id == 0 {
            self.send_window += increment;
            return match (increment, self.send_window) {
                (0, _) => Err(Fatal::protocol("a window grows by nothing")),
                (_, window) if window > MAX_WINDOW => Err(Fatal {
                    code: ErrorCode::FlowControl,
                    why: "a window grows beyond its limit",
                }),
                _ => Ok(None),
            };
        }
        self.must_be_opened(id, "WINDOW_UPDATE on a stream that was not opened")?;
        let Some(stream) = self.streams.get_mut(id) else { return Ok(None) };
        stream.send_window += increment;
        match (increment, stream.send_window) {
            (0, _) => Ok(self.fail(id, ErrorCode::Protocol)),
            (_, window) if window > MAX_WINDOW => Ok(self.fail(id, ErrorCode::FlowControl)),
            _ => Ok(None),
        }
    }

    /// The owner of a stream has read so many bytes of its content.
    pub fn read(&mut self, id: StreamId, bytes: usize) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(stream.unread);
        stream.unread -= bytes;
        // A stream whose content has ended needs no larger window.
        if let Some(more) = stream.receive.give(bytes).filter(|_| stream.peer_open) {
            frame::put_window_update(&mut self.output, id, more);
        }
        self.give_room(bytes);
    }

    /// Makes room on the connection.
    pub(super) fn give_room(&mut self, bytes: u32) {
        if let Some(more) = self.receive.give(bytes) {
            frame::put_window_update(&mut self.output, 0, more);
        }
    }
}
