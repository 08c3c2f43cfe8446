//! Frames about the connection, and about streams without content (RFC 9113 sections 6.3 to 6.8; RFC 9218 section 7).

use super::{Connection, DRAIN_PING, ErrorCode, Event, Fatal, Leaving, StreamId};
use crate::frame::{FrameHeader, setting};
use crate::priority::Urgency;

impl Connection {
    pub(super) fn on_settings(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<(), Fatal> {
        self.endpoint.on_settings(header, payload, now_ms, |id, value| match id {
            setting::ENABLE_PUSH
            | setting::ENABLE_CONNECT_PROTOCOL
            | setting::NO_RFC7540_PRIORITIES
                if value > 1 =>
            {
                Err(Fatal::protocol("a setting is neither 0 nor 1"))
            }
            // We push nothing.
            _ => Ok(()),
        })
    }

    pub(super) fn on_ping(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<(), Fatal> {
        let is_answer = self.endpoint.on_ping(header, payload, now_ms)?;
        if is_answer && payload == DRAIN_PING && self.leaving == Leaving::Announced {
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
        self.endpoint.charge(now_ms)?;
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
        self.must_be_opened(id, "RST_STREAM on a stream that was not opened")?;
        if payload.len() != 4 {
            return Err(Fatal::size());
        }
        // A client that has its response may stop the request (section 8.1), as it would be asked to.
        if !self.lingers(id) {
            self.charge_reset(now_ms)?;
        }
        // The client itself has ended the stream: later frames on it are the client's fault.
        Ok(self.endpoint.forget(id, false).map(|_| Event::Reset { id }))
    }

    /// The priorities of RFC 7540 are not used, but they have to be well-formed (RFC 9113 section 6.3).
    pub(super) fn on_priority<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        self.endpoint.charge(now_ms)?;
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
        self.endpoint.charge(now_ms)?;
        if header.stream != 0 {
            return Err(Fatal::protocol("PRIORITY_UPDATE on a stream"));
        }
        let (&[a, b, c, d], value) = payload.split_first_chunk::<4>().ok_or(Fatal::size())?;
        let id: StreamId = u32::from_be_bytes([a & 0x7f, b, c, d]);
        if id == 0 {
            return Err(Fatal::protocol("PRIORITY_UPDATE without a stream"));
        }
        if let Some(stream) = self.endpoint.streams.get_mut(id) {
            stream.own.priority = Urgency::parse(value);
        }
        Ok(())
    }
}
