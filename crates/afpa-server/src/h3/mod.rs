//! HTTP/3: connections of QUIC on a worker's UDP socket, whose streams are transports of requests.
//!
//! ```text
//! `socket`: datagrams ─▶ `steering`: which worker and process
//!                             ▼
//!                        `endpoint`: which connection ─▶ `peer`: QUIC and HTTP/3's streams of its own
//!                             ▲ packets to send                  │ a request's stream
//!                             └──────────────────────────── `stream`: bytes of HTTP/1.1 both ways ─▶ `Connection`
//! ```
//!
//! The transport is quinn-proto, sans-IO; `endpoint` gives it the socket, the clock and timers. A request's stream carries
//! the head and content of HTTP/1.1 to a [`Connection`](crate::connection::Connection) of its own, and takes its answer:
//! so all that holds for a request of HTTP/1.1 (limits, time-outs, uploads, tunnels) holds for one of HTTP/3. Content of files goes
//! through `buffers`, small answers go through `answers`, both of which the transport keeps until the client has them; pinned content
//! is kept where it lies.

mod answers;
mod buffers;
mod congestion;
mod endpoint;
mod options;
mod peer;
mod settings;
mod socket;
mod steering;
mod stream;
mod tokens;

mod touched;
pub(crate) use answers::Answers;
pub(crate) use buffers::Buffers;
pub(crate) use endpoint::serve;
pub use steering::KernelKeys;
pub(crate) use steering::{Steering, WorkerPart, WorkerSteering};
