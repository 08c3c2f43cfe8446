//! Frames about the connection, and about streams without content (RFC 9113 sections 6.4 to 6.8).

use super::{Connection, Event, Gone, Phase};
use crate::endpoint::{Fatal, StreamId};
use crate::frame::{self, ErrorCode, FrameHeader, MAX_WINDOW, flag, kind, setting};

impl Connection {
    pub(super) fn on_settings(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<(), Fatal> {
        self.charge(now_ms)?;
        if header.stream != 0 {
            return Err(Fatal::protocol("SETTINGS on a stream"));
        }
        if header.has(flag::ACK) {
            return if payload.is_empty() { Ok(()) } else { Err(Fatal::size()) };
        }
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Fatal::size());
        }
        for &[id_high, id_low, a, b, c, d] in settings {
            let id = u16::from_be_bytes([id_high, id_low]);
            self.on_setting(id, u32::from_be_bytes([a, b, c, d]))?;
        }
        frame::put(&mut self.output, kind::SETTINGS, flag::ACK, 0, &[]);
        Ok(())
    }

    fn on_setting(&mut self, id: u16, value: u32) -> Result<(), Fatal> {
        match id {
            // Section 6.5.2: a server has nobody to push to it.
            setting::ENABLE_PUSH if value != 0 => {
                Err(Fatal::protocol("a server that would be pushed to"))
            }
            setting::MAX_CONCURRENT_STREAMS => {
                self.server.streams = value;
                Ok(())
            }
            setting::INITIAL_WINDOW_SIZE => self.on_initial_window(i64::from(value)),
            setting::MAX_FRAME_SIZE => match value {
                16_384..=16_777_215 => {
                    self.server.max_payload = value as usize;
                    Ok(())
                }
                _ => Err(Fatal::protocol("SETTINGS_MAX_FRAME_SIZE is out of range")),
            },
            // Our field blocks use no dynamic table.
            _ => Ok(()),
        }
    }

    /// All streams follow a change of the initial window (section 6.9.2).
    fn on_initial_window(&mut self, window: i64) -> Result<(), Fatal> {
        let fatal = Fatal { code: ErrorCode::FlowControl, why: "a window grows beyond its limit" };
        if window > MAX_WINDOW {
            return Err(fatal);
        }
        let change = window - self.server.initial_window;
        self.server.initial_window = window;
        for stream in self.streams.iter_mut() {
            stream.send_window += change;
            if stream.send_window > MAX_WINDOW {
                return Err(fatal);
            }
        }
        Ok(())
    }

    pub(super) fn on_ping(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<(), Fatal> {
        self.charge(now_ms)?;
        if header.stream != 0 {
            return Err(Fatal::protocol("PING on a stream"));
        }
        if payload.len() != 8 {
            return Err(Fatal::size());
        }
        if !header.has(flag::ACK) {
            frame::put(&mut self.output, kind::PING, flag::ACK, 0, payload);
        }
        Ok(())
    }

    /// The server will not look at streams beyond the one that it names. It may name a lower one later, but never a higher
    /// one (section 6.8).
    pub(super) fn on_goaway<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        self.charge(now_ms)?;
        if header.stream != 0 {
            return Err(Fatal::protocol("GOAWAY on a stream"));
        }
        let (&[a, b, c, d, ..], _) = payload.split_first_chunk::<8>().ok_or(Fatal::size())?;
        let last: StreamId = u32::from_be_bytes([a & 0x7f, b, c, d]);
        self.last = Some(self.last.map_or(last, |before| before.min(last)));
        Ok(Some(Event::Leaving))
    }

    /// A stream that the server will not look at, and that is forgotten now.
    pub fn next_unprocessed(&mut self) -> Option<StreamId> {
        let last = self.last?;
        let id = self.streams.iter().map(|stream| stream.id).find(|&id| id > last)?;
        self.forget(id, true);
        Some(id)
    }

    pub(super) fn on_reset<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        let id = header.stream;
        self.must_be_opened(id, "RST_STREAM on a stream that was not opened")?;
        let code = <[u8; 4]>::try_from(payload).map_err(|_| Fatal::size())?;
        let Some(stream) = self.streams.get(id) else {
            // The two may have crossed, but not for ever.
            return self.charge(now_ms).map(|()| None);
        };
        let is_untouched = !stream.own.headed && stream.own.interims == 0;
        let is_refused = u32::from_be_bytes(code) == ErrorCode::Refused as u32;
        let why = if is_refused && is_untouched { Gone::Unprocessed } else { Gone::Reset };
        Ok(self.forget(id, false).then_some(Event::Gone { id, why }))
    }

    /// Opens no more streams, and tells the server so.
    pub fn leave(&mut self) {
        if self.last.is_none() && self.phase != Phase::Dead {
            self.last = Some(StreamId::MAX);
            frame::put_goaway(&mut self.output, 0, ErrorCode::NoError, "");
        }
    }
}
