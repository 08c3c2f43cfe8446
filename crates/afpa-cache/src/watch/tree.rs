//! The table of watched directories: the place of each watch. Pure: no system calls.
//!
//! A directory is in the table only below its parent, so that watched means watched all the way
//! down from the root. Directories are known by their watch descriptor, which the kernel ties to
//! the inode: when a directory turns up in a second place, it has moved, with all below it.

use super::coverage::{Coverage, Reason};
use std::collections::{BTreeMap, HashMap};

/// A watch descriptor.
pub(super) type Wd = i32;

pub(super) use crate::root::Identity;

pub(super) struct Tree {
    root: Wd,
    nodes: HashMap<Wd, Node>,
    generation: u64,
}

struct Node {
    /// None for the root.
    above: Option<(Wd, Box<[u8]>)>,
    identity: Identity,
    children: HashMap<Box<[u8]>, Child>,
    /// The scan that last saw it.
    generation: u64,
}

#[derive(Clone, Copy)]
enum Child {
    Watched(Wd),
    Refused(Reason),
}

/// How a directory came into the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attached {
    /// It was not watched before.
    New,
    /// It was, in this very place.
    Known,
    /// It was, in another place, and has taken all below it along.
    Moved,
    /// By the table it would come to lie below itself: the table is too far behind.
    Tangled,
}

impl Tree {
    pub(super) fn new(root: Wd, identity: Identity) -> Self {
        let node = Node { above: None, identity, children: HashMap::new(), generation: 0 };
        Tree { root, nodes: HashMap::from([(root, node)]), generation: 0 }
    }

