//! Which prefixes are allowed and denied.

use std::collections::BTreeMap;

use crate::prefix::Prefix;
use crate::prefix_map::PrefixMap;

/// The rule for a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Its clients are never refused.
    Allow,
    /// Its clients are refused.
    Deny,
}

/// Prefixes and their rules.
pub type Rules = PrefixMap<Rule>;

impl Rules {
    /// Of a prefix that is in both lists, allowed wins.
    pub fn of(
        allow: impl IntoIterator<Item = Prefix>,
        deny: impl IntoIterator<Item = Prefix>,
    ) -> Self {
        let mut all: BTreeMap<_, _> = deny.into_iter().map(|prefix| (prefix, Rule::Deny)).collect();
        all.extend(allow.into_iter().map(|prefix| (prefix, Rule::Allow)));
        Self::new(all)
    }
}
