//! The export of spans, off the hot path.
//!
//! ```text
//! worker: record() packs into a buffer of its own ──full──> export thread: unpack, gather, send to the collector
//!            ^                                                    │
//!            └────────────── the same buffers, empty ─────────────┘
//! ```
//!
//! The buffers are the queue, and there are as many as the worker has at the start. While the collector is slow or away,
//! none comes back, and spans are dropped and counted. The export thread has sockets, and opens no file.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use afpa_config::{Config, Tracing};
use afpa_otlp::{Batch, Exchange, Loss, Sender, Served, Settings, Span, put_spans};
use afpa_workers::access_log::{Counts, Message, Sink, Takes, Unpacked, unpack};
use anyhow::Context as _;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::confine::Confinement;

/// Spans of a batch, as far as the last request of it allows.
const BATCH: usize = 512;

/// How long spans are gathered for a batch.
const GATHER: Duration = Duration::from_secs(2);

/// Buffers of a worker. Each holds some hundred requests.
const BUFFERS: usize = 8;

/// How long the last spans may take at the end, and how long the end waits for them.
const LAST: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(5);

/// The shortest time between two warnings that spans are lost.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(60);

/// The handle of the export. Dropping it sends what there is, within some seconds. The default has no thread.
#[derive(Debug, Default)]
pub(crate) struct SpanExport {
    thread: Option<Thread>,
    counts: Arc<Counts>,
}

#[derive(Debug)]
struct Thread {
    orders: Arc<Orders>,
    messages: SyncSender<Message>,
    join: JoinHandle<()>,
}

/// The order to stop: it interrupts a batch that is being sent.
#[derive(Debug, Default)]
struct Orders {
    stop: AtomicBool,
    stopped: Notify,
}

impl SpanExport {
    /// Starts the thread; there is one [`Sink`] for each worker. Without a collector there is neither. The counts are those of
    /// the export `before`, whose last spans they count as well.
    ///
    /// # Errors
    /// When the system has no thread left, or trusts no authority that a collector by TLS could have.
    pub(crate) fn start(
        config: &Config,
        confinement: &Confinement,
        before: Option<&Self>,
    ) -> anyhow::Result<(Self, Vec<Sink>)> {
        let counts = before.map(|before| Arc::clone(&before.counts)).unwrap_or_default();
        let Some(settings) = settings(config) else {
            return Ok((Self { thread: None, counts }, Vec::new()));
        };
        let sender = Sender::new(&settings)
            .with_context(|| format!("cannot export spans to {}", settings.endpoint))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        // Room for every buffer there is, so that handing one over never fails; and for a wake-up.
        let (messages, inbox) = sync_channel(config.workers * BUFFERS + 1);
        let (sinks, homes) = (0..config.workers)
            .map(|worker| {
                let place = (worker, BUFFERS);
                Sink::new(Takes::Spans, place, messages.clone(), Arc::clone(&counts))
            })
            .unzip();
        let orders = Arc::<Orders>::default();
        let exporter = Exporter {
            inbox,
            homes,
            sender,
            endpoint: settings.endpoint,
            runtime,
            spans: Vec::new(),
            since: None,
            counts: Arc::clone(&counts),
            orders: Arc::clone(&orders),
            told: None,
        };
        let confinement = confinement.clone();
        let run = move || {
            confinement.confine_worker();
            exporter.run();
        };
        let join = std::thread::Builder::new().name("afpa-otlp".to_owned()).spawn(run)?;
        Ok((Self { thread: Some(Thread { orders, messages, join }), counts }, sinks))
    }

    /// Ends it on a thread of its own: it waits for a collector.
    pub(crate) fn end_aside(self: Arc<Self>) {
        let thread = std::thread::Builder::new().name("afpa-otlp-end".to_owned());
        if self.thread.is_some()
            && let Err(error) = thread.spawn(move || drop(self))
        {
            tracing::warn!(%error, "the last spans of before may be lost");
        }
    }

    /// Spans that the collector has taken.
    pub(crate) fn exported(&self) -> u64 {
        self.counts.written.load(Ordering::Relaxed)
    }

    /// Spans that it has not got, or has refused.
    pub(crate) fn dropped(&self) -> u64 {
        self.counts.overrun.load(Ordering::Relaxed) + self.counts.failed.load(Ordering::Relaxed)
    }
}

fn settings(config: &Config) -> Option<Settings> {
    let Tracing { otlp, service, headers } = &config.tracing;
    Some(Settings {
        endpoint: otlp.clone()?,
        service: service.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        fields: headers.clone(),
        resolver: config.resolver.clone(),
    })
}

