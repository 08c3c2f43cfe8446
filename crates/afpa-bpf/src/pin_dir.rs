//! The folder of pinned programs and maps, by which connections survive the end of the process.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, FlockOperation, Gid, Mode, OFlags, Uid, fchmod, fchown, flock, mkdirat,
    open, openat, statat, unlinkat,
};
use rustix::process::geteuid;

use crate::net::clsact::remove_kept_filters;
use crate::pin_home::{HOME, open_home};

/// The folder of this process on the BPF file system. It is locked, so that no other process takes it, and
/// reached by its descriptor: others cannot redirect it by changing names, and a user who may not see
/// /sys/fs/bpf can empty it.
#[derive(Debug)]
pub struct PinDir {
    home: File,
    folder: File,
    name: String,
    owner: Option<PinDirOwner>,
    inherited: bool,
    stays: bool,
}

/// The user that the process becomes: the folder is to be its own.
#[derive(Clone, Copy, Debug)]
pub struct PinDirOwner {
    /// The number of the user.
    pub user: u32,
    /// The number of the group.
    pub group: u32,
}

/// Why there is no folder. The fast path does without.
#[derive(Debug, thiserror::Error)]
pub enum PinDirRefused {
    /// Another process has it.
    #[error("another process has {0}")]
    InUse(PathBuf),
    /// Another user made it, or something in it. Its programs would answer clients in our name.
    #[error("{0} was made by somebody else (user {1}): remove it")]
    Foreign(PathBuf, u32),
    /// There is no place for one.
    #[error(transparent)]
    Nowhere(#[from] io::Error),
}

impl PinDir {
    /// The name of the folder of an `afpa serve` whose first port this is.
    ///
    /// # Errors
    /// When the number of the network namespace cannot be read.
    pub fn name_of_serve(port: u16) -> io::Result<String> {
        Ok(format!("{}-{port}", namespace()?))
    }

    /// The name of the folder of an `afpa attach` on a port.
    ///
    /// # Errors
    /// When the number of the network namespace cannot be read.
    pub fn name_of_attach(port: u16) -> io::Result<String> {
        Ok(format!("attach-{}-{port}", namespace()?))
    }

    /// Opens the folder, or makes it. Until [`hand_over`](Self::hand_over) it belongs to this process's user, so
    /// that no other user changes the objects that are loaded from it.
    ///
    /// # Errors
    /// When there is no place for it, another process has it, or it or its contents belong to another user.
    pub fn open(name: String, owner: Option<PinDirOwner>) -> Result<Self, PinDirRefused> {
        let home = open_home()?;
        make(&home, &name)?;
        let folder = open_in(&home, &name)?;
        let lock = flock(&folder, FlockOperation::NonBlockingLockExclusive);
        lock.map_err(|_| PinDirRefused::InUse(Self::shown(&name)))?;
        claim(&folder, &name, owner)?;
        let inherited = entries(&folder)?.next().is_some();
        Ok(Self { home, folder, name, owner, inherited, stays: false })
    }

    /// Opens the folder that a process has left behind, whichever user it had become.
    ///
    /// # Errors
    /// As [`open`](Self::open). A folder that is not there is not made.
    pub fn adopt(path: &Path) -> Result<Self, PinDirRefused> {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let found = Self::look(name)?.metadata()?;
        Self::open(name.to_owned(), Some(PinDirOwner { user: found.uid(), group: found.gid() }))
    }

    /// The path by which the loader finds it.
    pub fn path(&self) -> PathBuf {
        within(&self.folder)
    }

    /// Whether an earlier process left something in it.
    pub fn was_inherited(&self) -> bool {
        self.inherited
    }

    /// The folder, to compare its contents.
    pub(crate) fn folder(&self) -> &File {
        &self.folder
    }

    /// Gives it to the user that the process becomes. Call it when everything is loaded.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn hand_over(&self) -> io::Result<()> {
        let Some(owner) = self.owner.filter(|_| geteuid().is_root()) else { return Ok(()) };
        let (user, group) = (Uid::from_raw(owner.user), Gid::from_raw(owner.group));
        Ok(fchown(&self.folder, Some(user), Some(group))?)
    }

    /// Numbers of the interfaces of which it keeps links.
    pub fn interfaces(&self) -> Vec<u32> {
        let names = entries(&self.folder).into_iter().flatten();
        names.filter_map(|name| name.strip_prefix("ingress-")?.parse().ok()).collect()
    }

