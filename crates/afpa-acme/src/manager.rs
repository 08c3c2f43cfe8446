//! The thread that sees to it that there are certificates.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::oneshot;

use crate::authority::Authority;
use crate::certificate::Facts;
use crate::challenges::Challenges;
use crate::demand::Demand;
use crate::due::{Window, pause_after, renewal_at};
use crate::error::AcmeError;
use crate::settings::AcmeSettings;
use crate::state::{Lock, StateFolder};
use crate::together::Others;

/// Seconds since the Unix epoch.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The clock and the intervals of a manager.
#[derive(Clone)]
pub struct Pace {
    /// The current time.
    pub clock: Clock,
    /// How often it looks at the clock. It looks, rather than sleeping until a certificate is due, because a machine
    /// can be suspended and its clock set.
    pub look: Duration,
    /// How long an authority may be silent before an order is given up.
    pub patience: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        let since = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let clock = move || since().map_or(0, |time| time.as_secs());
        let (look, patience) = (Duration::from_secs(20), Duration::from_secs(60));
        Self { clock: Arc::new(clock), look, patience }
    }
}

/// How it stands with a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The names that are wanted.
    pub names: Vec<String>,
    /// The last second of the certificate that is there; `None`: there is none yet.
    pub not_after: Option<u64>,
    /// The second at which the next one is ordered.
    pub next: u64,
    /// Failures in a row.
    pub failures: u32,
    /// Why the last order failed.
    pub error: Option<String>,
    /// Orders that succeeded in the life of this process.
    pub issued: u64,
}

/// The state of all certificates, as the manager last saw it.
#[derive(Clone, Debug, Default)]
pub struct Statuses(Arc<Mutex<Vec<Status>>>);

impl Statuses {
    /// In the order of the configuration.
    pub fn get(&self) -> Vec<Status> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// There is no manager any more.
    pub fn clear(&self) {
        self.set(Vec::new());
    }

    fn set(&self, statuses: Vec<Status>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = statuses;
    }
}

/// The state that a manager shares with the server.
#[derive(Clone, Default)]
pub struct Shared {
    /// The answers that the server shows to the authority.
    pub challenges: Challenges,
    /// How it stands with the certificates.
    pub statuses: Statuses,
    /// The names that clients ask for.
    pub demand: Demand,
    /// The other machines, with which this one orders; none: it is alone.
    pub others: Arc<ArcSwapOption<OtherMachines>>,
}

/// The other machines.
pub type OtherMachines = Box<dyn Others>;

