//! The stream of a request (RFC 9114 sections 4.1 and 7.1): HEADERS, DATA, and HEADERS again for trailers.

use afpa_h2::RequestHead;

use crate::Fatal;
use crate::connection::Connection;
use crate::frame::{ErrorCode, HEADER, kind, read_header};

/// A part of a request that a client has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'i> {
    /// A whole field section: the head, which is in the [`RequestHead`], but not completed: whether content follows is
    /// for the reader of the stream to say.
    Head,
    /// Some content.
    Data(&'i [u8]),
    /// A trailer section, which is in the [`RequestHead`].
    Trailers,
}

/// The stream has to end for a fault of the client; the connection goes on (section 4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// With this code, in both directions.
    Stream(ErrorCode),
    /// And so has the connection.
    Connection(Fatal),
}

impl From<Fatal> for Fault {
    fn from(fatal: Fatal) -> Self {
        Self::Connection(fatal)
    }
}

const UNEXPECTED: Fault = Fault::Connection(Fatal::new(
    ErrorCode::FrameUnexpected,
    "a frame has no place on a request's stream",
));

/// The state of a request's stream, as far as the client's half goes.
#[derive(Debug, Default)]
pub struct RequestStream {
    within: Within,
    /// Bytes of a frame's header, or of a field section, that have come.
    partial: Vec<u8>,
    phase: Phase,
    /// Content that Content-Length has announced and that has not come.
    content_left: Option<u64>,
    is_tunnel: bool,
}

/// The frame of which bytes come next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Within {
    /// None: a header comes.
    #[default]
    Header,
    /// A field section, of which so many bytes have not come.
    Section(u64),
    /// DATA.
    Data(u64),
    /// A frame of an unknown type (section 9), or the rest of a section that is too long.
    Skipped(u64),
}

/// The part of the message that has come (section 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Nothing,
    Content,
    Trailers,
}

impl RequestStream {
    /// The facts of the head that came, once it was completed: content must have the announced length (section 4.1.2).
    pub fn expect(&mut self, content_length: Option<u64>, is_tunnel: bool) {
        self.content_left = content_length;
        self.is_tunnel = is_tunnel;
    }

