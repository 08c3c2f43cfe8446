//! The value of `fallback`.

use std::fmt;

use afpa_http::Status;

/// The answer to a request for a path that is no file below a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// This file below the root.
    File(String),
    /// That of this server group or server.
    To(String),
    /// A page with this status.
    Status(Status),
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fallback::File(path) => f.write_str(path),
            Fallback::To(to) => f.write_str(to),
            Fallback::Status(status) => write!(f, "{}", status.code()),
        }
    }
}
