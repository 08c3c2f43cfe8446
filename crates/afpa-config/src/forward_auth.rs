//! `forward_auth`, `forward_auth_path` and `forward_auth_copy`: a server that says whether requests may be answered.

use std::fmt;

use crate::reader::Section;
use crate::rules;
use crate::units::Unfit;

/// The server that is asked whether a request may be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForwardAuth {
    /// None is asked.
    Off,
    /// A server of a group is asked.
    Server {
        /// The server group, or server.
        to: String,
        /// The path that it is asked for, and perhaps a query; empty: it was not given.
        path: String,
        /// The fields of its answer that servers get with the request.
        copy: Vec<String>,
    },
}

/// The value of `forward_auth`.
#[derive(Clone, Debug)]
enum To {
    Nobody,
    Server(String),
}

impl fmt::Display for To {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            To::Nobody => NONE,
            To::Server(to) => to,
        })
    }
}

const NONE: &str = "none";

impl ForwardAuth {
    /// Reads the settings of one place; `None`: `forward_auth` has the value of `word`, which is the default.
    pub(crate) fn read(s: &mut Section<'_, '_>, word: &'static str) -> Option<Self> {
        let kind = match word {
            NONE => "server group or server",
            _ => "server group or server, or `none`",
        };
        let to = s.text_or("forward_auth", kind, word, to);
        let path = s.text_or("forward_auth_path", "URL path", NONE, path);
        let copy = s.texts("forward_auth_copy", "field names", Vec::new(), copied_field);
        Some(match to? {
            To::Nobody => ForwardAuth::Off,
            To::Server(to) => ForwardAuth::Server { to, path: path.unwrap_or_default(), copy },
        })
    }

    /// The server group or server that is asked.
    pub fn to(&self) -> Option<&str> {
        match self {
            ForwardAuth::Off => None,
            ForwardAuth::Server { to, .. } => Some(to),
        }
    }
}

fn to(text: &str) -> Result<To, Unfit> {
    if text == NONE { Ok(To::Nobody) } else { rules::destination(text).map(To::Server) }
}

fn path(text: &str) -> Result<String, Unfit> {
    let is_plain = |byte: u8| (b'!'..=b'~').contains(&byte) && byte != b'#';
    if !text.starts_with('/') || text.starts_with("//") || !text.bytes().all(is_plain) {
        let cause = format!("\"{text}\" is not the path of a URL");
        return Err(Unfit::new(cause, "begin it with a slash: \"/api/authz/forward-auth\""));
    }
    Ok(text.to_owned())
}

/// A field that servers get from the answer of another one.
fn copied_field(name: &str) -> Result<String, Unfit> {
    rules::removed_request_field(name)?;
    let lower = name.to_ascii_lowercase();
    if lower.starts_with("content-") || lower == "set-cookie" {
        let cause = format!("{name} says nothing about the user");
        return Err(Unfit::new(cause, "remove it: cookies of the server reach the client"));
    }
    Ok(name.to_owned())
}
