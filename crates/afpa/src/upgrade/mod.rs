//! Another program takes the place of this one without a refused connection, as after USR2 in nginx.
//!
//! ```text
//! start ── spawn ──> afpa-start-next: keeps the rights, the arguments and the environment of this start
//!    │                     ^ listening sockets, the next process's end of a socket
//! USR2 ────────────────────┤
//!    │                     └─ spawn ──> the program of that path, with LISTEN_FDS
//!    │ <── "serving" ──────────────────────┘
//!  drain
//! ```
//!
//! This process has given up its rights when the signal comes, so it could not start a program that binds ports or loads
//! programs into the kernel. The starting process can. It takes no path, argument or variable from this one: somebody
//! who has taken over a thread can have the same program started again, and nothing else.
//!
//! The sockets are handed over as a service manager does it ([`Inherited`]), so both are taken in the same way. The
//! names in `LISTEN_FDNAMES` are [`CHANNEL`] for the way to the process before, and [`SOCKET`] for listening sockets.

mod client;
mod inherited;
mod program;
mod starter;
mod wire;

pub use starter::wait_for_order;

pub(crate) use client::{News, Starter, Starting};
pub(crate) use inherited::{Inherited, Predecessor};

/// The name of the process: AFPA's program under another name.
pub const PROCESS: &str = "afpa-start-next";

/// The name of the descriptor that leads to the process before.
const CHANNEL: &str = "afpa-upgrade";

/// The name of a listening socket of the process before.
const SOCKET: &str = "afpa";
