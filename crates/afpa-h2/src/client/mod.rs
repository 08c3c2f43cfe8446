//! HTTP/2 as a client speaks it, towards servers behind: the same frames, header compression, windows and budgets, from
//! the other end.
//!
//! [`Connection::receive`] reads frames until one concerns a stream's owner; [`Connection::open`] sends a request. The
//! files below have a group of frames each: `heads` those of a response's head, `content` DATA and windows, `control`
//! all others; `send` writes requests. The part shared with the server's end is in `endpoint`. [`request`] reads a
//! request of HTTP/1.1, and [`response`] writes a response as HTTP/1.1 has it, so that one parser gives all verdicts on
//! what servers send. [`tunnel`] has the types of extended CONNECT (RFC 8441) that both use.

mod content;
mod control;
mod heads;
pub mod request;
pub mod response;
mod send;
pub mod tunnel;

use crate::endpoint::{self, Endpoint, Fatal, StreamId};
use crate::frame::{self, ErrorCode, FrameHeader, HEADER, PREFACE, kind, setting};
use crate::limits::Limits;
pub use request::{Part, RequestReader};
pub use response::ResponseHead;
pub use tunnel::Tunnel;

/// An event for the owner of a stream.
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
    /// The server has reset it, with this code (section 7).
    Reset(u32),
    /// The connection has ended.
    Lost,
    /// The server's frames on it are no response of HTTP/2 (section 8.1.1).
    Malformed,
}

/// The input that has to come next.
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
    endpoint: Endpoint<Asking>,
    phase: Phase,
    /// The number of the next stream.
    next: StreamId,
    /// Streams that the server allows at a time.
    most_streams: u32,
    /// The server takes extended CONNECT.
    takes_tunnels: bool,
    /// No new streams are opened; those beyond this one were not processed.
    last: Option<StreamId>,
    /// Streams whose response has ended, but for END_STREAM.
    left: usize,
}

/// The state of a stream that only the client keeps.
#[derive(Debug, Default)]
struct Asking {
    asked_head: bool,
    /// It asked for another protocol, and was not refused.
    tunnel: Option<Box<Tunnel>>,
    interims: u32,
    /// Its owner has gone, and only END_STREAM is to come.
    left: bool,
}

/// Interim responses of one stream.
const MOST_INTERIMS: u32 = 32;

/// Bytes of a response that a server may send before any of them was read.
const FIRST_WINDOW: u32 = 64 * 1024;

/// The largest number of a stream.
const LAST_ID: StreamId = 0x7fff_ffff;

impl Connection {
    /// A new connection; the preface and our SETTINGS are in the output already.
    pub fn new(limits: Limits) -> Self {
        let [window, head] = endpoint::settings(&limits, FIRST_WINDOW);
        let mut output = PREFACE.to_vec();
        frame::put_settings(&mut output, &[(setting::ENABLE_PUSH, 0), window, head]);
        Self {
            endpoint: Endpoint::new(limits, output).beginning_with(FIRST_WINDOW),
            phase: Phase::Settings,
            next: 1,
            most_streams: u32::MAX,
            takes_tunnels: false,
            last: None,
            left: 0,
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
                    frame::put_goaway(&mut self.endpoint.output, 0, fatal.code, fatal.why);
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
            endpoint::check_first(header)?;
        }
        let Some(payload) = endpoint::payload_of(header, input)? else { return Ok(None) };
        let event = self.frame(header, payload, head, now_ms)?;
        self.phase = Phase::Frames;
        Ok(Some((HEADER + header.length, event)))
    }

    fn frame<'i>(
        &mut self,
        header: FrameHeader,
        payload: &'i [u8],
        head: &mut ResponseHead,
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        self.endpoint.check_order(header)?;
        match header.kind {
            kind::DATA => self.on_data(header, payload, now_ms),
            kind::HEADERS | kind::CONTINUATION => self.on_head(header, payload, head, now_ms),
            kind::WINDOW_UPDATE => self.on_window_update(header, payload, now_ms),
            kind::RST_STREAM => self.on_reset(header, payload, now_ms),
            kind::SETTINGS => self.on_settings(header, payload, now_ms).map(|()| None),
            kind::PING => self.endpoint.on_ping(header, payload, now_ms).map(|_| None),
            kind::GOAWAY => self.on_goaway(header, payload, now_ms),
            kind::PUSH_PROMISE => Err(Fatal::protocol("a promise that we have ruled out")),
            // PRIORITY, and frames of unknown types (section 5.5), are ignored, but not for nothing.
            _ => self.endpoint.charge(now_ms).map(|()| None),
        }
    }

    /// A stream error (section 5.4.2) for which the server is to blame.
    fn fail<'i>(&mut self, id: StreamId, code: ErrorCode) -> Option<Event<'i>> {
        frame::put_reset(&mut self.endpoint.output, id, code);
        self.forget(id, true).then_some(Event::Gone { id, why: Gone::Malformed })
    }

    /// Removes a stream. Returns whether its owner is still there and has to know.
    fn forget(&mut self, id: StreamId, by_us: bool) -> bool {
        let Some(own) = self.endpoint.forget(id, by_us) else { return false };
        self.left -= usize::from(own.left);
        !own.left
    }

    /// Whether the server's SETTINGS have come, by which it is known to speak HTTP/2.
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Frames
    }

    /// How many streams may be open at a time.
    pub fn most_streams(&self) -> usize {
        self.most_streams.min(self.endpoint.limits.streams) as usize
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

    /// Whether the server takes extended CONNECT (RFC 8441 section 3).
    pub fn takes_tunnels(&self) -> bool {
        self.takes_tunnels
    }

    /// The number of streams whose owners are there.
    pub fn open_streams(&self) -> usize {
        self.endpoint.streams.len() - self.left
    }

    /// Whether the end of the input is within a field block.
    pub fn is_within_head(&self) -> bool {
        self.endpoint.is_within_block()
    }
}

#[cfg(test)]
mod tests;
