//! Opening a document root: its filters, its watch, and the threads of one that shares none.

use std::io;
use std::sync::{Arc, OnceLock, RwLock};

use afpa_cache::root::DocumentRoot;
use afpa_cache::watch::{WatchSettings, WatchThread};
use afpa_cache::{Arena, Cache, CacheSettings};
use afpa_http::media::MediaTypes;

use super::DocRoot;
use crate::common::Common;
use crate::load::{Compressor, Homes, Pipeline};
use crate::push::Changes;
use crate::settings::DocRootSettings;

/// A thread cannot be started: the one that watches the document root, pushes files, or compresses.
#[derive(Debug, thiserror::Error)]
#[error("cannot watch the document root: {0}")]
pub struct DocRootError(#[from] io::Error);

impl DocRoot {
    /// Opens a document root with a cache of its own, whose objects live in `arena`. This starts threads, so
    /// the process drops its privileges before, while `root` may have been opened with them.
    ///
    /// # Errors
    /// [`DocRootError`] when no thread can be started.
    pub fn open(
        root: DocumentRoot,
        settings: DocRootSettings,
        cache: CacheSettings,
        watch: WatchSettings,
        arena: Arena,
    ) -> Result<Arc<Self>, DocRootError> {
        let compressor = Compressor::start(settings.compression.queue)?;
        let (cache, thread) = (Cache::new(cache, arena), Arc::new(WatchThread::default()));
        let common = Common::start(cache, compressor, thread, watch, settings.push)?;
        Self::open_in(root, settings, &common, 0)
    }

    /// Opens a document root that has cache and threads in common with others. `key` distinguishes its
    /// objects from those of the others: a small number.
    ///
    /// # Errors
    /// As [`DocRoot::open`].
    pub fn open_in(
        root: DocumentRoot,
        settings: DocRootSettings,
        common: &Arc<Common>,
        key: u32,
    ) -> Result<Arc<Self>, DocRootError> {
        let mut media = MediaTypes::default();
        settings.types.iter().for_each(|(extension, kind)| media.set(extension, kind));
        let doc_root = Arc::new(Self {
            key,
            homes: settings.homes.as_deref().map(|dir| Homes::new(dir, root.settings())),
            pipeline: Pipeline::new(&settings),
            settings,
            media: RwLock::new(media),
            common: Arc::clone(common),
            root,
            watcher: OnceLock::new(),
            changes: Arc::default(),
        });
        // This is the only place that sets it, and no other thread has the document root yet.
        let (root, number) = (Arc::downgrade(&doc_root), Arc::clone(&doc_root.changes));
        let changes = Changes { common: Arc::clone(common), root, key, number };
        let _ = doc_root.watcher.set(common.watch(&doc_root.root, Arc::new(changes))?);
        Ok(doc_root)
    }
}
