//! The engine: one thread per worker, and the commands that all workers get.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use afpa_framework::{Address, HelperLimits, Helpers, Module};
use afpa_ring::{CoreRing, PreparedRing, Ring};
use afpa_tls::quic::Secret;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use thiserror::Error;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::counters::WorkerCounters;
use crate::h3::{KernelKeys, Steering};
use crate::io::Rings;
use crate::limits::{ConnectionLimits, Limits};
use crate::listener::{self, BoundListener, ListenerSettings};
use crate::pipe;
use crate::settings::{HelperStart, Settings};
use crate::worker::share::{Loads, Share};
use crate::worker::{Command, Worker, WorkerContext};

/// Why a command to the engine failed.
#[derive(Debug, Error)]
pub enum EngineError {
    /// A worker could not be started.
    #[error("worker {index} cannot start: {source}")]
    Start {
        /// Number of the worker.
        index: usize,
        /// The error of the system.
        source: io::Error,
    },
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address as configured.
        address: Address,
        /// The error of the system.
        source: io::Error,
    },
}

/// Running workers. Dropping it stops them at once.
#[derive(Debug)]
pub struct Engine<M: Module> {
    workers: Vec<Handle<M>>,
    limits: Limits,
    /// The core of each worker, if all have cores of their own.
    cores: Vec<u32>,
    loads: Arc<Loads>,
    listeners: HashMap<u64, BoundListener>,
    next_listener: AtomicU64,
    /// Sockets of HTTP/3 at addresses that were given up, as long as connections of theirs live.
    left: Vec<Weak<UdpSocket>>,
    /// Of the datagrams of HTTP/3, once there are any, and until then its parts.
    steering: Option<Steering>,
    to_steer: (Secrets, Vec<OwnedFd>),
}

/// That of ids and resets, and one of tokens alone.
type Secrets = (Option<Secret>, Option<Secret>);

#[derive(Debug)]
struct Handle<M> {
    commands: UnboundedSender<Command<M>>,
    counters: Arc<WorkerCounters>,
    thread: Option<JoinHandle<()>>,
}

impl<M: Module> Engine<M> {
    /// Starts `settings.workers` workers. `module` makes the module value of each, on its thread;
    /// `largest_head` is the longest input that the module may call incomplete.
    ///
    /// # Errors
    /// [`EngineError::Start`] when a thread or its event loop cannot be made.
    pub fn start(
        settings: &Settings,
        largest_head: usize,
        module: impl Fn(WorkerContext) -> M + Send + Sync + 'static,
    ) -> Result<Self, EngineError> {
        Self::start_with_rings(settings, Rings::default(), largest_head, module)
    }

    /// As [`start`](Self::start), with rings for completion.
    ///
    /// # Errors
    /// [`EngineError::Start`] when a thread or its event loop cannot be made.
    pub fn start_with_rings(
        settings: &Settings,
        mut rings: Rings,
        largest_head: usize,
        module: impl Fn(WorkerContext) -> M + Send + Sync + 'static,
    ) -> Result<Self, EngineError> {
        // Opened here, because a worker may be forbidden to open anything.
        pipe::open_null();
        let start = |source| EngineError::Start { index: 0, source };
        let mut helpers =
            start_helpers(settings.workers.max(1), settings).map_err(start)?.into_iter();
        let module = Arc::new(module);
        let limits = Limits::default();
        let workers = settings.workers.max(1);
        let cores = own_cores(workers);
        let loads = Arc::new(Loads::new(workers));
        let (commands, orders): (Vec<_>, Vec<_>) =
            (0..workers).map(|_| unbounded_channel()).unzip();
        let mut engine = Self {
            workers: Vec::new(),
            limits: limits.clone(),
            cores: if workers > 1 { cores.clone() } else { Vec::new() },
            loads: Arc::clone(&loads),
            listeners: HashMap::new(),
            next_listener: AtomicU64::new(0),
            left: Vec::new(),
            steering: None,
            to_steer: Default::default(),
        };
        for (index, orders) in orders.into_iter().enumerate() {
            let counters = Arc::new(WorkerCounters::default());
            let share =
                engine.cores.get(index).map(|core| (*core, Arc::clone(&loads), commands.clone()));
            let Some(helpers) = helpers.next() else { break };
            let start = Start {
                index,
                settings: settings.clone(),
                largest_head,
                counters: Arc::clone(&counters),
                limits: limits.clone(),
                core: cores.get(index).copied(),
                share,
                ring: rings.take(),
                helpers,
                orders,
            };
            let module = Arc::clone(&module);
            let thread = start
                .spawn(move |context| module(context))
                .map_err(|source| EngineError::Start { index, source })?;
            let Some(commands) = commands.get(index).cloned() else { break };
            engine.workers.push(Handle { commands, counters, thread: Some(thread) });
        }
        Ok(engine)
    }

