//! Folders that are looked at and changed by their descriptors, so that nothing can be put in their place meanwhile.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use anyhow::Context as _;
use rustix::fs::{Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

/// Opens the folder `name` in `at`, and makes it first if it is not there; whether it did. A link is not followed. `shown`
/// is its path for messages.
///
/// # Errors
/// When it is no folder, or the system refuses.
pub(crate) fn open_or_make(
    at: impl AsFd,
    name: &Path,
    shown: &Path,
    mode: Mode,
) -> anyhow::Result<(File, bool)> {
    let shown = shown.display();
    let is_new = match mkdirat(&at, name, mode) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(error) => return Err(error).with_context(|| format!("cannot create {shown}")),
    };
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(&at, name, flags, Mode::empty());
    Ok((folder.with_context(|| format!("cannot open {shown}"))?.into(), is_new))
}
