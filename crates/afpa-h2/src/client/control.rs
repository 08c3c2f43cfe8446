//! Frames about the connection, and about streams without content (RFC 9113 sections 6.4 to 6.8).

use super::{Connection, Event, Gone, Phase};
use crate::endpoint::{Fatal, StreamId};
use crate::frame::{self, ErrorCode, FrameHeader, kind, setting};

impl Connection {
    pub(super) fn on_settings(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<(), Fatal> {
        let (most_streams, takes_tunnels) = (&mut self.most_streams, &mut self.takes_tunnels);
        self.endpoint.on_settings(header, payload, now_ms, |id, value| match id {
            // Section 6.5.2: a server must not enable push, because clients do not push.
            setting::ENABLE_PUSH if value != 0 => {
                Err(Fatal::protocol("a server that would be pushed to"))
            }
            setting::MAX_CONCURRENT_STREAMS => {
                *most_streams = value;
                Ok(())
            }
            // RFC 8441 section 3: a server cannot take back an offer that may have been accepted.
            setting::ENABLE_CONNECT_PROTOCOL if value > 1 || (value == 0 && *takes_tunnels) => {
                Err(Fatal::protocol(
                    "SETTINGS_ENABLE_CONNECT_PROTOCOL is neither 0 nor 1, or 0 after 1",
                ))
            }
            setting::ENABLE_CONNECT_PROTOCOL => {
                *takes_tunnels = value == 1;
                Ok(())
            }
            _ => Ok(()),
        })
    }

    /// The server will not look at streams beyond the one that it names. It may name a lower one later, but never a higher
    /// one (section 6.8).
    pub(super) fn on_goaway<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        self.endpoint.charge(now_ms)?;
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
        let id = self.endpoint.streams.iter().map(|stream| stream.id).find(|&id| id > last)?;
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
        let Some(stream) = self.endpoint.streams.get(id) else {
            // The two may have crossed, but not for ever.
            return self.endpoint.charge(now_ms).map(|()| None);
        };
        let is_untouched = !stream.headed && stream.own.interims == 0;
        let code = u32::from_be_bytes(code);
        let is_refused = code == ErrorCode::Refused as u32;
        let why = if is_refused && is_untouched { Gone::Unprocessed } else { Gone::Reset(code) };
        Ok(self.forget(id, false).then_some(Event::Gone { id, why }))
    }

    /// Asks the server whether it is there (section 6.7). Any bytes that it sends next count as the answer.
    pub fn ping(&mut self) {
        if self.phase != Phase::Dead {
            frame::put(&mut self.endpoint.output, kind::PING, 0, 0, b"present?");
        }
    }

    /// Opens no more streams, and announces it to the server.
    pub fn leave(&mut self) {
        if self.last.is_none() && self.phase != Phase::Dead {
            self.last = Some(StreamId::MAX);
            frame::put_goaway(&mut self.endpoint.output, 0, ErrorCode::NoError, "");
        }
    }
}
