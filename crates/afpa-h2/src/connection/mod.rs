//! A connection: from the client's bytes to events, and from responses to bytes for the client.
//!
//! [`Connection::receive`] reads frames until one concerns a stream's owner. The files below have a group of frames
//! each: `heads` those of a request's head, `content` DATA and windows, `control` all others; `send` writes
//! responses. The part shared with the client's end is in `endpoint`.

mod content;
mod control;
mod heads;
mod send;

use std::collections::VecDeque;

use crate::budget::Bucket;
use crate::endpoint::{self, Endpoint};
use crate::frame::{self, ErrorCode, FrameHeader, HEADER, PREFACE, kind, setting};
use crate::limits::Limits;
use crate::priority::Urgency;
use crate::request::RequestHead;

pub use crate::endpoint::{Fatal, StreamId};

/// An event for the owner of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'i> {
    /// A request; its head is in the [`RequestHead`] that was lent.
    Request {
        /// Its stream.
        id: StreamId,
        /// Whether it has no content.
        end: bool,
    },
    /// Content of a request. [`Connection::read`] makes room for more.
    Data {
        /// Its stream.
        id: StreamId,
        /// The content, without padding.
        bytes: &'i [u8],
        /// Whether it is the last.
        end: bool,
    },
    /// The trailer section of a request, which ends it; its fields are in the [`RequestHead`] that was lent.
    Trailers {
        /// Its stream.
        id: StreamId,
    },
    /// The stream is gone: nothing more comes, and nothing more can be sent.
    Reset {
        /// Which one.
        id: StreamId,
    },
}

/// The input that has to come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Preface,
    /// The client's first frame.
    Settings,
    Frames,
    /// A fatal error was found.
    Dead,
}

/// How far the connection is on its way to its end (Y7 of docs/rules).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    No,
    /// GOAWAY was sent for no stream in particular; a PING goes round, so that requests on their way arrive.
    Announced,
    /// No stream beyond this one is served.
    After(StreamId),
}

/// An HTTP/2 connection, the server's side.
#[derive(Debug)]
pub struct Connection {
    endpoint: Endpoint<Serving>,
    phase: Phase,
    /// The newest stream that the client has opened.
    newest: StreamId,
    leaving: Leaving,
    /// Streams whose response has ended before their request, as far as their owner does not know.
    lingering: VecDeque<StreamId>,
    resets: Bucket,
    /// DATA frames that were sent.
    turn: u64,
}

/// The state of a stream that only the server keeps.
#[derive(Debug)]
struct Serving {
    /// Both directions end by themselves: it is a tunnel.
    is_tunnel: bool,
    priority: Urgency,
    /// Bytes that its owner has to send; `None`: nothing now.
    pending: Option<u64>,
    /// When it last sent, counted in DATA frames.
    last_turn: u64,
}

/// The content of our PING.
const DRAIN_PING: [u8; 8] = *b"afpa bye";

impl Connection {
    /// A new connection; our SETTINGS are in the output already.
    pub fn new(limits: Limits) -> Self {
        let [window, head] = endpoint::settings(&limits, limits.stream_window);
        let mut output = Vec::new();
        frame::put_settings(
            &mut output,
            &[
                (setting::MAX_CONCURRENT_STREAMS, limits.streams),
                window,
                head,
                (setting::ENABLE_CONNECT_PROTOCOL, 1),
                (setting::NO_RFC7540_PRIORITIES, 1),
            ],
        );
        Self {
            endpoint: Endpoint::new(limits, output),
            phase: Phase::Preface,
            newest: 0,
            leaving: Leaving::No,
            lingering: VecDeque::new(),
            resets: Bucket::new(limits.resets),
            turn: 0,
        }
    }

