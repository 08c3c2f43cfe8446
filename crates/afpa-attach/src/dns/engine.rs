//! The threads of an attachment to a name server: one polls zones, one asks for what clients asked for.

use std::collections::HashMap;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use afpa_bpf::dns::DnsPath;
use afpa_bpf::dns::abi::{DnsConfig, DnsSeed, dns_event};
use afpa_bpf::monotonic_ns;
use afpa_dnstap::{Counts, Sample, Tap};

use super::answer::{Tail, Unfit};
use super::ask::{Asker, Reply, Soa};
use super::cookies::Cookies;
use super::key::{self, Hash, Key};
use super::learn::{self, Asking, Learnt, PLAIN};
use super::pins::{Pin, Pins, Verdict, Wanted, is_purged};
use super::zones::{Order, ZoneName, Zones};
use crate::filler::spawn;
use crate::stranger::Stranger;

/// The part that the threads share.
pub(super) struct Engine {
    pub(super) path: DnsPath,
    pub(super) listen: Vec<SocketAddr>,
    pub(super) settings: Pace,
    state: Mutex<State>,
    /// Something may have changed: poll now.
    wake: Condvar,
    pub(super) paused: AtomicBool,
    ended: AtomicBool,
    config: DnsConfig,
    /// The secret of the hashes of keys.
    seed: DnsSeed,
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
struct State {
    zones: Zones,
    pins: Pins,
    wanted: Wanted,
    /// Answers whose order has to be the same for a while: since when, and which.
    settling: HashMap<Key, (u64, Learnt)>,
    /// Questions whose answers kept their order.
    settled: HashMap<Key, ()>,
    /// Zones of names; None: the server has none.
    homes: HashMap<(u32, Vec<u8>), Option<Vec<u8>>>,
    /// Answers for a name that nobody can know, below the name of the key; None: there is none, or no such name.
    strangers: HashMap<Key, Option<Tail>>,
    confirmed: u64,
    changed: u64,
    false_alarms: u64,
    poll_at_once: bool,
}

/// An answer that may be pinned.
struct Found {
    learnt: Learnt,
    /// The zone, or all of the server's, on which it depends, and its edition.
    zone: ZoneName,
    edition: u32,
    /// Anybody may have thought of its name.
    guess: bool,
}

/// How long the server may take for an answer; for that to a poll.
const PATIENCE: Duration = Duration::from_millis(300);
const POLL_PATIENCE: Duration = Duration::from_millis(100);
/// Nothing is answered that long after the last beat.
const ALIVE: u64 = 1_500_000_000;
const BEAT: Duration = Duration::from_millis(250);
/// Between two looks for questions that are not pinned.
const TURN: Duration = Duration::from_millis(50);
/// When a question is asked again whose zone has just changed, or is not known yet.
const SOON: u64 = 250_000_000;
/// Names whose zones are remembered.
const HOMES: usize = 65_536;

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
            wake: Condvar::new(),
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Starts the threads.
    pub(super) fn start(self: &Arc<Self>, stranger: &Arc<Stranger>) -> anyhow::Result<()> {
        self.beat();
        let askers = || {
            let asker = |at: &SocketAddr| Asker::new(*at, stranger, self.cookies.as_ref());
            self.listen.iter().map(asker).collect()
        };
        let (for_polls, for_keys): (std::io::Result<Vec<_>>, std::io::Result<Vec<_>>) =
            (askers(), askers());
        let (mut for_polls, mut for_keys) = (for_polls?, for_keys?);
        let engine = Arc::clone(self);
        spawn("beat", move || {
            while !engine.is_ended() {
                engine.beat();
                std::thread::sleep(BEAT);
            }
        })?;
        let engine = Arc::clone(self);
        spawn("reports", move || engine.read_reports())?;
        let engine = Arc::clone(self);
        spawn("poll", move || engine.poll(&mut for_polls))?;
        let engine = Arc::clone(self);
        spawn("learn", move || engine.learn(&mut for_keys))?;
        Ok(())
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
        self.wake.notify_all();
    }

