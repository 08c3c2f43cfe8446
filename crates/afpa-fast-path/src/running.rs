//! The running fast path: a start, a change of sites at each reload, a pause, an end that leaves nothing.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use afpa_bpf::{FastPath, PinDir, PortClaim, RtxThread, interfaces};
use afpa_cache::{Cache, Residency};
use afpa_framework::Network;
use afpa_module_http::HttpHeader;
use afpa_self_check::{Checked, Difference, SelfCheck, SelfCheckSettings};
use afpa_server::KernelActivity;
use afpa_server::counters::WorkerCounters;
use afpa_shared_cache::{Responses, StoredResponse};
use anyhow::Context as _;
use arc_swap::ArcSwapOption;

use crate::answer_scope::AnswerScope;
use crate::eligibility::{Eligibility, eligible_of};
use crate::event_log::Origin;
use crate::fast_path_core::{AnswerSink, FastPathCore, Served, ServedSites};
use crate::file_objects::FileObjects;
use crate::heartbeat::Heartbeat;
use crate::host_table::HostTable;
use crate::kernel_cache::KernelCache;
use crate::kernel_hosts::KernelHosts;
use crate::load::{AttachedPrograms, kernel_activity, log_every};
use crate::rebalance::Share;
use crate::scope::KernelScope;
use crate::server_answers::ServerAnswers;
use crate::settings::{FastPathSettings, FastPathUse, KernelSite};

/// The running fast path; [`RunningFastPath::finish`] ends it in order.
pub struct RunningFastPath {
    core: Arc<FastPathCore>,
    hosts: Arc<Mutex<KernelHosts>>,
    pin_dir: Option<PinDir>,
    /// The ports that this process has. It is the last to go.
    claim: PortClaim,
    heartbeat: Option<JoinHandle<()>>,
    /// The heartbeat before its thread runs.
    idle: Option<Heartbeat>,
    tender: Option<RtxThread>,
    self_check: Option<SelfCheck>,
    /// The number of the configuration.
    generation: u32,
    /// The request fields that mattered to kept answers in this or an earlier configuration, in the order of their classes.
    fields: Vec<String>,
}

impl AttachedPrograms {
    /// The fast path while these workers are alive. It answers nothing, and starts no thread, before the first
    /// [`RunningFastPath::adopt`].
    pub fn idle(self, workers: &[Arc<WorkerCounters>]) -> RunningFastPath {
        let core = Arc::new(FastPathCore {
            fast_path: self.fast_path,
            current: ArcSwapOption::empty(),
            numbers: Mutex::default(),
            register: Arc::default(),
            counts: Arc::default(),
            interfaces: Mutex::new(self.interfaces),
            bound: Mutex::default(),
            answering: Mutex::new(true),
            hanging: AtomicBool::new(false),
            differs: AtomicBool::new(false),
            self_check: OnceLock::new(),
            ending: AtomicBool::new(false),
            logged: AtomicBool::new(false),
            next_sink: Mutex::new(None),
            swept: Mutex::default(),
            most_connections: AtomicUsize::new(usize::MAX),
            tcp_refused: Mutex::default(),
            admission_refused: Mutex::default(),
            in_vain_said: Mutex::default(),
            watch: Mutex::new(self.watch),
        });
        RunningFastPath {
            idle: Some(Heartbeat::new(Arc::clone(&core), workers)),
            core,
            hosts: Arc::default(),
            pin_dir: self.pin_dir,
            claim: self.claim,
            heartbeat: None,
            tender: None,
            self_check: None,
            generation: 0,
            fields: Vec::new(),
        }
    }
}

/// Sends answers again when nothing comes from their clients.
fn tender(fast_path: &Arc<FastPath>) -> std::io::Result<RtxThread> {
    let fast_path = Arc::clone(fast_path);
    let complain = |error: &_| {
        tracing::warn!(%error, "lost segments of the kernel's answers are not sent again");
    };
    RtxThread::start(move || fast_path.rtx.service_timers(), complain)
}

/// After this time a change of a file has reached the kernel: user mode gets an event of it, or looks once a second.
const SETTLE: Duration = Duration::from_secs(2);

/// Compares some of the kernel's answers with user mode's. A difference ends the kernel's answers.
fn self_check(
    core: &Arc<FastPathCore>,
    settings: &FastPathSettings,
) -> anyhow::Result<Option<SelfCheck>> {
    let every = u32::try_from(settings.self_check).unwrap_or(u32::MAX);
    if every == 0 {
        return Ok(None);
    }
    let stopped = Arc::clone(core);
    let on_difference = move |difference: &Difference| stopped.stop_for(difference);
    let settings = SelfCheckSettings { every, settle: SETTLE };
    let check = SelfCheck::start(Arc::clone(&core.fast_path), checked, settings, on_difference)
        .context("the thread of the self-check cannot be started")?;
    let _first = core.self_check.set(Arc::clone(check.counts()));
    Ok(Some(check))
}

fn checked(fast_path: &FastPath) -> Checked<'_> {
    let FastPath { reports, objects, sockets, .. } = fast_path;
    Checked { reports, objects, sockets }
}

