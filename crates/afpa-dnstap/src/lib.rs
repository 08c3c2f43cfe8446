//! Samples of DNS answers for readers of dnstap, as `fstrm_capture` and BIND's `dnstap-read`.
//!
//! ```text
//!  a question and its answer ─► message (protobuf) ─► queue ─► thread ─► frames ─► socket of a reader
//! ```
//!
//! * [`message`]: the messages of dnstap.proto that an authoritative server sends; no I/O;
//! * [`frames`]: Frame Streams, the protocol of the socket; no I/O;
//! * [`sink`]: the queue, and the thread that connects and writes.
//!
//! The crates `dnstap` and `framestream` have not been kept since 2020, and bring an event loop of their own.
#![forbid(unsafe_code)]

pub mod frames;
pub mod message;
pub mod sink;

pub use message::{Sample, encode};
pub use sink::{Counts, Sink, Tap};
