//! HTTP/2 as a client speaks it, towards servers behind: the same frames, header compression, windows and budgets, from
//! the other end.
//!
//! [`Connection::receive`] reads frames until one concerns a stream's owner; [`Connection::open`] sends a request. The
//! files below have a group of frames each: `heads` those of a response's head, `content` DATA and windows, `control` all
//! others; `send` writes requests. [`request`] reads a request of HTTP/1.1, and [`response`] writes a response as
//! HTTP/1.1 has it, so that one parser gives all verdicts on what servers send.

mod content;
mod control;
mod heads;
pub mod request;
pub mod response;
mod send;

use crate::budget::Bucket;
use crate::endpoint::stream::{Ended, Streams, Window};
use crate::endpoint::{Fatal, StreamId};
use crate::frame::{self, ErrorCode, FrameHeader, HEADER, MAX_PAYLOAD, PREFACE, kind, setting};
use crate::hpack::Decoder;
use crate::limits::Limits;
use heads::Block;
pub use request::{Part, RequestReader};
pub use response::ResponseHead;

/// What concerns the owner of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'i> {
    /// A head; it is in the [`ResponseHead`] that was lent.
    Head {
        /// Its stream.
        id: StreamId,
        /// Another head follows (RFC 9110 section 15.2).
        interim: bool,
        /// Whether the response has no content.
        end: bool,
    },
    /// Content. [`Connection::read`] makes room for more.
    Data {
        /// Its stream.
        id: StreamId,
        /// The content, without padding.
        bytes: &'i [u8],
        /// Whether it is the last.
        end: bool,
    },
    /// The trailer section, which ends the response; its fields are in the [`ResponseHead`] that was lent.
    Trailers {
        /// Its stream.
        id: StreamId,
    },
    /// The stream is gone: nothing more comes, and nothing more can be sent.
    Gone {
        /// Which one.
        id: StreamId,
        /// How it ended.
        why: Gone,
    },
    /// The server takes no new streams (GOAWAY). [`Connection::next_unprocessed`] has those that it did not take.
    Leaving,
}

/// How a stream ended before its response did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// The server has not looked at the request, so it may be sent again (RFC 9113 section 8.7).
    Unprocessed,
    /// The server has reset it.
    Reset,
    /// What came on it is no response of HTTP/2 (section 8.1.1).
    Malformed,
}

/// What has to come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The server's first frame.
    Settings,
    Frames,
    /// A fatal error was found.
    Dead,
}

/// An HTTP/2 connection, the client's side.
#[derive(Debug)]
pub struct Connection {
    limits: Limits,
    phase: Phase,
    output: Vec<u8>,
    hpack: Decoder,
    streams: Streams<Asking>,
    /// Those that ended last.
    ended: Ended,
    /// The number of the next stream.
    next: StreamId,
    /// A field block that goes on in CONTINUATION frames.
    block: Option<Block>,
    /// Content that the server may send on all streams together.
    receive: Window,
    /// Content that we may send on all streams together.
    send_window: i64,
    /// What the server has said of its own side.
    server: ServerSettings,
    /// No new streams are opened; those beyond this one were not processed.
    last: Option<StreamId>,
    overhead: Bucket,
    /// WINDOW_UPDATE frames that the server owes us nothing for: answers to content that was sent.
    expected_updates: u32,
    /// Streams whose response has ended, but for END_STREAM.
    left: usize,
    /// Whether a field block was sent.
    table_said: bool,
}

#[derive(Clone, Copy, Debug)]
struct ServerSettings {
    streams: u32,
    initial_window: i64,
    max_payload: usize,
}

/// What only the client has to know of a stream.
#[derive(Debug)]
struct Asking {
    asked_head: bool,
    /// The final head has come.
    headed: bool,
    interims: u32,
    /// Its owner has gone, and only END_STREAM is to come.
    left: bool,
}

/// Interim responses of one stream.
const MOST_INTERIMS: u32 = 32;

/// The largest number of a stream.
const LAST_ID: StreamId = 0x7fff_ffff;

impl Connection {
    /// A new connection; the preface and our SETTINGS are in the output already.
    pub fn new(limits: Limits) -> Self {
        let window = limits.stream_window.min(frame::MAX_WINDOW as u32);
        let connection_window =
            i64::from(limits.connection_window).clamp(frame::INITIAL_WINDOW, frame::MAX_WINDOW);
        let mut output = PREFACE.to_vec();
        frame::put_settings(
            &mut output,
            &[
                (setting::ENABLE_PUSH, 0),
                (setting::INITIAL_WINDOW_SIZE, window),
                (setting::MAX_HEADER_LIST_SIZE, u32::try_from(limits.head).unwrap_or(u32::MAX)),
            ],
        );
        if let Ok(more @ 1..) = u32::try_from(connection_window - frame::INITIAL_WINDOW) {
            frame::put_window_update(&mut output, 0, more);
        }
        Self {
            phase: Phase::Settings,
            output,
            hpack: Decoder::default(),
            streams: Streams::default(),
            ended: Ended::default(),
            next: 1,
            block: None,
            receive: Window::new(connection_window),
            send_window: frame::INITIAL_WINDOW,
            server: ServerSettings {
                streams: u32::MAX,
                initial_window: frame::INITIAL_WINDOW,
                max_payload: MAX_PAYLOAD,
            },
            last: None,
            overhead: Bucket::new(limits.overhead),
            expected_updates: 16,
            left: 0,
            table_said: false,
            limits,
        }
    }

