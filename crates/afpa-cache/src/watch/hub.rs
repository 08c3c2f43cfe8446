//! One inotify instance for any number of trees.
//!
//! The kernel gives a directory one watch per instance, so two trees may share it: one of the roots lies below the
//! other, or both are served with different settings. This table knows whose each watch is. It is locked from before a
//! watch is added until it is noted, so that the reader of events never meets a watch that it does not know. A tree's own
//! lock may be held meanwhile; the reverse never happens.

use super::coverage::Reason;
use super::kernel::{silence, watch};
use super::tree::{Identity, Wd};
use super::watches::Watches;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::inotify::{self, CreateFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A tree within an instance; never used again.
pub(super) type TreeId = u64;

/// A tree is found again by its root, and by whether hidden directories are watched without being asked for.
pub(super) type Place = (Identity, bool);

pub(super) struct Hub {
    inotify: Result<OwnedFd, Reason>,
    /// Wakes the reader of events from its sleep.
    bell: OwnedFd,
    stopped: AtomicBool,
    /// The reader of events has ended before it was asked to.
    failed: AtomicBool,
    /// The reader is to write the summary to the log.
    announced: AtomicBool,
    /// The most directories to watch.
    most: AtomicUsize,
    state: Mutex<HubState>,
}

#[derive(Default)]
struct HubState {
    owners: BTreeSet<(Wd, TreeId)>,
    /// The watches, each counted once.
    watched: usize,
    trees: BTreeMap<TreeId, Arc<Watches>>,
    places: HashMap<Place, TreeId>,
    /// Trees that the reader has to scan.
    unscanned: Vec<Arc<Watches>>,
    /// Trees whose tables must be made anew.
    tangled: BTreeSet<TreeId>,
    next: TreeId,
    file_systems: FileSystems,
}

/// The file systems of document roots, by device. A device is a file system's own as long as a directory of it is held open:
/// a root that was asked about it.
#[derive(Default)]
struct FileSystems(HashMap<u64, (Weak<OwnedFd>, Option<Reason>)>);

impl Hub {
    /// # Errors
    /// When no descriptor is left for the bell.
    pub(super) fn new(enabled: bool) -> io::Result<Self> {
        let init = || inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
        let inotify = enabled.then(init).ok_or(Reason::Disabled).and_then(|made| {
            made.map_err(|error| match error {
                Errno::MFILE => Reason::NoInstance,
                error => error.into(),
            })
        });
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let no = || AtomicBool::new(false);
        let (stopped, failed, announced) = (no(), no(), no());
        Ok(Hub {
            inotify,
            bell,
            stopped,
            failed,
            announced,
            most: AtomicUsize::new(0),
            state: Mutex::default(),
        })
    }

    pub(super) fn inotify(&self) -> Result<&OwnedFd, Reason> {
        self.inotify.as_ref().map_err(|reason| *reason)
    }

    pub(super) fn bell(&self) -> &OwnedFd {
        &self.bell
    }

    /// Sets the most directories to watch, of all trees.
    pub(super) fn allow(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    pub(super) fn ring(&self) {
        // Fails only when it is ringing already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.ring();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    // Trees.

    pub(super) fn new_tree(&self) -> TreeId {
        let mut state = self.lock();
        state.next += 1;
        state.next
    }

    /// The tree of a root that is watched already.
    pub(super) fn tree_at(&self, place: Place) -> Option<Arc<Watches>> {
        let state = self.lock();
        state.places.get(&place).and_then(|id| state.trees.get(id)).cloned()
    }

    /// From here on events are given to the tree, and the reader scans its directories when it wakes. Whether it has no other
    /// tree to scan.
    pub(super) fn enter(&self, tree: &Arc<Watches>) -> bool {
        let mut state = self.lock();
        state.trees.insert(tree.id(), Arc::clone(tree));
        if let Some(place) = tree.place() {
            state.places.insert(place, tree.id());
        }
        let first = state.unscanned.is_empty();
        state.unscanned.push(Arc::clone(tree));
        first
    }

    /// Has the reader write the summary to the log, as soon as all is scanned.
    pub(super) fn announce(&self) {
        self.announced.store(true, Ordering::Release);
        self.ring();
    }

    pub(super) fn take_announcement(&self) -> bool {
        self.announced.swap(false, Ordering::AcqRel)
    }

    /// Has a tree scanned once more.
    pub(super) fn scan(&self, tree: &Arc<Watches>) {
        self.lock().unscanned.push(Arc::clone(tree));
        self.ring();
    }

    /// No event is given to the tree any more.
    pub(super) fn leave(&self, tree: &Watches) {
        let mut state = self.lock();
        state.trees.remove(&tree.id());
        if let Some(place) = tree.place()
            && state.places.get(&place) == Some(&tree.id())
        {
            state.places.remove(&place);
        }
    }

    /// The table of a tree is too far behind its directories.
    pub(super) fn note_tangled(&self, tree: TreeId) {
        self.lock().tangled.insert(tree);
        self.ring();
    }

    pub(super) fn take_tangled(&self) -> Vec<Arc<Watches>> {
        let mut state = self.lock();
        let tangled = std::mem::take(&mut state.tangled);
        tangled.iter().filter_map(|tree| state.trees.get(tree)).cloned().collect()
    }

    pub(super) fn has_unscanned(&self) -> bool {
        !self.lock().unscanned.is_empty()
    }

    pub(super) fn take_unscanned(&self) -> Vec<Arc<Watches>> {
        std::mem::take(&mut self.lock().unscanned)
    }

    pub(super) fn trees(&self) -> Vec<Arc<Watches>> {
        self.lock().trees.values().cloned().collect()
    }

    /// At most so many, from this one on; from the first one when there are no more.
    pub(super) fn trees_from(&self, first: TreeId, most: usize) -> Vec<Arc<Watches>> {
        self.lock().trees.range(first..).take(most).map(|(_, tree)| Arc::clone(tree)).collect()
    }

    /// The reader of events has ended.
    pub(super) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
        self.trees().iter().for_each(|tree| tree.give_up(Reason::Failed));
    }

    /// Whether another instance may have what this one has not.
    pub(super) fn is_useless(&self) -> bool {
        self.inotify.is_err() || self.failed.load(Ordering::Acquire)
    }

    // Watches.

    /// Puts a watch on a directory for the tree of a root. With `known`, one that it has there may stay when there are too
    /// many.
    pub(super) fn add(
        &self,
        tree: TreeId,
        root: &Arc<OwnedFd>,
        directory: &OwnedFd,
        identity: Identity,
        known: bool,
    ) -> Result<Wd, Reason> {
        let inotify = self.inotify()?;
        let mut state = self.lock();
        if self.failed.load(Ordering::Acquire) {
            return Err(Reason::Failed);
        }
        if state.watched >= self.most.load(Ordering::Relaxed) && !known {
            return Err(Reason::OwnLimit);
        }
        if let Some(reason) = state.file_systems.silence(root, directory, identity)? {
            return Err(reason);
        }
        let wd = watch(inotify, directory)?;
        let is_new = !state.has_owner(wd);
        state.watched += usize::from(is_new);
        state.owners.insert((wd, tree));
        Ok(wd)
    }

    /// Ends watches of a tree, unless they are those of another tree, too.
    pub(super) fn release(&self, tree: TreeId, watches: impl IntoIterator<Item = Wd>) {
        let Ok(inotify) = self.inotify() else { return };
        let mut state = self.lock();
        for wd in watches {
            if state.owners.remove(&(wd, tree)) && !state.has_owner(wd) {
                state.watched -= 1;
                // Fails for a directory that was deleted: its watch has ended by itself.
                let _ = inotify::remove_watch(inotify, wd);
            }
        }
    }

    /// The trees that a watch belongs to.
    pub(super) fn owners(&self, wd: Wd) -> Vec<Arc<Watches>> {
        let state = self.lock();
        state.owners_of(wd).filter_map(|tree| state.trees.get(&tree)).cloned().collect()
    }

    /// As [`owners`](Self::owners), for a watch that the kernel has ended.
    pub(super) fn take_owners(&self, wd: Wd) -> Vec<Arc<Watches>> {
        let mut state = self.lock();
        let owners: Vec<TreeId> = state.owners_of(wd).collect();
        state.watched -= usize::from(!owners.is_empty());
        for tree in &owners {
            state.owners.remove(&(wd, *tree));
        }
        owners.iter().filter_map(|tree| state.trees.get(tree)).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileSystems {
    /// Why the file system of a directory of this root makes no sound when it changes, if so. The kernel is asked once for
    /// all directories on the file systems of roots.
    fn silence(
        &mut self,
        root: &Arc<OwnedFd>,
        directory: &OwnedFd,
        (device, _): Identity,
    ) -> Result<Option<Reason>, Errno> {
        let known = self.0.get(&device).filter(|(held, _)| held.strong_count() > 0);
        if let Some((_, silence)) = known {
            return Ok(*silence);
        }
        let silence = silence(directory)?;
        if std::ptr::eq(&**root, directory) {
            self.0.insert(device, (Arc::downgrade(root), silence));
        }
        Ok(silence)
    }
}

impl HubState {
    fn has_owner(&self, wd: Wd) -> bool {
        self.owners_of(wd).next().is_some()
    }

    fn owners_of(&self, wd: Wd) -> impl Iterator<Item = TreeId> {
        self.owners.range((wd, TreeId::MIN)..=(wd, TreeId::MAX)).map(|(_, tree)| *tree)
    }
}
