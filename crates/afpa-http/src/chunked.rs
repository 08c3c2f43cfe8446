//! A strict decoder of the chunked transfer coding (RFC 9112 section 7.1).
//!
//! Where the next request begins depends on every byte of this coding, so anything that two readers could understand
//! differently is an error: bare LF or CR, white space or signs around a size, sizes of more than 16 digits, control
//! bytes in extensions, trailer lines that are no fields. Chunk extensions and trailer fields are checked and bounded;
//! extensions are discarded, trailer fields kept if the caller asks for them.

use std::ops::Range;

use crate::syntax::{is_field_byte, is_tchar};

/// Limits on bytes that carry no content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLimits {
    /// Bytes of chunk extensions in a whole body: without a bound a client could make a server
    /// read many bytes for each byte of content.
    pub extensions: usize,
    /// Bytes of the trailer section.
    pub trailers: usize,
}

impl Default for ChunkLimits {
    fn default() -> ChunkLimits {
        ChunkLimits { extensions: 4096, trailers: 8192 }
    }
}

/// Why a chunked body is refused. It is then unknown where the next request begins, so the connection closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// No hexadecimal digit where a chunk size must begin, or another byte behind it.
    #[error("malformed chunk size")]
    Size,
    /// A size of more than 16 digits.
    #[error("chunk size is too large")]
    SizeTooLarge,
    /// A control byte in a chunk extension.
    #[error("malformed chunk extension")]
    Extension,
    /// Longer extensions than the limit.
    #[error("chunk extensions are too long")]
    ExtensionsTooLong,
    /// CR without LF, LF without CR, or content that is longer than its size said.
    #[error("chunk or line does not end in CRLF")]
    LineEnd,
    /// A trailer line that is no field line.
    #[error("malformed trailer field")]
    Trailer,
    /// A longer trailer section than the limit.
    #[error("trailer section is too long")]
    TrailersTooLong,
}

/// The result of one call of [`ChunkedDecoder::decode`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the input that were read; at least one unless the input was empty or the body done.
    pub consumed: usize,
    /// Where in the input content stands, within the consumed bytes; may be empty.
    pub data: Range<usize>,
    /// Whether the body ended; the next request begins behind the consumed bytes.
    pub done: bool,
}

/// Decodes one body. Feed it with [`decode`](ChunkedDecoder::decode) until it is done.
#[derive(Clone, Debug)]
pub struct ChunkedDecoder {
    state: ChunkState,
    limits: ChunkLimits,
    failed: Option<ChunkError>,
    trailers: Option<Trailers>,
}

/// The field lines of a trailer section that passed every check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trailers(Vec<u8>);

