//! The listed objects, by identity and by key.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::room::Demand;
use super::views::Holders;
use crate::dependencies::DependencyPaths;
use crate::key::{KeyHash, KeyRef};
use crate::object::Object;
use crate::policy::{ByPlace, ObjectId, Place};

/// The listed objects. Each key has one.
///
/// There may be as many as fit into memory, so their entries here are kept small: the table by key holds places, and
/// the objects hold the keys.
pub(super) struct Listed<H> {
    entries: ByPlace<Entry<H>>,
    by_key: HashTable<Place>,
    hasher: RandomState,
}

/// A listed object.
pub(super) struct Entry<H> {
    pub(super) object: Arc<Object<H>>,
    pub(super) dependencies: DependencyPaths,
    pub(super) holders: Holders,
    /// Reported hits, up to four billion.
    pub(super) hits: u32,
    /// The hash of its key.
    pub(super) hash: KeyHash,
}

impl<H> Entry<H> {
    pub(super) fn demand(&self) -> Demand {
        Demand::of(&self.object, &self.dependencies)
    }
}

impl<H> Listed<H> {
    pub(super) fn new(hasher: RandomState) -> Listed<H> {
        Listed { entries: ByPlace::default(), by_key: HashTable::new(), hasher }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn hash<'k>(&self, key: impl Into<KeyRef<'k>>) -> KeyHash {
        KeyHash::of(&self.hasher, key.into())
    }

    pub(super) fn get(&self, id: ObjectId) -> Option<&Entry<H>> {
        self.entries.get(id)
    }

    /// The identity that has this place.
    pub(super) fn id_at(&self, place: Place) -> Option<ObjectId> {
        self.entries.id_at(place)
    }

    pub(super) fn get_mut(&mut self, id: ObjectId) -> Option<&mut Entry<H>> {
        self.entries.get_mut(id)
    }

    /// The entry with this key.
    pub(super) fn under<'k>(&self, key: impl Into<KeyRef<'k>>) -> Option<&Entry<H>> {
        self.entries.at(self.place(key.into())?)
    }

    pub(super) fn under_mut<'k>(&mut self, key: impl Into<KeyRef<'k>>) -> Option<&mut Entry<H>> {
        self.entries.at_mut(self.place(key.into())?)
    }

    /// Enters an object with a key that no other one has.
    pub(super) fn insert(&mut self, entry: Entry<H>) {
        let (id, hash) = (entry.object.id(), entry.hash);
        self.entries.insert(id, entry);
        let entries = &self.entries;
        let hash_of = |place: &Place| entries.at(*place).map_or(0, |entry| entry.hash.wide());
        self.by_key.insert_unique(hash.wide(), id.place(), hash_of);
    }

    pub(super) fn remove(&mut self, id: ObjectId) -> Option<Entry<H>> {
        let entry = self.entries.remove(id)?;
        let listed = self.by_key.find_entry(entry.hash.wide(), |place| *place == id.place());
        if let Ok(listed) = listed {
            listed.remove();
        }
        Some(entry)
    }

    /// All entries, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry<H>> + Clone {
        self.entries.iter().map(|(_, entry)| entry)
    }

    fn place(&self, key: KeyRef<'_>) -> Option<Place> {
        let hash = self.hash(key);
        // The key lies elsewhere in memory, but the hash lies in the entry: it tells most other keys apart.
        let is_it = |place: &Place| {
            let entry = self.entries.at(*place);
            entry.is_some_and(|entry| entry.hash == hash && key.names(entry.object.key()))
        };
        self.by_key.find(hash.wide(), is_it).copied()
    }

    /// Panics where the two tables differ.
    #[cfg(debug_assertions)]
    pub(super) fn check_invariants(&self) {
        assert_eq!(self.by_key.len(), self.entries.len(), "each key has one object");
        for (id, entry) in self.entries.iter() {
            let key = entry.object.key();
            assert_eq!(entry.object.id(), id);
            assert_eq!(entry.hash, self.hash(key));
            assert_eq!(self.place(key.into()), Some(id.place()), "it is listed under its key");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There are as many of them as objects.
    #[test]
    fn what_is_kept_of_an_object_here_is_small() {
        assert!(size_of::<Entry<()>>() <= 32, "{} B", size_of::<Entry<()>>());
    }
}
