//! Machines that ask one another for answers: who is asked for which, and which questions are answered.
//!
//! ```text
//! a miss ── PeersView::choose ──> this machine asks its own server
//!                           └───> Choice: PeerKey::ask, and the question goes to another machine
//! a question ── PeersView::read ──> it is answered, as far as this machine is with orders to purge
//! ```
//!
//! Each second a machine counts what it has answered for others, says so in its heartbeats, and reads theirs (`tick_peers`).
//! The decisions are those of `owners`.

mod question;

use std::hash::Hasher as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;

use crate::follower::{Log, Position};
use crate::message::PeerWord;
use crate::owners::{Decision, Footing, Heat, Owner, Roster, Shed};
use crate::seal::Secret;
use crate::state::Shared;
pub use question::{ANSWER, PeerKey, Proof, QUESTION, Question};

/// A machine that was not heard for so long is not asked.
pub(crate) const SILENT: Duration = Duration::from_millis(2500);

/// The part of this machine among those that ask one another.
#[derive(Debug)]
pub(crate) struct Peers {
    /// Where the others ask it.
    address: SocketAddr,
    key: PeerKey,
    hash: (u64, u64),
    table: RwLock<Arc<Table>>,
    /// What this machine tells of itself.
    telling: Mutex<Telling>,
    counts: Counters,
}

/// All of them, as this machine knows them.
#[derive(Debug, Default)]
struct Table {
    roster: Roster,
    others: Vec<Arc<Peer>>,
}

/// Another machine.
#[derive(Debug)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// The random word of its process.
    pub instance: String,
    /// Where it is asked.
    pub address: SocketAddr,
    /// When it was heard, in milliseconds since the fleet was begun.
    heard_ms: AtomicU64,
}

#[derive(Debug)]
struct Telling {
    heat: Heat,
    shed: Shed,
    /// Questions that it had answered at the last reading, and when that was.
    read: (u64, Duration),
}

#[derive(Debug, Default)]
struct Counters {
    asked: [AtomicU64; 3],
    answered: [AtomicU64; 3],
}

/// The questions of this machine to others, and of others to it, since its fleet was begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerCounts {
    /// Machines that ask one another, this one included, as it knows them.
    pub machines: u64,
    /// Its own that were answered.
    pub answered: u64,
    /// Its own that were refused: the other machine has other rules, or is not as far with orders to purge.
    pub refused: u64,
    /// Its own that got no answer.
    pub failed: u64,
    /// Those of others that it has answered, or asked its server for.
    pub served: u64,
    /// Those of others that it has refused.
    pub turned_away: u64,
    /// Requests at its address that are no questions of a machine of the fleet.
    pub strange: u64,
}

/// The end of a question of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// It was answered.
    Answered,
    /// It was refused.
    Refused,
    /// There was no answer.
    Failed,
}

/// The end of a question of another machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serving {
    /// It was answered, or a server is asked for it.
    Served,
    /// It was refused.
    TurnedAway,
    /// It was none.
    Strange,
}

/// The machines that ask one another, for the workers.
#[derive(Clone, Debug)]
pub struct PeersView(pub(crate) Arc<Shared>);

/// The machine to ask, and what it is asked for.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The machine.
    pub peer: Arc<Peer>,
    /// Whether this machine keeps the answer as well.
    pub keeps: bool,
    key: u64,
    at: Position,
}

impl Peers {
    pub(crate) fn new(address: SocketAddr, secret: &Secret) -> Self {
        let seed = secret.derive::<16>("keys of peers");
        let halves = u128::from_be_bytes(seed);
        let telling = Telling {
            heat: Heat::new(Duration::ZERO),
            shed: Shed::default(),
            read: (0, Duration::ZERO),
        };
        Self {
            address,
            key: PeerKey::of(secret),
            hash: ((halves >> 64) as u64, halves as u64),
            table: RwLock::default(),
            telling: Mutex::new(telling),
            counts: Counters::default(),
        }
    }

    fn served(&self) -> u64 {
        self.counts.answered[Serving::Served as usize].load(Ordering::Relaxed)
    }

    fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shared {
    /// Tells of this machine in the next heartbeats, and takes in what the others have told: once a second.
    pub(crate) fn tick_peers(&self) {
        let Some(peers) = &self.peers else { return };
        let now = self.now();
        let mut state = self.lock();
        let own = state.beat.instance.clone();
        let mut others = state.members.peers(now);
        others.retain(|(beat, _)| beat.instance != own && beat.name != state.beat.name);
        let rates = others.iter().filter_map(|(beat, _)| Some(beat.peer.as_ref()?.rate));
        let rates: u64 = rates.sum();
        let machines = others.len() + 1;
        let word = peers.tell((rates, machines), now);
        let owner = |name: &str, word: &PeerWord| Owner {
            name: name.to_owned(),
            shed: word.shed,
            hot: word.hot.clone(),
        };
        let mut owners: Vec<Owner> = others
            .iter()
            .filter_map(|(beat, _)| Some(owner(&beat.name, beat.peer.as_ref()?)))
            .collect();
        owners.push(owner(&state.beat.name, &word));
        let name = state.beat.name.clone();
        // A process that has handed over keeps nothing for others any more.
        let is_there = !state.beat.hands_over && !state.beat.leaves;
        state.beat.peer = is_there.then_some(word);
        let others = others.into_iter().filter_map(|(beat, heard)| {
            Some(Arc::new(Peer {
                name: beat.name,
                instance: beat.instance,
                address: beat.peer?.address,
                heard_ms: AtomicU64::new(millis(heard)),
            }))
        });
        let others = others.collect();
        drop(state);
        let roster = if is_there { Roster::new(&name, owners) } else { Roster::default() };
        let table = Arc::new(Table { roster, others });
        *peers.table.write().unwrap_or_else(PoisonError::into_inner) = table;
    }

    /// A process of the fleet has said something.
    pub(crate) fn heard_peer(&self, instance: &str) {
        let Some(peers) = &self.peers else { return };
        let now = millis(self.now());
        if let Some(peer) = peers.table().others.iter().find(|peer| peer.instance == instance) {
            peer.heard_ms.store(now, Ordering::Relaxed);
        }
    }

    /// How far this machine is with orders to purge.
    pub(crate) fn footing(&self) -> Footing {
        let state = self.lock();
        Footing {
            at: state.beat.purges,
            logged: state.orders.logged(),
            waits: state.orders.waits(Log::Purges),
        }
    }
}

impl Peers {
    /// The words of this machine, while the others have answered so many questions in a second.
    fn tell(&self, (rates, machines): (u64, usize), now: Duration) -> PeerWord {
        let served = self.served();
        let mut telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, then) = telling.read;
        let seconds = now.saturating_sub(then).as_secs_f64().max(0.001);
        let rate = served.saturating_sub(before) as f64 / seconds;
        telling.read = (served, now);
        let mean = (rates as f64 + rate) / machines as f64;
        let hot = telling.heat.read(mean, machines, now);
        let shed = telling.shed.read(rate, mean);
        PeerWord { address: self.address, rate: rate as u64, shed, hot }
    }
}

