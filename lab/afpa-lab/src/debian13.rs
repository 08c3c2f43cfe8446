//! Servers of Debian 13, whatever this machine runs itself: a root of their own, made once by debootstrap.
//!
//! Its programs are started by that root's own loader with that root's libraries, and without chroot: so they see the same
//! document root, configuration and interfaces as every other server.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Where the root lies: some 500 MB, made in two minutes.
const FOLDER: &str = "/var/cache/afpa-lab/debian13";
/// Debian's name of the release.
const SUITE: &str = "trixie";
/// Its packages besides the least that Debian needs, and their programs.
const PACKAGES: &str = "nginx,haproxy,varnish";
const PROGRAMS: [&str; 3] = ["nginx", "haproxy", "varnishd"];

/// The loader of the root's programs, and the folder of its libraries.
#[cfg(target_arch = "x86_64")]
const LOADER: [&str; 2] = ["usr/lib64/ld-linux-x86-64.so.2", "usr/lib/x86_64-linux-gnu"];
#[cfg(not(target_arch = "x86_64"))]
const LOADER: [&str; 2] = ["usr/lib/ld-linux-aarch64.so.1", "usr/lib/aarch64-linux-gnu"];

/// A root that is whole.
#[derive(Clone, Debug)]
pub struct Root {
    folder: PathBuf,
}

impl Root {
    /// The root of this machine; `None` when it was not made yet.
    pub fn here() -> Option<Self> {
        Self::at(Path::new(FOLDER))
    }

    /// The root in a folder; `None` when there is none.
    pub fn at(folder: &Path) -> Option<Self> {
        let [loader, libraries] = LOADER.map(|path| folder.join(path));
        (loader.is_file() && libraries.is_dir()).then(|| Self { folder: folder.to_owned() })
    }

    /// Makes the root, unless it is there. One that was cut short, or lacks a program, is made anew.
    ///
    /// # Errors
    ///
    /// Without debootstrap, root's rights or the mirror.
    pub fn make() -> Result<Self> {
        if let Some(root) = Self::here().filter(Self::is_whole) {
            return Ok(root);
        }
        let folder = Path::new(FOLDER);
        let unfinished = folder.with_extension("unfinished");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).context("cannot remove an unfinished root")?;
        }
        fs::create_dir_all(&unfinished)
            .with_context(|| format!("cannot make {FOLDER}, which takes root's rights"))?;
        let output = Command::new("debootstrap")
            .args(["--variant=minbase", &format!("--include={PACKAGES}"), SUITE])
            .arg(&unfinished)
            // Else debootstrap has one of its own.
            .args(env::var_os("DEBIAN_MIRROR"))
            .stdin(Stdio::null())
            .output()
            .context("cannot start debootstrap (Debian package debootstrap)")?;
        let said = String::from_utf8_lossy(&output.stdout);
        let last = said.lines().rev().take(3).collect::<Vec<_>>().join("; ");
        ensure!(output.status.success(), "debootstrap of {SUITE}: {last}");
        if folder.exists() {
            fs::remove_dir_all(folder).context("cannot remove the root that lacks a program")?;
        }
        fs::rename(&unfinished, folder)?;
        let made = Self::here().filter(Self::is_whole);
        made.context("debootstrap left no loader or program where it belongs")
    }

    /// The reason why a program of the root cannot be started; `None` if it can.
    pub fn lacks(program: &str) -> Option<String> {
        Self::lacks_at(Path::new(FOLDER), program)
    }

    fn lacks_at(folder: &Path, program: &str) -> Option<String> {
        let found = Self::at(folder).and_then(|root| root.find(program));
        let folder = folder.display();
        let why = format!("{folder} has no {program}; `afpa-lab debian13` makes it, as root");
        found.is_none().then_some(why)
    }

    fn is_whole(&self) -> bool {
        PROGRAMS.iter().all(|program| self.find(program).is_some())
    }

    /// A path inside, such as `etc/nginx/mime.types`.
    pub fn path(&self, inside: &str) -> PathBuf {
        self.folder.join(inside)
    }

    /// The first words of a command that starts the program; `None` when the root does not have it.
    pub fn command(&self, program: &str) -> Option<Vec<OsString>> {
        let [loader, libraries] = LOADER.map(|path| self.folder.join(path));
        let program = self.find(program)?;
        Some(vec![loader.into(), "--library-path".into(), libraries.into(), program.into()])
    }

    fn find(&self, program: &str) -> Option<PathBuf> {
        let places = ["usr/sbin", "usr/bin"].map(|place| self.folder.join(place).join(program));
        places.into_iter().find(|file| file.is_file())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_known_by_its_loader_and_starts_programs_by_it() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Root::at(folder.path()).is_none());
        let why = Root::lacks_at(folder.path(), "nginx").unwrap();
        assert!(why.contains("nginx") && why.contains("`afpa-lab debian13`"), "{why}");
        let [loader, libraries] = LOADER.map(|path| folder.path().join(path));
        fs::create_dir_all(loader.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("/bin/echo", &loader).unwrap();
        assert!(Root::at(folder.path()).is_none(), "a root that was cut short");
        fs::create_dir_all(libraries).unwrap();
        let root = Root::at(folder.path()).unwrap();
        assert_eq!(root.command("nginx"), None);
        assert_eq!(Root::lacks_at(folder.path(), "nginx"), Some(why));
        fs::create_dir_all(root.path("usr/sbin")).unwrap();
        fs::write(root.path("usr/sbin/nginx"), "").unwrap();
        assert_eq!(Root::lacks_at(folder.path(), "nginx"), None);
        assert!(!root.is_whole(), "two programs are missing");
        let command = root.command("nginx").unwrap();
        assert_eq!((command.len(), command[0].as_os_str()), (4, loader.as_os_str()));
        let output = Command::new(&command[0]).args(&command[1..]).arg("-v").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.starts_with("--library-path /"), "{said}");
        assert!(said.ends_with("/usr/sbin/nginx -v\n"), "{said}");
    }

    #[test]
    fn what_was_made_here_runs() {
        let Some(root) = Root::here() else {
            eprintln!("SKIP: {}", Root::lacks("nginx").unwrap());
            return;
        };
        let command = root.command("nginx").unwrap();
        let output = Command::new(&command[0]).args(&command[1..]).arg("-v").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("nginx/1.2"), "{said}");
    }
}