    fn obey(&self, orders: &[Order]) {
        for order in orders {
            let _kernel_refuses = match order {
                Order::Lease(zone, until) => self.path.lease(*zone, *until),
                Order::End(zone) => self.path.lease(*zone, 0),
            };
        }
    }

    /// Answers of editions that have ended are taken back, and asked for again.
    fn follow(&self, state: &mut State, orders: &[Order]) {
        let ended = |edition: u32| orders.contains(&Order::End(edition));
        if !orders.iter().any(|order| matches!(order, Order::End(_))) {
            return;
        }
        let now = monotonic_ns();
        for key in state.pins.choose(|_, pin| ended(pin.edition)) {
            self.unpin(state, &key, now);
            state.wanted.want(key);
        }
        state.homes.clear();
        state.strangers.clear();
    }

    /// Takes an answer back, if there is one.
    fn unpin(&self, state: &mut State, key: &Key, now: u64) -> Option<Pin> {
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
                        state.poll_at_once = true;
                    }
                    _ => state.poll_at_once = true,
                }
            }
            self.looks.fetch_add(1, Ordering::Relaxed);
            if state.poll_at_once {
                self.wake.notify_all();
            }
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

    // --- polls ---

    fn poll(&self, askers: &mut [Asker]) {
        while !self.is_ended() {
            let watched = self.state().zones.watched();
            let began = Instant::now();
            for (server, apex) in &watched {
                let Some(asker) = askers.get_mut(*server as usize) else { continue };
                let sent = monotonic_ns();
                let told = asker.ask_soa(apex, POLL_PATIENCE);
                self.polled(*server, apex, sent, told);
            }
            // Many zones are polled less often, but for their leases' sake not too seldom.
            let pause = self.settings.poll.saturating_sub(began.elapsed());
            let mut state = self.state();
            state.zones.wake(monotonic_ns());
            if !state.poll_at_once {
                let waited = self.wake.wait_timeout(state, pause.max(Duration::from_millis(1)));
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            state.poll_at_once = false;
        }
    }

    fn polled(&self, server: u32, apex: &[u8], sent: u64, told: Result<Soa, Reply>) {
        let mut state = self.state();
        let orders = match told {
            Ok(Soa::Of { apex: found, content }) if found == apex => {
                state.zones.polled(server, apex, sent, Some(content))
            }
            // Nobody listens: nothing is answered any more, at once.
            Err(Reply::Closed) => state.zones.end_editions(sent, None),
            // Its lease runs out, unless the next poll is better.
            _ => state.zones.polled(server, apex, sent, None),
        };
        self.obey(&orders);
        self.follow(&mut state, &orders);
    }

    // --- questions ---

    fn learn(&self, askers: &mut [Asker]) {
        let mut due = Instant::now();
        while !self.is_ended() {
            let next = self.state().wanted.next(monotonic_ns());
            match next {
                Some(key) => self.learn_one(askers, key, &mut due),
                None => self.confirm_one(askers, &mut due),
            }
        }
    }

    /// Waits for the turn of the next question.
    fn take_turn(&self, due: &mut Instant) {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let gap = Duration::from_secs(1) / self.settings.rate.max(1);
        *due = (*due + gap).max(now.checked_sub(gap * 4).unwrap_or(now));
        std::thread::sleep(due.saturating_duration_since(now));
    }

    fn learn_one(&self, askers: &mut [Asker], key: Key, due: &mut Instant) {
        let Some(asker) = askers.get_mut(key.server as usize) else { return };
        let outcome = self.ask_all(asker, &key, due);
        let now = monotonic_ns();
        let mut state = self.state();
        let Found { learnt, zone, edition, guess } = match outcome {
            Ok(found) => found,
            Err(Unfit::Changing) => return state.wanted.want_at(key, now + SOON),
            Err(why) => {
                state.settling.remove(&key);
                return state.wanted.leave(key, why, now);
            }
        };
        let verdict = state.wanted.judge(&key, &learnt.tail, edition, now);
        match verdict {
            Verdict::Undoubted => {}
            Verdict::FalseAlarm => state.false_alarms += 1,
            Verdict::NewEdition => state.changed += 1,
            Verdict::Changed | Verdict::Barred => {
                state.changed += 1;
                state.settled.remove(&key);
            }
        }
        if verdict == Verdict::Barred {
            return state.wanted.leave(key, Unfit::Barred, now);
        }
        if learnt.parts.several && !state.settled.contains_key(&key) {
            let settle = self.settings.settle.as_nanos() as u64;
            let (since, before) =
                state.settling.entry(key.clone()).or_insert_with(|| (now, learnt.clone())).clone();
            if before.tail != learnt.tail {
                state.settling.remove(&key);
                return state.wanted.leave(key, Unfit::Unstable, now);
            }
            if now.saturating_sub(since) < settle {
                return state.wanted.want_at(key, now + settle.div_ceil(3).max(1_000_000));
            }
            state.settled.insert(key.clone(), ());
        }
        state.settling.remove(&key);
        if state.zones.edition(&zone) != Some(edition) {
            return state.wanted.want_at(key, now + SOON);
        }
        if let Err(why) = self.pin(&mut state, &key, (&learnt, guess), edition, now) {
            state.wanted.leave(key, why, now);
        }
    }

    fn pin(
        &self,
        state: &mut State,
        key: &Key,
        (learnt, guess): (&Learnt, bool),
        edition: u32,
        now: u64,
    ) -> Result<(), Unfit> {
        self.unpin(state, key, now);
        let hash = Hash::of(key, &self.seed);
        let added = state.pins.add((key.clone(), hash), (&learnt.tail, guess), edition, now);
        let (place, number, new) = added?;
        let word = hash.word(number, edition, learnt.rule);
        let written = match new {
            Some(number) => self.path.put_tail(number, &learnt.tail.to_abi()),
            None => Ok(()),
        };
        written.and_then(|()| self.path.pin(place, hash.check, word)).map_err(|_| {
            self.unpin(state, key, now);
            Unfit::Full
        })
    }

    /// Everything that is asked about a question: its zones first, so that a change meanwhile is seen.
    fn ask_all(&self, asker: &mut Asker, key: &Key, due: &mut Instant) -> Result<Found, Unfit> {
        let server = key.server;
        let apex = self.home(asker, server, &key.name, due)?.ok_or(Unfit::NoZone)?;
        let own = (server, Some(apex.clone()));
        let all = (server, None);
        let editions = || {
            let state = self.state();
            (state.zones.edition(&own), state.zones.edition(&all))
        };
        let before = editions();
        let edition = before.0.ok_or(Unfit::Changing)?;
        let letters = asker.random();
        let settled = {
            let state = self.state();
            state.settled.contains_key(key) && !state.wanted.is_doubted(key)
        };
        let learnt = learn::learn(key, letters, settled, &mut |key: &Key, asking: Asking| {
            self.take_turn(due);
            asker.ask_key(key, asking, PATIENCE)
        })?;
        let mut alone = !learnt.parts.unread;
        for name in &learnt.parts.names {
            let home = self.home(asker, server, name, due)?;
            alone &= home.as_ref() == Some(&apex);
        }
        let guess = self.is_guess(asker, key, &learnt, &apex, due);
        if alone {
            return Ok(Found { learnt, zone: own, edition, guess });
        }
        // The zones of these names may have been watched only from now on.
        let edition = before.1.ok_or(Unfit::Changing)?;
        Ok(Found { learnt, zone: all, edition, guess })
    }

    /// Whether anybody may have thought of the name: it does not exist, or is a wildcard's, as one that nobody can know is.
    fn is_guess(
        &self,
        asker: &mut Asker,
        key: &Key,
        learnt: &Learnt,
        apex: &[u8],
        due: &mut Instant,
    ) -> bool {
        let Learnt { tail, parts, .. } = learnt;
        if tail.is_nxdomain() || parts.expanded {
            return true;
        }
        let above = key::parent(&key.name).filter(|above| key::is_below(above, apex));
        let Some(above) = above else { return false };
        let like = |name: &[u8]| key::key(name, key.kind, key.bits, key.server);
        // As long as the label of the name, because pointers count bytes.
        let label = usize::from(key.name.first().copied().unwrap_or(0));
        let of = |letters: &[u8]| like(&[&[label as u8], letters, above].concat());
        let Some(place) = of(&vec![0x80; label]) else { return false };
        let known = self.state().strangers.get(&place).cloned();
        let found = known.unwrap_or_else(|| {
            let letters: Vec<u8> = (0..label).map(|_| asker.random() as u8 | 0x80).collect();
            self.take_turn(due);
            let told = of(&letters).and_then(|stranger| {
                let told = asker.ask_key(&stranger, PLAIN, PATIENCE)?;
                Tail::of(&stranger, &told).ok().filter(|tail| !tail.is_nxdomain())
            });
            let mut state = self.state();
            if state.strangers.len() >= HOMES {
                state.strangers.clear();
            }
            state.strangers.insert(place, told.clone());
            told
        });
        // The proofs of a signed zone differ from name to name.
        found.is_some_and(|found| found == *tail || tail.has_no_answer())
    }

    /// The zone of a name on this server, which is watched from now on.
    fn home(
        &self,
        asker: &mut Asker,
        server: u32,
        name: &[u8],
        due: &mut Instant,
    ) -> Result<Option<Vec<u8>>, Unfit> {
        if let Some(known) = self.state().homes.get(&(server, name.to_vec())) {
            return Ok(known.clone());
        }
        let mut found = None;
        let mut rest = Some(name);
        while let Some(asked) = rest {
            self.take_turn(due);
            match asker.ask_soa(asked, PATIENCE) {
                Ok(Soa::Of { apex, .. }) => {
                    found = Some(apex);
                    break;
                }
                Ok(Soa::None) => rest = key::parent(asked),
                Err(_) => return Err(Unfit::Silence),
            }
        }
        let mut state = self.state();
        if let Some(apex) = &found
            && !state.zones.watch(server, apex)
        {
            return Err(Unfit::Full);
        }
        if state.homes.len() >= HOMES {
            state.homes.clear();
        }
        state.homes.insert((server, name.to_vec()), found.clone());
        Ok(found)
    }

    /// Confirms the next pinned answer of the round: some things change without a serial.
    fn confirm_one(&self, askers: &mut [Asker], due: &mut Instant) {
        let next = self.state().pins.next_of_round(monotonic_ns());
        let Some((key, pin, over)) = next else {
            return std::thread::sleep(Duration::from_millis(5));
        };
        let Some(asker) = askers.get_mut(key.server as usize) else { return };
        if over {
            self.take_back(&key, &pin);
            return;
        }
        self.take_turn(due);
        let buffer = 4096 - (asker.random() & 0xff) as u16;
        let mut ask = |key: &Key, asking: Asking| asker.ask_key(key, asking, PATIENCE);
        match learn::confirm(&key, &pin.tail, buffer, &mut ask) {
            Ok(()) => self.state().confirmed += 1,
            Err(Unfit::Silence) => {} // the lease sees to that
            Err(_) if self.take_back(&key, &pin) => {
                let mut state = self.state();
                state.changed += 1;
                state.settled.remove(&key);
                state.wanted.want(key);
                state.poll_at_once = true;
                self.wake.notify_all();
            }
            Err(_) => {}
        }
    }

    /// False: it is not pinned any more, or another one is.
    fn take_back(&self, key: &Key, pin: &Pin) -> bool {
        let mut state = self.state();
        let same = state.pins.is_pinned(key, pin);
        if same {
            self.unpin(&mut state, key, monotonic_ns());
        }
        same
    }

    // --- orders ---

    /// Takes back the answers for a name, or for all names at and below it. Returns how many they were.
    pub(super) fn purge(&self, name: &[u8], below: bool) -> usize {
        let mut state = self.state();
        let now = monotonic_ns();
        let purged = state.pins.choose(|key, _| is_purged(key, name, below));
        for key in &purged {
            self.unpin(&mut state, key, now);
            state.settled.remove(key);
        }
        state.homes.clear();
        state.strangers.clear();
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
