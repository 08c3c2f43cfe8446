//! Skipping request bodies, so that the next request is found where it really begins.

use crate::chunked::{ChunkError, ChunkedDecoder};
use crate::{BodyLength, Status};

/// Why a body cannot be skipped; the connection closes after the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// More content than the limit.
    #[error("request body is larger than the limit")]
    TooLarge,
    /// The chunked coding is broken.
    #[error("malformed chunked body: {0}")]
    Malformed(#[from] ChunkError),
}

impl BodyError {
    /// 413 or 400.
    pub const fn status(self) -> Status {
        match self {
            BodyError::TooLarge => Status::CONTENT_TOO_LARGE,
            BodyError::Malformed(_) => Status::BAD_REQUEST,
        }
    }
}

/// The result of one call of [`BodySkipper::feed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Bytes of the input that belong to the body.
    pub consumed: usize,
    /// Whether the body ended with them.
    pub done: bool,
}

/// Skips one request body of at most a given length of content.
#[derive(Clone, Debug)]
pub struct BodySkipper(SkipState);

#[derive(Clone, Debug)]
enum SkipState {
    Length { left: u64 },
    Chunked { decoder: Box<ChunkedDecoder>, allowance: u64 },
    TooLarge,
}

impl BodySkipper {
    /// A skipper for the body a request announced. A Content-Length beyond the limit fails at the
    /// first [`feed`](BodySkipper::feed), even an empty one: feed it before sending `100 Continue`.
    pub fn new(body: BodyLength, limit: u64) -> BodySkipper {
        BodySkipper(match body {
            BodyLength::None => SkipState::Length { left: 0 },
            BodyLength::Length(length) if length > limit => SkipState::TooLarge,
            BodyLength::Length(length) => SkipState::Length { left: length },
            BodyLength::Chunked => SkipState::Chunked { decoder: Box::default(), allowance: limit },
        })
    }

    /// Reads from the front of `input` as far as the body goes.
    ///
    /// # Errors
    /// See [`BodyError`]; after one, feed no more.
    pub fn feed(&mut self, input: &[u8]) -> Result<Skipped, BodyError> {
        match &mut self.0 {
            SkipState::Length { left } => {
                let consumed = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                *left -= consumed as u64;
                Ok(Skipped { consumed, done: *left == 0 })
            }
            SkipState::Chunked { decoder, allowance } => skip_chunks(decoder, allowance, input),
            SkipState::TooLarge => Err(BodyError::TooLarge),
        }
    }
}

fn skip_chunks(
    decoder: &mut ChunkedDecoder,
    allowance: &mut u64,
    input: &[u8],
) -> Result<Skipped, BodyError> {
    let mut consumed = 0;
    loop {
        let progress = decoder.decode(input.get(consumed..).unwrap_or_default())?;
        consumed += progress.consumed;
        *allowance =
            allowance.checked_sub(progress.data.len() as u64).ok_or(BodyError::TooLarge)?;
        if progress.done || consumed == input.len() {
            return Ok(Skipped { consumed, done: progress.done });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Feeds pieces of the given sizes in turn; gives back the number of all consumed bytes.
    fn skip(
        body: BodyLength,
        limit: u64,
        input: &[u8],
        pieces: &[usize],
    ) -> Result<usize, BodyError> {
        let mut skipper = BodySkipper::new(body, limit);
        let (mut at, mut pieces) = (0, pieces.iter().cycle());
        loop {
            let end = (at + pieces.next().unwrap()).min(input.len());
            let skipped = skipper.feed(&input[at..end])?;
            at += skipped.consumed;
            if skipped.done || at == input.len() {
                return Ok(at);
            }
            assert_eq!(at, end, "a skipper that is not done consumes everything");
        }
    }

    #[test]
    fn the_next_request_is_found() {
        let next = b"GET / HTTP/1.1\r\n";
        for (body, wire) in [
            (BodyLength::None, &b""[..]),
            (BodyLength::Length(5), b"hello"),
            (BodyLength::Chunked, b"5\r\nhello\r\n0\r\n\r\n"),
            (BodyLength::Chunked, b"2;a=\"b\"\r\nhe\r\n3\r\nllo\r\n000\r\nX: y\r\n\r\n"),
        ] {
            let input = [wire, next].concat();
            for piece in 1..input.len() {
                assert_eq!(skip(body, 5, &input, &[piece]), Ok(wire.len()), "{body:?} by {piece}");
            }
        }
    }

    #[test]
    fn too_much_is_413_and_nonsense_is_400() {
        let too_large = Err(BodyError::TooLarge);
        assert_eq!(BodySkipper::new(BodyLength::Length(6), 5).feed(b"").map(|_| 0), too_large);
        assert_eq!(skip(BodyLength::Chunked, 4, b"5\r\nhello", &[64]), too_large);
        assert_eq!(skip(BodyLength::Chunked, 4, b"2\r\nhe\r\n3\r\nllo", &[1]), too_large);
        let malformed = skip(BodyLength::Chunked, 4, b"2\r\nhello", &[64]).unwrap_err();
        assert_eq!(malformed.status(), Status::BAD_REQUEST);
        assert_eq!(BodyError::TooLarge.status(), Status::CONTENT_TOO_LARGE);
    }

    proptest! {
        #[test]
        fn lengths_are_exact_in_any_pieces(
            length in 0u64..200, extra in 0usize..20,
            pieces in proptest::collection::vec(1usize..64, 1..8),
        ) {
            let input = vec![b'x'; length as usize + extra];
            let body = BodyLength::Length(length);
            prop_assert_eq!(skip(body, 200, &input, &pieces), Ok(length as usize));
        }
    }
}
