//! Reads the names in a directory, for listings.

use super::{OpenDirectory, names::is_hidden};
use rustix::fs::{Access, AtFlags, Dir, FileType, Mode, OFlags};
use std::collections::BinaryHeap;
use std::io;

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name, without a slash.
    pub name: Vec<u8>,
    /// The kind of the entry.
    pub kind: ListedKind,
    /// Last modification, seconds since 1970.
    pub modified: u64,
}

/// The kind of an entry in a listing. The kind of a link's target is not known, because links are resolved only when
/// they are served.
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
        match self.list_first(dotfiles, limit)? {
            (listed, 0) => Ok(listed),
            _ => Err(io::ErrorKind::FileTooLarge.into()),
        }
    }

    /// The first `most` names in this directory, sorted, hidden ones only with `dotfiles`, special files never; and how many
    /// names there are besides. It keeps no more than so many, however large the directory is.
    ///
    /// # Errors
    /// `PermissionDenied` when it may be searched but not read.
    pub fn list_first(&self, dotfiles: bool, most: usize) -> io::Result<(Vec<Listed>, usize)> {
        let (mut first, mut more) = (BinaryHeap::new(), 0);
        // The descriptor may be a mere O_PATH.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let readable = rustix::fs::openat(&self.descriptor, c".", flags, Mode::empty())?;
        for entry in Dir::new(readable)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." || (!dotfiles && is_hidden(name)) {
                continue;
            }
            first.push(name.to_vec());
            if first.len() > most {
                first.pop();
                more += 1;
            }
        }
        let listed = first.into_sorted_vec().into_iter().filter_map(|name| self.look(name));
        Ok((listed.collect(), more))
    }

    /// An entry of the listing. `None` for special files, and for files that are gone again.
    fn look(&self, name: Vec<u8>) -> Option<Listed> {
        let stat = rustix::fs::statat(&self.descriptor, &*name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let stamp = crate::Stamp::from(&stat);
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => ListedKind::File(stamp.size),
            FileType::Directory => ListedKind::Directory,
            FileType::Symlink => ListedKind::Link,
            _ => return None,
        };
        Some(Listed { name, kind, modified: stamp.modified() })
    }

    /// Whether this process may read the file, or search the directory, of this name.
    pub fn may_open(&self, listed: &Listed) -> bool {
        let access = match listed.kind {
            ListedKind::Directory => Access::EXEC_OK,
            ListedKind::File(_) | ListedKind::Link => Access::READ_OK,
        };
        let name = &*listed.name;
        rustix::fs::accessat(&self.descriptor, name, access, AtFlags::EACCESS).is_ok()
    }
}
