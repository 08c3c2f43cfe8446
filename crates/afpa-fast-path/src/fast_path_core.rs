//! The state that the running fast path, its heartbeat and its views share.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use afpa_bpf::preflight::Watch;
use afpa_bpf::{Carriers, Change, FreeRoom, Swept, interfaces};
use afpa_cache::{Cache, Key, ObjectId};
use afpa_framework::Network;
use afpa_module_http::AccessSink;
use afpa_module_http::HttpHeader;
use afpa_self_check::{Difference, SelfCheckCounts};
use afpa_shared_cache::StoredResponse;
use arc_swap::ArcSwapOption;

use crate::eligibility::Eligibility;
use crate::event_log::{Origin, VersionRegister};
use crate::kernel_cache::{KernelCache, OfferCounts, Pinnable};
use crate::rebalance::Share;
use crate::site_numbers::{AnswerCount, SiteNumbers};

/// The part of the running fast path that the heartbeat and the views share.
pub(crate) struct FastPathCore {
    pub(crate) fast_path: Arc<afpa_bpf::FastPath>,
    pub(crate) current: ArcSwapOption<ServedSites>,
    pub(crate) numbers: Mutex<SiteNumbers>,
    pub(crate) register: Arc<VersionRegister>,
    pub(crate) counts: Arc<OfferCounts>,
    pub(crate) interfaces: Mutex<Carriers>,
    /// The TCP addresses that are served.
    pub(crate) bound: Mutex<Vec<SocketAddr>>,
    /// Whether it may answer. Under a lock, so that a beat under way cannot undo a pause.
    pub(crate) answering: Mutex<bool>,
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
    /// As many connections as there may be, those without a socket among them.
    pub(crate) most_connections: AtomicUsize,
    /// Why no SYN is answered, as it was said last.
    pub(crate) tcp_refused: Mutex<Option<String>>,
    pub(crate) admission_refused: Mutex<Option<String>>,
    /// When it was said last that connections without a socket do not pay.
    pub(crate) in_vain_said: Mutex<Option<Instant>>,
    /// The watch for features of this host that limit the fast path.
    pub(crate) watch: Mutex<Watch>,
}

/// The beginning of messages that say why no connection begins without a socket.
const ALL_WITH_SOCKETS: &str = "all connections have sockets of the kernel's";

/// A reason for that: connections without a socket do not pay.
const IN_VAIN: &str = "nearly all of the last ones needed one";

/// A message that may come again and again is logged once in so long.
const SELDOM: Duration = Duration::from_secs(600);

/// The access log, for the answers of the kernel.
pub type AnswerSink = Box<dyn AccessSink + Send>;

/// The sites of the configuration that is served.
pub(crate) struct ServedSites {
    pub(crate) files: Served<HttpHeader>,
    /// Kept answers of servers.
    pub(crate) answers: Option<Served<StoredResponse>>,
    /// Of each site, in order.
    pub(crate) eligibility: Vec<Eligibility>,
    /// Routers in front of sites whose word on their clients is believed, by the kernel's number of the site.
    pub(crate) forwarded_from: HashMap<u32, Vec<Network>>,
}

/// A cache, and the kernel's copies of its objects.
pub(crate) struct Served<H> {
    pub(crate) kernel_cache: Arc<KernelCache<H>>,
    pub(crate) cache: Weak<Cache<H>>,
}

impl<H> Served<H> {
    /// Offers objects that found no room again, as far as there is room now.
    fn use_room(&self, free: FreeRoom) {
        const AT_ONCE: usize = 256;
        self.offer_again(&self.kernel_cache.worth_an_offer(free, AT_ONCE));
    }

    /// Offers again the objects with which the kernel does not answer any more.
    fn renew(&self) {
        self.kernel_cache.ended(Instant::now()).chunks(256).for_each(|keys| self.offer_again(keys));
    }

    fn offer_again(&self, keys: &[Key]) {
        if let Some(cache) = self.cache.upgrade().filter(|_| !keys.is_empty()) {
            cache.offer_again(keys);
        }
    }

