//! The parts that the document roots of one configuration share: a root costs no thread and no table of its own.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, PoisonError, Weak};

use afpa_cache::Cache;
use afpa_cache::root::DocumentRoot;
use afpa_cache::watch::{WatchSettings, WatchThread, Watcher};

use crate::doc_root::DocRoot;
use crate::header::HttpHeader;
use crate::known_scripts::ChangeNumber;
use crate::load::{Absent, Compressor};
use crate::push::{Changes, RootsByKey, Written, start_pusher};

/// The cache of all document roots, and the threads that work for them.
pub struct Common {
    cache: Arc<Cache<HttpHeader>>,
    compressor: Arc<Compressor>,
    /// Outlives a configuration: roots that stay keep their watches.
    watch_thread: Arc<WatchThread>,
    watch: WatchSettings,
    absent: Absent,
    roots: RootsByKey,
    /// To the thread that loads written files.
    written: Option<SyncSender<Written>>,
    /// The last loss of changes that the cache knows of.
    loss: AtomicU64,
}

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
        let roots = RootsByKey::default();
        let written = (push && watch.enabled).then(|| start_pusher(&roots)).transpose()?;
        let (absent, loss) = (Absent::default(), AtomicU64::default());
        Ok(Arc::new(Self { cache, compressor, watch_thread, watch, absent, roots, written, loss }))
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

    /// Watches the tree of a document root with this key. The number changes with each change.
    pub(crate) fn watch(
        self: &Arc<Self>,
        root: &DocumentRoot,
        (key, number): (u32, &Arc<ChangeNumber>),
    ) -> io::Result<Watcher> {
        let changes = Changes { common: Arc::clone(self), key, number: Arc::clone(number) };
        self.watch_thread.watch(root, Arc::new(changes), self.watch)
    }

    /// From now on files that are written below the root are loaded.
    pub(crate) fn enter(&self, root: &Arc<DocRoot>) {
        let mut roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        let place = root.key() as usize;
        if roots.len() <= place {
            roots.resize_with(place + 1, Weak::new);
        }
        if let Some(known) = roots.get_mut(place) {
            *known = Arc::downgrade(root);
        }
    }

    pub(crate) fn written(&self, key: u32, path: &[u8]) {
        if let Some(written) = &self.written {
            let _ = written.try_send((key, path.into()));
        }
    }

    /// Changes were lost. Each document root reports the loss, and the first report reaches the cache.
    pub(crate) fn suspect_all(&self, loss: u64) {
        if self.loss.swap(loss, Ordering::Relaxed) != loss {
            self.cache.suspect_all();
        }
    }
}
