//! The start: first the steps that need privileges, then the threads, and a configuration as at a reload.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use afpa_cache::root::RootHandles;
use afpa_cache::watch::WatchThread;
use afpa_cache::{Arena, Heap};
use afpa_config::{Config, Io, ListenerNumbers, Loaded, fleet_secret, human_size};
use afpa_fast_path::{
    AttachedPrograms, Availability, FastPathView, FloodShield, RunningFastPath, has_work,
};
use afpa_module_http::NoAccessLog;
use afpa_module_http::{DocRoot, Http, HttpCounters};
use afpa_proxy::exchange;
use afpa_proxy::probe::HealthProber;
use afpa_server::worker::WorkerContext;
use afpa_server::{Address, BoundListener, Engine, Rings, Settings};
use afpa_shared_cache::Responses;
use afpa_tls::quic::Secret;
use afpa_workers::MakeModule;
use anyhow::Context as _;
use arc_swap::{ArcSwap, ArcSwapOption};
use rustix::thread::CapabilitySet;

use super::acme::AcmeState;
use super::admin::Administration;
use super::build::{Bound, Frame, Next, Opened};
use super::certificate_store::CertificateStore;
use super::convert;
use super::dns::{DnsState, Moment};
use super::drop_thread::DropThread;
use super::fleet::FleetState;
use super::fleet_purges::Outgoing;
use super::helpers::HelperDirectories;
use super::listeners::{Place, bind};
use super::observe::Observed;
use super::police;
use super::serving::Serving;
use super::snapshot::{PreparedSnapshot, Snapshot};
use super::tls::TlsState;
use crate::confine::Confinement;
use crate::control;
use crate::fast_path;
use crate::notify::Notifier;
use crate::privileges::{self, Identity, Limit, Needs};
use crate::upgrade::{Inherited, Predecessor, Starter};

/// A running server.
pub(crate) struct Server {
    pub(super) config: Arc<Config>,
    pub(super) engine: Engine<Http>,
    /// Serves control socket and metrics.
    pub(super) admin: Administration,
    pub(super) observed: Arc<Observed>,
    pub(super) arena: Arena,
    /// The answers of servers that are kept.
    pub(super) responses: Arc<Responses>,
    pub(super) heap: Heap,
    /// Takes them to the next process.
    pub(super) snapshot: Snapshot,
    /// Whether workers can wait by completion.
    pub(super) has_rings: bool,
    /// The name of the user that serves, if it is another one than at the start.
    pub(super) user: Option<String>,
    /// How the threads are confined.
    pub(super) confinement: Confinement,
    pub(super) helpers: HelperDirectories,
    pub(super) numbers: ListenerNumbers,
    /// Whether the kernel could answer something of the running configuration.
    pub(super) had_kernel_work: bool,
    /// Descriptors of the document roots.
    pub(super) handles: RootHandles,
    /// Watches the roots of every configuration.
    pub(super) watch_thread: Arc<WatchThread>,
    pub(super) tls: TlsState,
    pub(super) acme: AcmeState,
    /// Answers DNS, while there are zones.
    pub(super) dns: DnsState,
    /// Takes part in a fleet, while there is one.
    pub(super) fleet: FleetState,
    /// Probes servers and looks up their names, while there are any.
    pub(super) prober: Option<HealthProber>,
    /// The kernel's part, while it has one.
    pub(super) fast_path: Option<RunningFastPath>,
    /// The kernel's part in floods of HTTP/3's first packets, while it has one.
    pub(super) shield: Option<FloodShield>,
    /// Drops the roots of configurations that were replaced.
    pub(super) drop_thread: DropThread<DocRoot>,
    pub(super) notifier: Notifier,
    /// Starts the next process.
    pub(super) starter: Option<Starter>,
}

