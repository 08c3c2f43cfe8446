//! Watches the tree below a document root, so that a changed file is not served stale once the watch has
//! reported it.
//!
//! One thread reads one inotify instance for any number of roots, and tells a [`ChangeSink`] what changed. Directories are watched, not
//! files. The tree is scanned at the start, and a directory the scan has not reached can be asked
//! for with [`Watcher::ensure`].
//!
//! **The rule.** To cache a file, do this in order: register the object's dependencies at the sink's side;
//! [`ensure`](Watcher::ensure) the directory; open the file; read it. If `ensure` said [`Watched`](Coverage::Watched),
//! no change after the reading goes unreported. [`Watcher::resolve`] keeps the order, also across symbolic links.
//!
//! The table of watches lags behind the file system. The rule holds all the same, because a directory counts
//! as watched only when all directories above it are. If a directory on the way to a file is swapped, moved
//! or deleted, that is itself an event of a watched directory. When the event is read, the name is examined
//! again, and the whole tree below it is reported *after* the new watch is in place. When a watch ends
//! (limits, errors, an unmount), a report follows, too.
//!
//! **The blind spots of inotify**: it does not report stores through a shared mapping, before the writer closes the
//! file; writes through a name outside the tree, when a file was hard-linked after it was cached (with more than one
//! name before, it counts as unwatched); a file system that is mounted over a watched directory. So the files of
//! objects in use are compared now and then as well ([`Cache::compare_used`](crate::Cache::compare_used)). Nor does it
//! report changes of the lower layers of an overlay: files on one count as unwatched.

mod coverage;
mod events;
mod hub;
mod kernel;
mod resolve;
mod sink;
mod thread;
mod tree;
mod watches;

pub use coverage::{Coverage, Progress, Reason, Summary};

use crate::root::{DocumentRoot, OpenFile};
pub use sink::ChangeSink;
use std::io;
use std::sync::Arc;
use std::time::Duration;
pub use thread::{Held, WatchThread};
use watches::{SinkId, Watches};

/// How the tree is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchSettings {
    /// Whether it is watched at all. If not, everything is [`Reason::Disabled`].
    pub enabled: bool,
    /// The most directories to watch, of all trees that one thread watches. Each costs the kernel about 1 KB.
    pub max_watches: usize,
}

/// A watch on the tree below a document root. It ends when this is dropped, unless others watch the same tree.
pub struct Watcher {
    watches: Arc<Watches>,
    sink: SinkId,
    /// Only of one that has a thread to itself; it ends last.
    thread: Option<WatchThread>,
}

impl Default for WatchSettings {
    fn default() -> Self {
        WatchSettings { enabled: true, max_watches: 100_000 }
    }
}

impl Watcher {
    /// As [`WatchThread::watch`], with a thread for this tree alone.
    ///
    /// # Errors
    /// As there.
    pub fn start(
        root: &DocumentRoot,
        sink: Arc<dyn ChangeSink>,
        settings: WatchSettings,
    ) -> io::Result<Watcher> {
        let thread = WatchThread::default();
        let mut watcher = thread.watch(root, sink, settings)?;
        thread.announce();
        watcher.thread = Some(thread);
        Ok(watcher)
    }

    /// Whether the files in the directory `dir` are watched at this moment. Changes nothing.
    pub fn coverage(&self, dir: &[u8]) -> Coverage {
        self.watches.coverage(dir)
    }

    /// Whether every later change of the names in the directory `dir` is reported, as far as that is known without waiting:
    /// for cores. `false` says nothing.
    pub fn is_known_to_cover(&self, dir: &[u8]) -> bool {
        self.watches.coverage_now(dir) == Some(Coverage::Watched)
    }

    /// Makes sure that the files in the directory `dir` are watched, if they can be. Costs a few
    /// system calls when the scan has not been there, else a lock and a few look-ups.
    pub fn ensure(&self, dir: &[u8]) -> Coverage {
        self.watches.ensure(dir)
    }

    /// The [`coverage`](Self::coverage) of a file that was opened in the directory `dir`: a file
    /// with several names is not covered by a watch on one.
    pub fn coverage_of(&self, file: &OpenFile, dir: &[u8]) -> Coverage {
        hard_links(file).and(self.coverage(dir))
    }

    /// A number of the watched tree, which others that are served from the same directory may share.
    pub fn tree(&self) -> u64 {
        self.watches.id()
    }

    /// How far the scan has come.
    pub fn progress(&self) -> Progress {
        self.watches.progress()
    }

    /// Waits until the whole tree has been scanned, at most for `patience`; tells whether it was.
    pub fn wait_complete(&self, patience: Duration) -> bool {
        self.watches.wait_complete(patience)
    }

    /// The watched and the unwatched directories, for the log.
    pub fn summary(&self) -> Summary {
        self.watches.summary()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.watches.remove_sink(self.sink);
        // The sink is not called any more once the thread has ended.
        drop(self.thread.take());
    }
}

fn hard_links(file: &OpenFile) -> Coverage {
    match file.links {
        0 | 1 => Coverage::Watched,
        _ => Coverage::Unwatched(Reason::HardLinks),
    }
}
