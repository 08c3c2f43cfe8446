//! The parts that the document roots of one configuration share: a root costs no thread and no table of its own.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

use afpa_cache::Cache;
use afpa_cache::root::DocumentRoot;
use afpa_cache::watch::{ChangeSink, WatchSettings, WatchThread, Watcher};

use crate::header::HttpHeader;
use crate::load::{Absent, Compressor};

/// The cache of all document roots, and the threads that work for them.
pub struct Common {
    cache: Arc<Cache<HttpHeader>>,
    compressor: Arc<Compressor>,
    /// Outlives a configuration: roots that stay keep their watches.
    watch_thread: Arc<WatchThread>,
    watch: WatchSettings,
    absent: Absent,
    /// To the thread that loads written files.
    pusher: Option<SyncSender<Push>>,
    /// The last loss of changes that the cache knows of.
    loss: AtomicU64,
}

/// Loads a written file.
pub(crate) type Push = Box<dyn FnOnce() + Send>;

/// How many files may wait to be pushed, of all document roots. Further files are loaded when they are asked for.
const WAITING: usize = 4096;

impl Common {
    /// For document roots that are opened in it. With `push`, and where there are watches, written files are loaded before they
    /// are asked for: that starts a thread, so the process drops its privileges before.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(
        cache: Arc<Cache<HttpHeader>>,
        compressor: Arc<Compressor>,
        watch_thread: Arc<WatchThread>,
        watch: WatchSettings,
        push: bool,
    ) -> io::Result<Arc<Self>> {
        let pusher = (push && watch.enabled).then(start_pusher).transpose()?;
        let (absent, loss) = (Absent::default(), AtomicU64::default());
        Ok(Arc::new(Self { cache, compressor, watch_thread, watch, absent, pusher, loss }))
    }

    /// The cache.
    pub fn cache(&self) -> &Arc<Cache<HttpHeader>> {
        &self.cache
    }

    /// The compressor.
    pub fn compressor(&self) -> &Arc<Compressor> {
        &self.compressor
    }

    pub(crate) fn absent(&self) -> &Absent {
        &self.absent
    }

    /// Watches the tree of a document root.
    pub(crate) fn watch(
        &self,
        root: &DocumentRoot,
        sink: Arc<dyn ChangeSink>,
    ) -> io::Result<Watcher> {
        self.watch_thread.watch(root, sink, self.watch)
    }

    /// Has a written file loaded, if files are pushed and not too many wait.
    pub(crate) fn push(&self, load: impl FnOnce() -> Push) {
        if let Some(pusher) = &self.pusher {
            let _ = pusher.try_send(load());
        }
    }

    /// Changes were lost. Each document root reports the loss, and the first report reaches the cache.
    pub(crate) fn suspect_all(&self, loss: u64) {
        if self.loss.swap(loss, Ordering::Relaxed) != loss {
            self.cache.suspect_all();
        }
    }
}

/// Starts the one thread that loads written files. It ends when the sender does.
fn start_pusher() -> io::Result<SyncSender<Push>> {
    let (sender, written) = sync_channel::<Push>(WAITING);
    let run = move || written.into_iter().for_each(|push| push());
    std::thread::Builder::new().name("afpa-push".into()).spawn(run)?;
    Ok(sender)
}
