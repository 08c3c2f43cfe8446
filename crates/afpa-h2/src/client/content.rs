//! DATA, and the windows of both directions (RFC 9113 sections 5.2, 6.1, 6.9).

use super::{Connection, Event};
use crate::endpoint::{Fatal, StreamId};
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
        let stream = self.endpoint.streams.get(id).filter(|stream| stream.peer_open);
        let Some(is_left) = stream.map(|stream| stream.own.left) else {
            self.endpoint.give_room(payload.len() as u32);
            return self.on_late(id, now_ms);
        };
        if let Err(code) = self.endpoint.on_content(header, bytes.len()) {
            return Ok(self.fail(id, code));
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
        let increment = self.endpoint.on_window_update(header, payload, now_ms)?;
        let Some(increment) = increment else { return Ok(None) };
        let id = header.stream;
        self.must_be_opened(id, "WINDOW_UPDATE on a stream that was not opened")?;
        let Some(stream) = self.endpoint.streams.get_mut(id) else { return Ok(None) };
        match stream.grow(increment) {
            Ok(()) => Ok(None),
            Err(code) => Ok(self.fail(id, code)),
        }
    }

    /// The owner of a stream has read so many bytes of its content.
    pub fn read(&mut self, id: StreamId, bytes: usize) {
        self.endpoint.read(id, bytes);
    }
}