impl Trailers {
    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        // Neither a name nor a value has line ends in it.
        self.0.split(|&byte| byte == b'\n').filter_map(|line| {
            let colon = memchr::memchr(b':', line)?;
            Some((line.get(..colon)?, line.get(colon + 1..)?.trim_ascii()))
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkState {
    /// Before or within the digits of a size.
    Size {
        digits: u8,
        value: u64,
    },
    /// Behind white space after a size: only an extension can follow.
    BeforeExtension {
        size: u64,
    },
    /// Within an extension.
    Extension {
        size: u64,
    },
    /// Behind the CR of the size line.
    SizeLf {
        size: u64,
    },
    /// Within content; so many bytes are left, never 0.
    Data {
        left: u64,
    },
    /// Behind content.
    DataCr,
    DataLf,
    /// At the start of a trailer line, or of the blank line that ends the body.
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    EndLf,
    Done,
}

impl Default for ChunkedDecoder {
    fn default() -> ChunkedDecoder {
        ChunkedDecoder::new(ChunkLimits::default())
    }
}

impl ChunkedDecoder {
    /// A decoder at the start of a body.
    pub fn new(limits: ChunkLimits) -> ChunkedDecoder {
        let state = ChunkState::Size { digits: 0, value: 0 };
        ChunkedDecoder { state, limits, failed: None, trailers: None }
    }

    /// A decoder that keeps the trailer fields.
    #[must_use]
    pub fn keeping_trailers(mut self) -> ChunkedDecoder {
        self.trailers = Some(Trailers::default());
        self
    }

    /// The trailer fields; none unless they are kept, and the body has ended.
    pub fn into_trailers(self) -> Trailers {
        self.trailers.filter(|_| self.state == ChunkState::Done).unwrap_or_default()
    }

    /// Reads from the front of `input`, to the end of the first run of content, the end of the body or the end of the
    /// input. Call it again with the bytes that were not consumed, if there are any.
    ///
    /// # Errors
    /// The first error in the input. A decoder that has failed stays failed.
    pub fn decode(&mut self, input: &[u8]) -> Result<Progress, ChunkError> {
        let mut position = 0;
        while let Some(&byte) = input.get(position) {
            match self.state {
                ChunkState::Done => break,
                ChunkState::Data { left } => {
                    let data = position..self.take_data(left, position, input.len());
                    return Ok(Progress { consumed: data.end, data, done: false });
                }
                state => self.state = self.step(state, byte)?,
            }
            position += 1;
        }
        let done = self.state == ChunkState::Done;
        Ok(Progress { consumed: position, data: position..position, done })
    }

    /// Whether the end of the body was seen.
    pub fn is_done(&self) -> bool {
        self.state == ChunkState::Done
    }

    /// The end of the content that stands in the input.
    fn take_data(&mut self, left: u64, start: usize, end: usize) -> usize {
        let taken = usize::try_from(left).unwrap_or(usize::MAX).min(end - start);
        self.state = match left - taken as u64 {
            0 => ChunkState::DataCr,
            left => ChunkState::Data { left },
        };
        start + taken
    }

    fn step(&mut self, state: ChunkState, byte: u8) -> Result<ChunkState, ChunkError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let next = self.transition(state, byte);
        self.failed = next.err();
        next
    }

    fn transition(&mut self, state: ChunkState, byte: u8) -> Result<ChunkState, ChunkError> {
        match (state, byte) {
            (ChunkState::Size { digits, value }, byte) => {
                if matches!(byte, b';' | b' ' | b'\t') {
                    self.spend_extension()?;
                }
                size(digits, value, byte)
            }
            (ChunkState::BeforeExtension { size }, b' ' | b'\t') => {
                self.spend_extension()?;
                Ok(ChunkState::BeforeExtension { size })
            }
            (ChunkState::BeforeExtension { size }, b';') => {
                self.spend_extension()?;
                Ok(ChunkState::Extension { size })
            }
            (ChunkState::BeforeExtension { .. }, _) => Err(ChunkError::Size),
            (ChunkState::Extension { size }, b'\r') => Ok(ChunkState::SizeLf { size }),
            (ChunkState::Extension { size }, byte) if is_field_byte(byte) => {
                self.spend_extension()?;
                Ok(ChunkState::Extension { size })
            }
            (ChunkState::Extension { .. }, b'\n') => Err(ChunkError::LineEnd),
            (ChunkState::Extension { .. }, _) => Err(ChunkError::Extension),
            (ChunkState::SizeLf { size: 0 }, b'\n') => Ok(ChunkState::TrailerStart),
            (ChunkState::SizeLf { size }, b'\n') => Ok(ChunkState::Data { left: size }),
            (ChunkState::DataCr, b'\r') => Ok(ChunkState::DataLf),
            (ChunkState::DataLf, b'\n') => Ok(ChunkState::Size { digits: 0, value: 0 }),
            (ChunkState::SizeLf { .. } | ChunkState::DataCr | ChunkState::DataLf, _) => {
                Err(ChunkError::LineEnd)
            }
            (state, byte) => self.trailer(state, byte),
        }
    }

    fn trailer(&mut self, state: ChunkState, byte: u8) -> Result<ChunkState, ChunkError> {
        self.limits.trailers =
            self.limits.trailers.checked_sub(1).ok_or(ChunkError::TrailersTooLong)?;
        let next = match (state, byte) {
            (ChunkState::TrailerStart, b'\r') => Ok(ChunkState::EndLf),
            (ChunkState::TrailerName, b':') => Ok(ChunkState::TrailerValue),
            (ChunkState::TrailerStart | ChunkState::TrailerName, byte) if is_tchar(byte) => {
                Ok(ChunkState::TrailerName)
            }
            (ChunkState::TrailerValue, b'\r') => Ok(ChunkState::TrailerLf),
            (ChunkState::TrailerValue, byte) if is_field_byte(byte) => Ok(ChunkState::TrailerValue),
            (ChunkState::TrailerLf, b'\n') => Ok(ChunkState::TrailerStart),
            (ChunkState::EndLf, b'\n') => Ok(ChunkState::Done),
            (ChunkState::TrailerLf | ChunkState::EndLf, _) | (_, b'\n') => Err(ChunkError::LineEnd),
            _ => Err(ChunkError::Trailer),
        }?;
        if let Some(Trailers(kept)) = &mut self.trailers
            && !matches!(next, ChunkState::EndLf | ChunkState::Done)
        {
            kept.push(byte);
        }
        Ok(next)
    }

    fn spend_extension(&mut self) -> Result<(), ChunkError> {
        let left = self.limits.extensions.checked_sub(1);
        self.limits.extensions = left.ok_or(ChunkError::ExtensionsTooLong)?;
        Ok(())
    }
}

/// 16 digits are all that a `u64` holds, so the value cannot overflow.
fn size(digits: u8, value: u64, byte: u8) -> Result<ChunkState, ChunkError> {
    match (digits, byte) {
        (16, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => Err(ChunkError::SizeTooLarge),
        (_, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
            let digit = char::from(byte).to_digit(16).ok_or(ChunkError::Size)?;
            Ok(ChunkState::Size { digits: digits + 1, value: value << 4 | u64::from(digit) })
        }
        (0, _) => Err(ChunkError::Size),
        (_, b'\r') => Ok(ChunkState::SizeLf { size: value }),
        (_, b';') => Ok(ChunkState::Extension { size: value }),
        (_, b' ' | b'\t') => Ok(ChunkState::BeforeExtension { size: value }),
        (_, b'\n') => Err(ChunkError::LineEnd),
        _ => Err(ChunkError::Size),
    }
}

#[cfg(test)]
mod tests;
