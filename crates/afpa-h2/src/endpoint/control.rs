//! SETTINGS and PING (RFC 9113 sections 6.5 and 6.7).

use super::{Endpoint, Fatal};
use crate::frame::{self, ErrorCode, FrameHeader, MAX_WINDOW, flag, kind, setting};

impl<T> Endpoint<T> {
    /// SETTINGS. `own` gets each that concerns only one of the endpoints.
    pub(crate) fn on_settings(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
        mut own: impl FnMut(u16, u32) -> Result<(), Fatal>,
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
            match (id, u32::from_be_bytes([a, b, c, d])) {
                (setting::INITIAL_WINDOW_SIZE, window) => self.on_initial_window(window.into())?,
                // Frames of ours are never longer than every endpoint has to accept.
                (setting::MAX_FRAME_SIZE, 16_384..=16_777_215) => {}
                (setting::MAX_FRAME_SIZE, _) => {
                    return Err(Fatal::protocol("SETTINGS_MAX_FRAME_SIZE is out of range"));
                }
                // Our field blocks use no dynamic table.
                (setting::HEADER_TABLE_SIZE, _) => {}
                (id, value) => own(id, value)?,
            }
        }
        frame::put(&mut self.output, kind::SETTINGS, flag::ACK, 0, &[]);
        Ok(())
    }

    /// All streams follow a change of the initial window (section 6.9.2).
    fn on_initial_window(&mut self, window: i64) -> Result<(), Fatal> {
        let fatal = Fatal { code: ErrorCode::FlowControl, why: "a window grows beyond its limit" };
        if window > MAX_WINDOW {
            return Err(fatal);
        }
        let change = window - self.initial_window;
        self.initial_window = window;
        for stream in self.streams.iter_mut() {
            stream.send_window += change;
            if stream.send_window > MAX_WINDOW {
                return Err(fatal);
            }
        }
        Ok(())
    }

    /// PING. Answers it, or returns whether it is the answer to one of ours.
    pub(crate) fn on_ping(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<bool, Fatal> {
        self.charge(now_ms)?;
        if header.stream != 0 {
            return Err(Fatal::protocol("PING on a stream"));
        }
        if payload.len() != 8 {
            return Err(Fatal::size());
        }
        let is_answer = header.has(flag::ACK);
        if !is_answer {
            frame::put(&mut self.output, kind::PING, flag::ACK, 0, payload);
        }
        Ok(is_answer)
    }
}
