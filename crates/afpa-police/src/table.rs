//! The buckets of all clients: sets of a few words, found by a hash of the client's prefix.
//!
//! A client takes the word of its set that has its tag, else the word with the fullest bucket: a full bucket is equal
//! to a new one, so nothing is forgotten before a set has more active clients than words. The layout is that of the
//! kernel's map, whose words the kernel and user mode share.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use afpa_abi::{
    HASH_PRIME, POLICE_CLASSES, POLICE_EVERYBODY, POLICE_SETS, POLICE_TIME_BITS, POLICE_WAYS,
    address_bytes,
};

use crate::bucket::{Pace, tag};
use crate::prefix::Prefix;

/// The use of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A new connection.
    Connection,
    /// A request.
    Request,
}

/// Where the words behind those of clients begin: two buckets of everybody's, of a set that has room for more.
const EVERYBODY: usize = 2 * POLICE_SETS * POLICE_WAYS;
/// The buckets of the classes' shares.
const SHARES: usize = EVERYBODY + POLICE_WAYS;
/// How often a connection of each class was refused.
const REFUSED: usize = SHARES + POLICE_CLASSES;

/// The words of a whole table: both kinds of sets, everybody's buckets, those of the classes, and their counts.
pub const fn words_of_table() -> usize {
    REFUSED + POLICE_CLASSES
}

/// How often the class was refused.
pub(crate) fn refused_of(table: &[AtomicU64], class: u32) -> Option<&AtomicU64> {
    table.get(REFUSED..)?.get(class as usize)
}

/// A class, and its share of the rate of all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) class: u32,
    pub(crate) pace: Pace,
}

/// Which bits of an address make a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Masks([u64; 4]);

impl Masks {
    pub(crate) fn new(ipv4_bits: u8, ipv6_bits: u8) -> Self {
        let every = |bits: u8, v4: bool| {
            let all: IpAddr = if v4 { [255; 4].into() } else { [255; 16].into() };
            words(Prefix::of(all, bits).address())
        };
        let (v4, v6) = (every(ipv4_bits, true), every(ipv6_bits, false));
        Self([v4[0], v4[1], v6[0], v6[1]])
    }

    /// Two words for IPv4, two for IPv6, as they lie in memory.
    pub fn words(self) -> [u64; 4] {
        self.0
    }
}

fn words(address: IpAddr) -> [u64; 2] {
    let bytes = u128::from_ne_bytes(address_bytes(address)).to_ne_bytes();
    let word = |at: usize| bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok());
    [0, 8].map(|at| u64::from_ne_bytes(word(at).unwrap_or_default()))
}

/// The hash of a client.
pub(crate) fn hash(seed: u64, client: IpAddr, masks: Masks) -> u64 {
    let [v4_first, v4_second, v6_first, v6_second] = masks.0;
    let masks = if client.is_ipv4() { [v4_first, v4_second] } else { [v6_first, v6_second] };
    let [first, second] = words(client);
    mix(mix(seed, first & masks[0]), second & masks[1])
}

fn mix(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(HASH_PRIME);
    hash ^ hash >> 32
}

/// Takes a token of the client's bucket, then one of everybody's: from the share of the client's class if it has a
/// token, else from the rest. The first bucket without a token refuses; `Err(true)`: the client's own.
pub(crate) fn take(
    table: &[AtomicU64],
    what: What,
    hash: u64,
    now: u64,
    [own, all]: [Pace; 2],
    share: Option<Share>,
) -> Result<(), bool> {
    if own.limits() && !take_own(table, what, hash, now, own) {
        return Err(true);
    }
    let Some(word) = table.get(EVERYBODY + place(what)).filter(|_| all.limits()) else {
        return Ok(());
    };
    if share.is_some_and(|share| take_share(table, share, now)) {
        all.charge(word, POLICE_EVERYBODY as u64, now);
        return Ok(());
    }
    if all.take(word, POLICE_EVERYBODY as u64, now) { Ok(()) } else { Err(false) }
}

fn take_share(table: &[AtomicU64], Share { class, pace }: Share, now: u64) -> bool {
    let shares = table.get(SHARES..REFUSED);
    let word = shares.and_then(|shares| shares.get(class as usize)).filter(|_| pace.limits());
    word.is_some_and(|word| pace.take(word, POLICE_EVERYBODY as u64, now))
}

fn place(what: What) -> usize {
    match what {
        What::Connection => 0,
        What::Request => 1,
    }
}

/// The set of a client, and its tag there.
pub(crate) fn locate(what: What, hash: u64) -> (usize, u64) {
    let set = place(what) * POLICE_SETS + hash as usize % POLICE_SETS;
    (set, hash >> POLICE_TIME_BITS | 1)
}

fn take_own(table: &[AtomicU64], what: What, hash: u64, now: u64, pace: Pace) -> bool {
    let (set, tag_of_client) = locate(what, hash);
    let set = table.get(set * POLICE_WAYS..).and_then(|rest| rest.get(..POLICE_WAYS));
    let word = set.and_then(|set| word_of(set, tag_of_client, now, pace));
    word.is_none_or(|word| pace.take(word, tag_of_client, now))
}

/// Its own word, or the first of the fullest.
fn word_of(set: &[AtomicU64], tag_of_client: u64, now: u64, pace: Pace) -> Option<&AtomicU64> {
    let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
    let own = set.iter().find(|word| tag(read(word)) == tag_of_client);
    own.or_else(|| set.iter().min_by_key(|word| pace.missing(read(word), now)))
}
