//! The thread that keeps the kernel answering, and hears what it answered.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use afpa_bpf::Events;
use afpa_cache::ObjectId;
use afpa_server::counters::WorkerCounters;

use crate::event_log::{HeaderBlocks, record, weight};
use crate::kernel_cache::PERIOD;
use crate::running::{AnswerSink, FastPathCore};

/// The Date of an answer is that of the beat, so beats come soon after each second begins; and the
/// ring of answers is emptied before it is full.
const TICK: Duration = Duration::from_millis(50);

/// A worker that has not looked at the clock for so long hangs: it looks twice a second at least.
const HANG_TIMEOUT: Duration = Duration::from_secs(3);

/// How often connections whose socket is gone are looked for, and after which silence.
const SWEEP: Duration = Duration::from_secs(5);
const SILENCE: Duration = Duration::from_secs(10);

pub(crate) struct Heartbeat {
    core: Arc<FastPathCore>,
    workers: Vec<WorkerPulse>,
    sink: AnswerSink,
    blocks: HeaderBlocks,
    swept: Instant,
    rebalanced: Instant,
    second: Instant,
}

/// When a worker was last seen alive.
struct WorkerPulse {
    counters: Arc<WorkerCounters>,
    ticks: u64,
    seen: Instant,
}

impl Heartbeat {
    pub(crate) fn new(
        core: Arc<FastPathCore>,
        workers: &[Arc<WorkerCounters>],
        sink: AnswerSink,
    ) -> Self {
        let now = Instant::now();
        let pulse = |counters: &Arc<WorkerCounters>| WorkerPulse {
            counters: Arc::clone(counters),
            ticks: counters.ticks.get(),
            seen: now,
        };
        let workers = workers.iter().map(pulse).collect();
        let blocks = HeaderBlocks::default();
        Self { core, workers, sink, blocks, swept: now, rebalanced: now, second: now }
    }

    /// Until it is told to end; then what is left of the log is written.
    pub(crate) fn run(mut self) {
        let fast_path = Arc::clone(&self.core.fast_path);
        let events = fast_path.events().inspect_err(|error| {
            tracing::error!(%error, "what the kernel answers is not logged");
        });
        let events = events.ok();
        while !self.core.ending.load(Ordering::Acquire) {
            self.tick(events.as_ref());
            std::thread::park_timeout(TICK);
        }
        self.hear(events.as_ref());
        self.sink.flush();
    }

    fn tick(&mut self, events: Option<&Events<'_>>) {
        // Workers that end one by one do not hang.
        let hanging = self.hanging() && self.core.wants_to_answer();
        if self.core.hanging.swap(hanging, Ordering::Relaxed) != hanging {
            match hanging {
                true => tracing::error!("a worker hangs: the kernel stops answering"),
                false => tracing::warn!("no worker hangs any more: the kernel answers again"),
            }
        }
        if !hanging {
            self.core.beat();
        }
        self.hear(events);
        if self.second.elapsed() >= Duration::from_secs(1) {
            self.second = Instant::now();
            self.sink.flush();
            self.core.register.forget_retired();
            self.core.look_at_interfaces();
            self.core.use_room();
        }
        if self.rebalanced.elapsed() >= PERIOD {
            self.rebalanced = Instant::now();
            self.core.rebalance();
        }
        if self.swept.elapsed() >= SWEEP {
            self.swept = Instant::now();
            self.core.sweep(SILENCE);
        }
    }

    fn hanging(&mut self) -> bool {
        let now = Instant::now();
        for pulse in &mut self.workers {
            let ticks = pulse.counters.ticks.get();
            if ticks != pulse.ticks {
                (pulse.ticks, pulse.seen) = (ticks, now);
            }
        }
        self.workers.iter().any(|pulse| now - pulse.seen > HANG_TIMEOUT)
    }

    /// Answers go to the access log, and their number to the policy of the cache.
    fn hear(&mut self, events: Option<&Events<'_>>) {
        let next = self.core.next_sink.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(next) = next {
            self.sink.flush();
            self.sink = next;
        }
        let Some(Ok(heard)) = events.map(Events::drain) else { return };
        if heard.is_empty() {
            return;
        }
        let logged = self.sink.enabled() && self.core.logged.load(Ordering::Relaxed);
        let current = self.core.current.load();
        let mut touches: HashMap<ObjectId, u32> = HashMap::new();
        for event in &heard {
            let Some(described) = self.core.register.find(event.version) else { continue };
            if logged {
                let read = |event: &_| self.core.fast_path.header_block(event);
                let lines = self.blocks.lines(event, read);
                let believed = current.as_ref().map(|current| current.believed(event.site));
                let believed = believed.unwrap_or_default();
                self.sink.record(&record(event, &described, &lines, believed));
            }
            if let Some(current) = current.as_ref()
                && described.generation == current.kernel_cache.generation()
            {
                let count = touches.entry(described.object).or_default();
                *count = count.saturating_add(weight(event));
            }
        }
        if let Some(cache) = current.as_ref().and_then(|current| current.cache.upgrade()) {
            cache.touch(&touches.into_iter().collect::<Vec<_>>());
        }
    }
}
