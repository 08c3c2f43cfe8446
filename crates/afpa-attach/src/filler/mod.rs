//! Filling: pins the answers of paths below the root, and unpins them when something changes.

mod change;
mod confirming;
mod filling;
mod keeping;
mod unfit;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use afpa_bpf::{FastPath, SiteNumber};
use afpa_cache::root::DocumentRoot;
use afpa_http::target;
use afpa_self_check::{Checked, Difference};

use crate::Scope;
use crate::gather::{Claim, Gathered};
use crate::kept::{KeptScope, KeptTable, Target};
use crate::ledger::{Job, Ledger, Path};
use crate::say::say;

pub use self::change::Sink;
use self::keeping::Kept;
pub(crate) use self::keeping::learn;
use self::unfit::Reasons;

/// A site of the programs, and the Host values that select it.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// Its number, not 0.
    pub site: SiteNumber,
    /// All lead to the same content; the first one is asked.
    pub names: Vec<String>,
}

/// Fills and empties the kernel; shared by the watcher, the filling thread and the heartbeat.
pub struct Filler {
    /// The programs.
    pub fast_path: Arc<FastPath>,
    /// The folder.
    pub root: DocumentRoot,
    /// Which of its files.
    pub scope: Scope,
    /// Which answers that no file stands behind are kept.
    pub keeps: KeptScope,
    revalidate: Duration,
    /// The time after which idle connections without a socket are closed.
    idle: Duration,
    /// Whether the operator named the site.
    named: bool,
    sites: Mutex<Arc<Vec<Hosts>>>,
    state: Mutex<FillerState>,
    wake: Condvar,
}

struct FillerState {
    ledger: Ledger,
    /// Trees to be walked.
    walks: Vec<Vec<u8>>,
    /// Why objects were not pinned.
    unfit: Reasons,
    /// Paths that a walk found no room for.
    no_room: u64,
    /// The claims of each pinned path, which the server must go on to confirm.
    claims: HashMap<Path, Vec<Claim>>,
    kept: KeptTable,
    /// The pinned answers of each kept target.
    answers: HashMap<Target, Vec<Kept>>,
    working: bool,
    /// The server does not answer; so the kernel does not either, and nothing is asked.
    away: bool,
    /// The self-check found an answer that the server does not give.
    differs: bool,
    ended: bool,
}

/// The progress of the filler.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// Paths that are known.
    pub known: usize,
    /// Paths that are pinned.
    pub pinned: usize,
    /// Whether requests to the server are under way or waiting.
    pub busy: bool,
    /// Reasons why something is not pinned, and of how many URLs, the most frequent one first.
    pub unfit: Vec<(String, u64)>,
}

impl Filler {
    /// A filler without entries. Its first work is a walk.
    pub fn new(
        fast_path: Arc<FastPath>,
        root: DocumentRoot,
        (scope, keeps): (Scope, KeptScope),
        sites: Vec<Hosts>,
        bounds: FillerBounds,
    ) -> Self {
        let FillerBounds { most, revalidate, idle, named } = bounds;
        let most_unfit = most + keeps.most;
        let state = FillerState {
            ledger: Ledger::new(most, revalidate),
            walks: vec![b"/".to_vec()],
            unfit: Reasons::new(most_unfit),
            no_room: 0,
            claims: HashMap::new(),
            kept: KeptTable::new(keeps.most, keeps.clients),
            answers: HashMap::new(),
            working: false,
            away: false,
            differs: false,
            ended: false,
        };
        let sites = Mutex::new(Arc::new(sites));
        let (state, wake) = (Mutex::new(state), Condvar::new());
        Self { fast_path, root, scope, keeps, revalidate, idle, named, sites, state, wake }
    }

