//! The meaning of a request target, one rule after another.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The meaning of a request's target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A file to send.
    File(PathBuf),
    /// A folder named without its slash.
    Folder { location: String },
    /// A folder that has nothing to show.
    Forbidden,
    /// Nothing, or nothing to be seen.
    Missing,
    /// No path at all: with this status.
    Faulty(u16),
}

/// A target with its meaning; a type of its own so that faults stay visible to the caller.
#[derive(Clone, Debug)]
pub(super) struct Resolved {
    pub(super) target: Target,
}

pub(super) fn resolve(root: &Path, raw: &str) -> Resolved {
    Resolved { target: meaning(root, raw) }
}

fn meaning(root: &Path, raw: &str) -> Target {
    let (path, query) = match raw.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (raw, None),
    };
    let mut segments: Vec<String> = Vec::new();
    let mut folder = false;
    let mut encoded_slash = false;
    let Some(path) = path.strip_prefix('/') else { return Target::Faulty(400) };
    for piece in path.split('/') {
        let Some(decoded) = decode(piece) else { return Target::Faulty(400) };
        encoded_slash |= decoded.contains(&b'/');
        folder = matches!(decoded.as_slice(), b"" | b"." | b"..");
        match decoded.as_slice() {
            b"" | b"." => {}
            b".." if segments.pop().is_none() => return Target::Faulty(400),
            b".." => {}
            // No file of these tests has a name that is not UTF-8.
            name => segments.push(String::from_utf8_lossy(name).into_owned()),
        }
    }
    if encoded_slash {
        return Target::Faulty(404);
    }
    if segments.iter().any(|name| name.starts_with('.')) {
        return Target::Missing;
    }
    let file = segments.iter().fold(root.to_owned(), |path, name| path.join(name));
    match fs::metadata(&file) {
        Ok(found) if found.is_dir() && folder => match fs::metadata(file.join("index.html")) {
            Ok(index) if index.is_file() => Target::File(file.join("index.html")),
            _ => Target::Forbidden,
        },
        Ok(found) if found.is_dir() => {
            let path = segments.iter().map(|name| format!("/{}", encode(name)));
            let query = query.map(|query| format!("?{query}")).unwrap_or_default();
            Target::Folder { location: path.collect::<String>() + "/" + &query }
        }
        Ok(_) if !folder => Target::File(file),
        _ => Target::Missing,
    }
}

/// Percent-decodes one segment; `None` when it is not well-formed or holds a control character.
fn decode(piece: &str) -> Option<Vec<u8>> {
    let mut bytes = piece.bytes();
    let mut decoded = Vec::new();
    while let Some(byte) = bytes.next() {
        let meant = match byte {
            b'%' => {
                let (high, low) = (char::from(bytes.next()?), char::from(bytes.next()?));
                u8::try_from(high.to_digit(16)? * 16 + low.to_digit(16)?).ok()?
            }
            plain => plain,
        };
        if meant < 0x20 || meant == 0x7f {
            return None;
        }
        decoded.push(meant);
    }
    Some(decoded)
}

/// Percent-encodes all that RFC 3986 does not leave unreserved, other than a slash.
pub(super) fn encode(name: &str) -> String {
    let kept = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    name.bytes().fold(String::new(), |mut encoded, byte| {
        match kept(byte) {
            true => encoded.push(char::from(byte)),
            false => encoded += &format!("%{byte:02X}"),
        }
        encoded
    })
}
