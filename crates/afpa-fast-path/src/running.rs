//! The running fast path: a start, a change of sites at each reload, a pause, an end that leaves nothing.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use afpa_bpf::preflight::Watch;
use afpa_bpf::{Carriers, Change, PinDir, PortClaim, RtxThread, Swept, interfaces};
use afpa_cache::{Cache, Residency};
use afpa_framework::{AccessSink, Network};
use afpa_module_http::HttpHeader;
use afpa_self_check::{Difference, SelfCheck, SelfCheckCounts, SelfCheckSettings};
use afpa_server::KernelActivity;
use afpa_server::counters::WorkerCounters;
use anyhow::Context as _;
use arc_swap::ArcSwapOption;

use crate::eligibility::{Eligibility, eligible_of};
use crate::event_log::VersionRegister;
use crate::heartbeat::Heartbeat;
use crate::host_table::HostTable;
use crate::kernel_cache::{KernelCache, OfferCounts};
use crate::kernel_hosts::KernelHosts;
use crate::load::{AttachedPrograms, kernel_activity, log_every, serve};
use crate::rebalance::Demand;
use crate::scope::KernelScope;
use crate::settings::{FastPathSettings, FastPathUse, KernelSite};
use crate::site_numbers::{AnswerCount, SiteNumbers};

/// The running fast path; [`RunningFastPath::finish`] ends it in order.
pub struct RunningFastPath {
    core: Arc<FastPathCore>,
    hosts: KernelHosts,
    pin_dir: Option<PinDir>,
    /// The ports that this process has. It is the last to go.
    claim: PortClaim,
    heartbeat: Option<JoinHandle<()>>,
    tender: Option<RtxThread>,
    self_check: Option<SelfCheck>,
}

/// The part of it that the heartbeat and the views share.
pub(crate) struct FastPathCore {
    pub(crate) fast_path: Arc<afpa_bpf::FastPath>,
    pub(crate) current: ArcSwapOption<ServedSites>,
    pub(crate) numbers: Mutex<SiteNumbers>,
    pub(crate) register: Arc<VersionRegister>,
    pub(crate) counts: Arc<OfferCounts>,
    pub(crate) interfaces: Mutex<Carriers>,
    /// The TCP addresses that are served.
    bound: Mutex<Vec<SocketAddr>>,
    /// Interfaces at which somebody else's program comes before ours.
    behind: Mutex<Vec<u32>>,
    /// Whether it may answer. Under a lock, so that a beat under way cannot undo a pause.
    answering: Mutex<bool>,
    pub(crate) hanging: AtomicBool,
    /// The self-check found an answer that user mode would not give.
    pub(crate) differs: AtomicBool,
    pub(crate) self_check: OnceLock<Arc<SelfCheckCounts>>,
    pub(crate) ending: AtomicBool,
    /// Whether the configuration wants answers in the access log.
    pub(crate) logged: AtomicBool,
    /// A new access log's sink, for the heartbeat to take.
    pub(crate) next_sink: Mutex<Option<AnswerSink>>,
    pub(crate) swept: Mutex<Swept>,
    /// What this host has that limits the fast path.
    pub(crate) watch: Mutex<Watch>,
}

/// The access log, for the answers of the kernel.
pub type AnswerSink = Box<dyn AccessSink + Send>;

/// The sites of the configuration that is served.
pub(crate) struct ServedSites {
    pub(crate) kernel_cache: Arc<KernelCache>,
    pub(crate) cache: Weak<Cache<HttpHeader>>,
    /// Of each site, in order.
    pub(crate) eligibility: Vec<Eligibility>,
    /// Routers in front of sites whose word on their clients is believed, by the kernel's number of the site.
    forwarded_from: HashMap<u32, Vec<Network>>,
}

impl ServedSites {
    /// The routers that are believed in front of a site.
    pub(crate) fn believed(&self, site: u32) -> &[Network] {
        self.forwarded_from.get(&site).map_or(&[], Vec::as_slice)
    }
}

/// What a start takes.
pub struct StartParts<'a> {
    /// The configuration in force.
    pub settings: &'a FastPathSettings,
    /// What its workers answer from.
    pub cache: &'a Arc<Cache<HttpHeader>>,
    /// The part of it that the kernel may answer.
    pub scope: KernelScope,
    /// The TCP addresses that are bound.
    pub bound: &'a [SocketAddr],
    /// The workers that must be alive.
    pub workers: &'a [Arc<WorkerCounters>],
    /// For the access log.
    pub sink: AnswerSink,
}

