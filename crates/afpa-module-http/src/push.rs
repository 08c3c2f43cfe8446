//! Acts on changes that the watcher reports: objects are dropped, and written files are loaded before they
//! are asked for ("content is pushed to the cache simply by writing it", IBM paper, section 2).

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};

use afpa_cache::watch::ChangeSink;
use afpa_cache::{Cache, Fill, Keep, Key, Millis};
use afpa_framework::steady_ms;
use afpa_http::Coding;

use crate::doc_root::DocRoot;
use crate::header::HttpHeader;
use crate::load;

/// Passes changes on to the cache.
pub(crate) struct Changes {
    cache: Arc<Cache<HttpHeader>>,
    key: u32,
    written: Option<SyncSender<Box<[u8]>>>,
}

/// How many files may wait to be pushed. Further files are loaded when they are asked for.
const WAITING: usize = 4096;

impl Changes {
    /// A sink, and the queue of written files for [`Pusher`].
    pub(crate) fn new(
        cache: Arc<Cache<HttpHeader>>,
        key: u32,
        push: bool,
    ) -> (Self, Receiver<Box<[u8]>>) {
        let (sender, receiver) = sync_channel(WAITING);
        (Self { cache, key, written: push.then_some(sender) }, receiver)
    }
}

impl ChangeSink for Changes {
    fn changed(&self, path: &[u8]) {
        self.cache.invalidate(self.key, path);
    }

    fn changed_tree(&self, path: &[u8]) {
        self.cache.invalidate_tree(self.key, path);
    }

    fn written(&self, path: &[u8]) {
        if let Some(written) = &self.written {
            let _ = written.try_send(path.into());
        }
    }

    fn overflow(&self) {
        tracing::warn!(
            "changes came faster than they could be read: every object is checked again"
        );
        self.cache.suspect_all();
    }
}

/// The thread that loads written files. It ends when the document root does.
pub(crate) struct Pusher {
    pub(crate) doc_root: Weak<DocRoot>,
    pub(crate) written: Receiver<Box<[u8]>>,
}

impl Pusher {
    pub(crate) fn run(self) {
        while let Ok(path) = self.written.recv() {
            let Some(doc_root) = self.doc_root.upgrade() else { return };
            let now = Millis(steady_ms());
            for key in keys_of(&doc_root, &path) {
                push(&doc_root, &key, now);
            }
        }
    }
}

/// The keys whose objects a written file is part of: its own, that of the file it is a stored
/// coding of, and that of the directory it is an index file of.
fn keys_of(doc_root: &DocRoot, path: &[u8]) -> Vec<Key> {
    let suffix = Coding::ALL
        .iter()
        .map(|coding| coding.file_suffix().as_bytes())
        .find(|suffix| !suffix.is_empty() && path.ends_with(suffix));
    let file = path.get(..path.len() - suffix.map_or(0, <[u8]>::len)).unwrap_or(path);
    let mut keys = vec![Key::new(doc_root.key(), file)];
    let (directory, name) =
        file.split_at(file.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1));
    if doc_root.settings().index.iter().any(|index| index.as_bytes() == name) {
        keys.push(Key::new(doc_root.key(), directory));
    }
    keys
}

/// Loads an object, if it is small and there is room: a push ejects nothing that was asked for.
fn push(doc_root: &DocRoot, key: &Key, now: Millis) {
    if doc_root.settings().hint(&key.path).0.keep == Keep::Never {
        return;
    }
    let usage = doc_root.cache().arena().usage();
    let spare = usage.limit.saturating_sub(usage.used);
    if spare < usage.limit / 10 || spare < doc_root.cache().settings().pin_threshold * 2 {
        return;
    }
    if let Fill::Lead(ticket) = doc_root.cache().begin(key.clone(), now) {
        // If another write overtook the load, that write is in the queue, too.
        let _ = load::fill(doc_root, ticket);
    }
}