    /// Sites, and their names.
    pub fn sites(&self) -> Arc<Vec<Hosts>> {
        Arc::clone(&self.sites.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// Gives the sites other names. Everything is asked for again, by all new names. When this returns, no
    /// answer to a request with the old names is pinned, and none will be.
    pub fn rename(&self, sites: Vec<Hosts>) {
        *self.sites.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Arc::new(sites);
        // A filling that began before this line has an old epoch, and is discarded.
        self.everything_changed();
    }

    /// Unpins everything and begins again with a walk.
    pub fn everything_changed(&self) {
        let mut state = self.lock();
        self.begin_anew(&mut state);
    }

    fn begin_anew(&self, state: &mut FillerState) {
        let gone = state.ledger.everything_changed(Instant::now());
        self.unpin(state, &gone);
        let gone = state.kept.everything_changed(Instant::now());
        self.drop_kept(state, &gone);
        state.walks = vec![b"/".to_vec()];
        state.unfit.forget_all();
        state.no_room = 0;
        self.wake.notify_all();
    }

    /// An answer that says how long the server keeps idle connections must not say too much (A6). Then its requests are
    /// shown to the server more often. To be called before it is pinned.
    ///
    /// # Errors
    /// When connections that begin without a socket end earlier.
    fn heed_timeout(&self, found: &Gathered) -> Result<(), String> {
        let Some(longest) = found.timeout() else { return Ok(()) };
        if self.fast_path.socketless.may_close() && self.idle < Duration::from_secs(longest.into())
        {
            return Err(format!(
                "its Keep-Alive says {longest} seconds, and connections without a socket end earlier \
                 (--server-timeout {longest})"
            ));
        }
        self.fast_path.flows.refresh_within(SHOWN_WITHIN);
        Ok(())
    }

    /// The server does not answer any more: neither does the kernel, from now on.
    pub fn server_is_away(&self) {
        let mut state = self.lock();
        state.away = true;
        self.fast_path.clock.pause();
    }

    /// The server answers again. It may have been started with another configuration meanwhile, so everything
    /// is asked for anew before it is answered in the kernel.
    pub fn server_is_back(&self) {
        let mut state = self.lock();
        self.begin_anew(&mut state);
        state.away = false;
        if state.may_answer() {
            self.fast_path.clock.beat();
        }
    }

    /// The kernel gave another answer than the server: stop its answers until somebody starts the attachment anew.
    pub fn stop_for(&self, difference: &Difference) {
        let mut state = self.lock();
        state.differs = true;
        self.fast_path.clock.pause();
        say(&format!(
            "the kernel stops answering, for its answer is not the server's: {difference}"
        ));
        say(&format!("please report this:\n{}", difference.report()));
    }

    /// The parts of its fast path that are checked.
    pub fn checked(&self) -> Checked<'_> {
        let FastPath { reports, objects, sockets, .. } = &*self.fast_path;
        Checked { reports, objects, sockets }
    }

    /// Whether the self-check has ended the answering.
    pub fn differs(&self) -> bool {
        self.lock().differs
    }

    /// The heartbeat, which also unpins expired answers. It waits for the lock: if a thread never releases the
    /// lock, the heartbeat stops, and the programs stop answering.
    pub fn beat(&self) {
        let mut state = self.lock();
        let gone = state.ledger.expired(Instant::now());
        self.unpin(&mut state, &gone);
        if !gone.is_empty() {
            self.wake.notify_all();
        }
        self.tend_kept(&mut state);
        if state.may_answer() {
            self.fast_path.clock.beat();
        }
    }

    /// Stops the programs from answering, and ends [`fill`](Self::fill).
    pub fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        self.fast_path.clock.pause();
        self.wake.notify_all();
    }

    /// The progress of the filler.
    pub fn standing(&self) -> Standing {
        let state = self.lock();
        let (known, pinned, _) = state.ledger.counts();
        let due = state.ledger.next_due().is_some_and(|due| due <= Instant::now() + NEAR);
        Standing {
            known,
            pinned,
            busy: state.working || due || !state.walks.is_empty(),
            unfit: state.unfit(),
        }
    }

    fn take(&self) -> Option<Work> {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            let due = [state.ledger.next_due(), state.ledger.next_confirmation()];
            let pause = due.into_iter().flatten().min();
            let pause = pause.map_or(NEAR, |due| due.saturating_duration_since(now));
            let work = if state.away { None } else { state.work(now) };
            if state.ended {
                return None;
            }
            if work.is_some() {
                // Confirming is no progress: the object is pinned already.
                state.working = !matches!(work, Some(Work::Confirm(_)));
                return work;
            }
            let pause = if state.away { NEAR } else { pause };
            let waited = self.wake.wait_timeout(state, pause.min(NEAR));
            state = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
    }

    /// Called with the lock held: see the ledger's third invariant.
    fn unpin(&self, state: &mut FillerState, paths: &[Path]) {
        for path in paths {
            state.claims.remove(path);
            let target = spelled(path);
            for hosts in self.sites().iter() {
                if self.fast_path.objects.unpin(hosts.site, &target).is_err() {
                    // The kernel would go on sending a stale answer. It is better to stop.
                    self.fast_path.clock.pause();
                    std::process::abort();
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, FillerState> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Bounds and times of the filler.
#[derive(Clone, Copy, Debug)]
pub struct FillerBounds {
    /// Paths that it knows at most.
    pub most: usize,
    /// The server confirms each answer within this time.
    pub revalidate: Duration,
    /// The time after which idle connections without a socket are closed.
    pub idle: Duration,
    /// Whether the operator named the site, so that it is known for which Host it is to be asked.
    pub named: bool,
}

/// A server that says for how long it keeps idle connections sees a request of each busy one at least this often. So its
/// connections end at most this much earlier than it says; clients leave a second for the way.
const SHOWN_WITHIN: Duration = Duration::from_millis(500);

/// An entry that is due this soon counts as busy. No thread sleeps longer.
const NEAR: Duration = Duration::from_secs(1);

enum Work {
    Walk(Vec<u8>),
    Fill(Job),
    Confirm(Job),
}

impl FillerState {
    fn may_answer(&self) -> bool {
        !(self.ended || self.away || self.differs)
    }

    /// Confirming comes first: a pinned object must not lapse while new objects are asked for.
    fn work(&mut self, now: Instant) -> Option<Work> {
        let confirm = self.ledger.next_to_confirm(now).map(Work::Confirm);
        let walk = || self.walks.pop().map(Work::Walk);
        confirm.or_else(walk).or_else(|| self.ledger.next(now).map(Work::Fill))
    }

    fn note(&mut self, url: &[u8], why: &str) {
        self.unfit.note(url, why);
    }

    fn unfit(&self) -> Vec<(String, u64)> {
        let mut unfit = self.unfit.counts();
        if self.no_room > 0 {
            unfit.push(("no room for more objects".to_owned(), self.no_room));
        }
        unfit
    }
}

/// The target that clients send for a path.
fn spelled(path: &[u8]) -> Vec<u8> {
    let mut target = Vec::with_capacity(path.len());
    target::encode(path, &mut target);
    target
}

/// Starts a thread.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<std::thread::JoinHandle<T>> {
    std::thread::Builder::new().name(name.into()).spawn(work)
}
