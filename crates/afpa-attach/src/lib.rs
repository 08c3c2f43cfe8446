//! Accelerates an unmodified server that is already running.
//!
//! The server keeps its port, its connections and its configuration. The programs of `afpa-bpf` give small
//! answers that are the same for all clients, in the kernel and on the server's own connections. The
//! answers come from the server itself, which is asked for them: they are its own, byte for byte, with the
//! Date of the second. A change of a file unpins its answer at once.
//!
//! - [`answer`], [`permit`], [`codings`], [`gather`]: what the server answers, whether the kernel may give
//!   that answer too, and to which requests. No I/O.
//! - [`ledger`]: what is pinned and what it depends on. No I/O, no clock.
//! - [`server`], [`walk`], [`filler`]: the same with sockets, files and the kernel.
//! - [`run`], [`detach`](fn@detach): the life of an attachment.
//!
//! Some things cannot be seen from outside, and the operator must say them: which answers depend on the
//! client's address, on User-Agent or on anything else that Vary does not name ([`Scope::excluded`]), and
//! that the server has a new configuration (SIGHUP asks for everything again).
#![forbid(unsafe_code)]

pub mod answer;
pub mod codings;
mod control;
mod detach;
pub mod filler;
pub mod gather;
pub mod ledger;
mod life;
mod names;
mod paths;
pub mod permit;
mod scope;
pub mod server;
mod settings;
pub mod walk;

pub use detach::{DetachSettings, detach};
pub use life::run;
pub use scope::Scope;
pub use settings::AttachSettings;
