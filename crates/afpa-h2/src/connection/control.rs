//! Frames about the connection, and about streams without content (RFC 9113 sections 6.3 to 6.8; RFC 9218 section 7).

use super::{Connection, DRAIN_PING, ErrorCode, Event, Fatal, Leaving, StreamId};
use crate::frame::{self, FrameHeader, MAX_WINDOW, flag, kind, setting};
use crate::priority::Urgency;

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
            let (id, value) = (u16::from_be_bytes([id_high, id_low]), [a, b, c, d]);
            self.on_setting(id, u32::from_be_bytes(value))?;
        }
        frame::put(&mut self.output, kind::SETTINGS, flag::ACK, 0, &[]);
        Ok(())
    }

    fn on_setting(&mut self, id: u16, value: u32) -> Result<(), Fatal> {
        match id {
            setting::ENABLE_PUSH
            | setting::ENABLE_CONNECT_PROTOCOL
            | setting::NO_RFC7540_PRIORITIES
                if value > 1 =>
            {
                Err(Fatal::protocol("a setting is neither 0 nor 1"))
            }
            setting::INITIAL_WINDOW_SIZE => self.on_initial_window(i64::from(value)),
            setting::MAX_FRAME_SIZE => match value {
                16_384..=16_777_215 => {
                    self.client.max_payload = value as usize;
                    Ok(())
                }
                _ => Err(Fatal::protocol("SETTINGS_MAX_FRAME_SIZE is out of range")),
            },
            // Our field blocks use no dynamic table, and we push nothing.
            _ => Ok(()),
        }
    }

    /// All streams follow a change of the initial window (section 6.9.2).
    fn on_initial_window(&mut self, window: i64) -> Result<(), Fatal> {
        let fatal = Fatal { code: ErrorCode::FlowControl, why: "a window grows beyond its limit" };
        if window > MAX_WINDOW {
            return Err(fatal);
        }
        let change = window - self.client.initial_window;
        self.client.initial_window = window;
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
        } else if payload == DRAIN_PING && self.leaving == Leaving::Announced {
            self.finish_leaving();
        }
        Ok(())
    }

    pub(super) fn on_goaway(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<(), Fatal> {
        self.charge(now_ms)?;
        match (header.stream, payload.len()) {
            (0, 8..) => Ok(()),
            (0, _) => Err(Fatal::size()),
            _ => Err(Fatal::protocol("GOAWAY on a stream")),
        }
    }

    pub(super) fn on_reset<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        let id = header.stream;
        if id == 0 || (id > self.newest && !self.is_beyond(id)) {
            return Err(Fatal::protocol("RST_STREAM on a stream that was not opened"));
        }
        if payload.len() != 4 {
            return Err(Fatal::size());
        }
        self.charge_reset(now_ms)?;
        // From now on the client, too, knows that it has ended: what comes later is its fault.
        let known = self.forget(id, false);
        Ok(known.then_some(Event::Reset { id }))
    }

    /// The priorities of RFC 7540 are not used, but they have to be well-formed (RFC 9113 section 6.3).
    pub(super) fn on_priority<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        self.charge(now_ms)?;
        let id = header.stream;
        if id == 0 {
            return Err(Fatal::protocol("PRIORITY without a stream"));
        }
        let Ok([a, b, c, d, _]) = <[u8; 5]>::try_from(payload) else {
            return self.fail(id, ErrorCode::FrameSize, now_ms);
        };
        match u32::from_be_bytes([a & 0x7f, b, c, d]) == id {
            true => self.fail(id, ErrorCode::Protocol, now_ms),
            false => Ok(None),
        }
    }

    pub(super) fn on_priority_update(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<(), Fatal> {
        self.charge(now_ms)?;
        if header.stream != 0 {
            return Err(Fatal::protocol("PRIORITY_UPDATE on a stream"));
        }
        let (&[a, b, c, d], value) = payload.split_first_chunk::<4>().ok_or(Fatal::size())?;
        let id: StreamId = u32::from_be_bytes([a & 0x7f, b, c, d]);
        if id == 0 {
            return Err(Fatal::protocol("PRIORITY_UPDATE without a stream"));
        }
        if let Some(stream) = self.streams.get_mut(id) {
            stream.own.priority = Urgency::parse(value);
        }
        Ok(())
    }
}
