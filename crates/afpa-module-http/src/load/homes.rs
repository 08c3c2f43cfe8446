//! The directory that a path is looked up in: the document root, or a user's home for `/~user/` (JAWS's
//! tilde expander).

use std::collections::HashMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use afpa_cache::root::{DocumentRoot, RootSettings};
use afpa_cache::watch::Watcher;
use nix::unistd::User;

/// Where a path is to be looked for.
pub(crate) struct RootedPath<'a> {
    /// The directory that it lies below.
    pub(super) root: Root<'a>,
    /// The watcher of that directory, if it is watched.
    pub(super) watcher: Option<&'a Watcher>,
    /// The part of the request's path that stands for the directory: `/~user`, or nothing.
    pub(super) prefix: &'a [u8],
    /// The rest of the path; begins with `/`.
    pub(super) path: &'a [u8],
}

/// The document root, or a home. Another thread may be forgetting the home, so it is counted.
pub(super) enum Root<'a> {
    DocRoot(&'a DocumentRoot),
    Home(Arc<DocumentRoot>),
}

impl Deref for Root<'_> {
    type Target = DocumentRoot;
    fn deref(&self) -> &DocumentRoot {
        match self {
            Root::DocRoot(root) => root,
            Root::Home(root) => root,
        }
    }
}

impl<'a> RootedPath<'a> {
    pub(crate) fn in_doc_root(
        root: &'a DocumentRoot,
        watcher: Option<&'a Watcher>,
        path: &'a [u8],
    ) -> Self {
        RootedPath { root: Root::DocRoot(root), watcher, prefix: b"", path }
    }

    /// Homes are not watched: old objects are compared with their files.
    pub(crate) fn in_home(root: Arc<DocumentRoot>, prefix: &'a [u8], path: &'a [u8]) -> Self {
        RootedPath { root: Root::Home(root), watcher: None, prefix, path }
    }
}

/// The homes that requests have asked for, resolved once and remembered.
#[derive(Debug)]
pub(crate) struct Homes {
    directory: PathBuf,
    settings: RootSettings,
    known: Mutex<Known>,
}

/// By user name; `None` for names that have no home to be served.
type Known = HashMap<Box<[u8]>, Option<Arc<DocumentRoot>>>;

/// How many names are remembered. Beyond that, an unknown name is looked up each time, so that a flood of
/// invented names costs time but no memory.
const REMEMBERED: usize = 10_000;

impl Homes {
    /// Serves `directory` in the home of each user.
    pub(crate) fn new(directory: &Path, settings: RootSettings) -> Self {
        Self { directory: directory.to_owned(), settings, known: Mutex::default() }
    }

    /// The root that `/~name` stands for.
    pub(crate) fn root(&self, name: &[u8]) -> Option<Arc<DocumentRoot>> {
        let user = std::str::from_utf8(name).ok().filter(|name| is_user_name(name))?;
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(root) = known.get(name) {
            return root.clone();
        }
        drop(known);
        let root = self.open(user).map(Arc::new);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < REMEMBERED {
            known.insert(name.into(), root.clone());
        }
        root
    }

    fn open(&self, name: &str) -> Option<DocumentRoot> {
        let user = User::from_name(name).ok()??;
        DocumentRoot::open(user.dir.join(&self.directory), self.settings).ok()
    }
}

/// Splits `/~name/rest` into `/~name` and `/rest`.
pub(crate) fn split_home(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let name = path.strip_prefix(b"/~")?;
    let end = 2 + name.iter().position(|&byte| byte == b'/')?;
    Some(path.split_at(end))
}

fn is_user_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    name.len() <= 32 && name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_') && {
        name.chars().skip(1).all(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_path_is_split_behind_the_name() {
        assert_eq!(split_home(b"/~ada/notes/x"), Some((&b"/~ada"[..], &b"/notes/x"[..])));
        assert_eq!(split_home(b"/~ada/"), Some((&b"/~ada"[..], &b"/"[..])));
        assert_eq!(split_home(b"/~ada"), None, "without slash it is a name to be redirected");
        assert_eq!(split_home(b"/ada/~x/"), None);
    }

    #[test]
    fn only_what_can_be_a_user_is_looked_up() {
        for good in ["ada", "_apt", "www-data", "j.doe"] {
            assert!(is_user_name(good), "{good}");
        }
        for bad in ["", "..", "Ada", "a/b", "a b", "-x", &"x".repeat(33)] {
            assert!(!is_user_name(bad), "{bad}");
        }
    }

    #[test]
    fn unknown_users_have_no_home_and_that_is_remembered() {
        let homes = Homes::new(Path::new("public_html"), RootSettings::default());
        assert!(homes.root(b"no-such-user-here").is_none());
        assert!(
            homes.root(&[b'x'; 8000]).is_none(),
            "no user has such a name, so it takes no memory"
        );
        assert_eq!(homes.known.lock().expect("not poisoned").len(), 1);
    }
}
