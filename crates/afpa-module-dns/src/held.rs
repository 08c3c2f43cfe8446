//! Transfers that are going on, and the older versions of zones that they hold: a secondary that reads slowly goes on with the
//! version that it began with. So these are bounded, and the slowest transfers end first.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use afpa_dns::Zone;
use tokio::sync::Notify;

/// Older versions of one zone that transfers may hold.
pub const MOST_VERSIONS: usize = 4;
/// The memory of all older versions together.
pub const MOST_BYTES: usize = 256 << 20;

/// All transfers that are going on.
#[derive(Debug, Default)]
pub struct Held(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    going: BTreeMap<u64, Going>,
    /// The versions that are served, by the zone's name in lower case.
    current: HashMap<Box<[u8]>, Arc<Zone>>,
    begun: HashMap<Box<[u8]>, u64>,
    numbered: u64,
    ended: u64,
}

#[derive(Debug)]
struct Going {
    apex: Box<[u8]>,
    zone: Arc<Zone>,
    /// Its memory, once it is an older version.
    bytes: Option<usize>,
    client: SocketAddr,
    begun: Instant,
    sent: Arc<AtomicU64>,
    end: Arc<Notify>,
}

impl Going {
    /// Bytes a second.
    fn speed(&self, now: Instant) -> f64 {
        let seconds = now.saturating_duration_since(self.begun).as_secs_f64();
        self.sent.load(Ordering::Relaxed) as f64 / seconds.max(0.001)
    }
}

/// A transfer that is going on. When this is dropped, it is over.
#[derive(Debug)]
pub struct Passage<'h> {
    held: &'h Held,
    number: u64,
    sent: Arc<AtomicU64>,
    end: Arc<Notify>,
}

impl Passage<'_> {
    /// So many bytes were taken by the client.
    pub fn sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Waits until the transfer has to end.
    pub async fn is_ended(&self) {
        self.end.notified().await;
    }
}

impl Drop for Passage<'_> {
    fn drop(&mut self) {
        self.held.state().going.remove(&self.number);
    }
}

/// The transfers of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfers {
    /// Since the process began.
    pub begun: u64,
    /// Those that are going on.
    pub going: usize,
    /// Older versions that these hold.
    pub versions: usize,
}

impl Held {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A transfer of this version begins.
    pub fn begin(&self, zone: &Arc<Zone>, client: SocketAddr, now: Instant) -> Passage<'_> {
        let mut state = self.state();
        let apex: Box<[u8]> = zone.apex().lower().wire().into();
        *state.begun.entry(apex.clone()).or_default() += 1;
        state.numbered += 1;
        let (number, sent, end) = (state.numbered, Arc::default(), Arc::default());
        let going = Going {
            apex,
            zone: Arc::clone(zone),
            bytes: None,
            client,
            begun: now,
            sent: Arc::clone(&sent),
            end: Arc::clone(&end),
        };
        state.going.insert(number, going);
        // The zone may have changed between its look-up and now.
        state.keep_within(now);
        Passage { held: self, number, sent, end }
    }

    /// These versions are served from now on, and no others.
    pub fn serve<'z>(&self, zones: impl Iterator<Item = &'z Arc<Zone>>, now: Instant) {
        let current = zones.map(|zone| (zone.apex().lower().wire().into(), Arc::clone(zone)));
        let mut state = self.state();
        state.current = current.collect();
        let State { current, begun, .. } = &mut *state;
        begun.retain(|apex, _| current.contains_key(apex));
        state.keep_within(now);
    }

    /// Older versions that are held, their memory, and transfers that were ended for it.
    pub fn standing(&self) -> (usize, usize, u64) {
        let state = self.state();
        let old = state.old();
        (old.len(), old.values().map(|(_, bytes)| bytes).sum(), state.ended)
    }

    /// The transfers of the zone with this name in lower case.
    pub fn of(&self, apex: &[u8]) -> Transfers {
        let state = self.state();
        Transfers {
            begun: state.begun.get(apex).copied().unwrap_or(0),
            going: state.going.values().filter(|going| *going.apex == *apex).count(),
            versions: state.old().values().filter(|(of, _)| **of == *apex).count(),
        }
    }
}

impl State {
    fn is_old(&self, going: &Going) -> bool {
        self.current.get(&going.apex).is_none_or(|current| !Arc::ptr_eq(current, &going.zone))
    }

    /// Older versions, each once, with the zone's name and their memory.
    fn old(&self) -> HashMap<*const Zone, (&[u8], usize)> {
        let old = self.going.values().filter(|going| self.is_old(going));
        let known = |going: &Going| (Arc::as_ptr(&going.zone), going.bytes.unwrap_or(0));
        old.map(|going| {
            let (version, bytes) = known(going);
            (version, (&*going.apex, bytes))
        })
        .collect()
    }