impl Server {
    /// The parts that a configuration is built with.
    pub(super) fn frame(&self) -> Frame<'_> {
        let Self { arena, watch_thread, confinement, user, .. } = self;
        Frame { arena, watch_thread, confinement, user: user.as_deref() }
    }

    /// Starts serving a configuration, with the certificates that were read already.
    ///
    /// # Errors
    /// What the system refused, with the remedy where there is one.
    pub(super) fn start(
        loaded: Loaded,
        certificates: CertificateStore,
        mut inherited: Inherited,
    ) -> anyhow::Result<Self> {
        let mut predecessor = inherited.predecessor();
        let notifier = Notifier::from_environment().unwrap_or_else(|error| {
            tracing::warn!(%error, "the service manager is not notified: NOTIFY_SOCKET cannot be used");
            Notifier::default()
        });
        let (acme_state, dns_state) = (AcmeState::default(), DnsState::default());
        acme_state.set_zones(dns_state.challenge_zones());
        let mut tls_state = TlsState::new(certificates, acme_state.certificates());
        let (mut handles, watch_thread) = (RootHandles::default(), Arc::default());
        let opening = (&mut handles, &mut tls_state);
        let mut privileged =
            Privileged::prepare(loaded, opening, (inherited, predecessor.as_mut()))?;
        let starter = privileged.starter.take();
        privileged.drop_privileges()?;
        let confinement = Confinement::begin(privileged.opened.config.engine.confine);
        let Privileged {
            identity,
            descriptors,
            arena,
            responses,
            opened,
            control,
            admin,
            had_kernel_work,
            fast_path,
            shield,
            rings,
            snapshot,
            secret,
            tokens,
            ways,
            ..
        } = privileged;
        let (waiting, has_rings) = (waiting(&opened.config, &rings), !rings.is_empty());
        let frame = Frame {
            arena: &arena,
            watch_thread: &watch_thread,
            confinement: &confinement,
            user: identity.as_ref().map(|identity| &*identity.name),
        };
        let nothing = Serving::empty(arena.clone());
        let next = Next::build(opened, &frame, None, &nothing.global)?;
        let config = Arc::clone(&next.config);
        let police = police::begin(match &fast_path {
            Availability::Ready(programs) => Some(programs.police_kernel()),
            Availability::Without(_) => None,
        });
        if let Some(shield) = &shield {
            police.refuse_by(shield.by_prefix());
        }
        let responses = Responses::new(convert::shared_cache(&config), responses);
        let (snapshot, found) = snapshot.take(&responses);
        let http: Vec<_> = (0..config.workers).map(|_| Arc::default()).collect();
        let engine = start_workers((&config, &confinement), rings, &nothing, &http)?;
        let workers = engine.counters();
        let (fast_path, view) = match fast_path {
            Availability::Ready(programs) => {
                let fast_path = programs.idle(&workers);
                let view = FastPathView::of(&fast_path);
                (Some(fast_path), view)
            }
            Availability::Without(why) => (None, FastPathView::without(why)),
        };
        if let (Some(shield), Some(fast_path)) = (&shield, &fast_path) {
            shield.pause_with(fast_path);
        }
        let observed = Arc::new(Observed {
            started: Instant::now(),
            fast_path: view,
            shield: shield.as_ref().map(FloodShield::view),
            serving: ArcSwap::from_pointee(nothing),
            http,
            workers,
            access_log: ArcSwap::default(),
            spans: ArcSwap::default(),
            police,
            certificates: acme_state.statuses(),
            dns: ArcSwap::default(),
            zones: dns_state.operations(),
            fleet: ArcSwapOption::default(),
            purges: Outgoing::default(),
            seeds: tls_state.seeds(),
        });
        let mut server = Self {
            config,
            engine,
            admin: Administration::default(),
            observed,
            arena,
            responses,
            heap: Heap::default(),
            snapshot,
            has_rings,
            user: identity.map(|identity| identity.name),
            confinement,
            helpers: HelperDirectories::default(),
            numbers: ListenerNumbers::default(),
            had_kernel_work,
            handles,
            watch_thread,
            tls: tls_state,
            acme: acme_state,
            dns: dns_state,
            fleet: FleetState::default(),
            prober: None,
            fast_path,
            shield,
            drop_thread: DropThread::default(),
            notifier,
            starter,
        };
        // Without sockets of theirs, processes before have to go on receiving.
        let has_datagrams = next.listeners.new.iter().any(BoundListener::has_datagrams);
        server.engine.steer_by((secret, tokens), if has_datagrams { ways } else { Vec::new() });
        let moment = Moment::of(predecessor.as_ref());
        if let Some(failure) = server.adopt(next, moment).into_iter().next() {
            return Err(failure);
        }
        let shares_path = server.config.control.is_some();
        let listeners = (control, admin);
        server.admin =
            Administration::start(&server.observed, &server.confinement, listeners, shares_path)?;
        let first = server.fleet.catching_up();
        server.snapshot.read(found, &server.responses, first);
        server.introduce(descriptors, waiting);
        if let Some(predecessor) = predecessor {
            server.engine.listeners().for_each(BoundListener::take_file);
            server.admin.take_files();
            if let Err(error) = predecessor.take_over() {
                tracing::warn!(%error, "the process before does not answer any more: this one serves alone");
            }
        }
        server.notifier.ready();
        Ok(server)
    }
}

