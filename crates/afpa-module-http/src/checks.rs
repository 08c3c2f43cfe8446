//! Checks of passwords: one for all requests with the same credentials, and few of one client at a time.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afpa_framework::{Client, Helpers};
use afpa_users::{Credentials, Users};
use tokio::sync::watch;

/// The result of a check.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// The name of the user.
    Right(Arc<str>),
    Wrong,
    /// Too much waits for that.
    Busy,
}

/// Where passwords are checked, in threads that are for nothing else.
///
/// A request whose credentials are being checked already waits for that result, and takes no place. One client has at most
/// a quarter of the places, so that others find one.
#[derive(Clone)]
pub struct PasswordChecks {
    threads: Helpers,
    /// Checks of one client that may run or wait at the same time.
    share: usize,
    running: Arc<Mutex<Running>>,
}

/// The digest of credentials with the key of their users.
type Mark = [u8; 32];

/// A client as it is counted: all of a unix socket are one.
type Counted = Option<IpAddr>;

/// The checks that run or wait.
#[derive(Default)]
struct Running {
    results: HashMap<Mark, watch::Receiver<Found>>,
    clients: HashMap<Counted, usize>,
}

impl PasswordChecks {
    /// Checks in these threads. `places`: how many may run or wait there.
    pub fn new(threads: Helpers, places: usize) -> Self {
        Self { threads, share: (places / 4).max(2), running: Arc::default() }
    }

    /// Checks credentials that a client has sent.
    pub(crate) async fn run(
        &self,
        client: Client,
        users: &Arc<Users>,
        credentials: Credentials,
    ) -> Found {
        let (users, mark) = (Arc::clone(users), users.mark(&credentials));
        let check = move || {
            let name = users.knows(&credentials).or_else(|| users.check(&credentials));
            name.map_or(Found::Wrong, Found::Right)
        };
        self.once(client, mark, check).await
    }

    async fn once(
        &self,
        client: Client,
        mark: Mark,
        check: impl FnOnce() -> Found + Send + 'static,
    ) -> Found {
        let Some((mut result, place)) = self.enter(counted(client), mark) else {
            return Found::Busy;
        };
        if let Some(place) = place {
            // The check goes on when this client leaves, because others may wait for its result.
            let _ = self.threads.run(move || place.leave(check())).await;
        }
        // A check that ended without a result has left the first value: it is busy.
        let _ = result.changed().await;
        result.borrow().clone()
    }

    /// The result to wait for, and the place of a check that is to be made for it. `None`: the client has its share.
    fn enter(
        &self,
        client: Counted,
        mark: Mark,
    ) -> Option<(watch::Receiver<Found>, Option<Place>)> {
        let mut running = lock(&self.running);
        if let Some(result) = running.results.get(&mark) {
            return Some((result.clone(), None));
        }
        let count = running.clients.entry(client).or_default();
        if *count >= self.share {
            return None;
        }
        *count += 1;
        let (tell, result) = watch::channel(Found::Busy);
        running.results.insert(mark, result.clone());
        let place = Place { tell, mark, client, running: Arc::clone(&self.running) };
        Some((result, Some(place)))
    }
}

impl fmt::Debug for PasswordChecks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PasswordChecks").field("threads", &self.threads).finish_non_exhaustive()
    }
}

/// The place of a check that runs or waits. It is given back however the check ends.
struct Place {
    tell: watch::Sender<Found>,
    mark: Mark,
    client: Counted,
    running: Arc<Mutex<Running>>,
}

