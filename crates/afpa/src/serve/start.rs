//! Setting up: everything that needs privileges, then the threads.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use afpa_cache::Arena;
use afpa_cache::root::{DocumentRoot, Entry};
use afpa_fast_path::{
    AttachedPrograms, Availability, FastPathView, KernelScope, RunningFastPath, StartParts,
};
use afpa_module_http::{Global, Http, HttpCounters, Site};
use afpa_proxy::probe::Keeper;
use afpa_server::worker::WorkerContext;
use afpa_server::{Address, BoundListener, Engine, Settings};
use anyhow::{Context as _, bail};
use arc_swap::ArcSwap;
use rustix::thread::CapabilitySet;

use super::admin::{self, Admin};
use super::convert;
use super::leaving::Leaving;
use super::observe::Observed;
use super::serving::{Draft, Numbers, Serving, open_roots};
use crate::access_log::{AccessLog, Sink};
use crate::config::{Config, Hierarchy, human_size};
use crate::control;
use crate::fast_path;
use crate::notify::Notifier;
use crate::privileges::{self, Identity, Limit, Needs};
use crate::summary::{Memory, Summary, Watches};

/// A running server.
pub(crate) struct Server {
    pub(super) config: Config,
    pub(super) engine: Engine<Http>,
    /// Serves control socket and metrics; apart, so that it answers also when the workers are busy.
    pub(super) admin: Engine<Admin>,
    pub(super) observed: Arc<Observed>,
    pub(super) arena: Arena,
    pub(super) numbers: Numbers,
    /// Probes servers and looks up their names, while there are any.
    pub(super) keeper: Option<Keeper>,
    /// The kernel's part, while it has one.
    pub(super) fast_path: Option<RunningFastPath>,
    /// Roots of configurations that were replaced.
    pub(super) leaving: Leaving<Site>,
    pub(super) notifier: Notifier,
}

/// Connections of the access log, one a worker and one for the kernel, handed out once.
pub(super) struct Sinks(Mutex<Vec<Option<Sink>>>);

/// How long the start waits for the scan of the tree before it says what is watched.
const SCAN_PATIENCE: Duration = Duration::from_secs(2);

impl Server {
    /// Starts serving.
    ///
    /// # Errors
    /// What the system refused, with the remedy where there is one.
    pub(crate) fn start(config: Config) -> anyhow::Result<Self> {
        let notifier = Notifier::from_environment().unwrap_or_else(|error| {
            tracing::warn!(%error, "the service manager cannot be told anything");
            Notifier::default()
        });
        let mut numbers = Numbers::default();
        let hierarchy = numbers.hierarchy(&config);
        let privileged = Privileged::prepare(&config, &hierarchy, &mut numbers)?;
        privileged.drop_privileges()?;
        let Privileged {
            identity,
            descriptors,
            arena,
            listeners,
            control,
            admin,
            roots,
            fast_path,
        } = privileged;
        for (root, configured) in roots.iter().zip(&hierarchy.roots) {
            check_readable(root, &configured.directory, identity.as_ref())?;
        }
        let serving = Draft::new(&config, &hierarchy, roots, arena.clone())?.adopt(&config, None);
        let keeper = keep(None, &config, &serving)?;
        let (access_log, sinks) = start_log(&config)?;
        let sinks = Arc::new(Sinks::new(sinks));
        let counters: Vec<_> = (0..config.workers).map(|_| Arc::default()).collect();
        let settings = Settings {
            elsewhere: match &fast_path {
                Availability::Ready(programs) => Some(programs.elsewhere()),
                Availability::Without(_) => None,
            },
            ..convert::engine(&config)
        };
        let mut engine =
            start_workers(&config, &settings, &serving.global, &counters, Arc::clone(&sinks))?;
        let bound = tcp(listeners.iter().map(|listener| &listener.address));
        let parts = StartParts {
            settings: &fast_path::settings(&config),
            cache: &serving.cache,
            scope: KernelScope::of(&serving.global),
            bound: &bound,
            workers: &engine.counters(),
            sink: Box::new(sinks.take(config.workers)),
        };
        let (fast_path, view) = match fast_path {
            Availability::Ready(programs) => {
                let fast_path = programs.start(parts)?;
                let view = FastPathView::of(&fast_path);
                (Some(fast_path), view)
            }
            Availability::Without(why) => (None, FastPathView::without(why)),
        };
        let observed = Arc::new(Observed {
            started: Instant::now(),
            fast_path: view,
            serving: ArcSwap::from_pointee(serving),
            http: counters,
            workers: engine.counters(),
            access_log: ArcSwap::from_pointee(access_log),
        });
        for listener in listeners {
            engine.listen(listener)?;
        }
        let admin = admin::start(Arc::clone(&observed), control, admin)?;
        let leaving = Leaving::default();
        let server = Self {
            config,
            engine,
            admin,
            observed,
            arena,
            numbers,
            keeper,
            fast_path,
            leaving,
            notifier,
        };
        server.introduce(identity.as_ref(), descriptors);
        server.notifier.ready();
        Ok(server)
    }

