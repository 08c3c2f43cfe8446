//! Why an object cannot be built.

use std::io;

use afpa_cache::root::VersionError;
use afpa_http::Status;

/// Why an object could not be built.
#[derive(Debug)]
pub(super) enum BuildError {
    /// A file is no longer the version that was opened.
    Changed,
    /// A file cannot be read.
    Io(io::Error),
    /// Pages in memory have all the room that they may have.
    NoRoom,
    /// A filter cannot make anything of it; the log has the reason.
    Refused(Status),
}

impl From<io::Error> for BuildError {
    fn from(error: io::Error) -> Self {
        BuildError::Io(error)
    }
}

impl From<VersionError> for BuildError {
    fn from(error: VersionError) -> Self {
        match error {
            VersionError::Changed | VersionError::Grown => BuildError::Changed,
            VersionError::Io(error) => BuildError::Io(error),
        }
    }
}
