//! The start: first the steps that need privileges, then the shared build sequence, then the threads.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use afpa_cache::root::RootHandles;
use afpa_cache::watch::WatchThread;
use afpa_cache::{Arena, Heap};
use afpa_config::{Config, Io, ListenerNumbers, Loaded, human_size};
use afpa_fast_path::{
    AttachedPrograms, Availability, FastPathSettings, FastPathView, KernelScope, RunningFastPath,
    StartParts, has_work,
};
use afpa_module_http::{DocRoot, Http, HttpCounters};
use afpa_proxy::exchange;
use afpa_proxy::probe::HealthProber;
use afpa_server::worker::WorkerContext;
use afpa_server::{Address, BoundListener, Engine, Rings, Settings};
use afpa_shared_cache::Responses;
use afpa_tls::quic::Secret;
use anyhow::{Context as _, bail};
use arc_swap::ArcSwap;
use rustix::thread::CapabilitySet;

use super::acme::AcmeState;
use super::admin::Administration;
use super::build::{Next, Opened, Records};
use super::certificate_store::CertificateStore;
use super::convert;
use super::dns::{DnsState, Moment, PreparedDns};
use super::drop_thread::DropThread;
use super::helpers::HelperDirectories;
use super::listeners::{Place, bind, kernel_address};
use super::observe::Observed;
use super::police;
use super::serving::Serving;
use super::snapshot::{PreparedSnapshot, Snapshot};
use super::tls::TlsState;
use crate::access_log::Sinks;
use crate::confine::Confinement;
use crate::control;
use crate::fast_path;
use crate::notify::Notifier;
use crate::privileges::{self, Identity, Limit, Needs};
use crate::upgrade::{Inherited, Predecessor, Starter};

/// A running server.
pub(crate) struct Server {
    pub(super) config: Config,
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
    /// Probes servers and looks up their names, while there are any.
    pub(super) prober: Option<HealthProber>,
    /// The kernel's part, while it has one.
    pub(super) fast_path: Option<RunningFastPath>,
    /// Drops the roots of configurations that were replaced.
    pub(super) drop_thread: DropThread<DocRoot>,
    pub(super) notifier: Notifier,
    /// Starts the next process.
    pub(super) starter: Option<Starter>,
}