    fn rebalance(&self, free: FreeRoom) {
        if let Some(cache) = self.cache.upgrade() {
            self.kernel_cache.rebalance(&cache, free);
        }
    }

    /// Reports hits, if they were of this cache.
    pub(crate) fn touch(&self, touches: &HashMap<(Origin, ObjectId), u32>) {
        let own = touches.iter().filter(|((origin, _), _)| *origin == self.kernel_cache.origin());
        let own: Vec<_> = own.map(|((_, object), count)| (*object, *count)).collect();
        if let Some(cache) = self.cache.upgrade().filter(|_| !own.is_empty()) {
            cache.touch(&own);
        }
    }
}

impl ServedSites {
    fn has_refused(&self) -> bool {
        let answers = self.answers.as_ref();
        self.files.kernel_cache.has_refused()
            || answers.is_some_and(|answers| answers.kernel_cache.has_refused())
    }

    /// The routers that are believed in front of a site.
    pub(crate) fn believed(&self, site: u32) -> &[Network] {
        self.forwarded_from.get(&site).map_or(&[], Vec::as_slice)
    }
}

impl FastPathCore {
    /// Makes the kernel's copies of a cache.
    pub(crate) fn kernel_cache<H>(
        &self,
        origin: Origin,
        source: Box<dyn Pinnable<H>>,
        share: Share,
    ) -> Arc<KernelCache<H>> {
        let (register, counts) = (Arc::clone(&self.register), Arc::clone(&self.counts));
        let fast_path = Arc::clone(&self.fast_path);
        Arc::new(KernelCache::new(fast_path, origin, source, share, register, counts))
    }

    /// Numbers for the sites of the next configuration; 0 for those that user mode answers.
    pub(crate) fn number(&self, eligibility: &[Eligibility], names: &[String]) -> Vec<u32> {
        let numbers = self.numbers().enter(names, |site| self.site_count(site));
        let numbers = eligibility.iter().zip(numbers);
        numbers.map(|(site, number)| if site.is_answered() { number } else { 0 }).collect()
    }

    pub(crate) fn site_count(&self, site: u32) -> AnswerCount {
        self.fast_path.stats.site_count(site).unwrap_or_default().into()
    }

    /// The kernel's answers for each site, counted, in the order of the configuration.
    pub(crate) fn site_counts(&self) -> Vec<AnswerCount> {
        self.numbers().counts(|site| self.site_count(site))
    }

