//! Finds the files below the root that may be pinned.

use afpa_cache::root::{DocumentRoot, Entry, ListedKind};

use crate::Scope;

/// Names in one directory that are looked at.
const NAMES: usize = 100_000;
/// Directories that are looked at in one walk.
const FOLDERS: usize = 100_000;

/// Calls `found` with every directory (with a slash at its end) below `start` and every file in it
/// that is in scope. `found` says whether to go on. Directories behind links are not entered: nothing
/// would end a walk in circles.
pub fn walk(
    root: &DocumentRoot,
    scope: &Scope,
    start: &[u8],
    found: &mut dyn FnMut(&[u8]) -> bool,
) {
    let mut waiting = vec![start.to_vec()];
    let mut seen = 0;
    while let Some(mut folder) = waiting.pop() {
        if !folder.ends_with(b"/") {
            folder.push(b'/');
        }
        let Ok(Entry::Directory(directory)) = root.resolve(&folder) else { continue };
        seen += 1;
        if seen > FOLDERS || (scope.covers(&folder) && !found(&folder)) {
            return;
        }
        for listed in directory.list(false, NAMES).unwrap_or_default() {
            let path = [&folder, listed.name.as_slice()].concat();
            match listed.kind {
                ListedKind::Directory => waiting.push(path),
                ListedKind::File(size) if size > scope.longest as u64 => {}
                ListedKind::File(_) | ListedKind::Link if scope.covers(&path) => {
                    if !found(&path) {
                        return;
                    }
                }
                ListedKind::File(_) | ListedKind::Link => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afpa_cache::root::RootSettings;

    #[test]
    fn files_in_scope_and_their_folders() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::create_dir_all(at("private")).unwrap();
        for name in ["x.html", "a/y.css", "a/b/z.php", ".hidden.html", "private/p.html"] {
            std::fs::write(at(name), "content").unwrap();
        }
        std::fs::write(at("large.html"), [0; 2000]).unwrap();
        std::os::unix::fs::symlink("..", at("a/up")).unwrap();
        let root = DocumentRoot::open(folder.path(), RootSettings::default()).unwrap();
        let scope = Scope {
            extensions: vec!["html".into(), "css".into()],
            excluded: vec!["/private".into()],
            longest: 1460,
        };
        let mut all = Vec::new();
        walk(&root, &scope, b"/", &mut |path| {
            all.push(String::from_utf8_lossy(path).into_owned());
            true
        });
        all.sort();
        assert_eq!(all, ["/", "/a/", "/a/b/", "/a/y.css", "/x.html"]);
    }
}
