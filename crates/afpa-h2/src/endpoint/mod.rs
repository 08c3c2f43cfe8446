//! The common part of the two endpoints of a connection (RFC 9113 section 2.2): the server's,
//! [`connection`](crate::connection), and the client's, [`client`](crate::client).
//!
//! The files below have a group of frames each: `blocks` field blocks, read and written, `content` DATA and windows,
//! `control` SETTINGS and PING; `stream` knows what a stream may still do.

mod blocks;
mod content;
mod control;
pub(crate) mod stream;

use crate::budget::Bucket;
use crate::frame::{self, ErrorCode, FrameHeader, HEADER, MAX_PAYLOAD, flag, kind, setting};
use crate::hpack::Decoder;
use crate::limits::Limits;
use blocks::Block;
pub(crate) use blocks::Head;
pub use stream::StreamId;
use stream::{Ended, Stream, Streams, Window};

/// Why a connection has to end. GOAWAY is in the output already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Fatal {
    /// The code in GOAWAY.
    pub code: ErrorCode,
    /// In words.
    pub why: &'static str,
}

impl Fatal {
    pub(crate) const fn protocol(why: &'static str) -> Self {
        Self { code: ErrorCode::Protocol, why }
    }

    /// The fault of a frame of a wrong size.
    pub(crate) const fn size() -> Self {
        Self { code: ErrorCode::FrameSize, why: "a frame has a wrong size" }
    }

    pub(crate) const fn calm(why: &'static str) -> Self {
        Self { code: ErrorCode::EnhanceYourCalm, why }
    }
}

/// The part of a connection that is the same at both ends. `T` is the state of a stream that only one of them keeps.
#[derive(Debug)]
pub(crate) struct Endpoint<T> {
    pub(crate) limits: Limits,
    /// Content that the peer may send on a stream before any of it was read.
    first_window: u32,
    pub(crate) output: Vec<u8>,
    pub(crate) streams: Streams<T>,
    /// The streams that ended last.
    pub(crate) ended: Ended,
    hpack: Decoder,
    /// A field block that goes on in CONTINUATION frames.
    block: Option<Block>,
    /// Whether a field block was sent.
    table_said: bool,
    /// Content that the peer may send on all streams together.
    receive: Window,
    /// Content that we may send on all streams together.
    pub(crate) send_window: i64,
    /// Content that we may send on a stream at first, as the peer has said.
    initial_window: i64,
    /// WINDOW_UPDATE frames that cost the peer no token: they answer content that we have sent.
    expected_updates: u32,
    overhead: Bucket,
}

impl<T> Endpoint<T> {
    /// A new connection. `output` has our SETTINGS already, with those of [`settings`].
    pub(crate) fn new(limits: Limits, mut output: Vec<u8>) -> Self {
        let window =
            i64::from(limits.connection_window).clamp(frame::INITIAL_WINDOW, frame::MAX_WINDOW);
        if let Ok(more @ 1..) = u32::try_from(window - frame::INITIAL_WINDOW) {
            frame::put_window_update(&mut output, 0, more);
        }
        Self {
            output,
            streams: Streams::default(),
            ended: Ended::default(),
            hpack: Decoder::default(),
            block: None,
            table_said: false,
            receive: Window::new(window),
            send_window: frame::INITIAL_WINDOW,
            initial_window: frame::INITIAL_WINDOW,
            expected_updates: 16,
            overhead: Bucket::new(limits.overhead),
            first_window: limits.stream_window,
            limits,
        }
    }

    /// The windows of streams begin with this, and grow as their content is read.
    pub(crate) fn beginning_with(self, first_window: u32) -> Self {
        Self { first_window: first_window.min(self.limits.stream_window), ..self }
    }

    /// A stream that is open in both directions.
    pub(crate) fn new_stream(&self, id: StreamId, own: T) -> Stream<T> {
        Stream {
            id,
            peer_open: true,
            we_open: true,
            headed: false,
            send_window: self.initial_window,
            receive: Window::growing(self.first_window.into(), self.limits.stream_window.into()),
            unread: 0,
            content_left: None,
            own,
        }
    }

    /// Takes a token for a frame that is of no use to anybody.
    pub(crate) fn charge(&mut self, now_ms: u64) -> Result<(), Fatal> {
        match self.overhead.take(now_ms) {
            true => Ok(()),
            false => Err(Fatal::calm("too many frames that carry nothing")),
        }
    }

    /// Removes a stream. Its unread content makes room on the connection. `by_us`: we have reset it.
    #[inline]
    pub(crate) fn forget(&mut self, id: StreamId, by_us: bool) -> Option<T> {
        self.ended.push(id, by_us);
        let Stream { unread, own, .. } = self.streams.remove(id)?;
        self.give_room(unread);
        Some(own)
    }
}

/// The settings that both endpoints announce (section 6.5.2).
pub(crate) fn settings(limits: &Limits, first_window: u32) -> [(u16, u32); 2] {
    let window = first_window.min(limits.stream_window).min(frame::MAX_WINDOW as u32);
    let head = u32::try_from(limits.head).unwrap_or(u32::MAX);
    [(setting::INITIAL_WINDOW_SIZE, window), (setting::MAX_HEADER_LIST_SIZE, head)]
}

/// The first frame of either endpoint is SETTINGS (section 3.4).
pub(crate) fn check_first(header: FrameHeader) -> Result<(), Fatal> {
    match header.kind != kind::SETTINGS || header.has(flag::ACK) {
        true => Err(Fatal::protocol("the first frame is not SETTINGS")),
        false => Ok(()),
    }
}

/// The payload of the frame at the front of `input`; `None` if it has not arrived as a whole.
pub(crate) fn payload_of(header: FrameHeader, input: &[u8]) -> Result<Option<&[u8]>, Fatal> {
    if header.length > MAX_PAYLOAD {
        return Err(Fatal { code: ErrorCode::FrameSize, why: "a frame is too long" });
    }
    Ok(input.get(HEADER..HEADER + header.length))
}

/// The payload without its padding (section 6.1).
pub(crate) fn unpadded(header: FrameHeader, payload: &[u8]) -> Result<&[u8], Fatal> {
    if !header.has(flag::PADDED) {
        return Ok(payload);
    }
    let (&padding, rest) = payload.split_first().ok_or(Fatal::size())?;
    let length = rest.len().checked_sub(usize::from(padding));
    let length = length.ok_or(Fatal::protocol("a frame is nothing but padding, and more"))?;
    Ok(rest.get(..length).unwrap_or_default())
}
