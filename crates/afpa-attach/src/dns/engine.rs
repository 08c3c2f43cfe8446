//! The part that the threads of an attachment to a name server share: their knowledge, reports of the programs, orders.

use std::collections::HashMap;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use afpa_bpf::dns::DnsPath;
use afpa_bpf::dns::abi::{DnsConfig, DnsSeed, dns_event};
use afpa_bpf::monotonic_ns;
use afpa_dnstap::{Counts, Sample, Tap};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

use super::answer::Tail;
use super::ask::Asker;
use super::cookies::Cookies;
use super::key::{self, Key};
use super::learn::Learnt;
use super::pins::{Pin, Pins, is_purged};
use super::sets::Settled;
use super::wanted::Wanted;
use super::zones::{Order, Zones};
use crate::filler::spawn;
use crate::stranger::Stranger;

/// The part that the threads share.
pub(super) struct Engine {
    pub(super) path: DnsPath,
    pub(super) listen: Vec<SocketAddr>,
    pub(super) settings: Pace,
    state: Mutex<State>,
    /// Something may have changed: poll now.
    pub(super) wake: Notify,
    pub(super) paused: AtomicBool,
    ended: AtomicBool,
    config: DnsConfig,
    /// The secret of the hashes of keys.
    pub(super) seed: DnsSeed,
    cookies: Option<Arc<Cookies>>,
    /// Numbers of the samples for dnstap.
    pub(super) samples: Option<Arc<Counts>>,
    /// Edition of the routes by which clients are known; 0: they are not.
    next_hops: AtomicU32,
    routes_changed: AtomicU32,
    pub(super) asked: AtomicU64,
    /// Looks for questions that are not pinned.
    pub(super) looks: AtomicU64,
}

/// How fast it is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Questions a second, besides polls.
    pub(super) rate: u32,
    /// How long the order of several records must have been the same.
    pub(super) settle: Duration,
    /// The time between two polls of a zone.
    pub(super) poll: Duration,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) zones: Zones,
    pub(super) pins: Pins,
    pub(super) wanted: Wanted,
    /// Answers whose order has to be the same for a while: since when, and which.
    pub(super) settling: HashMap<Key, (u64, Learnt)>,
    /// Sets of records that kept theirs.
    pub(super) settled: Settled,
    /// Zones of names; None: the server has none.
    pub(super) homes: HashMap<(u32, Vec<u8>), Option<Vec<u8>>>,
    /// Answers for a name that nobody can know, below the name of the key; None: there is none, or no such name.
    pub(super) strangers: HashMap<Key, Option<Tail>>,
    /// How often the last two were forgotten, and how often the operator had answers dropped. Answers to questions from before that
    /// are not believed.
    pub(super) homes_changed: u64,
    pub(super) purges: u64,
    pub(super) confirmed: u64,
    pub(super) changed: u64,
    pub(super) false_alarms: u64,
}

impl State {
    fn forget_homes(&mut self) {
        self.homes_changed += 1;
        self.homes.clear();
        self.strangers.clear();
    }
}

/// Nothing is answered that long after the last beat.
const ALIVE: u64 = 1_500_000_000;
const BEAT: Duration = Duration::from_millis(250);
/// Between two looks for questions that are not pinned.
const TURN: Duration = Duration::from_millis(50);

/// Sockets of each kind that a thread keeps for all addresses together.
const SOCKETS: usize = 64;

/// A thread's own.
fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_io().enable_time().build()
}

impl Engine {
    pub(super) fn new(
        path: DnsPath,
        listen: Vec<SocketAddr>,
        settings: Pace,
        (config, seed): (DnsConfig, DnsSeed),
        cookies: Option<Cookies>,
        samples: Option<Arc<Counts>>,
    ) -> Self {
        Self {
            path,
            listen,
            settings,
            state: Mutex::default(),
            wake: Notify::new(),
            paused: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            config,
            seed,
            cookies: cookies.map(Arc::new),
            samples,
            next_hops: AtomicU32::new(0),
            routes_changed: AtomicU32::new(0),
            asked: AtomicU64::new(0),
            looks: AtomicU64::new(0),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Starts the threads.
    pub(super) fn start(self: &Arc<Self>, stranger: &Arc<Stranger>) -> anyhow::Result<()> {
        self.beat();
        let askers = || {
            let kept = SOCKETS / self.listen.len().max(1);
            let asker = |at: &SocketAddr| Asker::new(*at, stranger, self.cookies.as_ref(), kept);
            self.listen.iter().map(asker).collect()
        };
        let (for_polls, for_keys): (std::io::Result<Vec<_>>, std::io::Result<Vec<_>>) =
            (askers(), askers());
        let (for_polls, for_keys) = (for_polls?, for_keys?);
        let engine = Arc::clone(self);
        spawn("beat", move || {
            while !engine.is_ended() {
                engine.beat();
                std::thread::sleep(BEAT);
            }
        })?;
        let engine = Arc::clone(self);
        spawn("reports", move || engine.read_reports())?;
        let (engine, of_polls) = (Arc::clone(self), runtime()?);
        spawn("poll", move || of_polls.block_on(engine.poll(&for_polls)))?;
        let (engine, of_keys) = (Arc::clone(self), runtime()?);
        spawn("learn", move || of_keys.block_on(engine.learn(for_keys)))?;
        Ok(())
    }

    pub(super) fn count_question(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    fn beat(&self) {
        let still = self.paused.load(Ordering::Relaxed) || self.is_ended();
        let until = if still { 0 } else { monotonic_ns() + ALIVE };
        let next_hops = self.next_hops.load(Ordering::SeqCst);
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let wall = (unix.as_nanos() as u64).wrapping_sub(monotonic_ns());
        let config = DnsConfig { until, next_hops, wall, ..self.config };
        let _until_the_next = self.path.configure(&config);
    }

    /// Clients are known by their next hops, as far as routes are sure.
    pub(super) fn look_at_routes(&self) -> std::io::Result<bool> {
        self.path.look_at_routes(|sure| {
            let edition = self.routes_changed.fetch_add(1, Ordering::Relaxed) + 1;
            self.next_hops.store(if sure { edition } else { 0 }, Ordering::SeqCst);
            self.beat();
        })
    }

    /// Stops answering at once, or goes on.
    pub(super) fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::Relaxed);
        self.beat();
    }

    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.beat();
        self.path.detach();
        self.wake.notify_one();
    }

