//! Learning: the server is asked for what clients asked for, and again for what is pinned. Many questions are asked at a time, as a server
//! that clients keep busy answers each of them late; how many in a second is the operator's word.

use std::cell::Cell;
use std::time::{Duration, Instant};

use afpa_bpf::monotonic_ns;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::{sleep, sleep_until};

use super::answer::{Exchange, Parts, Tail, Unfit};
use super::ask::{Asker, Reply, Soa};
use super::engine::{Engine, State};
use super::key::{self, Hash, Key};
use super::learn::{self, Asking, Learnt, PLAIN};
use super::pins::Pin;
use super::timer::rest_behind;
use super::wanted::Verdict;
use super::zones::ZoneName;

/// An answer that may be pinned.
struct Found {
    learnt: Learnt,
    /// The zone, or all of the server's, on which it depends, and its edition.
    zone: ZoneName,
    edition: u32,
    /// Anybody may have thought of its name.
    guess: bool,
}

/// Something to ask about.
enum Work {
    Learn(Key),
    /// A pinned answer of the round; some things change without a serial.
    Confirm(Key, Pin),
}

/// Questions of clients that are asked about at a time.
const AT_ONCE: usize = 64;
/// A question that is not answered is asked so often.
const TRIES: u32 = 4;
/// So much of the pace may be caught up with: timers and busy processors are not exact.
const BEHIND: Duration = Duration::from_millis(20);
/// Between two looks for something to ask about.
const LOOK: Duration = Duration::from_millis(5);
/// Answers that are ended between two looks at most: others wait for the lock.
const ENDED_AT_ONCE: usize = 256;
/// When a question is asked again whose zone has just changed, or is not known yet.
const SOON: u64 = 250_000_000;
/// Names whose zones are remembered.
const HOMES: usize = 65_536;

impl Engine {
    /// Asks until the end.
    pub(super) async fn learn(&self, askers: Vec<Asker>) {
        let now = Instant::now();
        let (due, rested) = (Cell::new(now), Cell::new(Some(now)));
        let learner = Learner { engine: self, askers, due, rested };
        learner.run().await;
    }
}

/// The thread that asks.
struct Learner<'e> {
    engine: &'e Engine,
    askers: Vec<Asker>,
    /// The turn of the last question that was given one.
    due: Cell<Instant>,
    /// When the next pinned answer may be asked for again; None: one is being asked for.
    rested: Cell<Option<Instant>>,
}