    /// Removes everything in it. Programs that no process holds are then detached.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn clear(&self) -> io::Result<()> {
        clear(&self.folder)
    }

    /// Removes the pins of [`Settings::keep_in`](crate::Settings::keep_in). This detaches
    /// the programs of a process that has ended; connections that need translation break.
    pub fn forget(folder: &Path) -> io::Result<()> {
        clear(&open(folder, FOLDER, Mode::empty())?.into())?;
        std::fs::remove_dir(folder)
    }

    /// Whether it is left for the next process when this value is dropped, or removed.
    pub fn leave(&mut self, stays: bool) {
        self.stays = stays;
    }

    fn remove(&self) -> io::Result<()> {
        Self::remove_in(&self.home, &self.name, &self.folder)
    }

    /// All folders of this network namespace that an `afpa attach` has left, or has.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn of_attach() -> io::Result<Vec<PathBuf>> {
        let names = Self::names()?.into_iter().filter(|name| name.starts_with("attach-"));
        Ok(names.map(|name| Self::shown(&name)).collect())
    }

    /// Names of all folders of this network namespace.
    pub(crate) fn names() -> io::Result<Vec<String>> {
        let home = match open(HOME, FOLDER, Mode::empty()) {
            Ok(home) => File::from(home),
            Err(rustix::io::Errno::NOENT) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let namespace = namespace()?;
        let (serve, attach) = (format!("{namespace}-"), format!("attach-{namespace}-"));
        let names = entries(&home)?;
        Ok(names.filter(|name| name.starts_with(&serve) || name.starts_with(&attach)).collect())
    }

    /// Opens a folder that may be anybody's, only to look at it.
    pub(crate) fn look(name: &str) -> io::Result<File> {
        open_in(&File::from(open(HOME, FOLDER, Mode::empty())?), name)
    }

    /// Where people find it.
    pub(crate) fn shown(name: &str) -> PathBuf {
        Path::new(HOME).join(name)
    }

    /// Removes a folder that was looked at.
    pub(crate) fn remove_found(name: &str, folder: &File) -> io::Result<()> {
        let home = File::from(open(HOME, FOLDER, Mode::empty())?);
        Self::remove_in(&home, name, folder)
    }

    fn remove_in(home: &File, name: &str, folder: &File) -> io::Result<()> {
        match clear(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            cleared => cleared?,
        }
        match unlinkat(home, name, AtFlags::REMOVEDIR) {
            Err(rustix::io::Errno::NOENT) => Ok(()),
            outcome => Ok(outcome?),
        }
    }
}

/// Every end leaves nothing, also that of a start that fails. Only a process that is killed leaves its folder, or
/// one that says so.
impl Drop for PinDir {
    fn drop(&mut self) {
        if !self.stays {
            let _remains = self.remove();
        }
    }
}

/// Empties a folder. Links are removed, not followed: every name is taken relative to the folder itself.
pub(crate) fn clear(folder: &File) -> io::Result<()> {
    remove_kept_filters(&within(folder))?;
    for name in entries(folder)? {
        match unlinkat(folder, name, AtFlags::empty()) {
            // Another process that ends just now removes it, too.
            Err(rustix::io::Errno::NOENT) => {}
            removed => removed?,
        }
    }
    Ok(())
}

/// A path to an open folder.
pub(crate) fn within(folder: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd()))
}

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The number of our network namespace: namespaces share the BPF file system, and may use the same ports.
fn namespace() -> io::Result<u64> {
    Ok(std::fs::metadata("/proc/thread-self/ns/net")?.ino())
}

fn open_in(home: &File, name: &str) -> io::Result<File> {
    Ok(File::from(openat(home, name, FOLDER, Mode::empty())?))
}

fn entries(folder: &File) -> io::Result<impl Iterator<Item = String>> {
    let names = std::fs::read_dir(within(folder))?.flatten();
    Ok(names.filter_map(|entry| entry.file_name().into_string().ok()))
}

