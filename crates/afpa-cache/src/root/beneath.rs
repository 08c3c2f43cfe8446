//! The only functions that open descriptors below the root.

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};

/// The restrictions of every look-up: it never leaves the root.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// `openat2` that never leaves `directory`; `resolve` adds further restrictions.
///
/// Tries again when the kernel could not tell whether a rename led the path outside (EAGAIN), when
/// a network file system's handle went stale, and when a signal came. EAGAIN may also mean that
/// someone holds a write lease on the file; it is given back when it stays.
pub(crate) fn open_beneath(
    directory: impl AsFd,
    path: &[u8],
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let resolve = BENEATH | resolve;
    let mut attempts = 0;
    loop {
        match rustix::fs::openat2(directory.as_fd(), path, flags, Mode::empty(), resolve) {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN | Errno::STALE) if attempts < ATTEMPTS => {
                attempts += 1;
                std::thread::yield_now();
            }
            opened => return opened,
        }
    }
}

/// Whether the kernel's cache of names says that there is nothing of this name in `directory`. It never waits, and it
/// follows no link. False before Linux 5.12, and where the cache does not say.
pub(crate) fn is_known_absent(directory: impl AsFd, path: &[u8]) -> bool {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::CACHED;
    let opened = rustix::fs::openat2(directory.as_fd(), path, flags, Mode::empty(), resolve);
    matches!(opened, Err(Errno::NOENT))
}

/// Whether the kernel's cache of names says that there is a regular file of this name in `directory`. It never waits, and
/// it follows no link. False before Linux 5.12, and where the cache does not say.
pub(crate) fn is_known_file(directory: impl AsFd, path: &[u8]) -> bool {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::CACHED;
    let opened = rustix::fs::openat2(directory.as_fd(), path, flags, Mode::empty(), resolve);
    let found = opened.and_then(rustix::fs::fstat);
    found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile)
}

/// The path from the root's descriptor: `/a/b` is `a/b`, and `/` is `.`.
pub(crate) fn relative(path: &[u8]) -> &[u8] {
    match path {
        [b'/', rest @ ..] if !rest.is_empty() => rest,
        _ => b".",
    }
}

const ATTEMPTS: u32 = 64;
