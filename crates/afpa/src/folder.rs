//! Folders that are looked at and changed by their descriptors, so that nothing can be put in their place meanwhile.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use rustix::fs::{CWD, Gid, Mode, OFlags, Uid, fchown, mkdirat, openat};
use rustix::io::Errno;

use crate::privileges::Identity;

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

/// Opens a folder of the user that serves alone, and makes it first if it is not there. `owner` is the user that this
/// process becomes, if it becomes another.
///
/// # Errors
/// When the folder is not that user's alone, or the system refuses.
pub(crate) fn own_folder(path: &Path, owner: Option<&Identity>) -> anyhow::Result<File> {
    let shown = path.display();
    let (folder, made) = open_or_make(CWD, path, path, Mode::RWXU)?;
    let me = rustix::process::geteuid();
    if let Some(owner) = owner.filter(|owner| made && owner.uid.as_raw() != me.as_raw()) {
        let (user, group) = (Uid::from_raw(owner.uid.as_raw()), owner.gid.as_raw());
        fchown(&folder, Some(user), Some(Gid::from_raw(group)))
            .with_context(|| format!("cannot give {shown} to {}", owner.name))?;
    }
    let user = owner.map_or(me.as_raw(), |owner| owner.uid.as_raw());
    let found = folder.metadata()?;
    if found.uid() != user || found.mode() & 0o022 != 0 {
        let user = owner.map_or_else(|| user.to_string(), |owner| owner.name.clone());
        bail!("{shown} has to be {user}'s alone: chown {user} {shown}; chmod go-w {shown}");
    }
    Ok(folder)
}
