//! The state that the thread of the fleet and the control socket have in common.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

use crate::configuring::{Asked, ConfigurationLook, Configuring, Outcome};
use crate::folder::LeftQueue;
use crate::follower::{Log, Position};
use crate::members::{MemberLook, Members, Standing};
use crate::message::{Heartbeat, Order};
use crate::orders::{BATCH, Fate, Full, Orders};
use crate::peers::{PeerCounts, Peers};
use crate::records::{Ask, Desk};
use crate::shelf::Shelf;
use crate::window::Window;

/// All of it, and the events that wake the thread.
#[derive(Debug)]
pub(crate) struct Shared {
    began: Instant,
    /// The random word of this process.
    instance: String,
    /// The machines that ask one another; `None`: this one does not.
    pub(crate) peers: Option<Peers>,
    /// The age of the last word at that moment; there is none where nothing was kept from before.
    word_before: Duration,
    state: Mutex<State>,
    /// There was word about orders to purge.
    caught_up: Condvar,
    /// An order waits for a log.
    pub(crate) ordered: [Notify; 2],
    /// A place has moved, or somebody asks: the next heartbeat goes out at once.
    pub(crate) moved: Notify,
    /// An order about the configuration waits.
    pub(crate) asked: Notify,
    /// The thread is to end.
    pub(crate) ends: Notify,
    /// For records.
    pub(crate) desk: Desk,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) members: Members,
    pub(crate) orders: Orders,
    pub(crate) beat: Heartbeat,
    pub(crate) connected: bool,
    /// Another process has the queue.
    pub(crate) is_handed_over: bool,
    /// The orders that the queue on disk has, by the changes until then; `None`: none.
    pub(crate) kept: Option<u64>,
    /// The queue on disk of a process that has handed over.
    pub(crate) left: Option<LeftQueue>,
    /// The servers' reasons for which orders for a log wait.
    pub(crate) held: [Option<String>; 2],
    /// Subjects for which the servers have said that there is no right to them.
    pub(crate) forbidden: VecDeque<String>,
    /// Streams that are not found, and since when.
    pub(crate) absent: BTreeMap<String, Duration>,
    /// Names that two live machines have.
    pub(crate) twins: BTreeSet<String>,
    /// Machines whose clocks are apart from that of this one, and the seconds by which they are ahead.
    pub(crate) clocks: BTreeMap<String, i64>,
    pub(crate) trouble: Option<String>,
    /// Why there are no shared keys.
    pub(crate) key_trouble: Option<String>,
    /// The records that all machines have; `None`: this machine takes none.
    pub(crate) shelf: Option<Shelf>,
    /// Why they do not come.
    pub(crate) record_trouble: Option<String>,
    pub(crate) logs: [LogState; 2],
    pub(crate) counts: Counts,
    pub(crate) configuring: Configuring,
    /// Answers since the configuration of the fleet was taken.
    pub(crate) window: Window,
}

/// A log, as far as this machine knows it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogState {
    /// The number of its last message, when there was the last word about it.
    pub(crate) last: u64,
    pub(crate) word: Option<Duration>,
}

/// The work of this machine for the fleet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Orders to purge.
    pub purges: u64,
    /// Orders to deny.
    pub bans: u64,
    /// Times that everything went, because something was missed.
    pub flushes: u64,
    /// Times that everything became stale, because there was no word for so long.
    pub softened: u64,
    /// Orders that could not be carried out.
    pub failed: u64,
}

/// The fleet, as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetLook {
    /// Whether this machine reaches a server.
    pub connected: bool,
    /// The reason for which it cannot take part.
    pub trouble: Option<String>,
    /// The turn of the shared keys; `None`: this machine has its own.
    #[serde(default)]
    pub keys: Option<u64>,
    /// Why it has not got them.
    #[serde(default)]
    pub key_trouble: Option<String>,
    /// How many records of certificates there are; `None`: this machine takes none.
    #[serde(default)]
    pub certificates: Option<usize>,
    /// Why they do not come.
    #[serde(default)]
    pub certificate_trouble: Option<String>,
    /// Milliseconds since the last word about orders to purge; `None`: there was none yet.
    pub word_ms: Option<u64>,
    /// The number of the last order to purge, as far as it is known.
    pub last_purge: u64,
    /// That of the last order to deny.
    pub last_ban: u64,
    /// Orders that wait for the servers.
    pub waiting: usize,
    /// The work of this machine for the fleet.
    pub counts: Counts,
    /// The members.
    pub members: Vec<MemberLook>,
    /// Names that two live machines have.
    #[serde(default)]
    pub twins: BTreeSet<String>,
    /// Machines whose clocks are apart from that of this one, and the seconds by which they are ahead.
    #[serde(default)]
    pub clocks: BTreeMap<String, i64>,
    /// Questions to other machines and of these; `None`: this machine asks none.
    #[serde(default)]
    pub peers: Option<PeerCounts>,
    /// An order did not reach the servers, so this machine asks no other one.
    #[serde(default)]
    pub asks_nobody: bool,
    /// The configuration of the fleet; `None`: this machine takes none.
    #[serde(default)]
    pub configuration: Option<ConfigurationLook>,
}

