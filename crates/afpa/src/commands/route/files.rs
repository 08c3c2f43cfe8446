//! The file, the script and the fallback of a path, as the folders are now.

use afpa_router::{Fallback, RootId, Scripts};

use super::told::Told;
use afpa_config::Root;

impl Told<'_> {
    /// The file, the script or the fallback that a path below a root leads to now.
    pub(super) fn cached(
        &mut self,
        root: RootId,
        below: &str,
        (scripts, fallback): (Option<&Scripts>, Option<&Fallback>),
        guarded: bool,
    ) {
        let (loaded, routes) = (self.loaded, self.routes);
        let Some(root) = routes.hierarchy.root(root) else { return };
        let index = match below.ends_with('/') {
            true => root.index.join(" or "),
            false => String::new(),
        };
        self.row("file", &format!("{}{below}{index}", root.directory.display()));
        let is_run =
            root.scripts && self.script(root, below, (scripts, fallback), guarded).is_some();
        if is_directory(root, below) {
            self.row("answer", "301: a directory, which has a slash at its end");
        } else if let Some(fallback) = fallback.filter(|_| !is_run) {
            self.fallback(&loaded.fallback(fallback), is_file(root, below), guarded);
        }
    }

    /// `there`: the file is there.
    fn fallback(&mut self, fallback: &str, there: bool, guarded: bool) {
        let (when, kernel) = match there {
            true => ("when the file is gone", "may answer with the file"),
            false => ("now: there is no such file", "never answers for a fallback"),
        };
        self.row("fallback", &format!("{fallback}  ({when})"));
        if !guarded {
            self.row("kernel", kernel);
        }
    }

    /// The script that a path leads to now, if any.
    fn script(
        &mut self,
        root: &Root,
        below: &str,
        (scripts, fallback): (Option<&Scripts>, Option<&Fallback>),
        guarded: bool,
    ) -> Option<()> {
        let file = |path: &str| root.directory.join(path.trim_start_matches('/')).is_file();
        let is_script = |path: &str| path.to_ascii_lowercase().ends_with(".php");
        let ends = below.match_indices('/').skip(1).map(|(at, _)| at).chain([below.len()]);
        let mut parts = ends.map(|end| below.split_at(end));
        let found = parts.find(|(path, _)| is_script(path) && file(path));
        let found = found.map(|(path, info)| (path.to_owned(), info));
        let in_directory = || {
            let mut names = root.index.iter().map(|name| format!("{below}{name}"));
            let name = names.find(|name| below.ends_with('/') && file(name))?;
            is_script(&name).then_some((name, ""))
        };
        let instead = || match fallback {
            Some(Fallback::File(path)) if !is_file(root, below) => {
                let path = String::from_utf8_lossy(path).into_owned();
                is_script(&path).then_some((path, ""))
            }
            _ => None,
        };
        let (path, info) = found.or_else(in_directory).or_else(instead)?;
        let Some(scripts) = scripts else {
            self.row("answer", "403: a script, which nothing runs here, and which is never sent");
            return Some(());
        };
        let seen = String::from_utf8_lossy(&scripts.root);
        self.row("script", &format!("{seen}{path}"));
        if !info.is_empty() {
            self.row("path info", info);
        }
        if !guarded {
            self.row("kernel", "never answers for a script");
        }
        Some(())
    }
}

/// Whether a path leads to a file below a root now, as far as this user sees.
fn is_file(root: &Root, below: &str) -> bool {
    let path = root.directory.join(below.trim_start_matches('/'));
    match below.ends_with('/') {
        true => root.index.iter().any(|name| path.join(name).is_file()),
        false => path.is_file(),
    }
}

/// Whether a path without a slash at its end leads to a directory with a default file.
fn is_directory(root: &Root, below: &str) -> bool {
    !below.ends_with('/') && is_file(root, &format!("{below}/"))
}
