//! Finds the end of a response, for all the ways in which HTTP ends one.
//!
//! [`Ending::of`] decides from the head which way a response ends (RFC 9112 section 6.3, and the five
//! ways of the IBM paper, section 3); [`Content`] then finds the content and its end in the bytes that
//! follow. Neither does I/O, and no answer depends on how the network split the bytes.
//!
//! A response that two readers could understand differently is refused: with a repeated Content-Length, with
//! Content-Length and Transfer-Encoding, with a coding other than exactly `chunked`, with a coding in
//! HTTP/1.0.

mod framing;
mod multipart;

use afpa_http::chunked::{ChunkError, ChunkLimits, ChunkedDecoder};

pub use afpa_http::chunked::{Progress, Trailers};
pub use framing::{Framing, FramingError};
pub use multipart::Boundary;
use multipart::Search;

/// The way in which a response ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With its head: an answer to HEAD, 1xx, 204 and 304.
    Head,
    /// After so many bytes of content.
    Length(u64),
    /// With the last chunk and the trailer section.
    Chunked,
    /// With the closing delimiter of `multipart/byteranges` that says nothing else about its length
    /// (RFC 2616 section 4.4; gone from RFC 9112, where such a response ends with the connection, as it
    /// may here, too).
    Multipart(Boundary),
    /// With the connection.
    Close,
}

impl Ending {
    /// Whether it is certain where the next response on the connection begins.
    pub fn is_exact(&self) -> bool {
        matches!(self, Ending::Head | Ending::Length(_) | Ending::Chunked)
    }

    /// The length of the content, where it is known beforehand.
    pub fn length(&self) -> Option<u64> {
        match self {
            Ending::Head => Some(0),
            Ending::Length(length) => Some(*length),
            Ending::Chunked | Ending::Multipart(_) | Ending::Close => None,
        }
    }
}

/// Why the rest of a response cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndError {
    /// The chunked coding is broken.
    #[error("malformed chunked content: {0}")]
    Chunk(#[from] ChunkError),
    /// The connection ended before the content did.
    #[error("the connection ended before the content")]
    Truncated,
}

/// Finds the content of one message and its end.
#[derive(Clone, Debug)]
pub struct Content {
    state: ContentState,
    trailers: Trailers,
}

#[derive(Clone, Debug)]
enum ContentState {
    Length(u64),
    Chunked(ChunkedDecoder),
    Multipart(Box<Search>),
    Close,
    Done,
}

impl Content {
    /// At the first byte of the content.
    pub fn new(ending: &Ending) -> Self {
        Self::with_limits(ending, ChunkLimits::default())
    }

    /// As [`Content::new`], with limits on the bytes of a chunked coding that carry no content.
    pub fn with_limits(ending: &Ending, limits: ChunkLimits) -> Self {
        let state = match ending {
            Ending::Head | Ending::Length(0) => ContentState::Done,
            Ending::Length(length) => ContentState::Length(*length),
            Ending::Chunked => {
                ContentState::Chunked(ChunkedDecoder::new(limits).keeping_trailers())
            }
            Ending::Multipart(boundary) => {
                ContentState::Multipart(Box::new(Search::for_end(boundary)))
            }
            Ending::Close => ContentState::Close,
        };
        Self { state, trailers: Trailers::default() }
    }

    /// Reads from the front of `input` to the end of its first run of content, the end of the content or
    /// the end of the input. Call it again with what was not consumed, if anything was left.
    ///
    /// # Errors
    /// The first offence against the chunked coding.
    pub fn feed(&mut self, input: &[u8]) -> Result<Progress, EndError> {
        let progress = match &mut self.state {
            ContentState::Length(left) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                *left -= taken as u64;
                Progress { consumed: taken, data: 0..taken, done: *left == 0 }
            }
            ContentState::Chunked(decoder) => decoder.decode(input)?,
            ContentState::Multipart(search) => {
                let (taken, done) = search.feed(input);
                Progress { consumed: taken, data: 0..taken, done }
            }
            ContentState::Close => {
                Progress { consumed: input.len(), data: 0..input.len(), done: false }
            }
            ContentState::Done => Progress { consumed: 0, data: 0..0, done: true },
        };
        if progress.done
            && let ContentState::Chunked(decoder) =
                std::mem::replace(&mut self.state, ContentState::Done)
        {
            self.trailers = decoder.into_trailers();
        }
        debug_assert!(progress.data.end <= progress.consumed && progress.consumed <= input.len());
        Ok(progress)
    }

    /// The connection has ended.
    ///
    /// # Errors
    /// [`EndError::Truncated`] when that is not how this content ends.
    pub fn end_of_stream(&mut self) -> Result<(), EndError> {
        match std::mem::replace(&mut self.state, ContentState::Done) {
            ContentState::Done | ContentState::Close | ContentState::Multipart(_) => Ok(()),
            ContentState::Length(_) | ContentState::Chunked(_) => Err(EndError::Truncated),
        }
    }

    /// Whether the end of the content was seen.
    pub fn is_done(&self) -> bool {
        matches!(self.state, ContentState::Done)
    }

    /// The trailer fields of a chunked content that has ended.
    pub fn trailers(&self) -> &Trailers {
        &self.trailers
    }

    /// Bytes of content that are to come, where that is known.
    pub fn left(&self) -> Option<u64> {
        match &self.state {
            ContentState::Length(left) => Some(*left),
            ContentState::Done => Some(0),
            ContentState::Chunked(_) | ContentState::Multipart(_) | ContentState::Close => None,
        }
    }
}

#[cfg(test)]
mod tests;
