//! Where an attachment has its socket, and what survives it.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use afpa_bpf::{FastPath, HOME};

/// Everything that an attachment to an address leaves in the file system.
#[derive(Clone, Debug)]
pub(crate) struct AttachPaths {
    /// The control socket. The attachment listens on it as long as it runs.
    pub(crate) socket: PathBuf,
    /// A directory on the BPF file system: the connections, and the programs that translate them.
    pub(crate) pin_dir: PathBuf,
}

impl AttachPaths {
    pub(crate) fn new(folder: &Path, listen: SocketAddr) -> Self {
        Self::named(folder, &listen.to_string())
    }

    /// The same address in another network namespace has other paths. BPF file systems allow no dots in
    /// names.
    fn named(folder: &Path, address: &str) -> Self {
        let prefix = prefix();
        let plain = address.replace('.', "_");
        Self {
            socket: folder.join(format!("{prefix}{address}.sock")),
            pin_dir: Path::new(HOME).join(format!("{prefix}{plain}")),
        }
    }

    /// Those of all attachments in this network namespace, running or not.
    pub(crate) fn all(folder: &Path) -> Vec<Self> {
        let prefix = prefix();
        let names = |folder: &Path, suffix: &str| -> Vec<String> {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
            let names = names.filter_map(|name| {
                Some(name.strip_prefix(&prefix)?.strip_suffix(suffix)?.replace('_', "."))
            });
            names.collect()
        };
        let mut all = names(folder, ".sock");
        all.extend(names(Path::new(HOME), ""));
        all.sort();
        all.dedup();
        all.iter().map(|address| Self::named(folder, address)).collect()
    }

    /// Whether an attachment runs here.
    pub(crate) fn is_running(&self) -> bool {
        UnixStream::connect(&self.socket).is_ok()
    }

    /// Removes what a failed start has created. Programs on interfaces stay: they translate connections of
    /// an earlier attachment.
    pub(crate) fn abandon(&self) {
        let _gone = fs::remove_file(&self.socket);
        let entries = fs::read_dir(&self.pin_dir).into_iter().flatten().flatten();
        let mut names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        if !names.any(|name| name.starts_with("ingress-") || name.starts_with("egress-")) {
            let _gone = FastPath::forget(&self.pin_dir);
        }
    }

    /// Creates the directory for pinned maps.
    ///
    /// # Errors
    /// When there is no BPF file system to use.
    pub(crate) fn prepare_pin_dir(&self) -> io::Result<()> {
        afpa_bpf::open_home()?;
        match fs::create_dir(&self.pin_dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }
}

/// `attach-` and the number of our network namespace.
fn prefix() -> String {
    use std::os::unix::fs::MetadataExt;
    let namespace = fs::metadata("/proc/self/ns/net").map_or(0, |namespace| namespace.ino());
    format!("attach-{namespace}-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachments_are_found_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let paths = AttachPaths::new(folder.path(), "10.0.0.1:80".parse().unwrap());
        assert!(paths.pin_dir.ends_with(format!("{}10_0_0_1:80", prefix())));
        assert!(!paths.is_running());
        let listener = std::os::unix::net::UnixListener::bind(&paths.socket).unwrap();
        assert!(paths.is_running());
        let all = AttachPaths::all(folder.path());
        assert!(
            all.iter().any(|found| found.socket == paths.socket && found.pin_dir == paths.pin_dir)
        );
        drop(listener);
        assert!(!paths.is_running(), "a socket nobody listens on is no attachment");
    }
}