impl Place {
    /// Tells the result to all who wait for it.
    fn leave(self, found: Found) {
        self.tell.send_replace(found);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut running = lock(&self.running);
        running.results.remove(&self.mark);
        if let Entry::Occupied(mut count) = running.clients.entry(self.client) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

fn lock(running: &Mutex<Running>) -> MutexGuard<'_, Running> {
    // Each change is whole, whatever thread panics.
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A client of IPv6 has a whole /64.
fn counted(client: Client) -> Counted {
    let Client::Ip(address) = client else { return None };
    Some(match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn ip(text: &str) -> Client {
        Client::Ip(text.parse().expect("an address"))
    }

    const ONE: &str = "192.0.2.1";
    const TWO: &str = "192.0.2.2";

    /// A check that waits until the gate is dropped.
    fn gated(
        check: impl FnOnce() -> Found + Send + 'static,
    ) -> (mpsc::Sender<()>, impl FnOnce() -> Found + Send + 'static) {
        let (gate, wait) = mpsc::channel();
        let check = move || {
            let _ = wait.recv();
            check()
        };
        (gate, check)
    }

    /// Begins such a check for a client that leaves at once.
    async fn begin(checks: &PasswordChecks, client: Client, mark: u8) -> mpsc::Sender<()> {
        let (gate, check) = gated(|| Found::Right("ann".into()));
        tokio::select! {
            biased;
            found = checks.once(client, [mark; 32], check) => panic!("it waits: {found:?}"),
            () = std::future::ready(()) => {}
        }
        gate
    }

    async fn wrong(checks: &PasswordChecks, client: Client, mark: u8) -> bool {
        matches!(checks.once(client, [mark; 32], || Found::Wrong).await, Found::Wrong)
    }

    fn is_idle(checks: &PasswordChecks) -> bool {
        let running = lock(&checks.running);
        running.results.is_empty() && running.clients.is_empty()
    }

    #[tokio::test]
    async fn equal_credentials_share_one_check_and_one_place() {
        let checks = PasswordChecks::new(Helpers::new(1), 8);
        let (gate, check) = gated(|| Found::Right("ann".into()));
        let (one, two, ()) = tokio::join!(
            checks.once(ip(ONE), [1; 32], check),
            checks.once(ip(TWO), [1; 32], || Found::Wrong),
            async { drop(gate) },
        );
        assert!(matches!((&one, &two), (Found::Right(_), Found::Right(_))), "{one:?} {two:?}");
        assert!(is_idle(&checks));
        // The client that came first may have gone.
        let gate = begin(&checks, ip(ONE), 1).await;
        let waits = checks.once(ip(TWO), [1; 32], || Found::Wrong);
        let (found, ()) = tokio::join!(waits, async { drop(gate) });
        assert!(matches!(found, Found::Right(_)), "{found:?}");
    }

    #[tokio::test]
    async fn a_check_without_a_result_wakes_all_who_wait_for_it() {
        let checks = PasswordChecks::new(Helpers::new(1), 8);
        let (gate, check) = gated(|| panic!("expected by this test"));
        let (one, two, ()) = tokio::join!(
            checks.once(ip(ONE), [1; 32], check),
            checks.once(ip(TWO), [1; 32], || Found::Wrong),
            async { drop(gate) },
        );
        assert!(matches!((&one, &two), (Found::Busy, Found::Busy)), "{one:?} {two:?}");
        assert!(is_idle(&checks) && wrong(&checks, ip(ONE), 1).await);
        // The threads have no further place.
        let gate = begin(&checks, ip(ONE), 1).await;
        let found = checks.once(ip(TWO), [2; 32], || Found::Wrong).await;
        assert!(matches!(found, Found::Busy), "{found:?}");
        assert_eq!(lock(&checks.running).results.len(), 1);
        drop(gate);
    }

    #[tokio::test]
    async fn one_client_has_a_quarter_of_the_places() {
        let checks = PasswordChecks::new(Helpers::new(16), 16);
        let mut gates = Vec::new();
        for mark in 0..4 {
            gates.push(begin(&checks, ip(ONE), mark).await);
        }
        assert!(!wrong(&checks, ip(ONE), 4).await && wrong(&checks, ip(TWO), 4).await);
        drop(gates);
        while !is_idle(&checks) {
            tokio::task::yield_now().await;
        }
        assert!(wrong(&checks, ip(ONE), 4).await);
        // Two are possible in the smallest pool.
        assert_eq!(PasswordChecks::new(Helpers::new(1), 1).share, 2);
    }

    #[test]
    fn a_network_of_ipv6_and_all_of_unix_sockets_are_one_client() {
        let same = |one: &str, two: &str| counted(ip(one)) == counted(ip(two));
        assert!(same("2001:db8::1", "2001:db8::ffff:0:0:2") && same("::ffff:192.0.2.1", ONE));
        assert!(!same("2001:db8::1", "2001:db8:0:1::1") && !same(ONE, TWO));
        assert_eq!(counted(Client::Unix), None);
    }
}
