//! The access log, off the hot path.
//!
//! ```text
//! worker: record() packs into a buffer of its own ──full──> log thread: unpack, format, write
//!            ^                                                    │
//!            └────────────── the same buffers, empty ─────────────┘
//! ```
//!
//! A worker neither formats nor waits nor allocates: it copies bytes, and hands a whole buffer over
//! when it is full or a second has gone. When the writer is behind and no empty buffer has come
//! back, records are dropped and counted. A write that fails (a full disk) costs its lines, which
//! are counted too, and one message; the log goes on by itself when writing works again.

mod chosen;
mod format;
mod output;
mod packed;
mod shared;
mod sink;
mod sinks;
mod writer;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use afpa_config::{AccessTarget, Log, LogField};

pub use packed::{Unpacked, UnpackedExchange, UnpackedSpan, UnpackedTls, unpack};
pub use shared::Counts;
use sink::BUFFER_SIZE;
pub use sink::{Sink, Takes};
pub use sinks::{Recorder, Sinks};
pub use writer::Message;

use format::Formatter;
use output::Output;
use shared::Orders;
use writer::Writer;

/// The handle of the log thread. Dropping it writes what has been handed over, and ends the thread.
/// The default has no thread, as with the target `off`.
#[derive(Debug, Default)]
pub struct AccessLog {
    thread: Option<Thread>,
    counts: Arc<Counts>,
}

/// How long the end of a log waits for its last lines. A disk or a reader may never take them.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct Thread {
    orders: Arc<Orders>,
    messages: SyncSender<Message>,
    join: JoinHandle<()>,
}

impl AccessLog {
    /// Opens the log and starts its thread; there is one [`Sink`] for each of `workers`.
    ///
    /// With the target `off` there is no thread, and the sinks want no records. Call it after
    /// privileges were dropped: a file that opens then opens again at [`reopen`](Self::reopen).
    ///
    /// # Errors
    /// When the file cannot be opened or the thread cannot be started.
    pub fn start(settings: &Log, workers: usize) -> anyhow::Result<(Self, Vec<Sink>)> {
        let counts = Arc::new(Counts::default());
        let output = match &settings.access {
            AccessTarget::Off => {
                let sinks = (0..workers).map(|_| Sink::off()).collect();
                return Ok((AccessLog { thread: None, counts }, sinks));
            }
            AccessTarget::Standard => Output::standard(),
            AccessTarget::File(path) => Output::file(path).with_context(|| {
                format!(
                    "cannot open the access log {} (its directory must be writable)",
                    path.display()
                )
            })?,
        };
        let buffers = (settings.access_queue / BUFFER_SIZE).max(2);
        // Room for every buffer there is, so that handing one over never fails; and for a wake-up.
        let (messages, inbox) = sync_channel(workers * buffers + 1);
        let names = settings.access_fields.iter().filter_map(|field| match field {
            LogField::Own(_) => None,
            LogField::Request(name) => Some(name.clone()),
        });
        let takes = Takes::All(names.collect());
        let (sinks, homes) = (0..workers)
            .map(|worker| {
                let place = (worker, buffers);
                Sink::new(takes.clone(), place, messages.clone(), Arc::clone(&counts))
            })
            .unzip();
        let orders = Arc::new(Orders::default());
        let writer = Writer::new(
            inbox,
            homes,
            output,
            Formatter::new(settings.access_format, settings.access_fields.clone()),
            Arc::clone(&counts),
            Arc::clone(&orders),
        );
        let join = std::thread::Builder::new()
            .name("afpa-access-log".to_owned())
            .spawn(move || writer.run())?;
        let thread = Some(Thread { orders, messages, join });
        Ok((AccessLog { thread, counts }, sinks))
    }

    /// Opens the file again under its name, after it was moved (SIGUSR1). Does not wait.
    pub fn reopen(&self) {
        if let Some(thread) = &self.thread {
            thread.orders.reopen.store(true, Ordering::Release);
            thread.wake();
        }
    }

    /// Lines written.
    pub fn written(&self) -> u64 {
        self.counts.written.load(Ordering::Relaxed)
    }

    /// Lines that were not written: the queue was full, or writing failed.
    pub fn dropped(&self) -> u64 {
        self.counts.overrun.load(Ordering::Relaxed) + self.counts.failed.load(Ordering::Relaxed)
    }
}

impl Thread {
    /// A full queue needs no wake-up: the thread is at work, and looks at its orders as it goes on.
    fn wake(&self) {
        let _ = self.messages.try_send(Message::Wake);
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.orders.stop.store(true, Ordering::Release);
            thread.wake();
            let deadline = Instant::now() + PATIENCE;
            while !thread.join.is_finished() {
                if Instant::now() >= deadline {
                    return tracing::warn!("the access log takes no lines: its last ones are lost");
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            // If the log thread panicked, the panic has been printed already.
            let _ = thread.join.join();
        }
    }
}
