//! Access logs: read, made up, and cut into connections.

mod read;
mod sessions;
mod synthetic;
mod world_cup;

pub use read::{Entry, LogLimits, read_log};
pub use sessions::sessions;
pub use synthetic::SyntheticLog;
pub(crate) use world_cup::{is_world_cup, read_world_cup};
