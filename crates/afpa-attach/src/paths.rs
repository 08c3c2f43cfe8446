//! Where an attachment has its control socket.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The control socket of an attachment. The attachment listens on it as long as it runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AttachSocket {
    pub(crate) path: PathBuf,
    pub(crate) port: u16,
}

impl AttachSocket {
    /// The control socket for a port in this network namespace.
    pub(crate) fn new(folder: &Path, port: u16) -> Self {
        Self { path: folder.join(format!("{}{port}.sock", prefix())), port }
    }

    /// The sockets of all attachments in this network namespace, running or not.
    pub(crate) fn all(folders: &[PathBuf]) -> Vec<Self> {
        let prefix = prefix();
        let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok());
        let paths = entries.flat_map(|entries| entries.flatten().map(|entry| entry.path()));
        let mut all: Vec<Self> = paths
            .filter_map(|path| {
                let name = path.file_name()?.to_str()?;
                let port = name.strip_prefix(&prefix)?.strip_suffix(".sock")?.parse().ok()?;
                Some(Self { path, port })
            })
            .collect();
        all.sort();
        all.dedup();
        all
    }

    /// Whether an attachment runs here.
    pub(crate) fn is_running(&self) -> bool {
        UnixStream::connect(&self.path).is_ok()
    }

    /// Removes the name. Its folder belongs to root or to the user of the attachment, so that nobody else leads
    /// this elsewhere; a link in its place is removed, not followed.
    pub(crate) fn remove(&self) {
        let _gone = fs::remove_file(&self.path);
    }
}

/// `attach-` and the number of our network namespace.
fn prefix() -> String {
    let namespace = fs::metadata("/proc/thread-self/ns/net").map_or(0, |namespace| namespace.ino());
    format!("attach-{namespace}-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachments_are_found_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let socket = AttachSocket::new(folder.path(), 80);
        assert!(!socket.is_running());
        let listener = std::os::unix::net::UnixListener::bind(&socket.path).unwrap();
        fs::write(folder.path().join("attach-1-80.sock"), "of another namespace").unwrap();
        fs::write(folder.path().join("7.sock"), "").unwrap();
        assert!(socket.is_running());
        let folders = [folder.path().to_owned(), folder.path().join("none")];
        assert_eq!(AttachSocket::all(&folders), std::slice::from_ref(&socket));
        drop(listener);
        assert!(!socket.is_running(), "a socket nobody listens on is no attachment");
        socket.remove();
        assert!(AttachSocket::all(&folders).is_empty());
    }
}
