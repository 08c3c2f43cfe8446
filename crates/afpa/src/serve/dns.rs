//! DNS in the life of a server: sockets and zones of a configuration, and records of challenges.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use afpa_acme::ChallengeZones;
use afpa_config::{Config, DnsKeySettings, ZoneSettings};
use afpa_dns::tsig::{Key, Keys};
use afpa_dns::zone::Found;
use afpa_dns::{Name, Record, Secrets, Settings, rtype};
use afpa_dnstap::Sink;
use afpa_fleet::Seeds;
use afpa_module_dns::{
    BoundZoneSockets, DnsCounters, DnsServer, Limiter, ServedZone, TcpLimits, ZoneStore,
};
use afpa_server::Address;
use afpa_server::limits::ConnectionLimits;
use anyhow::{Context as _, anyhow, bail};
use rand::RngExt as _;
use rand::rngs::StdRng;

use super::listeners::{Use, why_refused};
use super::zone_keeper::{KeptZone, ZoneKeeper};
use super::zone_operations::ZoneOperations;
use crate::confine::Confinement;
use crate::upgrade::Predecessor;

/// A name server, while there are zones.
pub(super) struct DnsState {
    store: Arc<ZoneStore>,
    operations: Arc<ZoneOperations>,
    /// The secret of cookies, for the life of the process.
    secret: [u8; 16],
    /// The seeds of the fleet in use; keys of cookies that follow from them go before the secret of this process.
    seeds: Option<Arc<Seeds>>,
    server: Option<DnsServer>,
    keeper: Option<ZoneKeeper>,
    /// The reader of samples, by what settings.
    sink: Option<(PathBuf, usize, Sink)>,
}

/// The zones and sockets of a configuration.
pub(super) struct PreparedDns {
    keys: Keys,
    zones: Vec<KeptZone>,
    new: Vec<BoundZoneSockets>,
    wanted: Vec<SocketAddr>,
}

impl Default for DnsState {
    fn default() -> Self {
        let mut random: StdRng = rand::make_rng();
        let store = Arc::<ZoneStore>::default();
        let operations = ZoneOperations {
            store: Arc::clone(&store),
            orders: Mutex::default(),
            samples: Mutex::default(),
        };
        let (secret, operations) = (random.random(), Arc::new(operations));
        Self { store, operations, secret, seeds: None, server: None, keeper: None, sink: None }
    }
}

impl PreparedDns {
    /// Reads the zones, and binds the addresses that are not `bound` yet.
    ///
    /// # Errors
    /// With the file or the address.
    pub(super) fn new(
        config: &Config,
        bound: &[SocketAddr],
        moment: Moment,
    ) -> anyhow::Result<Self> {
        let keys: Keys = config.dns_keys.iter().map(read_key).collect::<anyhow::Result<_>>()?;
        let zones =
            config.zones.iter().map(|zone| read(zone, &keys)).collect::<anyhow::Result<_>>()?;
        let wanted = config.dns_addresses();
        let new = wanted.iter().filter(|address| !bound.contains(address)).map(|address| {
            let is_shared = moment == Moment::Upgrade;
            BoundZoneSockets::bind(*address, config.workers, is_shared).map_err(|error| {
                let why = why_not_bound(error.kind(), *address, moment);
                anyhow::Error::new(error).context(format!("cannot answer DNS on {address}{why}"))
            })
        });
        let new = new.collect::<anyhow::Result<_>>()?;
        Ok(Self { keys, zones, new, wanted })
    }
}

/// When addresses are bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Moment {
    /// With the rights that the process was started with.
    #[default]
    Start,
    /// As at a start, while the process before still has them bound.
    Upgrade,
    /// Without rights.
    Reload,
}

impl Moment {
    /// That of a start.
    pub(super) fn of(predecessor: Option<&Predecessor>) -> Self {
        if predecessor.is_some() { Self::Upgrade } else { Self::Start }
    }
}

const RELOADED: &str = " (after the start AFPA has no right to ports below 1024. `kill -USR2` has the next process take over \
                        without a pause, with the rights of the start; so does a restart)";
const RESOLVED: &str = " (where systemd-resolved has 127.0.0.53, write the machine's own address in `listen`, not 0.0.0.0)";
const DNS_PORT: u16 = 53;