    pub(super) fn obey(&self, orders: &[Order]) {
        for order in orders {
            let _kernel_refuses = match order {
                Order::Lease(zone, until) => self.path.lease(*zone, *until),
                Order::End(zone) => self.path.lease(*zone, 0),
            };
        }
    }

    /// Answers of editions that have ended are taken back, and asked for again.
    pub(super) fn follow(&self, state: &mut State, orders: &[Order]) {
        let ended = |edition: u32| orders.contains(&Order::End(edition));
        if !orders.iter().any(|order| matches!(order, Order::End(_))) {
            return;
        }
        let now = monotonic_ns();
        for key in state.pins.choose(|_, pin| ended(pin.edition)) {
            self.unpin(state, &key, now);
            state.wanted.want(key);
        }
        state.forget_homes();
    }

    /// Takes an answer back, if there is one.
    pub(super) fn unpin(&self, state: &mut State, key: &Key, now: u64) -> Option<Pin> {
        let pin = state.pins.remove(key, now)?;
        self.path.unpin(pin.place);
        Some(pin)
    }

    // --- reports ---

    fn read_reports(&self) {
        let Ok(reports) = self.path.reports() else { return };
        while !self.is_ended() {
            // Questions that are not pinned wake nobody; they are read at the next turn.
            let woken = reports.wait(TURN).and_then(|first| Ok((first, reports.drain()?)));
            let Ok((mut reports, more)) = woken else {
                std::thread::sleep(BEAT);
                continue;
            };
            reports.extend(more);
            if reports.is_empty() {
                self.looks.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let now = monotonic_ns();
            let mut state = self.state();
            for report in reports {
                match (u8::try_from(report.event), key::reported(&report)) {
                    (Ok(dns_event::MISSED), Some(key)) => state.wanted.saw(key, now),
                    (Ok(dns_event::DIFFERED), Some(key)) => {
                        // It is gone, unless it was pinned anew meanwhile.
                        let dropped = self.unpin(&mut state, &key, now);
                        state.wanted.doubt(key, dropped, now);
                        self.wake.notify_one();
                    }
                    _ => self.wake.notify_one(),
                }
            }
            self.looks.fetch_add(1, Ordering::Relaxed);
        }
    }

    // --- samples ---

    /// Gives the kernel's samples to a reader of dnstap.
    pub(super) fn pass_samples(&self, tap: &Tap) {
        let Ok(samples) = self.path.samples() else { return };
        while !self.is_ended() {
            let Ok(samples) = samples.wait(BEAT) else {
                std::thread::sleep(BEAT);
                continue;
            };
            let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            for sample in samples {
                let client = Ipv6Addr::from(sample.client).to_canonical();
                let of = |bytes: &[u8], length: u16| bytes.get(..length.into()).map(<[u8]>::to_vec);
                let (Some(query), Some(response)) = (
                    of(&sample.query, sample.query_length),
                    of(&sample.response, sample.response_length),
                ) else {
                    continue;
                };
                let sample = Sample {
                    client: SocketAddr::new(client, u16::from_be(sample.port)),
                    server: self.listen.get(sample.server as usize).copied(),
                    is_tcp: false,
                    unix,
                    query: &query,
                    response: &response,
                };
                tap.take(concat!("afpa ", env!("CARGO_PKG_VERSION")), &sample);
            }
        }
    }

    // --- orders ---

    /// Takes back the answers for a name, or for all names at and below it. Returns how many they were.
    pub(super) fn purge(&self, name: &[u8], below: bool) -> usize {
        let mut state = self.state();
        let now = monotonic_ns();
        state.purges += 1;
        let purged = state.pins.choose(|key, _| is_purged(key, name, below));
        for key in &purged {
            self.unpin(&mut state, key, now);
        }
        state.forget_homes();
        purged.len()
    }

    /// Asks for everything anew.
    pub(super) fn forget(&self) {
        let mut state = self.state();
        let orders = state.zones.end_editions(monotonic_ns(), None);
        self.obey(&orders);
        self.follow(&mut state, &orders);
        state.settled.clear();
    }

    pub(super) fn standing(&self) -> Standing {
        let state = self.state();
        let (zones, current, changes) = state.zones.standing();
        let (keys, tails, guesses) = state.pins.standing();
        let (wanted, unfit) = state.wanted.standing(monotonic_ns());
        Standing {
            zones,
            current,
            changes,
            keys,
            tails,
            guesses,
            wanted,
            unfit,
            confirmed: state.confirmed,
            changed: state.changed,
            false_alarms: state.false_alarms,
        }
    }
}

/// Numbers for the operator.
pub(super) struct Standing {
    pub(super) zones: usize,
    pub(super) current: usize,
    pub(super) changes: u64,
    pub(super) keys: usize,
    pub(super) tails: usize,
    pub(super) guesses: usize,
    pub(super) wanted: usize,
    pub(super) unfit: std::collections::BTreeMap<String, u64>,
    pub(super) confirmed: u64,
    pub(super) changed: u64,
    pub(super) false_alarms: u64,
}
