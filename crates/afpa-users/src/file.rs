//! The lines of a file of `htpasswd`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::hash::Hash;

/// A line of a file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct LineFault {
    /// The number of the line, from 1.
    pub line: usize,
    /// The reason.
    pub problem: LineProblem,
}

/// The fault of a line. No text of a hash, or of what may be a password, is in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineProblem {
    /// There is no colon in it.
    #[error("it has no colon between a name and a hash")]
    NoColon,
    /// Nothing stands before the colon.
    #[error("the name is empty")]
    NoName,
    /// It has bytes that are no text.
    #[error("it is not UTF-8")]
    NoText,
    /// It begins as no hash does.
    #[error("plain passwords are not accepted, and it has no hash of a known kind")]
    Plain,
    /// Hashes of the first `crypt` are found by trying.
    #[error("it has a hash of the old crypt, which uses eight letters of a password")]
    OldCrypt,
    /// A hash of another kind that has a name.
    #[error("hashes of the kind ${0}$ are not known")]
    Unknown(&'static str),
    /// A hash that is too short, or has wrong letters.
    #[error("its {0} hash is malformed")]
    Malformed(&'static str),
    /// A check would take too long, or too much memory.
    #[error("a check of its hash is too dear: {0}")]
    Dear(String),
    /// The name stands in an earlier line.
    #[error("the same name is in line {0}")]
    Twice(usize),
}

impl LineProblem {
    /// How to mend it.
    pub fn remedy(&self) -> &'static str {
        match self {
            LineProblem::Twice(_) => "remove one of the two lines: only the first one would count",
            LineProblem::Dear(_) => "make it again at a lower cost, for example with htpasswd -B",
            LineProblem::NoColon | LineProblem::NoName | LineProblem::NoText => {
                "write a line for each user with htpasswd -B FILE NAME"
            }
            _ => {
                "write the line anew with htpasswd -B FILE NAME; known are bcrypt, apr1, $1$, $5$, $6$, argon2, {SHA}, {SSHA}"
            }
        }
    }
}

/// The hashes of a file, and the place in that list for each name.
pub(crate) type Lines = (Vec<Hash>, HashMap<Box<[u8]>, usize>);

/// Reads all lines: empty ones and those that begin with `#` say nothing, and what stands behind a second colon does not
/// matter.
pub(crate) fn read(bytes: &[u8]) -> Result<Lines, Vec<LineFault>> {
    let (mut hashes, mut names) = (Vec::new(), HashMap::new());
    let (mut faults, mut places) = (Vec::new(), Vec::new());
    for (line, bytes) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if bytes.trim_ascii().is_empty() || bytes.starts_with(b"#") {
            continue;
        }
        match one(bytes) {
            Ok((name, hash)) => match names.entry(name.as_bytes().into()) {
                Entry::Vacant(place) => {
                    place.insert(hashes.len());
                    hashes.push(hash);
                    places.push(line);
                }
                Entry::Occupied(place) => {
                    let first = places.get(*place.get()).copied().unwrap_or_default();
                    faults.push(LineFault { line, problem: LineProblem::Twice(first) });
                }
            },
            Err(problem) => faults.push(LineFault { line, problem }),
        }
    }
    if faults.is_empty() { Ok((hashes, names)) } else { Err(faults) }
}

fn one(line: &[u8]) -> Result<(&str, Hash), LineProblem> {
    let line = std::str::from_utf8(line).map_err(|_| LineProblem::NoText)?;
    let (name, rest) = line.split_once(':').ok_or(LineProblem::NoColon)?;
    if name.is_empty() {
        return Err(LineProblem::NoName);
    }
    let hash = rest.split(':').next().unwrap_or_default().trim_ascii_end();
    Ok((name, Hash::parse(hash)?))
}