    pub(super) fn root(&self) -> Wd {
        self.root
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// All watches of the tree.
    pub(super) fn watches(&self) -> impl Iterator<Item = Wd> {
        self.nodes.keys().copied()
    }

    pub(super) fn identity(&self, wd: Wd) -> Option<Identity> {
        self.nodes.get(&wd).map(|node| node.identity)
    }

    /// Where the directory is, as far as events have been read: `/`, or `/a/b`.
    pub(super) fn path(&self, wd: Wd) -> Option<Vec<u8>> {
        let mut names = Vec::new();
        let mut node = self.nodes.get(&wd)?;
        while let Some((above, name)) = &node.above {
            names.push(name);
            node = self.nodes.get(above)?;
        }
        let mut path = Vec::new();
        for name in names.into_iter().rev() {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        if path.is_empty() {
            path.push(b'/');
        }
        Some(path)
    }

    /// The directory that holds this one, and its name there.
    pub(super) fn above(&self, wd: Wd) -> Option<(Wd, Box<[u8]>)> {
        self.nodes.get(&wd)?.above.clone()
    }

    /// The watch of the entry `name` of `parent`, if it is watched and was seen by the latest scan.
    pub(super) fn child(&self, parent: Wd, name: &[u8]) -> Option<Wd> {
        let wd = self.watched_child(parent, name)?;
        let node = self.nodes.get(&wd)?;
        (node.generation == self.generation).then_some(wd)
    }

    /// As [`child`](Self::child), also if the latest scan has not come to it yet.
    pub(super) fn watched_child(&self, parent: Wd, name: &[u8]) -> Option<Wd> {
        match self.nodes.get(&parent)?.children.get(name)? {
            Child::Watched(wd) => Some(*wd),
            Child::Refused(_) => None,
        }
    }

    /// Whether the directory `dir` is watched, and if not, why.
    pub(super) fn coverage(&self, dir: &[u8]) -> Coverage {
        let mut wd = self.root;
        for name in names(dir) {
            match self.child(wd, name) {
                Some(child) => wd = child,
                None => return Coverage::Unwatched(self.refusal(wd, name)),
            }
        }
        Coverage::Watched
    }

    fn refusal(&self, parent: Wd, name: &[u8]) -> Reason {
        match self.nodes.get(&parent).and_then(|node| node.children.get(name)) {
            Some(Child::Refused(reason)) => *reason,
            _ => Reason::NotReached,
        }
    }

    /// Notes that the entry `name` of `parent` is the directory `wd`. The second result lists the
    /// watches that stood for another directory in that place: they are no longer in the table.
    pub(super) fn attach(
        &mut self,
        parent: Wd,
        name: &[u8],
        wd: Wd,
        identity: Identity,
    ) -> (Attached, Vec<Wd>) {
        if self.lies_below(parent, wd) {
            return (Attached::Tangled, Vec::new());
        }
        let mut former = match self.watched_child(parent, name) {
            Some(former) if former != wd => self.detach(parent, name),
            _ => Vec::new(),
        };
        // It may have lain below the directory whose place it takes.
        former.retain(|gone| *gone != wd);
        let place = (parent, Box::<[u8]>::from(name));
        let attached = match self.nodes.get(&wd).and_then(|node| node.above.as_ref()) {
            None => Attached::New,
            Some(above) if *above == place => Attached::Known,
            Some((above, name)) => {
                let (above, name) = (*above, name.clone());
                self.unlink(above, &name);
                Attached::Moved
            }
        };
        let children = self.nodes.remove(&wd).map(|node| node.children).unwrap_or_default();
        let generation = self.generation;
        let node = Node { above: Some(place), identity, children, generation };
        self.nodes.insert(wd, node);
        self.link(parent, name, Child::Watched(wd));
        (attached, former)
    }

    /// Notes that the entry `name` of `parent` is a directory that cannot be watched.
    pub(super) fn refuse(&mut self, parent: Wd, name: &[u8], reason: Reason) -> Vec<Wd> {
        let former = self.detach(parent, name);
        self.link(parent, name, Child::Refused(reason));
        former
    }

    /// Forgets the entry `name` of `parent` and all below it; returns their watches.
    pub(super) fn detach(&mut self, parent: Wd, name: &[u8]) -> Vec<Wd> {
        match self.unlink(parent, name) {
            Some(Child::Watched(wd)) => self.take_subtree(wd),
            _ => Vec::new(),
        }
    }

    /// From here on no directory but the root counts as watched, until it is attached again.
    pub(super) fn begin_generation(&mut self) {
        self.generation += 1;
        if let Some(root) = self.nodes.get_mut(&self.root) {
            root.generation = self.generation;
        }
    }

    /// The topmost directories that were not attached since the generation began.
    pub(super) fn outdated(&self) -> Vec<(Wd, Box<[u8]>)> {
        let current = |wd| self.nodes.get(&wd).is_some_and(|n| n.generation == self.generation);
        self.nodes
            .values()
            .filter(|node| node.generation != self.generation)
            .filter_map(|node| node.above.clone())
            .filter(|(above, _)| current(*above))
            .collect()
    }

    /// How many directories next to watched ones are not, by reason.
    pub(super) fn refused(&self) -> BTreeMap<Reason, usize> {
        let mut counts = BTreeMap::new();
        for child in self.nodes.values().flat_map(|node| node.children.values()) {
            if let Child::Refused(reason) = child {
                *counts.entry(*reason).or_default() += 1;
            }
        }
        counts
    }

    /// Whether `wd` is `below` or lies above it.
    fn lies_below(&self, below: Wd, wd: Wd) -> bool {
        let mut at = Some(below);
        while let Some(here) = at {
            if here == wd {
                return true;
            }
            at = self.nodes.get(&here).and_then(|node| node.above.as_ref()).map(|(wd, _)| *wd);
        }
        false
    }

    fn take_subtree(&mut self, top: Wd) -> Vec<Wd> {
        let mut taken = Vec::new();
        let mut open = vec![top];
        while let Some(wd) = open.pop() {
            if let Some(node) = self.nodes.remove(&wd) {
                taken.push(wd);
                open.extend(node.children.values().filter_map(|child| match child {
                    Child::Watched(wd) => Some(*wd),
                    Child::Refused(_) => None,
                }));
            }
        }
        taken
    }

    fn link(&mut self, parent: Wd, name: &[u8], child: Child) {
        if let Some(node) = self.nodes.get_mut(&parent) {
            node.children.insert(name.into(), child);
        }
    }

    fn unlink(&mut self, parent: Wd, name: &[u8]) -> Option<Child> {
        self.nodes.get_mut(&parent)?.children.remove(name)
    }

    /// Every child is known to its parent, and every parent knows its child.
    #[cfg(test)]
    fn check_invariants(&self) {
        for (wd, node) in &self.nodes {
            match &node.above {
                None => assert_eq!(*wd, self.root),
                Some((above, name)) => assert_eq!(self.watched_child(*above, name), Some(*wd)),
            }
            for (name, child) in &node.children {
                if let Child::Watched(child) = child {
                    let above = self.above(*child).expect("a child is in the table");
                    assert_eq!(above, (*wd, name.clone()));
                }
            }
            assert!(self.path(*wd).is_some());
        }
    }
}

/// The names in a path, tolerating a slash at its end.
pub(super) fn names(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&byte| byte == b'/').filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: Wd = 1;

    /// `/a` is 2, `/a/b` is 3, `/a/b/c` is 4, `/d` is 5.
    fn sample() -> Tree {
        let mut tree = Tree::new(ROOT, (0, 1));
        for (parent, name, wd) in [(ROOT, "a", 2), (2, "b", 3), (3, "c", 4), (ROOT, "d", 5)] {
            let attached = tree.attach(parent, name.as_bytes(), wd, (0, wd as u64));
            assert_eq!(attached, (Attached::New, vec![]));
        }
        tree.check_invariants();
        tree
    }

    fn path(tree: &Tree, wd: Wd) -> String {
        tree.path(wd).map(|path| String::from_utf8(path).unwrap()).unwrap_or_default()
    }

    #[test]
    fn paths_and_coverage_follow_the_names() {
        let tree = sample();
        assert_eq!(path(&tree, ROOT), "/");
        assert_eq!(path(&tree, 4), "/a/b/c");
        for dir in ["/", "/a", "/a/b/c", "/a/b/c/", "/d"] {
            assert_eq!(tree.coverage(dir.as_bytes()), Coverage::Watched, "{dir}");
        }
        assert_eq!(tree.coverage(b"/a/x/c"), Coverage::Unwatched(Reason::NotReached));
    }

    #[test]
    fn detaching_takes_the_whole_subtree() {
        let mut tree = sample();
        let mut gone = tree.detach(ROOT, b"a");
        gone.sort_unstable();
        assert_eq!(gone, [2, 3, 4]);
        assert_eq!((tree.len(), tree.path(4)), (2, None));
        assert_eq!(tree.detach(ROOT, b"a"), Vec::<Wd>::new());
        tree.check_invariants();
    }

    #[test]
    fn a_directory_that_turns_up_elsewhere_takes_its_subtree_along() {
        let mut tree = sample();
        assert_eq!(tree.attach(5, b"new", 3, (0, 3)), (Attached::Moved, vec![]));
        assert_eq!(path(&tree, 4), "/d/new/c");
        assert_eq!(tree.coverage(b"/a/b"), Coverage::Unwatched(Reason::NotReached));
        tree.check_invariants();
    }

    #[test]
    fn another_directory_of_the_same_name_replaces_the_former() {
        let mut tree = sample();
        let (attached, mut former) = tree.attach(ROOT, b"a", 9, (0, 9));
        former.sort_unstable();
        assert_eq!((attached, former), (Attached::New, vec![2, 3, 4]));
        tree.check_invariants();
    }

    #[test]
    fn a_directory_can_take_the_place_of_its_own_grandparent() {
        let mut tree = sample();
        let (attached, mut former) = tree.attach(ROOT, b"a", 4, (0, 4));
        former.sort_unstable();
        assert_eq!((attached, former), (Attached::New, vec![2, 3]));
        assert_eq!(path(&tree, 4), "/a");
        tree.check_invariants();
    }

    #[test]
    fn a_directory_cannot_come_to_lie_below_itself() {
        let mut tree = sample();
        assert_eq!(tree.attach(4, b"x", 2, (0, 2)).0, Attached::Tangled);
        assert_eq!(tree.attach(4, b"x", 4, (0, 4)).0, Attached::Tangled);
        assert_eq!(tree.attach(4, b"x", ROOT, (0, 1)).0, Attached::Tangled);
        tree.check_invariants();
    }

    #[test]
    fn refusals_are_remembered_and_counted() {
        let mut tree = sample();
        assert_eq!(tree.refuse(3, b"c", Reason::KernelLimit), [4]);
        assert_eq!(tree.coverage(b"/a/b/c/x"), Coverage::Unwatched(Reason::KernelLimit));
        assert_eq!(tree.refused(), BTreeMap::from([(Reason::KernelLimit, 1)]));
        assert_eq!(tree.attach(3, b"c", 4, (0, 4)), (Attached::New, vec![]));
        assert_eq!(tree.coverage(b"/a/b/c"), Coverage::Watched);
        tree.check_invariants();
    }

    #[test]
    fn a_new_generation_trusts_nothing_before_it_is_seen_again() {
        let mut tree = sample();
        tree.begin_generation();
        assert_eq!(tree.coverage(b"/"), Coverage::Watched);
        assert_eq!(tree.coverage(b"/a"), Coverage::Unwatched(Reason::NotReached));
        assert_eq!(tree.attach(ROOT, b"a", 2, (0, 2)), (Attached::Known, vec![]));
        assert_eq!(tree.coverage(b"/a"), Coverage::Watched);
        let mut outdated = tree.outdated();
        outdated.sort();
        assert_eq!(outdated, [(ROOT, b"d"[..].into()), (2, b"b"[..].into())]);
    }
}
