//! The log thread: packed records in, lines out.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::{Duration, Instant};

use super::format::Formatter;
use super::output::Output;
use super::packed::unpack;
use super::shared::{Counts, Orders};

/// Bytes that are gathered for one write, if so many are there at once.
const WRITE_SIZE: usize = 256 * 1024;

/// The shortest time between two warnings that the log is behind.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(10);

/// A message to the log thread.
#[derive(Debug)]
pub enum Message {
    /// Records of a worker.
    Batch {
        /// Whose sink.
        worker: usize,
        /// Packed records.
        buffer: Vec<u8>,
    },
    /// There are orders.
    Wake,
}

pub(super) struct Writer {
    inbox: Receiver<Message>,
    /// Where each worker gets its buffers back.
    homes: Vec<SyncSender<Vec<u8>>>,
    output: Output,
    formatter: Formatter,
    lines: Vec<u8>,
    counts: Arc<Counts>,
    orders: Arc<Orders>,
    complaints: Complaints,
}

impl Writer {
    pub(super) fn new(
        inbox: Receiver<Message>,
        homes: Vec<SyncSender<Vec<u8>>>,
        output: Output,
        formatter: Formatter,
        counts: Arc<Counts>,
        orders: Arc<Orders>,
    ) -> Self {
        Writer {
            inbox,
            homes,
            output,
            formatter,
            lines: Vec::with_capacity(2 * WRITE_SIZE),
            counts,
            orders,
            complaints: Complaints::default(),
        }
    }

    /// Works until the order to stop has come and nothing is left to write.
    pub(super) fn run(mut self) {
        while let Ok(message) = self.inbox.recv() {
            self.take(message);
            self.gather();
            if self.orders.reopen.swap(false, Ordering::Acquire) {
                self.output.reopen();
            }
            self.write();
            self.complaints.look_at(self.counts.overrun.load(Ordering::Relaxed));
            if self.orders.stop.load(Ordering::Acquire) {
                return self.finish();
            }
        }
    }

    fn finish(mut self) {
        while let Ok(message) = self.inbox.try_recv() {
            self.take(message);
            self.gather();
            self.write();
        }
    }

    /// Adds the messages that are waiting to the same write.
    fn gather(&mut self) {
        while self.lines.len() < WRITE_SIZE {
            let Ok(message) = self.inbox.try_recv() else { return };
            self.take(message);
        }
    }

    fn take(&mut self, message: Message) {
        let Message::Batch { worker, mut buffer } = message else { return };
        let mut bytes = buffer.as_slice();
        while let Some(record) = unpack(&mut bytes) {
            self.formatter.line(&record, &mut self.lines);
        }
        buffer.clear();
        if let Some(home) = self.homes.get(worker) {
            // Fails when the worker has ended: its buffer ends too.
            let _ = home.try_send(buffer);
        }
    }

    fn write(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        let lines = self.output.write(&self.lines);
        self.counts.written.fetch_add(lines.written, Ordering::Relaxed);
        self.counts.failed.fetch_add(lines.lost, Ordering::Relaxed);
        self.lines.clear();
    }
}

/// Warns that workers dropped records, at a limited rate.
#[derive(Default)]
struct Complaints {
    told: u64,
    last: Option<Instant>,
}

impl Complaints {
    fn look_at(&mut self, overrun: u64) {
        let quiet = self.last.is_some_and(|last| last.elapsed() < COMPLAINT_INTERVAL);
        if overrun > self.told && !quiet {
            let lines = overrun - self.told;
            tracing::warn!(
                lines,
                "access log is behind: lines were dropped; is its disk too slow?"
            );
            self.told = overrun;
            self.last = Some(Instant::now());
        }
    }
}
