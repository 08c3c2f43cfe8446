//! DNS as a protocol module: authoritative answers by UDP and TCP, beside HTTP and apart from it.
//!
//! ```text
//!  datagrams ─► udp ─┐                    ┌─ store: zones, challenges, settings (swapped whole)
//!                    ├─► walk ─► module ──┤
//!  connections ─► tcp┘                    └─ afpa-dns: query, answer
//! ```
//!
//! * [`module`]: the state functions: read, limit, answer;
//! * [`store`]: the zones that are served, which each change replaces as a whole;
//! * [`socket`]: sockets, one of each kind for each thread;
//! * `udp`, `tcp`: datagrams by the batch, and connections (RFC 7766);
//! * [`server`]: the threads, and their commands;
//! * [`notify`]: NOTIFY, by which secondaries learn of a new version of a zone (RFC 1996);
//! * [`held`]: transfers that are going on, and the older versions of zones that they hold;
//! * [`counters`]: answers by code and type.
#![forbid(unsafe_code)]

pub mod counters;
pub mod held;
pub mod module;
pub mod notify;
pub mod server;
pub mod socket;
pub mod store;
mod tcp;
mod udp;

pub use counters::DnsCounters;
pub use module::Dns;
pub use server::{DnsServer, TcpLimits};
pub use socket::BoundZoneSockets;
pub use store::{Limiter, ServedZone, ZoneStore};