impl Server {
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
        let mut acme_state = AcmeState::default();
        let mut dns_state = DnsState::default();
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
            fast_path_settings,
            fast_path,
            rings,
            snapshot,
            dns,
            secret,
            ways,
            ..
        } = privileged;
        let (waiting, has_rings) = (waiting(&opened.config, &rings), !rings.is_empty());
        check_readable(&opened, identity.as_ref())?;

        let next = Next::build(opened, arena.clone(), &watch_thread, &confinement, None, None)?;
        let bound = next.listeners.tcp();
        let Next { config, routes, listeners, tls, acme, content, records } = next;
        drop(routes.hierarchy);
        let tls = tls_state.adopt(tls);
        let police = police::begin(match &fast_path {
            Availability::Ready(programs) => Some(programs.police_kernel()),
            Availability::Without(_) => None,
        });
        police::configure(&police, &config);
        let responses = Responses::new(convert::shared_cache(&config), responses);
        let challenges = acme_state.responses(&config.acme);
        let serving = content.serve(&config, tls, None, &police, &responses, challenges);
        let (mut snapshot, found) = snapshot.take(&responses);
        let prober = update_prober(None, &config, &serving)?;
        // They are always built when none are running.
        let Records { log, spans, sinks } = records.unwrap_or_default();
        let sinks = Arc::new(sinks);

        let kernel_activity = match &fast_path {
            Availability::Ready(programs) => Some(programs.kernel_activity()),
            Availability::Without(_) => None,
        };
        let counters: Vec<_> = (0..config.workers).map(|_| Arc::default()).collect();
        let mut settings = convert::engine(&config, kernel_activity, &police);
        let mut helpers = HelperDirectories::default();
        settings.helper_start = helpers.start(&confinement, &serving, None);
        let mut engine = start_workers(
            (&config, &confinement),
            (&settings, rings),
            &serving,
            &counters,
            &sinks,
        )?;
        let parts = StartParts {
            settings: &fast_path_settings,
            cache: &serving.cache,
            scope: KernelScope::of(&serving.global),
            bound: &bound,
            workers: &engine.counters(),
            sink: Box::new(sinks.take(config.workers)),
        };
        let (fast_path, view) = start_fast_path(fast_path, parts)?;
        let observed = Arc::new(Observed {
            started: Instant::now(),
            fast_path: view,
            serving: ArcSwap::from_pointee(serving),
            http: counters,
            workers: engine.counters(),
            access_log: ArcSwap::from_pointee(log),
            spans: ArcSwap::from_pointee(spans),
            police,
            certificates: acme_state.statuses(),
            dns: ArcSwap::default(),
        });
        // Without sockets of theirs, processes before have to go on receiving.
        let has_datagrams = listeners.new.iter().any(BoundListener::has_datagrams);
        engine.steer_by(secret, if has_datagrams { ways } else { Vec::new() });
        for listener in listeners.new {
            engine.listen(listener)?;
        }
        dns_state.adopt(dns, &config, engine.connection_limits(), &confinement)?;
        observed.dns.store(Arc::new(dns_state.counters()));
        // An authority asks at once.
        acme_state.adopt(acme)?;
        tls_state.wait_on_demand(acme_state.on_demand(&config.acme));
        let shares_path = config.control.is_some();
        let admin = Administration::start(&observed, &confinement, control, admin, shares_path)?;
        snapshot.read(found, &responses);
        let server = Self {
            config,
            engine,
            admin,
            observed,
            arena,
            responses,
            heap: Heap::default(),
            snapshot,
            has_rings,
            confinement,
            helpers,
            numbers: routes.listeners,
            had_kernel_work: has_work(&fast_path_settings),
            handles,
            watch_thread,
            tls: tls_state,
            acme: acme_state,
            dns: dns_state,
            prober,
            fast_path,
            drop_thread: DropThread::default(),
            notifier,
            starter,
        };
        server.introduce(identity.as_ref(), descriptors, waiting);
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
    fast_path_settings: FastPathSettings,
    fast_path: Availability,
    /// Some systems let nobody else make one.
    rings: Rings,
    snapshot: PreparedSnapshot,
    dns: PreparedDns,
    /// Of HTTP/3, from a file.
    secret: Option<Secret>,
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
        let secret = config.http3.key.as_deref().map(read_secret).transpose()?;
        let arena = Arena::new(config.cache.pinned_limit).with_context(|| {
            let size = human_size(config.cache.pinned_limit as u64);
            format!("cannot reserve {size} for the cache: lower [cache] pinned_limit")
        })?;
        let responses = Arena::new(config.shared_cache.limit).with_context(|| {
            let size = human_size(config.shared_cache.limit as u64);
            format!("cannot reserve {size} for the shared cache: lower [shared_cache] limit")
        })?;
        let place = Place { inherited: &mut inherited, owner };
        let opened = Opened::open(loaded, (handles, tls), &[], place)?;
        let config = &opened.config;
        let moment = if predecessor.is_some() { Moment::Upgrade } else { Moment::Start };
        let dns = PreparedDns::new(config, &[], moment)?;
        let place = Place { inherited: &mut inherited, owner: None };
        let admin = config.admin.map(|address| bind(&Address::Tcp(address), 1, 16, place));
        let admin = admin.transpose()?;
        let control = bind_control(config, Place { inherited: &mut inherited, owner });
        let ways = inherited.take_ways();
        inherited.rest().iter().for_each(|unwanted| tracing::warn!("{unwanted}"));
        let snapshot = PreparedSnapshot::new(&config.shared_cache, owner);
        let fast_path_settings = fast_path::settings(config, &opened.routes.hierarchy);
        if let Some(predecessor) = predecessor.filter(|_| has_work(&fast_path_settings)) {
            // If it has ended, its ports are free as well.
            let _ = predecessor.take_fast_path();
        }
        let fast_path = AttachedPrograms::load(
            &fast_path_settings,
            &opened.listeners.tcp(),
            owner.map(fast_path::pin_dir_owner),
        )?;
        if let Availability::Ready(programs) = &fast_path {
            for listener in &opened.listeners.new {
                if let Some(address) = kernel_address(&listener.address, &listener.settings) {
                    programs.serve(address, listener.tcp_sockets())?;
                }
            }
        }
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
            fast_path_settings,
            fast_path,
            rings,
            snapshot,
            dns,
            secret,
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
fn read_secret(path: &Path) -> anyhow::Result<Secret> {
    let said = path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the key of HTTP/3 in {said}"))?;
    Secret::parse(&text).with_context(|| {
        format!("{said} has no key of 64 hexadecimal digits in its first line: make one by `openssl rand -hex 32`")
    })
}

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

