//! Access logs: read, made up, and cut into connections.

mod read;
mod sessions;
mod synthetic;

pub use read::{Entry, LogLimits, read_log};
pub use sessions::sessions;
pub use synthetic::SyntheticLog;
