//! The objects that have labels, by their keys.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::labels::label_of;
use crate::policy::Place;

/// The objects that have labels, by their keys in the order of their bytes. Each key begins with a label, so that those
/// whose labels begin alike are a range, and no label needs memory of its own.
#[derive(Default)]
pub(super) struct Names(BTreeMap<Arc<[u8]>, Place>);

impl Names {
    /// Enters an object with a key that no other one has.
    pub(super) fn insert(&mut self, key: Arc<[u8]>, place: Place) {
        self.0.insert(key, place);
    }

    /// Takes an object out, if it has labels.
    pub(super) fn remove(&mut self, key: &[u8], place: Place) {
        if self.0.get(key) == Some(&place) {
            self.0.remove(key);
        }
    }

    /// The places of those whose keys begin with these bytes.
    pub(super) fn beginning(&self, prefix: &[u8]) -> Vec<Place> {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let all = self.0.range::<[u8], _>(from);
        all.take_while(|(key, _)| key.starts_with(prefix)).map(|(_, place)| *place).collect()
    }

    /// The places of those with a key whose label fits.
    pub(super) fn fitting(&self, fits: &dyn Fn(&[u8]) -> bool) -> Vec<Place> {
        self.0.iter().filter(|(key, _)| fits(label_of(key))).map(|(_, place)| *place).collect()
    }

    /// Each of them.
    #[cfg(debug_assertions)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<[u8]>, Place)> {
        self.0.iter().map(|(key, place)| (key, *place))
    }
}