/// An order, as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderLook {
    /// Its fate.
    pub fate: Fate,
    /// Whether this machine reaches a server.
    pub connected: bool,
    /// The servers' reason for which it waits.
    #[serde(default)]
    pub held: Option<String>,
    /// The members.
    pub standing: Standing,
}

impl Shared {
    pub(crate) fn new(
        orders: Orders,
        beat: Heartbeat,
        word_before: Duration,
        asks: UnboundedSender<Ask>,
        peers: Option<Peers>,
    ) -> Self {
        let instance = beat.instance.clone();
        let members = Members::new(instance.clone());
        let kept = (orders.count() > 0).then(|| orders.changes());
        let state = State {
            members,
            orders,
            beat,
            connected: false,
            is_handed_over: false,
            kept,
            left: None,
            held: [None, None],
            forbidden: VecDeque::new(),
            absent: BTreeMap::new(),
            twins: BTreeSet::new(),
            clocks: BTreeMap::new(),
            trouble: None,
            key_trouble: None,
            shelf: None,
            record_trouble: None,
            logs: [LogState::default(); 2],
            counts: Counts::default(),
            configuring: Configuring::default(),
            window: Window::default(),
        };
        Self {
            began: Instant::now(),
            instance,
            peers,
            word_before,
            state: Mutex::new(state),
            caught_up: Condvar::new(),
            ordered: [Notify::new(), Notify::new()],
            moved: Notify::new(),
            asked: Notify::new(),
            ends: Notify::new(),
            desk: Desk { asks, changed: Notify::new(), heard: Notify::new() },
        }
    }

    pub(crate) fn instance(&self) -> &str {
        &self.instance
    }

    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take(&self, order: Order) -> Result<u64, Full> {
        let log = order.log();
        let number = self.lock().orders.take(order)?;
        self.ordered[log.index()].notify_one();
        Ok(number)
    }

    pub(crate) fn take_change(&self, order: Order) -> Result<(), Full> {
        let log = order.log();
        self.lock().orders.take_change(order)?;
        self.ordered[log.index()].notify_one();
        Ok(())
    }

    /// The log of purges was found: this machine has still to get as far as its last order.
    pub(crate) fn begin(&self, found: Position) {
        self.lock().orders.begin(found);
    }

    /// Takes an order about the configuration; `None`: no server is reached, or this machine takes none.
    pub(crate) fn ask(&self, asked: Asked) -> Option<u64> {
        let mut state = self.lock();
        let is_able = state.connected && state.beat.takes;
        let number = is_able.then(|| state.configuring.ask(asked));
        drop(state);
        self.asked.notify_one();
        number
    }

    pub(crate) fn outcome(&self, number: u64) -> Option<Outcome> {
        self.lock().configuring.outcome(number)
    }

    /// The place of this machine has moved.
    pub(crate) fn move_to(&self, kind: Log, position: Position) {
        let mut state = self.lock();
        match kind {
            Log::Purges => state.beat.purges = Some(position),
            Log::Bans => state.beat.bans = Some(position),
        }
        let log = state.log(kind);
        log.last = log.last.max(position.sequence);
        drop(state);
        self.moved.notify_one();
        self.caught_up.notify_all();
    }

    /// The servers do not agree on a log: no place in it says anything.
    pub(crate) fn doubt(&self, kind: Log) {
        let mut state = self.lock();
        match kind {
            Log::Purges => state.beat.purges = None,
            Log::Bans => state.beat.bans = None,
        }
        drop(state);
        self.moved.notify_one();
    }

    /// There was word about a log.
    pub(crate) fn word(&self, kind: Log, last: u64) {
        let now = self.now();
        let mut state = self.lock();
        *state.log(kind) = LogState { last, word: Some(now) };
        drop(state);
        self.caught_up.notify_all();
    }

