//! The folder of pinned programs and maps, by which connections survive a restart of the process.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FlockOperation, Gid, Mode, OFlags, Uid, chownat, flock, mkdirat, openat, unlinkat,
};

use afpa_bpf::{HOME, open_home};

use crate::NoFastPath;

/// The folder of this process on the BPF file system. It is locked, so that no other process with the same
/// addresses takes it, and reached by its descriptor, so that a user who may not see /sys/fs/bpf can empty it.
#[derive(Debug)]
pub(crate) struct PinDir {
    home: File,
    folder: File,
    name: String,
}

/// The user that the process becomes: the folder is to be its own.
#[derive(Clone, Copy, Debug)]
pub struct PinDirOwner {
    /// The number of the user.
    pub user: u32,
    /// The number of the group.
    pub group: u32,
}

/// Why there is no folder.
pub(crate) enum PinDirRefused {
    /// Another process is at work here. Two fast paths would break a connection.
    InUse(NoFastPath),
    /// There is no place for a folder. The fast path does without.
    Nowhere(io::Error),
}

impl PinDir {
    /// Opens, or makes, the folder that belongs to `address` in this network namespace.
    pub(crate) fn open(
        address: SocketAddr,
        owner: Option<PinDirOwner>,
    ) -> Result<Self, PinDirRefused> {
        let name = name(address).map_err(PinDirRefused::Nowhere)?;
        let (home, folder) = open_folder(&name, owner).map_err(PinDirRefused::Nowhere)?;
        flock(&folder, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            PinDirRefused::InUse(NoFastPath::new(
                format!("another afpa has the fast path of {address}"),
                "stop that one first, or use another address",
            ))
        })?;
        Ok(Self { home, folder, name })
    }

    /// The path by which the loader finds it.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_fd().as_raw_fd()))
    }

    /// Whether nothing was left in it.
    pub(crate) fn is_empty(&self) -> bool {
        std::fs::read_dir(self.path()).is_ok_and(|mut entries| entries.next().is_none())
    }

    /// Removes everything in it. Programs that nobody else holds are then detached.
    pub(crate) fn clear(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(self.path())? {
            unlinkat(&self.folder, entry?.file_name(), AtFlags::empty())?;
        }
        Ok(())
    }

    fn remove(&self) -> io::Result<()> {
        self.clear()?;
        Ok(unlinkat(&self.home, &self.name, AtFlags::REMOVEDIR)?)
    }
}

/// Every end leaves nothing, also that of a start that fails. Only a process that is killed leaves its folder.
impl Drop for PinDir {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            tracing::warn!(%error, "what was kept for the next afpa cannot be removed");
        }
    }
}

/// The name has the network namespace, because namespaces share the BPF file system, and may use the same
/// addresses. That file system takes no dots.
fn name(address: SocketAddr) -> io::Result<String> {
    let namespace = std::fs::metadata("/proc/self/ns/net")?.ino();
    let address = address.to_string();
    let plain = address.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    Ok(format!("{namespace}-{}", plain.collect::<String>()))
}

fn open_folder(name: &str, owner: Option<PinDirOwner>) -> io::Result<(File, File)> {
    let home = open_home()?;
    let me = rustix::process::geteuid();
    let user = owner.map_or(me, |owner| Uid::from_raw(owner.user));
    if make(&home, Path::new(name))?
        && let Some(owner) = owner
    {
        let group = Gid::from_raw(owner.group);
        chownat(&home, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = File::from(openat(&home, name, flags, Mode::empty())?);
    let found = folder.metadata()?;
    // The programs in there answer clients in our name, so nobody else may write.
    if found.uid() != user.as_raw() || found.mode() & 0o022 != 0 {
        return Err(io::Error::other(format!("{HOME}/{name} belongs to somebody else")));
    }
    Ok((home, folder))
}

/// Whether the folder is new.
fn make(at: impl AsFd, path: &Path) -> io::Result<bool> {
    match mkdirat(at, path, Mode::from_raw_mode(0o700)) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::EXIST) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_characters_that_the_bpf_file_system_takes() {
        for address in ["127.0.0.1:8080", "[fd77::1]:80", "[::]:80"] {
            let name = name(address.parse().unwrap()).unwrap();
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{name}");
        }
        let [one, other] = ["127.0.0.1:80", "127.0.0.1:81"].map(|a| name(a.parse().unwrap()));
        assert_ne!(one.unwrap(), other.unwrap());
    }
}
