//! Changes that the watcher reports, and the answers that they unpin.

use std::sync::Arc;
use std::time::{Duration, Instant};

use afpa_cache::watch::ChangeSink;

use super::Filler;
use crate::ledger::{Ledger, Path};

/// The watcher's news.
pub struct Sink(pub Arc<Filler>);

impl ChangeSink for Sink {
    fn changed(&self, path: &[u8]) {
        self.0.spoil(path, Ledger::changed);
    }

    fn changed_tree(&self, path: &[u8]) {
        self.0.spoil(path, Ledger::changed_tree);
        let mut state = self.0.lock();
        if !state.walks.iter().any(|walk| walk == path) {
            state.walks.push(path.to_vec());
        }
        self.0.wake.notify_all();
    }

    fn written(&self, path: &[u8]) {
        let mut state = self.0.lock();
        state.ledger.written(path, Instant::now());
        self.0.wake.notify_all();
    }

    fn overflow(&self, _: u64) {
        self.0.everything_changed();
    }
}

impl Filler {
    fn spoil(&self, path: &[u8], how: impl Fn(&mut Ledger, &[u8], Instant) -> Vec<Path>) {
        let now = Instant::now();
        let mut state = self.lock();
        let gone = how(&mut state.ledger, path, now);
        self.unpin(&mut state, &gone);
        if let Some(folder) = governed(path) {
            let gone = state.ledger.changed_tree(folder, now);
            self.unpin(&mut state, &gone);
        }
        if self.scope.covers(path) && !path.ends_with(b"/") {
            state.ledger.add(path, now + Duration::from_millis(20));
        }
        self.wake.notify_all();
    }
}

/// The folder whose answers depend on a file: Apache reads `.htaccess`, and the `.htpasswd` that it names.
fn governed(path: &[u8]) -> Option<&[u8]> {
    let slash = path.iter().rposition(|byte| *byte == b'/')?;
    let (folder, name) = path.split_at(slash + 1);
    name.starts_with(b".ht").then_some(folder)
}
