//! Why a path cannot be opened.

use std::io;

use rustix::io::Errno;

/// Why a path could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// There is nothing, or nothing that may be served.
    #[error("not found")]
    NotFound,
    /// The link policy refuses it, or it leads outside the root.
    #[error("a link leads outside of the document root, or may not be followed")]
    Forbidden,
    /// This process may not read it, or not search a directory above it.
    #[error(
        "permission denied: the server's user may not read it, or not search a directory above it"
    )]
    Denied,
    /// A FIFO, socket or device.
    #[error("neither a regular file nor a directory")]
    NotAFile,
    /// No descriptor is left, in this process or in the system. Worth a retry.
    #[error("out of file descriptors")]
    TooManyFiles,
    /// The disk or the file system failed.
    #[error("cannot open: {0}")]
    Io(#[source] io::Error),
}

impl From<Errno> for ResolveError {
    fn from(error: Errno) -> Self {
        match error {
            // Some file systems answer EINVAL or EILSEQ for names they could never hold.
            Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::INVAL | Errno::ILSEQ => {
                ResolveError::NotFound
            }
            // ELOOP: a link that may not be followed. EXDEV: a way out of the root.
            Errno::LOOP | Errno::XDEV => ResolveError::Forbidden,
            Errno::ACCESS | Errno::PERM => ResolveError::Denied,
            // Opening a socket, or a device without a driver.
            Errno::NXIO | Errno::NODEV => ResolveError::NotAFile,
            Errno::MFILE | Errno::NFILE => ResolveError::TooManyFiles,
            error => ResolveError::Io(error.into()),
        }
    }
}