/// The parts that were set up while the process had all its privileges.
struct Privileged {
    identity: Option<Identity>,
    descriptors: Limit,
    arena: Arena,
    /// For the answers of servers.
    responses: Arena,
    opened: Opened,
    control: Option<BoundListener>,
    admin: Option<BoundListener>,
    had_kernel_work: bool,
    fast_path: Availability,
    shield: Option<FloodShield>,
    /// Some systems let nobody else make one.
    rings: Rings,
    snapshot: PreparedSnapshot,
    /// Of HTTP/3, from a file.
    secret: Option<Secret>,
    /// Of the fleet, for tokens of HTTP/3.
    tokens: Option<Secret>,
    /// To the workers of the processes before.
    ways: Vec<OwnedFd>,
    starter: Option<Starter>,
}

impl Privileged {
    fn prepare(
        loaded: Loaded,
        (handles, tls): (&mut RootHandles, &mut TlsState),
        (mut inherited, predecessor): (Inherited, Option<&mut Predecessor>),
    ) -> anyhow::Result<Self> {
        let config = &loaded.config;
        let [descriptors, _] = privileges::raise_limits(needs(config));
        let identity = Identity::find(config.user.as_deref(), config.group.as_deref())?;
        let owner = identity.as_ref();
        let secret = config.http3.secret()?;
        // Its faults are those of the fleet.
        let tokens = fleet_secret(&config.fleet).ok().flatten();
        let tokens = tokens.map(|fleet| Secret::of(fleet.derive("tokens of HTTP/3")));
        let arena = Arena::new(config.cache.pinned_limit).with_context(|| {
            let size = human_size(config.cache.pinned_limit as u64);
            format!("cannot reserve {size} for the cache: lower [cache] pinned_limit")
        })?;
        let responses = Arena::new(config.shared_cache.limit).with_context(|| {
            let size = human_size(config.shared_cache.limit as u64);
            format!("cannot reserve {size} for the shared cache: lower [shared_cache] limit")
        })?;
        let place = Place { inherited: &mut inherited, owner };
        let moment = Moment::of(predecessor.as_deref());
        let bound = Bound { moment, ..Bound::default() };
        let opened = Opened::open(loaded, (handles, tls), &bound, place)?;
        let config = &opened.config;
        let place = Place { inherited: &mut inherited, owner: None };
        let admin = config.admin.map(|address| bind(&Address::Tcp(address), 1, 16, place));
        let admin = admin.transpose()?;
        let control = bind_control(config, Place { inherited: &mut inherited, owner });
        let ways = inherited.take_ways();
        inherited.rest().iter().for_each(|unwanted| tracing::warn!("{unwanted}"));
        let snapshot = PreparedSnapshot::new(&config.shared_cache, owner);
        let fast_path_settings = fast_path::settings(config, &opened.routes.hierarchy);
        let had_kernel_work = has_work(&fast_path_settings);
        if let Some(predecessor) = predecessor.filter(|_| had_kernel_work) {
            // If it has ended, its ports are free as well.
            let _ = predecessor.take_fast_path();
        }
        let (tcp, udp) = (opened.listeners.tcp(), opened.listeners.udp());
        let owner_of_pins = owner.map(fast_path::pin_dir_owner);
        // The verifier takes its time for both.
        let (fast_path, shield) = std::thread::scope(|scope| {
            let shield = scope.spawn(|| FloodShield::load(fast_path_settings.mode, &udp));
            let fast_path = AttachedPrograms::load(&fast_path_settings, &tcp, owner_of_pins);
            (fast_path, shield.join().unwrap_or_default())
        });
        let fast_path = fast_path?;
        let rings = Rings::prepare(config.workers, convert::io(config));
        tls.start_reader(config, owner);
        let starter = Starter::begin().inspect_err(
            |error| tracing::warn!(%error, "USR2 will not work: the process that starts the next one cannot be started"),
        );
        Ok(Self {
            identity,
            descriptors,
            arena,
            responses,
            opened,
            control,
            admin,
            had_kernel_work,
            fast_path,
            shield,
            rings,
            snapshot,
            secret,
            tokens,
            ways,
            starter: starter.ok(),
        })
    }

