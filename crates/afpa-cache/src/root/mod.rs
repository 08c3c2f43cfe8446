//! The document root: opening files strictly below one directory.
//!
//! Every path is opened by `openat2` with `RESOLVE_BENEATH` from a descriptor of the root, so the kernel itself refuses
//! any path that would lead outside, also while directories are being swapped for links. The root is held by an
//! `O_PATH` descriptor: it goes on working after privileges are dropped, even where the directories above it can no
//! longer be searched, and it stays with the directory it was opened on when that is renamed.
//!
//! Symbolic links are followed by `walk` and not by the kernel, because the cache must know every
//! link it passed: when one of them is pointed elsewhere, the object it led to is no longer the
//! right answer.

mod beneath;
mod body;
mod error;
mod fine;
mod handles;
mod listing;
mod names;
mod readahead;
mod version;
mod walk;

use beneath::{is_known_absent, is_known_file};
pub(crate) use beneath::{open_beneath, relative};
pub(crate) use names::is_hidden;
pub(crate) use walk::{join, parent};

pub use body::FileBody;
pub use error::ResolveError;
pub use handles::RootHandles;
pub use listing::{Listed, ListedKind};
pub use readahead::{fetch, has_other_bytes, resident};
pub use version::{COARSE_TICK, TICK, VersionError, read_exact_version};

use crate::Stamp;
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

/// Which symbolic links below the root are followed. None ever leads outside it.
///
/// A link with an absolute target counts as leading outside, also when the target names a place
/// below the root: the kernel gives no way to tell that is free of races.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SymlinkPolicy {
    /// No link is followed, in no place of a path.
    Never,
    /// A link is followed when its target belongs to the owner of the link.
    #[default]
    OwnerMatch,
    /// Every link is followed.
    Always,
}

/// Which files of the tree may be served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RootSettings {
    /// Which symbolic links are followed.
    pub symlinks: SymlinkPolicy,
    /// Whether names that begin with a dot are served; `.well-known` (RFC 8615) always is. This is
    /// about the names in a request: a link may lead to a hidden place, someone made it on purpose.
    pub dotfiles: bool,
}

/// A directory whose content is served, and nothing outside it.
#[derive(Clone, Debug)]
pub struct DocumentRoot {
    directory: Arc<OwnedFd>,
    /// Its own as long as the descriptor is held.
    identity: Identity,
    settings: RootSettings,
}

/// Device and inode of a directory.
pub(crate) type Identity = (u64, u64);

/// The file or directory that a path names.
#[derive(Debug)]
pub enum Entry {
    /// A regular file, open for reading.
    File(OpenFile),
    /// A directory, whether or not the path ended with a slash.
    Directory(OpenDirectory),
}

/// A regular file below the root, open for reading.
#[derive(Debug)]
pub struct OpenFile {
    /// The descriptor, at offset 0.
    pub file: File,
    /// The version that was found when it was opened.
    pub stamp: Stamp,
    /// Where the file really is, from the root, when links led to it.
    pub real: Option<Vec<u8>>,
    /// How many names the file has. With more than one, a change through another name may go
    /// unheard by a watch on this name's directory.
    pub links: u64,
}

/// A directory below the root. It may be searchable without being readable.
#[derive(Debug)]
pub struct OpenDirectory {
    pub(crate) descriptor: OwnedFd,
    /// The version that was found when it was opened.
    pub stamp: Stamp,
    /// Where the directory really is, from the root, when links led to it.
    pub real: Option<Vec<u8>>,
}

/// The places that a resolution passed through besides the requested path: every symbolic link, every
/// directory that `..` in a link left again, and the place where it ended, or would have.
///
/// All are root-relative and free of links. A change of any of them may change the outcome. The trail is empty
/// if there was no link on the way.
#[derive(Clone, Debug, Default)]
pub struct Trail(Vec<Vec<u8>>);

impl Trail {
    /// The places, each beginning with `/`.
    pub fn places(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(Vec::as_slice)
    }

    /// Whether no link was met.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, place: Vec<u8>) {
        if !self.0.contains(&place) {
            self.0.push(place);
        }
    }
}

impl DocumentRoot {
    /// Opens `path` as a document root.
    ///
    /// # Errors
    /// Those of opening the directory, and `Unsupported` when the kernel has no `openat2`.
    pub fn open(path: impl AsRef<Path>, settings: RootSettings) -> io::Result<Self> {
        let directory = directory(path.as_ref())?;
        probe(&directory)?;
        let identity = identity_of(&directory)?;
        Ok(DocumentRoot { directory: Arc::new(directory), identity, settings })
    }

    /// Opens what `path` names. `path` is normalised and begins with `/`; with a slash at its end
    /// it can only name a directory.
    ///
    /// Never blocks on a FIFO or device. Costs one `openat2` and one `fstat` where no link is met.
    pub fn resolve(&self, path: &[u8]) -> Result<Entry, ResolveError> {
        self.resolve_traced(path, &mut Trail::default())
    }

