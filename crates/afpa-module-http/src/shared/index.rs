//! What is known of the responses of a URL that vary.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afpa_cache::Key;
use afpa_http::Request;
use afpa_http::caching::vary;

use super::stored::Draft;

/// The fields by which the responses of a URL vary, and which of them there are.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) names: Arc<[Box<str>]>,
    /// The oldest first; some may be gone.
    variants: Mutex<VecDeque<Known>>,
}

/// One of them.
#[derive(Debug)]
struct Known {
    key: Key,
    /// Its Content-Language, if it has one.
    language: Option<Box<[u8]>>,
}

impl Index {
    pub(super) fn new(names: Arc<[Box<str>]>) -> Self {
        Self { names, variants: Mutex::default() }
    }

    /// Notes a response that was listed. Returns the one that has to go because there are more than `most`.
    pub(crate) fn note(&self, key: Key, draft: &Draft, most: usize) -> Option<Key> {
        let mut variants = self.variants();
        if variants.iter().any(|known| known.key == key) {
            return None;
        }
        variants.push_back(Known { key, language: draft.language().map(Box::from) });
        let oldest = if variants.len() > most { variants.pop_front() } else { None };
        oldest.map(|known| known.key)
    }

    /// The key of the response in the language that a request likes most, if the language is all that decides.
    pub(crate) fn liked(&self, request: &Request<'_, '_>) -> Option<Key> {
        let [only] = &*self.names else { return None };
        if **only != *"accept-language" {
            return None;
        }
        let lines = || {
            let lines = request.fields().filter(|(name, _)| name.eq_ignore_ascii_case(only));
            lines.map(|(_, value)| value)
        };
        let variants = self.variants();
        let liked = variants.iter().find(|known| {
            known.language.as_deref().is_some_and(|language| vary::likes_most(lines(), language))
        });
        liked.map(|known| known.key.clone())
    }

    fn variants(&self) -> MutexGuard<'_, VecDeque<Known>> {
        self.variants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
