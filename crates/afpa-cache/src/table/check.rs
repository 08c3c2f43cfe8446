//! The table held against itself, in debug builds.

#[cfg(debug_assertions)]
use crate::table::Entry;
use crate::table::Table;

#[cfg(debug_assertions)]
impl<H> Table<H> {
    /// Checks after each change while the table is small, and seldom enough when it is large that
    /// checking costs each change the same.
    pub(crate) fn check_now_and_then(&mut self) {
        self.unchecked += 1;
        if self.unchecked * 32 >= self.listed.len() + self.fills.len() {
            self.unchecked = 0;
            self.check_invariants();
        }
    }

    fn check_invariants(&self) {
        self.listed.check_invariants();
        assert_eq!(self.filling.len(), self.fills.len(), "each key has one fill");
        let identities = self.listed.len() + self.fills.len();
        assert_eq!(self.identities.in_use(), identities, "an identity is an object or a fill");
        let mut pairs = 0;
        for entry in self.listed.iter() {
            let (id, key) = (entry.object.id(), entry.object.key());
            let swept = self.to_sweep.is_empty();
            assert!(!entry.object.is_dropped() || !swept, "a dropped object is not listed");
            assert!(!self.fills.contains_key(&id), "an identity is an object or a fill");
            let noted = |path| self.dependencies.holds(key.site, path, id);
            assert!(entry.dependencies.iter().all(noted), "the index knows each dependency");
            pairs += entry.dependencies.len();
        }
        for (id, filling) in &self.fills {
            assert_eq!(self.filling.get(&filling.key), Some(id), "a fill is listed under its key");
            let noted = |path| self.dependencies.holds(filling.key.site, path, *id);
            assert!(filling.dependencies.iter().all(noted), "the index knows each dependency");
            pairs += filling.dependencies.len();
        }
        assert_eq!(self.dependencies.pairs(), pairs, "the index knows no other");
        for (key, place) in self.names.iter() {
            let named = self.listed.id_at(place).and_then(|id| self.listed.get(id));
            let named = named.map(|entry| &entry.object.key().path);
            assert_eq!(named, Some(key), "a name is that of a listed object");
        }
        self.room.check_invariants(self.listed.iter().map(Entry::demand));
    }
}

#[cfg(not(debug_assertions))]
impl<H> Table<H> {
    pub(crate) fn check_now_and_then(&mut self) {}
}
