//! HEADERS and CONTINUATION (RFC 9113 sections 6.2, 6.10, 8.1): responses and trailers.

use super::{Connection, Event, MOST_INTERIMS, ResponseHead};
use crate::endpoint::{Fatal, StreamId, unpadded};
use crate::frame::{ErrorCode, FrameHeader, flag};

/// A field block whose end has not arrived.
#[derive(Debug)]
pub(super) struct Block {
    id: StreamId,
    /// No content follows.
    end: bool,
    bytes: Vec<u8>,
    continuations: u32,
}

impl Connection {
    pub(super) fn on_headers<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        head: &mut ResponseHead,
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        let (id, end) = (header.stream, header.has(flag::END_STREAM));
        self.must_be_opened(id, "HEADERS on a stream that was not opened")?;
        let mut fragment = unpadded(header, payload)?;
        if header.has(flag::PRIORITY) {
            fragment = fragment.get(5..).ok_or(Fatal::size())?;
        }
        if header.has(flag::END_HEADERS) {
            return self.on_block((id, end), fragment, head, now_ms);
        }
        if fragment.len() > self.limits.block {
            return Err(Fatal::calm("a field block is too long"));
        }
        self.block = Some(Block { id, end, bytes: fragment.to_vec(), continuations: 0 });
        Ok(None)
    }

    pub(super) fn on_continuation<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        head: &mut ResponseHead,
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        let Some(block) = self.block.as_mut().filter(|block| block.id == header.stream) else {
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
        let Some(Block { id, end, bytes, .. }) = self.block.take() else { return Ok(None) };
        self.on_block((id, end), &bytes, head, now_ms)
    }

    /// A whole field block. It is decoded whatever becomes of it, because the blocks behind it depend on it.
    fn on_block<'i>(
        &mut self,
        (id, end): (StreamId, bool),
        block: &[u8],
        head: &mut ResponseHead,
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        head.begin(self.limits.head);
        self.hpack.decode(block, |name, value| head.field(name, value)).map_err(|_| Fatal {
            code: ErrorCode::Compression,
            why: "a field block cannot be decoded",
        })?;
        match self.streams.get(id) {
            Some(stream) if stream.peer_open && !stream.own.left => {}
            _ => return self.on_late(id, now_ms),
        }
        match self.streams.get(id).is_some_and(|stream| stream.own.headed) {
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
        let stream = self.streams.get_mut(id)?;
        let Ok(said) = head.finish(end, stream.own.asked_head) else {
            return self.fail(id, ErrorCode::Protocol);
        };
        if said.interim {
            stream.own.interims += 1;
            return match stream.own.interims > MOST_INTERIMS {
                true => self.fail(id, ErrorCode::EnhanceYourCalm),
                false => Some(Event::Head { id, interim: true, end: false }),
            };
        }
        stream.own.headed = true;
        stream.content_left = said.content_length;
        stream.peer_open = !end;
        if end && stream.content_left.is_some_and(|left| left > 0) {
            return self.fail(id, ErrorCode::Protocol);
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
        let stream = self.streams.get_mut(id)?;
        if !end || !stream.is_whole() || head.finish_trailers().is_err() {
            return self.fail(id, ErrorCode::Protocol);
        }
        stream.peer_open = false;
        self.forget_if_ended(id);
        Some(Event::Trailers { id })
    }

    /// A frame on a stream that has ended: of one that we have reset the server may not know that yet.
    pub(super) fn on_late<'i>(
        &mut self,
        id: StreamId,
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        if self.streams.get(id).is_some_and(|stream| stream.own.left) {
            // Trailers that nobody waits for, or more than was announced.
            self.reset(id, ErrorCode::Cancel);
            return Ok(None);
        }
        match self.ended.by_us(id) {
            Some(true) => Ok(None),
            Some(false) => Err(Fatal {
                code: ErrorCode::StreamClosed,
                why: "a frame on a stream that has ended",
            }),
            // Which of the two is not known any more.
            None if self.streams.get(id).is_none() => self.charge(now_ms).map(|()| None),
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
