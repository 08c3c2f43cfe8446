//! The thread that keeps the kernel answering, and reads the events of its answers.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use afpa_bpf::Events;
use afpa_cache::ObjectId;
use afpa_module_http::NoAccessLog;
use afpa_server::counters::WorkerCounters;

use crate::event_log::{HeaderBlocks, Origin, record, weight};
use crate::fast_path_core::{AnswerSink, FastPathCore};
use crate::kernel_cache::PERIOD;

/// How often the thread wakes: a beat brings the Date of answers, so it must come soon after each second
/// begins; and the ring of answers must be emptied before it is full.
const TICK: Duration = Duration::from_millis(50);

/// A worker that has not counted a tick for so long hangs; it counts at least two a second.
const HANG_TIMEOUT: Duration = Duration::from_secs(3);

/// How often connections without a socket are looked for.
const SWEEP: Duration = Duration::from_secs(5);
/// A connection that was silent for so long is looked at.
const SILENCE: Duration = Duration::from_secs(10);

/// Beats while every worker is alive, and does the regular work of the fast path.
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
    pub(crate) fn new(core: Arc<FastPathCore>, workers: &[Arc<WorkerCounters>]) -> Self {
        let now = Instant::now();
        let pulse = |counters: &Arc<WorkerCounters>| WorkerPulse {
            counters: Arc::clone(counters),
            ticks: counters.ticks.get(),
            seen: now,
        };
        let workers = workers.iter().map(pulse).collect();
        let (blocks, sink) = (HeaderBlocks::default(), Box::new(NoAccessLog));
        Self { core, workers, sink, blocks, swept: now, rebalanced: now, second: now }
    }

    /// Works until the fast path ends, and then writes the rest of the log.
    pub(crate) fn run(mut self) {
        let fast_path = Arc::clone(&self.core.fast_path);
        let events = fast_path.reports.events().inspect_err(|error| {
            tracing::error!(%error, "the kernel's answers are missing in the access log");
        });
        let events = events.ok();
        while !self.core.ending.load(Ordering::Acquire) {
            self.tick(events.as_ref());
            std::thread::park_timeout(TICK);
        }
        self.read_events(events.as_ref());
        self.sink.flush();
    }

    fn tick(&mut self, events: Option<&Events<'_>>) {
        // At the end of the process workers end one by one: that is no hang.
        let hanging = self.hanging() && self.core.wants_to_answer();
        if self.core.hanging.swap(hanging, Ordering::Relaxed) != hanging {
            match hanging {
                true => tracing::error!(
                    "a worker hangs, so the kernel stops answering: if it goes on, restart afpa"
                ),
                false => tracing::warn!("no worker hangs any more: the kernel answers again"),
            }
        }
        if !hanging {
            self.core.beat();
        }
        self.core.look_at_room(self.workers.iter().map(|pulse| pulse.counters.open.get()).sum());
        self.read_events(events);
        if self.second.elapsed() >= Duration::from_secs(1) {
            self.second = Instant::now();
            self.sink.flush();
            self.core.register.forget_retired();
            self.core.look_at_interfaces();
            self.core.look_at_tcp();
            self.look_at_the_host();
            self.core.look_at_chains();
            self.core.renew();
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

    /// In a thread of its own: there may be a million routes, and a beat must not be late.
    fn look_at_the_host(&self) {
        if self.core.is_host_changed() {
            let core = Arc::clone(&self.core);
            let looker = std::thread::Builder::new().name("afpa-preflight".to_owned());
            // When it cannot be started now, it is tried again in a second.
            let _ = looker.spawn(move || core.look_at_the_host());
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

    /// Writes the answers to the access log, and reports their numbers to the policy of the cache.
    fn read_events(&mut self, events: Option<&Events<'_>>) {
        let next = self.core.next_sink.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(next) = next {
            self.sink.flush();
            self.sink = next;
        }
        let Some(Ok(answers)) = events.map(Events::drain) else { return };
        if answers.is_empty() {
            return;
        }
        let logged = self.sink.enabled() && self.core.logged.load(Ordering::Relaxed);
        let current = self.core.current.load();
        let mut touches: HashMap<(Origin, ObjectId), u32> = HashMap::new();
        for event in &answers {
            let Some(described) = self.core.register.find(event.version) else { continue };
            if logged {
                let read = |event: &_| self.core.fast_path.reports.header_block(event);
                let lines = self.blocks.lines(event, read);
                let believed = current.as_ref().map(|current| current.believed(event.site));
                let believed = believed.unwrap_or_default();
                self.sink.record(&record(event, &described, &lines, believed));
            }
            let count = touches.entry((described.origin, described.object)).or_default();
            *count = count.saturating_add(weight(event));
        }
        let Some(current) = current.as_ref() else { return };
        current.files.touch(&touches);
        if let Some(answers) = &current.answers {
            answers.touch(&touches);
        }
    }
}
