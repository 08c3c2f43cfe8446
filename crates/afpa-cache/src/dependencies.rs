//! Reverse index from paths to the objects and fills that depend on them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::{Bound, Deref};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use crate::policy::ObjectId;

/// The objects and fills that depend on each path, by site. The paths are ordered so that a subtree is a range.
///
/// Paths are relative to the root of the site; slashes at either end do not matter, and the empty
/// path is the root itself. Prefixes are taken by component: `a` covers `a/b`, not `ab`.
#[derive(Default)]
pub(crate) struct Dependencies {
    sites: HashMap<u32, BTreeMap<Arc<[u8]>, Dependents>>,
}

/// The objects that depend on one path. Most paths have one; a label may have as many as there are objects, and each of
/// them must leave in constant time.
enum Dependents {
    One(ObjectId),
    /// In a box, so that those with one take little.
    Several(Box<Several>),
}

enum Several {
    Few(Vec<ObjectId>),
    Many(HashSet<ObjectId>),
}

/// More dependents than these are held in a hash table.
const FEW: usize = 16;

impl Dependents {
    fn contains(&self, id: ObjectId) -> bool {
        match self {
            Dependents::One(one) => *one == id,
            Dependents::Several(several) => several.contains(id),
        }
    }

    fn add(&mut self, id: ObjectId) {
        match self {
            Dependents::One(one) => {
                *self = Dependents::Several(Box::new(Several::Few(vec![*one, id])));
            }
            Dependents::Several(several) => several.add(id),
        }
    }

    /// Returns whether none is left.
    fn remove(&mut self, id: ObjectId) -> bool {
        match self {
            Dependents::One(one) => *one == id,
            Dependents::Several(several) => several.remove(id),
        }
    }

    fn len(&self) -> usize {
        match self {
            Dependents::One(_) => 1,
            Dependents::Several(several) => several.len(),
        }
    }

    fn put_into(&self, found: &mut Vec<ObjectId>) {
        match self {
            Dependents::One(one) => found.push(*one),
            Dependents::Several(several) => several.put_into(found),
        }
    }
}

impl Several {
    fn contains(&self, id: ObjectId) -> bool {
        match self {
            Several::Few(few) => few.contains(&id),
            Several::Many(many) => many.contains(&id),
        }
    }

    fn add(&mut self, id: ObjectId) {
        match self {
            Several::Few(few) if few.len() < FEW => few.push(id),
            Several::Few(few) => *self = Several::Many(few.drain(..).chain([id]).collect()),
            Several::Many(many) => drop(many.insert(id)),
        }
    }

    /// Returns whether none is left.
    fn remove(&mut self, id: ObjectId) -> bool {
        match self {
            Several::Few(few) => few.retain(|held| *held != id),
            Several::Many(many) => drop(many.remove(&id)),
        }
        self.len() == 0
    }

    fn len(&self) -> usize {
        match self {
            Several::Few(few) => few.len(),
            Several::Many(many) => many.len(),
        }
    }

    fn put_into(&self, found: &mut Vec<ObjectId>) {
        match self {
            Several::Few(few) => found.extend(few),
            Several::Many(many) => found.extend(many),
        }
    }
}

/// A path as the index holds it. The dependent keeps it for its own removal.
pub(crate) type DependencyPath = Arc<[u8]>;

/// The paths of one dependent. Most objects that have labels have no further ones, so that none takes a pointer.
#[derive(Clone, Default)]
pub(crate) struct DependencyPaths(Option<Box<SmallVec<[DependencyPath; 1]>>>);

impl Deref for DependencyPaths {
    type Target = [DependencyPath];

    fn deref(&self) -> &[DependencyPath] {
        self.0.as_deref().map(SmallVec::as_slice).unwrap_or_default()
    }
}

impl Extend<DependencyPath> for DependencyPaths {
    fn extend<I: IntoIterator<Item = DependencyPath>>(&mut self, paths: I) {
        for path in paths {
            self.0.get_or_insert_default().push(path);
        }
    }
}