    /// Ends the slowest transfers of older versions until these are few enough.
    fn keep_within(&mut self, now: Instant) {
        self.weigh();
        loop {
            let old = self.old();
            let mut counts: HashMap<&[u8], usize> = HashMap::new();
            old.values().for_each(|(apex, _)| *counts.entry(apex).or_default() += 1);
            let is_heavy = old.values().map(|(_, bytes)| bytes).sum::<usize>() > MOST_BYTES;
            let candidates = self.going.iter().filter(|(_, going)| {
                let count = counts.get(&*going.apex).copied().unwrap_or(0);
                self.is_old(going) && (is_heavy || count > MOST_VERSIONS)
            });
            let slowest = candidates
                .min_by(|(_, one), (_, other)| one.speed(now).total_cmp(&other.speed(now)))
                .map(|(number, _)| *number);
            let Some(going) = slowest.and_then(|number| self.going.remove(&number)) else { return };
            going.end.notify_one();
            self.ended += 1;
            let (zone, client) = (going.zone.apex(), going.client);
            tracing::warn!(
                %client,
                "a transfer of {zone} was ended: it is the slowest of those that hold versions older than the current one, and they hold too much"
            );
        }
    }

    /// The memory of each version is summed up once, when it has become an older one.
    fn weigh(&mut self) {
        let mut known: HashMap<*const Zone, usize> = HashMap::new();
        for going in self.going.values() {
            if let Some(bytes) = going.bytes {
                known.insert(Arc::as_ptr(&going.zone), bytes);
            }
        }
        let old: Vec<u64> = self
            .going
            .iter()
            .filter(|(_, going)| going.bytes.is_none() && self.is_old(going))
            .map(|(number, _)| *number)
            .collect();
        for number in old {
            let Some(going) = self.going.get_mut(&number) else { continue };
            let zone = &going.zone;
            let bytes = *known.entry(Arc::as_ptr(zone)).or_insert_with(|| zone.memory());
            going.bytes = Some(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use afpa_dns::{Name, read_zone};

    use super::*;

    fn zone(serial: u32) -> Arc<Zone> {
        let apex = Name::parse("example.org.", &Name::root()).expect("a name");
        let text = format!("$TTL 60\n@ SOA ns1 a {serial} 1 1 1 1\n@ NS ns1\nns1 A 192.0.2.1\n");
        Arc::new(read_zone(&apex, "z", &text, &mut |_| Err(String::new())).zone.expect("a zone"))
    }

    fn is_ended(passage: &Passage<'_>) -> bool {
        let mut waiting = std::pin::pin!(passage.is_ended());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        waiting.as_mut().poll(&mut context).is_ready()
    }

    #[test]
    fn the_slowest_transfers_of_older_versions_end() {
        let held = Held::default();
        let (begin, client) = (Instant::now(), "192.0.2.1:53".parse().expect("an address"));
        let later = begin + Duration::from_secs(10);
        let mut passages = Vec::new();
        for version in 1..=10u32 {
            let zone = zone(version);
            held.serve([&zone].into_iter(), later);
            let passage = held.begin(&zone, client, begin);
            // The newer, the slower; but the first one is nearly at rest.
            passage.sent(if version == 1 { 1 } else { 1000 - 10 * version as usize });
            passages.push(passage);
            let (versions, bytes, _) = held.standing();
            assert!(versions <= MOST_VERSIONS, "{versions}");
            assert_eq!(versions > 0, bytes > 0);
        }
        let ended: Vec<usize> =
            (0..10).filter(|at| is_ended(&passages[*at])).map(|at| at + 1).collect();
        assert_eq!(ended, [1, 6, 7, 8, 9], "2 to 5 are the fastest, and 10 is current");
        assert_eq!(held.standing().2, 5);
        let apex = zone(1).apex().lower().wire().to_vec();
        assert_eq!(held.of(&apex), Transfers { begun: 10, going: 5, versions: 4 });
        drop(passages);
        assert_eq!(held.of(&apex), Transfers { begun: 10, going: 0, versions: 0 });
    }

    #[test]
    fn many_transfers_of_one_version_hold_it_once() {
        let held = Held::default();
        let (now, client) = (Instant::now(), "192.0.2.1:53".parse().expect("an address"));
        let old = zone(1);
        held.serve([&old].into_iter(), now);
        let all: Vec<_> = (0..100).map(|_| held.begin(&old, client, now)).collect();
        held.serve([&zone(2)].into_iter(), now);
        assert_eq!((held.standing().0, held.standing().2), (1, 0));
        assert!(all.iter().all(|passage| !is_ended(passage)));
        // A transfer that began with a version that was replaced meanwhile counts as well.
        held.serve(std::iter::empty(), now);
        let late = held.begin(&zone(3), client, now);
        assert_eq!(held.standing().0, 2);
        drop(late);
    }
}