    /// Reads frames from the front of `input` up to the first event. Returns how many bytes were read, and the event;
    /// without one, more bytes are needed. A response leaves its head in `head`. `now_ms` is any clock that does not go
    /// back.
    ///
    /// # Errors
    /// [`Fatal`]; send the output, then close. Nothing that arrives later is read.
    pub fn receive<'i>(
        &mut self,
        input: &'i [u8],
        head: &mut ResponseHead,
        now_ms: u64,
    ) -> Result<(usize, Option<Event<'i>>), Fatal> {
        let mut at = 0;
        loop {
            let rest = input.get(at..).unwrap_or_default();
            match self.step(rest, head, now_ms) {
                Ok(None) => return Ok((at, None)),
                Ok(Some((length, None))) => at += length,
                Ok(Some((length, event))) => return Ok((at + length, event)),
                Err(fatal) => {
                    self.phase = Phase::Dead;
                    // The server opens no streams, so there is no last one.
                    frame::put_goaway(&mut self.output, 0, fatal.code, fatal.why);
                    return Err(fatal);
                }
            }
        }
    }

    /// Reads one frame; `None` if it has not arrived as a whole.
    fn step<'i>(
        &mut self,
        input: &'i [u8],
        head: &mut ResponseHead,
        now_ms: u64,
    ) -> Result<Option<(usize, Option<Event<'i>>)>, Fatal> {
        if self.phase == Phase::Dead {
            return Ok(None);
        }
        let Some(header) = FrameHeader::read(input) else { return Ok(None) };
        if self.phase == Phase::Settings {
            // Before the length: a server of HTTP/1.1 says something else altogether.
            if header.kind != kind::SETTINGS || header.has(frame::flag::ACK) {
                return Err(Fatal::protocol("the first frame is not SETTINGS"));
            }
        }
        if header.length > MAX_PAYLOAD {
            return Err(Fatal { code: ErrorCode::FrameSize, why: "a frame is too long" });
        }
        let end = HEADER + header.length;
        let Some(payload) = input.get(HEADER..end) else { return Ok(None) };
        let event = self.frame(header, payload, head, now_ms)?;
        self.phase = Phase::Frames;
        Ok(Some((end, event)))
    }

    fn frame<'i>(
        &mut self,
        header: FrameHeader,
        payload: &'i [u8],
        head: &mut ResponseHead,
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        if self.block.is_some() && header.kind != kind::CONTINUATION {
            return Err(Fatal::protocol("a frame stands within a field block"));
        }
        match header.kind {
            kind::DATA => self.on_data(header, payload, now_ms),
            kind::HEADERS => self.on_headers(header, payload, head, now_ms),
            kind::CONTINUATION => self.on_continuation(header, payload, head, now_ms),
            kind::WINDOW_UPDATE => self.on_window_update(header, payload, now_ms),
            kind::RST_STREAM => self.on_reset(header, payload, now_ms),
            kind::SETTINGS => self.on_settings(header, payload, now_ms).map(|()| None),
            kind::PING => self.on_ping(header, payload, now_ms).map(|()| None),
            kind::GOAWAY => self.on_goaway(header, payload, now_ms),
            kind::PUSH_PROMISE => Err(Fatal::protocol("a promise that we have ruled out")),
            // PRIORITY, and frames of unknown types (section 5.5), are ignored, but not for nothing.
            _ => self.charge(now_ms).map(|()| None),
        }
    }

    /// Takes a token for a frame that is of no use to anybody.
    fn charge(&mut self, now_ms: u64) -> Result<(), Fatal> {
        match self.overhead.take(now_ms) {
            true => Ok(()),
            false => Err(Fatal::calm("too many frames that carry nothing")),
        }
    }

    /// A stream error (section 5.4.2) for which the server is to blame.
    fn fail<'i>(&mut self, id: StreamId, code: ErrorCode) -> Option<Event<'i>> {
        frame::put_reset(&mut self.output, id, code);
        self.forget(id, true).then_some(Event::Gone { id, why: Gone::Malformed })
    }

    /// Removes a stream. What was not read of its content makes room on the connection. Returns whether somebody has to
    /// know.
    fn forget(&mut self, id: StreamId, by_us: bool) -> bool {
        self.ended.push(id, by_us);
        let Some(stream) = self.streams.remove(id) else { return false };
        self.left -= usize::from(stream.own.left);
        self.give_room(stream.unread);
        !stream.own.left
    }

    /// Whether the server's SETTINGS have come, by which it is known to speak HTTP/2.
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Frames
    }

    /// How many streams may be open at a time.
    pub fn most_streams(&self) -> usize {
        self.server.streams.min(self.limits.streams) as usize
    }

    /// How many more streams can be opened now.
    pub fn room_for_streams(&self) -> usize {
        match self.takes_streams() {
            true => self.most_streams().saturating_sub(self.open_streams()),
            false => 0,
        }
    }

    /// Whether streams can be opened at all, now or later.
    pub fn takes_streams(&self) -> bool {
        self.is_ready() && self.last.is_none() && self.next <= LAST_ID
    }

    /// Streams that somebody waits for.
    pub fn open_streams(&self) -> usize {
        self.streams.len() - self.left
    }

    /// Whether the end of the input is within a field block.
    pub fn is_within_head(&self) -> bool {
        self.block.is_some()
    }
}

#[cfg(test)]
mod tests;