    /// As [`resolve`](Self::resolve), and adds to `trail` what else the outcome depends on. The
    /// trail is filled on errors, too: that a file is absent also depends on the links before it.
    pub fn resolve_traced(&self, path: &[u8], trail: &mut Trail) -> Result<Entry, ResolveError> {
        names::check(path, self.settings.dotfiles)?;
        match self.open_entry(path) {
            Err(Errno::LOOP) if self.settings.symlinks != SymlinkPolicy::Never => {
                walk::follow(self, path, trail)
            }
            Err(error) => Err(error.into()),
            Ok((descriptor, stat)) => entry(descriptor, &stat, None),
        }
    }

    /// Whether [`resolve`](Self::resolve) would find nothing, as far as that is known without waiting for a disk: for cores.
    /// `false` says nothing.
    pub fn is_known_absent(&self, path: &[u8]) -> bool {
        match names::check(path, self.settings.dotfiles) {
            Ok(()) => is_known_absent(&*self.directory, relative(path)),
            Err(refused) => matches!(refused, ResolveError::NotFound),
        }
    }

    /// Whether [`resolve`](Self::resolve) would find a regular file, as far as that is known without waiting for a disk: for
    /// cores. `false` says nothing.
    pub fn is_known_file(&self, path: &[u8]) -> bool {
        names::check(path, self.settings.dotfiles).is_ok()
            && is_known_file(&*self.directory, relative(path))
    }

    /// Whether a component of `path` is hidden: nobody gets what has such a name.
    pub fn hides(&self, path: &[u8]) -> bool {
        !self.settings.dotfiles && path.split(|&byte| byte == b'/').any(is_hidden)
    }

    /// Whether this process may list and search the directory itself. None of its names is read.
    pub fn is_readable(&self) -> bool {
        let (wanted, flags) = (Access::READ_OK | Access::EXEC_OK, AtFlags::EACCESS);
        match rustix::fs::accessat(&*self.directory, c".", wanted, flags) {
            // Before Linux 5.8 there is no such question for the user that the process is now.
            Err(Errno::NOSYS | Errno::PERM) => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                open_beneath(&*self.directory, b".", flags, ResolveFlags::NO_SYMLINKS).is_ok()
            }
            outcome => outcome.is_ok(),
        }
    }

    /// The descriptor, shared with all others that may need it longer, such as the watcher of the tree.
    pub fn handle(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.directory)
    }

    /// Device and inode.
    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    /// The settings it was opened with.
    pub fn settings(&self) -> RootSettings {
        self.settings
    }

    /// Opens for reading without following any link. A directory that may be searched but not read
    /// still is a directory, and its index file may well be readable: it comes as `O_PATH`.
    fn open_entry(&self, path: &[u8]) -> Result<(OwnedFd, Stat), Errno> {
        let path = relative(path);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = match open_beneath(&*self.directory, path, flags, ResolveFlags::NO_SYMLINKS) {
            Err(Errno::ACCESS) => {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                open_beneath(&*self.directory, path, flags, ResolveFlags::NO_SYMLINKS)
                    .map_err(|_| Errno::ACCESS)
            }
            opened => opened,
        }?;
        let stat = rustix::fs::fstat(&opened)?;
        Ok((opened, stat))
    }
}

fn directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

#[allow(clippy::unnecessary_cast)] // the widths differ between architectures
pub(crate) fn identity_of(directory: impl AsFd) -> Result<Identity, Errno> {
    let stat = rustix::fs::fstat(directory)?;
    Ok((stat.st_dev as u64, stat.st_ino as u64))
}

/// Whether the kernel has what every look below a root needs.
fn probe(directory: &OwnedFd) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match open_beneath(directory, b".", flags, ResolveFlags::empty()) {
        Ok(_) => Ok(()),
        // Some container runtimes answer EPERM for system calls their filter does not know.
        Err(Errno::NOSYS | Errno::PERM) => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "the system call openat2 is missing or filtered: AFPA needs Linux 5.6 or newer",
        )),
        Err(error) => Err(error.into()),
    }
}

impl AsFd for DocumentRoot {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

#[allow(clippy::unnecessary_cast)] // the width of st_nlink differs between architectures
fn entry(descriptor: OwnedFd, stat: &Stat, real: Option<Vec<u8>>) -> Result<Entry, ResolveError> {
    let stamp = Stamp::from(stat);
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            let file = File::from(descriptor);
            Ok(Entry::File(OpenFile { file, stamp, real, links: stat.st_nlink as u64 }))
        }
        FileType::Directory => Ok(Entry::Directory(OpenDirectory { descriptor, stamp, real })),
        _ => Err(ResolveError::NotAFile),
    }
}
