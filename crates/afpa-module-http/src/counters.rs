//! The counters of the HTTP module, one set for each core.

use std::sync::{Arc, Mutex, PoisonError};

use afpa_framework::Counter;
use afpa_http::Status;

use crate::scope_stats::ScopeTable;

/// Counters of one core. No line of them is another core's as well; processors fetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub struct HttpCounters {
    /// Requests answered from the core's view of the cache.
    pub hits: Counter,
    /// Requests that a stored answer of a server answered at once.
    pub shared_hits: Counter,
    /// Content bytes of stored answers.
    pub shared_bytes: Counter,
    /// Requests that went to a helper thread.
    pub misses: Counter,
    /// Requests that went to servers.
    pub remote: Counter,
    /// Answers of servers that were compressed as they passed.
    pub coded: Counter,
    /// Answers of servers that were not, because too many others were being compressed.
    pub uncoded: Counter,
    /// Content bytes of answers, without heads.
    pub content_bytes: Counter,
    by_status: Box<[Counter]>,
    scopes: Mutex<Arc<ScopeTable>>,
}

/// Status codes lie between 100 and 599 (RFC 9110 section 15).
const LOWEST: u16 = 100;
const CODES: usize = 500;

impl Default for HttpCounters {
    fn default() -> Self {
        Self {
            hits: Counter::default(),
            shared_hits: Counter::default(),
            shared_bytes: Counter::default(),
            misses: Counter::default(),
            remote: Counter::default(),
            coded: Counter::default(),
            uncoded: Counter::default(),
            content_bytes: Counter::default(),
            by_status: (0..CODES).map(|_| Counter::default()).collect(),
            scopes: Mutex::default(),
        }
    }
}

impl HttpCounters {
    pub(crate) fn answered(&self, status: Status, content_bytes: u64) {
        self.answered_code(status.code(), content_bytes);
    }

    /// As `answered`, with a status that a server chose.
    pub(crate) fn answered_code(&self, status: u16, content_bytes: u64) {
        let index = usize::from(status.saturating_sub(LOWEST));
        if let Some(counter) = self.by_status.get(index) {
            counter.add(1);
        }
        self.content_bytes.add(content_bytes);
    }

    /// The counters of sites and request sets.
    pub fn scopes(&self) -> Arc<ScopeTable> {
        Arc::clone(&self.scopes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Called at the start and at a reload, never on a hit.
    pub(crate) fn set_scopes(&self, scopes: &Arc<ScopeTable>) {
        *self.scopes.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(scopes);
    }

    /// Answers by status code, those that occurred.
    pub fn by_status(&self) -> impl Iterator<Item = (u16, u64)> {
        (LOWEST..)
            .zip(self.by_status.iter())
            .map(|(code, count)| (code, count.get()))
            .filter(|(_, count)| *count > 0)
    }

    /// Answers in all.
    pub fn responses(&self) -> u64 {
        self.by_status.iter().map(Counter::get).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_by_status() {
        let counters = HttpCounters::default();
        counters.answered(Status::OK, 10);
        counters.answered(Status::OK, 5);
        counters.answered(Status::NOT_FOUND, 0);
        assert_eq!(counters.by_status().collect::<Vec<_>>(), [(200, 2), (404, 1)]);
        assert_eq!((counters.responses(), counters.content_bytes.get()), (3, 15));
    }
}