    /// Reads from the front of `input`. Returns how many bytes it took, and what they are, if anything; call it until it
    /// takes none.
    ///
    /// # Errors
    /// [`Fault`]: how the stream, or the connection, has to end.
    pub fn read<'i>(
        &mut self,
        connection: &mut Connection,
        input: &'i [u8],
        head: &mut RequestHead,
        now_ms: u64,
    ) -> Result<(usize, Option<Event<'i>>), Fault> {
        if input.is_empty() {
            return Ok((0, None));
        }
        match self.within {
            Within::Header => {
                let n = self.read_header(connection, input, now_ms)?;
                // A frame without a payload is complete.
                let event = match self.within {
                    Within::Section(0) => Some(self.section(head, connection, b"", false)?),
                    _ => None,
                };
                Ok((n, event))
            }
            Within::Section(left) => {
                let n = shorter(left, input.len());
                let room = connection.limits().section.saturating_sub(self.partial.len());
                // As a rule it has come whole.
                if self.partial.is_empty() && n as u64 == left && n <= room {
                    let whole = input.get(..n).unwrap_or_default();
                    return Ok((n, Some(self.section(head, connection, whole, false)?)));
                }
                self.partial.extend_from_slice(input.get(..n.min(room)).unwrap_or_default());
                let left = left - n as u64;
                self.within = Within::Section(left);
                let is_cut = n > room || (left > 0 && n == room);
                if left > 0 && !is_cut {
                    return Ok((n, None));
                }
                let partial = std::mem::take(&mut self.partial);
                let event = self.section(head, connection, &partial, is_cut)?;
                self.within = next(left, 0, Within::Skipped);
                Ok((n, Some(event)))
            }
            Within::Data(left) => {
                let n = shorter(left, input.len());
                self.within = next(left, n, Within::Data);
                if let Some(announced) = &mut self.content_left {
                    *announced =
                        announced.checked_sub(n as u64).ok_or(Fault::Stream(ErrorCode::Message))?;
                }
                Ok((n, input.get(..n).map(Event::Data)))
            }
            Within::Skipped(left) => {
                let n = shorter(left, input.len());
                self.within = next(left, n, Within::Skipped);
                Ok((n, None))
            }
        }
    }

    /// The client has sent all. Whether the request is whole.
    ///
    /// # Errors
    /// [`Fault`]: it is not.
    pub fn finish(&self) -> Result<(), Fault> {
        if self.within != Within::Header || !self.partial.is_empty() {
            let why = "a stream ends within a frame";
            return Err(Fatal::new(ErrorCode::Frame, why).into());
        }
        match (self.phase, self.content_left) {
            (Phase::Nothing, _) => Err(Fault::Stream(ErrorCode::RequestIncomplete)),
            (_, Some(1..)) => Err(Fault::Stream(ErrorCode::Message)),
            _ => Ok(()),
        }
    }

    /// Whether nothing but the end of the stream can be missing of a request without content.
    pub fn is_between_frames(&self) -> bool {
        self.within == Within::Header && self.partial.is_empty()
    }

    fn read_header(
        &mut self,
        connection: &mut Connection,
        input: &[u8],
        now_ms: u64,
    ) -> Result<usize, Fault> {
        if self.partial.is_empty()
            && let Some((kind, length, n)) = read_header(input)
        {
            self.begin_frame(connection, kind, length, now_ms)?;
            return Ok(n);
        }
        let before = self.partial.len();
        let more = input.len().min(HEADER - before);
        self.partial.extend_from_slice(input.get(..more).unwrap_or_default());
        let Some((kind, length, n)) = read_header(&self.partial) else { return Ok(more) };
        self.partial.clear();
        self.begin_frame(connection, kind, length, now_ms)?;
        Ok(n - before)
    }

    fn begin_frame(
        &mut self,
        connection: &mut Connection,
        kind: u64,
        length: u64,
        now_ms: u64,
    ) -> Result<(), Fault> {
        self.within = match (kind, self.phase) {
            (kind::HEADERS, Phase::Nothing) => Within::Section(length),
            // Section 4.4: a tunnel has DATA alone.
            (kind::HEADERS, Phase::Content) if !self.is_tunnel => Within::Section(length),
            (kind::DATA, Phase::Content) => {
                if length == 0 {
                    connection.charge(now_ms)?;
                }
                next(length, 0, Within::Data)
            }
            (kind::DATA | kind::HEADERS, _) => return Err(UNEXPECTED),
            (
                kind::CANCEL_PUSH
                | kind::SETTINGS
                | kind::PUSH_PROMISE
                | kind::GOAWAY
                | kind::MAX_PUSH_ID
                | kind::PRIORITY_UPDATE
                | kind::PRIORITY_UPDATE_PUSH,
                _,
            ) => return Err(UNEXPECTED),
            (kind, _) if kind::is_of_http2(kind) => return Err(UNEXPECTED),
            _ => {
                connection.charge(now_ms)?;
                next(length, 0, Within::Skipped)
            }
        };
        Ok(())
    }

    /// A field section has come, whole or as far as it is read.
    fn section<'i>(
        &mut self,
        head: &mut RequestHead,
        connection: &mut Connection,
        section: &[u8],
        is_cut: bool,
    ) -> Result<Event<'i>, Fault> {
        head.begin(connection.limits().head);
        let decoded = connection.rooms.decode(section, |name, value| head.field(name, value));
        // A section that was cut ends within a field.
        if decoded.is_err() && !is_cut {
            let why = "a field section cannot be decoded";
            return Err(Fatal::new(ErrorCode::QpackDecompressionFailed, why).into());
        }
        if is_cut {
            head.cut();
        }
        self.within = Within::Header;
        let (phase, event) = match self.phase {
            Phase::Nothing => (Phase::Content, Event::Head),
            _ => (Phase::Trailers, Event::Trailers),
        };
        self.phase = phase;
        Ok(event)
    }
}

/// The state behind `n` bytes of a payload of which `left` were missing.
fn next(left: u64, n: usize, within: fn(u64) -> Within) -> Within {
    match left - n as u64 {
        0 => Within::Header,
        left => within(left),
    }
}

fn shorter(left: u64, length: usize) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(length)
}

#[cfg(test)]
mod tests;
