//! Acts on changes that the watcher reports: objects are dropped, and written files are loaded before they
//! are asked for ("content is pushed to the cache simply by writing it", IBM paper, section 2).

use std::sync::{Arc, Weak};

use afpa_cache::watch::ChangeSink;
use afpa_cache::{Fill, Keep, Key, Millis};
use afpa_framework::steady_ms;
use afpa_http::Coding;

use crate::common::Common;
use crate::doc_root::DocRoot;
use crate::known_scripts::ChangeNumber;
use crate::load;

/// Passes the changes below one document root on to the cache.
pub(crate) struct Changes {
    pub(crate) common: Arc<Common>,
    pub(crate) root: Weak<DocRoot>,
    pub(crate) key: u32,
    /// It changes with each change.
    pub(crate) number: Arc<ChangeNumber>,
}

impl ChangeSink for Changes {
    fn changed(&self, path: &[u8]) {
        self.number.advance();
        self.common.cache().invalidate(self.key, path);
    }

    fn changed_tree(&self, path: &[u8]) {
        self.number.advance();
        self.common.cache().invalidate_tree(self.key, path);
    }

    fn written(&self, path: &[u8]) {
        self.common.push(|| {
            let (root, path) = (Weak::clone(&self.root), Box::<[u8]>::from(path));
            Box::new(move || {
                if let Some(root) = root.upgrade() {
                    push_written(&root, &path);
                }
            })
        });
    }

    fn overflow(&self, loss: u64) {
        self.number.advance();
        self.common.suspect_all(loss);
    }
}

/// Loads the objects that a written file is part of.
fn push_written(doc_root: &DocRoot, path: &[u8]) {
    let now = Millis(steady_ms());
    for key in keys_of(doc_root, path) {
        push(doc_root, &key, now);
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
