//! Accelerates an unmodified server that is already running.
//!
//! The server keeps its port, its connections and its configuration. Small answers that are the same
//! for everybody are given in the kernel instead, on the server's own connections, by the programs of
//! `afpa-bpf`. They are filled by asking the server itself, so they are its own answers, byte for
//! byte, with the Date of the second; a change of the file behind one takes it out at once.
//!
//! - [`answer`], [`permit`], [`codings`], [`gather`]: what the server says, whether it may be said in
//!   its place, and in answer to what. No I/O.
//! - [`ledger`]: what is pinned and what it depends on. No I/O, no clock.
//! - [`server`], [`walk`], [`filler`]: the same with sockets, files and the kernel.
//! - [`run`], [`detach`](fn@detach): the life of an attachment.
//!
//! What cannot be seen from outside must be said by whoever attaches: rules by client address,
//! User-Agent or anything else that the server does not declare in Vary ([`Scope::excluded`]); and a
//! new configuration of the server (SIGHUP begins anew).
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
