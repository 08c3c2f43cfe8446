//! The index of a URL's responses that vary.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afpa_cache::ObjectId;

/// The fields by which the responses of a URL vary, and which of them there are.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) names: Arc<[Box<str>]>,
    /// The oldest first; some may be gone.
    variants: Mutex<VecDeque<Known>>,
}

/// A response that is listed. Its key is left out: clients choose keys, and one would stay when the response has gone.
#[derive(Debug)]
struct Known {
    hash: u64,
    id: ObjectId,
}

impl Index {
    pub(crate) fn new(names: Arc<[Box<str>]>) -> Self {
        Self { names, variants: Mutex::default() }
    }

    /// Bytes that it points at, when `most` variants are known. The queue grows by doubling.
    pub(crate) fn bytes(names: &[Box<str>], most: usize) -> usize {
        let names: usize = names.iter().map(|name| name.len() + 2 * size_of::<Box<str>>()).sum();
        names + 2 * most.saturating_add(1) * size_of::<Known>()
    }

    /// Notes a response that was listed, with the hash of its key. Returns the one that has to go because there are more than
    /// `most`.
    pub(crate) fn note(&self, hash: u64, id: ObjectId, most: usize) -> Option<ObjectId> {
        let mut variants = self.variants();
        if let Some(known) = variants.iter_mut().find(|known| known.hash == hash) {
            known.id = id;
            return None;
        }
        variants.push_back(Known { hash, id });
        let oldest = if variants.len() > most { variants.pop_front() } else { None };
        oldest.map(|known| known.id)
    }

    fn variants(&self) -> MutexGuard<'_, VecDeque<Known>> {
        self.variants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