    pub(crate) fn numbers(&self) -> MutexGuard<'_, SiteNumbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn beat(&self) {
        let answering = self.answering();
        if *answering && !self.is_stopped() {
            self.fast_path.clock.beat();
        }
    }

    /// Whether the kernel may give wrong answers, and was stopped for that.
    pub(crate) fn is_stopped(&self) -> bool {
        self.counts.broken.load(Ordering::SeqCst) || self.differs.load(Ordering::SeqCst)
    }

    /// Stops the kernel's answers for good: one of them differs from user mode's.
    pub(crate) fn stop_for(&self, difference: &Difference) {
        self.differs.store(true, Ordering::SeqCst);
        {
            let _no_beat = self.answering();
            self.fast_path.clock.pause();
        }
        tracing::error!(
            %difference,
            "the fast path is off: the kernel's answer is not what user mode says"
        );
        tracing::error!("please report this:\n{}", difference.report());
    }

    pub(crate) fn wants_to_answer(&self) -> bool {
        *self.answering()
    }

    pub(crate) fn is_answering(&self) -> bool {
        self.wants_to_answer()
            && !self.fast_path.clients.is_paused()
            && !self.is_stopped()
            && !self.hanging.load(Ordering::Relaxed)
    }

    pub(crate) fn sweep(&self, silence: Duration) {
        match self.fast_path.sweep(silence) {
            Ok(swept) => *self.swept.lock().unwrap_or_else(PoisonError::into_inner) = swept,
            Err(error) => {
                tracing::warn!(%error, "the kernel's entries of ended connections cannot be removed")
            }
        }
    }

    /// Looks at how TCP is set up for the first time. The summary of the start says what came of it.
    pub(crate) fn begin_to_look_at_tcp(&self) {
        let refused = self.fast_path.socketless.look_at_tcp().err().map(|why| why.to_string());
        *self.tcp_refused.lock().unwrap_or_else(PoisonError::into_inner) = refused;
        self.say_admission();
    }

    /// Where connections begin; None: in the kernel's TCP, as the settings say.
    pub(crate) fn where_connections_begin(&self) -> Option<String> {
        if !self.fast_path.socketless.is_wanted() {
            return None;
        }
        let refused = self.tcp_refused.lock().unwrap_or_else(PoisonError::into_inner);
        Some(match &*refused {
            Some(why) => format!("{ALL_WITH_SOCKETS}: {why}"),
            None if self.fast_path.socketless.is_in_vain() => {
                format!("{ALL_WITH_SOCKETS} for some seconds: {IN_VAIN}")
            }
            None => "those of clients that are let in begin without one".to_owned(),
        })
    }

    /// New connections are the kernel's while there are as many as there may be. `open`: those of user mode.
    pub(crate) fn look_at_room(&self, open: u64) {
        let open = usize::try_from(open).unwrap_or(usize::MAX);
        let all = open.saturating_add(self.fast_path.clients.without_socket());
        let most = self.most_connections.load(Ordering::Relaxed);
        self.fast_path.socketless.set_full(all >= most);
    }

    /// Settings of TCP may change: SYNs are answered by those of now, or not at all.
    pub(crate) fn look_at_tcp(&self) {
        let refused = self.fast_path.socketless.look_at_tcp().err().map(|why| why.to_string());
        self.say_admission();
        self.say_in_vain(Instant::now());
        let mut said = self.tcp_refused.lock().unwrap_or_else(PoisonError::into_inner);
        if *said == refused {
            return;
        }
        match &refused {
            Some(why) => tracing::warn!("{ALL_WITH_SOCKETS}: {why}"),
            None if !self.fast_path.socketless.is_wanted() => {}
            None => tracing::info!("connections of known clients begin without a socket again"),
        }
        *said = refused;
    }

    fn say_in_vain(&self, now: Instant) {
        let mut said = self.in_vain_said.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = said.is_none_or(|then| now.duration_since(then) >= SELDOM);
        if is_due && self.fast_path.socketless.is_in_vain() {
            *said = Some(now);
            tracing::info!(
                "{ALL_WITH_SOCKETS} for twenty seconds, again and again until others come: {IN_VAIN}"
            );
        }
    }

    fn say_admission(&self) {
        let refused = self.fast_path.socketless.admission_refusal();
        let mut said = self.admission_refused.lock().unwrap_or_else(PoisonError::into_inner);
        if *said == refused {
            return;
        }
        match &refused {
            Some(why) => {
                tracing::warn!("`connections`: clients have to be known all the same: {why}")
            }
            None => tracing::info!("`connections`: everybody is admitted again"),
        }
        *said = refused;
    }

    /// Puts programs on the interfaces that carry these addresses. Returns the addresses that no interface
    /// without programs carries.
    pub(crate) fn reach(&self, bound: &[SocketAddr]) -> Vec<SocketAddr> {
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
            Err(error) => {
                return tracing::warn!(
                    %error,
                    "interfaces cannot be listed: new ones are served without the fast path"
                );
            }
        };
        let bound = self.bound().clone();
        let changes = self.interfaces().update(&self.fast_path.interfaces, &bound, &all);
        changes.into_iter().for_each(tell);
    }

    /// Whether the host should be looked at again. No, while that is being done.
    pub(crate) fn is_host_changed(&self) -> bool {
        self.watch.try_lock().is_ok_and(|mut watch| watch.is_due())
    }

    /// Logs new limits of the fast path if the host has changed.
    pub(crate) fn look_at_the_host(&self) {
        for finding in self.watch.lock().unwrap_or_else(PoisonError::into_inner).news() {
            tracing::warn!("the fast path is limited: {finding}");
        }
    }

    /// Somebody else's program may come and go before ours. Nothing is answered on those interfaces meanwhile.
    pub(crate) fn look_at_chains(&self) {
        match self.interfaces().look_at_chains(&self.fast_path.interfaces) {
            Ok(changes) => changes.into_iter().for_each(tell),
            Err(error) => {
                tracing::warn!(%error, "other programs on the interfaces cannot be looked for")
            }
        }
    }

    /// Pins anew the answers whose time in the kernel is over, if they are still fresh; the others are taken back. Of files, pins
    /// anew those of which there is more to pin now.
    pub(crate) fn renew(&self) {
        let current = self.current.load();
        if let Some(current) = current.as_ref().filter(|_| self.fast_path.objects.wants_old_kept())
        {
            current.files.renew();
        }
        if let Some(answers) = current.as_ref().and_then(|current| current.answers.as_ref()) {
            answers.renew();
        }
    }

    /// Offers objects that found no room again, when there is room now.
    pub(crate) fn use_room(&self) {
        let current = self.current.load();
        let Some(current) = current.as_ref().filter(|current| current.has_refused()) else {
            return;
        };
        if let Err(error) = self.fast_path.objects.reclaim() {
            tracing::warn!(%error, "the kernel's room of replaced objects cannot be taken back");
        }
        current.files.use_room(self.fast_path.objects.free_room());
        if let Some(answers) = &current.answers {
            answers.use_room(self.fast_path.objects.free_room());
        }
    }

    /// Gives the room to the objects that save the most time.
    pub(crate) fn rebalance(&self) {
        let current = self.current.load();
        let Some(current) = current.as_ref() else { return };
        current.files.rebalance(self.fast_path.objects.free_room());
        if let Some(answers) = &current.answers {
            answers.rebalance(self.fast_path.objects.free_room());
        }
    }

    pub(crate) fn bound(&self) -> MutexGuard<'_, Vec<SocketAddr>> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn interfaces(&self) -> MutexGuard<'_, Carriers> {
        self.interfaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn answering(&self) -> MutexGuard<'_, bool> {
        self.answering.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn pause(&self) {
        let mut answering = self.answering();
        *answering = false;
        self.fast_path.clock.pause();
    }

    /// Waits for the ends of long answers, and a little for connections that need translation: their last
    /// segments need the programs. Connections in TIME_WAIT do not delay the end for long.
    pub(crate) fn await_goodbyes(&self) {
        const TRANSFERS: Duration = Duration::from_secs(2);
        const PATIENCE: Duration = Duration::from_millis(250);
        self.fast_path.socketless.drain();
        if let Err(error) = self.fast_path.flows.close_socketless() {
            tracing::warn!(%error, "connections without a socket are not closed: the kernel resets them");
        }
        let start = Instant::now();
        // Where they cannot be counted there may be some.
        while self.fast_path.flows.answers_owed().map_or(true, |owed| owed > 0)
            && start.elapsed() < TRANSFERS
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        let start = Instant::now();
        while self.fast_path.flows.translated_flows().map_or(true, |translated| translated > 0)
            && start.elapsed() < PATIENCE
        {
            self.sweep(Duration::ZERO);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Logs a change of an interface.
fn tell(change: Change) {
    match change {
        Change::Added(interface) => {
            tracing::info!(interface, "the kernel answers on one interface more");
        }
        Change::Gone(interface) => tracing::info!(interface, "an interface is gone"),
        Change::Refused(interface, error) => {
            tracing::warn!(interface, %error, "an interface is served without the fast path");
        }
        Change::NotFirst(interface) => tracing::warn!(
            interface,
            "another program stands before ours: the kernel answers nothing here \
             (attach it behind ours, or start afpa after it)"
        ),
        Change::FirstAgain(interface) => tracing::info!(interface, "the kernel answers here again"),
    }
}