/// Fails if the new user cannot read a root: every answer from it would be 403.
fn check_readable(opened: &Opened, identity: Option<&Identity>) -> anyhow::Result<()> {
    for (root, configured) in opened.roots.iter().zip(&opened.routes.hierarchy.roots) {
        if !root.is_readable() {
            let who = identity.map_or("this user", |identity| &identity.name);
            let path = configured.directory.display();
            bail!("{who} may not read {path}: change its permissions, or choose another --user")
        }
    }
    Ok(())
}

/// The prober of the groups that are served from now on; none while there never were any.
pub(super) fn update_prober(
    running: Option<HealthProber>,
    config: &Config,
    serving: &Serving,
) -> anyhow::Result<Option<HealthProber>> {
    let groups = serving.groups();
    match running {
        Some(prober) => {
            prober.replace(groups, config.resolver.clone());
            Ok(Some(prober))
        }
        None if groups.is_empty() => Ok(None),
        None => {
            // It waits for the first addresses on an event loop of its own, but this thread runs one already.
            let resolver = config.resolver.clone();
            let start = std::thread::spawn(move || HealthProber::start(groups, resolver)).join();
            let prober = start.unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into()));
            prober.map(Some).context("the thread that probes servers cannot be started")
        }
    }
}

fn start_workers(
    (config, confinement): (&Config, &Confinement),
    (settings, rings): (&Settings, Rings),
    serving: &Serving,
    counters: &[Arc<HttpCounters>],
    sinks: &Arc<Sinks>,
) -> anyhow::Result<Engine<Http>> {
    let (global, counters) = (Arc::clone(&serving.global), counters.to_vec());
    let (sinks, confinement) = (Arc::clone(sinks), confinement.clone());
    let module = move |WorkerContext { index, wake, ring }: WorkerContext| {
        let counters = counters.get(index).map(Arc::clone).unwrap_or_default();
        let sink = Box::new(sinks.take(index));
        // It reads what a worker may not open.
        let core = exchange::Core::new(ring);
        confinement.confine_worker();
        Http::new(Arc::clone(&global), counters, sink, core, wake)
    };
    Ok(Engine::start_with_rings(settings, rings, config.limits.head, module)?)
}

fn start_fast_path(
    programs: Availability,
    parts: StartParts<'_>,
) -> anyhow::Result<(Option<RunningFastPath>, FastPathView)> {
    match programs {
        Availability::Ready(programs) => {
            let fast_path = programs.start(parts)?;
            let view = FastPathView::of(&fast_path);
            Ok((Some(fast_path), view))
        }
        Availability::Without(why) => Ok((None, FastPathView::without(why))),
    }
}