    /// Says what was found, and how it could be better.
    fn introduce(&self, identity: Option<&Identity>, descriptors: Limit) {
        let summary = Summary {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            workers: self.config.workers,
            listeners: self.engine.addresses().map(url).collect(),
            root: self.served(),
            user: identity.map(|identity| identity.name.clone()).unwrap_or_default(),
            pinned_limit: self.arena.usage().limit as u64,
            memory: memory(&self.arena),
            descriptors,
            watches: self.watches(),
            fast_path: self.observed.fast_path.line(),
            control: self.admin.addresses().find_map(|address| match address {
                Address::Unix(path) => Some(path.display().to_string()),
                Address::Tcp(_) => None,
            }),
            admin: self.admin.addresses().find(|a| matches!(a, Address::Tcp(_))).map(url),
        };
        eprint!("{summary}");
    }

    fn watches(&self) -> Watches {
        let max_age = format!("{:?}", self.config.coherency.unwatched_max_age);
        if !self.config.coherency.watch {
            return Watches::Off { max_age };
        }
        let serving = self.observed.serving.load();
        let (mut directories, mut unwatched) = (0, None);
        for watcher in serving.global.roots.iter().filter_map(|root| root.watcher()) {
            watcher.wait_complete(SCAN_PATIENCE);
            let summary = watcher.summary();
            directories += summary.watched;
            let first = summary.unwatched.first_key_value();
            unwatched = unwatched.or(first.map(|(reason, count)| (*reason, *count)));
        }
        match unwatched {
            None => Watches::All { directories },
            Some((reason, count)) => Watches::Some {
                directories,
                reason: format!("{count}: {reason}"),
                max_age,
                remedy: reason
                    .remedy()
                    .unwrap_or("their files are compared when they are old")
                    .into(),
            },
        }
    }

    /// Directories and server groups, for people.
    fn served(&self) -> String {
        let mut served: Vec<String> = Vec::new();
        let sites = self.config.sites.iter();
        let roots = sites.flat_map(|site| {
            let paths = site.paths.iter().flat_map(|path| {
                let contents = path.contents.iter().filter_map(|c| c.behaviour.root.as_ref());
                path.behaviour.root.iter().chain(contents)
            });
            site.root.iter().chain(paths)
        });
        let groups = self.config.groups.iter().map(|group| group.settings.name.clone());
        for name in roots.map(|root| root.display().to_string()).chain(groups) {
            if !served.contains(&name) {
                served.push(name);
            }
        }
        const SHOWN: usize = 4;
        let more = served.len().saturating_sub(SHOWN);
        served.truncate(SHOWN);
        let more = if more > 0 { format!("  and {more} more") } else { String::new() };
        format!("{}{more}", served.join("  "))
    }
}

/// What was set up while the process had all its privileges.
struct Privileged {
    identity: Option<Identity>,
    descriptors: Limit,
    arena: Arena,
    listeners: Vec<BoundListener>,
    control: Option<BoundListener>,
    admin: Option<BoundListener>,
    roots: Vec<DocumentRoot>,
    fast_path: Availability,
}

impl Privileged {
    fn prepare(
        config: &Config,
        hierarchy: &Hierarchy,
        numbers: &mut Numbers,
    ) -> anyhow::Result<Self> {
        let [descriptors, _] = privileges::raise_limits(Needs {
            descriptors: (config.limits.connections + config.cache.open_files + 256) as u64,
            locked_memory: config.cache.pinned_limit as u64,
        });
        let identity = Identity::find(config.user.as_deref(), config.group.as_deref())?;
        let arena = Arena::new(config.cache.pinned_limit).with_context(|| {
            let size = human_size(config.cache.pinned_limit as u64);
            format!("cannot reserve {size} for the cache: lower [cache] pinned_limit")
        })?;
        let settings = convert::engine(config);
        let listeners: Vec<BoundListener> = convert::addresses(config)
            .iter()
            .map(|(listen, address)| {
                let bound = bind(address, settings.workers, settings.backlog, identity.as_ref())?;
                Ok(bound.with(numbers.settings(config, listen)))
            })
            .collect::<anyhow::Result<_>>()?;
        let bound = tcp(listeners.iter().map(|listener| &listener.address));
        let admin = config.admin.map(|address| bind(&Address::Tcp(address), 1, 16, None));
        Ok(Self {
            descriptors,
            arena,
            listeners,
            control: bind_control(config, identity.as_ref()),
            admin: admin.transpose()?,
            roots: open_roots(config, hierarchy)?,
            fast_path: AttachedPrograms::load(
                &fast_path::settings(config),
                &bound,
                identity.as_ref().map(fast_path::pin_dir_owner),
            )?,
            identity,
        })
    }

    fn drop_privileges(&self) -> anyhow::Result<()> {
        let nothing = CapabilitySet::empty();
        match &self.identity {
            Some(identity) => identity.assume(nothing),
            None => privileges::restrict(nothing),
        }
    }
}

