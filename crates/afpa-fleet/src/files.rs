//! The files of a configuration that the fleet has, as bytes. Bytes of others are hostile, though they were sealed.

use serde::{Deserialize, Serialize};

use crate::message::NotUnderstood;

/// Bytes of all texts together. A message of the servers has a megabyte by default.
pub const LONGEST_FILES: usize = 512 * 1024;

/// Files at most.
const MOST: usize = 512;

/// Bytes of a name.
const LONGEST_NAME: usize = 256;

/// Files that every machine includes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// In the order in which they are read.
    pub files: Vec<NamedText>,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedText {
    /// Its name, for messages.
    pub name: String,
    /// Its content.
    pub text: String,
}

/// Files that a machine has taken, as it keeps them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFiles {
    /// The revision that they are.
    pub revision: Revision,
    /// The files.
    #[serde(flatten)]
    pub files: Files,
}

/// A configuration of the fleet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// When its bucket was made, in nanoseconds since the Unix epoch: another one begins to count anew.
    pub bucket: u64,
    /// Its number there.
    pub number: u64,
}

impl Files {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// From bytes.
    ///
    /// # Errors
    /// When they are none, or too many.
    pub fn decode(bytes: &[u8]) -> Result<Self, NotUnderstood> {
        if bytes.len() > 2 * LONGEST_FILES {
            return Err(NotUnderstood);
        }
        let files: Self = serde_json::from_slice(bytes).map_err(|_| NotUnderstood)?;
        let is_name = |name: &str| {
            !name.is_empty() && name.len() <= LONGEST_NAME && !name.contains(char::is_control)
        };
        let fits = !files.files.is_empty() && files.files.len() <= MOST;
        let named = files.files.iter().all(|file| is_name(&file.name));
        if fits && named && files.bytes() <= LONGEST_FILES { Ok(files) } else { Err(NotUnderstood) }
    }

    /// Bytes of all texts.
    pub fn bytes(&self) -> usize {
        self.files.iter().map(|file| file.text.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> NamedText {
        NamedText { name: name.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn files_are_read_as_they_were_written_and_have_bounds() {
        let files = Files { files: vec![file("a.toml", "x = \"1\"\n"), file("b.toml", "")] };
        assert_eq!(Files::decode(&files.encode()), Ok(files));
        let most = Files { files: vec![file("a", &"x".repeat(LONGEST_FILES))] };
        assert_eq!(Files::decode(&most.encode()).map(|files| files.bytes()), Ok(LONGEST_FILES));
        for bad in [
            Files::default(),
            Files { files: vec![file("", "")] },
            Files { files: vec![file("\u{1b}[2J", "")] },
            Files { files: vec![file(&"x".repeat(LONGEST_NAME + 1), "")] },
            Files { files: vec![file("a", &"x".repeat(LONGEST_FILES + 1))] },
            Files { files: vec![file("a", ""); MOST + 1] },
        ] {
            assert_eq!(Files::decode(&bad.encode()), Err(NotUnderstood));
        }
        assert_eq!(Files::decode(b"{}"), Err(NotUnderstood));
    }
}
