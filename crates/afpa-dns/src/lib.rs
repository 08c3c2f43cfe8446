//! Authoritative answers of the DNS, without a socket, a clock or a file.
//!
//! ```text
//!  text of a zone file ─► entries ─► file (data by `domain`) ─► build ─► Zone ─► Zones
//!                                                                                 │
//!  message ─► query ─► answer ── find: exact, cut, DNAME, wildcard, nothing ──────┘
//!                        └─► proof (NSEC, NSEC3) ─► message (compression, limit) ─► bytes
//! ```
//!
//! * [`name`]: names, their two forms and their order;
//! * [`query`]: questions and their EDNS, from hostile bytes;
//! * [`zone`], [`zones`]: names and sets of a zone, and the zone that has a name;
//! * [`answer`]: the answer to a question (RFC 1034, 2308, 4035, 4592, 5155, 6672, 6891, 8482);
//! * [`cookie`]: cookies that prove an address (RFC 7873, 9018);
//! * [`file`]: zone files, with file, line and remedy of what is wrong in them;
//! * [`tsig`]: messages that are signed with a secret of both ends (RFC 8945);
//! * [`key_file`]: those secrets in the files of other programs;
//! * [`journal`]: the differences between versions of a zone;
//! * [`transfer`]: zones for secondaries, whole or by differences (RFC 5936, 1995), and NOTIFY for a new version (RFC 1996).
#![forbid(unsafe_code)]

pub mod answer;
pub mod build;
pub mod cookie;
mod entries;
pub mod fault;
pub mod file;
mod forms;
pub mod journal;
pub mod key_file;
mod location;
mod message;
pub mod name;
mod nsec3;
mod proof;
pub mod query;
pub mod rtype;
pub mod transfer;
pub mod tsig;
pub mod zone;
pub mod zones;

pub use answer::{
    Answered, Asker, Settings, Transport, answer, ask_by_tcp, check, refuse, respond,
};
pub use cookie::Secrets;
pub use file::{Finding, ReadZone, read_zone};
pub use journal::Journal;
pub use name::{Name, NameError};
pub use query::{Parsed, Query, Rcode};
pub use zone::{Record, Zone};
pub use zones::Zones;
