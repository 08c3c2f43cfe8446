//! The peers of this machine, for its workers: the machine that is asked for an answer, and the questions that are answered.

use std::hash::Hasher as _;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use siphasher::sip::SipHasher13;

use crate::follower::{Log, Position};
use crate::members::PEER_SILENT;
use crate::message::PeerWord;
use crate::owners::{Decision, Footing, Owner, Roster};
use crate::peers::{Asking, Peer, Peers, Proof, Question, Serving, Table, millis};
use crate::state::Shared;

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
        // It says so with a proof, as before: nobody speaks for it without.
        state.beat.peer = Some(word);
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
        now.saturating_sub(heard) < millis(PEER_SILENT)
            || self.peers().is_some_and(|peers| {
                let table = peers.table();
                let same = table.others.iter().find(|other| other.instance == peer.instance);
                let heard = same.map(|same| same.heard_ms.load(Ordering::Relaxed));
                heard.is_some_and(|heard| now.saturating_sub(heard) < millis(PEER_SILENT))
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
        Some(self.peers()?.key.ask(&peer.instance, &question, head))
    }

    /// Reads the question in a head.
    ///
    /// # Errors
    /// When it is none, or this machine is not as far with orders to purge.
    pub fn read(&self, head: &[u8]) -> Result<(Question, Proof), Serving> {
        let own = self.0.instance();
        let read = self.peers().and_then(|peers| peers.key.read(own, head));
        let read = match read {
            None => Err(Serving::Strange),
            Some((question, _)) if !self.0.footing().answers(question.at) => {
                Err(Serving::TurnedAway)
            }
            Some(read) => Ok(read),
        };
        read.inspect_err(|end| self.note_served(*end))
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