impl AttachedPrograms {
    /// Begins to answer. Starts threads: privileges are dropped before.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(self, parts: StartParts<'_>) -> anyhow::Result<RunningFastPath> {
        let core = Arc::new(FastPathCore {
            fast_path: self.fast_path,
            current: ArcSwapOption::empty(),
            numbers: Mutex::default(),
            register: Arc::default(),
            counts: Arc::default(),
            interfaces: Mutex::new(self.interfaces),
            bound: Mutex::default(),
            behind: Mutex::default(),
            answering: Mutex::new(true),
            hanging: AtomicBool::new(false),
            differs: AtomicBool::new(false),
            self_check: OnceLock::new(),
            ending: AtomicBool::new(false),
            logged: AtomicBool::new(false),
            next_sink: Mutex::new(None),
            swept: Mutex::default(),
            watch: Mutex::new(self.watch),
        });
        let heartbeat = Heartbeat::new(Arc::clone(&core), parts.workers, parts.sink);
        let tender = tender(&core.fast_path)
            .context("the thread that sends answers again cannot be started")?;
        let hosts = KernelHosts::default();
        let mut running = RunningFastPath {
            core,
            hosts,
            pin_dir: self.pin_dir,
            claim: self.claim,
            heartbeat: None,
            tender: Some(tender),
            self_check: None,
        };
        running.adopt(parts.settings, parts.cache, parts.scope, parts.bound, None);
        let heartbeat = std::thread::Builder::new()
            .name("afpa-fast-path".to_owned())
            .spawn(move || heartbeat.run())
            .context("the fast path's thread cannot be started")?;
        running.heartbeat = Some(heartbeat);
        running.self_check = self_check(&running.core, parts.settings)?;
        Ok(running)
    }
}

/// Sends answers again when nothing comes from their clients.
fn tender(fast_path: &Arc<afpa_bpf::FastPath>) -> std::io::Result<RtxThread> {
    let fast_path = Arc::clone(fast_path);
    let complain = |error: &_| {
        tracing::warn!(%error, "what is lost of answers is not sent again");
    };
    RtxThread::start(move || fast_path.service_timers(), complain)
}

/// After this time a change of a file has reached the kernel: user mode is told of it, or looks once a second.
const SETTLE: Duration = Duration::from_secs(2);

/// Compares some of the kernel's answers with what user mode says. A difference ends the answering.
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
    let check = SelfCheck::start(Arc::clone(&core.fast_path), settings, on_difference)
        .context("the thread of the self-check cannot be started")?;
    let _first = core.self_check.set(Arc::clone(check.counts()));
    Ok(Some(check))
}

impl RunningFastPath {
    /// For statistics.
    pub(crate) fn core(&self) -> &Arc<FastPathCore> {
        &self.core
    }

    /// Answers from `cache`, as far as `scope` allows, on the bound addresses from now on, and no more for
    /// the sites before. The order: hosts select the new sites, which are empty; then the objects of the old
    /// sites are taken back; then objects are pinned for the new ones.
    pub fn adopt(
        &mut self,
        settings: &FastPathSettings,
        cache: &Arc<Cache<HttpHeader>>,
        scope: KernelScope,
        bound: &[SocketAddr],
        sink: Option<AnswerSink>,
    ) {
        let core = Arc::clone(&self.core);
        let eligibility = Eligibility::of(&settings.sites);
        let numbers = core.number(&eligibility, scope.names());
        let before = core.current.load_full();
        let generation = before.as_ref().map_or(0, |before| before.kernel_cache.generation()) + 1;
        let kernel_cache = Arc::new(KernelCache::new(
            Arc::clone(&core.fast_path),
            (generation, numbers.clone()),
            scope,
            Arc::clone(&core.register),
            Arc::clone(&core.counts),
        ));
        core.current.store(Some(Arc::new(ServedSites {
            kernel_cache: Arc::clone(&kernel_cache),
            cache: Arc::downgrade(cache),
            eligibility,
            forwarded_from: forwarded_from(&settings.sites, &numbers),
        })));
        *core.answering() = settings.mode != FastPathUse::Off;
        if settings.mode == FastPathUse::Off {
            core.fast_path.pause();
        }
        self.select_sites(&settings.sites, &numbers, bound);
        if let Some(before) = before {
            before.kernel_cache.close();
        }
        core.fast_path.set_log_every(log_every(settings));
        core.fast_path.set_bypass_after(settings.bypass_after as u32); // at most 60,000
        core.fast_path.set_firewall_interval(settings.firewall_interval);
        core.logged.store(settings.log_every != 0, Ordering::Relaxed);
        if sink.is_some() {
            *core.next_sink.lock().unwrap_or_else(PoisonError::into_inner) = sink;
        }
        cache.attach_residency(kernel_cache as Arc<dyn Residency<HttpHeader>>);
    }