fn why_not_bound(kind: io::ErrorKind, address: SocketAddr, moment: Moment) -> String {
    if moment == Moment::Reload && kind == io::ErrorKind::PermissionDenied {
        return RELOADED.to_owned();
    }
    let mut why = why_refused(kind, &Address::Tcp(address), Use::Both);
    if kind == io::ErrorKind::AddrInUse && address.port() == DNS_PORT {
        why.push_str(RESOLVED);
    }
    why
}

fn read_key(settings: &DnsKeySettings) -> anyhow::Result<Key> {
    settings.read_key().map_err(|(cause, remedy)| anyhow!("{cause}: {remedy}"))
}

fn read(settings: &ZoneSettings, keys: &Keys) -> anyhow::Result<KeptZone> {
    let key = settings.key.as_ref().and_then(|name| keys.named(name)).cloned();
    match KeptZone::read(settings.clone(), key) {
        Some(zone) => Ok(zone),
        None => bail!(
            "{} cannot be read any more: its check was good a moment ago",
            settings.file.display()
        ),
    }
}

impl DnsState {
    /// Answers for these zones from now on, and for no others.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub(super) fn adopt(
        &mut self,
        prepared: PreparedDns,
        config: &Config,
        connections: Arc<ConnectionLimits>,
        confinement: &Confinement,
    ) -> anyhow::Result<()> {
        let PreparedDns { keys, zones, new, wanted } = prepared;
        self.take_orders(None);
        self.keeper = None;
        let before = self.store.zones();
        let served = zones.iter().map(|kept| ServedZone {
            zone: Arc::clone(&kept.zone),
            transfer: kept.settings.transfer.as_slice().into(),
            key: kept.key.clone(),
            notify: kept.settings.notify.as_slice().into(),
        });
        let settings = Settings {
            udp_size: u16::try_from(config.dns.udp_size).unwrap_or(1232),
            secrets: self.secrets(),
            keys,
        };
        let rate = u32::try_from(config.dns.rate).unwrap_or(0);
        let seed = RandomState::new().hash_one(rate);
        let limiter = (rate > 0).then(|| Arc::new(Limiter::new(rate, seed)));
        self.store.replace(served.collect(), settings, limiter);
        for key in &config.dns_keys {
            if let Err(error) = File::open(&key.file) {
                let path = key.file.display();
                tracing::warn!(%error, "{path} cannot be read by this user any more, so each reload will fail: give the user that AFPA runs as the right to read it (chgrp, chmod g+r)");
            }
        }
        self.sample(config)?;
        if zones.is_empty() {
            self.server = None;
            return Ok(());
        }
        let limits = TcpLimits {
            connections,
            total: config.limits.connections,
            per_client: config.limits.connections_per_client,
            idle: config.timeouts.idle,
            write: config.timeouts.write,
        };
        match &self.server {
            Some(server) => server.limit(limits),
            None => {
                let confinement = confinement.clone();
                let begin = move || confinement.confine_worker();
                let server = DnsServer::start(config.workers, &self.store, limits, begin);
                self.server =
                    Some(server.context("the threads that answer DNS cannot be started")?);
            }
        }
        if let Some(server) = &mut self.server {
            let bound: Vec<SocketAddr> = server.addresses().to_vec();
            for gone in bound.iter().filter(|address| !wanted.contains(address)) {
                server.unlisten(*gone);
            }
            for sockets in new {
                server.listen(sockets);
            }
        }
        let keeper = ZoneKeeper::start(zones, &before, Arc::clone(&self.store));
        let keeper = keeper.context("the thread that watches zone files cannot be started")?;
        self.take_orders(Some(&keeper));
        self.keeper = Some(keeper);
        Ok(())
    }

    /// Takes the seeds of the fleet, so that a cookie which another machine has made is good here.
    pub(super) fn take_seeds(&mut self, seeds: Option<Arc<Seeds>>) {
        if self.seeds == seeds {
            return;
        }
        self.seeds = seeds;
        if self.server.is_some() {
            self.store.take_secrets(self.secrets());
        }
    }

    fn secrets(&self) -> Secrets {
        let keys = self.seeds.as_ref().map(|seeds| seeds.keys("cookies of DNS"));
        let shared = keys.iter().flatten().filter_map(|key| key.first_chunk::<16>().copied());
        Secrets::new(shared.chain([self.secret]).collect())
    }

    /// Gives samples to the reader that the settings name.
    fn sample(&mut self, config: &Config) -> anyhow::Result<()> {
        let wanted = config.dns.dnstap.clone().map(|path| (path, config.dns.dnstap_sample));
        let known = self.sink.as_ref().map(|(path, one_in, _)| (path.clone(), *one_in));
        if wanted == known {
            return Ok(());
        }
        self.sink = None;
        if let Some((path, one_in)) = wanted {
            let of = u32::try_from(one_in).unwrap_or(u32::MAX);
            let sink = Sink::start(&path, of, Arc::default());
            let sink = sink.context("the thread for dnstap cannot be started")?;
            self.sink = Some((path, one_in, sink));
        }
        let counts = self.sink.as_ref().map(|(.., sink)| Arc::clone(sink.counts()));
        *self.operations.samples.lock().unwrap_or_else(PoisonError::into_inner) = counts;
        let tap = self.sink.as_ref().and_then(|(.., sink)| sink.tap());
        self.store.sample(tap.map(Arc::new));
        Ok(())
    }

    fn take_orders(&self, keeper: Option<&ZoneKeeper>) {
        let mut orders = self.operations.orders.lock().unwrap_or_else(PoisonError::into_inner);
        *orders = keeper.map(ZoneKeeper::orders);
    }

    /// The operations on zones.
    pub(super) fn operations(&self) -> Arc<ZoneOperations> {
        Arc::clone(&self.operations)
    }

    /// The addresses that are answered on.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.server.as_ref().map(|server| server.addresses().to_vec()).unwrap_or_default()
    }

    /// The counts of its threads.
    pub(super) fn counters(&self) -> Vec<Arc<DnsCounters>> {
        self.server.as_ref().map(DnsServer::counters).unwrap_or_default()
    }

    /// Where records of challenges are put.
    pub(super) fn challenge_zones(&self) -> Arc<dyn ChallengeZones> {
        Arc::new(InStore(Arc::clone(&self.store)))
    }

    /// Answers no more.
    pub(super) fn stop(&mut self) {
        (self.keeper, self.server) = (None, None);
    }
}

