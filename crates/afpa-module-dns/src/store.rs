//! The zones that are served. A change makes another value of all of them, which takes the place of the one before.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use afpa_dns::tsig::{Key, Signer};
use afpa_dns::{Journal, Name, Record, Secrets, Settings, Zone, Zones};
use afpa_dnstap::Tap;
use afpa_framework::Network;
use afpa_police::{Quota, QuotaTable};
use arc_swap::ArcSwap;

use crate::held::Held;

/// A zone, and who may have it whole.
#[derive(Clone, Debug)]
pub struct ServedZone {
    /// The zone.
    pub zone: Arc<Zone>,
    /// Secondaries that may transfer it.
    pub transfer: Arc<[Network]>,
    /// The key with which they have to sign; with one and no networks, all that have it may transfer.
    pub key: Option<Arc<Key>>,
    /// Secondaries that get a NOTIFY of a new one.
    pub notify: Arc<[SocketAddr]>,
}

/// How many answers a prefix of clients gets a second.
#[derive(Debug)]
pub struct Limiter {
    quota: Quota,
    table: QuotaTable,
}

impl Limiter {
    /// So many answers a second for each prefix. `seed` is the secret of the table's hash.
    pub fn new(per_second: u32, seed: u64) -> Self {
        let quota = Quota { count: per_second, period: 1, burst: per_second };
        Self { quota, table: QuotaTable::new(seed) }
    }

    /// Whether the prefix of this client has an answer left.
    pub fn admits(&self, client: IpAddr, steady_ns: u64) -> bool {
        self.table.take(0, prefix_of(client), self.quota, steady_ns).is_ok()
    }
}

/// The /24 or /56 of an address: an attacker who forges it can forge its neighbours.
fn prefix_of(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() & !0xff).into(),
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 72 << 72).into(),
    }
}

/// All that the threads answer from.
#[derive(Debug, Default)]
pub struct Serving {
    /// The zones, with the records that are added to them.
    pub zones: Zones,
    /// The settings of answers.
    pub settings: Settings,
    /// The limit of answers by UDP to clients that have not proven their address.
    pub limiter: Option<Arc<Limiter>>,
    /// Where samples of answers go.
    pub tap: Option<Arc<Tap>>,
    /// By the zone's name in lower case.
    pub transfer: HashMap<Box<[u8]>, Transferable>,
}

/// A zone as its file has it, and its journal: records that are added do not go to secondaries, whose serial number would not change.
#[derive(Clone, Debug)]
pub struct Transferable {
    /// The zone, and who may have it.
    pub served: ServedZone,
    /// The changes that led to it.
    pub journal: Arc<Journal>,
}

impl Transferable {
    /// Whether a client may have it, which has signed its question with a key that is known, or has not.
    pub fn is_for(&self, client: IpAddr, signer: Option<&Signer>) -> bool {
        let ServedZone { transfer, key, .. } = &self.served;
        let is_named = transfer.iter().any(|network| network.contains(client));
        match key {
            None => is_named,
            Some(key) => {
                (is_named || transfer.is_empty()) && signer.is_some_and(|signer| signer.has(key))
            }
        }
    }
}

impl ServedZone {
    /// Whether it has the name of this zone.
    fn is_of(&self, zone: &Zone) -> bool {
        self.zone.apex().lower() == zone.apex().lower()
    }
}

impl State {
    /// A zone has taken the place of one, or of none.
    fn note_change(&mut self, before: Option<&ServedZone>, after: &Zone) {
        let apex: Box<[u8]> = after.apex().lower().wire().into();
        let journal = self.journals.entry(apex).or_default();
        *journal = match before {
            Some(before) => Arc::new(journal.with(&before.zone, after)),
            None => Arc::default(),
        };
    }
}

/// Where zones are put, and from where the threads take them.
#[derive(Debug, Default)]
pub struct ZoneStore {
    state: Mutex<State>,
    serving: ArcSwap<Serving>,
    held: Arc<Held>,
}