impl PeersView {
    fn peers(&self) -> Option<&Peers> {
        self.0.peers.as_ref()
    }

    /// The hash of a key at a place, the same on each machine.
    pub fn key(&self, place: &[u8; 16], key: &[u8]) -> u64 {
        let (one, two) = self.peers().map_or((0, 0), |peers| peers.hash);
        let mut hasher = SipHasher13::new_with_keys(one, two);
        hasher.write(place);
        hasher.write(key);
        hasher.finish()
    }

    /// The machine to ask for an answer that this one does not have. `None`: this one asks its own server.
    pub fn choose(&self, place: &[u8; 16], key: &[u8]) -> Option<Choice> {
        let table = self.peers()?.table();
        let key = self.key(place, key);
        let Decision::Ask { name, keeps } = table.roster.decide(key) else { return None };
        let peer = table.others.iter().find(|peer| peer.name == name)?;
        let at = self.0.footing().asks()?;
        self.is_there(peer).then(|| Choice { peer: Arc::clone(peer), keeps, key, at })
    }

    /// Whether a machine was heard just now.
    pub fn is_there(&self, peer: &Peer) -> bool {
        let heard = peer.heard_ms.load(Ordering::Relaxed);
        let now = millis(self.0.now());
        // The entry of a machine that was heard since is another one.
        now.saturating_sub(heard) < millis(SILENT)
            || self.peers().is_some_and(|peers| {
                let table = peers.table();
                let same = table.others.iter().find(|other| other.instance == peer.instance);
                let heard = same.map(|same| same.heard_ms.load(Ordering::Relaxed));
                heard.is_some_and(|heard| now.saturating_sub(heard) < millis(SILENT))
            })
    }

    /// Puts the question to the chosen machine behind a head that is complete. Returns the proof that its answer has.
    pub fn ask(
        &self,
        choice: &Choice,
        place: &[u8; 16],
        (client, secure): (Option<IpAddr>, bool),
        head: &mut Vec<u8>,
    ) -> Option<Proof> {
        let Choice { peer, key, at, .. } = choice;
        let question = Question { place: *place, key: *key, at: *at, client, secure };
        Some(self.peers()?.key.ask(&peer.instance, &question, unix_ms(), head))
    }

    /// Reads the question in a head. `None`: it is none, or this machine is not as far with orders to purge.
    pub fn read(&self, head: &[u8]) -> Option<(Question, Proof)> {
        let peers = self.peers()?;
        let own = self.0.instance();
        let Some((question, proof)) = peers.key.read(own, unix_ms(), head) else {
            self.note_served(Serving::Strange);
            return None;
        };
        if !self.0.footing().answers(question.at) {
            self.note_served(Serving::TurnedAway);
            return None;
        }
        Some((question, proof))
    }

    /// A question for this key is answered.
    pub fn used(&self, key: u64) {
        if let Some(peers) = self.peers() {
            let mut telling = peers.telling.lock().unwrap_or_else(PoisonError::into_inner);
            telling.heat.used(key);
        }
        self.note_served(Serving::Served);
    }

    /// Counts a question of this machine.
    pub fn note_asked(&self, end: Asking) {
        if let Some(peers) = self.peers() {
            peers.counts.asked[end as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a question of another machine.
    pub fn note_served(&self, end: Serving) {
        if let Some(peers) = self.peers() {
            peers.counts.answered[end as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The names of the machines that keep the answer for a key, the one first that is asked.
    pub fn owners(&self, place: &[u8; 16], key: &[u8]) -> Vec<String> {
        let Some(peers) = self.peers() else { return Vec::new() };
        let (table, key) = (peers.table(), self.key(place, key));
        table.roster.owners(key).into_iter().map(str::to_owned).collect()
    }
}

impl Peers {
    pub(crate) fn counts(&self) -> PeerCounts {
        let get = |counters: &[AtomicU64; 3]| counters.each_ref().map(|c| c.load(Ordering::Relaxed));
        let [answered, refused, failed] = get(&self.counts.asked);
        let [served, turned_away, strange] = get(&self.counts.answered);
        let machines = self.table().others.len() as u64 + 1;
        PeerCounts { machines, answered, refused, failed, served, turned_away, strange }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn unix_ms() -> u64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}