    /// Steers datagrams of HTTP/3 by this secret from the first address on where they come; by that of the process before
    /// if it is `None`, or by a new one. `tokens` is a secret of tokens alone, which other machines may have. `inherited` are the [`ways`](Self::steering_sockets) to processes before.
    pub fn steer_by(
        &mut self,
        (secret, tokens): (Option<Secret>, Option<Secret>),
        inherited: Vec<OwnedFd>,
    ) {
        self.to_steer = ((secret, tokens), inherited);
    }

    fn steer(&mut self, listener: &BoundListener) -> io::Result<()> {
        if self.steering.is_none() {
            let (secrets, inherited) = std::mem::take(&mut self.to_steer);
            let (steering, parts) = Steering::start(secrets, inherited, self.workers.len())?;
            for (worker, part) in self.workers.iter().zip(parts) {
                worker.order(Command::Steer(Box::new(part)));
            }
            self.steering = Some(steering);
        }
        if let Some(steering) = &self.steering {
            steering.steer(listener.udp());
        }
        Ok(())
    }

    /// Ways to the workers of this process and of those before it, for the next one: it passes on what comes for their
    /// connections of HTTP/3.
    pub fn steering_sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.steering.iter().flat_map(Steering::sockets)
    }

    /// The keys of datagrams of HTTP/3 for a program in the kernel; `None`: none are received yet.
    pub fn kernel_keys(&self) -> Option<KernelKeys> {
        self.steering.as_ref().map(Steering::kernel_keys)
    }

    /// Whether the next process begins to receive by the same sockets.
    pub fn expect_next(&self, begins: bool) {
        if let Some(steering) = &self.steering {
            steering.expect_next(begins);
        }
    }

    /// Listens on a bound address with every worker.
    ///
    /// # Errors
    /// [`EngineError::Listen`] when the sockets cannot be handed out.
    pub fn listen(&mut self, listener: BoundListener) -> Result<(), EngineError> {
        let refused = |source| EngineError::Listen { address: listener.address.clone(), source };
        listener.prefer(&self.cores);
        listener.listen().map_err(refused)?;
        if !listener.udp().is_empty() {
            self.steer(&listener).map_err(refused)?;
        }
        let id = self.next_listener.fetch_add(1, Ordering::Relaxed);
        for (index, worker) in self.workers.iter().enumerate() {
            let sockets = listener.for_worker(index, self.workers.len()).map_err(refused)?;
            worker.order(Command::Listen(id, sockets, listener.settings.clone()));
        }
        self.listeners.insert(id, listener);
        Ok(())
    }

    /// Accepts connections on `address` with other settings from now on.
    pub fn relisten(&mut self, address: &Address, settings: &ListenerSettings) {
        let found = self.listeners.iter_mut().find(|(_, listener)| listener.address == *address);
        let Some((id, listener)) = found else { return };
        listener.settings = settings.clone();
        for worker in &self.workers {
            worker.order(Command::Relisten(*id, settings.clone()));
        }
    }

    /// Stops listening on `address`; connections that were accepted end when they are idle.
    pub fn unlisten(&mut self, address: &Address) {
        let found = self.listeners.iter().find(|(_, l)| l.address == *address);
        let Some(id) = found.map(|(id, _)| *id) else { return };
        for worker in &self.workers {
            worker.order(Command::Unlisten(id));
        }
        self.left.retain(|socket| socket.strong_count() > 0);
        if let Some(listener) = self.listeners.remove(&id) {
            self.left.extend(listener.udp().iter().map(Arc::downgrade));
        }
    }

    /// The sockets of HTTP/3 at addresses that were given up, while their connections end. One that is listened on again has
    /// to have these: clients' datagrams still come to them.
    pub fn left_datagrams(&self) -> Vec<UdpSocket> {
        let left = self.left.iter().filter_map(Weak::upgrade);
        left.filter_map(|socket| socket.try_clone().ok()).collect()
    }

    /// The listeners.
    pub fn listeners(&self) -> impl Iterator<Item = &BoundListener> {
        self.listeners.values()
    }

    /// Whether the datagrams of HTTP/3 are received at an address, or could be if it were listened on.
    pub fn takes_datagrams(&self, address: SocketAddr) -> bool {
        let bound = self.listeners().find(|one| one.address == Address::Tcp(address));
        let is_left = || {
            let mut left = self.left.iter().filter_map(Weak::upgrade);
            left.any(|socket| socket.local_addr().is_ok_and(|bound| bound == address))
        };
        let can_be = || is_left() || listener::takes_datagrams(address);
        bound.map_or_else(can_be, |one| !one.udp().is_empty())
    }

    /// The addresses listened on.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.listeners.values().map(|listener| &listener.address)
    }

    /// Has every worker apply a change to its module, between two events, and take new settings. The change
    /// gets the number of the worker, too. With a [`HelperStart`](crate::HelperStart), the workers get new helpers; the
    /// old ones finish their work.
    ///
    /// # Errors
    /// When no thread can be started for new helpers: the old ones stay, and all else takes effect.
    pub fn reload(
        &self,
        settings: &Settings,
        change: impl Fn(&mut M, usize) + Clone + Send + 'static,
    ) -> io::Result<()> {
        let new = settings.helper_start != HelperStart::default();
        let count = if new { self.workers.len() } else { 0 };
        let (helpers, refused) = match start_helpers(count, settings) {
            Ok(helpers) => (helpers, Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        let mut helpers = helpers.into_iter();
        for (index, worker) in self.workers.iter().enumerate() {
            let change = change.clone();
            let apply = Box::new(move |module: &mut M| change(module, index));
            worker.order(Command::Reload(apply, Box::new(settings.clone()), helpers.next()));
        }
        refused
    }

    /// Counts of every worker, by its number.
    pub fn counters(&self) -> Vec<Arc<WorkerCounters>> {
        self.workers.iter().map(|worker| Arc::clone(&worker.counters)).collect()
    }

    /// Connections open now.
    pub fn open_connections(&self) -> usize {
        self.limits.connections.open()
    }

    /// The count of open connections, in which those of other protocols take part.
    pub fn connection_limits(&self) -> Arc<ConnectionLimits> {
        Arc::clone(&self.limits.connections)
    }

    /// Stops accepting and lets requests in flight end. A worker ends with its last connection.
    pub fn drain(&mut self) {
        self.order_all(|| Command::Drain(Duration::ZERO));
        self.listeners.clear();
    }

    /// The next process has the sockets by now: [`drain`](Self::drain), but connections that wait for a request
    /// are closed only when none has come for `idle`. A client that has just sent one gets its response.
    pub fn drain_for_next(&mut self, idle: Duration) {
        self.listeners.values().for_each(BoundListener::leave_file);
        self.order_all(|| Command::Drain(idle));
        self.listeners.clear();
        if let Some(steering) = &mut self.steering {
            steering.hand_over();
        }
    }

    /// Whether any worker is still at work.
    pub fn is_running(&self) -> bool {
        self.workers.iter().any(Handle::is_running)
    }

    /// Ends every worker and connection now, and the connections that still wait to be accepted.
    pub fn stop(&mut self) {
        self.loads.stop();
        self.order_all(|| Command::Stop);
        self.listeners.clear();
        for worker in &mut self.workers {
            if let Some(thread) = worker.thread.take() {
                // A worker that panicked has reported that on stderr.
                let _ = thread.join();
            }
        }
    }

    fn order_all(&self, command: impl Fn() -> Command<M>) {
        for worker in &self.workers {
            worker.order(command());
        }
    }
}

impl<M: Module> Drop for Engine<M> {
    fn drop(&mut self) {
        self.stop();
    }
}

impl<M> Handle<M> {
    fn order(&self, command: Command<M>) {
        // A worker that has ended needs no commands.
        let _ = self.commands.send(command);
    }

    fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

/// The number of a worker, the loads of all, and the ways to the others.
type ShareParts<M> = (u32, Arc<Loads>, Vec<UnboundedSender<Command<M>>>);

/// The parts with which a worker's thread starts.
struct Start<M> {
    index: usize,
    settings: Settings,
    largest_head: usize,
    counters: Arc<WorkerCounters>,
    limits: Limits,
    /// The core that is its own.
    core: Option<u32>,
    /// The parts of its share, if there are several workers with cores of their own.
    share: Option<ShareParts<M>>,
    ring: Option<PreparedRing>,
    helpers: Helpers,
    orders: UnboundedReceiver<Command<M>>,
}

impl<M: Module> Start<M> {
    /// Starts the thread and waits until its event loop exists.
    fn spawn(
        self,
        module: impl FnOnce(WorkerContext) -> M + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        let (report, started) = mpsc::channel::<io::Result<()>>();
        let thread = std::thread::Builder::new()
            .name(format!("afpa-{}", self.index))
            .spawn(move || self.work(module, report))?;
        started.recv().unwrap_or_else(|_| Err(io::Error::other("the worker ended at once")))?;
        Ok(thread)
    }

    fn work(self, module: impl FnOnce(WorkerContext) -> M, report: mpsc::Sender<io::Result<()>>) {
        if let Some(core) = self.core {
            pin_to_core(core);
        }
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build_local(LocalOptions::default());
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => return drop(report.send(Err(error))),
        };
        let _ = report.send(Ok(()));
        runtime.block_on(async move {
            let dropped = Arc::new(Notify::new());
            let wake = {
                let dropped = Arc::clone(&dropped);
                Arc::new(move || dropped.notify_one())
            };
            let ring = CoreRing::new(self.ring.and_then(enable));
            let context = WorkerContext { index: self.index, wake, ring: ring.clone() };
            let module = module(context);
            let (counters, limits) = (self.counters, self.limits);
            let (settings, head) = (self.settings, self.largest_head);
            let share =
                self.share.map(|(core, loads, all)| Share::new(self.index, core, loads, all));
            let own = (limits, share);
            let worker = Worker::new(module, settings, head, counters, own, ring, self.helpers);
            std::rc::Rc::new(worker).run(self.orders, dropped).await;
        });
        // Work that still runs on helper threads is abandoned: a stop does not wait for a disk.
    }
}

/// Helpers for so many workers.
fn start_helpers(workers: usize, settings: &Settings) -> io::Result<Vec<Helpers>> {
    let names = (0..workers).map(|index| format!("afpa-help-{index}"));
    let limits = HelperLimits { threads: settings.helper_threads, places: settings.helper_places };
    Helpers::start(names, limits, || settings.helper_start.begin())
}

/// Makes this thread the owner of the ring.
fn enable(ring: PreparedRing) -> Option<Ring> {
    let tell = |error: &io::Error| {
        tracing::warn!(%error, "a worker cannot use io_uring, and waits by epoll");
    };
    ring.enable().inspect_err(tell).ok()
}

/// The core of each worker, if there is exactly one for each. Otherwise the scheduler places the workers better.
fn own_cores(workers: usize) -> Vec<u32> {
    let Ok(allowed) = sched_getaffinity(None) else { return Vec::new() };
    if allowed.count() as usize != workers {
        return Vec::new();
    }
    (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).map(|cpu| cpu as u32).collect()
}

fn pin_to_core(core: u32) {
    let mut own = CpuSet::new();
    own.set(core as usize);
    if let Err(error) = sched_setaffinity(None, &own) {
        tracing::debug!(%error, core, "a worker could not be pinned to its core");
    }
}