struct InStore(Arc<ZoneStore>);

impl InStore {
    /// The record, below the name that an alias in our zones leads to.
    fn record(&self, name: &str, value: &str) -> Result<Record, String> {
        const MOST_ALIASES: usize = 8;
        let no_name = |error| format!("{name} is no name: {error}");
        let mut owner = Name::parse(name, &Name::root()).map_err(no_name)?;
        if !name.ends_with('.') {
            owner = Name::parse(&format!("{name}."), &Name::root()).map_err(no_name)?;
        }
        for _ in 0..MOST_ALIASES {
            let zone = self.0.zone_of(&owner).ok_or_else(|| format!("no [[zone]] has {owner}"))?;
            let node = zone.node(owner.lower().wire());
            let alias =
                node.and_then(|node| node.set(rtype::CNAME)).and_then(|set| set.data.first());
            if let Some(target) = alias.and_then(|data| Name::from_wire(data)) {
                owner = target;
                continue;
            }
            if let Some(Found::Cut(cut)) = zone.find(owner.lower().wire()) {
                let cut = &cut.owner;
                return Err(format!(
                    "the zone leads to other name servers for {cut} by NS: make a [[zone]] of that name, or set the record there"
                ));
            }
            if zone.is_signed() {
                return Err(format!(
                    "{owner} is in a signed zone, for which AFPA has no keys: delegate it to a zone without signatures, \
                     by NS or CNAME"
                ));
            }
            let length =
                u8::try_from(value.len()).map_err(|_| "the text is too long".to_owned())?;
            let data = [&[length], value.as_bytes()].concat().into();
            return Ok(Record { owner, rtype: rtype::TXT, ttl: 1, data });
        }
        Err(format!("{name} has too many aliases"))
    }
}

impl ChallengeZones for InStore {
    fn put(&self, name: &str, value: &str) -> Result<(), String> {
        self.0.add(self.record(name, value)?);
        Ok(())
    }

    fn take(&self, name: &str, value: &str) {
        if let Ok(record) = self.record(name, value) {
            self.0.remove(&record);
        }
    }
}
