//! The streams of a connection that belong to no request (RFC 9114 section 6.2): the client's control stream and those of
//! its field compression; and our control stream.

use std::collections::HashMap;

use afpa_h2::Urgency;
use afpa_h2::budget::Bucket;

use crate::Fatal;
use crate::frame::{ErrorCode, HEADER, kind, put_header, read_header, setting, stream_kind};
use crate::limits::{CONTROL_FRAME, Limits};
use crate::qpack::{DecoderStream, EncoderStream, Rooms};
use crate::varint;

/// The number of a stream, as QUIC counts (RFC 9000 section 2.1).
pub type StreamId = u64;

/// The words of a client on its control stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The priority of a response (RFC 9218 section 7.2), maybe before its request has come.
    Priority(StreamId, Urgency),
    /// Nobody reads this stream: ask the client to stop sending on it, with H3_STREAM_CREATION_ERROR.
    Stop(StreamId),
}

/// The server's end of a connection.
#[derive(Debug)]
pub struct Connection {
    limits: Limits,
    resets: Bucket,
    overhead: Bucket,
    streams: HashMap<StreamId, Uni>,
    /// Which of control, encoder and decoder stream the client has opened.
    opened: [bool; 3],
    has_settings: bool,
    largest_push: Option<u64>,
    goaway: Option<u64>,
    /// For the field sections of requests.
    pub(crate) rooms: Rooms,
}

/// A unidirectional stream of the client.
#[derive(Debug)]
enum Uni {
    /// Its type has not come whole.
    Unknown(Vec<u8>),
    Control(ControlStream),
    Encoder(EncoderStream),
    Decoder(DecoderStream),
}

#[derive(Debug, Default)]
struct ControlStream {
    /// A header, or a frame's payload, as far as it has come.
    partial: Vec<u8>,
    frame: Option<(u64, u64)>,
}

