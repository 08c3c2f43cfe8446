//! Places for work that waits or is done, and the share of them that one client may hold (C4 of docs/rules).

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Client;

/// A client that has a share: an IPv4 address, or the /64 of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sharer(u64, bool);

impl Sharer {
    /// `None`: a client on a unix socket, behind which anybody may be.
    pub(crate) fn of(client: Client) -> Option<Self> {
        let Client::Ip(address) = client else { return None };
        Some(match address.to_canonical() {
            IpAddr::V4(v4) => Self(v4.to_bits().into(), true),
            IpAddr::V6(v6) => Self((v6.to_bits() >> 64) as u64, false),
        })
    }
}

/// A bounded number of places.
#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    of: HashMap<Sharer, usize>,
}

/// A place that is taken until this value is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    client: Option<Sharer>,
}

/// A client may hold so many places for each that it leaves free.
const SHARE: usize = 3;

impl Places {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default() })
    }

    /// A place for the work of a client; `None`: there is none, or the client has its share.
    pub(crate) fn enter(self: &Arc<Self>, client: Option<Sharer>) -> Option<Place> {
        let mut taken = self.taken();
        let free = self.most.checked_sub(taken.all).filter(|free| *free > 0)?;
        if let Some(client) = client {
            let held = taken.of.get(&client).copied().unwrap_or_default();
            if held >= free.saturating_mul(SHARE) {
                return None;
            }
            taken.of.insert(client, held + 1);
        }
        taken.all += 1;
        Some(Place { places: Arc::clone(self), client })
    }

    /// How many are free.
    pub(crate) fn free(&self) -> usize {
        self.most.saturating_sub(self.taken().all)
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.all = taken.all.saturating_sub(1);
        let Some(client) = self.client else { return };
        if let Some(held) = taken.of.get_mut(&client) {
            *held -= 1;
            if *held == 0 {
                taken.of.remove(&client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(last: u16) -> Option<Sharer> {
        Sharer::of(Client::Ip([0x2001, 0xdb8, 0, last, 0, 0, 0, 1].into()))
    }

    #[test]
    fn a_client_has_its_share_and_leaves_room_for_others() {
        let places = Places::new(100);
        let take = |client| (0..200).map_while(|_| places.enter(client)).collect::<Vec<_>>();
        let first = take(client(1));
        assert_eq!(first.len(), 75);
        let second = take(client(2));
        assert_eq!((second.len(), places.free()), (19, 6));
        assert!((3..50).all(|last| places.enter(client(last)).is_some()), "and each other one");
        assert!(places.enter(client(1)).is_none());
        assert_eq!(take(None).len(), 6, "all that are left: it is no client that is counted");
        drop((first, second));
        assert_eq!(places.free(), 100);
        assert!(places.taken().of.is_empty(), "nothing is left behind");
    }

    #[test]
    fn a_network_of_a_host_is_one_client_and_a_single_place_is_anybodys() {
        let other = Sharer::of(Client::Ip([0x2001, 0xdb8, 0, 1, 9, 9, 9, 9].into()));
        assert_eq!(other, client(1));
        assert_eq!(Sharer::of(Client::Unix), None);
        let places = Places::new(1);
        let place = places.enter(other);
        assert!(place.is_some() && places.enter(client(2)).is_none());
        assert!(Places::new(0).enter(None).is_none());
    }
}
