//! Adds watches: examines a name, and watches the directory of that name.
//!
//! The table is locked from before a watch is added until it is noted, so that the reader of events
//! never meets a watch it does not know. The sink is only called when the lock is released.

use super::ChangeSink;
use super::coverage::{Coverage, Progress, Reason, Summary};
use super::hub::{Hub, Place, TreeId};
use super::tree::{Attached, Tree, Wd, names};
use crate::root::{DocumentRoot, identity_of, is_hidden, join, open_beneath, relative};
use rustix::fs::{OFlags, ResolveFlags};
use rustix::io::Errno;
use smallvec::{SmallVec, smallvec};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The watches of one tree.
pub(super) struct Watches {
    id: TreeId,
    hub: Arc<Hub>,
    root: Arc<OwnedFd>,
    dotfiles: bool,
    place: Option<Place>,
    sinks: Mutex<Sinks>,
    state: Mutex<WatchState>,
    completed: Condvar,
}

/// The receivers of changes: one for each configuration that serves the tree.
struct Sinks {
    list: SmallVec<[(SinkId, Arc<dyn ChangeSink>); 1]>,
    last: SinkId,
    /// The last one has gone, and no other may come.
    closed: bool,
}

pub(super) type SinkId = u32;

struct WatchState {
    /// The reason when nothing is watched.
    tree: Result<Tree, Reason>,
    complete: bool,
    /// The table was found too far behind to be put right by single events.
    tangled: bool,
}

/// The result of looking at a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A directory, and it is watched.
    Directory(Wd, Attached),
    /// A directory that cannot be watched.
    Refused(Reason),
    /// No directory.
    Nothing,
}

impl Watches {
    /// Watches the root.
    pub(super) fn new(
        hub: &Arc<Hub>,
        root: &DocumentRoot,
        enabled: bool,
        sink: Arc<dyn ChangeSink>,
    ) -> (Self, SinkId) {
        let (id, identity, descriptor) = (hub.new_tree(), root.identity(), root.handle());
        let watched = match enabled {
            true => hub.add(id, &descriptor, &descriptor, identity, false),
            false => Err(Reason::Disabled),
        };
        let dotfiles = root.settings().dotfiles;
        let place = watched.is_ok().then_some((identity, dotfiles));
        let tree = watched.map(|wd| Tree::new(wd, identity));
        let complete = tree.is_err();
        let first = 0;
        let watches = Watches {
            id,
            hub: Arc::clone(hub),
            root: descriptor,
            dotfiles,
            place,
            sinks: Mutex::new(Sinks { list: smallvec![(first, sink)], last: first, closed: false }),
            state: Mutex::new(WatchState { tree, complete, tangled: false }),
            completed: Condvar::new(),
        };
        (watches, first)
    }

    pub(super) fn id(&self) -> TreeId {
        self.id
    }

    pub(super) fn place(&self) -> Option<Place> {
        self.place
    }

    // The receivers of changes.

    /// `None` when the tree is being given up, because the last one has gone.
    pub(super) fn add_sink(&self, sink: Arc<dyn ChangeSink>) -> Option<SinkId> {
        let mut sinks = self.sinks();
        if sinks.closed {
            return None;
        }
        sinks.last += 1;
        let id = sinks.last;
        sinks.list.push((id, sink));
        Some(id)
    }

    /// With the last one all watches end.
    pub(super) fn remove_sink(&self, id: SinkId) {
        let mut sinks = self.sinks();
        let mut gone = None;
        if let Some(at) = sinks.list.iter().position(|(known, _)| *known == id) {
            gone = Some(sinks.list.remove(at));
        }
        sinks.closed = sinks.list.is_empty();
        let closed = sinks.closed;
        drop(sinks);
        drop(gone);
        if closed {
            self.hub.leave(self);
            let mut state = self.lock();
            let tree = std::mem::replace(&mut state.tree, Err(Reason::Disabled));
            self.hub.release(self.id, tree.iter().flat_map(Tree::watches));
        }
    }

    /// Tells all of them. No lock is held meanwhile.
    pub(super) fn tell(&self, tell: impl Fn(&dyn ChangeSink)) {
        let sinks = self.sinks().list.clone();
        sinks.iter().for_each(|(_, sink)| tell(&**sink));
    }

    fn sinks(&self) -> MutexGuard<'_, Sinks> {
        self.sinks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // The questions of the public interface.

    pub(super) fn is_active(&self) -> bool {
        self.lock().tree.is_ok()
    }