    /// From now on the hosts of the bound addresses select these sites.
    fn select_sites(&mut self, sites: &[KernelSite], numbers: &[u32], bound: &[SocketAddr]) {
        let eligible = self.claimed(eligible_of(sites, bound));
        let reached = self.core.reach(&eligible);
        let own = own_addresses();
        let tables = reached.iter().map(|address| HostTable::new(sites, numbers, *address, &own));
        if let Err(error) = self.hosts.replace(&self.core.fast_path, tables.collect()) {
            tracing::warn!(%error, "some hosts or addresses are served without the fast path");
        }
    }

    /// Those of the addresses whose ports no other fast path has. Ports that are served no more stay ours:
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
    pub fn serve<'a>(
        &self,
        address: SocketAddr,
        sockets: impl IntoIterator<Item = BorrowedFd<'a>>,
    ) {
        let answered = self.core.bound().contains(&address);
        if let Err(error) = serve(&self.core.fast_path, answered, sockets) {
            tracing::warn!(%address, %error, "is served without the fast path");
        }
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
        self.core.interfaces().detach(&self.core.fast_path);
        drop(self.pin_dir.take());
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

impl FastPathCore {
    /// Numbers for the sites of the next configuration; 0 for those that user mode answers.
    fn number(&self, eligibility: &[Eligibility], names: &[String]) -> Vec<u32> {
        let numbers = self.numbers().enter(names, |site| self.site_count(site));
        let numbers = eligibility.iter().zip(numbers);
        numbers.map(|(site, number)| if site.is_answered() { number } else { 0 }).collect()
    }

    fn site_count(&self, site: u32) -> AnswerCount {
        self.fast_path.site_count(site).unwrap_or_default().into()
    }

    /// What was answered for each site, in the order of the configuration.
    pub(crate) fn site_counts(&self) -> Vec<AnswerCount> {
        self.numbers().counts(|site| self.site_count(site))
    }

    fn numbers(&self) -> MutexGuard<'_, SiteNumbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn beat(&self) {
        let answering = self.answering();
        if *answering && !self.is_stopped() {
            self.fast_path.beat();
        }
    }

    /// Whether it was found that the kernel may say what is not true.
    fn is_stopped(&self) -> bool {
        self.counts.broken.load(Ordering::SeqCst) || self.differs.load(Ordering::SeqCst)
    }

    /// The kernel said what user mode would not: it says nothing more.
    fn stop_for(&self, difference: &Difference) {
        self.differs.store(true, Ordering::SeqCst);
        {
            let _no_beat = self.answering();
            self.fast_path.pause();
        }
        tracing::error!(%difference, "the fast path is off: the kernel's answer is not what user mode says");
        tracing::error!("please report this:\n{}", difference.report());
    }

    pub(crate) fn wants_to_answer(&self) -> bool {
        *self.answering()
    }

    pub(crate) fn is_answering(&self) -> bool {
        self.wants_to_answer()
            && !self.fast_path.is_paused()
            && !self.is_stopped()
            && !self.hanging.load(Ordering::Relaxed)
    }

    pub(crate) fn sweep(&self, silence: Duration) {
        match self.fast_path.sweep(silence) {
            Ok(swept) => *self.swept.lock().unwrap_or_else(PoisonError::into_inner) = swept,
            Err(error) => tracing::warn!(%error, "connections cannot be swept"),
        }
    }

    /// Puts programs on the interfaces that carry these addresses. Returns the addresses that no interface
    /// without programs carries.
    fn reach(&self, bound: &[SocketAddr]) -> Vec<SocketAddr> {
        *self.bound() = bound.to_vec();
        self.interfaces().forgive();
        self.look_at_interfaces();
        let refused = self.interfaces().any_refused();
        bound.iter().filter(|address| address.ip().is_loopback() || !refused).copied().collect()
    }

    /// Interfaces come and go. They are listed once a second rather than listened for: that costs a tenth of
    /// a millisecond, and misses nothing when a queue of notices overflows.
    pub(crate) fn look_at_interfaces(&self) {
        let all = match interfaces() {
            Ok(all) => all,
            Err(error) => return tracing::warn!(%error, "interfaces cannot be listed"),
        };
        let bound = self.bound().clone();
        for change in self.interfaces().update(&self.fast_path, &bound, &all) {
            match change {
                Change::Added(interface) => {
                    tracing::info!(interface, "the kernel answers on one interface more");
                }
                Change::Gone(interface) => tracing::info!(interface, "an interface is gone"),
                Change::Refused(interface, error) => {
                    tracing::warn!(interface, %error, "is served without the fast path");
                }
            }
        }
    }

    /// Whether the host should be looked at again. No, while that is being done.
    pub(crate) fn is_host_changed(&self) -> bool {
        self.watch.try_lock().is_ok_and(|mut watch| watch.is_due())
    }

    /// Says what limits the fast path since the host has changed.
    pub(crate) fn look_at_the_host(&self) {
        for finding in self.watch.lock().unwrap_or_else(PoisonError::into_inner).news() {
            tracing::warn!("the fast path is limited: {finding}");
        }
    }

    /// Somebody else's program may come and go before ours. Nothing is answered on those interfaces meanwhile.
    pub(crate) fn look_at_chains(&self) {
        let behind = match self.fast_path.look_at_chains() {
            Ok(behind) => behind,
            Err(error) => return tracing::warn!(%error, "other programs cannot be looked for"),
        };
        let mut before = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        if *before == behind {
            return;
        }
        for (index, interface) in self.interfaces().iter() {
            match (before.contains(&index), behind.contains(&index)) {
                (false, true) => tracing::warn!(
                    interface,
                    "another program stands before ours: the kernel answers nothing here \
                     (attach it behind ours, or start afpa after it)"
                ),
                (true, false) => tracing::info!(interface, "the kernel answers here again"),
                _ => {}
            }
        }
        *before = behind;
    }

    /// Offers objects that found no room again, when there is room now.
    pub(crate) fn use_room(&self) {
        const AT_ONCE: usize = 256;
        let current = self.current.load();
        let Some(current) = current.as_ref().filter(|current| current.kernel_cache.has_refused())
        else {
            return;
        };
        if let Err(error) = self.fast_path.reclaim() {
            tracing::warn!(%error, "retired objects cannot be looked after");
        }
        let keys = current.kernel_cache.worth_an_offer(self.free(), AT_ONCE);
        if let Some(cache) = current.cache.upgrade().filter(|_| !keys.is_empty()) {
            cache.offer_again(&keys);
        }
    }

    /// Gives the room to the objects that save the most time.
    pub(crate) fn rebalance(&self) {
        let current = self.current.load();
        if let Some(current) = current.as_ref()
            && let Some(cache) = current.cache.upgrade()
        {
            current.kernel_cache.rebalance(&cache, self.free());
        }
    }

    fn free(&self) -> Demand {
        let (slots, pages) = (self.fast_path.free_slots(), self.fast_path.free_pages());
        Demand { slots, pages, ..Demand::default() }
    }

    fn bound(&self) -> MutexGuard<'_, Vec<SocketAddr>> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn interfaces(&self) -> MutexGuard<'_, Carriers> {
        self.interfaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answering(&self) -> MutexGuard<'_, bool> {
        self.answering.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pause(&self) {
        let mut answering = self.answering();
        *answering = false;
        self.fast_path.pause();
    }

    /// Waits for the ends of long answers, and a little for connections that need translation: their last
    /// segments need the programs. Connections in TIME_WAIT do not delay the end for long.
    fn await_goodbyes(&self) {
        const TRANSFERS: Duration = Duration::from_secs(2);
        const PATIENCE: Duration = Duration::from_millis(250);
        let start = Instant::now();
        while self.fast_path.transfers().is_ok_and(|transfers| transfers > 0)
            && start.elapsed() < TRANSFERS
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        let start = Instant::now();
        while self.fast_path.translated_flows().is_ok_and(|translated| translated > 0)
            && start.elapsed() < PATIENCE
        {
            self.sweep(Duration::ZERO);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
