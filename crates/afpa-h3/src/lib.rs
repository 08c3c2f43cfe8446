//! HTTP/3 (RFC 9114) as a server speaks it, sans-IO, above the streams of QUIC: bytes of a stream in, events out; field
//! sections and content in, frames out. Nothing here reads a clock or a socket, and nothing here knows QUIC.
//!
//! * [`varint`] and [`frame`]: the bytes on the wire;
//! * [`qpack`]: field compression (RFC 9204) without a dynamic table;
//! * [`connection`]: the connection's streams: SETTINGS, GOAWAY, priorities (RFC 9218), budgets against floods;
//! * [`request`]: the order of frames on the stream of a request.
//!
//! The fields of a request become a head of HTTP/1.1, and responses are read from one, by the code that HTTP/2 has for it
//! (`afpa_h2::RequestHead`, `afpa_h2::ResponseReader`), so that one parser gives all verdicts.
#![forbid(unsafe_code)]

pub mod connection;
pub mod frame;
pub mod limits;
pub mod qpack;
pub mod request;
pub mod varint;

pub use afpa_h2::FieldCode;
pub use connection::{Connection, Control};
pub use frame::ErrorCode;
pub use limits::Limits;
pub use qpack::{Qpack, section_of};
pub use request::{Event, RequestStream};

/// The connection cannot go on: it ends with this code (RFC 9114 section 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why} ({code:?})")]
pub struct Fatal {
    /// For CONNECTION_CLOSE.
    pub code: ErrorCode,
    /// For the log.
    pub why: &'static str,
}

impl Fatal {
    pub(crate) const fn new(code: ErrorCode, why: &'static str) -> Self {
        Self { code, why }
    }
}