impl Drop for SpanExport {
    fn drop(&mut self) {
        let Some(Thread { orders, messages, join }) = self.thread.take() else { return };
        orders.stop.store(true, Ordering::Release);
        orders.stopped.notify_one();
        // A full queue needs no wake-up: the thread looks at its orders as it goes on.
        let _ = messages.try_send(Message::Wake);
        // The last sinks end the inbox.
        drop(messages);
        let deadline = Instant::now() + PATIENCE;
        while !join.is_finished() {
            if Instant::now() >= deadline {
                return tracing::warn!("the collector takes no spans: the last ones are lost");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        // If the thread panicked, the panic has been printed already.
        let _ = join.join();
    }
}

struct Exporter {
    inbox: Receiver<Message>,
    /// Where each worker gets its buffers back.
    homes: Vec<SyncSender<Vec<u8>>>,
    sender: Sender,
    endpoint: String,
    runtime: Runtime,
    spans: Vec<Span>,
    /// When the first of them came.
    since: Option<Instant>,
    counts: Arc<Counts>,
    orders: Arc<Orders>,
    /// When the last warning was given.
    told: Option<Instant>,
}

impl Exporter {
    fn run(mut self) {
        loop {
            let wait = self.since.map_or(Duration::MAX, |since| {
                (since + GATHER).saturating_duration_since(Instant::now())
            });
            match self.inbox.recv_timeout(wait) {
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.finish(),
            }
            if self.is_stopped() {
                return self.finish();
            }
            let is_due = self.since.is_some_and(|since| since.elapsed() >= GATHER);
            if self.spans.len() >= BATCH || is_due {
                let batch = self.batch();
                let (sender, stopped) = (&self.sender, &self.orders.stopped);
                let outcome = self.runtime.block_on(async {
                    tokio::select! {
                        outcome = sender.send(&batch) => Some(outcome),
                        () = stopped.notified() => None,
                    }
                });
                match outcome {
                    Some(outcome) => self.count(&batch, outcome),
                    None => return self.finish_with(batch),
                }
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.orders.stop.load(Ordering::Acquire)
    }

    fn take(&mut self, message: Message) {
        let Message::Batch { worker, mut buffer } = message else { return };
        let mut bytes = buffer.as_slice();
        while let Some(record) = unpack(&mut bytes) {
            if let Some(served) = served(&record) {
                put_spans(&served, &mut self.spans);
            }
        }
        if !self.spans.is_empty() {
            self.since.get_or_insert_with(Instant::now);
        }
        buffer.clear();
        if let Some(home) = self.homes.get(worker) {
            // Fails when the worker has ended: its buffer ends too.
            let _ = home.try_send(buffer);
        }
    }

    fn batch(&mut self) -> Batch {
        self.since = None;
        self.sender.batch(std::mem::take(&mut self.spans))
    }

    fn count(&mut self, batch: &Batch, outcome: Result<u64, Loss>) {
        let all = batch.spans();
        let lost = match outcome {
            Ok(rejected) => rejected.min(all),
            Err(_) => all,
        };
        self.counts.written.fetch_add(all - lost, Ordering::Relaxed);
        self.counts.failed.fetch_add(lost, Ordering::Relaxed);
        let is_quiet = self.told.is_some_and(|told| told.elapsed() < COMPLAINT_INTERVAL);
        if lost > 0 && !is_quiet {
            self.told = Some(Instant::now());
            let (spans, to) = (lost, &self.endpoint);
            match outcome {
                Ok(_) => tracing::warn!(spans, to, "the collector rejects spans: see its log"),
                Err(Loss::Refused(status)) => tracing::warn!(
                    spans,
                    to,
                    status,
                    "the collector refuses spans: are URL and fields of [tracing] right?"
                ),
                Err(Loss::Unreachable) => tracing::warn!(
                    spans,
                    to,
                    "the collector cannot be reached, and spans are lost: does it run, with OTLP over HTTP (usually on port 4318)?"
                ),
            }
        }
    }

    /// Sends what there is and what still comes, each batch once.
    fn finish(mut self) {
        let batch = self.batch();
        self.finish_with(batch);
    }

    fn finish_with(mut self, batch: Batch) {
        let deadline = Instant::now() + LAST;
        let left = || deadline.saturating_duration_since(Instant::now());
        let mut next = batch;
        loop {
            if next.spans() > 0 {
                let sent = async { timeout(left(), self.sender.send_once(&next)).await };
                let outcome = self.runtime.block_on(sent).unwrap_or(Err(Loss::Unreachable));
                self.count(&next, outcome);
            }
            // The workers that are still there hand their buffers over when they end.
            let mut has_ended = false;
            while self.spans.len() < BATCH && !has_ended {
                match self.inbox.recv_timeout(left()) {
                    Ok(message) => self.take(message),
                    Err(_) => has_ended = true,
                }
            }
            if self.spans.is_empty() {
                return;
            }
            next = self.batch();
        }
    }
}

fn served<'r>(record: &Unpacked<'r>) -> Option<Served<'r>> {
    let span = record.span.as_ref()?;
    let exchange = span.exchange.as_ref().map(|exchange| Exchange {
        server: exchange.server,
        status: exchange.status,
        attempts: exchange.attempts,
        total_us: exchange.total_us,
        failure: exchange.failure,
    });
    Some(Served {
        ids: span.ids,
        route: span.route,
        time_unix_us: record.time_unix_us,
        duration_us: record.duration_us,
        method: record.method,
        target: record.target,
        version: record.version,
        host: record.host,
        user_agent: record.user_agent,
        client: record.client,
        is_secure: !record.tls.version.is_empty(),
        status: record.status,
        exchange,
    })
}
