//! `allow` and `deny`.

use afpa_police::Prefix;

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
