//! A worker's share of the connections.
//!
//! A listening socket prefers connections whose packets arrive on its worker's core (`SO_INCOMING_CPU`): the packets, the
//! socket and the worker's data then stay in the caches of one core. The kernel falls back to hashing where no socket
//! prefers the core. But a network card with one queue, or a client on this machine, would fill one worker alone. So
//! a worker that has more than its share passes new connections on, and withdraws its preference for some time if
//! there are many of them.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use afpa_framework::Peer;
use tokio::sync::mpsc::UnboundedSender;

use super::Command;
use crate::listener::ListenerSettings;

/// The connections of each worker. They change when one opens or closes, never on a hit.
#[derive(Debug)]
pub(crate) struct Loads {
    each: Box<[Load]>,
    stop: AtomicBool,
}

/// On lines of its own; processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Load(AtomicUsize);

impl Loads {
    pub(crate) fn new(workers: usize) -> Self {
        let each = (0..workers).map(|_| Load::default()).collect();
        Self { each, stop: AtomicBool::new(false) }
    }

    /// Workers that take no orders any more end with their next sweep.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn of(&self, worker: usize) -> usize {
        self.each.get(worker).map_or(0, |load| load.0.load(Ordering::Relaxed))
    }

    fn add(&self, worker: usize) {
        if let Some(load) = self.each.get(worker) {
            load.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn sub(&self, worker: usize) {
        if let Some(load) = self.each.get(worker) {
            load.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn least(&self) -> Option<usize> {
        (0..self.each.len()).min_by_key(|&worker| self.of(worker))
    }

    /// The worker to which `own` passes its next connection, when all workers together have `total`.
    fn better_than(&self, own: usize, total: usize) -> Option<usize> {
        if is_fair(self.of(own), total, self.each.len()) {
            return None;
        }
        self.least().filter(|&least| self.of(least) < self.of(own))
    }
}

/// Whether a worker may take one more: as much more than the mean as chance makes of it where packets arrive on all cores
/// alike.
fn is_fair(own: usize, total: usize, workers: usize) -> bool {
    let mean = total / workers.max(1);
    own <= mean + mean.isqrt() + 1
}

/// One connection in the count of its worker, until this is dropped.
#[derive(Debug)]
pub(crate) struct Place(Rc<Own>);

#[derive(Debug)]
struct Own {
    loads: Arc<Loads>,
    worker: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.loads.sub(self.0.worker);
    }
}

/// A connection that another worker has accepted.
pub(crate) struct Accepted {
    pub(crate) socket: OwnedFd,
    pub(crate) peer: Peer,
    pub(crate) settings: ListenerSettings,
}

/// The other workers, as one of them sees them, if each has a core of its own.
pub(crate) struct Share<M> {
    own: Rc<Own>,
    /// The number of its core.
    pub(crate) core: u32,
    /// The commands of each worker.
    workers: Vec<UnboundedSender<Command<M>>>,
}

impl<M> Share<M> {
    pub(crate) fn new(
        worker: usize,
        core: u32,
        loads: Arc<Loads>,
        workers: Vec<UnboundedSender<Command<M>>>,
    ) -> Self {
        Self { own: Rc::new(Own { loads, worker }), core, workers }
    }

    /// Whether the engine stops.
    pub(crate) fn stops(&self) -> bool {
        self.own.loads.stop.load(Ordering::Relaxed)
    }

    /// A place for a connection that stays here.
    pub(crate) fn take(&self) -> Place {
        self.own.loads.add(self.own.worker);
        self.taken()
    }

    /// The place of a connection that another worker has passed on, and has counted here.
    pub(crate) fn taken(&self) -> Place {
        Place(Rc::clone(&self.own))
    }

    /// The worker that should have the next connection, if this one has more than its share of `total`.
    pub(crate) fn is_full(&self, total: usize) -> Option<usize> {
        self.own.loads.better_than(self.own.worker, total)
    }

    /// Passes a connection on. It comes back if that worker has ended.
    pub(crate) fn pass(&self, other: usize, accepted: Accepted) -> Result<(), Box<Accepted>> {
        let accepted = Box::new(accepted);
        let Some(commands) = self.workers.get(other) else { return Err(accepted) };
        self.own.loads.add(other);
        commands.send(Command::Take(accepted)).map_err(|unsent| {
            self.own.loads.sub(other);
            match unsent.0 {
                Command::Take(accepted) => accepted,
                _ => unreachable!("what was not sent comes back"),
            }
        })
    }
}

/// Whether a listening socket prefers the connections that arrive on its worker's core.
#[derive(Debug)]
pub(crate) struct Preference {
    state: State,
    /// How long the next withdrawal lasts.
    wait_ms: u64,
}

#[derive(Debug)]
enum State {
    /// It does, since then; of the connections since `window_ms` so many were kept and passed on.
    Prefers { since_ms: u64, window_ms: u64, kept: u32, passed: u32 },
    /// Not before then.
    Withdrawn { until_ms: u64 },
}

/// The change of a preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The kernel spreads connections by their hashes.
    Withdraw,
    /// Connections that arrive on the worker's core are preferred again.
    Restore,
}

/// Connections that may be passed on within a window, however few are kept.
const MOST_PASSED: u32 = 64;
const WINDOW_MS: u64 = 1000;
/// The first withdrawal, and the longest: each try costs a window of passed connections.
const FIRST_WAIT_MS: u64 = 1000;
const LONGEST_WAIT_MS: u64 = 64_000;

impl Preference {
    pub(crate) fn new(now_ms: u64) -> Self {
        Self { state: State::from(now_ms), wait_ms: FIRST_WAIT_MS }
    }

    /// A connection was passed on.
    pub(crate) fn passed(&mut self, now_ms: u64) -> Option<Change> {
        self.state.turn(now_ms);
        let State::Prefers { since_ms, kept, passed, .. } = &mut self.state else { return None };
        *passed += 1;
        // Of two workers, one that gets all connections passes half of them on.
        if *passed <= MOST_PASSED || *passed < *kept / 2 {
            return None;
        }
        if now_ms.saturating_sub(*since_ms) >= LONGEST_WAIT_MS {
            self.wait_ms = FIRST_WAIT_MS; // it went well for a long time
        }
        self.state = State::Withdrawn { until_ms: now_ms + self.wait_ms };
        self.wait_ms = (self.wait_ms * 2).min(LONGEST_WAIT_MS);
        Some(Change::Withdraw)
    }

    /// A connection was kept.
    pub(crate) fn kept(&mut self, now_ms: u64) -> Option<Change> {
        self.state.turn(now_ms);
        match &mut self.state {
            State::Withdrawn { until_ms } if now_ms >= *until_ms => {
                self.state = State::from(now_ms);
                Some(Change::Restore)
            }
            State::Withdrawn { .. } => None,
            State::Prefers { kept, .. } => {
                *kept += 1;
                None
            }
        }
    }
}

impl State {
    fn from(now_ms: u64) -> Self {
        Self::Prefers { since_ms: now_ms, window_ms: now_ms, kept: 0, passed: 0 }
    }

    /// Begins a new window when the last one is over.
    fn turn(&mut self, now_ms: u64) {
        if let Self::Prefers { window_ms, kept, passed, .. } = self
            && now_ms.saturating_sub(*window_ms) >= WINDOW_MS
        {
            (*window_ms, *kept, *passed) = (now_ms, 0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many connections arrive on one core of so many.
    fn spread(workers: usize, connections: usize) -> Vec<usize> {
        let loads = Loads::new(workers);
        for total in 0..connections {
            loads.add(loads.better_than(0, total).unwrap_or(0));
        }
        (0..workers).map(|worker| loads.of(worker)).collect()
    }

    #[test]
    fn connections_that_arrive_on_one_core_are_spread_over_all() {
        for (workers, connections) in [(2, 8), (2, 64), (8, 64), (8, 10_000), (64, 1000)] {
            let each = spread(workers, connections);
            assert_eq!(each.iter().sum::<usize>(), connections);
            let (least, most) = (each.iter().min(), each.iter().max());
            let mean = connections / workers;
            assert!(most <= Some(&(mean + mean.isqrt() + 2)), "{each:?}");
            assert!(least.is_some_and(|least| least + 2 + mean.isqrt() >= mean), "{each:?}");
        }
        assert_eq!(spread(1, 10), [10]);
    }

    /// As they arrive from a network card with a queue for each core.
    #[test]
    fn connections_that_arrive_on_all_cores_stay_where_they_arrive() {
        let loads = Loads::new(8);
        for total in 0..8000 {
            let arrived = total % 8;
            assert_eq!(loads.better_than(arrived, total), None);
            loads.add(arrived);
        }
        let own = Rc::new(Own { loads: Arc::new(loads), worker: 3 });
        drop(Place(Rc::clone(&own)));
        assert_eq!(own.loads.of(3), 999);
    }

    #[test]
    fn a_worker_that_passes_many_on_withdraws_each_time_for_longer() {
        let mut preference = Preference::new(0);
        let mut now = 0;
        let mut waits = Vec::new();
        for _ in 0..9 {
            let passed = (0..).find(|_| preference.passed(now).is_some());
            assert_eq!(passed, Some(MOST_PASSED));
            assert_eq!(preference.passed(now), None, "it is withdrawn");
            let begun = now;
            now = (begun..).step_by(500).find(|&now| preference.kept(now).is_some()).expect("ends");
            waits.push((now - begun) / 1000);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        now += LONGEST_WAIT_MS;
        assert!((0..=MOST_PASSED).any(|_| preference.passed(now) == Some(Change::Withdraw)));
        assert_eq!(preference.kept(now + FIRST_WAIT_MS), Some(Change::Restore));
    }

    #[test]
    fn a_worker_that_keeps_most_of_very_many_keeps_its_preference() {
        let mut preference = Preference::new(0);
        for number in 0..100_000 {
            let change = if number % 8 == 7 {
                preference.passed(number / 100)
            } else {
                preference.kept(number / 100)
            };
            assert_eq!(change, None, "{number}");
        }
    }

    #[test]
    fn a_worker_that_passes_a_few_on_now_and_then_keeps_its_preference() {
        let mut preference = Preference::new(0);
        for now in 0..1000 {
            assert_eq!(preference.passed(now * 20), None);
            assert_eq!(preference.kept(now * 20), None);
        }
    }
}