impl RunningFastPath {
    /// For statistics.
    pub(crate) fn core(&self) -> &Arc<FastPathCore> {
        &self.core
    }

    /// Answers from `cache`, as far as `scope` allows, on the bound addresses from now on, and no more for
    /// the sites before. The order: hosts select the new sites, which are empty; then the objects of the old
    /// sites are taken back; then objects are pinned for the new ones. The first time starts the threads, so privileges
    /// must have been dropped before.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn adopt(
        &mut self,
        settings: &FastPathSettings,
        cache: &Arc<Cache<HttpHeader>>,
        mut scope: KernelScope,
        bound: &[SocketAddr],
        sink: Option<AnswerSink>,
    ) -> anyhow::Result<()> {
        let core = Arc::clone(&self.core);
        let eligibility = Eligibility::of(&settings.sites);
        let numbers = core.number(&eligibility, scope.names());
        let before = core.current.load_full();
        let answers = scope.take_answers().and_then(|answers| self.answers(answers, &numbers));
        self.generation = self.generation.wrapping_add(1);
        let source = Box::new(FileObjects { sites: numbers.clone(), scope });
        let (slots, pages) = core.fast_path.objects.room();
        let share = Share { slots, pages, bytes: usize::MAX };
        let kernel_cache = core.kernel_cache(Origin::Files(self.generation), source, share);
        let kernel_answers = answers.as_ref().map(|(kernel, _)| Arc::clone(kernel));
        core.current.store(Some(Arc::new(ServedSites {
            files: Served { kernel_cache: Arc::clone(&kernel_cache), cache: Arc::downgrade(cache) },
            answers: answers.as_ref().map(|(kernel, responses)| Served {
                kernel_cache: Arc::clone(kernel),
                cache: Arc::downgrade(responses.cache()),
            }),
            eligibility,
            forwarded_from: forwarded_from(&settings.sites, &numbers),
        })));
        *core.answering() = settings.mode != FastPathUse::Off;
        if settings.mode == FastPathUse::Off {
            core.fast_path.clock.pause();
        }
        // From here on the kernel gets no more hosts for answers of the configuration before.
        if let Some(answers) = before.as_ref().and_then(|before| before.answers.as_ref()) {
            answers.kernel_cache.close();
        }
        self.select_sites(&settings.sites, &numbers, bound);
        if let Some(before) = before {
            before.files.kernel_cache.close();
        }
        core.fast_path.reports.set_log_every(log_every(settings));
        core.fast_path.flows.set_bypass_after(settings.bypass_after as u32); // at most 60,000
        core.fast_path.clients.set_firewall_interval(settings.firewall_interval);
        core.fast_path.clients.set_client_connections(settings.connections_per_client);
        core.most_connections.store(settings.connections, Ordering::Relaxed);
        if !core.fast_path.socketless.want(settings.socketless, settings.admission) {
            tracing::warn!("[fast_path] connections takes effect at the next start");
        }
        core.logged.store(settings.log_every != 0, Ordering::Relaxed);
        if sink.is_some() {
            *core.next_sink.lock().unwrap_or_else(PoisonError::into_inner) = sink;
        }
        cache.attach_residency(kernel_cache as Arc<dyn Residency<HttpHeader>>);
        if let Some((_, responses)) = answers
            && let Some(kernel) = kernel_answers
        {
            responses.cache().attach_residency(kernel as Arc<dyn Residency<StoredResponse>>);
        }
        self.idle.take().map_or(Ok(()), |heartbeat| self.begin(heartbeat, settings))
    }

    /// Begins to answer.
    fn begin(&mut self, heartbeat: Heartbeat, settings: &FastPathSettings) -> anyhow::Result<()> {
        let core = Arc::clone(&self.core);
        let tender = tender(&core.fast_path);
        let tender = tender.context("the thread that sends answers again cannot be started")?;
        self.tender = Some(tender);
        core.begin_to_look_at_tcp();
        // A busy machine may take its time to run a new thread, and clients come as soon as this returns.
        core.beat();
        let heartbeat = std::thread::Builder::new()
            .name("afpa-fast-path".to_owned())
            .spawn(move || heartbeat.run())
            .context("the fast path's thread cannot be started")?;
        self.heartbeat = Some(heartbeat);
        self.self_check = self_check(&core, settings)?;
        Ok(())
    }

    /// The kernel's part of the answers of servers. They get no more than half of the memory, or files would find none.
    fn answers(
        &mut self,
        (mut scope, responses): (AnswerScope, Arc<Responses>),
        numbers: &[u32],
    ) -> Option<(Arc<KernelCache<StoredResponse>>, Arc<Responses>)> {
        let core = &self.core;
        scope.keep_classes(&mut self.fields);
        if scope.classes().next().is_some()
            && let Err(error) = core.fast_path.listeners.let_fields_matter(scope.classes())
        {
            tracing::warn!(%error, "kept answers of servers are given by user mode alone");
            return None;
        }
        let (fast_path, hosts) = (Arc::clone(&core.fast_path), Arc::clone(&self.hosts));
        let (slots, pages) = fast_path.objects.room();
        let bytes = fast_path.objects.memory() / 2;
        let share = Share { slots: slots / 2, pages: pages / 2, bytes };
        let source = Box::new(ServerAnswers::new(fast_path, numbers.to_vec(), scope, hosts));
        Some((core.kernel_cache(Origin::Answers, source, share), responses))
    }

    /// From now on the hosts of the bound addresses select these sites.
    fn select_sites(&mut self, sites: &[KernelSite], numbers: &[u32], bound: &[SocketAddr]) {
        let eligible = self.claimed(eligible_of(sites, bound));
        let reached = self.core.reach(&eligible);
        let own = own_addresses();
        let tables = reached.iter().map(|address| HostTable::new(sites, numbers, *address, &own));
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = hosts.replace(&self.core.fast_path.listeners, tables.collect()) {
            tracing::warn!(%error, "some hosts or addresses are served without the fast path");
        }
    }

    /// The addresses whose ports no other fast path has. Ports that are served no more stay ours:
    /// connections on them are translated.
    fn claimed(&mut self, mut addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
        addresses.retain(|address| match self.claim.take(address.port()) {
            Ok(()) => true,
            Err(refused) => {
                let remedy = refused.remedy();
                tracing::warn!("{address} is served without the fast path: {refused} ({remedy})");
                false
            }
        });
        addresses
    }

    /// Has the kernel answer on the connections of these listening sockets, if it answers on their address now, and
    /// leave those that are accepted from now on to user mode if not.
    ///
    /// # Errors
    /// The first of the kernel's, which takes the others all the same.
    pub fn serve<'a>(
        &self,
        address: SocketAddr,
        sockets: impl IntoIterator<Item = BorrowedFd<'a>>,
    ) -> anyhow::Result<()> {
        let answered = self.core.bound().contains(&address);
        let kept = &self.core.fast_path.sockets;
        let told = sockets.into_iter().map(|socket| match answered {
            true => kept.serve_socket(socket),
            false => kept.leave_socket(socket),
        });
        told.fold(Ok(()), Result::and)
            .with_context(|| format!("{address} is served without the fast path"))
    }

    /// For the engine.
    pub fn kernel_activity(&self) -> KernelActivity {
        kernel_activity(&self.core.fast_path)
    }

    /// The kernel answers nothing more; connections go on with their workers.
    pub fn pause(&self) {
        self.core.pause();
    }

    /// Ends it. When this returns, no program of ours is on any interface, and nothing is kept.
    pub fn finish(mut self) {
        drop(self.self_check.take());
        self.core.pause();
        self.end_heartbeat();
        self.core.await_goodbyes();
        drop(self.tender.take());
        self.core.interfaces().detach(&self.core.fast_path.interfaces);
        drop(self.pin_dir.take());
    }

    /// Whether another process can take it over while this one goes on: connections need a folder that keeps their maps.
    pub fn can_be_taken_over(&self) -> bool {
        self.pin_dir.is_some()
    }

    /// Leaves programs and connections to the next process, which may take them over when this returns. Connections go
    /// on with the workers of this one.
    pub fn leave(mut self) {
        /// Handshakes without a socket that have begun end within this time, or their clients begin anew.
        const HANDSHAKES: Duration = Duration::from_millis(500);
        drop(self.self_check.take());
        self.end_heartbeat();
        self.core.fast_path.socketless.drain();
        std::thread::sleep(HANDSHAKES);
        self.core.pause();
        if let Some(current) = self.core.current.load_full() {
            current.files.kernel_cache.close();
            if let Some(answers) = &current.answers {
                answers.kernel_cache.close();
            }
        }
        drop(self.tender.take());
        if let Err(error) = self.core.fast_path.leave() {
            tracing::warn!(%error, "the fast path cannot be left to the next process");
        }
        if let Some(mut pin_dir) = self.pin_dir.take() {
            pin_dir.leave(true);
        }
    }

    fn end_heartbeat(&mut self) {
        self.core.ending.store(true, Ordering::Release);
        if let Some(heartbeat) = self.heartbeat.take() {
            heartbeat.thread().unpark();
            // A panic has been printed.
            let _ = heartbeat.join();
        }
    }
}

impl Drop for RunningFastPath {
    fn drop(&mut self) {
        self.pause();
        self.end_heartbeat();
    }
}

fn forwarded_from(sites: &[KernelSite], numbers: &[u32]) -> HashMap<u32, Vec<Network>> {
    let sites = sites.iter().zip(numbers).filter(|(site, _)| !site.forwarded_from.is_empty());
    sites.map(|(site, number)| (*number, site.forwarded_from.clone())).collect()
}

/// All addresses of this machine.
fn own_addresses() -> Vec<IpAddr> {
    // When they cannot be read, user mode serves clients that name this machine by an IPv6 address.
    let all = interfaces().unwrap_or_default();
    all.into_iter().flat_map(|interface| interface.addresses).collect()
}