    fn drop_privileges(&self) -> anyhow::Result<()> {
        let keep = match &self.fast_path {
            Availability::Ready(programs) if programs.needs_net_admin() => CapabilitySet::NET_ADMIN,
            _ => CapabilitySet::empty(),
        };
        match &self.identity {
            Some(identity) => identity.assume(keep),
            None => privileges::restrict(keep),
        }
    }
}

/// The limits of the process that the configuration needs.
pub(super) fn needs(config: &Config) -> Needs {
    Needs {
        descriptors: config.descriptors() as u64,
        locked_memory: (config.cache.pinned_limit + config.shared_cache.limit) as u64,
    }
}

/// How workers wait for connections, and why not otherwise.
fn waiting(config: &Config, rings: &Rings) -> String {
    match (rings.refused(), config.engine.io) {
        (Some(error), _) => format!("by epoll, because the system refuses io_uring ({error})"),
        (None, Io::Auto) => "by epoll or io_uring, as the load suggests".to_owned(),
        (None, Io::Readiness) => "by epoll, as configured".to_owned(),
        (None, Io::Completion) => "by io_uring, as configured".to_owned(),
    }
}

/// The secret of HTTP/3's connection ids, which machines may share.
/// The control socket. A failure is only a warning, because AFPA can serve without it.
fn bind_control(config: &Config, place: Place<'_>) -> Option<BoundListener> {
    let path: anyhow::Result<PathBuf> = match &config.control {
        Some(path) => Ok(path.clone()),
        None => control::prepare_folder(place.owner).map(|folder| control::path_in(&folder)),
    };
    let bound = path.and_then(|path| bind(&Address::Unix(path), 1, 16, place));
    match bound {
        Ok(mut listener) => {
            listener.settings.others_only = true;
            Some(listener)
        }
        Err(error) => {
            tracing::warn!("no control socket, `afpa stats` will not work: {error:#}");
            None
        }
    }
}

/// Workers that serve nothing yet: settings, files and logs come when a configuration is taken into use.
fn start_workers(
    (config, confinement): (&Config, &Confinement),
    rings: Rings,
    nothing: &Serving,
    counters: &[Arc<HttpCounters>],
) -> anyhow::Result<Engine<Http>> {
    let (global, counters) = (Arc::clone(&nothing.global), counters.to_vec());
    let confinement = confinement.clone();
    let module: MakeModule = Box::new(move |WorkerContext { index, wake, ring }| {
        let counters = counters.get(index).map(Arc::clone).unwrap_or_default();
        // It reads what a worker may not open.
        let core = exchange::Core::new(ring);
        confinement.confine_worker();
        Http::new(Arc::clone(&global), counters, Box::new(NoAccessLog), core, wake)
    });
    // Helpers come with the configuration that is adopted: these would begin without its restrictions.
    let settings = Settings { workers: config.workers, helper_threads: 0, ..Settings::default() };
    Ok(afpa_workers::start(&settings, rings, config.limits.head, module)?)
}