#[derive(Debug, Default)]
struct State {
    zones: Vec<ServedZone>,
    /// By the zone's name in lower case.
    journals: HashMap<Box<[u8]>, Arc<Journal>>,
    further: Vec<Record>,
    settings: Settings,
    limiter: Option<Arc<Limiter>>,
    tap: Option<Arc<Tap>>,
}

impl ZoneStore {
    /// The value to answer from.
    pub fn serving(&self) -> arc_swap::Guard<Arc<Serving>> {
        self.serving.load()
    }

    /// The transfers that are going on.
    pub fn held(&self) -> &Arc<Held> {
        &self.held
    }

    /// Serves these zones, and no others.
    pub fn replace(
        &self,
        zones: Vec<ServedZone>,
        settings: Settings,
        limiter: Option<Arc<Limiter>>,
    ) {
        self.change(|state| {
            let before = std::mem::take(&mut state.zones);
            for zone in &zones {
                state.note_change(before.iter().find(|other| other.is_of(&zone.zone)), &zone.zone);
            }
            let is_there =
                |apex: &[u8]| zones.iter().any(|zone| zone.zone.apex().lower().wire() == apex);
            state.journals.retain(|apex, _| is_there(apex));
            (state.zones, state.settings, state.limiter) = (zones, settings, limiter);
        });
    }

    /// Makes and proves cookies by these secrets from now on.
    pub fn take_secrets(&self, secrets: Secrets) {
        self.change(|state| state.settings.secrets = secrets);
    }

    /// Gives samples of answers to this tap from now on, or to none.
    pub fn sample(&self, tap: Option<Arc<Tap>>) {
        self.change(|state| state.tap = tap);
    }

    /// Serves another version of a zone that is served.
    pub fn renew(&self, zone: Arc<Zone>) {
        self.change(|state| {
            let Some(at) = state.zones.iter().position(|served| served.is_of(&zone)) else {
                return;
            };
            let before = state.zones.get(at).cloned();
            state.note_change(before.as_ref(), &zone);
            if let Some(served) = state.zones.get_mut(at) {
                served.zone = zone;
            }
        });
    }

    /// Adds a record to the zone that has its name.
    pub fn add(&self, record: Record) {
        self.change(|state| {
            if !state.further.contains(&record) {
                state.further.push(record);
            }
        });
    }

    /// Removes a record that was added.
    pub fn remove(&self, record: &Record) {
        self.change(|state| state.further.retain(|other| other != record));
    }

    /// The zone that has a name, as its file has it.
    pub fn zone_of(&self, name: &Name) -> Option<Arc<Zone>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let having = state.zones.iter().filter(|served| name.is_within(served.zone.apex().wire()));
        having
            .max_by_key(|served| served.zone.apex().wire().len())
            .map(|served| Arc::clone(&served.zone))
    }

    /// The zones with their secondaries.
    pub fn zones(&self) -> Vec<ServedZone> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).zones.clone()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        let mut own: HashMap<Box<[u8]>, Vec<Record>> = HashMap::new();
        for record in &state.further {
            let having = state.zones.iter().map(|served| served.zone.apex().lower());
            let having = having.filter(|apex| record.owner.is_within(apex.wire()));
            if let Some(apex) = having.max_by_key(|apex| apex.wire().len()) {
                own.entry(apex.wire().into()).or_default().push(record.clone());
            }
        }
        let zones =
            state.zones.iter().map(|served| match own.get(served.zone.apex().lower().wire()) {
                Some(further) => Arc::new(served.zone.with(further)),
                None => Arc::clone(&served.zone),
            });
        let transfer = state.zones.iter().map(|served| {
            let apex: Box<[u8]> = served.zone.apex().lower().wire().into();
            let journal = state.journals.get(&apex).cloned().unwrap_or_default();
            (apex, Transferable { served: served.clone(), journal })
        });
        self.serving.store(Arc::new(Serving {
            zones: zones.collect(),
            settings: state.settings.clone(),
            limiter: state.limiter.clone(),
            tap: state.tap.clone(),
            transfer: transfer.collect(),
        }));
        self.held.serve(state.zones.iter().map(|served| &served.zone), Instant::now());
    }
}