impl Connection {
    /// A connection that begins.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            resets: Bucket::new(limits.resets),
            overhead: Bucket::new(limits.overhead),
            streams: HashMap::new(),
            opened: [false; 3],
            has_settings: false,
            largest_push: None,
            goaway: None,
            rooms: Rooms::default(),
        }
    }

    /// Its limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Appends the beginning of our control stream: its type and SETTINGS. It is our only unidirectional stream: without a
    /// dynamic table there is nothing to say on the others (RFC 9204 section 4.2).
    pub fn open(&self, out: &mut Vec<u8>) {
        let mut settings = Vec::new();
        for (id, value) in [
            (setting::MAX_FIELD_SECTION_SIZE, self.limits.head as u64),
            (setting::ENABLE_CONNECT_PROTOCOL, 1),
        ] {
            varint::put(&mut settings, id);
            varint::put(&mut settings, value);
        }
        varint::put(out, stream_kind::CONTROL);
        put_header(out, kind::SETTINGS, settings.len() as u64);
        out.extend_from_slice(&settings);
    }

    /// Appends GOAWAY for our control stream (section 5.2): requests on this stream and later ones are not served. A later
    /// GOAWAY may not name a later stream.
    pub fn put_goaway(out: &mut Vec<u8>, first_refused: StreamId) {
        let mut id = Vec::new();
        varint::put(&mut id, first_refused);
        put_header(out, kind::GOAWAY, id.len() as u64);
        out.extend_from_slice(&id);
    }

    /// Reads bytes of a unidirectional stream of the client.
    ///
    /// # Errors
    /// [`Fatal`]: the connection has to end.
    pub fn read(
        &mut self,
        id: StreamId,
        mut input: &[u8],
        now_ms: u64,
        mut tell: impl FnMut(Control),
    ) -> Result<(), Fatal> {
        let mut uni = self.streams.remove(&id).unwrap_or_else(|| Uni::Unknown(Vec::new()));
        if let Uni::Unknown(partial) = &mut uni {
            let before = partial.len();
            partial.extend_from_slice(input.get(..input.len().min(8 - before)).unwrap_or_default());
            let Some((kind, n)) = varint::read(partial) else {
                self.streams.insert(id, uni);
                return Ok(());
            };
            input = input.get(n - before..).unwrap_or_default();
            match self.begin(kind, now_ms)? {
                Some(known) => uni = known,
                None => {
                    tell(Control::Stop(id));
                    return Ok(());
                }
            }
        }
        let read = match &mut uni {
            Uni::Control(control) => self.read_control(control, input, now_ms, tell),
            Uni::Encoder(encoder) => encoder.read(input).map_err(|_| {
                Fatal::new(ErrorCode::QpackEncoderStream, "an insert into a table without room")
            }),
            Uni::Decoder(decoder) => decoder.read(input).map_err(|_| {
                Fatal::new(ErrorCode::QpackDecoderStream, "an acknowledgement of nothing")
            }),
            Uni::Unknown(_) => Ok(()),
        };
        self.streams.insert(id, uni);
        read
    }

    /// A unidirectional stream of the client has ended, or was reset.
    ///
    /// # Errors
    /// [`Fatal`]: the connection cannot do without it (sections 6.2.1 and RFC 9204 section 4.2).
    pub fn ended(&mut self, id: StreamId) -> Result<(), Fatal> {
        match self.streams.remove(&id) {
            None | Some(Uni::Unknown(_)) => Ok(()),
            Some(_) => Err(Fatal::new(
                ErrorCode::ClosedCriticalStream,
                "a stream that the connection needs has ended",
            )),
        }
    }

    /// Charges the client for a frame or a stream that says nothing.
    ///
    /// # Errors
    /// There were too many.
    pub fn charge(&mut self, now_ms: u64) -> Result<(), Fatal> {
        match self.overhead.take(now_ms) {
            true => Ok(()),
            false => Err(Fatal::new(ErrorCode::ExcessiveLoad, "too many frames that say nothing")),
        }
    }

    /// Charges the client for a request that ends early.
    ///
    /// # Errors
    /// There were too many.
    pub fn charge_reset(&mut self, now_ms: u64) -> Result<(), Fatal> {
        match self.resets.take(now_ms) {
            true => Ok(()),
            false => Err(Fatal::new(ErrorCode::ExcessiveLoad, "too many requests that end early")),
        }
    }

    fn begin(&mut self, kind: u64, now_ms: u64) -> Result<Option<Uni>, Fatal> {
        let (place, uni) = match kind {
            stream_kind::CONTROL => (0, Uni::Control(ControlStream::default())),
            stream_kind::QPACK_ENCODER => (1, Uni::Encoder(EncoderStream)),
            stream_kind::QPACK_DECODER => (2, Uni::Decoder(DecoderStream::default())),
            stream_kind::PUSH => {
                return Err(Fatal::new(ErrorCode::StreamCreation, "a client cannot push"));
            }
            _ => {
                self.charge(now_ms)?;
                return Ok(None);
            }
        };
        match self.opened.get_mut(place).map(|opened| std::mem::replace(opened, true)) {
            Some(false) => Ok(Some(uni)),
            _ => Err(Fatal::new(
                ErrorCode::StreamCreation,
                "a stream that may be opened once is opened again",
            )),
        }
    }

    fn read_control(
        &mut self,
        control: &mut ControlStream,
        mut input: &[u8],
        now_ms: u64,
        mut tell: impl FnMut(Control),
    ) -> Result<(), Fatal> {
        while !input.is_empty() {
            let ControlStream { partial, frame } = control;
            let Some((kind, length)) = *frame else {
                let before = partial.len();
                let more = input.len().min(HEADER - before);
                partial.extend_from_slice(input.get(..more).unwrap_or_default());
                let Some((kind, length, n)) = read_header(partial) else { return Ok(()) };
                partial.clear();
                input = input.get(n - before..).unwrap_or_default();
                self.begin_frame(kind, length, now_ms)?;
                *frame = Some((kind, length));
                if length == 0 {
                    *frame = None;
                    self.on_frame(kind, &[], &mut tell)?;
                }
                continue;
            };
            let n = usize::try_from(length).unwrap_or(usize::MAX).min(input.len());
            let (payload, rest) = input.split_at_checked(n).unwrap_or((input, b""));
            input = rest;
            let left = length - n as u64;
            // Frames of unknown types are as long as they like.
            if is_known(kind) {
                partial.extend_from_slice(payload);
            }
            *frame = Some((kind, left));
            if left == 0 {
                *frame = None;
                let payload = std::mem::take(partial);
                self.on_frame(kind, &payload, &mut tell)?;
            }
        }
        Ok(())
    }

    /// Whether a frame may stand here (sections 6.2.1 and 7.2).
    fn begin_frame(&mut self, kind: u64, length: u64, now_ms: u64) -> Result<(), Fatal> {
        let is_settings = kind == kind::SETTINGS;
        if is_settings == self.has_settings {
            return Err(match is_settings {
                true => Fatal::new(ErrorCode::FrameUnexpected, "SETTINGS come twice"),
                false => Fatal::new(ErrorCode::MissingSettings, "the first frame is not SETTINGS"),
            });
        }
        self.has_settings = true;
        let is_elsewhere = matches!(kind, kind::DATA | kind::HEADERS | kind::PUSH_PROMISE);
        if is_elsewhere || kind::is_of_http2(kind) {
            let why = "a frame has no place on the control stream";
            return Err(Fatal::new(ErrorCode::FrameUnexpected, why));
        }
        if is_known(kind) && length > CONTROL_FRAME {
            return Err(Fatal::new(
                ErrorCode::ExcessiveLoad,
                "a frame of the control stream is too long",
            ));
        }
        if is_settings { Ok(()) } else { self.charge(now_ms) }
    }

    fn on_frame(
        &mut self,
        kind: u64,
        payload: &[u8],
        tell: &mut impl FnMut(Control),
    ) -> Result<(), Fatal> {
        match kind {
            kind::SETTINGS => on_settings(payload),
            // Nothing is promised, so nothing can be cancelled (section 7.2.3).
            kind::CANCEL_PUSH => {
                whole_number(payload)?;
                Err(Fatal::new(ErrorCode::Id, "a push is cancelled that was not promised"))
            }
            kind::MAX_PUSH_ID => {
                let id = whole_number(payload)?;
                if self.largest_push.is_some_and(|largest| id < largest) {
                    return Err(Fatal::new(ErrorCode::Id, "MAX_PUSH_ID becomes smaller"));
                }
                self.largest_push = Some(id);
                Ok(())
            }
            kind::GOAWAY => {
                let id = whole_number(payload)?;
                if self.goaway.is_some_and(|known| id > known) {
                    return Err(Fatal::new(ErrorCode::Id, "GOAWAY names a later push than before"));
                }
                self.goaway = Some(id);
                Ok(())
            }
            kind::PRIORITY_UPDATE => {
                let (id, n) = varint::read(payload).ok_or(BROKEN)?;
                // A stream of the client in both directions (RFC 9000 section 2.1).
                if id % 4 != 0 {
                    return Err(Fatal::new(ErrorCode::Id, "a priority of what is no request"));
                }
                let value = payload.get(n..).unwrap_or_default();
                tell(Control::Priority(id, Urgency::parse(value)));
                Ok(())
            }
            kind::PRIORITY_UPDATE_PUSH => {
                Err(Fatal::new(ErrorCode::Id, "a priority of a push that was not promised"))
            }
            _ => Ok(()),
        }
    }
}

