//! The thread that makes codings.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use afpa_cache::Cache;

use super::{Compresses, CompressionJob, Compressor, Counts, add};
use crate::doc_root::DocRoot;
use crate::header::HttpHeader;
use crate::load::build;
use crate::load::compress::{Encode, compress};
use crate::load::fault::BuildError;
use crate::settings::DocRootSettings;

impl Compresses for DocRoot {
    fn settings(&self) -> &DocRootSettings {
        self.settings()
    }

    fn cache(&self) -> &Cache<HttpHeader> {
        self.cache()
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
    pub(in crate::load) fn start_with(
        queue: usize,
        encode: Box<Encode>,
    ) -> io::Result<Arc<Compressor>> {
        // Without a place to wait in, a job could only be handed over while the thread waits for one.
        let (queue, waiting) = sync_channel(queue.max(1));
        let counts = Arc::new(Counts::default());
        let worker = CompressorThread { queue: waiting, counts: Arc::clone(&counts), encode };
        std::thread::Builder::new().name("afpa-codings".into()).spawn(move || worker.run())?;
        Ok(Arc::new(Compressor { queue, counts }))
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
        let Some((root, object)) = job.root.upgrade().zip(job.object.upgrade()) else {
            return CompressionResult::Overtaken;
        };
        let content =
            match build::with_codings(root.settings(), root.cache(), &object, &*self.encode) {
                Ok(content) => content,
                Err(BuildError::Changed) => return CompressionResult::Overtaken,
                Err(BuildError::NoRoom | BuildError::Refused(_)) => {
                    return CompressionResult::Failed;
                }
                Err(BuildError::Io(error)) => {
                    let path = object.key().path.escape_ascii();
                    tracing::warn!(%path, %error, "a file cannot be compressed");
                    return CompressionResult::Failed;
                }
            };
        let made = content.payloads.len() - object.payloads().len();
        match root.cache().replace(&object, (content.header, content.bytes), content.payloads) {
            Ok(_) => CompressionResult::Done(made),
            Err(_changed) => CompressionResult::Overtaken,
        }
    }
}
