//! Files of Unix sockets: each is removed by the process that made it, and by no other.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use socket2::{Domain, SockAddr, Socket, Type};

/// The file of a socket that this process has bound. Dropping it removes the file, unless another one has its path by
/// now: that of the next process, say.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    identity: Identity,
    is_left: AtomicBool,
}

/// Device and inode: no other file has the same while this one is there, or is bound.
type Identity = (u64, u64);

impl SocketFile {
    /// The file that is there now.
    ///
    /// # Errors
    /// When there is none.
    pub fn of(path: &Path) -> io::Result<Self> {
        let identity = identity(&fs::symlink_metadata(path)?);
        Ok(Self { path: path.to_owned(), identity, is_left: AtomicBool::new(false) })
    }

    /// The file of a socket that another process has made, and may go on with.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn of_another(path: &Path) -> io::Result<Self> {
        let file = Self::of(path)?;
        file.leave();
        Ok(file)
    }

    /// The other process leaves it to this one, which removes it.
    pub fn take(&self) {
        self.is_left.store(false, Ordering::Relaxed);
    }

    /// Another process has the same socket by now: it removes the file.
    pub fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if !self.is_left.load(Ordering::Relaxed) {
            remove_if(&self.path, self.identity);
        }
    }
}

/// Removes a socket file on which no process listens any more. Anything else with that path is left alone.
///
/// # Errors
/// When there is something else, or a process listens.
pub fn remove_stale(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!("{} exists and is not a socket", path.display()),
        ));
    }
    if !is_stale(path)? {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    remove_if(path, identity(&found));
    Ok(())
}

/// Whether no process listens. A full queue also shows that one listens, and is not waited for.
fn is_stale(path: &Path) -> io::Result<bool> {
    let client = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    client.set_nonblocking(true)?;
    match client.connect(&SockAddr::unix(path)?) {
        Ok(()) => Ok(false),
        Err(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused => Ok(true),
            io::ErrorKind::WouldBlock => Ok(false),
            _ => Err(error),
        },
    }
}

fn identity(found: &Metadata) -> Identity {
    (found.dev(), found.ino())
}

fn remove_if(path: &Path, expected: Identity) {
    let is_same = fs::symlink_metadata(path).is_ok_and(|found| identity(&found) == expected);
    if is_same {
        // Best effort: the next start removes a stale socket anyway.
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixDatagram, UnixListener};

    #[test]
    fn a_socket_whose_queue_is_full_is_somebodys_and_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        listener.bind(&SockAddr::unix(&path).unwrap()).unwrap();
        listener.listen(0).unwrap();
        let waiting: Vec<Socket> = std::iter::repeat_with(|| {
            let client = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
            client.set_nonblocking(true).unwrap();
            client
        })
        .take_while(|client| client.connect(&SockAddr::unix(&path).unwrap()).is_ok())
        .collect();
        assert!(!waiting.is_empty());
        assert_eq!(remove_stale(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert!(path.exists());
    }

    #[test]
    fn a_socket_of_another_kind_and_a_link_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let datagrams = folder.path().join("d");
        let _bound = UnixDatagram::bind(&datagrams).unwrap();
        assert!(remove_stale(&datagrams).is_err());
        let (stale, link) = (folder.path().join("s"), folder.path().join("l"));
        drop(UnixListener::bind(&stale).unwrap());
        std::os::unix::fs::symlink(&stale, &link).unwrap();
        assert!(remove_stale(&link).is_err());
        assert!(stale.exists() && datagrams.exists());
        remove_stale(&stale).unwrap();
        assert!(!stale.exists());
    }
}
