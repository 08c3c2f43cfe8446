//! Installed programs: their paths and versions.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::debian13::Root;

/// Where a program comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// This machine's Debian.
    Here,
    /// The root of Debian 13.
    Debian13,
}

/// How the names of Debian 13's servers end.
const DEBIAN13: &str = "-debian13";

impl Origin {
    /// The program of a server's name, and its origin: `nginx-debian13` is Debian 13's `nginx`.
    pub(super) fn of(name: &str) -> (&str, Self) {
        match name.strip_suffix(DEBIAN13) {
            Some(program) => (program, Self::Debian13),
            None => (name, Self::Here),
        }
    }

    /// The reason why its program cannot be started; `None` if it can.
    pub(super) fn lacks(self, program: &str, package: &str) -> Option<String> {
        match self {
            Self::Here => lacks(program, package),
            Self::Debian13 => Root::lacks(program),
        }
    }

    /// The words of a command that starts the program, without arguments.
    ///
    /// # Errors
    /// When it is missing.
    pub(super) fn command(self, program: &str) -> Result<Vec<OsString>> {
        let missing = || format!("{program} is not installed");
        match self {
            Self::Here => Ok(vec![find(program).with_context(missing)?.into()]),
            Self::Debian13 => {
                Root::here().and_then(|root| root.command(program)).with_context(missing)
            }
        }
    }

    /// The first line of its version message.
    pub(super) fn version(self, program: &str, argument: &str) -> String {
        let Ok(words) = self.command(program) else { return String::new() };
        let [first, rest @ ..] = words.as_slice() else { return String::new() };
        first_line(Command::new(first).args(rest).arg(argument))
    }

    /// A configuration that takes files of its own system.
    pub(super) fn configuration(self, text: &str) -> String {
        match Root::here().filter(|_| self == Self::Debian13) {
            Some(root) => {
                text.replace("/etc/nginx/", &format!("{}/", root.path("etc/nginx").display()))
            }
            None => text.to_owned(),
        }
    }
}

/// Finds a program on the path. Servers live in `sbin`, which an ordinary user's path leaves out.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let sbin = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut places = env::split_paths(&path).chain(sbin);
    places.find_map(|folder| Some(folder.join(program)).filter(|file| file.is_file()))
}

/// The missing program and its package; `None` if it is there.
pub(super) fn lacks(program: &str, package: &str) -> Option<String> {
    let missing = find(program).is_none();
    missing.then(|| format!("{program} is not installed (Debian package {package})"))
}

/// The first line of a program's version message, on either output.
pub(super) fn version(program: &Path, argument: &str) -> String {
    first_line(Command::new(program).arg(argument))
}

fn first_line(command: &mut Command) -> String {
    let Ok(output) = command.output() else {
        return String::from("unknown");
    };
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_and_a_missing_one_is_named_with_its_package() {
        assert!(find("sh").is_some_and(|path| path.is_absolute()));
        assert_eq!(lacks("sh", "dash"), None);
        let missing = lacks("no-such-server", "no-such-package").expect("it is missing");
        assert!(missing.contains("no-such-server") && missing.contains("no-such-package"));
    }

    #[test]
    fn a_name_says_the_program_and_its_origin() {
        assert_eq!(Origin::of("haproxy-debian13"), ("haproxy", Origin::Debian13));
        assert_eq!(Origin::of("afpa-kernel"), ("afpa-kernel", Origin::Here));
    }

    #[test]
    fn a_version_is_one_line() {
        let version = version(Path::new("cat"), "--version");
        assert!(version.starts_with("cat") && !version.contains('\n'), "{version}");
    }
}
