//! Makes a workload's files.

use std::fs::{self, File, FileTimes, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};

use crate::workload::Object;

/// The modification time of every file, in seconds since 1970: the same for each server, and long ago,
/// so that no server doubts it (RFC 9110 section 8.8.2.2).
pub const MODIFIED: u64 = 978_307_200;
/// The same as an HTTP date.
pub const LAST_MODIFIED: &str = "Mon, 01 Jan 2001 00:00:00 GMT";

/// Makes the missing files below `root`; keeps a file that has the right length and date.
pub(crate) fn make(objects: &[Object], root: &Path) -> Result<()> {
    let mut folder = PathBuf::new();
    for object in objects {
        let file = place(root, &object.path)?;
        let parent = file.parent().context("a file is in a folder")?;
        if parent != folder {
            make_folders(root, parent).with_context(|| format!("{}", parent.display()))?;
            folder = parent.to_owned();
        }
        if !is_made(object, &file) {
            write(object, &file).with_context(|| format!("cannot write {}", file.display()))?;
        }
    }
    Ok(())
}

/// Readable by servers that give up root, whatever the umask is.
fn make_folders(root: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    for made in folder.ancestors().take_while(|made| *made != root) {
        fs::set_permissions(made, Permissions::from_mode(0o755))?;
    }
    Ok(())
}

fn is_made(object: &Object, file: &Path) -> bool {
    let Ok(found) = file.metadata() else { return false };
    found.is_file()
        && found.len() == object.body.length()
        && found.modified().is_ok_and(|time| time == modified())
}

/// Under another name first: a file that is there is whole.
fn write(object: &Object, file: &Path) -> Result<()> {
    let unfinished = file.with_extension("unfinished");
    let mut writer = BufWriter::new(File::create(&unfinished)?);
    object.body.write(&mut writer)?;
    writer.flush()?;
    writer.get_ref().set_permissions(Permissions::from_mode(0o644))?;
    writer.get_ref().set_times(FileTimes::new().set_modified(modified()))?;
    Ok(fs::rename(&unfinished, file)?)
}

fn modified() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(MODIFIED)
}

fn place(root: &Path, path: &str) -> Result<PathBuf> {
    let relative = Path::new(path.strip_prefix('/').context("a path begins with a slash")?);
    let plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
    ensure!(plain, "{path} would lead out of {}", root.display());
    Ok(root.join(relative))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_made_once_and_mended() {
        let root = tempfile::tempdir().unwrap();
        let objects = [Object::new("/a/one.html", 10), Object::new("/a/b/two.html", 100_000)];
        make(&objects, root.path()).unwrap();
        let file = root.path().join("a/b/two.html");
        assert!(objects[1].body.check(0, &fs::read(&file).unwrap()));
        assert_eq!(file.metadata().unwrap().modified().unwrap(), modified());
        let made = |path: &Path| std::os::unix::fs::MetadataExt::ino(&path.metadata().unwrap());
        let before = made(&file);
        make(&objects, root.path()).unwrap();
        assert_eq!(made(&file), before);
        fs::write(&file, "shorter").unwrap();
        make(&objects, root.path()).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 100_000);
        assert_eq!(fs::read_dir(root.path().join("a/b")).unwrap().count(), 1);
    }

    #[test]
    fn no_path_leads_out_of_the_root() {
        for path in ["/../x", "x", "/a/../../x", "//x"] {
            assert!(place(Path::new("/r"), path).is_err(), "{path}");
        }
        assert_eq!(place(Path::new("/r"), "/a/b").unwrap(), Path::new("/r/a/b"));
    }
}
