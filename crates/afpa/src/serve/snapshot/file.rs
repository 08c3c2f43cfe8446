//! The file of a snapshot.
//!
//! ```text
//! prepare    as root     its folder is there, and the user's alone
//! take       as the user the snapshot of the process before is opened, and a mark put into its place
//! replace    as the user the mark is replaced by the snapshot of this process
//! ```
//!
//! The mark, an empty file, shows that a process runs that may get orders to purge. So a process that is killed leaves
//! nothing to the next one: its answers may have been purged since. If two processes run at once, the one that began
//! first finds its mark gone and leaves nothing, because the other one got orders to purge, too.
//!
//! All is done within the folder, which stays open, and with no file that is a link, or somebody else's.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use afpa_http::caching::snapshot::MAGIC;
use anyhow::{Context as _, bail};
use rustix::fs::{self, AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::folder::own_folder;
use crate::privileges::Identity;

/// Where the file is, or will be.
#[derive(Debug)]
pub(super) struct Place {
    folder: File,
    name: OsString,
    path: PathBuf,
    /// Bytes that it may have.
    limit: usize,
}

/// The place, with this process's mark.
#[derive(Debug)]
pub(super) struct Marked {
    place: Place,
    mark: File,
}

/// The snapshot of the process before.
#[derive(Debug)]
pub(super) enum Left {
    /// A file of so many bytes.
    Snapshot(File, usize),
    /// Nothing, for this reason.
    Nothing(&'static str),
}

/// Only the owner may read and write the file.
const OWN: Mode = Mode::RUSR.union(Mode::WUSR);

impl Place {
    /// Makes the folder if it is not there. `owner` is the user that this process becomes, if it becomes another.
    ///
    /// # Errors
    /// When the folder is not that user's alone, or the system refuses.
    pub(super) fn prepare(
        path: &Path,
        limit: usize,
        owner: Option<&Identity>,
    ) -> anyhow::Result<Self> {
        let parent = path.parent().context("it needs a folder")?;
        let name = path.file_name().context("it needs a name")?.to_owned();
        let folder = own_folder(parent, owner)?;
        Ok(Self { folder, name, path: path.to_owned(), limit })
    }

    /// Opens the snapshot of the process before, and puts the mark into its place.
    ///
    /// # Errors
    /// When the file is no snapshot, or belongs to somebody else: then it is left alone. When the system refuses.
    pub(super) fn take(self) -> anyhow::Result<(Marked, Left)> {
        let lock = self.lock()?;
        let left = self.find()?;
        let mark = self.put(|_| Ok(())).with_context(|| self.failed())?.1;
        drop(lock);
        Ok((Marked { place: self, mark }, left))
    }

    fn find(&self) -> anyhow::Result<Left> {
        let shown = self.path.display();
        let mut file = match self.open() {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(Left::Nothing("there is none")),
            Err(Errno::LOOP) => bail!("{shown} is a link: remove it"),
            Err(error) => return Err(error).with_context(|| format!("cannot open {shown}")),
        };
        let found = file.metadata()?;
        let me = rustix::process::geteuid().as_raw();
        let is_own = found.uid() == me && found.mode() & 0o077 == 0 && found.nlink() == 1;
        if !found.is_file() || !is_own {
            bail!("{shown} is not a file of this user's alone: remove it");
        }
        let mut begin = Vec::new();
        (&mut file).take(MAGIC.len() as u64).read_to_end(&mut begin)?;
        if !MAGIC.starts_with(&begin) {
            bail!("{shown} is something else than a snapshot: name another file");
        }
        Ok(match usize::try_from(found.len()) {
            Ok(0) => Left::Nothing("the process before was killed, or still runs"),
            Ok(len) if len <= self.limit => Left::Snapshot(file, len),
            _ => Left::Nothing("it is longer than `snapshot_limit`"),
        })
    }

    /// All or nothing, also when the disk is full or the power fails.
    fn put<T>(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> io::Result<(T, File)> {
        let next = self.next();
        let made = self.write(&next, write);
        if made.is_err() {
            // It was not there before, or the lock tells that it was left over.
            let _ = fs::unlinkat(&self.folder, &next, AtFlags::empty());
        }
        made
    }

    fn write<T>(
        &self,
        next: &OsStr,
        write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    ) -> io::Result<(T, File)> {
        match fs::unlinkat(&self.folder, next, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut out = BufWriter::new(File::from(fs::openat(&self.folder, next, flags, OWN)?));
        let written = write(&mut out)?;
        let file = out.into_inner()?;
        file.sync_all()?;
        fs::renameat(&self.folder, next, &self.folder, &self.name)?;
        self.folder.sync_all()?;
        Ok((written, file))
    }

    fn next(&self) -> OsString {
        let mut next = self.name.clone();
        next.push(".next");
        next
    }

    fn open(&self) -> Result<File, Errno> {
        // A pipe would have no end.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        fs::openat(&self.folder, &self.name, flags, Mode::empty()).map(File::from)
    }

    /// Locks the folder against other processes while the result lives: one that ends may still be writing when the
    /// next one begins.
    fn lock(&self) -> anyhow::Result<File> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let lock = fs::openat(&self.folder, ".", flags, Mode::empty());
        let lock: File = lock.with_context(|| self.failed())?.into();
        rustix::io::retry_on_intr(|| fs::flock(&lock, FlockOperation::LockExclusive))
            .with_context(|| self.failed())?;
        Ok(lock)
    }

    fn failed(&self) -> String {
        format!("cannot write {}", self.path.display())
    }
}

impl Marked {
    /// Puts the bytes that `write` writes into the place of the mark.
    ///
    /// # Errors
    /// When the mark is gone, or the system refuses. Then nothing is left to the next process.
    pub(super) fn replace<T>(
        self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    ) -> anyhow::Result<T> {
        let Self { place, mark } = self;
        let _lock = place.lock()?;
        let (found, own) = (place.open().and_then(fs::fstat), fs::fstat(&mark)?);
        if !found.is_ok_and(|found| (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)) {
            bail!("another process has taken {} over", place.path.display());
        }
        Ok(place.put(write).with_context(|| place.failed())?.0)
    }
}

#[cfg(test)]
mod tests;
