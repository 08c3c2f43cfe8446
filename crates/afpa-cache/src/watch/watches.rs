//! Adds watches: examines a name, and watches the directory of that name.
//!
//! The table is locked from before a watch is added until it is noted, so that the reader of events
//! never meets a watch it does not know. The sink is only called when the lock is released.

use super::coverage::{Coverage, Progress, Reason, Summary};
use super::kernel::{identity_of, watch};
use super::tree::{Attached, Tree, Wd, names};
use super::{ChangeSink, WatchSettings};
use crate::root::{DocumentRoot, is_hidden, join, open_beneath, relative};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::inotify::{self, CreateFlags};
use rustix::fs::{OFlags, ResolveFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(super) struct Watches {
    root: OwnedFd,
    dotfiles: bool,
    max_watches: usize,
    sink: Arc<dyn ChangeSink>,
    /// None when nothing is watched from the start.
    inotify: Option<OwnedFd>,
    state: Mutex<WatchState>,
    completed: Condvar,
    /// Wakes the reader of events from its sleep.
    bell: OwnedFd,
    stopped: AtomicBool,
}

struct WatchState {
    /// The reason when nothing is watched.
    tree: Result<Tree, Reason>,
    complete: bool,
    /// The table was found too far behind to be put right by single events.
    tangled: bool,
    limit_reported: bool,
}

/// What a name was found to be.
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
    pub(super) fn new(
        root: &DocumentRoot,
        sink: Arc<dyn ChangeSink>,
        settings: WatchSettings,
    ) -> io::Result<Self> {
        let inotify = match settings.enabled {
            true => inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(|error| {
                if error == Errno::MFILE { Reason::NoInstance } else { error.into() }
            }),
            false => Err(Reason::Disabled),
        };
        let tree = inotify.as_ref().map_err(|reason| *reason).and_then(|inotify| {
            if settings.max_watches == 0 {
                return Err(Reason::OwnLimit);
            }
            let (wd, identity) = watch(inotify, root.as_fd())?;
            Ok(Tree::new(wd, identity))
        });
        let complete = tree.is_err();
        Ok(Watches {
            root: root.as_fd().try_clone_to_owned()?,
            dotfiles: root.settings().dotfiles,
            max_watches: settings.max_watches,
            sink,
            inotify: inotify.ok(),
            state: Mutex::new(WatchState { tree, complete, tangled: false, limit_reported: false }),
            completed: Condvar::new(),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            stopped: AtomicBool::new(false),
        })
    }

    // What the public interface asks.

    pub(super) fn is_active(&self) -> bool {
        self.lock().tree.is_ok()
    }

    pub(super) fn coverage(&self, dir: &[u8]) -> Coverage {
        match &self.lock().tree {
            Ok(tree) => tree.coverage(dir),
            Err(reason) => Coverage::Unwatched(*reason),
        }
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

    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.ring();
    }

    // What the reader of events asks.

    pub(super) fn sink(&self) -> &dyn ChangeSink {
        &*self.sink
    }

    pub(super) fn inotify(&self) -> Option<&OwnedFd> {
        self.inotify.as_ref()
    }

    pub(super) fn bell(&self) -> &OwnedFd {
        &self.bell
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub(super) fn read<T>(&self, look: impl FnOnce(&Tree) -> Option<T>) -> Option<T> {
        self.lock().tree.as_ref().ok().and_then(look)
    }

    /// Takes a new look at the entry `name` of the directory `parent`, and watches what is there.
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
        state.tangled = false;
        if let Ok(tree) = &mut state.tree {
            tree.begin_generation();
            state.complete = false;
        }
    }

    /// Whether the table must be made anew from the tree.
    pub(super) fn is_tangled(&self) -> bool {
        self.lock().tangled
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
            open_beneath(&self.root, relative(&path), flags, ResolveFlags::NO_SYMLINKS).ok()?;
        (identity_of(&directory).ok()? == identity).then_some((path, directory))
    }

    /// Whether the root has been deleted. It gives no sign of its own while we hold it open.
    pub(super) fn root_is_deleted(&self) -> bool {
        rustix::fs::fstat(&self.root).is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// Gives up watching altogether, and says so.
    pub(super) fn give_up(&self, reason: Reason) {
        {
            let mut state = self.lock();
            state.tree = Err(reason);
            state.complete = true;
            self.completed.notify_all();
        }
        tracing::warn!(%reason, "nothing is watched any more: files are compared by their stamps");
        self.sink.overflow();
        self.sink.changed_tree(b"/");
    }

    // How it is done.

    fn lock(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        // Fails only when it is ringing already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
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
            if state.tangled {
                self.ring();
            }
            outcome
        };
        lost.iter().for_each(|place| self.sink.changed_tree(place));
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
        let Some(inotify) = &self.inotify else { return Found::Refused(Reason::Failed) };
        let Some(above) = tree.path(parent) else { return Found::Nothing };
        let path = join(&above, name);
        let full = tree.len() >= self.max_watches && tree.watched_child(parent, name).is_none();
        let watched = match self.open_directory(&path, name) {
            Ok(None) => {
                let former = tree.detach(parent, name);
                self.release(former, path, lost);
                return Found::Nothing;
            }
            Ok(Some(_)) if full => Err(Reason::OwnLimit),
            Ok(Some(directory)) => watch(inotify, &directory),
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
        if let Found::Refused(reason) = found {
            report_limit(&mut state.limit_reported, reason);
        }
        found
    }

    /// None when there is no directory of this name.
    fn open_directory(&self, path: &[u8], name: &[u8]) -> Result<Option<OwnedFd>, Reason> {
        if matches!(name, b"" | b"." | b"..") || name.contains(&0) {
            return Ok(None);
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match open_beneath(&self.root, relative(path), flags, ResolveFlags::NO_SYMLINKS) {
            Ok(directory) => Ok(Some(directory)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a watch the table knows still stands for the directory at the place it knows.
    fn still_there(&self, tree: &Tree, wd: Wd) -> bool {
        let Some(path) = tree.path(wd) else { return false };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        open_beneath(&self.root, relative(&path), flags, ResolveFlags::NO_SYMLINKS)
            .and_then(|directory| identity_of(&directory))
            .is_ok_and(|identity| tree.identity(wd) == Some(identity))
    }

    fn release(&self, former: Vec<Wd>, path: Vec<u8>, lost: &mut Vec<Vec<u8>>) {
        if former.is_empty() {
            return;
        }
        if let Some(inotify) = &self.inotify {
            for wd in former {
                // Fails for a directory that was deleted: its watch has ended by itself.
                let _ = inotify::remove_watch(inotify, wd);
            }
        }
        lost.push(path);
    }
}

fn report_limit(reported: &mut bool, reason: Reason) {
    if !*reported && matches!(reason, Reason::KernelLimit | Reason::OwnLimit) {
        *reported = true;
        let remedy = reason.remedy().unwrap_or_default();
        tracing::warn!(%reason, remedy, "further directories are not watched");
    }
}
