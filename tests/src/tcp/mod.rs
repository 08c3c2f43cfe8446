//! The fast path in front of an unmodified nginx, with a network between it and its clients.
//!
//! - [`Lab`]: two namespaces, nginx in one, the fast path on its interface, kept alive.
//! - [`transfer`]: many connections at once, every response compared with nginx's own.
//! - [`networks`] and [`completion`]: bad networks, and how long the same requests take through them.
//! - [`Trace`]: the last segments of every connection, for the report of a failure.

pub mod completion;
mod lab;
#[path = "../../../crates/afpa-bpf/tests/programs/support/lent.rs"]
mod lent;
pub mod networks;
mod response;
mod sample;
mod trace;
pub mod transfer;

pub use lab::{Lab, PORT, Plan, SITE, attach, large, skip};
pub use response::{blank_date, put};
pub use sample::{Sample, pin_reply};
pub use trace::Trace;
