//! Makes content codings that are not stored, while requests are answered without them: one worker thread
//! compresses at the lowest priority.
//!
//! ```text
//! asked for again ── enqueue ──▶ queue ──▶ worker: encode ──▶ replace the object by one with codings
//!                       └ full: a later request enqueues it      └ dropped meanwhile: discard them
//! ```
//!
//! The codings and the object are of one version: the content is that of the object itself, and only an object
//! that is still listed is replaced. When a file changes, its object is dropped, and the codings are
//! discarded.

mod thread;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Weak};

use afpa_cache::{Cache, Object};

use crate::header::HttpHeader;
use crate::settings::DocRootSettings;

/// Compresses objects for the document roots that share it. Its thread ends when the last of them is gone.
pub struct Compressor {
    queue: SyncSender<CompressionJob>,
    counts: Arc<Counts>,
}

/// The counts of a [`Compressor`], in objects unless it says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompressorStats {
    /// Enqueued and not done.
    pub waiting: u64,
    /// Replaced by an object with the codings that are worth having.
    pub done: u64,
    /// Codings made for these.
    pub codings: u64,
    /// Not enqueued, because the queue was full.
    pub refused: u64,
    /// Dropped before they were done.
    pub overtaken: u64,
    /// Could not be read or encoded.
    pub failed: u64,
}

/// A document root, as far as codings are made for it.
pub(crate) trait Compresses: Send + Sync {
    /// Which codings are wanted.
    fn settings(&self) -> &DocRootSettings;

    /// The cache of its objects.
    fn cache(&self) -> &Cache<HttpHeader>;
}

/// An object whose codings are to be made. A job keeps nothing alive: the memory of an object that is dropped
/// becomes free even while its job waits.
struct CompressionJob {
    root: Weak<dyn Compresses>,
    object: Weak<Object<HttpHeader>>,
}

#[derive(Default)]
struct Counts {
    enqueued: AtomicU64,
    done: AtomicU64,
    codings: AtomicU64,
    refused: AtomicU64,
    overtaken: AtomicU64,
    failed: AtomicU64,
}

/// It has no thread, and compresses nothing.
impl Default for Compressor {
    fn default() -> Self {
        Self { queue: sync_channel(1).0, counts: Arc::default() }
    }
}

impl Compressor {
    /// The counts so far.
    pub fn stats(&self) -> CompressorStats {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { enqueued, done, codings, refused, overtaken, failed } = &*self.counts;
        let (done, overtaken, failed) = (get(done), get(overtaken), get(failed));
        CompressorStats {
            waiting: get(enqueued).saturating_sub(done + overtaken + failed),
            done,
            codings: get(codings),
            refused: get(refused),
            overtaken,
            failed,
        }
    }

    /// Queues an object of a document root for compression. Never waits: if the queue is full, a later request for
    /// the object tries again.
    pub(crate) fn enqueue(&self, root: Weak<dyn Compresses>, object: &Arc<Object<HttpHeader>>) {
        let job = CompressionJob { root, object: Arc::downgrade(object) };
        match self.queue.try_send(job) {
            Ok(()) => add(&self.counts.enqueued, 1),
            Err(_) => {
                add(&self.counts.refused, 1);
                object.header().enqueue_failed();
            }
        }
    }
}

fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

#[cfg(test)]
mod tests;
