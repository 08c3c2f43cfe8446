//! The values of `php` and `php_root`.

use std::fmt;
use std::path::{Path, absolute};

/// The value of `php` of a path or content group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Php {
    /// Scripts are neither run nor sent.
    Off,
    /// They are run by this server group or server.
    To(String),
}

impl fmt::Display for Php {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Php::Off => f.write_str("none"),
            Php::To(to) => f.write_str(to),
        }
    }
}

/// The index file that goes before `index.html` where scripts are run.
pub(crate) const INDEX: &str = "index.php";

/// The directory as the servers see it: as it is said, else where it really is.
pub(crate) fn seen_root(said: Option<&str>, directory: &Path) -> Box<[u8]> {
    let path = match said {
        Some(said) => said.to_owned(),
        None => {
            let real = directory.canonicalize().or_else(|_| absolute(directory));
            real.unwrap_or_else(|_| directory.to_owned()).to_string_lossy().into_owned()
        }
    };
    path.trim_end_matches('/').as_bytes().into()
}