fn make(at: impl AsFd, name: &str) -> io::Result<()> {
    match mkdirat(at, name, Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Refuses a folder of another user, and takes one that an earlier process gave to its user.
fn claim(folder: &File, name: &str, owner: Option<PinDirOwner>) -> Result<(), PinDirRefused> {
    let me = geteuid();
    let heir = owner.map_or(me.as_raw(), |owner| owner.user);
    let foreign = |user| PinDirRefused::Foreign(PinDir::shown(name), user);
    let found = folder.metadata()?;
    if ![0, me.as_raw(), heir].contains(&found.uid()) {
        return Err(foreign(found.uid()));
    }
    if found.mode() & 0o022 != 0 {
        return Err(foreign(found.uid()));
    }
    if me.is_root() {
        fchown(folder, Some(Uid::ROOT), Some(Gid::ROOT)).map_err(io::Error::from)?;
        fchmod(folder, Mode::from_raw_mode(0o700)).map_err(io::Error::from)?;
    }
    // From here on no other user can change it.
    for name in entries(folder)? {
        let entry = statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW).map_err(io::Error::from)?;
        let ours = [0, me.as_raw()].contains(&entry.st_uid);
        // The process that was here pinned links of later interfaces as the user that it had become.
        let its = entry.st_uid == heir && is_link(&name);
        if !(ours || its) || !FileType::from_raw_mode(entry.st_mode).is_file() {
            return Err(foreign(entry.st_uid));
        }
    }
    Ok(())
}

fn is_link(name: &str) -> bool {
    name.starts_with("ingress-") || name.starts_with("egress-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const STRANGER: u32 = 12345;

    /// A folder as on the BPF file system, of which a test has no own.
    fn folder() -> (tempfile::TempDir, File) {
        let temporary = tempfile::tempdir().unwrap();
        let home = File::open(temporary.path()).unwrap();
        make(&home, "pins").unwrap();
        let folder = open_in(&home, "pins").unwrap();
        (temporary, folder)
    }

    fn user_of(refused: Result<(), PinDirRefused>) -> u32 {
        match refused.unwrap_err() {
            PinDirRefused::Foreign(_, user) => user,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn names_are_of_characters_that_the_bpf_file_system_takes() {
        let names =
            [PinDir::name_of_serve(80), PinDir::name_of_attach(80), PinDir::name_of_serve(81)];
        let names = names.map(Result::unwrap);
        for name in &names {
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{name}");
        }
        assert!(names[0] != names[1] && names[0] != names[2]);
    }

    #[test]
    fn a_folder_that_somebody_else_made_is_not_used() {
        if !geteuid().is_root() {
            return println!("SKIP: not root");
        }
        let (temporary, folder) = folder();
        assert!(claim(&folder, "pins", None).is_ok());
        std::os::unix::fs::chown(temporary.path().join("pins"), Some(STRANGER), None).unwrap();
        assert_eq!(user_of(claim(&folder, "pins", None)), STRANGER);
        let other = PinDirOwner { user: 99, group: 99 };
        assert_eq!(user_of(claim(&folder, "pins", Some(other))), STRANGER);
        // The user that an earlier process became, and the next one becomes.
        let heir = PinDirOwner { user: STRANGER, group: STRANGER };
        claim(&folder, "pins", Some(heir)).unwrap();
        assert_eq!(folder.metadata().unwrap().uid(), 0, "until it is handed over");
    }

    #[test]
    fn what_others_can_write_to_is_not_used() {
        let (_temporary, folder) = folder();
        folder.set_permissions(fs::Permissions::from_mode(0o770)).unwrap();
        assert!(claim(&folder, "pins", None).is_err());
    }

    #[test]
    fn maps_that_somebody_else_pinned_are_not_used() {
        if !geteuid().is_root() {
            return println!("SKIP: not root");
        }
        let (temporary, folder) = folder();
        let heir = PinDirOwner { user: STRANGER, group: STRANGER };
        let at = |name: &str| temporary.path().join("pins").join(name);
        fs::write(at("flows"), "").unwrap();
        fs::write(at("egress-7"), "").unwrap();
        std::os::unix::fs::chown(at("egress-7"), Some(STRANGER), None).unwrap();
        claim(&folder, "pins", Some(heir)).unwrap();
        assert!(claim(&folder, "pins", None).is_err(), "it becomes another user");
        std::os::unix::fs::chown(at("flows"), Some(STRANGER), None).unwrap();
        assert_eq!(user_of(claim(&folder, "pins", Some(heir))), STRANGER);
        fs::remove_file(at("flows")).unwrap();
        symlink(at("egress-7"), at("slots")).unwrap();
        assert_eq!(user_of(claim(&folder, "pins", Some(heir))), 0, "a link is no map");
    }

    #[test]
    fn nothing_is_deleted_through_a_link() {
        let (temporary, folder) = folder();
        let precious = temporary.path().join("precious");
        fs::create_dir(&precious).unwrap();
        fs::write(precious.join("file"), "").unwrap();
        let home = File::open(temporary.path()).unwrap();
        symlink(&precious, temporary.path().join("link")).unwrap();
        assert!(open_in(&home, "link").is_err());
        symlink(precious.join("file"), temporary.path().join("pins/link")).unwrap();
        clear(&folder).unwrap();
        assert!(precious.join("file").exists());
        assert_eq!(entries(&folder).unwrap().count(), 0);
    }
}
