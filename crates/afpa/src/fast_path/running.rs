//! The fast path at work: sites come and go, the heart beats, and in the end nothing is left.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use afpa_bpf::{Carriers, Change, RtxThread, Swept, interfaces};
use afpa_cache::{Cache, Residency};
use afpa_framework::Network;
use afpa_module_http::HttpHeader;
use afpa_server::Elsewhere;
use afpa_server::counters::WorkerCounters;
use anyhow::Context as _;
use arc_swap::ArcSwapOption;

use super::fit::{Fit, answerable, leads};
use super::heart::Heart;
use super::keep::Kept;
use super::log::Register;
use super::prepare::{Prepared, elsewhere, log_every};
use super::resident::{Counts, Resident};
use super::scope::Scope;
use super::served::Served;
use super::tally::{Count, Tally};
use super::weigh::Demand;
use crate::access_log::Sink;
use afpa_config::{Config, FastPathMode};

/// The running fast path; [`FastPath::finish`] ends it in order.
pub(crate) struct FastPath {
    shared: Arc<Shared>,
    served: Served,
    kept: Option<Kept>,
    heart: Option<JoinHandle<()>>,
    tender: Option<RtxThread>,
}

/// What the heart and those who look on need, too.
pub(crate) struct Shared {
    pub(super) fast_path: Arc<afpa_bpf::FastPath>,
    pub(super) current: ArcSwapOption<Current>,
    pub(super) tally: Mutex<Tally>,
    pub(super) register: Arc<Register>,
    pub(super) counts: Arc<Counts>,
    pub(super) interfaces: Mutex<Carriers>,
    /// The TCP addresses that are served.
    bound: Mutex<Vec<SocketAddr>>,
    /// Whether it may answer. Under a lock, so that a beat under way cannot undo a pause.
    answering: Mutex<bool>,
    pub(super) hanging: AtomicBool,
    pub(super) ending: AtomicBool,
    /// Whether the configuration wants answers in the access log.
    pub(super) logged: AtomicBool,
    /// A new access log's sink, for the heart to take.
    pub(super) next_sink: Mutex<Option<Sink>>,
    pub(super) swept: Mutex<Swept>,
}

/// The configuration that is served.
pub(super) struct Current {
    pub(super) resident: Arc<Resident>,
    pub(super) cache: Weak<Cache<HttpHeader>>,
    /// Of its sites, in order.
    pub(super) fits: Vec<Fit>,
    /// Routers in front of sites whose word on their clients counts, by the kernel's number of the site.
    forwarded_from: HashMap<u32, Vec<Network>>,
}

impl Current {
    /// Who is believed in front of a site.
    pub(super) fn believed(&self, site: u32) -> &[Network] {
        self.forwarded_from.get(&site).map_or(&[], Vec::as_slice)
    }
}

/// What a start takes.
pub(crate) struct Parts<'a> {
    /// The configuration in force.
    pub(crate) config: &'a Config,
    /// What its workers answer from.
    pub(crate) cache: &'a Arc<Cache<HttpHeader>>,
    /// The part of it that the kernel may answer.
    pub(crate) scope: Scope,
    /// The TCP addresses that are bound.
    pub(crate) bound: &'a [SocketAddr],
    /// Those who must be alive.
    pub(crate) workers: &'a [Arc<WorkerCounters>],
    /// For the access log.
    pub(crate) sink: Sink,
}

impl Prepared {
    /// Begins to answer. Starts a thread: privileges are dropped before.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn start(self, parts: Parts<'_>) -> anyhow::Result<FastPath> {
        let shared = Arc::new(Shared {
            fast_path: self.fast_path,
            current: ArcSwapOption::empty(),
            tally: Mutex::default(),
            register: Arc::default(),
            counts: Arc::default(),
            interfaces: Mutex::new(self.interfaces),
            bound: Mutex::default(),
            answering: Mutex::new(true),
            hanging: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            logged: AtomicBool::new(false),
            next_sink: Mutex::new(None),
            swept: Mutex::default(),
        });
        let heart = Heart::new(Arc::clone(&shared), parts.workers, parts.sink);
        let tender = tender(&shared.fast_path)
            .context("the thread that sends answers again cannot be started")?;
        let served = Served::default();
        let mut running =
            FastPath { shared, served, kept: self.kept, heart: None, tender: Some(tender) };
        running.adopt(parts.config, parts.cache, parts.scope, parts.bound, None);
        let heart = std::thread::Builder::new()
            .name("afpa-fast-path".to_owned())
            .spawn(move || heart.run())
            .context("the fast path's thread cannot be started")?;
        running.heart = Some(heart);
        Ok(running)
    }
}

