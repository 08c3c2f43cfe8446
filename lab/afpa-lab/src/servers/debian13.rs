//! Programs of Debian 13, which run beside those of the system: from a root that `scripts/debian13` makes, by its own loader
//! and libraries. The files that they read and write are the system's.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::running::Launch;

/// A program of the root.
#[derive(Debug, Clone)]
pub(super) struct Foreign {
    loader: PathBuf,
    libraries: PathBuf,
    program: PathBuf,
}

impl Foreign {
    /// A program by its path in the root, as in `usr/sbin/nginx`.
    ///
    /// # Errors
    ///
    /// The reason why it cannot run.
    pub(super) fn find(root: &Path, program: &str) -> Result<Self, String> {
        let missing =
            || format!("{} has no {program}; `scripts/debian13` makes it, as root", root.display());
        // Another folder may be the current one when it is started.
        let root = root.canonicalize().map_err(|_| missing())?;
        let program = Some(root.join(program)).filter(|file| file.is_file());
        let program = program.ok_or_else(missing)?;
        let entries = std::fs::read_dir(root.join("usr/lib")).into_iter().flatten().flatten();
        let found = entries.map(|entry| entry.path()).find_map(|libraries| {
            let loader = loader_in(&libraries)?;
            Some((libraries, loader))
        });
        let (libraries, loader) = found.ok_or_else(missing)?;
        Ok(Self { loader, libraries, program })
    }

    pub(super) fn launch(&self) -> Launch {
        Launch::new(&self.loader).args(self.arguments())
    }

    /// The first line that it prints for `argument`, on either output.
    pub(super) fn version(&self, argument: &str) -> String {
        let output = Command::new(&self.loader).args(self.arguments()).arg(argument).output();
        let text = output.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        line.unwrap_or("unknown").to_owned()
    }

    fn arguments(&self) -> [PathBuf; 3] {
        ["--library-path".into(), self.libraries.clone(), self.program.clone()]
    }
}

/// `ld-linux-x86-64.so.2` and its like.
fn loader_in(libraries: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(libraries).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.path());
    names.find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("ld-linux-") && name.contains(".so.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_without_the_program_names_the_script() {
        let root = tempfile::tempdir().expect("a folder");
        let error = Foreign::find(root.path(), "usr/sbin/nginx").expect_err("it is empty");
        assert!(error.contains("usr/sbin/nginx") && error.contains("scripts/debian13"), "{error}");
        assert!(Foreign::find(Path::new("/no/such/root"), "usr/sbin/nginx").is_err());
    }

    #[test]
    fn a_program_runs_by_the_loader_of_its_root() {
        let root = tempfile::tempdir().expect("a folder");
        let (programs, libraries) = (root.path().join("usr/sbin"), root.path().join("usr/lib/a"));
        for folder in [&programs, &libraries] {
            std::fs::create_dir_all(folder).expect("made");
        }
        std::fs::write(programs.join("nginx"), "").expect("written");
        std::os::unix::fs::symlink("/bin/echo", libraries.join("ld-linux-x.so.2")).expect("linked");
        let found = Foreign::find(root.path(), "usr/sbin/nginx").expect("it is there");
        let said = found.version("-v");
        assert!(
            said.starts_with("--library-path") && said.ends_with("usr/sbin/nginx -v"),
            "{said}"
        );
    }
}
