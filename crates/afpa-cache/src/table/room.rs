//! The limits of the table, and which object is ejected when one is reached.

use crate::Stamp;
use crate::dependencies::DependencyPath;
use crate::object::{Object, cost_of};
use crate::policy::{Newcomer, ObjectId, Policy};
use crate::settings::CacheSettings;
use crate::table::shelf::Shelf;

/// How much of each limit the listed objects use, and the policies that choose among them.
///
/// The limit on pinned bytes is kept by the arena itself, which hands out no more than it has. An
/// object with payloads of both kinds stands in both policies; one with neither (a redirect, say)
/// stands among the pinned ones, being memory only.
pub(super) struct Room {
    objects_limit: usize,
    open_files_limit: usize,
    bookkeeping_limit: usize,
    pinned: Shelf,
    files: Shelf,
    objects: usize,
    open_files: usize,
    /// Without what views take.
    bookkeeping: usize,
    views: usize,
}

/// How much of each limit one object uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    pinned_bytes: usize,
    open_files: usize,
    bookkeeping: usize,
}

impl Demand {
    /// Of the memory that header data points at, only the bytes that the module reports are counted.
    pub(super) fn of<H>(object: &Object<H>, dependencies: &[DependencyPath]) -> Demand {
        let paths: usize = dependencies.iter().map(|path| path.len() + DEPENDENCY_COST).sum();
        let stamp = object.stamp().map_or(0, |_| STAMP_COST);
        Demand {
            pinned_bytes: object.pinned_bytes(),
            open_files: object.open_files(),
            bookkeeping: cost_of::<H>(
                object.key().path.len(),
                object.header_bytes(),
                object.payloads().len(),
            ) + paths
                + stamp,
        }
    }

    fn is_file(&self) -> bool {
        self.open_files > 0
    }

    fn is_memory(&self) -> bool {
        self.pinned_bytes > 0 || !self.is_file()
    }
}

/// Index entry, reference counts and the object's own pointer of one dependency, and what the allocator adds.
const DEPENDENCY_COST: usize = 128;

/// A stamp, and what the allocator adds.
const STAMP_COST: usize = size_of::<Stamp>() + 16;

/// A view's table entry of an object, and its places in the lists of touches, with the room that tables and lists keep empty.
const VIEW_COST: usize = 96;

impl Room {
    /// `pinned_limit`: that of the arena.
    pub(super) fn new(settings: &CacheSettings, pinned_limit: usize) -> Room {
        let shelf =
            |capacity: usize| Shelf::new(settings.policy, capacity as u64, settings.kept_percent);
        Room {
            objects_limit: settings.objects_limit,
            open_files_limit: settings.open_files_limit,
            bookkeeping_limit: settings.bookkeeping_limit,
            pinned: shelf(pinned_limit),
            files: shelf(settings.open_files_limit),
            objects: 0,
            open_files: 0,
            bookkeeping: 0,
            views: 0,
        }
    }

    /// Whether the object would fit into an empty table. If not, no object is ejected for it.
    pub(super) fn could_hold(&self, demand: &Demand) -> bool {
        self.objects_limit > 0
            && demand.open_files <= self.open_files_limit
            && demand.bookkeeping + self.in_views(1) <= self.bookkeeping_limit
    }

    /// So many views may hold each of the objects.
    pub(super) fn set_views(&mut self, views: usize) {
        self.views = views;
    }

    /// Bytes that so many objects take in all views. Each view comes to hold most objects, because the kernel spreads connections.
    fn in_views(&self, objects: usize) -> usize {
        objects * self.views * VIEW_COST
    }

    /// The next object to eject so that this one fits; `None` once it does.
    pub(super) fn victim_for(&mut self, demand: &Demand) -> Option<ObjectId> {
        if self.open_files + demand.open_files > self.open_files_limit {
            return self
                .files
                .victim(demand.open_files as u64)
                .or_else(|| self.files.last_resort());
        }
        let full = self.objects >= self.objects_limit
            || self.bookkeeping() + demand.bookkeeping + self.in_views(1) > self.bookkeeping_limit;
        full.then(|| self.any_victim(demand)).flatten()
    }

    /// The next object to eject so that `needed` bytes of the arena become free. Objects without payload free
    /// nothing but are ejected, too: they are few, and the policy ranks them no higher than the others.
    pub(super) fn pinned_victim(&mut self, needed: usize) -> Option<ObjectId> {
        self.pinned.victim(needed as u64)
    }

    /// Takes an object in. Its size is left to this function.
    pub(super) fn enter(&mut self, newcomer: Newcomer, demand: &Demand) {
        self.objects += 1;
        self.open_files += demand.open_files;
        self.bookkeeping += demand.bookkeeping;
        if demand.is_memory() {
            let size = demand.pinned_bytes as u64;
            self.pinned.insert(Newcomer { size, ..newcomer });
        }
        if demand.is_file() {
            let size = demand.open_files as u64;
            self.files.insert(Newcomer { size, ..newcomer });
        }
    }

    pub(super) fn leave(&mut self, id: ObjectId, demand: &Demand) {
        self.objects -= 1;
        self.open_files -= demand.open_files;
        self.bookkeeping -= demand.bookkeeping;
        self.pinned.remove(id);
        self.files.remove(id);
    }

    pub(super) fn touch(&mut self, id: ObjectId, count: u32) {
        self.pinned.touch(id, count);
        self.files.touch(id, count);
    }

    pub(super) fn file_objects(&self) -> usize {
        self.files.len()
    }

    pub(super) fn open_files(&self) -> usize {
        self.open_files
    }

    pub(super) fn bookkeeping(&self) -> usize {
        self.bookkeeping + self.in_views(self.objects)
    }

    /// The two policies: over pinned objects, and over file-system objects.
    pub(super) fn shelves(&mut self) -> [&mut Shelf; 2] {
        [&mut self.pinned, &mut self.files]
    }

    /// From the kind of which there are more.
    fn any_victim(&mut self, demand: &Demand) -> Option<ObjectId> {
        let (shelf, needed) = match self.files.len() > self.pinned.len() {
            true => (&mut self.files, demand.open_files),
            false => (&mut self.pinned, demand.pinned_bytes),
        };
        shelf.victim(needed as u64).or_else(|| shelf.last_resort())
    }

    /// Holds the books against the demands of all listed objects.
    #[cfg(debug_assertions)]
    pub(super) fn check_invariants(&self, demands: impl Iterator<Item = Demand> + Clone) {
        let sum = |of: fn(Demand) -> usize| demands.clone().map(of).sum::<usize>();
        assert_eq!(self.objects, sum(|_| 1));
        assert_eq!(self.open_files, sum(|demand| demand.open_files));
        assert_eq!(self.bookkeeping, sum(|demand| demand.bookkeeping));
        assert_eq!(self.pinned.len(), sum(|demand| demand.is_memory().into()));
        assert_eq!(self.files.len(), sum(|demand| demand.is_file().into()));
        assert!(self.objects <= self.objects_limit);
        assert!(self.open_files <= self.open_files_limit);
        assert!(self.bookkeeping <= self.bookkeeping_limit);
        self.pinned.check_invariants();
        self.files.check_invariants();
    }
}
