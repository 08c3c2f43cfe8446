//! The worker's end of the access log.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use afpa_module_http::{AccessRecord, AccessSink};

use super::packed::{LARGEST, pack};
use super::shared::Counts;
use super::writer::Message;

/// Bytes of a buffer: some hundred records, so that the cost of waking the log thread for each is small.
pub(super) const BUFFER_SIZE: usize = 64 * 1024;

const _: () = assert!(LARGEST <= BUFFER_SIZE, "every record fits in an empty buffer");

/// Takes the records of one worker. Dropping it hands its buffer to the log thread.
#[derive(Debug)]
pub struct Sink(Option<Open>);

/// The records that a sink takes.
#[derive(Clone, Debug)]
pub enum Takes {
    /// All, with these fields of requests.
    All(Arc<[Box<str>]>),
    /// Records with spans.
    Spans,
}

#[derive(Debug)]
struct Open {
    takes: Takes,
    worker: usize,
    buffer: Vec<u8>,
    /// Buffers that the log thread has emptied.
    free: Receiver<Vec<u8>>,
    full: SyncSender<Message>,
    counts: Arc<Counts>,
}

impl Sink {
    /// A sink that wants no records.
    pub fn off() -> Self {
        Sink(None)
    }

    /// A sink with `buffers` of its own, and the way back for them.
    pub fn new(
        takes: Takes,
        (worker, buffers): (usize, usize),
        full: SyncSender<Message>,
        counts: Arc<Counts>,
    ) -> (Self, SyncSender<Vec<u8>>) {
        let (home, free) = sync_channel(buffers);
        for _ in 1..buffers {
            // There is room for all of them, and `free` is alive.
            let _ = home.try_send(Vec::with_capacity(BUFFER_SIZE));
        }
        let buffer = Vec::with_capacity(BUFFER_SIZE);
        (Sink(Some(Open { takes, worker, buffer, free, full, counts })), home)
    }
}

impl AccessSink for Sink {
    fn enabled(&self) -> bool {
        self.0.as_ref().is_some_and(|open| matches!(open.takes, Takes::All(_)))
    }

    fn takes_spans(&self) -> bool {
        self.0.as_ref().is_some_and(|open| matches!(open.takes, Takes::Spans))
    }

    fn chosen(&self) -> &[Box<str>] {
        match self.0.as_ref().map(|open| &open.takes) {
            Some(Takes::All(names)) => names,
            _ => &[],
        }
    }

    fn record(&mut self, record: &AccessRecord<'_>) {
        let Some(open) = &mut self.0 else { return };
        let (with_span, lost) = match (&open.takes, &record.span) {
            (Takes::All(_), _) => (false, 1),
            (Takes::Spans, None) => return,
            (Takes::Spans, Some(span)) => (true, 1 + u64::from(span.exchange.is_some())),
        };
        let taken = pack(record, with_span, &mut open.buffer)
            || open.hand_over() && pack(record, with_span, &mut open.buffer);
        if !taken {
            open.counts.overrun.fetch_add(lost, Ordering::Relaxed);
        }
    }

    fn flush(&mut self) {
        if let Some(open) = &mut self.0 {
            open.hand_over();
        }
    }
}

impl Open {
    /// Gives the buffer away if there is an empty one to go on with: a buffer that stays can still
    /// be filled.
    fn hand_over(&mut self) -> bool {
        if self.buffer.is_empty() {
            return true;
        }
        let Ok(empty) = self.free.try_recv() else { return false };
        let buffer = std::mem::replace(&mut self.buffer, empty);
        // Fails only when the log has ended; then the records are not needed any more.
        let _ = self.full.try_send(Message::Batch { worker: self.worker, buffer });
        true
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        if !buffer.is_empty() {
            let _ = self.full.try_send(Message::Batch { worker: self.worker, buffer });
        }
    }
}
