//! HEADERS and CONTINUATION (RFC 9113 sections 6.2, 6.10, 8.1): requests and trailers.

use super::{Connection, ErrorCode, Event, Fatal, Serving, StreamId};
use crate::endpoint::Head;
use crate::endpoint::stream::Stream;
use crate::frame::{FrameHeader, kind};
use crate::request::{Framing, RequestHead};

impl Connection {
    pub(super) fn on_head<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        head: &mut RequestHead,
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        if header.kind == kind::HEADERS && header.stream.is_multiple_of(2) {
            return Err(Fatal::protocol("HEADERS on a stream that no client can open"));
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
        head: &mut RequestHead,
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        let Head { id, end, .. } = of;
        if self.endpoint.streams.get(id).is_some() {
            return self.on_trailers(id, end, block, head, now_ms);
        }
        if id > self.newest {
            return self.on_request(of, block, head, now_ms);
        }
        match self.endpoint.ended.by_us(id) {
            _ if self.is_beyond(id) => self.decode(block, head),
            Some(true) => self.decode(block, head),
            Some(false) => Err(Fatal {
                code: ErrorCode::StreamClosed,
                why: "HEADERS on a stream that has ended",
            }),
            None => Err(Fatal::protocol("a stream has a lower number than one before it")),
        }
    }

    fn on_request<'i>(
        &mut self,
        of: Head,
        block: &[u8],
        head: &mut RequestHead,
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        let Head { id, end, depends_on_itself } = of;
        self.newest = id;
        self.decode::<()>(block, head)?;
        if self.is_beyond(id) {
            return Ok(None);
        }
        if self.endpoint.streams.len() >= self.endpoint.limits.streams as usize {
            return self.fail(id, ErrorCode::Refused, now_ms);
        }
        let asked = match head.finish(end) {
            Ok(asked) if !depends_on_itself => asked,
            _ => return self.fail(id, ErrorCode::Protocol, now_ms),
        };
        let own = Serving {
            is_tunnel: head.framing() == Framing::Tunnel,
            priority: asked.priority,
            pending: None,
            last_turn: 0,
        };
        self.endpoint.streams.push(Stream {
            peer_open: !end,
            headed: true,
            content_left: asked.content_length,
            ..self.endpoint.new_stream(id, own)
        });
        Ok(Some(Event::Request { id, end }))
    }

    fn on_trailers<'i>(
        &mut self,
        id: StreamId,
        end: bool,
        block: &[u8],
        head: &mut RequestHead,
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        self.decode::<()>(block, head)?;
        let Some(stream) = self.endpoint.streams.get_mut(id) else { return Ok(None) };
        if !stream.peer_open {
            return self.fail(id, ErrorCode::StreamClosed, now_ms);
        }
        if !end || !stream.is_whole() || head.finish_trailers().is_err() {
            return self.fail(id, ErrorCode::Protocol, now_ms);
        }
        stream.peer_open = false;
        self.forget_if_ended(id);
        Ok(Some(Event::Trailers { id }))
    }

    fn decode<E>(&mut self, block: &[u8], head: &mut RequestHead) -> Result<Option<E>, Fatal> {
        head.begin(self.endpoint.limits.head);
        self.endpoint.decode(block, |name, value| head.field(name, value)).map(|()| None)
    }
}
