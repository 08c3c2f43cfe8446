//! HEADERS and CONTINUATION (RFC 9113 sections 6.2, 6.10, 8.1): responses and trailers.

use super::{Connection, Event, MOST_INTERIMS, ResponseHead};
use crate::endpoint::{Fatal, Head, StreamId};
use crate::frame::{ErrorCode, FrameHeader, kind};

impl Connection {
    pub(super) fn on_head<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        head: &mut ResponseHead,
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        if header.kind == kind::HEADERS {
            self.must_be_opened(header.stream, "HEADERS on a stream that was not opened")?;
        }
        match self.endpoint.on_head(header, payload)? {
            Some((of, block)) => self.on_block(of, &block, head, now_ms),
            None => Ok(None),
        }
    }

    /// A whole field block. It is decoded in any case, because later blocks depend on it.
    fn on_block<'i>(
        &mut self,
        of: Head,
        block: &[u8],
        head: &mut ResponseHead,
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        let Head { id, end, .. } = of;
        let asked = self.endpoint.streams.get(id).map(|stream| &stream.own);
        head.begin(self.endpoint.limits.head, asked.is_some_and(|own| own.tunnel.is_some()));
        self.endpoint.decode(block, |name, value| head.field(name, value))?;
        match self.endpoint.streams.get(id) {
            Some(stream) if stream.peer_open && !stream.own.left => {}
            _ => return self.on_late(id, now_ms),
        }
        match self.endpoint.streams.get(id).is_some_and(|stream| stream.headed) {
            true => Ok(self.on_trailers(id, end, head)),
            false => Ok(self.on_response(id, end, head)),
        }
    }

    fn on_response<'i>(
        &mut self,
        id: StreamId,
        end: bool,
        head: &mut ResponseHead,
    ) -> Option<Event<'i>> {
        let stream = self.endpoint.streams.get_mut(id)?;
        let own = &mut stream.own;
        let Ok(said) = head.finish(end, own.asked_head, own.tunnel.as_deref()) else {
            return self.fail(id, ErrorCode::Protocol);
        };
        if said.interim {
            stream.own.interims += 1;
            return match stream.own.interims > MOST_INTERIMS {
                true => self.fail(id, ErrorCode::EnhanceYourCalm),
                false => Some(Event::Head { id, interim: true, end: false }),
            };
        }
        stream.headed = true;
        stream.content_left = said.content_length;
        stream.peer_open = !end;
        if end && stream.content_left.is_some_and(|left| left > 0) {
            return self.fail(id, ErrorCode::Protocol);
        }
        if stream.own.tunnel.is_some() && !head.switches() {
            // An answer like others, to a request that has no content then.
            stream.own.tunnel = None;
            self.send_data(id, b"", true);
        }
        self.forget_if_ended(id);
        Some(Event::Head { id, interim: false, end })
    }

    fn on_trailers<'i>(
        &mut self,
        id: StreamId,
        end: bool,
        head: &mut ResponseHead,
    ) -> Option<Event<'i>> {
        let stream = self.endpoint.streams.get_mut(id)?;
        // A tunnel has none (RFC 9113 section 8.5).
        let is_tunnel = stream.own.tunnel.is_some();
        if !end || is_tunnel || !stream.is_whole() || head.finish_trailers().is_err() {
            return self.fail(id, ErrorCode::Protocol);
        }
        stream.peer_open = false;
        self.forget_if_ended(id);
        Some(Event::Trailers { id })
    }

    /// A frame on a stream that has ended. If we have reset the stream, the server may not know that yet.
    pub(super) fn on_late<'i>(
        &mut self,
        id: StreamId,
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        if self.endpoint.streams.get(id).is_some_and(|stream| stream.own.left) {
            // Trailers of a stream whose owner has gone, or more content than was announced.
            self.reset(id, ErrorCode::Cancel);
            return Ok(None);
        }
        match self.endpoint.ended.by_us(id) {
            Some(true) => Ok(None),
            Some(false) => Err(Fatal {
                code: ErrorCode::StreamClosed,
                why: "a frame on a stream that has ended",
            }),
            // Which of the two is not known any more.
            None if self.endpoint.streams.get(id).is_none() => {
                self.endpoint.charge(now_ms).map(|()| None)
            }
            None => Ok(self.fail(id, ErrorCode::StreamClosed)),
        }
    }

    /// The server may only answer.
    pub(super) fn must_be_opened(&self, id: StreamId, why: &'static str) -> Result<(), Fatal> {
        match id.is_multiple_of(2) || id >= self.next {
            true => Err(Fatal::protocol(why)),
            false => Ok(()),
        }
    }
}
