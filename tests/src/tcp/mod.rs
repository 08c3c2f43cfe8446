//! The fast path in front of an unmodified nginx, with a network between it and its clients.
//!
//! - [`Lab`]: two namespaces, nginx in one, the fast path on its interface, kept alive.
//! - [`Client`]: an ordinary connection that keeps every byte.
//! - [`Wire`]: TCP by hand, segment by segment, for what no stack would do when asked.
//! - [`transfer`]: many connections at once, every response compared with nginx's own.
//! - [`networks`] and [`completion`]: bad networks, and how long the same requests take through them.
//! - [`Trace`]: the last segments of every connection, for the report of a failure.

mod client;
pub mod completion;
mod frame;
mod lab;
pub mod networks;
mod sample;
mod trace;
pub mod transfer;
mod wire;

pub use client::{Client, Reply, blank_date, put};
pub use frame::{ACK, CWR, ECE, FIN, PSH, RST, Received, SYN, Segment};
pub use lab::{Lab, PORT, Plan, SITE, attach, await_that, large, skip};
pub use sample::{ETAG, Sample, pin_reply};
pub use trace::Trace;
pub use wire::{Habits, Wire};
