//! Limits on open connections, in total and per client.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::BuildHasher as _;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afpa_framework::Client;

/// The counts that all cores share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    /// Open connections.
    pub(crate) connections: Arc<ConnectionLimits>,
    /// Handshakes of TLS in progress.
    pub(crate) handshakes: Arc<ConnectionLimits>,
    /// Connections of HTTP/3 from addresses that are not proven. Each counts among all open ones, but not for its client.
    pub(crate) unproven: Arc<ConnectionLimits>,
}

/// Connection counts that all cores share. They change when a connection opens or closes, never on a hit.
#[derive(Debug, Default)]
pub struct ConnectionLimits {
    open: Padded<AtomicUsize>,
    /// A client is always in the same one, so that cores with different clients seldom meet at a lock.
    per_client: [Padded<Mutex<HashMap<IpAddr, usize>>>; SHARDS],
    /// Chooses it.
    hasher: RandomState,
}

/// On lines of its own; processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded<T>(T);

const SHARDS: usize = 32;

/// The right to have one connection open, until this is dropped.
#[derive(Debug)]
pub struct Admission {
    limits: Arc<ConnectionLimits>,
    client: Option<IpAddr>,
}

impl ConnectionLimits {
    /// Admits a connection of `client`, unless one of the limits is reached.
    pub fn admit(
        self: &Arc<Self>,
        client: Client,
        total: usize,
        per_client: usize,
    ) -> Option<Admission> {
        if self.open.0.fetch_add(1, Ordering::Relaxed) >= total {
            self.open.0.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        // From here on, dropping `admission` undoes the count.
        let mut admission = Admission { limits: Arc::clone(self), client: None };
        admission.count_for(client, per_client).then_some(admission)
    }

    /// Connections of a client that are open now.
    pub(crate) fn open_of(&self, client: Client) -> usize {
        let Client::Ip(address) = client else { return 0 };
        let address = accounted_to(address);
        self.counts(address).get(&address).copied().unwrap_or(0)
    }

    /// Connections open now.
    pub fn open(&self) -> usize {
        self.open.0.load(Ordering::Relaxed)
    }

    /// The counts among which that of a client is.
    fn counts(&self, address: IpAddr) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        let shard = self.hasher.hash_one(address) as usize % SHARDS;
        self.per_client[shard].0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admission {
    /// Counts it as one of `client` from now on, unless that one has as many as it may have.
    pub(crate) fn count_for(&mut self, client: Client, per_client: usize) -> bool {
        let (Client::Ip(address), None) = (client, self.client) else { return true };
        let address = accounted_to(address);
        let mut counts = self.limits.counts(address);
        // A client that is refused leaves no entry behind.
        if counts.get(&address).copied().unwrap_or(0) >= per_client {
            return false;
        }
        *counts.entry(address).or_insert(0) += 1;
        drop(counts);
        self.client = Some(address);
        true
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.limits.open.0.fetch_sub(1, Ordering::Relaxed);
        let Some(client) = self.client else { return };
        let mut counts = self.limits.counts(client);
        if let Entry::Occupied(mut entry) = counts.entry(client) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}

/// The address that a client is counted under. One host can have a whole IPv6 /64, so this counts as one
/// client.
fn accounted_to(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

/// The answer to the first packet of a connection by datagrams.
pub(crate) enum Met {
    /// It may begin.
    Admitted(Held),
    /// Its client has to prove its address first (RFC 9000 section 8.1.2).
    Unproven,
    /// The police does not let its client in.
    Denied,
    /// Its client, or all together, have as many as they may have.
    Full,
}

/// The places of a connection by datagrams.
pub(crate) struct Held {
    /// Until the handshake is complete.
    pub(crate) handshake: Admission,
    pub(crate) connection: Admission,
    /// Until then no place is its client's.
    pub(crate) unproven: Option<Admission>,
}

#[cfg(test)]
mod tests {
    use super::*;

    impl ConnectionLimits {
        fn remembers_nobody(&self) -> bool {
            self.per_client.iter().all(|counts| counts.0.lock().expect("not poisoned").is_empty())
        }
    }

    fn ip(text: &str) -> Client {
        Client::Ip(text.parse().expect("an address"))
    }

    #[test]
    fn both_limits_hold_and_places_come_back() {
        let limits = Arc::new(ConnectionLimits::default());
        let first = limits.admit(ip("10.0.0.1"), 3, 2);
        let second = limits.admit(ip("10.0.0.1"), 3, 2);
        assert!(first.is_some() && second.is_some());
        assert!(limits.admit(ip("10.0.0.1"), 3, 2).is_none(), "per client");
        let third = limits.admit(Client::Unix, 3, 2);
        assert!(third.is_some());
        assert!(limits.admit(ip("10.0.0.2"), 3, 2).is_none(), "total");
        drop((first, second, third));
        assert_eq!(limits.open(), 0);
        assert!(limits.remembers_nobody());
    }

    #[test]
    fn one_that_nobody_is_known_to_have_is_counted_later() {
        let limits = Arc::new(ConnectionLimits::default());
        let client = ip("10.0.0.1");
        let admit = || limits.admit(Client::Unix, 3, usize::MAX).expect("the total has room");
        let [mut first, mut second, mut third] = [admit(), admit(), admit()];
        assert_eq!((limits.open(), limits.open_of(client)), (3, 0));
        assert!(first.count_for(client, 2) && second.count_for(client, 2));
        assert!(first.count_for(client, 2), "it is counted once");
        assert!(!third.count_for(client, 2));
        assert_eq!(limits.open_of(client), 2);
        drop((first, second, third));
        assert_eq!(limits.open(), 0);
        assert!(limits.remembers_nobody());
    }

    /// The kernel may have as many of its connections as it may have at all.
    #[test]
    fn a_client_that_may_have_none_leaves_nothing_behind() {
        let limits = Arc::new(ConnectionLimits::default());
        for client in ["10.0.0.1", "10.0.0.2", "2001:db8::1"] {
            assert!(limits.admit(ip(client), 9, 0).is_none());
        }
        assert_eq!(limits.open(), 0);
        assert!(limits.remembers_nobody());
    }

    #[test]
    fn an_ipv6_network_counts_as_one_client() {
        let limits = Arc::new(ConnectionLimits::default());
        let _held = limits.admit(ip("2001:db8:0:1::1"), 9, 1).expect("first");
        assert!(limits.admit(ip("2001:db8:0:1::2"), 9, 1).is_none());
        assert!(limits.admit(ip("2001:db8:0:2::1"), 9, 1).is_some());
    }

    #[test]
    fn a_mapped_address_is_the_ipv4_client() {
        let limits = Arc::new(ConnectionLimits::default());
        let _held = limits.admit(ip("192.0.2.1"), 9, 1).expect("first");
        assert!(limits.admit(ip("::ffff:192.0.2.1"), 9, 1).is_none());
    }
}
