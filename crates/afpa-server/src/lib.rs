//! The user-mode engine: it connects a protocol module to sockets, time and files.
//!
//! One current-thread runtime per core, each with its own listeners (`SO_REUSEPORT`), its own
//! module value and its own buffers: cores share nothing on a hit. The way in:
//!
//! * [`engine`]: starts the cores, and stops, drains and reloads them;
//! * [`worker`]: one core: the state that its connections share, the accept loops, the tick;
//! * `connection`: one connection, whose loop reads like the state diagram;
//! * `h2`: one connection of HTTP/2, whose streams walk the same states;
//! * `h3`: connections of HTTP/3, whose streams are transports of requests;
//! * [`transport`]: the interface between a connection and its socket;
//! * `turns`: which long response sends next when a core is behind;
//! * [`io`]: readiness or completion, and which of them suits a load;
//! * `pipe`: pages of a file on their way from the file to a socket;
//! * [`listener`], [`socket_file`], [`limits`], [`counters`]: sockets to listen on, numbers of clients, statistics.
#![forbid(unsafe_code)]

mod connection;
pub mod counters;
pub mod engine;
mod h2;
mod h3;
pub mod io;
pub mod limits;
pub mod listener;
mod pipe;
pub mod settings;
pub mod socket_file;
pub mod transport;
mod turns;
pub mod worker;

pub use afpa_framework::Address;
pub use engine::{Engine, EngineError};
pub use h3::KernelKeys;
pub use io::{Io, Rings};
pub use listener::{BoundListener, ListenerSettings};
pub use settings::{HelperStart, KernelActivity, Settings};
