//! Reads the names in a directory, for listings.

use super::{OpenDirectory, names::is_hidden};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use std::io;

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name, without a slash.
    pub name: Vec<u8>,
    /// What it names.
    pub kind: ListedKind,
    /// Last modification, seconds since 1970.
    pub modified: u64,
}

/// What a listed name stands for. Links are listed as what they are only when they are served, so
/// the kind of a link is not known before it is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedKind {
    /// A regular file of so many bytes.
    File(u64),
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
}

impl OpenDirectory {
    /// The names in this directory, sorted, hidden ones only with `dotfiles`, special files never.
    ///
    /// # Errors
    /// `PermissionDenied` when it may be searched but not read; `FileTooLarge` when it has more
    /// than `limit` names to show.
    pub fn list(&self, dotfiles: bool, limit: usize) -> io::Result<Vec<Listed>> {
        let mut listed = Vec::new();
        // The descriptor may be a mere O_PATH.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let readable = rustix::fs::openat(&self.descriptor, c".", flags, Mode::empty())?;
        for entry in Dir::new(readable)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." || (!dotfiles && is_hidden(name)) {
                continue;
            }
            let Some(found) = self.look(name) else { continue };
            if listed.len() == limit {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            listed.push(found);
        }
        listed.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(listed)
    }

    /// None for special files and for what is gone again.
    fn look(&self, name: &[u8]) -> Option<Listed> {
        let stat = rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let stamp = crate::Stamp::from(&stat);
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => ListedKind::File(stamp.size),
            FileType::Directory => ListedKind::Directory,
            FileType::Symlink => ListedKind::Link,
            _ => return None,
        };
        Some(Listed { name: name.to_vec(), kind, modified: stamp.modified() })
    }
}
