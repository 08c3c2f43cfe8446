//! A document root for one test.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use tempfile::TempDir;

/// A document root that removes itself. All its methods panic when the file system refuses.
///
/// Everything is readable by everybody: a server started by root serves as somebody else.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    _home: TempDir,
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl Tree {
    /// An empty root. It lies one folder below a private one, whose other content
    /// ([`Tree::outside`]) no server may ever show.
    pub fn new() -> Self {
        let home = tempfile::Builder::new().prefix("afpa-tree-").tempdir().expect("temporary dir");
        open_to_all(home.path());
        let root = home.path().join("root");
        fs::create_dir(&root).expect("root");
        open_to_all(&root);
        Self { root, _home: home }
    }

    /// The root itself.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Where `name` lies in the root.
    pub fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root.join(name)
    }

    /// Writes a file beside the root, out of the server's bounds.
    pub fn outside(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.parent().expect("root has a parent").join(name);
        fs::create_dir_all(path.parent().expect("has a parent")).expect("folders outside");
        fs::write(&path, content).unwrap_or_else(|e| panic!("write {}: {e}", path.display()));
        path
    }

    /// Writes a file in place, with the folders it needs.
    pub fn file(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(name);
        fs::create_dir_all(path.parent().expect("a file has a parent")).expect("folders");
        fs::write(&path, content).unwrap_or_else(|e| panic!("write {}: {e}", path.display()));
        path
    }

    /// Writes a file as careful programs do: beside the old one under another name, then renamed
    /// over it.
    pub fn replace(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.at(name);
        let mut fresh = path.clone().into_os_string();
        fresh.push(".new~");
        fs::write(&fresh, content).expect("write the new version");
        fs::rename(&fresh, &path).expect("rename over the old version");
    }

    /// Makes a folder and those above it.
    pub fn dir(&self, name: impl AsRef<Path>) -> PathBuf {
        let path = self.at(name);
        fs::create_dir_all(&path).expect("folders");
        path
    }

    /// Makes the link `name` to `target`, replacing an older link atomically.
    pub fn link(&self, name: impl AsRef<Path>, target: impl AsRef<Path>) {
        let path = self.at(name);
        let mut fresh = path.clone().into_os_string();
        fresh.push(".link~");
        symlink(target, &fresh).expect("symlink");
        fs::rename(&fresh, &path).expect("rename of the link");
    }

    /// Removes a file.
    pub fn remove(&self, name: impl AsRef<Path>) {
        let path = self.at(name);
        fs::remove_file(&path).unwrap_or_else(|e| panic!("remove {}: {e}", path.display()));
    }

    /// Renames within the root.
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) {
        fs::rename(self.at(from), self.at(to)).expect("rename");
    }

    /// Sets a file's modification time, in seconds since 1970.
    pub fn set_modified(&self, name: impl AsRef<Path>, unix_seconds: u64) {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(unix_seconds);
        let file = fs::File::options().write(true).open(self.at(name)).expect("open");
        file.set_modified(time).expect("set the modification time");
    }

    /// A file's modification time in whole seconds since 1970.
    pub fn modified(&self, name: impl AsRef<Path>) -> u64 {
        let modified = fs::metadata(self.at(name)).and_then(|m| m.modified()).expect("stat");
        modified.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs()
    }

    /// Sets permission bits.
    pub fn set_mode(&self, name: impl AsRef<Path>, mode: u32) {
        fs::set_permissions(self.at(name), fs::Permissions::from_mode(mode)).expect("chmod");
    }
}

/// `count` bytes whose every eight-byte group tells its own offset, so that a body put together
/// wrongly is seen, and no compression pays.
pub fn patterned(count: usize) -> Vec<u8> {
    let groups =
        (0..count.div_ceil(8) as u64).map(|index| crate::Random::new(index).next().to_le_bytes());
    let mut bytes: Vec<u8> = groups.flatten().collect();
    bytes.truncate(count);
    bytes
}

/// Lets everybody write here: the run folder of a server that has changed its user.
pub(crate) fn writable_by_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("chmod");
}

fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("chmod");
}
