//! Connections: the served addresses, the state of each connection, and the answers on it.

pub(crate) mod admission;
pub(crate) mod admit;
pub(crate) mod client_count;
pub(crate) mod events;
pub(crate) mod flows;
pub(crate) mod header_blocks;
pub(crate) mod listen;
mod loss;
pub(crate) mod misses;
pub(crate) mod police;
pub(crate) mod reports;
pub(crate) mod samples;
pub(crate) mod served;
pub(crate) mod socketless;
mod worth;

/// The kernel's number of a site (the papers' request set). 0: none.
pub type SiteNumber = u32;
