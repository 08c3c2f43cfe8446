//! Other machines that keep answers: how this cache asks them, and is asked.
//!
//! A question is the request of the client, without what is about its connection, and with a line of its own. The cache knows
//! neither the line nor the machines: [`Peers`] does. An answer without the proof that belongs to the question comes from a stranger.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use afpa_proxy::exchange::Settings;
use afpa_proxy::select::Group;

/// The machines that keep answers for one another.
pub trait Peers: Send + Sync {
    /// The machine to ask for the answer with a key, of the place with these rules. `None`: a server is asked.
    fn choose(&self, place: &[u8; 16], key: &[u8]) -> Option<ToPeer>;

    /// Reads the question in a head.
    ///
    /// # Errors
    /// When there is none, or it is not answered.
    fn read(&self, head: &[u8]) -> Result<FromPeer, NoQuestion>;

    /// The hash of a key, the same on each machine.
    fn key(&self, place: &[u8; 16], key: &[u8]) -> u64;

    /// Counts a question for this key that was answered, or refused.
    fn served(&self, key: u64, is_answered: bool);
}

/// The machine to ask.
pub struct ToPeer {
    /// The machine, as a group of one server.
    pub group: Arc<Group>,
    /// Time-outs and limits towards it.
    pub settings: Arc<Settings>,
    /// Whether this machine keeps the answer as well.
    pub keeps: bool,
    /// The question.
    pub question: Box<dyn PeerQuestion>,
}

/// A question to another machine.
pub trait PeerQuestion {
    /// Appends the question to a complete head. `false`: it cannot be asked.
    fn put(&mut self, client: PeerClient, head: &mut Vec<u8>) -> bool;

    /// Whether a field is the proof that the other machine has answered it.
    fn is_proof(&self, name: &[u8], value: &[u8]) -> bool;

    /// Whether the other machine was heard just now.
    fn is_there(&self) -> bool;

    /// Counts it.
    fn ended(&self, end: PeerEnd);
}

/// The end of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerEnd {
    /// It was answered.
    Answered,
    /// It was refused: the other machine has other rules for the place, or another key.
    Differs,
    /// It was refused for another reason, which may be over soon.
    Refused,
    /// There was no answer.
    Failed,
}

/// Why the head of another machine is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoQuestion {
    /// It is none.
    Strange,
    /// It comes from a machine that is farther with orders to purge.
    Behind,
}

/// The client for whom another machine is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerClient {
    /// Its address; none for one on a unix socket.
    pub address: Option<IpAddr>,
    /// Whether its connection is one of TLS.
    pub secure: bool,
}

/// A question of another machine.
#[derive(Clone, Debug)]
pub struct FromPeer {
    /// The digest of the rules of the place.
    pub place: [u8; 16],
    /// The hash of the key.
    pub key: u64,
    /// The client of the other machine.
    pub client: PeerClient,
    /// The lines of the answer that prove who has given it.
    pub proof: Arc<[u8]>,
}

impl fmt::Debug for ToPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToPeer").field("group", &self.group.name()).finish_non_exhaustive()
    }
}