impl FromIterator<DependencyPath> for DependencyPaths {
    fn from_iter<I: IntoIterator<Item = DependencyPath>>(paths: I) -> Self {
        let mut all = Self::default();
        all.extend(paths);
        all
    }
}

impl Dependencies {
    /// Notes that `id` depends on `path`; `None` when it was noted before.
    pub(crate) fn add(&mut self, site: u32, path: &[u8], id: ObjectId) -> Option<DependencyPath> {
        // The copy is useless where the path is known. Most are not, and a second search would cost more.
        self.enter(site, trimmed(path).into(), id)
    }

    /// As [`add`](Self::add), without a copy of a path that has no slash at either end.
    pub(crate) fn add_shared(
        &mut self,
        site: u32,
        path: &DependencyPath,
        id: ObjectId,
    ) -> Option<DependencyPath> {
        match trimmed(path) {
            bare if bare.len() == path.len() => self.enter(site, Arc::clone(path), id),
            bare => self.enter(site, bare.into(), id),
        }
    }

    fn enter(&mut self, site: u32, path: DependencyPath, id: ObjectId) -> Option<DependencyPath> {
        match self.sites.entry(site).or_default().entry(path) {
            Entry::Vacant(place) => {
                let held = Arc::clone(place.key());
                place.insert(Dependents::One(id));
                Some(held)
            }
            Entry::Occupied(known) if known.get().contains(id) => None,
            Entry::Occupied(mut known) => {
                known.get_mut().add(id);
                Some(Arc::clone(known.key()))
            }
        }
    }

    /// Forgets that `id` depends on `path`.
    pub(crate) fn remove(&mut self, site: u32, path: &DependencyPath, id: ObjectId) {
        let Some(paths) = self.sites.get_mut(&site) else { return };
        let Some(dependents) = paths.get_mut(path) else { return };
        if dependents.remove(id) {
            paths.remove(path);
        }
        if paths.is_empty() {
            self.sites.remove(&site);
        }
    }

    /// All objects that depend on `path` itself.
    pub(crate) fn on(&self, site: u32, path: &[u8]) -> Vec<ObjectId> {
        let found = self.sites.get(&site).and_then(|paths| paths.get(trimmed(path)));
        let mut ids = Vec::with_capacity(found.map_or(0, Dependents::len));
        found.inspect(|dependents| dependents.put_into(&mut ids));
        ids
    }