    pub(super) fn coverage(&self, dir: &[u8]) -> Coverage {
        match &self.lock().tree {
            Ok(tree) => tree.coverage(dir),
            Err(reason) => Coverage::Unwatched(*reason),
        }
    }

    /// [`coverage`](Self::coverage), unless another thread has the lock.
    pub(super) fn coverage_now(&self, dir: &[u8]) -> Option<Coverage> {
        let state = self.state.try_lock().ok()?;
        state.tree.as_ref().ok().map(|tree| tree.coverage(dir))
    }

    pub(super) fn ensure(&self, dir: &[u8]) -> Coverage {
        self.with_tree(|watches, state, lost| watches.watch_down_to(state, dir, lost))
            .unwrap_or_else(Coverage::Unwatched)
    }

    pub(super) fn progress(&self) -> Progress {
        let state = self.lock();
        let watched = state.tree.as_ref().map_or(0, Tree::len);
        Progress { watched, complete: state.complete }
    }

    pub(super) fn summary(&self) -> Summary {
        let state = self.lock();
        let (watched, unwatched) = match &state.tree {
            Ok(tree) => (tree.len(), tree.refused()),
            Err(reason) => (0, [(*reason, 1)].into()),
        };
        Summary { watched, unwatched, complete: state.complete }
    }

    pub(super) fn wait_complete(&self, patience: Duration) -> bool {
        let wait =
            self.completed.wait_timeout_while(self.lock(), patience, |state| !state.complete);
        wait.unwrap_or_else(PoisonError::into_inner).0.complete
    }

    /// Directories that could not be watched may be by now: the limits may be others.
    pub(super) fn lacks_some(&self) -> bool {
        self.read(|tree| Some(!tree.refused().is_empty())).unwrap_or_default()
    }

    /// The scan is to begin anew; known watches stay.
    pub(super) fn mark_incomplete(&self) {
        self.lock().complete = false;
    }

    // The questions of the reader of events.

    pub(super) fn read<T>(&self, look: impl FnOnce(&Tree) -> Option<T>) -> Option<T> {
        self.lock().tree.as_ref().ok().and_then(look)
    }

    /// Takes a new look at the entry `name` of the directory `parent`, and watches it if it is a directory.
    pub(super) fn examine(&self, parent: Wd, name: &[u8]) -> Found {
        self.with_tree(|watches, state, lost| watches.look(state, parent, name, lost))
            .unwrap_or_else(Found::Refused)
    }

    /// Whether a directory of this name is watched without being asked for, or is already.
    pub(super) fn wants(&self, parent: Wd, name: &[u8]) -> bool {
        let known = || self.read(|tree| tree.watched_child(parent, name)).is_some();
        self.dotfiles || !is_hidden(name) || known()
    }

    /// Begins to scan the tree once more: nothing counts as watched until it is seen again.
    pub(super) fn begin_rescan(&self) {
        let mut state = self.lock();
        if let Ok(tree) = &mut state.tree {
            tree.begin_generation();
            state.complete = false;
        }
    }

    /// Notes that the scan is through, unless directories are left that it did not see: then it
    /// returns those, to be looked at.
    pub(super) fn finish_scan(&self) -> Vec<(Wd, Box<[u8]>)> {
        let mut state = self.lock();
        let left = state.tree.as_ref().map(Tree::outdated).unwrap_or_default();
        if left.is_empty() {
            state.complete = true;
            self.completed.notify_all();
        }
        left
    }

    /// Opens a watched directory for reading its names. None when another has taken its place:
    /// then there are events to tell so.
    pub(super) fn open(&self, wd: Wd) -> Option<(Vec<u8>, OwnedFd)> {
        let (path, identity) = self.read(|tree| Some((tree.path(wd)?, tree.identity(wd)?)))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory =
            open_beneath(&*self.root, relative(&path), flags, ResolveFlags::NO_SYMLINKS).ok()?;
        (identity_of(&directory).ok()? == identity).then_some((path, directory))
    }

