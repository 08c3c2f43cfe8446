//! A map from prefixes to values. Of the prefixes that contain an address, the longest decides.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use crate::prefix::Prefix;

/// A value for each of some prefixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixMap<V> {
    all: BTreeMap<Prefix, V>,
    v4: Lengths<V>,
    v6: Lengths<V>,
}

/// Prefixes of one family by their lengths, the longest first.
type Lengths<V> = Vec<(u8, HashMap<Prefix, V>)>;

impl<V: Copy> PrefixMap<V> {
    pub(crate) fn new(all: BTreeMap<Prefix, V>) -> Self {
        let (v4, v6) = (lengths(&all, true), lengths(&all, false));
        Self { all, v4, v6 }
    }

    /// The value of the longest prefix that contains the address; `None`: no prefix does.
    pub fn longest(&self, client: IpAddr) -> Option<V> {
        let client = client.to_canonical();
        let lengths = if client.is_ipv4() { &self.v4 } else { &self.v6 };
        lengths.iter().find_map(|(bits, values)| values.get(&Prefix::of(client, *bits)).copied())
    }

    /// The value of exactly this prefix.
    pub fn exactly(&self, prefix: Prefix) -> Option<V> {
        self.all.get(&prefix).copied()
    }

    /// All prefixes, in the order of their addresses.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix, V)> {
        self.all.iter().map(|(prefix, value)| (*prefix, *value))
    }

    /// Whether there are no prefixes.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many prefixes there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }
}

impl<V> Default for PrefixMap<V> {
    fn default() -> Self {
        Self { all: BTreeMap::new(), v4: Vec::new(), v6: Vec::new() }
    }
}

fn lengths<V: Copy>(all: &BTreeMap<Prefix, V>, v4: bool) -> Lengths<V> {
    let mut lengths: BTreeMap<u8, HashMap<Prefix, V>> = BTreeMap::new();
    for (prefix, value) in all.iter().filter(|(prefix, _)| prefix.address().is_ipv4() == v4) {
        lengths.entry(prefix.bits()).or_default().insert(*prefix, *value);
    }
    lengths.into_iter().rev().collect()
}
