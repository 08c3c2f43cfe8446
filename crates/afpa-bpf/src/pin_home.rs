//! The folder of this machine in which pinned programs and maps outlive their process.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{
    CWD, FsWord, Gid, Mode, OFlags, Uid, fchmod, fchown, fstat, fstatfs, mkdirat, open,
};
use rustix::process::geteuid;

/// Every AFPA process, of any user, has a folder of its own in here. This one is sticky and open to everybody,
/// like /tmp, so that a process that has given up its rights can remove its own folder.
pub const HOME: &str = "/sys/fs/bpf/afpa";

/// `BPF_FS_MAGIC`
const BPF_FS: FsWord = 0xcafe_4a11;
const EVERYBODYS: u32 = 0o1777;

/// Opens [`HOME`]. Makes it if it is missing, and corrects its mode and owner.
///
/// # Errors
/// When there is no BPF file system, or the folder belongs to another user than us and root.
pub fn open_home() -> io::Result<File> {
    let home = open_shared(Path::new(HOME))?;
    if fstatfs(&home)?.f_type != BPF_FS {
        return Err(io::Error::other(format!("{HOME} is on no BPF file system")));
    }
    Ok(home)
}

/// Opens a folder that is open to everybody. The mode that mkdir gives depends on a mask, and is in force
/// before its maker can change it. So every process that may do so corrects the folder that it has opened.
fn open_shared(path: &Path) -> io::Result<File> {
    match mkdirat(CWD, path, Mode::from_raw_mode(EVERYBODYS)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = open(path, flags, Mode::empty())?;
    let (me, found) = (geteuid(), fstat(&folder)?);
    if me.is_root() && found.st_uid != 0 {
        // Its owner could put other folders in the place of ours.
        fchown(&folder, Some(Uid::ROOT), Some(Gid::ROOT))?;
    } else if found.st_uid != 0 && found.st_uid != me.as_raw() {
        return Err(io::Error::other(format!("{} belongs to somebody else", path.display())));
    }
    if (me.is_root() || found.st_uid == me.as_raw()) && found.st_mode & 0o7777 != EVERYBODYS {
        fchmod(&folder, Mode::from_raw_mode(EVERYBODYS))?;
    }
    Ok(folder.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_folder_that_somebody_made_for_himself_is_mended() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("afpa");
        open_shared(&home).unwrap();
        assert_eq!(mode(&home), EVERYBODYS, "whatever the mask");
        for other in [0o755, 0o700, 0o777, 0o1755] {
            fs::set_permissions(&home, fs::Permissions::from_mode(other)).unwrap();
            open_shared(&home).unwrap();
            assert_eq!(mode(&home), EVERYBODYS, "it was {other:o}");
        }
    }

    #[test]
    fn root_takes_it_from_others() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("afpa");
        fs::create_dir(&home).unwrap();
        if let Err(error) = std::os::unix::fs::chown(&home, Some(12345), Some(12345)) {
            return println!("SKIP: not root: {error}");
        }
        open_shared(&home).unwrap();
        let found = fs::metadata(&home).unwrap();
        assert_eq!((found.uid(), found.gid(), mode(&home)), (0, 0, EVERYBODYS));
    }

    #[test]
    fn nothing_but_a_folder_will_do() {
        let folder = tempfile::tempdir().unwrap();
        let [link, file] = ["link", "file"].map(|name| folder.path().join(name));
        symlink(folder.path(), &link).unwrap();
        fs::write(&file, "").unwrap();
        assert!(open_shared(&link).is_err() && open_shared(&file).is_err());
        assert_ne!(mode(folder.path()), EVERYBODYS, "what the link leads to is left alone");
    }

    #[test]
    fn many_at_once_all_get_it() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("afpa");
        std::thread::scope(|scope| {
            for number in 0..16 {
                let home = &home;
                scope.spawn(move || {
                    open_shared(home).unwrap();
                    fs::create_dir(home.join(number.to_string())).unwrap();
                });
            }
        });
        assert_eq!(mode(&home), EVERYBODYS);
    }
}