    /// All objects that depend on a path that begins with these bytes, each once.
    pub(crate) fn beginning(&self, site: u32, prefix: &[u8]) -> Vec<ObjectId> {
        let mut found = Vec::new();
        let Some(paths) = self.sites.get(&site) else { return found };
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let all = paths.range::<[u8], _>(from);
        for (_, dependents) in all.take_while(|(path, _)| path.starts_with(prefix)) {
            dependents.put_into(&mut found);
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// All objects that depend on `path` or on anything below it, each once.
    pub(crate) fn under(&self, site: u32, path: &[u8]) -> Vec<ObjectId> {
        let Some(paths) = self.sites.get(&site) else { return Vec::new() };
        let path = trimmed(path);
        let mut found = self.on(site, path);
        if path.is_empty() {
            paths.values().for_each(|dependents| dependents.put_into(&mut found));
        } else {
            // `0` is the byte after `/`: the range holds what begins with "path/" and nothing else.
            let (first, last) = ([path, b"/"].concat(), [path, b"0"].concat());
            let below = (Bound::Included(&first[..]), Bound::Excluded(&last[..]));
            let below = paths.range::<[u8], _>(below);
            below.for_each(|(_, dependents)| dependents.put_into(&mut found));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// All objects that depend on a path that fits, each once.
    pub(crate) fn fitting(&self, site: u32, fits: &dyn Fn(&[u8]) -> bool) -> Vec<ObjectId> {
        let mut found = Vec::new();
        for (path, dependents) in self.sites.get(&site).into_iter().flatten() {
            if fits(path) {
                dependents.put_into(&mut found);
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Pairs of path and dependent, for the invariants.
    #[cfg(debug_assertions)]
    pub(crate) fn pairs(&self) -> usize {
        self.sites.values().flat_map(BTreeMap::values).map(Dependents::len).sum()
    }

    /// Whether `id` is noted at `path`.
    #[cfg(debug_assertions)]
    pub(crate) fn holds(&self, site: u32, path: &DependencyPath, id: ObjectId) -> bool {
        self.sites
            .get(&site)
            .and_then(|paths| paths.get(path))
            .is_some_and(|dependents| dependents.contains(id))
    }
}

fn trimmed(path: &[u8]) -> &[u8] {
    let start = path.iter().position(|&byte| byte != b'/').unwrap_or(path.len());
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(start, |last| last + 1);
    path.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn index(paths: &[&str]) -> Dependencies {
        let mut index = Dependencies::default();
        for (id, path) in paths.iter().enumerate() {
            index.add(0, path.as_bytes(), ObjectId(id as u64)).unwrap();
        }
        index
    }

    fn ids(found: Vec<ObjectId>) -> Vec<u64> {
        found.into_iter().map(|id| id.0).collect()
    }

    #[test]
    fn a_prefix_ends_at_a_component() {
        let index = index(&["/a", "/ab", "/a/b", "/a/b/c", "/a-b", "/a.b", "/a0", "/b"]);
        assert_eq!(ids(index.under(0, b"/a")), [0, 2, 3]);
        assert_eq!(ids(index.under(0, b"a/")), [0, 2, 3]);
        assert_eq!(ids(index.under(0, b"/a/b")), [2, 3]);
        assert_eq!(ids(index.under(0, b"/")), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(ids(index.on(0, b"/a")), [0]);
        assert!(index.under(1, b"/").is_empty());
    }

    #[test]
    fn the_root_can_be_depended_on_itself() {
        let index = index(&["/", "/x"]);
        assert_eq!(ids(index.on(0, b"")), [0]);
        assert_eq!(ids(index.under(0, b"//")), [0, 1]);
    }

    #[test]
    fn a_dependency_is_noted_once() {
        let mut index = Dependencies::default();
        let path = index.add(0, b"/a", ObjectId(1)).unwrap();
        assert!(index.add(0, b"a/", ObjectId(1)).is_none());
        index.remove(0, &path, ObjectId(1));
        assert!(index.on(0, b"a").is_empty());
        assert!(index.sites.is_empty());
    }

    #[test]
    fn many_dependents_are_added_and_removed_like_few() {
        let mut index = Dependencies::default();
        let all = 0..100;
        for id in all.clone() {
            assert!(index.add(0, b"x", ObjectId(id)).is_some());
            assert!(index.add(0, b"x", ObjectId(id)).is_none());
        }
        let path: DependencyPath = (*b"x").into();
        for id in all {
            let mut there = ids(index.on(0, b"x"));
            there.sort_unstable();
            assert_eq!(there, (id..100).collect::<Vec<_>>());
            index.remove(0, &path, ObjectId(id));
        }
        assert!(index.sites.is_empty());
    }

    #[test]
    fn a_beginning_ends_at_a_byte() {
        let index = index(&["ua/b", "ua/bc", "ua", "ub", "tx"]);
        assert_eq!(ids(index.beginning(0, b"ua/b")), [0, 1]);
        assert_eq!(ids(index.beginning(0, b"u")), [0, 1, 2, 3]);
        assert!(index.beginning(0, b"v").is_empty() && index.beginning(1, b"").is_empty());
    }

    proptest! {
        /// Against the definition: compare component lists.
        #[test]
        fn a_subtree_is_what_its_components_say(
            paths in prop::collection::vec("[ab/.0-]{0,6}", 0..20),
            prefix in "[ab/.0-]{0,4}",
        ) {
            let mut index = Dependencies::default();
            let mut expected = Vec::new();
            let wanted = trimmed(prefix.as_bytes());
            for (id, path) in paths.iter().enumerate() {
                index.add(0, path.as_bytes(), ObjectId(id as u64));
                let path = trimmed(path.as_bytes());
                let rest = path.strip_prefix(wanted);
                if wanted.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/') {
                    expected.push(id as u64);
                }
            }
            prop_assert_eq!(ids(index.under(0, prefix.as_bytes())), expected);
        }
    }
}
