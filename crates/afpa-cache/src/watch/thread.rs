//! The thread that watches, and its handle.

use super::events;
use super::hub::Hub;
use super::watches::{SinkId, Watches};
use super::{ChangeSink, WatchSettings, Watcher};
use crate::root::DocumentRoot;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Watches the trees below any number of document roots, with one inotify instance and one thread. It begins with the first
/// root that is to be watched, and ends when this is dropped.
#[derive(Default)]
pub struct WatchThread {
    running: Mutex<Option<Running>>,
    /// How many ask that scans wait.
    held: AtomicUsize,
}

/// More roots are coming: until this is dropped, the thread is not woken to scan what is below those that have come, and the
/// two do not wait for each other's locks.
#[must_use]
pub struct Held<'t>(&'t WatchThread);

struct Running {
    hub: Arc<Hub>,
    thread: Option<JoinHandle<()>>,
}

impl WatchThread {
    /// Watches the tree below `root`. The root itself is watched on return; the scan of the tree goes on in the thread.
    /// A tree that is watched already gets another sink, and keeps its watches: so nothing is missed while one
    /// configuration follows another.
    ///
    /// Where nothing can be watched (no inotify instance is left, the root lies on a network file
    /// system) this is no error: then [`Watcher::coverage`] says so for every directory.
    ///
    /// # Errors
    /// When no thread can be started, or no descriptor is left for it.
    pub fn watch(
        &self,
        root: &DocumentRoot,
        sink: Arc<dyn ChangeSink>,
        settings: WatchSettings,
    ) -> io::Result<Watcher> {
        let hub = self.hub(settings)?;
        let known = settings.enabled.then(|| join_known(&hub, root, &sink)).flatten();
        let (watches, sink) = known.unwrap_or_else(|| {
            let (watches, id) = Watches::new(&hub, root, settings.enabled, sink);
            let watches = Arc::new(watches);
            if settings.enabled {
                let is_first = hub.enter(&watches);
                if is_first && self.held.load(Ordering::Relaxed) == 0 {
                    hub.ring();
                }
            }
            (watches, id)
        });
        Ok(Watcher { watches, sink, thread: None })
    }

    /// For the time in which many roots are given to [`watch`](Self::watch).
    pub fn hold(&self) -> Held<'_> {
        self.held.fetch_add(1, Ordering::Relaxed);
        Held(self)
    }

    /// Has the thread log the watched and the unwatched directories, as soon as all has been scanned.
    pub fn announce(&self) {
        if let Some(running) = self.lock().as_ref() {
            running.hub.announce();
        }
    }

    /// Tries again, where the kernel granted no instance or the thread has ended: for roots that are opened from now on.
    pub fn retry(&self) {
        let mut running = self.lock();
        if running.as_ref().is_some_and(|running| running.hub.is_useless()) {
            *running = None;
        }
    }

    fn hub(&self, settings: WatchSettings) -> io::Result<Arc<Hub>> {
        let mut running = self.lock();
        let usable = |running: &&Running| running.thread.is_some() || !settings.enabled;
        let hub = match running.as_ref().filter(usable) {
            Some(running) => Arc::clone(&running.hub),
            None => {
                let hub = Arc::new(Hub::new(settings.enabled)?);
                let thread =
                    settings.enabled.then(|| events::spawn(Arc::clone(&hub))).transpose()?;
                *running = Some(Running { hub: Arc::clone(&hub), thread });
                hub
            }
        };
        hub.allow(settings.max_watches);
        Ok(hub)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::Relaxed);
        if let Some(running) = self.0.lock().as_ref() {
            running.hub.ring();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.hub.stop();
        if let Some(thread) = self.thread.take() {
            // A watcher may be dropped by this very thread, through a sink.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
        // The coverage must not promise events any more.
        self.hub.fail();
    }
}

/// The tree of a root that is watched already, with one more sink.
fn join_known(
    hub: &Hub,
    root: &DocumentRoot,
    sink: &Arc<dyn ChangeSink>,
) -> Option<(Arc<Watches>, SinkId)> {
    let place = (root.identity(), root.settings().dotfiles);
    let watches = hub.tree_at(place).filter(|watches| watches.is_active())?;
    let id = watches.add_sink(Arc::clone(sink))?;
    if watches.lacks_some() {
        watches.mark_incomplete();
        hub.scan(&watches);
    }
    Some((watches, id))
}
