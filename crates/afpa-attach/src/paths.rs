//! Where an attachment keeps its socket, and what outlives it.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use afpa_bpf::{FastPath, HOME};

/// Everything that an attachment to an address leaves in the file system.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Control socket; somebody listens on it as long as the attachment runs.
    pub(crate) socket: PathBuf,
    /// On the BPF file system: connections, and the programs that translate them.
    pub(crate) kept: PathBuf,
}

impl Place {
    pub(crate) fn new(folder: &Path, listen: SocketAddr) -> Self {
        Self::named(folder, &listen.to_string())
    }

    /// The same address is another place in another network namespace. BPF file systems allow no dots
    /// in names.
    fn named(folder: &Path, address: &str) -> Self {
        let prefix = prefix();
        let plain = address.replace('.', "_");
        Self {
            socket: folder.join(format!("{prefix}{address}.sock")),
            kept: Path::new(HOME).join(format!("{prefix}{plain}")),
        }
    }

    /// All of this network namespace that were left by somebody, running or not.
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

    /// Removes what was prepared in vain. Connections of an earlier attachment stay: programs on
    /// interfaces translate them.
    pub(crate) fn abandon(&self) {
        let _gone = fs::remove_file(&self.socket);
        let entries = fs::read_dir(&self.kept).into_iter().flatten().flatten();
        let mut names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        if !names.any(|name| name.starts_with("ingress-") || name.starts_with("egress-")) {
            let _gone = FastPath::forget(&self.kept);
        }
    }

    /// Makes the folder to keep connections in. An error: there is no BPF file system to be used.
    pub(crate) fn prepare_kept(&self) -> io::Result<()> {
        afpa_bpf::open_home()?;
        match fs::create_dir(&self.kept) {
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
    fn places_are_found_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(folder.path(), "10.0.0.1:80".parse().unwrap());
        assert!(place.kept.ends_with(format!("{}10_0_0_1:80", prefix())));
        assert!(!place.is_running());
        let listener = std::os::unix::net::UnixListener::bind(&place.socket).unwrap();
        assert!(place.is_running());
        let all = Place::all(folder.path());
        assert!(all.iter().any(|found| found.socket == place.socket && found.kept == place.kept));
        drop(listener);
        assert!(!place.is_running(), "a socket nobody listens on is no attachment");
    }
}
