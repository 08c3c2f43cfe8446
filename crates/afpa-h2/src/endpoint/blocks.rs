//! Field blocks (RFC 9113 section 4.3): HEADERS and CONTINUATION (sections 6.2 and 6.10), as they come and as they go.

use std::borrow::Cow;

use super::{Endpoint, Fatal, StreamId, unpadded};
use crate::frame::{self, ErrorCode, FrameHeader, HEADER, MAX_PAYLOAD, flag, kind};
use crate::hpack::encode;

/// A field block whose end has not arrived.
#[derive(Debug)]
pub(super) struct Block {
    of: Head,
    bytes: Vec<u8>,
    continuations: u32,
}

/// The facts in the first frame of a field block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) id: StreamId,
    /// No content follows.
    pub(crate) end: bool,
    /// The stream was said to depend on itself (RFC 7540 section 5.3.1).
    pub(crate) depends_on_itself: bool,
}

/// A field block that has arrived.
type WholeBlock<'i> = (Head, Cow<'i, [u8]>);

impl<T> Endpoint<T> {
    /// HEADERS or CONTINUATION. Returns the field block if this was the last of it.
    #[inline]
    pub(crate) fn on_head<'i>(
        &mut self,
        header: FrameHeader,
        payload: &'i [u8],
    ) -> Result<Option<WholeBlock<'i>>, Fatal> {
        if header.kind == kind::CONTINUATION {
            let whole = self.on_continuation(header, payload)?;
            return Ok(whole.map(|Block { of, bytes, .. }| (of, Cow::Owned(bytes))));
        }
        let (id, end) = (header.stream, header.has(flag::END_STREAM));
        let mut fragment = unpadded(header, payload)?;
        let mut depends_on_itself = false;
        if header.has(flag::PRIORITY) {
            let Some((&[a, b, c, d, _], rest)) = fragment.split_first_chunk::<5>() else {
                return Err(Fatal::size());
            };
            depends_on_itself = u32::from_be_bytes([a & 0x7f, b, c, d]) == id;
            fragment = rest;
        }
        let of = Head { id, end, depends_on_itself };
        if header.has(flag::END_HEADERS) {
            return Ok(Some((of, Cow::Borrowed(fragment))));
        }
        if fragment.len() > self.limits.block {
            return Err(Fatal::calm("a field block is too long"));
        }
        self.block = Some(Block { of, bytes: fragment.to_vec(), continuations: 0 });
        Ok(None)
    }

    fn on_continuation(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
    ) -> Result<Option<Block>, Fatal> {
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
        Ok(self.block.take())
    }

    /// No other frame may stand within a field block.
    pub(crate) fn check_order(&self, header: FrameHeader) -> Result<(), Fatal> {
        match self.is_within_block() && header.kind != kind::CONTINUATION {
            true => Err(Fatal::protocol("a frame stands within a field block")),
            false => Ok(()),
        }
    }

    /// Whether the end of a field block is still to come.
    pub(crate) fn is_within_block(&self) -> bool {
        self.block.is_some()
    }

    /// Decodes a whole field block.
    pub(crate) fn decode(
        &mut self,
        block: &[u8],
        field: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Fatal> {
        self.hpack.decode(block, field).map_err(|_| Fatal {
            code: ErrorCode::Compression,
            why: "a field block cannot be decoded",
        })
    }

    /// Sends a head or a trailer section; `put` appends its field block. `end`: nothing follows on its stream.
    pub(crate) fn put_head(&mut self, id: StreamId, end: bool, put: impl FnOnce(&mut Vec<u8>)) {
        let start = frame::begin(&mut self.output);
        if !std::mem::replace(&mut self.table_said, true) {
            encode::put_no_table(&mut self.output);
        }
        put(&mut self.output);
        let length = self.output.len() - start - HEADER;
        let end_stream = if end { flag::END_STREAM } else { 0 };
        if length <= MAX_PAYLOAD {
            let flags = flag::END_HEADERS | end_stream;
            let header = FrameHeader { length, kind: kind::HEADERS, flags, stream: id };
            frame::end(&mut self.output, start, header);
        } else {
            let block = self.output.split_off(start + HEADER);
            self.output.truncate(start);
            self.put_long_block(id, end_stream, &block);
        }
    }

    /// A field block that needs CONTINUATION frames.
    fn put_long_block(&mut self, id: StreamId, end_stream: u8, block: &[u8]) {
        let count = block.chunks(MAX_PAYLOAD).count();
        for (at, fragment) in block.chunks(MAX_PAYLOAD).enumerate() {
            let (kind, flags) = match at {
                0 => (kind::HEADERS, end_stream),
                _ => (kind::CONTINUATION, 0),
            };
            let last = if at + 1 == count { flag::END_HEADERS } else { 0 };
            frame::put(&mut self.output, kind, flags | last, id, fragment);
        }
    }
}
