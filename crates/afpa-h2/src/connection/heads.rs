//! HEADERS and CONTINUATION (RFC 9113 sections 6.2, 6.10, 8.1): requests and trailers.

use super::{Connection, ErrorCode, Event, Fatal, Serving, Stream, StreamId, Window};
use crate::endpoint::unpadded;
use crate::frame::{FrameHeader, flag};
use crate::request::{Framing, RequestHead};

/// A field block whose end has not arrived.
#[derive(Debug)]
pub(super) struct Block {
    of: Head,
    bytes: Vec<u8>,
    continuations: u32,
}

/// What its first frame said.
#[derive(Clone, Copy, Debug)]
struct Head {
    id: StreamId,
    /// No content follows.
    end: bool,
    /// The stream was said to depend on itself (RFC 7540 section 5.3.1).
    depends_on_itself: bool,
}

impl Connection {
    pub(super) fn on_headers<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        head: &mut RequestHead,
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        let id = header.stream;
        if id.is_multiple_of(2) {
            return Err(Fatal::protocol("HEADERS on a stream that no client can open"));
        }
        let mut fragment = unpadded(header, payload)?;
        let mut depends_on_itself = false;
        if header.has(flag::PRIORITY) {
            let Some((&[a, b, c, d, _], rest)) = fragment.split_first_chunk::<5>() else {
                return Err(Fatal::size());
            };
            depends_on_itself = u32::from_be_bytes([a & 0x7f, b, c, d]) == id;
            fragment = rest;
        }
        let of = Head { id, end: header.has(flag::END_STREAM), depends_on_itself };
        if header.has(flag::END_HEADERS) {
            return self.on_block(of, fragment, head, now_ms);
        }
        if fragment.len() > self.limits.block {
            return Err(Fatal::calm("a field block is too long"));
        }
        self.block = Some(Block { of, bytes: fragment.to_vec(), continuations: 0 });
        Ok(None)
    }

    pub(super) fn on_continuation<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        head: &mut RequestHead,
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        let Some(block) = self.block.as_mut().filter(|block| block.of.id == header.stream) else {
            return Err(Fatal::protocol("CONTINUATION continues nothing"));
        };
        block.continuations += 1;
        if block.continuations > self.limits.continuations {
            return Err(Fatal::calm("a field block has too many CONTINUATION frames"));
        }
        if block.bytes.len() + payload.len() > self.limits.block {
            return Err(Fatal::calm("a field block is too long"));
        }
        block.bytes.extend_from_slice(payload);
        if !header.has(flag::END_HEADERS) {
            return Ok(None);
        }
        let Some(Block { of, bytes, .. }) = self.block.take() else { return Ok(None) };
        self.on_block(of, &bytes, head, now_ms)
    }

    /// A whole field block. It is decoded whatever becomes of it, because the blocks behind it depend on it.
    fn on_block<'i>(
        &mut self,
        of: Head,
        block: &[u8],
        head: &mut RequestHead,
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        let Head { id, end, .. } = of;
        if self.streams.get(id).is_some() {
            return self.on_trailers(id, end, block, head, now_ms);
        }
        if id > self.newest {
            return self.on_request(of, block, head, now_ms);
        }
        match self.ended.by_us(id) {
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
        if self.streams.len() >= self.limits.streams as usize {
            return self.fail(id, ErrorCode::Refused, now_ms);
        }
        let asked = match head.finish(end) {
            Ok(asked) if !depends_on_itself => asked,
            _ => return self.fail(id, ErrorCode::Protocol, now_ms),
        };
        self.streams.push(Stream {
            id,
            peer_open: !end,
            we_open: true,
            send_window: self.client.initial_window,
            receive: Window::new(i64::from(self.limits.stream_window)),
            unread: 0,
            content_left: asked.content_length,
            own: Serving {
                is_tunnel: head.framing() == Framing::Tunnel,
                priority: asked.priority,
                pending: None,
                last_turn: 0,
            },
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
        let Some(stream) = self.streams.get_mut(id) else { return Ok(None) };
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
        head.begin(self.limits.head);
        match self.hpack.decode(block, |name, value| head.field(name, value)) {
            Ok(()) => Ok(None),
            Err(_) => {
                Err(Fatal { code: ErrorCode::Compression, why: "a field block cannot be decoded" })
            }
        }
    }
}