/// What sends answers again when nothing comes from their clients.
fn tender(fast_path: &Arc<afpa_bpf::FastPath>) -> std::io::Result<RtxThread> {
    let fast_path = Arc::clone(fast_path);
    let complain = |error: &_| {
        tracing::warn!(%error, "what is lost of answers is not sent again");
    };
    RtxThread::start(move || fast_path.service_timers(), complain)
}

impl FastPath {
    /// For statistics.
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Answers from `cache`, as far as `scope` allows, on the bound addresses from now on, and for the
    /// sites before no more: requests lead to the new ones, which are empty, before anything of the old
    /// ones is given up, and that is before anything of the new ones is pinned.
    pub(crate) fn adopt(
        &mut self,
        config: &Config,
        cache: &Arc<Cache<HttpHeader>>,
        scope: Scope,
        bound: &[SocketAddr],
        sink: Option<Sink>,
    ) {
        let shared = Arc::clone(&self.shared);
        let fits = Fit::of(config);
        let numbers = shared.number(&fits, scope.names());
        let reached = answerable(config, &fits, bound);
        let before = shared.current.load_full();
        let generation = before.as_ref().map_or(0, |before| before.resident.generation()) + 1;
        let resident = Arc::new(Resident::new(
            Arc::clone(&shared.fast_path),
            (generation, numbers.clone()),
            scope,
            Arc::clone(&shared.register),
            Arc::clone(&shared.counts),
        ));
        shared.current.store(Some(Arc::new(Current {
            resident: Arc::clone(&resident),
            cache: Arc::downgrade(cache),
            fits,
            forwarded_from: forwarded_from(config, &numbers),
        })));
        *shared.answering() = config.fast_path.mode != FastPathMode::Off;
        if config.fast_path.mode == FastPathMode::Off {
            shared.fast_path.pause();
        }
        let reached = shared.reach(&reached);
        let own = own_addresses();
        let leads = reached.iter().map(|address| leads(config, &numbers, *address, &own));
        if let Err(error) = self.served.lead_to(&shared.fast_path, leads.collect()) {
            tracing::warn!(%error, "some hosts or addresses are served without the fast path");
        }
        if let Some(before) = before {
            before.resident.close();
        }
        shared.fast_path.set_log_every(log_every(config));
        shared.fast_path.set_bypass_after(config.fast_path.bypass_after as u32); // at most 60,000
        shared.logged.store(config.fast_path.log_every != 0, Ordering::Relaxed);
        if sink.is_some() {
            *shared.next_sink.lock().unwrap_or_else(PoisonError::into_inner) = sink;
        }
        cache.attach_residency(resident as Arc<dyn Residency<HttpHeader>>);
    }

    /// For the engine.
    pub(crate) fn elsewhere(&self) -> Elsewhere {
        elsewhere(&self.shared.fast_path)
    }

    /// Answers nothing more; connections go on with their workers.
    pub(crate) fn pause(&self) {
        self.shared.pause();
    }

    /// Ends it: when this returns, no program of ours is on any interface, and nothing is kept.
    pub(crate) fn finish(mut self) {
        self.shared.pause();
        self.end_heart();
        self.shared.await_goodbyes();
        drop(self.tender.take());
        self.shared.interfaces().detach(&self.shared.fast_path);
        drop(self.kept.take());
    }

    fn end_heart(&mut self) {
        self.shared.ending.store(true, Ordering::Release);
        if let Some(heart) = self.heart.take() {
            heart.thread().unpark();
            // A panic has been printed.
            let _ = heart.join();
        }
    }
}

impl Drop for FastPath {
    fn drop(&mut self) {
        self.pause();
        self.end_heart();
    }
}

fn forwarded_from(config: &Config, numbers: &[u32]) -> HashMap<u32, Vec<Network>> {
    let sites = config.sites.iter().zip(numbers);
    let sites = sites.filter(|(site, _)| !site.forwarded_from.is_empty());
    sites.map(|(site, number)| (*number, site.forwarded_from.clone())).collect()
}

