//! DATA, and the windows of both directions (RFC 9113 sections 5.2, 6.1, 6.9).

use super::stream::{Stream, grow};
use super::{Endpoint, Fatal, StreamId, unpadded};
use crate::frame::{self, ErrorCode, FrameHeader, HEADER, MAX_PAYLOAD, flag, kind};

/// WINDOW_UPDATE frames that may be outstanding.
const MOST_UPDATES: u32 = 4096;

impl<T> Endpoint<T> {
    /// DATA, as far as it concerns the connection. Returns the content without its padding.
    pub(crate) fn on_data<'i>(
        &mut self,
        header: FrameHeader,
        payload: &'i [u8],
        now_ms: u64,
    ) -> Result<&'i [u8], Fatal> {
        let bytes = unpadded(header, payload)?;
        // Padding counts as content, too (section 6.9.1), but nobody has to read it.
        if !self.receive.take(payload.len()) {
            return Err(Fatal {
                code: ErrorCode::FlowControl,
                why: "more content than the connection's window allows",
            });
        }
        if bytes.is_empty() && !header.has(flag::END_STREAM) {
            self.charge(now_ms)?;
        }
        Ok(bytes)
    }

    /// DATA, as far as it concerns its stream: so many bytes of content. An error ends the stream.
    pub(crate) fn on_content(
        &mut self,
        header: FrameHeader,
        bytes: usize,
    ) -> Result<(), ErrorCode> {
        let (id, end) = (header.stream, header.has(flag::END_STREAM));
        let Some(stream) = self.streams.get_mut(id) else { return Ok(()) };
        let padding = (header.length - bytes) as u32;
        // From here on the content counts as unread, so that any end of the stream makes room for it.
        stream.unread += bytes as u32;
        let taken = stream.take(header.length, bytes as u64, end);
        stream.peer_open &= !end;
        let more = stream.receive.give(padding).filter(|_| stream.peer_open);
        self.give_room(padding);
        taken?;
        if let Some(more) = more {
            frame::put_window_update(&mut self.output, id, more);
        }
        Ok(())
    }

    /// WINDOW_UPDATE. Returns by how much the window of a stream grows; `None`: it was the connection's.
    pub(crate) fn on_window_update(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<Option<i64>, Fatal> {
        let bytes = <[u8; 4]>::try_from(payload).map_err(|_| Fatal::size())?;
        let increment = i64::from(u32::from_be_bytes(bytes) & 0x7fff_ffff);
        // Each DATA frame may be answered by one for its stream and one for the connection.
        match self.expected_updates.checked_sub(1) {
            Some(expected) => self.expected_updates = expected,
            None => self.charge(now_ms)?,
        }
        if header.stream != 0 {
            return Ok(Some(increment));
        }
        grow(&mut self.send_window, increment).map(|()| None).map_err(|code| match code {
            ErrorCode::FlowControl => Fatal { code, why: "a window grows beyond its limit" },
            _ => Fatal { code, why: "a window grows by nothing" },
        })
    }

    /// The owner of a stream has read so many bytes of its content, or will not look at them.
    pub(crate) fn read(&mut self, id: StreamId, bytes: usize) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(stream.unread);
        stream.unread -= bytes;
        // A stream whose content has ended needs no larger window.
        if let Some(more) = stream.receive.give(bytes).filter(|_| stream.peer_open) {
            frame::put_window_update(&mut self.output, id, more);
        }
        self.give_room(bytes);
    }

    /// The same of a stream whose window is to grow no more.
    pub(crate) fn discard(&mut self, id: StreamId, bytes: usize) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(stream.unread);
        stream.unread -= bytes;
        self.give_room(bytes);
    }

    /// Makes room on the connection.
    pub(crate) fn give_room(&mut self, bytes: u32) {
        if let Some(more) = self.receive.give(bytes) {
            frame::put_window_update(&mut self.output, 0, more);
        }
    }

    /// Bytes of content that one DATA frame may carry on a stream now.
    #[inline]
    pub(crate) fn room(&self, id: StreamId) -> usize {
        let Some(stream) = self.streams.get(id).filter(|stream| stream.we_open) else { return 0 };
        self.send_window.min(stream.send_window).clamp(0, MAX_PAYLOAD as i64) as usize
    }

    /// Begins a DATA frame, whose content is appended to the output. Returns where it begins.
    pub(crate) fn begin_data(&mut self) -> usize {
        frame::begin(&mut self.output)
    }

    /// Ends a DATA frame, and returns its stream. If that is gone, so is the frame.
    #[inline]
    pub(crate) fn end_data(
        &mut self,
        start: usize,
        id: StreamId,
        end: bool,
    ) -> Option<&mut Stream<T>> {
        let length = self.output.len().saturating_sub(start + HEADER);
        let Some(stream) = self.streams.get_mut(id).filter(|stream| stream.we_open) else {
            self.output.truncate(start);
            return None;
        };
        stream.send_window -= length as i64;
        stream.we_open = !end;
        self.send_window -= length as i64;
        debug_assert!(length == 0 || stream.send_window >= 0 && self.send_window >= 0);
        self.expected_updates = (self.expected_updates + 2).min(MOST_UPDATES);
        let flags = if end { flag::END_STREAM } else { 0 };
        let header = FrameHeader { length, kind: kind::DATA, flags, stream: id };
        frame::end(&mut self.output, start, header);
        Some(stream)
    }
}