    /// Whether the root has been deleted. It gives no sign of its own while we hold it open.
    pub(super) fn root_is_deleted(&self) -> bool {
        rustix::fs::fstat(&*self.root).is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// Gives up watching this tree.
    pub(super) fn give_up(&self, reason: Reason) {
        {
            let mut state = self.lock();
            let tree = std::mem::replace(&mut state.tree, Err(reason));
            self.hub.release(self.id, tree.iter().flat_map(Tree::watches));
            state.complete = true;
            self.completed.notify_all();
        }
        // Objects that were cached as watched, or are being loaded so, are dropped.
        self.tell(|sink| sink.changed_tree(b"/"));
    }

    // The implementation.

    fn lock(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `act` under the lock, and afterwards reports the places that lost their watch in it.
    fn with_tree<T>(
        &self,
        act: impl FnOnce(&Self, &mut WatchState, &mut Vec<Vec<u8>>) -> T,
    ) -> Result<T, Reason> {
        let mut lost = Vec::new();
        let outcome = {
            let mut state = self.lock();
            if let Err(reason) = &state.tree {
                return Err(*reason);
            }
            let outcome = act(self, &mut state, &mut lost);
            if std::mem::take(&mut state.tangled) {
                self.hub.note_tangled(self.id);
            }
            outcome
        };
        lost.iter().for_each(|place| self.tell(|sink| sink.changed_tree(place)));
        Ok(outcome)
    }

    fn watch_down_to(
        &self,
        state: &mut WatchState,
        dir: &[u8],
        lost: &mut Vec<Vec<u8>>,
    ) -> Coverage {
        let Ok(tree) = &state.tree else { return Coverage::Unwatched(Reason::Failed) };
        let mut wd = tree.root();
        for name in names(dir) {
            let known = state.tree.as_ref().ok().and_then(|tree| tree.child(wd, name));
            wd = match known {
                Some(child) => child,
                None => match self.look(state, wd, name, lost) {
                    Found::Directory(child, _) => child,
                    Found::Refused(reason) => return Coverage::Unwatched(reason),
                    Found::Nothing => return Coverage::Unwatched(Reason::Missing),
                },
            };
        }
        Coverage::Watched
    }

    /// Opens the entry, watches it if it is a directory, and brings the table in line.
    fn look(
        &self,
        state: &mut WatchState,
        parent: Wd,
        name: &[u8],
        lost: &mut Vec<Vec<u8>>,
    ) -> Found {
        let Ok(tree) = &mut state.tree else { return Found::Refused(Reason::Failed) };
        let Some(above) = tree.path(parent) else { return Found::Nothing };
        let path = join(&above, name);
        let known = tree.watched_child(parent, name).is_some();
        let watched = match self.open_directory(&path, name) {
            Ok(None) => {
                let former = tree.detach(parent, name);
                self.release(former, path, lost);
                return Found::Nothing;
            }
            Ok(Some(directory)) => {
                identity_of(&directory).map_err(Reason::from).and_then(|identity| {
                    let wd = self.hub.add(self.id, &self.root, &directory, identity, known)?;
                    Ok((wd, identity))
                })
            }
            Err(reason) => Err(reason),
        };
        let watched = watched.and_then(|(wd, identity)| {
            match tree.above(wd) != Some((parent, name.into())) && self.still_there(tree, wd) {
                true => Err(Reason::SeveralPlaces),
                false => Ok((wd, identity)),
            }
        });
        let (found, former) = match watched {
            Err(reason) => (Found::Refused(reason), tree.refuse(parent, name, reason)),
            Ok((wd, identity)) => match tree.attach(parent, name, wd, identity) {
                (Attached::Tangled, _) => {
                    state.tangled = true;
                    let reason = Reason::Unsettled;
                    (Found::Refused(reason), tree.refuse(parent, name, reason))
                }
                (attached, former) => (Found::Directory(wd, attached), former),
            },
        };
        self.release(former, path, lost);
        found
    }

    /// None when there is no directory of this name.
    fn open_directory(&self, path: &[u8], name: &[u8]) -> Result<Option<OwnedFd>, Reason> {
        if matches!(name, b"" | b"." | b"..") || name.contains(&0) {
            return Ok(None);
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match open_beneath(&*self.root, relative(path), flags, ResolveFlags::NO_SYMLINKS) {
            Ok(directory) => Ok(Some(directory)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a watch the table knows still stands for the directory at the place it knows.
    fn still_there(&self, tree: &Tree, wd: Wd) -> bool {
        let Some(path) = tree.path(wd) else { return false };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        open_beneath(&*self.root, relative(&path), flags, ResolveFlags::NO_SYMLINKS)
            .and_then(|directory| identity_of(&directory))
            .is_ok_and(|identity| tree.identity(wd) == Some(identity))
    }

    fn release(&self, former: Vec<Wd>, path: Vec<u8>, lost: &mut Vec<Vec<u8>>) {
        if !former.is_empty() {
            self.hub.release(self.id, former);
            lost.push(path);
        }
    }
}
