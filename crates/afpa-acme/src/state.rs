//! The folder that keeps the account and the certificates.
//!
//! ```text
//! STATE/lock                        held by the process that orders
//! STATE/account-HOST-PATH.json      the account at an authority, with its key
//! STATE/www.example.org.pem         a certificate: its key, and its chain
//! ```
//!
//! Key and chain are in one file, because a file can be replaced at once, and two cannot. Only its owner may read the
//! folder. A folder in which another user could have put a file is refused.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Gid, Uid};

use crate::error::AcmeError;

/// The folder.
#[derive(Clone, Debug)]
pub struct StateFolder {
    path: PathBuf,
}

/// While this lock is held, no other process orders.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "the lock ends with the descriptor")] File);

impl StateFolder {
    /// Makes the folder if it is not there. `owner`: the user and the group to which this process will change, if it
    /// does; the folder and its content are given to them.
    ///
    /// # Errors
    /// When others could read or write it, or the system refuses.
    pub fn prepare(path: &Path, owner: Option<(u32, u32)>) -> Result<Self, AcmeError> {
        make(path).map_err(AcmeError::file(path))?;
        let me = rustix::process::geteuid().as_raw();
        let user = owner.map_or(me, |(user, _)| user);
        let folder = open_folder(path)?;
        let found = folder.metadata().map_err(AcmeError::file(path))?;
        let is_ours = found.uid() == user || found.uid() == me;
        if !is_ours || found.mode() & 0o077 != 0 {
            return Err(AcmeError::Folder(path.to_owned()));
        }
        if let Some((user, group)) = owner.filter(|_| me == 0) {
            give(&folder, user, group).map_err(AcmeError::file(path))?;
            give_content(path, &folder, user, group)?;
        }
        Ok(Self { path: path.to_owned() })
    }

    /// The file of the certificate with these names. Its name is that of the first one; a wildcard's star is a line.
    pub fn certificate_file(&self, names: &[String]) -> PathBuf {
        let first = names.first().map_or("none", |name| name);
        let plain = first.to_ascii_lowercase().replace('*', "_").replace('/', "-");
        self.path.join(format!("{plain}.pem"))
    }

    /// The names of certificates that are here, as far as their files tell.
    pub(crate) fn names(&self) -> Result<Vec<String>, AcmeError> {
        let entries = fs::read_dir(&self.path).map_err(AcmeError::file(&self.path))?;
        let names = entries.flatten().filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some(name.strip_suffix(".pem")?.to_owned())
        });
        Ok(names.collect())
    }

    /// The stored certificate of these names; `None`: there is none yet.
    pub(crate) fn certificate(&self, names: &[String]) -> Result<Option<Vec<u8>>, AcmeError> {
        read(&self.certificate_file(names))
    }

    pub(crate) fn store_certificate(&self, names: &[String], pem: &str) -> Result<(), AcmeError> {
        self.replace(&self.certificate_file(names), pem.as_bytes())
    }

    /// The account at the authority with this directory.
    pub(crate) fn account(&self, directory: &str) -> Result<Option<Vec<u8>>, AcmeError> {
        read(&self.account_file(directory))
    }

    pub(crate) fn store_account(&self, directory: &str, json: &[u8]) -> Result<(), AcmeError> {
        self.replace(&self.account_file(directory), json)
    }

    pub(crate) fn remove_account(&self, directory: &str) -> Result<(), AcmeError> {
        let path = self.account_file(directory);
        fs::remove_file(&path).map_err(AcmeError::file(&path))
    }

    pub(crate) fn account_file(&self, directory: &str) -> PathBuf {
        let bare = directory.trim_start_matches("https://");
        let plain: String = bare
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' })
            .collect();
        self.path.join(format!("account-{plain}.json"))
    }

    /// Has this process alone order; `None`: another one does.
    pub(crate) fn lock(&self) -> Result<Option<Lock>, AcmeError> {
        let path = self.path.join("lock");
        let open = File::options().create(true).write(true).truncate(false).mode(0o600).open(&path);
        let file = open.map_err(AcmeError::file(&path))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(AcmeError::file(&path)(error.into())),
        }
    }

    /// All or nothing, also when the disk is full or the power fails.
    fn replace(&self, path: &Path, content: &[u8]) -> Result<(), AcmeError> {
        let next = path.with_extension("next");
        let write = || -> io::Result<()> {
            let mut options = File::options();
            let mut file =
                options.create(true).write(true).truncate(true).mode(0o600).open(&next)?;
            file.set_permissions(Permissions::from_mode(0o600))?;
            file.write_all(content)?;
            file.sync_all()?;
            fs::rename(&next, path)?;
            File::open(&self.path)?.sync_all()
        };
        write().map_err(|error| {
            // It was not there before, or was of an attempt that failed, too.
            let _ = fs::remove_file(&next);
            AcmeError::file(path)(error)
        })
    }
}

