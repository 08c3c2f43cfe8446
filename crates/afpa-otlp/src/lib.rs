//! Spans by OTLP, the protocol of OpenTelemetry.
//!
//! ```text
//! span:      an answered request ── spans with the names of HTTP's semantic conventions
//! messages:  spans ── bytes (OTLP 1, protobuf)
//! retry:     an answer of the collector ── the fate of the batch
//! send:      a batch ── POST to the collector, again if it is to be
//! names:     the addresses of the collector's name
//! ```
//!
//! The first three are pure. Nothing here is called by a thread that serves.

mod messages;
mod names;
mod retry;
mod send;
mod span;

pub use messages::Span;
pub use retry::Loss;
pub use send::{Batch, Sender, Sent, Settings};
pub use span::{Exchange, Served, put_spans};