    /// Reads frames from the front of `input` up to the first event. Returns how many bytes were read, and the event;
    /// without one, more bytes are needed. A request leaves its head in `head`. `now_ms` is any clock that does not go
    /// back.
    ///
    /// # Errors
    /// [`Fatal`]; send the output, then close. Nothing that arrives later is read.
    pub fn receive<'i>(
        &mut self,
        input: &'i [u8],
        head: &mut RequestHead,
        now_ms: u64,
    ) -> Result<(usize, Option<Event<'i>>), Fatal> {
        let mut at = 0;
        loop {
            let rest = input.get(at..).unwrap_or_default();
            match self.step(rest, head, now_ms) {
                Ok(None) => return Ok((at, None)),
                Ok(Some((length, None))) => at += length,
                Ok(Some((length, event))) => return Ok((at + length, event)),
                Err(fatal) => return Err(self.die(fatal)),
            }
        }
    }

    /// Says why the connection ends, and reads nothing more.
    fn die(&mut self, fatal: Fatal) -> Fatal {
        self.phase = Phase::Dead;
        let last = self.last_served();
        frame::put_goaway(&mut self.endpoint.output, last, fatal.code, fatal.why);
        fatal
    }

    /// Whether the end of the input is within a field block.
    pub fn is_within_head(&self) -> bool {
        self.endpoint.is_within_block()
    }

    /// Reads the preface or one frame; `None` if it has not arrived as a whole.
    fn step<'i>(
        &mut self,
        input: &'i [u8],
        head: &mut RequestHead,
        now_ms: u64,
    ) -> Result<Option<(usize, Option<Event<'i>>)>, Fatal> {
        match self.phase {
            Phase::Dead => return Ok(None),
            Phase::Preface => return self.preface(input),
            Phase::Settings | Phase::Frames => {}
        }
        let Some(header) = FrameHeader::read(input) else { return Ok(None) };
        let payload = endpoint::payload_of(header, input)?;
        if self.phase == Phase::Settings {
            endpoint::check_first(header)?;
            self.phase = Phase::Frames;
        }
        let Some(payload) = payload else { return Ok(None) };
        Ok(Some((HEADER + header.length, self.frame(header, payload, head, now_ms)?)))
    }

    fn preface<'i>(&mut self, input: &[u8]) -> Result<Option<(usize, Option<Event<'i>>)>, Fatal> {
        if let Some(arrived) = input.get(..PREFACE.len()) {
            if arrived != PREFACE {
                return Err(Fatal::protocol("this is not the preface of HTTP/2"));
            }
            self.phase = Phase::Settings;
            return Ok(Some((PREFACE.len(), None)));
        }
        if PREFACE.starts_with(input) {
            return Ok(None);
        }
        Err(Fatal::protocol("this is not the preface of HTTP/2"))
    }

    fn frame<'i>(
        &mut self,
        header: FrameHeader,
        payload: &'i [u8],
        head: &mut RequestHead,
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        self.endpoint.check_order(header)?;
        match header.kind {
            kind::DATA => self.on_data(header, payload, now_ms),
            kind::HEADERS | kind::CONTINUATION => self.on_head(header, payload, head, now_ms),
            kind::WINDOW_UPDATE => self.on_window_update(header, payload, now_ms),
            kind::RST_STREAM => self.on_reset(header, payload, now_ms),
            kind::PRIORITY => self.on_priority(header, payload, now_ms),
            kind::SETTINGS => self.on_settings(header, payload, now_ms).map(|()| None),
            kind::PING => self.on_ping(header, payload, now_ms).map(|()| None),
            kind::GOAWAY => self.on_goaway(header, payload, now_ms).map(|()| None),
            kind::PRIORITY_UPDATE => {
                self.on_priority_update(header, payload, now_ms).map(|()| None)
            }
            kind::PUSH_PROMISE => Err(Fatal::protocol("a client has no promises to make")),
            // Frames of unknown types are ignored (section 5.5), but not for nothing.
            _ => self.endpoint.charge(now_ms).map(|()| None),
        }
    }

    /// Takes a token for a stream that ends early.
    fn charge_reset(&mut self, now_ms: u64) -> Result<(), Fatal> {
        match self.resets.take(now_ms) {
            true => Ok(()),
            false => Err(Fatal::calm("too many streams end early")),
        }
    }

    /// A stream error (section 5.4.2) for which the client is to blame.
    fn fail<'i>(
        &mut self,
        id: StreamId,
        code: ErrorCode,
        now_ms: u64,
    ) -> Result<Option<Event<'i>>, Fatal> {
        self.charge_reset(now_ms)?;
        frame::put_reset(&mut self.endpoint.output, id, code);
        Ok(self.endpoint.forget(id, true).map(|_| Event::Reset { id }))
    }

    /// Only the client opens streams, and only what it has opened can have frames.
    fn must_be_opened(&self, id: StreamId, why: &'static str) -> Result<(), Fatal> {
        match id == 0 || (id > self.newest && !self.is_beyond(id)) {
            true => Err(Fatal::protocol(why)),
            false => Ok(()),
        }
    }

    /// Whether frames of this stream are ignored, because we have said that we will not look at them.
    fn is_beyond(&self, id: StreamId) -> bool {
        matches!(self.leaving, Leaving::After(last) if id > last)
    }

    fn last_served(&self) -> StreamId {
        match self.leaving {
            Leaving::After(last) => last,
            Leaving::No | Leaving::Announced => self.newest,
        }
    }

    /// Whether a stream is open.
    pub fn has(&self, id: StreamId) -> bool {
        self.endpoint.streams.get(id).is_some()
    }

    /// Whether content of a request is still to come.
    pub fn expects_content(&self, id: StreamId) -> bool {
        self.endpoint.streams.get(id).is_some_and(|stream| stream.peer_open)
    }

    /// Streams that are open.
    pub fn open(&self) -> usize {
        self.endpoint.streams.len()
    }
}

#[cfg(test)]
mod tests;
