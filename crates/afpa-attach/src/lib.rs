//! Accelerates an unmodified server that is already running.
//!
//! The server keeps its port, its connections and its configuration. The programs of `afpa-bpf` give small
//! answers that are the same for all clients, in the kernel and on the server's own connections. The
//! answers come from the server itself, which is asked for them: they are its own, byte for byte, with the
//! Date of the second. A change of a file unpins its answer at once.
//!
//! - [`answer`], [`permit`], [`codings`], [`decoys`], [`gather`]: what the server answers, whether the kernel
//!   may give that answer too, and to which requests. No I/O.
//! - [`ledger`]: what is pinned and what it depends on. No I/O, no clock.
//! - [`stranger`]: a client that the server knows nothing of, so that what is pinned is what everybody gets.
//! - [`server`], [`walk`], [`filler`], [`health`]: the same with sockets, files and the kernel.
//! - [`run`], [`detach`](fn@detach): the life of an attachment.
//!
//! Some things cannot be seen from outside, and the operator must say them: rules for single addresses,
//! cookies or programs of clients, of which no question happens to be ([`Scope::excluded`]).
#![forbid(unsafe_code)]

pub mod answer;
pub mod codings;
mod control;
pub mod decoys;
mod detach;
pub mod filler;
pub mod gather;
pub mod health;
pub mod kept;
pub mod ledger;
mod life;
mod names;
mod paths;
pub mod permit;
mod police;
mod purge;
mod say;
mod scope;
pub mod server;
mod settings;
mod signals;
mod sockets;
mod status;
pub mod stranger;
pub mod walk;

pub use detach::{DetachSettings, detach};
pub use life::{Rights, run};
pub use police::ReadPolice;
pub use scope::Scope;
pub use settings::AttachSettings;
