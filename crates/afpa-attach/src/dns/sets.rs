//! Sets of several records, as they stand in answers, and those whose order the server is known to keep. No I/O, no clock.
//!
//! Names of a zone share the sets of its name servers. When one question has shown that the server keeps the order of such a set, others
//! need not be asked over and over for it.

use std::collections::{BTreeMap, HashMap};

use super::key::Key;

/// Where records of a set stand in an answer: the number of the section, their owner, type, and the type that they sign.
pub type Place = (u8, Vec<u8>, u16, u16);

/// The sets of an answer that have two records or more, with the contents of these in their order, names written out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sets(BTreeMap<Place, Vec<Vec<u8>>>);

impl FromIterator<(Place, Vec<u8>)> for Sets {
    fn from_iter<R: IntoIterator<Item = (Place, Vec<u8>)>>(records: R) -> Self {
        let mut sets: BTreeMap<Place, Vec<Vec<u8>>> = BTreeMap::new();
        for (place, content) in records {
            sets.entry(place).or_default().push(content);
        }
        // One that stands in two sections counts as well: there the server could turn it.
        let of = |place: &Place| (place.1.clone(), place.2, place.3);
        let mut counts: BTreeMap<_, usize> = BTreeMap::new();
        for (place, contents) in &sets {
            *counts.entry(of(place)).or_default() += contents.len();
        }
        sets.retain(|place, _| counts.get(&of(place)).is_some_and(|count| *count > 1));
        Self(sets)
    }
}

impl Sets {
    /// Whether there is any.
    pub fn are_several(&self) -> bool {
        !self.0.is_empty()
    }
}

/// Everything but the order: the address that was asked and the kind of the query, the place, and the contents.
type Identity = (u32, u8, Place, Vec<Vec<u8>>);

/// Sets whose order stayed the same for long enough.
#[derive(Debug, Default)]
pub struct Settled(HashMap<Identity, Vec<Vec<u8>>>);

/// So many are remembered.
const MOST: usize = 65_536;

fn identities<'s>(
    key: &'s Key,
    sets: &'s Sets,
) -> impl Iterator<Item = (Identity, &'s Vec<Vec<u8>>)> {
    sets.0.iter().map(|(place, contents)| {
        let mut sorted = contents.clone();
        sorted.sort_unstable();
        ((key.server, key.bits, place.clone(), sorted), contents)
    })
}

impl Settled {
    /// Whether all sets of the answer are known to stand in this order.
    pub fn have(&self, key: &Key, sets: &Sets) -> bool {
        identities(key, sets).all(|(identity, order)| self.0.get(&identity) == Some(order))
    }

    /// The server has kept the order of all these for long enough.
    pub fn add(&mut self, key: &Key, sets: &Sets) {
        if self.0.len() >= MOST {
            self.0.clear();
        }
        self.0.extend(identities(key, sets).map(|(identity, order)| (identity, order.clone())));
    }

    /// The server has given the sets in this order. Sets that are known in another order are not settled any more.
    pub fn see(&mut self, key: &Key, sets: &Sets) {
        for (identity, order) in identities(key, sets) {
            if self.0.get(&identity).is_some_and(|known| known != order) {
                self.0.remove(&identity);
            }
        }
    }

    /// The answer has changed though its zone has not.
    pub fn forget(&mut self, key: &Key, sets: &Sets) {
        for (identity, _) in identities(key, sets) {
            self.0.remove(&identity);
        }
    }

    /// Nothing is known any more.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::key;
    use super::*;

    fn sets(section: u8, contents: &[&[u8]]) -> Sets {
        let place = || (section, b"\x01z\0".to_vec(), 2, 0);
        contents.iter().map(|content| (place(), content.to_vec())).collect()
    }

    #[test]
    fn the_order_that_one_question_has_shown_is_that_of_others() {
        let key = |name, bits| key::key(&key::read(name).unwrap(), 1, bits, 0).unwrap();
        let mut settled = Settled::default();
        let shown = sets(1, &[b"a", b"b"]);
        assert!(shown.are_several() && !settled.have(&key("a.z", 0), &shown));
        settled.add(&key("a.z", 0), &shown);
        assert!(settled.have(&key("b.z", 0), &shown));
        assert!(!settled.have(&key("b.z", 1), &shown), "another kind of query");
        assert!(!settled.have(&key("b.z", 0), &sets(0, &[b"a", b"b"])), "another section");
        assert!(!settled.have(&key("b.z", 0), &sets(1, &[b"b", b"a"])), "another order");
        assert!(!settled.have(&key("b.z", 0), &sets(1, &[b"a", b"b", b"c"])), "another set");
        for (turned, is_known) in [(&shown, true), (&sets(1, &[b"b", b"a"]), false)] {
            settled.see(&key("b.z", 0), turned);
            assert_eq!(settled.have(&key("b.z", 0), &shown), is_known);
        }
        settled.add(&key("a.z", 0), &shown);
        settled.forget(&key("b.z", 0), &shown);
        assert!(!settled.have(&key("b.z", 0), &shown));
        assert!(settled.have(&key("b.z", 0), &sets(1, &[b"a"])), "one record has no order");
    }
}
