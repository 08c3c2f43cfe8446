//! Content codings that are not stored: made behind the answers, by one helper thread that yields to
//! everything else.
//!
//! ```text
//! asked for again ── order ──▶ queue ──▶ helper: encode ──▶ replace: the object that has them
//!                      └ full: refused, and ordered by a later request     └ dropped meanwhile: nothing
//! ```
//!
//! What is read, encoded and listed is one version: the content is that of the object itself, and only an
//! object that is still listed is replaced. A file that changes drops its object, and all work for it
//! comes to nothing.

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
pub struct Coder {
    orders: SyncSender<Order>,
    counts: Arc<Counts>,
}

/// What a [`Coder`] has done, in objects unless it says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoderStats {
    /// Ordered and not done.
    pub waiting: u64,
    /// Replaced by one that has what is worth having.
    pub done: u64,
    /// Codings made for these.
    pub codings: u64,
    /// Orders that found the queue full.
    pub refused: u64,
    /// Dropped before they were done.
    pub overtaken: u64,
    /// Could not be read or encoded.
    pub failed: u64,
}

/// An object whose codings are to be made. It keeps nothing alive: the memory of an object that is dropped
/// comes free while its order waits.
struct Order {
    doc_root: Weak<DocRoot>,
    object: Weak<Object<HttpHeader>>,
}

#[derive(Default)]
struct Counts {
    ordered: AtomicU64,
    done: AtomicU64,
    codings: AtomicU64,
    refused: AtomicU64,
    overtaken: AtomicU64,
    failed: AtomicU64,
}

impl Coder {
    /// A coder for which so many orders may wait.
    ///
    /// # Errors
    /// When its thread cannot be started.
    pub fn start(queue: usize) -> io::Result<Arc<Coder>> {
        Self::start_with(queue, Box::new(compress))
    }

    /// Likewise, with another encoder.
    pub(super) fn start_with(queue: usize, encode: Box<Encode>) -> io::Result<Arc<Coder>> {
        // Without a place to wait in, an order would have to meet the thread waiting.
        let (orders, waiting) = sync_channel(queue.max(1));
        let counts = Arc::new(Counts::default());
        let helper = Helper { orders: waiting, counts: Arc::clone(&counts), encode };
        std::thread::Builder::new().name("afpa-codings".into()).spawn(move || helper.run())?;
        Ok(Arc::new(Coder { orders, counts }))
    }

    /// What it has done so far.
    pub fn stats(&self) -> CoderStats {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { ordered, done, codings, refused, overtaken, failed } = &*self.counts;
        let (done, overtaken, failed) = (get(done), get(overtaken), get(failed));
        CoderStats {
            waiting: get(ordered).saturating_sub(done + overtaken + failed),
            done,
            codings: get(codings),
            refused: get(refused),
            overtaken,
            failed,
        }
    }

    /// Queues an object of `doc_root` for compression. Never waits: if the queue is full, a later request for
    /// the object tries again.
    pub(crate) fn order(&self, doc_root: &Arc<DocRoot>, object: &Arc<Object<HttpHeader>>) {
        let order = Order { doc_root: Arc::downgrade(doc_root), object: Arc::downgrade(object) };
        match self.orders.try_send(order) {
            Ok(()) => add(&self.counts.ordered, 1),
            Err(_) => {
                add(&self.counts.refused, 1);
                object.header().order_refused();
            }
        }
    }
}

/// The thread.
struct Helper {
    orders: Receiver<Order>,
    counts: Arc<Counts>,
    encode: Box<Encode>,
}

/// What became of an order.
enum Outcome {
    /// So many codings were made.
    Done(usize),
    /// The object was dropped.
    Overtaken,
    /// It stays as it is.
    Failed,
}

/// The nicest a thread can be: what is left when nobody else wants the core.
const NICE: i32 = 19;

impl Helper {
    fn run(self) {
        if let Err(error) = rustix::process::nice(NICE) {
            tracing::warn!(%error, "codings are made at the priority of requests");
        }
        while let Ok(order) = self.orders.recv() {
            // An encoder's bug costs one object its codings, not all that follow.
            let outcome = catch_unwind(AssertUnwindSafe(|| self.serve(&order)));
            match outcome.unwrap_or(Outcome::Failed) {
                Outcome::Done(codings) => {
                    add(&self.counts.codings, codings as u64);
                    add(&self.counts.done, 1);
                }
                Outcome::Overtaken => add(&self.counts.overtaken, 1),
                Outcome::Failed => add(&self.counts.failed, 1),
            }
        }
    }

    fn serve(&self, order: &Order) -> Outcome {
        let Some((doc_root, object)) = order.doc_root.upgrade().zip(order.object.upgrade()) else {
            return Outcome::Overtaken;
        };
        let content = match build::with_codings(&doc_root, &object, &*self.encode) {
            Ok(content) => content,
            Err(BuildError::Changed) => return Outcome::Overtaken,
            Err(BuildError::Io(error)) => {
                let path = object.key().path.escape_ascii();
                tracing::warn!(%path, %error, "a file cannot be compressed");
                return Outcome::Failed;
            }
        };
        let made = content.payloads.len() - object.payloads().len();
        match doc_root.cache().replace(&object, content.header, content.payloads) {
            Ok(_) => Outcome::Done(made),
            Err(_changed) => Outcome::Overtaken,
        }
    }
}

fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

#[cfg(test)]
mod tests;