/// The keeper of the groups that are served from now on; none while there are none.
pub(super) fn keep(
    keeper: Option<Keeper>,
    config: &Config,
    serving: &Serving,
) -> anyhow::Result<Option<Keeper>> {
    let groups = serving.groups();
    match keeper {
        Some(keeper) => {
            keeper.replace(groups, config.resolver.clone());
            Ok(Some(keeper))
        }
        None if groups.is_empty() => Ok(None),
        None => {
            // It waits for first addresses on an event loop of its own, and this thread runs one.
            let resolver = config.resolver.clone();
            let start = std::thread::spawn(move || Keeper::start(groups, resolver)).join();
            let keeper = start.unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into()));
            keeper.map(Some).context("the thread that probes servers cannot be started")
        }
    }
}

pub(super) fn bind(
    address: &Address,
    workers: usize,
    backlog: i32,
    owner: Option<&Identity>,
) -> anyhow::Result<BoundListener> {
    let listener = BoundListener::bind(address, workers, backlog)
        .with_context(|| format!("cannot listen on {address}{}", hint(address)))?;
    if let Some(owner) = owner {
        listener
            .give_to(owner.uid.as_raw(), owner.gid.as_raw())
            .with_context(|| format!("cannot give {address} to {}", owner.name))?;
    }
    Ok(listener)
}

fn hint(address: &Address) -> &'static str {
    match address {
        Address::Tcp(address) if address.port() < 1024 && address.port() != 0 => {
            " (ports below 1024 need root or CAP_NET_BIND_SERVICE)"
        }
        _ => "",
    }
}

/// The control socket. Serving is more important: without it there is a warning.
fn bind_control(config: &Config, identity: Option<&Identity>) -> Option<BoundListener> {
    let path: anyhow::Result<PathBuf> = match &config.control {
        Some(path) => Ok(path.clone()),
        None => control::prepare_folder(identity.map(|identity| identity.uid))
            .map(|()| control::default_path()),
    };
    let bound = path.and_then(|path| bind(&Address::Unix(path), 1, 16, identity));
    match bound {
        Ok(listener) => Some(listener),
        Err(error) => {
            tracing::warn!("no control socket, `afpa stats` will not work: {error:#}");
            None
        }
    }
}

/// A root that the new user cannot read would answer everything with 403: say so at once.
fn check_readable(
    root: &DocumentRoot,
    path: &Path,
    identity: Option<&Identity>,
) -> anyhow::Result<()> {
    let readable = match root.resolve(b"/") {
        Ok(Entry::Directory(directory)) => directory.list(true, 0).is_ok_or_full(),
        _ => false,
    };
    if readable {
        return Ok(());
    }
    let who = identity.map_or("this user", |identity| &identity.name);
    let path = path.display();
    bail!("{who} may not read {path}: change its permissions, or choose another --user")
}

/// Whether a listing failed only because there is more than nothing to list.
trait OkOrFull {
    fn is_ok_or_full(&self) -> bool;
}

impl<T> OkOrFull for std::io::Result<T> {
    fn is_ok_or_full(&self) -> bool {
        match self {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::FileTooLarge,
        }
    }
}

/// One sink for each worker, and one for the kernel's answers.
pub(super) fn start_log(config: &Config) -> anyhow::Result<(AccessLog, Vec<Sink>)> {
    AccessLog::start(&config.log, config.workers + 1)
}

/// The internet addresses among `addresses`: the kernel answers on no others.
pub(super) fn tcp<'a>(addresses: impl Iterator<Item = &'a Address>) -> Vec<SocketAddr> {
    let tcp = addresses.filter_map(|address| match address {
        Address::Tcp(address) => Some(*address),
        Address::Unix(_) => None,
    });
    tcp.collect()
}

fn start_workers(
    config: &Config,
    settings: &Settings,
    global: &Arc<Global>,
    counters: &[Arc<HttpCounters>],
    sinks: Arc<Sinks>,
) -> anyhow::Result<Engine<Http>> {
    let (global, counters) = (Arc::clone(global), counters.to_vec());
    let module = move |WorkerContext { index, wake }: WorkerContext| {
        let counters = counters.get(index).map(Arc::clone).unwrap_or_default();
        Http::new(Arc::clone(&global), counters, Box::new(sinks.take(index)), wake)
    };
    Ok(Engine::start(settings, config.limits.head, module)?)
}

impl Sinks {
    pub(super) fn new(sinks: Vec<Sink>) -> Self {
        Self(Mutex::new(sinks.into_iter().map(Some).collect()))
    }

    /// The sink of a worker; one that wants nothing if it was taken before.
    pub(super) fn take(&self, worker: usize) -> Sink {
        let mut sinks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sinks.get_mut(worker).and_then(Option::take).unwrap_or_else(Sink::off)
    }
}

fn memory(arena: &Arena) -> Memory {
    match arena.lock_report() {
        afpa_cache::LockReport::Locked => Memory::Locked,
        afpa_cache::LockReport::NotLocked { reason, remedy } => {
            Memory::NotLocked { reason: reason.clone(), remedy: remedy.clone() }
        }
    }
}

fn url(address: &Address) -> String {
    match address {
        Address::Tcp(address) => format!("http://{address}/"),
        Address::Unix(_) => address.to_string(),
    }
}
