//! DATA, and the windows of both directions (RFC 9113 sections 5.2, 6.1, 6.9).

use super::{Connection, ErrorCode, Event, Fatal, StreamId};
use crate::frame::{FrameHeader, flag};

impl Connection {
    pub(super) fn on_data<'i>(
        &mut self,
        header: FrameHeader,
        payload: &'i [u8],
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        let (id, end) = (header.stream, header.has(flag::END_STREAM));
        self.must_be_opened(id, "DATA on a stream that was not opened")?;
        let bytes = self.endpoint.on_data(header, payload, now_ms)?;
        if !self.has(id) {
            self.endpoint.give_room(payload.len() as u32);
            return match self.endpoint.ended.by_us(id) {
                Some(true) => Ok(None),
                _ if self.is_beyond(id) => Ok(None),
                _ => self.fail(id, ErrorCode::StreamClosed, now_ms),
            };
        }
        if let Err(code) = self.endpoint.on_content(header, bytes.len()) {
            return self.fail(id, code, now_ms);
        }
        self.forget_if_ended(id);
        match bytes.is_empty() && !end {
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
        let increment = self.endpoint.on_window_update(header, payload, now_ms)?;
        let Some(increment) = increment else { return Ok(None) };
        let id = header.stream;
        self.must_be_opened(id, "WINDOW_UPDATE on a stream that was not opened")?;
        let Some(stream) = self.endpoint.streams.get_mut(id) else { return Ok(None) };
        match stream.grow(increment) {
            Ok(()) => Ok(None),
            Err(code) => self.fail(id, code, now_ms),
        }
    }

    /// The owner of a stream has read so many bytes of its content, or will not look at them.
    pub fn read(&mut self, id: StreamId, bytes: usize) {
        match self.lingers(id) {
            true => self.endpoint.discard(id, bytes),
            false => self.endpoint.read(id, bytes),
        }
    }
}
