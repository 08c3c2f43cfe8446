//! How long a request head may be.

/// How much of a request head is read before it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Bytes of the request line without its CRLF; beyond it 414 (RFC 9112 section 3 asks for at
    /// least 8000).
    pub request_line: usize,
    /// Bytes of the whole head with the blank line; beyond it 431.
    pub head: usize,
    /// Field lines, at most [`MAX_FIELDS`](super::MAX_FIELDS); beyond it 431.
    pub fields: usize,
}

impl Default for RequestLimits {
    fn default() -> RequestLimits {
        // Browsers send some twenty fields, and a chain of proxies adds a dozen; Apache takes a hundred, too.
        RequestLimits { request_line: 8192, head: 32768, fields: 100 }
    }
}
