//! Machines that ask one another for answers.
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
mod refusals;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::message::PeerWord;
use crate::owners::{Heat, Roster, Shed};
use crate::seal::Secret;
pub use question::{ANSWER, PeerKey, Proof, QUESTION, Question};
pub use refusals::{Refusal, Refusals};

/// The part of this machine among those that ask one another.
#[derive(Debug)]
pub(crate) struct Peers {
    /// Where the others ask it.
    address: SocketAddr,
    pub(crate) key: PeerKey,
    pub(crate) hash: (u64, u64),
    pub(crate) table: RwLock<Arc<Table>>,
    /// The words of this machine about itself.
    pub(crate) telling: Mutex<Telling>,
    pub(crate) counts: Counters,
}

/// All of them, as this machine knows them.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) roster: Roster,
    pub(crate) others: Vec<Arc<Peer>>,
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
    pub(crate) heard_ms: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct Telling {
    pub(crate) heat: Heat,
    shed: Shed,
    /// Questions that it had answered at the last reading, and when that was.
    read: (u64, Duration),
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) asked: [AtomicU64; 3],
    pub(crate) answered: [AtomicU64; 3],
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

    pub(crate) fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Peers {
    /// The words of this machine, while the others have answered so many questions in a second.
    pub(crate) fn tell(&self, (rates, machines): (u64, usize), now: Duration) -> PeerWord {
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

impl Peers {
    pub(crate) fn counts(&self) -> PeerCounts {
        let get =
            |counters: &[AtomicU64; 3]| counters.each_ref().map(|c| c.load(Ordering::Relaxed));
        let [answered, refused, failed] = get(&self.counts.asked);
        let [served, turned_away, strange] = get(&self.counts.answered);
        let machines = self.table().others.len() as u64 + 1;
        PeerCounts { machines, answered, refused, failed, served, turned_away, strange }
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
