//! HTTP/2 (RFC 9113), sans-IO. As a server speaks it: bytes of the client in, events out; responses in, bytes for
//! the client out. As a client speaks it: the other way round. Nothing here reads a clock or a socket, so everything can be
//! fuzzed, replayed and compared with another implementation.
//!
//! * [`beginning`]: whether the first bytes of a connection are for HTTP/2;
//! * [`frame`]: frames as they are on the wire;
//! * [`hpack`]: header compression (RFC 7541);
//! * [`connection`]: the server's end of a connection and its streams: budgets against floods, which stream sends next
//!   (RFC 9218);
//! * [`client`]: the client's end, towards servers behind;
//! * `endpoint`: the common part of both ends: field blocks, flow control, the state of a stream;
//! * [`request`] and [`client::response`]: from the fields of a message to a head of HTTP/1.1, so that one parser gives all
//!   verdicts; `head` is their common part;
//! * [`response`] and [`client::request`]: from a message of HTTP/1.1 to field blocks and content; `message` is their
//!   common part;
//! * [`code`]: how field sections are written, here and by HTTP/3;
//! * `field_block`: a response's field block, kept with a cache object.
//!
//! LIFECYCLE.md in this crate has the states, and Y1 to Y13 of `docs/rules` are the rules that comments and tests cite.
#![forbid(unsafe_code)]

pub mod beginning;
pub mod budget;
pub mod client;
pub mod code;
pub mod connection;
mod endpoint;
mod field_block;
pub mod frame;
mod head;
pub mod hpack;
pub mod limits;
mod message;
pub mod priority;
pub mod request;
pub mod response;

pub use beginning::Beginning;
pub use code::FieldCode;
pub use connection::{Connection, Event, Fatal, StreamId};
pub use field_block::FieldBlock;
pub use frame::{ErrorCode, PREFACE};
pub use limits::Limits;
pub use priority::Urgency;
pub use request::RequestHead;
pub use response::{CodedReader, ResponseEvent, ResponseReader};