const BROKEN: Fatal =
    Fatal::new(ErrorCode::Frame, "a frame does not have the length of its content");

fn is_known(kind: u64) -> bool {
    matches!(
        kind,
        kind::SETTINGS
            | kind::CANCEL_PUSH
            | kind::MAX_PUSH_ID
            | kind::GOAWAY
            | kind::PRIORITY_UPDATE
            | kind::PRIORITY_UPDATE_PUSH
    )
}

/// A payload that is one number (section 7.1).
fn whole_number(payload: &[u8]) -> Result<u64, Fatal> {
    match varint::read(payload) {
        Some((value, n)) if n == payload.len() => Ok(value),
        _ => Err(BROKEN),
    }
}

/// The client's settings. None of them binds us: we compress by the static table, push nothing, and our heads are short.
fn on_settings(payload: &[u8]) -> Result<(), Fatal> {
    let fault = |why| Err(Fatal::new(ErrorCode::Settings, why));
    let mut seen: Vec<u64> = Vec::new();
    let mut rest = payload;
    while !rest.is_empty() {
        let (id, first) = varint::read(rest).ok_or(BROKEN)?;
        let (value, second) = rest.get(first..).and_then(varint::read).ok_or(BROKEN)?;
        rest = rest.get(first + second..).unwrap_or_default();
        if setting::is_of_http2(id) {
            return fault("a setting of HTTP/2");
        }
        if seen.contains(&id) {
            return fault("a setting stands twice");
        }
        let is_switch = matches!(id, setting::ENABLE_CONNECT_PROTOCOL | setting::H3_DATAGRAM);
        if is_switch && value > 1 {
            return fault("a setting is neither 0 nor 1");
        }
        seen.push(id);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