    /// Waits until every order to purge that the fleet had before is carried out, but no longer than `most`.
    pub(crate) fn catch_up(&self, most: Duration) -> bool {
        let lags = |state: &mut State| {
            let log = *state.log(Log::Purges);
            let done = state.beat.purges.map_or(0, |at| at.sequence);
            log.word.is_none() || state.beat.purges.is_none() || done < log.last
        };
        let waited = self.caught_up.wait_timeout_while(self.lock(), most, lags);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Whether this machine has read all that a log has had at a moment since then.
    pub(crate) fn has_read(&self, kind: Log, since: Duration) -> bool {
        let mut state = self.lock();
        let LogState { last, word } = *state.log(kind);
        let at = state.beat.position(kind);
        word.is_some_and(|word| word > since) && at.is_some_and(|at| at.sequence >= last)
    }

    /// The age of the last word about orders to purge.
    pub(crate) fn silence(&self) -> Duration {
        let now = self.now();
        let word = self.lock().log(Log::Purges).word;
        word.map_or(now.saturating_add(self.word_before), |word| now.saturating_sub(word))
    }

    /// This machine's next heartbeat, which it hears itself at once.
    pub(crate) fn next_beat(&self) -> Heartbeat {
        let now = self.now();
        let mut state = self.lock();
        state.beat.number += 1;
        state.beat.clock = unix();
        state.beat.missed = state.members.missed(now);
        let beat = state.beat.clone();
        // Its own word needs no proof; where it takes configurations, those of others about it do.
        state
            .members
            .heard(Heartbeat { proven: beat.takes || beat.peer.is_some(), ..beat.clone() }, now);
        drop(state);
        self.desk.heard.notify_waiters();
        beat
    }

    pub(crate) fn look(&self) -> FleetLook {
        let now = self.now();
        // Its own line has its own place, even between two heartbeats.
        self.next_beat();
        let mut state = self.lock();
        let ms = |since: Duration| u64::try_from(now.saturating_sub(since).as_millis()).ok();
        FleetLook {
            connected: state.connected,
            trouble: state.trouble.clone().or_else(|| state.held.iter().flatten().next().cloned()),
            keys: state.beat.keys,
            key_trouble: state.key_trouble.clone(),
            certificates: state.shelf.as_ref().map(Shelf::count),
            certificate_trouble: state.record_trouble.clone(),
            word_ms: state.log(Log::Purges).word.and_then(ms),
            last_purge: state.log(Log::Purges).last,
            last_ban: state.log(Log::Bans).last,
            waiting: state.orders.count(),
            counts: state.counts,
            members: state.members.look(now),
            twins: state.members.twins(now),
            clocks: state.members.clocks(now),
            peers: self.peers.as_ref().map(Peers::counts),
            asks_nobody: self.peers.is_some() && state.orders.has_lost(),
            configuration: state.configuration(),
        }
    }

    pub(crate) fn order(&self, number: u64) -> Option<OrderLook> {
        let now = self.now();
        self.next_beat();
        let state = self.lock();
        let (order, fate) = state.orders.fate(number)?;
        let standing = match fate {
            Fate::Logged(position) => state.members.standing(order.log(), position, now),
            Fate::Queued | Fate::Refused { .. } => Standing::default(),
        };
        let held = state.held[order.log().index()].clone();
        Some(OrderLook { fate: fate.clone(), connected: state.connected, held, standing })
    }
}

/// The clock of this machine, in seconds since the Unix epoch.
pub(crate) fn unix() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl State {
    /// Whether a server is reached, all records were read, and all machines that are there can have been heard.
    pub(crate) fn reads_records(&self, now: Duration) -> bool {
        let is_read = self.shelf.as_ref().is_some_and(Shelf::is_read);
        is_read && self.connected && self.members.is_settled(now)
    }

    /// The servers have said that there is no right to a subject.
    pub(crate) fn forbid(&mut self, subject: &str) {
        if self.forbidden.len() >= 2 * BATCH {
            self.forbidden.pop_front();
        }
        self.forbidden.push_back(subject.to_owned());
    }

    /// Whether they have said so since the last question.
    pub(crate) fn was_forbidden(&mut self, subject: &str) -> bool {
        let place = self.forbidden.iter().position(|one| one == subject);
        place.and_then(|place| self.forbidden.remove(place)).is_some()
    }

    pub(crate) fn configuration(&self) -> Option<ConfigurationLook> {
        let Configuring { rollout, runs, .. } = &self.configuring;
        let wanted = rollout.as_ref().and_then(|rollout| rollout.wanted(&self.beat.name));
        let look = ConfigurationLook {
            runs: runs.map(|revision| revision.number),
            wanted,
            rollout: rollout.clone(),
        };
        self.beat.takes.then_some(look)
    }

    pub(crate) fn log(&mut self, kind: Log) -> &mut LogState {
        let [purges, bans] = &mut self.logs;
        match kind {
            Log::Purges => purges,
            Log::Bans => bans,
        }
    }
}
