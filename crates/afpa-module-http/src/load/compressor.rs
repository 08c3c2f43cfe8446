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

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};

use afpa_cache::Object;

use super::build::{self, BuildError};
use super::compress::{Encode, compress};
use crate::doc_root::DocRoot;
use crate::header::HttpHeader;

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

/// An object whose codings are to be made. A job keeps nothing alive: the memory of an object that is dropped
/// becomes free even while its job waits.
struct CompressionJob {
    doc_root: Weak<DocRoot>,
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
    /// Starts a compressor whose queue holds so many jobs.
    ///
    /// # Errors
    /// When its thread cannot be started.
    pub fn start(queue: usize) -> io::Result<Arc<Compressor>> {
        Self::start_with(queue, Box::new(compress))
    }

    /// As [`Compressor::start`], with another encoder.
    pub(super) fn start_with(queue: usize, encode: Box<Encode>) -> io::Result<Arc<Compressor>> {
        // Without a place to wait in, a job could only be handed over while the thread waits for one.
        let (queue, waiting) = sync_channel(queue.max(1));
        let counts = Arc::new(Counts::default());
        let worker = CompressorThread { queue: waiting, counts: Arc::clone(&counts), encode };
        std::thread::Builder::new().name("afpa-codings".into()).spawn(move || worker.run())?;
        Ok(Arc::new(Compressor { queue, counts }))
    }

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

    /// Queues an object of `doc_root` for compression. Never waits: if the queue is full, a later request for
    /// the object tries again.
    pub(crate) fn enqueue(&self, doc_root: &Arc<DocRoot>, object: &Arc<Object<HttpHeader>>) {
        let job =
            CompressionJob { doc_root: Arc::downgrade(doc_root), object: Arc::downgrade(object) };
        match self.queue.try_send(job) {
            Ok(()) => add(&self.counts.enqueued, 1),
            Err(_) => {
                add(&self.counts.refused, 1);
                object.header().enqueue_failed();
            }
        }
    }
}

/// The thread.
struct CompressorThread {
    queue: Receiver<CompressionJob>,
    counts: Arc<Counts>,
    encode: Box<Encode>,
}

/// The outcome of a job.
enum CompressionResult {
    /// So many codings were made.
    Done(usize),
    /// The object was dropped.
    Overtaken,
    /// The object stays as it is.
    Failed,
}

/// The lowest priority: the thread runs only when no other thread wants the core.
const NICE: i32 = 19;

impl CompressorThread {
    fn run(self) {
        if let Err(error) = rustix::process::nice(NICE) {
            tracing::warn!(
                %error,
                "the priority of a thread cannot be lowered: codings are made at that of requests"
            );
        }
        while let Ok(job) = self.queue.recv() {
            // If an encoder panics, one object goes without codings; the thread goes on.
            let outcome = catch_unwind(AssertUnwindSafe(|| self.serve(&job)));
            match outcome.unwrap_or(CompressionResult::Failed) {
                CompressionResult::Done(codings) => {
                    add(&self.counts.codings, codings as u64);
                    add(&self.counts.done, 1);
                }
                CompressionResult::Overtaken => add(&self.counts.overtaken, 1),
                CompressionResult::Failed => add(&self.counts.failed, 1),
            }
        }
    }

    fn serve(&self, job: &CompressionJob) -> CompressionResult {
        let Some((doc_root, object)) = job.doc_root.upgrade().zip(job.object.upgrade()) else {
            return CompressionResult::Overtaken;
        };
        let content = match build::with_codings(&doc_root, &object, &*self.encode) {
            Ok(content) => content,
            Err(BuildError::Changed) => return CompressionResult::Overtaken,
            Err(BuildError::NoRoom | BuildError::Refused(_)) => return CompressionResult::Failed,
            Err(BuildError::Io(error)) => {
                let path = object.key().path.escape_ascii();
                tracing::warn!(%path, %error, "a file cannot be compressed");
                return CompressionResult::Failed;
            }
        };
        let made = content.payloads.len() - object.payloads().len();
        match doc_root.cache().replace(&object, (content.header, content.bytes), content.payloads) {
            Ok(_) => CompressionResult::Done(made),
            Err(_changed) => CompressionResult::Overtaken,
        }
    }
}

fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

#[cfg(test)]
mod tests;
