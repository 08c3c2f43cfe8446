//! The path of the program that the next process runs: that by which this one was started, with the links in it. A link may
//! have been turned to a new version.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

const OWN: &str = "/proc/self/exe";

/// The kernel's word behind the path of a program that another one has replaced.
const DELETED: &[u8] = b" (deleted)";

/// That path, as it is known at the start.
///
/// # Errors
/// Where there is no /proc.
pub(super) fn path() -> io::Result<PathBuf> {
    let name = env::args_os().next().unwrap_or_default();
    let told = by_name(&name, &env::current_dir()?, env::var_os("PATH").as_deref());
    // A caller may give any name.
    match told.filter(|told| is_same(told, Path::new(OWN))) {
        Some(told) => Ok(told),
        None => fs::read_link(OWN).map(without_word),
    }
}

/// Where a shell finds a program of this name.
fn by_name(name: &OsStr, here: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(here.join(name));
    }
    let places = env::split_paths(path?).map(|folder| here.join(folder).join(name));
    places.into_iter().find(|place| !name.is_empty() && place.is_file())
}

fn is_same(one: &Path, other: &Path) -> bool {
    let identity = |path| fs::metadata(path).map(|about| (about.dev(), about.ino()));
    identity(one).ok().zip(identity(other).ok()).is_some_and(|(one, other)| one == other)
}

/// The path at which the program was, and at which another one may stand now.
fn without_word(path: PathBuf) -> PathBuf {
    match path.as_os_str().as_bytes().strip_suffix(DELETED) {
        Some(before) if !path.exists() => OsString::from_vec(before.to_vec()).into(),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_as_a_shell_finds_it() {
        let path = Some(OsStr::new("/nowhere:/usr/bin:/bin"));
        let found = |name: &str| by_name(OsStr::new(name), Path::new("/srv"), path);
        assert_eq!(found("./bin/afpa"), Some("/srv/./bin/afpa".into()));
        assert_eq!(found("/opt/afpa"), Some("/opt/afpa".into()));
        assert_eq!(found("env"), Some("/usr/bin/env".into()));
        assert_eq!((found(""), found("no-such-program")), (None, None));
        assert_eq!(by_name(OsStr::new("env"), Path::new("/srv"), None), None);
    }

    #[test]
    fn the_word_of_a_replaced_program_is_no_part_of_its_path() {
        assert_eq!(without_word("/x/afpa (deleted)".into()), Path::new("/x/afpa"));
        assert_eq!(without_word("/x/afpa".into()), Path::new("/x/afpa"));
    }
}
