//! The versions of HTTP.

/// HTTP versions that are served (RFC 9110 section 2.5).
///
/// A higher minor version than 1.1 does not exist; it is refused with 505 like a higher major one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// `HTTP/1.0`: no chunked coding, no interim answers, the connection closes unless asked.
    Http10,
    /// `HTTP/1.1`.
    Http11,
    /// HTTP/2 (RFC 9113). [`parse`](super::parse) never finds it: the code that makes a head of HTTP/1.1 out of a stream's fields
    /// sets it.
    Http2,
    /// HTTP/3 (RFC 9114); set as HTTP/2 is.
    Http3,
}

impl Version {
    /// Whether each request has a stream of its own, whose frames say where it ends.
    pub const fn has_streams(self) -> bool {
        matches!(self, Version::Http2 | Version::Http3)
    }

    /// As logs and Via name it.
    pub const fn name(self) -> &'static str {
        match self {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
            Version::Http2 => "HTTP/2.0",
            Version::Http3 => "HTTP/3.0",
        }
    }
}
