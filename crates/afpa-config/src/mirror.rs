//! `mirror` and `mirror_share`: a server group that gets the requests of a place as well.

use std::fmt;

use crate::reader::Section;
use crate::rules;
use crate::units::Unfit;

/// Where requests to servers are mirrored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mirror {
    /// Nowhere.
    Off,
    /// To a group.
    To {
        /// The server group, or server.
        to: String,
        /// Per cent of the requests.
        share: u32,
    },
}

/// The value of `mirror`.
#[derive(Clone, Debug)]
struct To(Option<String>);

impl fmt::Display for To {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or(NONE))
    }
}

const NONE: &str = "none";
/// The name of the other setting.
pub(crate) const SHARE: &str = "mirror_share";

impl Mirror {
    /// Reads the settings of one place; `None`: `mirror` has the value of `word`, which is the default.
    pub(crate) fn read(s: &mut Section<'_, '_>, word: &'static str) -> Option<Self> {
        let kind = match word {
            NONE => "server group or server",
            _ => "server group or server, or `none`",
        };
        let to = s.text_or("mirror", kind, word, to);
        let share = s.count(SHARE, 100, 1..=100);
        let share = u32::try_from(share).unwrap_or(100);
        Some(to?.0.map_or(Mirror::Off, |to| Mirror::To { to, share }))
    }

    /// The server group or server.
    pub fn to(&self) -> Option<&str> {
        match self {
            Mirror::Off => None,
            Mirror::To { to, .. } => Some(to),
        }
    }
}

fn to(text: &str) -> Result<To, Unfit> {
    if text == NONE { Ok(To(None)) } else { rules::destination(text).map(|to| To(Some(to))) }
}