/// Makes the folder, and those above it. Those hold nothing secret and get mode 755 under any umask, because the user
/// of the workers must be able to pass through them.
fn make(path: &Path) -> io::Result<()> {
    let exists = |error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists;
    let missing: Vec<_> = path.ancestors().skip(1).take_while(|above| !above.exists()).collect();
    for above in missing.into_iter().rev().filter(|above| !above.as_os_str().is_empty()) {
        match fs::create_dir(above) {
            Ok(()) => fs::set_permissions(above, Permissions::from_mode(0o755))?,
            Err(error) if exists(&error) => {}
            Err(error) => return Err(error),
        }
    }
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if !exists(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Does not follow a link.
fn open_folder(path: &Path) -> Result<File, AcmeError> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = rustix::fs::open(path, flags, Mode::empty());
    Ok(open.map_err(|error| AcmeError::file(path)(error.into()))?.into())
}

/// Gives the files in the folder to its owner, too: an afpa that stayed root may have made them. An intruder in a
/// process without privileges may be that owner, and may have linked a file of root's here to get it. So a file with
/// another name (link count above 1), or of a third user, is refused.
fn give_content(path: &Path, folder: &File, user: u32, group: u32) -> Result<(), AcmeError> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    for entry in fs::read_dir(path).map_err(AcmeError::file(path))?.flatten() {
        // A link, a socket, or a file that was removed meanwhile: none is ours.
        let Ok(file) = rustix::fs::openat(folder, entry.file_name(), flags, Mode::empty()) else {
            continue;
        };
        let file = File::from(file);
        let found = file.metadata().map_err(AcmeError::file(&entry.path()))?;
        if !found.is_file() || found.uid() == user {
            continue;
        }
        if found.nlink() != 1 || found.uid() != rustix::process::geteuid().as_raw() {
            let why = "it has another name elsewhere, or is somebody else's".to_owned();
            return Err(AcmeError::Content { path: entry.path(), why });
        }
        give(&file, user, group).map_err(AcmeError::file(&entry.path()))?;
    }
    Ok(())
}

fn give(file: &File, user: u32, group: u32) -> io::Result<()> {
    Ok(rustix::fs::fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?)
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, AcmeError> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(AcmeError::file(path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn folder_and_files_are_their_owners_alone() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("lib/afpa/acme");
        let folder = StateFolder::prepare(&path, None).unwrap();
        assert_eq!(mode(&path), 0o700);
        assert_eq!(mode(path.parent().unwrap()) & 0o055, 0o055, "others get through to their own");
        let names = ["*.Example.org".to_owned()];
        assert_eq!(folder.certificate(&names).unwrap(), None);
        folder.store_certificate(&names, "pem").unwrap();
        folder.store_certificate(&names, "another").unwrap();
        assert_eq!(folder.certificate(&names).unwrap().as_deref(), Some(&b"another"[..]));
        let file = folder.certificate_file(&names);
        assert_eq!(file, path.join("_.example.org.pem"));
        assert_eq!(mode(&file), 0o600);
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_folder_that_others_can_read_is_refused() {
        let temporary = tempfile::tempdir().unwrap();
        fs::set_permissions(temporary.path(), Permissions::from_mode(0o750)).unwrap();
        let error = StateFolder::prepare(temporary.path(), None).unwrap_err().to_string();
        assert!(error.contains("0700"), "{error}");
    }

    #[test]
    fn a_link_is_no_folder() {
        let temporary = tempfile::tempdir().unwrap();
        let link = temporary.path().join("link");
        std::os::unix::fs::symlink(temporary.path(), &link).unwrap();
        assert!(StateFolder::prepare(&link, None).is_err());
    }

    #[test]
    fn it_is_given_to_the_user_that_the_process_becomes() {
        if !rustix::process::geteuid().is_root() {
            return println!("SKIP: not root");
        }
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("acme");
        let folder = StateFolder::prepare(&path, None).unwrap();
        folder.store_certificate(&["a.test".to_owned()], "pem").unwrap();
        StateFolder::prepare(&path, Some((12345, 12346))).unwrap();
        for path in [path.clone(), path.join("a.test.pem")] {
            let found = fs::metadata(&path).unwrap();
            assert_eq!((found.uid(), found.gid()), (12345, 12346), "{}", path.display());
        }
        StateFolder::prepare(&path, Some((12345, 12346))).unwrap();
        let stranger = StateFolder::prepare(&path, Some((54321, 54321)));
        assert!(stranger.is_err(), "it belongs to somebody else");
    }

    #[test]
    fn a_file_of_root_is_not_given_to_whoever_has_linked_it_there() {
        if !rustix::process::geteuid().is_root() {
            return println!("SKIP: not root");
        }
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("acme");
        StateFolder::prepare(&path, Some((12345, 12346))).unwrap();
        let secret = temporary.path().join("shadow");
        fs::write(&secret, "root:").unwrap();
        fs::hard_link(&secret, path.join("a.test.pem")).unwrap();
        std::os::unix::fs::symlink(&secret, path.join("b.test.pem")).unwrap();
        let error = StateFolder::prepare(&path, Some((12345, 12346))).unwrap_err().to_string();
        assert!(error.contains("a.test.pem") && error.contains("another name"), "{error}");
        assert_eq!(fs::metadata(&secret).unwrap().uid(), 0);
        fs::remove_file(path.join("a.test.pem")).unwrap();
        StateFolder::prepare(&path, Some((12345, 12346))).unwrap();
        assert_eq!(fs::metadata(&secret).unwrap().uid(), 0, "a link is not followed");
    }

    #[test]
    fn one_process_orders_at_a_time() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("acme");
        let folder = StateFolder::prepare(&path, None).unwrap();
        let lock = folder.lock().unwrap();
        assert!(lock.is_some());
        assert!(folder.lock().unwrap().is_none());
        drop(lock);
        assert!(folder.lock().unwrap().is_some());
    }

    #[test]
    fn accounts_of_two_authorities_are_two() {
        let folder = StateFolder { path: PathBuf::from("/state") };
        let file = folder.account_file("https://acme-v02.api.letsencrypt.org/directory");
        let name = "/state/account-acme-v02.api.letsencrypt.org-directory.json";
        assert_eq!(file, Path::new(name));
        assert_eq!(folder.account_file("https://a/../../b").parent(), Some(Path::new("/state")));
    }
}
