//! Files that root alone may read, after AFPA has become another user.
//!
//! ```text
//! start, as root ── spawn ──> afpa-read-keys: becomes the same user, keeps CAP_DAC_READ_SEARCH and a list of files
//!      │                          ^ number of a file
//! drop privileges                 v its bytes, or its version
//!      └── every ten seconds, every reload ──┘
//! ```
//!
//! The process gives out only the files of its list, and of these only files that nobody but root can replace
//! ([`place`]). It ends when its parent does.

mod client;
mod place;
mod process;
mod wire;

/// The name of the process: AFPA's program under another name.
pub const PROCESS: &str = "afpa-read-keys";

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) use client::KeyReader;
pub(crate) use place::settled;
pub use process::answer;

/// The version of a file: another version has another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    inode: u64,
    size: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl Version {
    /// Of the file as this process may look at it.
    ///
    /// # Errors
    /// As `fs::metadata`.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|about| Self::from(&about))
    }

    /// Whether it was so long ago, at this time, that the file became this version.
    pub(crate) fn is_older_than(&self, age: Duration, now: SystemTime) -> bool {
        let (Ok(s), Ok(ns)) = (u64::try_from(self.changed_s), u32::try_from(self.changed_ns))
        else {
            return false;
        };
        let changed = UNIX_EPOCH + Duration::new(s, ns.min(999_999_999));
        now.duration_since(changed).is_ok_and(|passed| passed > age)
    }
}

impl From<&fs::Metadata> for Version {
    fn from(about: &fs::Metadata) -> Self {
        Self {
            inode: about.ino(),
            size: about.size(),
            changed_s: about.ctime(),
            changed_ns: about.ctime_nsec(),
        }
    }
}
