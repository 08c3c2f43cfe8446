//! Which prefixes are allowed and denied.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use crate::prefix::Prefix;

/// What is said of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Its clients are never refused.
    Allow,
    /// Its clients are refused.
    Deny,
}

/// Prefixes and what is said of them. Of the prefixes that contain an address, the longest decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    all: BTreeMap<Prefix, Rule>,
    v4: Lengths,
    v6: Lengths,
}

/// Prefixes of one family by their lengths, the longest first.
type Lengths = Vec<(u8, HashMap<Prefix, Rule>)>;

impl Rules {
    /// Of a prefix that is in both lists, allowed wins.
    pub fn new(
        allow: impl IntoIterator<Item = Prefix>,
        deny: impl IntoIterator<Item = Prefix>,
    ) -> Self {
        let mut all: BTreeMap<_, _> = deny.into_iter().map(|prefix| (prefix, Rule::Deny)).collect();
        all.extend(allow.into_iter().map(|prefix| (prefix, Rule::Allow)));
        let (v4, v6) = (lengths(&all, true), lengths(&all, false));
        Self { all, v4, v6 }
    }

    /// What is said of an address; `None`: nothing.
    pub fn rule(&self, client: IpAddr) -> Option<Rule> {
        let client = client.to_canonical();
        let lengths = if client.is_ipv4() { &self.v4 } else { &self.v6 };
        lengths.iter().find_map(|(bits, rules)| rules.get(&Prefix::of(client, *bits)).copied())
    }

    /// What is said of exactly this prefix.
    pub fn exactly(&self, prefix: Prefix) -> Option<Rule> {
        self.all.get(&prefix).copied()
    }

    /// All of them, in the order of their addresses.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix, Rule)> {
        self.all.iter().map(|(prefix, rule)| (*prefix, *rule))
    }

    /// Whether nothing is said of any address.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many prefixes there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }
}

fn lengths(all: &BTreeMap<Prefix, Rule>, v4: bool) -> Lengths {
    let mut lengths: BTreeMap<u8, HashMap<Prefix, Rule>> = BTreeMap::new();
    for (prefix, rule) in all.iter().filter(|(prefix, _)| prefix.address().is_ipv4() == v4) {
        lengths.entry(prefix.bits()).or_default().insert(*prefix, *rule);
    }
    lengths.into_iter().rev().collect()
}
