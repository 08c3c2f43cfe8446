//! The thread that keeps the kernel answering, and hears what it answered.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use afpa_bpf::Events;
use afpa_cache::ObjectId;
use afpa_framework::AccessSink;
use afpa_server::counters::WorkerCounters;

use super::log::{Blocks, record, weight};
use super::resident::PERIOD;
use super::running::Shared;
use crate::access_log::Sink;

/// The Date of an answer is that of the beat, so beats come soon after each second begins; and the
/// ring of answers is emptied before it is full.
const TICK: Duration = Duration::from_millis(50);

/// A worker that has not looked at the clock for so long hangs: it looks twice a second at least.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often connections whose socket is gone are looked for, and after which silence.
const SWEEP: Duration = Duration::from_secs(5);
const SILENCE: Duration = Duration::from_secs(10);

pub(super) struct Heart {
    shared: Arc<Shared>,
    workers: Vec<Pulse>,
    sink: Sink,
    blocks: Blocks,
    swept: Instant,
    weighed: Instant,
    second: Instant,
}

/// When a worker was last seen alive.
struct Pulse {
    counters: Arc<WorkerCounters>,
    ticks: u64,
    seen: Instant,
}

impl Heart {
    pub(super) fn new(shared: Arc<Shared>, workers: &[Arc<WorkerCounters>], sink: Sink) -> Self {
        let now = Instant::now();
        let pulse = |counters: &Arc<WorkerCounters>| Pulse {
            counters: Arc::clone(counters),
            ticks: counters.ticks.get(),
            seen: now,
        };
        let workers = workers.iter().map(pulse).collect();
        let blocks = Blocks::default();
        Self { shared, workers, sink, blocks, swept: now, weighed: now, second: now }
    }

    /// Until it is told to end; then what is left of the log is written.
    pub(super) fn run(mut self) {
        let fast_path = Arc::clone(&self.shared.fast_path);
        let events = fast_path.events().inspect_err(|error| {
            tracing::error!(%error, "what the kernel answers is not logged");
        });
        let events = events.ok();
        while !self.shared.ending.load(Ordering::Acquire) {
            self.tick(events.as_ref());
            std::thread::park_timeout(TICK);
        }
        self.hear(events.as_ref());
        self.sink.flush();
    }

    fn tick(&mut self, events: Option<&Events<'_>>) {
        // Workers that end one by one do not hang.
        let hanging = self.hanging() && self.shared.wants_to_answer();
        if self.shared.hanging.swap(hanging, Ordering::Relaxed) != hanging {
            match hanging {
                true => tracing::error!("a worker hangs: the kernel stops answering"),
                false => tracing::warn!("no worker hangs any more: the kernel answers again"),
            }
        }
        if !hanging {
            self.shared.beat();
        }
        self.hear(events);
        if self.second.elapsed() >= Duration::from_secs(1) {
            self.second = Instant::now();
            self.sink.flush();
            self.shared.register.forget_retired();
            self.shared.look_at_interfaces();
            self.shared.use_room();
        }
        if self.weighed.elapsed() >= PERIOD {
            self.weighed = Instant::now();
            self.shared.weigh();
        }
        if self.swept.elapsed() >= SWEEP {
            self.swept = Instant::now();
            self.shared.sweep(SILENCE);
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
        self.workers.iter().any(|pulse| now - pulse.seen > PATIENCE)
    }

    /// Answers go to the access log, and their number to the policy of the cache.
    fn hear(&mut self, events: Option<&Events<'_>>) {
        let next = self.shared.next_sink.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(next) = next {
            self.sink.flush();
            self.sink = next;
        }
        let Some(Ok(heard)) = events.map(Events::drain) else { return };
        if heard.is_empty() {
            return;
        }
        let logged = self.sink.enabled() && self.shared.logged.load(Ordering::Relaxed);
        let current = self.shared.current.load();
        let mut touches: HashMap<ObjectId, u32> = HashMap::new();
        for event in &heard {
            let Some(described) = self.shared.register.find(event.version) else { continue };
            if logged {
                let read = |event: &_| self.shared.fast_path.header_block(event);
                let lines = self.blocks.lines(event, read);
                let believed = current.as_ref().map(|current| current.believed(event.site));
                let believed = believed.unwrap_or_default();
                self.sink.record(&record(event, &described, &lines, believed));
            }
            if let Some(current) = current.as_ref()
                && described.generation == current.resident.generation()
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