impl Learner<'_> {
    async fn run(&self) {
        let mut running = FuturesUnordered::new();
        while !self.engine.is_ended() {
            self.end_old();
            // Where the pace is what all wait for, more at a time would only be known later.
            while running.len() < AT_ONCE
                && self.due.get() <= Instant::now()
                && let Some(work) = self.next()
            {
                running.push(self.work(work));
            }
            let now = Instant::now();
            let rested = self.rested.get().filter(|rested| *rested > now);
            let look = rested.map_or(now + LOOK, |rested| rested.min(now + LOOK));
            let look = look.max(self.due.get());
            tokio::select! {
                Some(()) = running.next() => {}
                () = sleep_until(look.into()) => {}
            }
        }
    }

    fn next(&self) -> Option<Work> {
        let mut state = self.engine.state();
        let now = monotonic_ns();
        if let Some(key) = state.wanted.next(now) {
            return Some(Work::Learn(key));
        }
        self.rested.get().filter(|rested| *rested <= Instant::now())?;
        let (key, pin) = state.pins.next_of_round(now)?;
        self.rested.set(None);
        Some(Work::Confirm(key, pin))
    }

    /// Ends answers that are too old. That needs no question, so it waits neither for the round nor for its rests.
    fn end_old(&self) {
        let mut state = self.engine.state();
        let now = monotonic_ns();
        for _ in 0..ENDED_AT_ONCE {
            let Some(key) = state.pins.next_over(now) else { break };
            self.engine.unpin(&mut state, &key, now);
        }
    }

    async fn work(&self, work: Work) {
        match work {
            Work::Learn(key) => {
                self.learn_one(&key).await;
                self.engine.state().wanted.done(&key);
            }
            Work::Confirm(key, pin) => {
                let begun = Instant::now();
                self.confirm_one(&key, &pin).await;
                let ended = Instant::now();
                self.rested.set(Some(ended + rest_behind(ended - begun)));
            }
        }
    }

    /// Waits for the turn of the next question.
    async fn take_turn(&self) {
        self.engine.count_question();
        let now = Instant::now();
        let gap = Duration::from_secs(1) / self.engine.settings.rate.max(1);
        let behind = now.checked_sub(BEHIND.max(gap * 4)).unwrap_or(now);
        let turn = (self.due.get() + gap).max(behind);
        self.due.set(turn);
        if turn > now {
            sleep(turn - now).await;
        }
    }

    /// Asks, each time in turn, until the server answers or is given up.
    async fn ask<T>(&self, mut once: impl AsyncFnMut() -> Reply<T>) -> Option<T> {
        for _ in 0..TRIES {
            self.take_turn().await;
            match once().await {
                Reply::Answer(answer) => return Some(answer),
                Reply::Silence => {}
                Reply::Closed => break,
            }
        }
        None
    }

    async fn ask_key(&self, asker: &Asker, key: &Key, asking: Asking) -> Option<Exchange> {
        self.ask(async || asker.ask_key(key, asking).await).await
    }

    async fn learn_one(&self, key: &Key) {
        let Some(asker) = self.askers.get(key.server as usize) else { return };
        let purges = self.engine.state().purges;
        let outcome = self.ask_all(asker, key).await;
        let now = monotonic_ns();
        let state = &mut self.engine.state();
        if state.purges != purges {
            return state.wanted.want(key.clone());
        }
        match outcome {
            Ok(found) => self.judge(state, key, found, now),
            Err(Unfit::Changing) => state.wanted.want_at(key.clone(), now + SOON),
            Err(why) => {
                state.settling.remove(key);
                state.wanted.leave(key.clone(), why, now);
            }
        }
    }

    /// Pins an answer, if it is time.
    fn judge(&self, state: &mut State, key: &Key, found: Found, now: u64) {
        let Found { learnt, zone, edition, guess } = found;
        let verdict = state.wanted.judge(key, &learnt.tail, edition, now);
        match verdict {
            Verdict::Undoubted => {}
            Verdict::FalseAlarm => state.false_alarms += 1,
            Verdict::NewEdition => state.changed += 1,
            Verdict::Changed | Verdict::Barred => {
                state.changed += 1;
                state.settled.forget(key, &learnt.parts.sets);
            }
        }
        if verdict == Verdict::Barred {
            return state.wanted.leave(key.clone(), Unfit::Barred, now);
        }
        let sets = &learnt.parts.sets;
        state.settled.see(key, sets);
        if sets.are_several() && !state.settled.have(key, sets) {
            let settle = self.engine.settings.settle.as_nanos() as u64;
            let (since, before) =
                state.settling.entry(key.clone()).or_insert_with(|| (now, learnt.clone())).clone();
            if before.tail != learnt.tail {
                state.settling.remove(key);
                return state.wanted.leave(key.clone(), Unfit::Unstable, now);
            }
            if now.saturating_sub(since) < settle {
                let again = now + settle.div_ceil(3).max(1_000_000);
                return state.wanted.want_at(key.clone(), again);
            }
            state.settled.add(key, sets);
        }
        state.settling.remove(key);
        if state.zones.edition(&zone) != Some(edition) {
            return state.wanted.want_at(key.clone(), now + SOON);
        }
        if let Err(why) = self.pin(state, key, (&learnt, guess), edition, now) {
            state.wanted.leave(key.clone(), why, now);
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
        let engine = self.engine;
        engine.unpin(state, key, now);
        let hash = Hash::of(key, &engine.seed);
        let added = state.pins.add((key.clone(), hash), (&learnt.tail, guess), edition, now);
        let given = added?;
        let path = &engine.path;
        let word = hash.word(given.number, edition, learnt.rule);
        let tail =
            given.tail.map_or(Ok(()), |(number, tail)| path.put_tail(number, &tail.to_abi()));
        let patch = || given.patch.map_or(Ok(()), |patch| path.put_patch(given.place, patch));
        let written = tail.and_then(|()| patch());
        written.and_then(|()| path.pin(given.place, hash.check, word)).map_err(|_| {
            engine.unpin(state, key, now);
            Unfit::Full
        })
    }

    /// Everything that is asked about a question: its zones first, so that a change meanwhile is seen.
    async fn ask_all(&self, asker: &Asker, key: &Key) -> Result<Found, Unfit> {
        let server = key.server;
        let apex = self.home(asker, server, &key.name).await?.ok_or(Unfit::NoZone)?;
        let own = (server, Some(apex.clone()));
        let all = (server, None);
        let before = {
            let zones = &self.engine.state().zones;
            (zones.edition(&own), zones.edition(&all))
        };
        let settled = |parts: &Parts| {
            let state = self.engine.state();
            state.settled.have(key, &parts.sets) && !state.wanted.is_doubted(key)
        };
        let edition = before.0.ok_or(Unfit::Changing)?;
        let mut ask = async |key: &Key, asking: Asking| self.ask_key(asker, key, asking).await;
        let learnt = match learn::learn(key, asker.random(), settled, &mut ask).await {
            Err(why) => return Err(self.reason(&own, edition, why).await),
            Ok(learnt) => learnt,
        };
        let mut alone = !learnt.parts.unread;
        for name in &learnt.parts.names {
            let home = self.home(asker, server, name).await?;
            alone &= home.as_ref() == Some(&apex);
        }
        let guess = self.is_guess(asker, key, &learnt, &apex).await;
        if alone {
            return Ok(Found { learnt, zone: own, edition, guess });
        }
        // The zones of these names may have been watched only from now on.
        let edition = before.1.ok_or(Unfit::Changing)?;
        Ok(Found { learnt, zone: all, edition, guess })
    }

    /// Why a question cannot be learnt. Answers that differ may be those before a change and those after it, of which polls tell soon.
    async fn reason(&self, zone: &ZoneName, edition: u32, why: Unfit) -> Unfit {
        if !matches!(why, Unfit::Unstable | Unfit::Client) {
            return why;
        }
        let since = monotonic_ns();
        loop {
            {
                let zones = &self.engine.state().zones;
                if zones.edition(zone) != Some(edition) {
                    return Unfit::Changing;
                }
                if zones.last_poll(zone) >= since || monotonic_ns() - since > SOON {
                    return why;
                }
            }
            sleep(LOOK).await;
        }
    }

    /// Whether anybody may have thought of the name: it does not exist, or is a wildcard's, as one that nobody can know is.
    async fn is_guess(&self, asker: &Asker, key: &Key, learnt: &Learnt, apex: &[u8]) -> bool {
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
        let known = self.engine.state().strangers.get(&place).cloned();
        let found = match known {
            Some(known) => known,
            None => {
                let letters: Vec<u8> = (0..label).map(|_| asker.random() as u8 | 0x80).collect();
                let told = self.ask_stranger(asker, of(&letters)).await;
                let mut state = self.engine.state();
                if state.strangers.len() >= HOMES {
                    state.strangers.clear();
                }
                state.strangers.insert(place, told.clone());
                told
            }
        };
        // The proofs of a signed zone differ from name to name.
        found.is_some_and(|found| found == *tail || tail.has_no_answer())
    }

    /// The answer for a name that nobody can know, if such a name exists.
    async fn ask_stranger(&self, asker: &Asker, stranger: Option<Key>) -> Option<Tail> {
        let stranger = stranger?;
        let told = self.ask_key(asker, &stranger, PLAIN).await?;
        Tail::of(&stranger, &told).ok().filter(|tail| !tail.is_nxdomain())
    }

    /// The zone of a name on this server, which is watched from now on.
    async fn home(
        &self,
        asker: &Asker,
        server: u32,
        name: &[u8],
    ) -> Result<Option<Vec<u8>>, Unfit> {
        let changes = {
            let state = self.engine.state();
            if let Some(known) = state.homes.get(&(server, name.to_vec())) {
                return Ok(known.clone());
            }
            state.homes_changed
        };
        let mut found = None;
        let mut rest = Some(name);
        while let Some(asked) = rest {
            match self.ask(async || asker.ask_soa(asked).await).await {
                Some(Soa::Of { apex, .. }) => {
                    found = Some(apex);
                    break;
                }
                Some(Soa::None) => rest = key::parent(asked),
                None => return Err(Unfit::Silence),
            }
        }
        let mut state = self.engine.state();
        if let Some(apex) = &found
            && !state.zones.watch(server, apex)
        {
            return Err(Unfit::Full);
        }
        // Otherwise this is of a time before a change.
        if state.homes_changed == changes {
            if state.homes.len() >= HOMES {
                state.homes.clear();
            }
            state.homes.insert((server, name.to_vec()), found.clone());
        }
        Ok(found)
    }

    /// Asks for a pinned answer again.
    async fn confirm_one(&self, key: &Key, pin: &Pin) {
        let Some(asker) = self.askers.get(key.server as usize) else { return };
        let buffer = 4096 - (asker.random() & 0xff) as u16;
        let mut ask = async |key: &Key, asking: Asking| self.ask_key(asker, key, asking).await;
        let outcome = learn::confirm(key, &pin.tail, buffer, &mut ask).await;
        let mut state = self.engine.state();
        match outcome {
            Ok(()) => state.confirmed += 1,
            Err(Unfit::Silence) => {} // the lease sees to that
            // Unless it is not pinned any more, or another one is.
            Err(_) if state.pins.is_pinned(key, pin) => {
                self.engine.unpin(&mut state, key, monotonic_ns());
                state.changed += 1;
                state.wanted.want(key.clone());
                self.engine.wake.notify_one();
            }
            Err(_) => {}
        }
    }
}