/// Orders certificates for as long as it lives, from [`Manager::begin`] on.
pub struct Manager {
    statuses: Statuses,
    begin: Option<oneshot::Sender<()>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Manager {
    /// Its thread, which orders nothing yet.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(
        settings: AcmeSettings,
        state: StateFolder,
        shared: Shared,
        pace: Pace,
    ) -> std::io::Result<Self> {
        shared.demand.set(&settings.on_demand);
        let ((begin, begun), (stop, stopped)) = (oneshot::channel(), oneshot::channel());
        let statuses = shared.statuses.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("afpa-acme".to_owned()).spawn(move || {
            let (lock, unstored) = (RefCell::default(), RefCell::default());
            let opening = tokio::sync::Mutex::default();
            let work = Work { settings, state, shared, pace, lock, unstored, opening };
            let work = async {
                if begun.await.is_ok() {
                    work.go_on().await;
                }
            };
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = work => {}
                }
            });
            // Does not wait for a name look-up in progress: its result is of no use, and it may take long.
            runtime.shutdown_background();
        })?;
        Ok(Self { statuses, begin: Some(begin), stop: Some(stop), thread: Some(thread) })
    }

    /// Orders from now on: the authority may ask this server at once.
    pub fn begin(&mut self) {
        if let Some(begin) = self.begin.take() {
            // The thread goes on until it is stopped, so it hears this.
            let _ = begin.send(());
        }
    }

    /// How it stands with each certificate.
    pub fn statuses(&self) -> Vec<Status> {
        self.statuses.get()
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The longest time between two looks while a certificate waits for another machine.
const WAIT: Duration = Duration::from_secs(2);

/// Orders for names that clients ask for, at a time.
const MOST_AT_ONCE: usize = 8;

/// A certificate that is wanted.
pub(crate) struct Wanted {
    pub(crate) names: Vec<String>,
    /// The facts of the certificate that is there.
    pub(crate) facts: Option<Facts>,
    /// The renewal window that the authority suggests, if any.
    window: Option<Window>,
    /// The second at which the authority is asked for the window again.
    ask_at: u64,
    /// A random number below 1000: it chooses the time within a window, and spreads the attempts of many servers.
    chance: u64,
    /// Not before this second.
    pub(crate) not_yet: u64,
    /// A client has asked for it.
    pub(crate) on_demand: bool,
    /// It waits for another machine, or for all of them.
    pub(crate) waits: bool,
    /// The record of the fleet, as it was looked at last.
    pub(crate) heard: Option<Arc<str>>,
    pub(crate) status: Status,
}

pub(crate) struct Work {
    pub(crate) settings: AcmeSettings,
    pub(crate) state: StateFolder,
    pub(crate) shared: Shared,
    pub(crate) pace: Pace,
    /// That of the folder, while an order of this manager holds it.
    lock: RefCell<Weak<Lock>>,
    /// Certificates that have come and that the folder did not take, by their names.
    unstored: RefCell<BTreeMap<Vec<String>, String>>,
    /// One account is opened at a time.
    opening: tokio::sync::Mutex<()>,
}

impl Work {
    async fn go_on(&self) {
        let names = self.settings.certificates.iter();
        let mut all: Vec<_> = names.map(|names| Wanted::new(names.clone())).collect();
        all.extend(self.found_on_demand());
        loop {
            // An earlier manager may have left names that clients wait for.
            self.meet_demand(&mut all).await;
            for index in 0..all.len() {
                // Clients wait for certificates on demand; renewals can wait, so demand is met before each of them.
                self.meet_demand(&mut all).await;
                if let Some(wanted) = all.get_mut(index) {
                    self.look_at(wanted).await;
                }
                self.tell(&all);
            }
            all.retain(|wanted| !self.is_over(wanted));
            self.tell(&all);
            self.rest(&mut all).await;
        }
    }

    /// Until the next look. Demand is met meanwhile, and what comes from the fleet is taken.
    async fn rest(&self, all: &mut Vec<Wanted>) {
        // Those that the last call left.
        if !self.shared.demand.wanted().is_empty() {
            return;
        }
        let others = self.shared.others.load_full();
        let waits = all.iter().any(|wanted| wanted.waits);
        let pause = if waits { self.pace.look.min(WAIT) } else { self.pace.look };
        let mut look = pin!(tokio::time::sleep(pause));
        loop {
            let changed = async {
                match &others {
                    Some(others) => others.changed().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = &mut look => return,
                () = self.shared.demand.asked() => return self.meet_demand(all).await,
                () = changed => self.take_in_all(all),
            }
            self.tell(all);
        }
    }

    fn tell(&self, all: &[Wanted]) {
        self.shared.statuses.set(all.iter().map(|wanted| wanted.status.clone()).collect());
    }

    /// The certificates that an earlier process ordered on demand.
    fn found_on_demand(&self) -> Vec<Wanted> {
        let AcmeSettings { on_demand, certificates, .. } = &self.settings;
        let names = self.state.names().unwrap_or_default().into_iter();
        let names = names.filter(|name| {
            on_demand.allows(name) && !certificates.iter().flatten().any(|other| other == name)
        });
        let mut found = Vec::new();
        for name in names.take(on_demand.most) {
            let mut wanted = Wanted { on_demand: true, ..Wanted::new(vec![name.clone()]) };
            if self.look_in_folder(&mut wanted).is_ok() && !self.is_over(&wanted) {
                self.shared.demand.is_here(&name);
                found.push(wanted);
            }
        }
        found
    }

    /// Orders certificates for the names that clients wait for, also for those that they ask for meanwhile: none waits for the
    /// order of another one. Renewals and the fleet wait meanwhile, so those that ask later than a look after the first order began
    /// are left to the next call: clients who ask all the time, of a slow authority, would keep everything else waiting.
    async fn meet_demand(&self, all: &mut Vec<Wanted>) {
        let (mut under_way, mut names) = (FuturesUnordered::new(), BTreeSet::new());
        let mut look = pin!(tokio::time::sleep(self.pace.look));
        let mut takes = true;
        loop {
            for name in self.shared.demand.wanted() {
                if takes && names.len() < self.most_at_once() && names.insert(name.clone()) {
                    under_way.push(self.meet(name));
                }
            }
            if under_way.is_empty() {
                return;
            }
            tokio::select! {
                Some((name, found)) = under_way.next() => {
                    names.remove(&name);
                    all.extend(found);
                    self.take_in_all(all);
                    self.tell(all);
                }
                () = self.shared.demand.asked(), if takes => {}
                () = &mut look, if takes => takes = false,
            }
        }
    }

    /// Orders a certificate for a name that clients wait for. They do not any more when this is done.
    async fn meet(&self, name: String) -> (String, Option<Wanted>) {
        let now = (self.pace.clock)();
        let mut wanted = Wanted { on_demand: true, ..Wanted::new(vec![name.clone()]) };
        // One that is configured is ordered anyway.
        if !self.settings.certificates.iter().flatten().any(|other| *other == name) {
            self.look_at(&mut wanted).await;
        }
        let is_good = wanted.status.failures == 0 && !wanted.is_due(now);
        let found = Some(wanted).filter(|wanted| wanted.facts.is_some() && is_good);
        match &found {
            Some(_) => self.shared.demand.is_here(&name),
            None => self.shared.demand.has_failed(&name, now),
        }
        (name, found)
    }

    /// A program that sets records may change a file: it is not run twice at a time.
    fn most_at_once(&self) -> usize {
        if self.settings.dns_program.is_some() { 1 } else { MOST_AT_ONCE }
    }

    /// The lock of the folder, which all orders of this manager share; `None`: another process orders.
    pub(crate) fn lock(&self) -> Result<Option<Rc<Lock>>, AcmeError> {
        let mut known = self.lock.borrow_mut();
        if let Some(lock) = known.upgrade() {
            return Ok(Some(lock));
        }
        let lock = self.state.lock()?.map(Rc::new);
        *known = lock.as_ref().map(Rc::downgrade).unwrap_or_default();
        Ok(lock)
    }

    /// Whether its certificate was ordered on demand, has expired, and no client asks for it any more.
    fn is_over(&self, wanted: &Wanted) -> bool {
        let Some(name) = wanted.names.first().filter(|_| wanted.on_demand) else { return false };
        let now = (self.pace.clock)();
        let has_ended = wanted.status.not_after.is_none_or(|end| end <= now);
        let is_over = has_ended && !self.shared.demand.is_in_use(name);
        if is_over {
            self.shared.demand.forget(name);
        }
        is_over
    }

    async fn look_at(&self, wanted: &mut Wanted) {
        let now = (self.pace.clock)();
        if now < wanted.not_yet || self.is_idle(wanted) {
            return;
        }
        match self.attend(wanted, now).await {
            Ok(()) => {}
            Err(error) => {
                wanted.failed(now, &error);
                let (names, pause) = (wanted.names.join(", "), wanted.not_yet.saturating_sub(now));
                let serving = match wanted.facts {
                    Some(_) => "the certificate that is there stays",
                    None => "there is none yet",
                };
                tracing::warn!(
                    "no certificate for {names}: {error}; {serving}, again in {pause} s"
                );
            }
        }
    }

    /// Whether a certificate is there that was ordered on demand, and no client has asked for it since.
    fn is_idle(&self, wanted: &Wanted) -> bool {
        let is_here = wanted.on_demand && wanted.facts.is_some();
        is_here && !wanted.names.iter().any(|name| self.shared.demand.is_in_use(name))
    }

    async fn attend(&self, wanted: &mut Wanted, now: u64) -> Result<(), AcmeError> {
        if let Some(others) = self.shared.others.load_full() {
            return self.attend_together(&**others, wanted, now).await;
        }
        self.look_in_folder(wanted)?;
        if !wanted.is_due(now) {
            self.ask_for_window(wanted, now).await;
        }
        if !wanted.is_due(now) {
            return Ok(());
        }
        let Some(_lock) = self.lock()? else { return Ok(()) };
        // Another process may have ordered it meanwhile.
        self.look_in_folder(wanted)?;
        if wanted.is_due(now) { self.order(wanted, now).await } else { Ok(()) }
    }

    /// Reads the certificate in the folder, which is the one that is served. An unreadable one counts as missing, so it
    /// is ordered anew.
    pub(crate) fn look_in_folder(&self, wanted: &mut Wanted) -> Result<(), AcmeError> {
        let found = self.state.certificate(&wanted.names)?;
        wanted.found(found.and_then(|pem| Facts::read(&pem).ok()));
        Ok(())
    }

    /// The authority is asked as often as it wants, without an effect if it does not answer.
    pub(crate) async fn ask_for_window(&self, wanted: &mut Wanted, now: u64) {
        const AT_LEAST: u64 = 3600;
        const AT_MOST: u64 = 24 * 3600;
        if now < wanted.ask_at {
            return;
        }
        let Some(facts) = &wanted.facts else { return };
        let answer = match self.authority().await {
            Ok(authority) => authority.window(facts).await,
            Err(_) => None,
        };
        let (window, valid) = answer.map_or((None, AT_LEAST), |(window, valid)| {
            (Some(window), valid.as_secs().clamp(AT_LEAST, AT_MOST))
        });
        (wanted.window, wanted.ask_at) = (window, now + valid);
        wanted.plan();
    }

    /// Orders a certificate, unless one has come before that the folder did not take: authorities certify the same names a few times
    /// a week, and a disk that is full would use these up within the hour.
    async fn order(&self, wanted: &mut Wanted, now: u64) -> Result<(), AcmeError> {
        let unstored = self.unstored.borrow_mut().remove(&wanted.names);
        let pem = match unstored {
            Some(pem) => pem,
            None => self.order_anew(wanted).await?,
        };
        let facts = usable(&pem, wanted, now)?;
        let stored = self.use_ordered(wanted, (&pem, facts));
        if stored.is_err() {
            self.unstored.borrow_mut().insert(wanted.names.clone(), pem);
        }
        stored
    }

    async fn order_anew(&self, wanted: &Wanted) -> Result<String, AcmeError> {
        let (names, directory) = (wanted.names.join(", "), &self.settings.directory);
        tracing::info!("a certificate for {names} is ordered at {directory}");
        let account = self.state.account(directory)?;
        match self.order_once(wanted).await {
            Err(error) if error.is_unknown_account() => {
                tracing::warn!(
                    "the authority does not know the account any more, so another one is opened: {error}"
                );
                // Another order may have opened one meanwhile.
                if self.state.account(directory)? == account {
                    self.state.remove_account(directory)?;
                }
                self.order_once(wanted).await
            }
            ordered => ordered,
        }
    }

    /// Stores a certificate that this process has ordered.
    pub(crate) fn use_ordered(
        &self,
        wanted: &mut Wanted,
        (pem, facts): (&str, Facts),
    ) -> Result<(), AcmeError> {
        self.state.store_certificate(&wanted.names, pem)?;
        wanted.issued(facts);
        if let Some(name) = wanted.names.first().filter(|_| wanted.on_demand) {
            self.shared.demand.is_here(name);
        }
        tracing::info!("there is a new certificate for {}", wanted.names.join(", "));
        Ok(())
    }

    pub(crate) async fn authority(&self) -> Result<Authority<'_>, AcmeError> {
        let patience = self.pace.patience;
        let has_none = self.state.account(&self.settings.directory)?.is_none();
        let _opening = if has_none { Some(self.opening.lock().await) } else { None };
        Authority::connect(&self.settings, &self.shared.challenges, &self.state, patience).await
    }

    async fn order_once(&self, wanted: &Wanted) -> Result<String, AcmeError> {
        let authority = self.authority().await?;
        authority.order(&wanted.names, wanted.right()).await
    }
}

/// The facts of a certificate that came, if it is the one that is wanted.
pub(crate) fn usable(pem: &str, wanted: &Wanted, now: u64) -> Result<Facts, AcmeError> {
    let facts = Facts::read(pem.as_bytes()).map_err(AcmeError::Certificate)?;
    if !facts.is_for(&wanted.names) || facts.lifetime.not_after <= now {
        let why = format!("it is for {}", facts.names.join(", "));
        return Err(AcmeError::Certificate(why));
    }
    Ok(facts)
}

impl Wanted {
    fn new(names: Vec<String>) -> Self {
        use std::hash::{BuildHasher, RandomState};
        let chance = RandomState::new().hash_one(&names) % 1000;
        let status = Status { names: names.clone(), ..Status::default() };
        Self {
            names,
            facts: None,
            window: None,
            ask_at: 0,
            chance,
            not_yet: 0,
            on_demand: false,
            waits: false,
            heard: None,
            status,
        }
    }

    /// The facts of the certificate that is there, if it is for these names.
    pub(crate) fn right(&self) -> Option<&Facts> {
        self.facts.as_ref().filter(|facts| facts.is_for(&self.names))
    }

    pub(crate) fn found(&mut self, facts: Option<Facts>) {
        if self.facts != facts {
            (self.window, self.ask_at) = (None, 0);
        }
        self.facts = facts;
        self.plan();
    }

    /// Plans the next order: at once, if the certificate that is there is for other names.
    fn plan(&mut self) {
        let next = |facts: &Facts| renewal_at(facts.lifetime, self.window, self.chance);
        self.status.next = self.right().map_or(0, next);
        self.status.not_after = self.facts.as_ref().map(|facts| facts.lifetime.not_after);
    }

    pub(crate) fn is_due(&self, now: u64) -> bool {
        now >= self.status.next
    }

    fn failed(&mut self, now: u64, error: &AcmeError) {
        self.status.failures = self.status.failures.saturating_add(1);
        self.status.error = Some(error.to_string());
        self.not_yet = now + pause_after(self.status.failures, self.chance).as_secs();
    }

    pub(crate) fn issued(&mut self, facts: Facts) {
        self.found(Some(facts));
        self.not_yet = 0;
        let issued = self.status.issued + 1;
        let names = std::mem::take(&mut self.status.names);
        let (not_after, next) = (self.status.not_after, self.status.next);
        self.status = Status { names, not_after, next, issued, ..Status::default() };
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    use super::*;
    use crate::demand::{Answer, OnDemand};

    #[test]
    fn names_that_clients_ask_for_all_the_time_leave_turns_to_renewals() {
        // Connections are made, and nothing is ever answered.
        let authority = TcpListener::bind("127.0.0.1:0").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let settings = AcmeSettings {
            directory: format!("https://{}/directory", authority.local_addr().unwrap()),
            certificates: vec![vec!["www.a.test".to_owned()]],
            on_demand: OnDemand {
                names: vec!["*.b.test".to_owned()],
                most: 1_000_000,
                per_hour: 1_000_000,
            },
            ..AcmeSettings::new(folder.path().join("acme"))
        };
        let state = StateFolder::prepare(&settings.state, None).unwrap();
        let (look, patience) = (Duration::from_millis(100), Duration::from_millis(300));
        let pace = Pace { clock: Arc::new(|| 1_000_000), look, patience };
        let (shared, ended) = (Shared::default(), AtomicBool::new(false));
        let mut manager = Manager::start(settings, state, shared.clone(), pace).unwrap();
        let demand = &shared.demand;
        std::thread::scope(|scope| {
            let first = demand.ask("first.b.test", 1_000_000);
            assert_eq!(first, Answer::Wait);
            scope.spawn(|| {
                for number in 0.. {
                    if ended.load(Ordering::Relaxed) {
                        break;
                    }
                    demand.ask(&format!("n{number}.b.test"), 1_000_000);
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
            manager.begin();
            let since = Instant::now();
            let is_tried = || {
                let statuses = shared.statuses.get();
                statuses.iter().any(|status| status.names == ["www.a.test"] && status.failures > 0)
            };
            while !is_tried() && since.elapsed() < Duration::from_secs(120) {
                std::thread::sleep(Duration::from_millis(20));
            }
            ended.store(true, Ordering::Relaxed);
            assert!(is_tried(), "{:?}", shared.statuses.get());
        });
        let why = shared.statuses.get().into_iter().find_map(|status| status.error).unwrap();
        assert!(why.contains("has not answered"), "{why}");
    }
}
