//! Network test tools: everything that a test or a measurement of a server needs around it.
//!
//! - [`Namespace`], [`Bed`]: network namespaces joined by veth pairs, set up by one call and
//!   removed when dropped, or by the next run when their owner was killed.
//! - [`Star`]: a server with several clients, for servers of several cores.
//! - [`inject`]: a packet forwarder that loses, delays, reorders, duplicates and limits.
//! - [`load`]: a closed-loop HTTP/1.1 client in TC that saturates any server from one core.
//! - [`queries`]: the same for DNS.
//! - [`reflect`]: the upper bound, a TC program that answers every request by a constant.
//! - [`contest`]: servers side by side on a bed, with the server core's time for each request.
//!
//! All of it needs root (`CAP_NET_ADMIN`, `CAP_SYS_ADMIN`, `CAP_BPF`), iproute2 and ethtool. A
//! test begins with [`missing_privilege`] and prints SKIP with the reason it gives.

mod bed;
mod congestion;
pub mod contest;
mod cores;
pub mod inject;
mod interface;
mod limits;
pub mod load;
mod namespace;
mod object;
mod privilege;
pub mod queries;
mod reaper;
pub mod reflect;
mod star;
mod tool;
pub mod units;

pub use bed::{Bed, BedOptions, Path, Steering};
pub use cores::{CoreTimes, ProcessTimes, pin, wait_for_quiet};
pub use interface::{Interface, Offloads, connect};
pub use limits::use_all_open_files;
pub use namespace::Namespace;
pub use privilege::missing_privilege;
pub use reaper::{Reaped, reap};
pub use star::{Lane, Star};
