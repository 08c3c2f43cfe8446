//! Folders of control sockets: their owner is checked, and that nobody else can put anything in them.
//!
//! A folder is opened first, without following a link, and looked at and changed by its descriptor, so that nothing
//! can be put in its place meanwhile.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use rustix::fs::{CWD, Gid, Mode, Uid, fchown};

use crate::folder::open_or_make;
use crate::privileges::Identity;

/// Everybody may look into them.
const MODE: Mode = Mode::from_raw_mode(0o755);

/// Makes `base`, for this user, and in it a folder for the user that this process becomes.
pub(super) fn prepare(base: &Path, owner: Option<&Identity>) -> anyhow::Result<PathBuf> {
    let me = rustix::process::geteuid().as_raw();
    let (folder, _) = open_or_make(CWD, base, base, MODE)?;
    own(&folder, base, me, None)?;
    let Some(owner) = owner.filter(|owner| owner.uid.as_raw() != me) else {
        return Ok(base.to_owned());
    };
    let path = base.join(&owner.name);
    let (inner, _) = open_or_make(&folder, Path::new(&owner.name), &path, MODE)?;
    own(&inner, &path, owner.uid.as_raw(), Some(owner.gid.as_raw()))?;
    Ok(path)
}

/// These folders, and those in them.
pub(super) fn with_inner(folders: Vec<PathBuf>) -> Vec<PathBuf> {
    let inner = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok());
    let inner = inner.flat_map(|entries| entries.flatten()).filter(|entry| {
        // A link is none.
        entry.file_type().is_ok_and(|kind| kind.is_dir())
    });
    let inner: Vec<_> = inner.map(|entry| entry.path()).collect();
    folders.into_iter().chain(inner).collect()
}

/// Refuses a folder that others can write to, and sees to it that it is `user`'s.
fn own(folder: &File, shown: &Path, user: u32, group: Option<u32>) -> anyhow::Result<()> {
    let found = folder.metadata()?;
    let me = rustix::process::geteuid();
    // Root may take any folder, such as /run/afpa, which an afpa of old gave to the user that it became.
    let ours = me.is_root() || found.uid() == user;
    if !ours || found.mode() & 0o022 != 0 {
        let shown = shown.display();
        bail!(
            "{shown} belongs to or can be written by somebody else: remove it, or set [control] path"
        );
    }
    if found.uid() != user {
        fchown(folder, Some(Uid::from_raw(user)), group.map(Gid::from_raw))
            .map_err(io::Error::from)
            .with_context(|| format!("cannot give {} to user {user}", shown.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    const STRANGER: u32 = 12345;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("afpa");
        (temporary, path)
    }

    fn identity(user: u32) -> Identity {
        Identity { name: "somebody".to_owned(), uid: user.into(), gid: user.into() }
    }

    fn owner(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().uid()
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let (_temporary, folder) = folder();
        prepare(&folder, None).unwrap();
        prepare(&folder, None).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        let error = prepare(&folder, None).unwrap_err().to_string();
        assert!(error.contains("can be written by somebody else"), "{error}");
    }

    #[test]
    fn a_link_in_the_place_of_the_folder_is_refused() {
        let (temporary, folder) = folder();
        std::os::unix::fs::symlink(temporary.path(), &folder).unwrap();
        assert!(prepare(&folder, None).is_err());
    }

    #[test]
    fn the_folder_stays_roots_and_the_user_has_one_of_its_own_in_it() {
        let (_temporary, folder) = folder();
        if !rustix::process::geteuid().is_root() {
            return println!("SKIP: not root");
        }
        let inner = prepare(&folder, Some(&identity(STRANGER))).unwrap();
        assert_eq!(inner, folder.join("somebody"));
        assert_eq!((owner(&folder), owner(&inner)), (0, STRANGER));
        assert_eq!(with_inner(vec![folder.clone()]), [folder.clone(), inner.clone()]);
        // As an afpa of old left it, in which the user could replace root's socket.
        std::os::unix::fs::chown(&folder, Some(STRANGER), None).unwrap();
        prepare(&folder, None).unwrap();
        assert_eq!(owner(&folder), 0);
        // The user cannot have root give it another folder.
        fs::remove_dir(&inner).unwrap();
        let precious = folder.join("precious");
        fs::create_dir(&precious).unwrap();
        std::os::unix::fs::symlink(&precious, &inner).unwrap();
        assert!(prepare(&folder, Some(&identity(STRANGER))).is_err());
        assert_eq!(owner(&precious), 0);
        assert_eq!(
            with_inner(vec![folder.clone()]),
            [folder, precious],
            "a link is not looked into"
        );
    }
}
