//! Limits remember clients in a table that never grows beyond its bound.

use std::collections::HashMap;

use super::bucket::Bucket;
use crate::client::Client as Key;

/// How many entries are examined to find one to forget.
const LOOKED_AT: usize = 16;

/// The use of the limits by one client.
#[derive(Debug, Default)]
pub(super) struct Used {
    pub(super) bucket: Bucket,
    pub(super) in_flight: u32,
    pub(super) connections: u32,
}

#[derive(Debug)]
pub(super) struct Clients {
    most: usize,
    /// Seeded by the system, so that clients cannot make keys collide.
    places: HashMap<Key, usize>,
    entries: Vec<(Key, Used)>,
    /// Where the next search for an entry to forget begins.
    hand: usize,
}

impl Clients {
    pub(super) fn new(most: usize) -> Self {
        Self { most, places: HashMap::new(), entries: Vec::new(), hand: 0 }
    }

    /// The entry of a client; that of a new client is empty. `None` if the client cannot be remembered, because all
    /// entries that it could displace have requests in flight or counted connections.
    pub(super) fn get(&mut self, key: Key, now_us: u64) -> Option<&mut Used> {
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None => self.enter(key, now_us)?,
        };
        self.entries.get_mut(place).map(|(_, used)| used)
    }

    /// A request of the client has ended.
    pub(super) fn leave(&mut self, key: Key) {
        if let Some(used) = self.known(key) {
            used.in_flight = used.in_flight.saturating_sub(1);
        }
    }

    /// A connection of the client has ended.
    pub(super) fn disconnect(&mut self, key: Key) {
        if let Some(used) = self.known(key) {
            used.connections = used.connections.saturating_sub(1);
        }
    }

    fn known(&mut self, key: Key) -> Option<&mut Used> {
        let place = self.places.get(&key)?;
        self.entries.get_mut(*place).map(|(_, used)| used)
    }

    fn enter(&mut self, key: Key, now_us: u64) -> Option<usize> {
        let place = if self.entries.len() < self.most {
            self.entries.push((key, Used::default()));
            self.entries.len() - 1
        } else {
            let place = self.forgettable(now_us)?;
            let old = std::mem::replace(self.entries.get_mut(place)?, (key, Used::default()));
            self.places.remove(&old.0);
            place
        };
        self.places.insert(key, place);
        Some(place)
    }

    /// An entry whose bucket is full, or else the fullest of those examined; never one with requests in flight
    /// or counted connections.
    fn forgettable(&mut self, now_us: u64) -> Option<usize> {
        let mut best: Option<(usize, u64)> = None;
        for _ in 0..LOOKED_AT.min(self.entries.len()) {
            self.hand = (self.hand + 1) % self.entries.len();
            let (_, used) = self.entries.get(self.hand)?;
            if used.in_flight > 0 || used.connections > 0 {
                continue;
            }
            if used.bucket.is_full(now_us) {
                return Some(self.hand);
            }
            let full_at = used.bucket.full_at();
            if best.is_none_or(|(_, other)| full_at < other) {
                best = Some((self.hand, full_at));
            }
        }
        best.map(|(place, _)| place)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.places.len(), self.entries.len());
        self.entries.len()
    }
}
