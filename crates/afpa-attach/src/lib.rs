//! Accelerates an unmodified server that is already running.
//!
//! The server keeps its port, its connections and its configuration. The programs of `afpa-bpf` give small answers
//! that are the same for all clients, in the kernel and on the server's own connections. These answers are the
//! server's own, byte for byte, with the Date of the second: this process asks the server for them. A change of a file
//! unpins its answer at once.
//!
//! - [`answer`], [`permit`], [`codings`], [`decoys`], [`gather`]: the server's answers, whether the kernel may give
//!   them too, and to which requests. No I/O.
//! - [`ledger`]: pinned paths and the places that they depend on. No I/O, no clock.
//! - [`stranger`]: a client that the server knows nothing of, so that pinned answers are those that every client gets.
//! - [`server`], [`walk`], [`filler`], [`health`]: the parts with sockets, files and the kernel.
//! - [`dns`]: the same for name servers.
//! - [`run`], [`detach`](fn@detach): the life of an attachment.
//!
//! Some rules of the server cannot be seen from outside, so the operator must name them ([`Scope::excluded`]): rules
//! for single addresses, cookies or programs of clients, which no question happens to meet.
#![forbid(unsafe_code)]

pub mod answer;
pub mod codings;
mod control;
pub mod decoys;
mod detach;
pub mod dns;
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
mod rights;
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
pub use life::run;
pub use police::ReadPolice;
pub use rights::{DropRights, Rights, Step};
pub use scope::Scope;
pub use settings::AttachSettings;
