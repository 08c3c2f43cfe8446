//! Why something that is there is not sent. The client gets a status; the operator, in the log, the reason.

use std::fmt;
use std::io;

use afpa_cache::root::ResolveError;
use afpa_framework::{Seldom, steady_ms};
use afpa_http::Status;

/// Why something that is there is not sent.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It cannot be opened.
    Open(ResolveError),
    /// It is a directory without an index file, and directories are not listed.
    NoListing,
    /// Its names cannot be read.
    Unlisted(io::Error),
    /// It cannot be read.
    Unread(io::Error),
    /// Its page would be made in memory, and slow clients hold as many such pages as there may be.
    NoRoom,
}

impl Refusal {
    pub(crate) fn status(&self) -> Status {
        match self {
            Refusal::Open(ResolveError::NotFound) => Status::NOT_FOUND,
            Refusal::Open(ResolveError::TooManyFiles) | Refusal::NoRoom => {
                Status::SERVICE_UNAVAILABLE
            }
            Refusal::Open(ResolveError::Io(_)) | Refusal::Unread(_) => {
                Status::INTERNAL_SERVER_ERROR
            }
            Refusal::Open(_) | Refusal::NoListing | Refusal::Unlisted(_) => Status::FORBIDDEN,
        }
    }

    /// Says it in the log. Clients ask as often as they like, so only some of many are said.
    pub(crate) fn tell(&self, path: &[u8]) {
        let Some(limit) = self.limit() else { return };
        let Some(unsaid) = limit.admit(steady_ms()) else { return };
        let (status, path) = (self.status().code(), path.escape_ascii());
        match unsaid {
            0 => tracing::warn!(%path, status, "not served: {self}"),
            _ => tracing::warn!(%path, status, unsaid, "not served: {self}"),
        }
    }

    /// The limit on log messages of its kind. `None`: an absent file is no news. Each kind has a limit of its own, so
    /// that a frequent refusal does not silence another one.
    fn limit(&self) -> Option<&'static Seldom> {
        static LIMITS: [Seldom; 6] = [const { Seldom::new() }; 6];
        let kind = match self {
            Refusal::Open(ResolveError::NotFound) => return None,
            Refusal::Open(ResolveError::Denied) => 0,
            Refusal::Open(ResolveError::Forbidden | ResolveError::NotAFile) => 1,
            Refusal::NoListing => 2,
            Refusal::Unlisted(_) => 3,
            Refusal::NoRoom => 5,
            Refusal::Open(_) | Refusal::Unread(_) => 4,
        };
        LIMITS.get(kind)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Open(error) => error.fmt(f),
            Refusal::NoListing => {
                f.write_str("the directory has no index file, and `listing` is off")
            }
            Refusal::Unlisted(error) => write!(f, "cannot list the directory: {error}"),
            Refusal::Unread(error) => write!(f, "cannot read the file: {error}"),
            Refusal::NoRoom => f.write_str(
                "responses hold as many pages in memory as there may be, a fifth of [cache] pinned_limit: raise it, or \
                 lower [timeouts] write",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_says_more_than_the_status() {
        let denied = Refusal::Open(ResolveError::Denied);
        assert_eq!(denied.status(), Status::FORBIDDEN);
        assert!(denied.to_string().contains("permission denied"), "{denied}");
        let failed = Refusal::Unread(io::Error::from_raw_os_error(5));
        assert_eq!(failed.status(), Status::INTERNAL_SERVER_ERROR);
        assert!(failed.to_string().contains("os error 5"), "{failed}");
        assert!(Refusal::Open(ResolveError::NotFound).limit().is_none(), "no news");
    }
}