/// Addresses of this machine.
fn own_addresses() -> Vec<IpAddr> {
    // Without, clients that call it by an IPv6 address are served by user mode.
    let all = interfaces().unwrap_or_default();
    all.into_iter().flat_map(|interface| interface.addresses).collect()
}

impl Shared {
    /// Numbers for the sites of the next configuration; 0 for those that user mode answers.
    fn number(&self, fits: &[Fit], names: &[String]) -> Vec<u32> {
        let numbers = self.tally().enter(names, |site| self.site_count(site));
        let numbers = fits.iter().zip(numbers);
        numbers.map(|(fit, number)| if fit.is_answered() { number } else { 0 }).collect()
    }

    fn site_count(&self, site: u32) -> Count {
        self.fast_path.site_count(site).unwrap_or_default().into()
    }

    /// What was answered for each site, in the order of the configuration.
    pub(super) fn site_counts(&self) -> Vec<Count> {
        self.tally().counts(|site| self.site_count(site))
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn beat(&self) {
        let answering = self.answering();
        if *answering && !self.counts.broken.load(Ordering::SeqCst) {
            self.fast_path.beat();
        }
    }

    pub(super) fn wants_to_answer(&self) -> bool {
        *self.answering()
    }

    pub(super) fn is_answering(&self) -> bool {
        self.wants_to_answer()
            && !self.counts.broken.load(Ordering::SeqCst)
            && !self.hanging.load(Ordering::Relaxed)
    }

    pub(super) fn sweep(&self, silence: Duration) {
        match self.fast_path.sweep(silence) {
            Ok(swept) => *self.swept.lock().unwrap_or_else(PoisonError::into_inner) = swept,
            Err(error) => tracing::warn!(%error, "connections cannot be swept"),
        }
    }

    /// Programs on the interfaces that carry these addresses, from now on. The addresses that are carried by
    /// none without.
    fn reach(&self, bound: &[SocketAddr]) -> Vec<SocketAddr> {
        *self.bound() = bound.to_vec();
        self.interfaces().forgive();
        self.look_at_interfaces();
        let refused = self.interfaces().any_refused();
        bound.iter().filter(|address| address.ip().is_loopback() || !refused).copied().collect()
    }

    /// Interfaces come and go. Looked for, once a second, rather than listened for: it costs a tenth of a
    /// millisecond, and nothing is missed when a queue of notices overflows.
    pub(super) fn look_at_interfaces(&self) {
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

    /// Objects that there was no room for are offered again when others have gone.
    pub(super) fn use_room(&self) {
        const AT_ONCE: usize = 256;
        let current = self.current.load();
        let Some(current) = current.as_ref().filter(|current| current.resident.has_refused())
        else {
            return;
        };
        if let Err(error) = self.fast_path.reclaim() {
            tracing::warn!(%error, "retired objects cannot be looked after");
        }
        let keys = current.resident.worth_an_offer(self.free(), AT_ONCE);
        if let Some(cache) = current.cache.upgrade().filter(|_| !keys.is_empty()) {
            cache.offer_again(&keys);
        }
    }

    /// Room goes to those objects that save most.
    pub(super) fn weigh(&self) {
        let current = self.current.load();
        if let Some(current) = current.as_ref()
            && let Some(cache) = current.cache.upgrade()
        {
            current.resident.weigh(&cache, self.free());
        }
    }

    fn free(&self) -> Demand {
        let (slots, pages) = (self.fast_path.free_slots(), self.fast_path.free_pages());
        Demand { slots, pages, ..Demand::default() }
    }

    fn bound(&self) -> MutexGuard<'_, Vec<SocketAddr>> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn interfaces(&self) -> MutexGuard<'_, Carriers> {
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

    /// Long answers are brought to their end, and the last segments of connections that have drifted need
    /// the programs. Those that wait for nothing but their time (TIME_WAIT) do not hold up the end.
    fn await_goodbyes(&self) {
        const FLIGHTS: Duration = Duration::from_secs(2);
        const PATIENCE: Duration = Duration::from_millis(250);
        let start = Instant::now();
        while self.fast_path.transfers().is_ok_and(|flights| flights > 0)
            && start.elapsed() < FLIGHTS
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        let start = Instant::now();
        while self.fast_path.translated_flows().is_ok_and(|drifted| drifted > 0)
            && start.elapsed() < PATIENCE
        {
            self.sweep(Duration::ZERO);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
