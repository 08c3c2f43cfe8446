//! `allow` and `deny`, and `basic_auth`.

use std::path::PathBuf;

use afpa_police::Prefix;

use crate::reader::Section;
use crate::units::Unfit;

/// The clients that may use something, by their addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// These may. Of the prefixes that have a client, the longest decides; of a prefix in both lists, this one.
    pub allow: Vec<Prefix>,
    /// These may not.
    pub deny: Vec<Prefix>,
}

impl Access {
    /// Whether everybody may.
    pub fn is_open(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }
}

/// The users that may use something, by their names and passwords.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BasicAuth {
    /// Nobody is asked for them.
    Off,
    /// The users of a file may.
    Users {
        /// Made by `htpasswd`.
        file: PathBuf,
        /// The text that people are shown.
        realm: String,
    },
}

impl BasicAuth {
    /// Reads `basic_auth` and `basic_auth_realm`; `None`: it has the value of `word`, which is the default.
    pub(crate) fn read(s: &mut Section<'_, '_>, word: &'static str) -> Option<Self> {
        let kind = match word {
            "none" => "path of a file, or `none`",
            _ => "path of a file, `none`, or `site`",
        };
        let file = s.path_or("basic_auth", kind, &["none", word], word);
        let realm = s.text("basic_auth_realm", "text", "restricted".to_owned(), realm);
        match &*file {
            own if own == word => None,
            "none" => Some(BasicAuth::Off),
            _ => Some(BasicAuth::Users { file: file.into(), realm }),
        }
    }
}

/// No standard says how other letters are written in it (RFC 9110 section 5.5).
fn realm(text: &str) -> Result<String, Unfit> {
    if text.is_empty() || !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        let cause = format!("{text:?} is not printable ASCII");
        return Err(Unfit::new(cause, "write for example \"members only\""));
    }
    Ok(text.to_owned())
}
