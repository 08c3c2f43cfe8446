//! Decides from the head in which way a response ends (RFC 9112 section 6.3).

use afpa_http::Version;
use afpa_http::syntax::{list, number};

use super::{Boundary, Ending};

/// Why the head of a response does not say for certain where the response ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// More than one Content-Length line, or one that is not a plain decimal number.
    #[error("Content-Length is not one plain decimal number (RFC 9112 section 6.3)")]
    ContentLength,
    /// Both framing fields at once.
    #[error("Transfer-Encoding together with Content-Length (RFC 9112 section 6.3)")]
    LengthAndCoding,
    /// A transfer coding other than chunked, more than one, or a repeated one.
    #[error("Transfer-Encoding is not exactly chunked (RFC 9112 section 6.1)")]
    Coding,
    /// A transfer coding in HTTP/1.0.
    #[error("Transfer-Encoding in HTTP/1.0 (RFC 9112 section 6.1)")]
    CodingInHttp10,
}

/// The fields of a head that say where the response ends, and whether the connection persists. Gathered line
/// by line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Framing<'b> {
    content_length: Option<&'b [u8]>,
    coding: Option<&'b [u8]>,
    content_type: Option<&'b [u8]>,
    repeated_length: bool,
    repeated_coding: bool,
    close: bool,
    keep_alive: bool,
}

impl<'b> Framing<'b> {
    /// Takes a Content-Length line.
    pub fn content_length(&mut self, value: &'b [u8]) {
        self.repeated_length |= self.content_length.replace(value).is_some();
    }

    /// Takes a Transfer-Encoding line.
    pub fn transfer_encoding(&mut self, value: &'b [u8]) {
        self.repeated_coding |= self.coding.replace(value).is_some();
    }

    /// Takes a Content-Type line.
    pub fn content_type(&mut self, value: &'b [u8]) {
        self.content_type = Some(value);
    }

    /// Takes a Connection line.
    pub fn connection(&mut self, value: &'b [u8]) {
        for option in list(value) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Whether the server will keep the connection (RFC 9112 section 9.3).
    pub fn keeps(&self, version: Version) -> bool {
        !self.close && (version == Version::Http11 || self.keep_alive)
    }

    /// The length that was announced, which an answer without content may have, too.
    ///
    /// # Errors
    /// [`FramingError::ContentLength`]
    pub fn length(&self) -> Result<Option<u64>, FramingError> {
        match self.content_length {
            _ if self.repeated_length => Err(FramingError::ContentLength),
            None => Ok(None),
            Some(digits) => number(digits).map(Some).ok_or(FramingError::ContentLength),
        }
    }
}

impl Ending {
    /// How a response ends. `head` says that it answers a HEAD request.
    ///
    /// # Errors
    /// See [`FramingError`]: such a response must not be passed on, and its connection not be used again.
    pub fn of(
        head: bool,
        status: u16,
        version: Version,
        framing: &Framing<'_>,
    ) -> Result<Ending, FramingError> {
        let length = framing.length()?;
        if let Some(coding) = framing.coding {
            if framing.content_length.is_some() {
                return Err(FramingError::LengthAndCoding);
            }
            if version == Version::Http10 {
                return Err(FramingError::CodingInHttp10);
            }
            if framing.repeated_coding || !coding.eq_ignore_ascii_case(b"chunked") {
                return Err(FramingError::Coding);
            }
        }
        Ok(match length {
            _ if head || status < 200 || matches!(status, 204 | 304) => Ending::Head,
            _ if framing.coding.is_some() => Ending::Chunked,
            Some(length) => Ending::Length(length),
            None => match framing.content_type.and_then(Boundary::of_byteranges) {
                Some(boundary) if status == 206 => Ending::Multipart(boundary),
                _ => Ending::Close,
            },
        })
    }
}
