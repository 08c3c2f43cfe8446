//! What both endpoints of a connection have in common (RFC 9113 section 2.2), the server of [`connection`](crate::connection)
//! and the [`client`](crate::client).

pub(crate) mod stream;

use crate::frame::{ErrorCode, FrameHeader, flag};

/// The number of a stream: odd, because clients open them.
pub type StreamId = u32;

/// Why a connection has to end. GOAWAY is in the output already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Fatal {
    /// As the peer is told.
    pub code: ErrorCode,
    /// In words.
    pub why: &'static str,
}

impl Fatal {
    pub(crate) const fn protocol(why: &'static str) -> Self {
        Self { code: ErrorCode::Protocol, why }
    }

    /// Of a frame.
    pub(crate) const fn size() -> Self {
        Self { code: ErrorCode::FrameSize, why: "a frame has a wrong size" }
    }

    pub(crate) const fn calm(why: &'static str) -> Self {
        Self { code: ErrorCode::EnhanceYourCalm, why }
    }
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

/// Content-Length and the content have to agree (section 8.1.1).
pub(crate) fn count_content(left: &mut Option<u64>, bytes: u64, end: bool) -> Option<ErrorCode> {
    let before = (*left)?;
    match before.checked_sub(bytes) {
        Some(after) if after == 0 || !end => {
            *left = Some(after);
            None
        }
        _ => Some(ErrorCode::Protocol),
    }
}
