//! The users who can decide where a path leads.
//!
//! The reading process has more rights than the process that asks it. If the asking process could put a link in the
//! place of a file, it would get any file of the host. So every folder and link on the way must belong to root, and
//! nobody else may write there. In a folder such as `/tmp`, where users may remove only their own files, root's files
//! are safe as well.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Links on the way, as many as the kernel follows.
const MOST_LINKS: usize = 40;
/// Users other than the owner may write.
const WRITABLE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// The file that `path` leads to, without a link on the way, if only root can change where it leads.
///
/// # Errors
/// `PermissionDenied` with the place that somebody else can change; otherwise the system's error.
pub(crate) fn settled(path: &Path) -> io::Result<PathBuf> {
    let mut rest: VecDeque<OsString> = steps(path);
    let mut place = PathBuf::from("/");
    let mut links = 0;
    check_folder(&place, &fs::symlink_metadata(&place)?)?;
    while let Some(step) = rest.pop_front() {
        if step == ".." {
            place.pop();
            continue;
        }
        let next = place.join(&step);
        let about = fs::symlink_metadata(&next)?;
        if about.is_symlink() {
            links += 1;
            if links > MOST_LINKS {
                return Err(io::Error::other("there are too many links on the way"));
            }
            check(&next, about.uid() == 0)?;
            let target = fs::read_link(&next)?;
            if target.is_absolute() {
                place = PathBuf::from("/");
            }
            for step in steps(&target).into_iter().rev() {
                rest.push_front(step);
            }
            continue;
        }
        match about.is_dir() {
            true => check_folder(&next, &about)?,
            false => check(&next, about.uid() == 0 && about.mode() & WRITABLE == 0)?,
        }
        place = next;
    }
    Ok(place)
}

fn steps(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(step) => Some(step.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        })
        .collect()
}

fn check_folder(place: &Path, about: &Metadata) -> io::Result<()> {
    let is_settled = about.mode() & WRITABLE == 0 || about.mode() & STICKY != 0;
    check(place, about.uid() == 0 && is_settled)
}

fn check(place: &Path, is_roots: bool) -> io::Result<()> {
    if is_roots {
        return Ok(());
    }
    let place = place.display();
    let why = format!(
        "others than root can change {place}: give it to root, and nobody else the right to write"
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    /// A folder of root's in `/tmp`, with a key in it; `None` without root.
    fn bed() -> Option<(tempfile::TempDir, PathBuf)> {
        if !nix::unistd::geteuid().is_root() {
            println!("SKIP: not started as root");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key.pem");
        fs::write(&key, "key").unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        Some((folder, key))
    }

    fn is_refused(path: &Path) -> bool {
        settled(path).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    }

    #[test]
    fn what_root_alone_can_change_is_found_through_links() {
        let Some((folder, key)) = bed() else { return };
        assert_eq!(settled(&key).unwrap(), key);
        let live = folder.path().join("live");
        fs::create_dir(&live).unwrap();
        symlink("../key.pem", live.join("privkey.pem")).unwrap();
        assert_eq!(settled(&live.join("privkey.pem")).unwrap(), key);
        symlink(&live, folder.path().join("now")).unwrap();
        assert_eq!(settled(&folder.path().join("now/privkey.pem")).unwrap(), key);
        let missing = settled(&folder.path().join("none")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        symlink("round", folder.path().join("round")).unwrap();
        assert!(settled(&folder.path().join("round")).is_err());
    }

    #[test]
    fn what_others_can_change_is_refused() {
        let Some((folder, key)) = bed() else { return };
        let others = folder.path().join("others");
        fs::create_dir(&others).unwrap();
        symlink(&key, others.join("key.pem")).unwrap();
        assert_eq!(settled(&others.join("key.pem")).unwrap(), key);
        fs::set_permissions(&others, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(is_refused(&others.join("key.pem")), "a folder that all may write to");
        fs::set_permissions(&others, fs::Permissions::from_mode(0o755)).unwrap();
        chown(&others, Some(33), Some(33)).unwrap();
        assert!(is_refused(&others.join("key.pem")), "somebody else's folder");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o620)).unwrap();
        assert!(is_refused(&key), "a file that its group may write to");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(settled(&key).unwrap(), key);
        chown(&key, Some(33), None).unwrap();
        assert!(is_refused(&key), "somebody else's file");
    }

    #[test]
    fn a_link_of_somebody_else_is_refused() {
        let Some((folder, key)) = bed() else { return };
        let link = folder.path().join("link");
        symlink(&key, &link).unwrap();
        assert!(settled(&link).is_ok());
        std::os::unix::fs::lchown(&link, Some(33), Some(33)).unwrap();
        assert!(is_refused(&link));
    }
}
