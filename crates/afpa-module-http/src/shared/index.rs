//! What is known of the responses of a URL that vary.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afpa_cache::Key;

/// The fields by which the responses of a URL vary, and which of them there are.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) names: Arc<[Box<str>]>,
    /// The oldest first; some may be gone.
    variants: Mutex<VecDeque<Key>>,
}

impl Index {
    pub(super) fn new(names: Arc<[Box<str>]>) -> Self {
        Self { names, variants: Mutex::default() }
    }

    /// Notes a response that was listed. Returns the one that has to go because there are more than `most`.
    pub(crate) fn note(&self, key: Key, most: usize) -> Option<Key> {
        let mut variants = self.variants();
        if variants.contains(&key) {
            return None;
        }
        variants.push_back(key);
        if variants.len() > most { variants.pop_front() } else { None }
    }

    fn variants(&self) -> MutexGuard<'_, VecDeque<Key>> {
        self.variants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
