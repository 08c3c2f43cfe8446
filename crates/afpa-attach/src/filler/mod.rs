//! Filling: from a path below the root to pinned answers, and out again when something changes.

mod change;
mod filling;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use afpa_bpf::{FastPath, SiteNumber};
use afpa_cache::root::DocumentRoot;
use afpa_cache::watch::Watcher;
use afpa_http::target;

use self::filling::Filling;
use crate::Scope;
use crate::gather::Ask;
use crate::ledger::{Job, Ledger, Path};
use crate::walk::walk;

pub use self::change::Sink;

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
    pub fast_path: FastPath,
    /// The folder.
    pub root: DocumentRoot,
    /// What of it.
    pub scope: Scope,
    sites: Mutex<Arc<Vec<Hosts>>>,
    state: Mutex<FillerState>,
    wake: Condvar,
}

struct FillerState {
    ledger: Ledger,
    /// Trees to be walked.
    walks: Vec<Vec<u8>>,
    /// Why objects were not pinned, and how often.
    unfit: BTreeMap<String, u64>,
    working: bool,
    ended: bool,
}

/// How it stands.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// Paths that are known.
    pub known: usize,
    /// Those that are pinned.
    pub pinned: usize,
    /// Whether something is being asked for, or waits for it.
    pub busy: bool,
    /// Reasons why something was not pinned, and how often since the start.
    pub unfit: Vec<(String, u64)>,
}

impl Filler {
    /// Nothing is known yet; the first thing to do is a walk.
    pub fn new(
        fast_path: FastPath,
        root: DocumentRoot,
        scope: Scope,
        sites: Vec<Hosts>,
        most: usize,
    ) -> Self {
        let state = FillerState {
            ledger: Ledger::new(most),
            walks: vec![b"/".to_vec()],
            unfit: BTreeMap::new(),
            working: false,
            ended: false,
        };
        let sites = Mutex::new(Arc::new(sites));
        Self { fast_path, root, scope, sites, state: Mutex::new(state), wake: Condvar::new() }
    }

    /// Sites, and their names.
    pub fn sites(&self) -> Arc<Vec<Hosts>> {
        Arc::clone(&self.sites.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// Other names for the same sites: everything is asked for anew, by all of them. What was asked for
    /// by the old ones is not pinned any more when this returns, and will not be.
    pub fn rename(&self, sites: Vec<Hosts>) {
        *self.sites.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Arc::new(sites);
        // A filling that began before this line finds its epoch over.
        self.everything_changed();
    }

    /// Unpins everything and begins again with a walk.
    pub fn everything_changed(&self) {
        let mut state = self.lock();
        let gone = state.ledger.everything_changed(Instant::now());
        self.unpin(&gone);
        state.walks = vec![b"/".to_vec()];
        self.wake.notify_all();
    }

    /// Sign of life, and the clock of expiring answers. Waits for the lock: when somebody holds it for
    /// good, nobody may answer any more.
    pub fn beat(&self) {
        let mut state = self.lock();
        let gone = state.ledger.expired(Instant::now());
        self.unpin(&gone);
        if !gone.is_empty() {
            self.wake.notify_all();
        }
        if !state.ended {
            self.fast_path.beat();
        }
    }

    /// Answers nothing from now on, and ends [`fill`](Self::fill).
    pub fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        self.fast_path.pause();
        self.wake.notify_all();
    }

    /// How it stands.
    pub fn standing(&self) -> Standing {
        let state = self.lock();
        let (known, pinned, _) = state.ledger.counts();
        let due = state.ledger.next_due().is_some_and(|due| due <= Instant::now() + NEAR);
        Standing {
            known,
            pinned,
            busy: state.working || due || !state.walks.is_empty(),
            unfit: state.unfit.iter().map(|(why, count)| (why.clone(), *count)).collect(),
        }
    }

    /// Walks and fills until the end.
    pub fn fill(&self, watcher: &Watcher, server: &mut dyn Ask) {
        while let Some(work) = self.take() {
            match work {
                Work::Walk(start) => walk(&self.root, &self.scope, &start, &mut |path| {
                    let mut state = self.lock();
                    let room = state.ledger.add(path, Instant::now());
                    if !room {
                        state.note("no room for more objects");
                    }
                    room && !state.ended
                }),
                Work::Fill(job) => Filling { filler: self, watcher, server, job }.run(),
            }
            self.lock().working = false;
        }
    }

    fn take(&self) -> Option<Work> {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            let work = state.walks.pop().map(Work::Walk);
            let work = work.or_else(|| state.ledger.next(now).map(Work::Fill));
            if state.ended {
                return None;
            }
            if work.is_some() {
                state.working = true;
                return work;
            }
            let pause =
                state.ledger.next_due().map_or(NEAR, |due| due.saturating_duration_since(now));
            let waited = self.wake.wait_timeout(state, pause.min(NEAR));
            state = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
    }

    /// Called with the lock held: see the ledger's third invariant.
    fn unpin(&self, paths: &[Path]) {
        for path in paths {
            let target = spelled(path);
            for hosts in self.sites().iter() {
                if self.fast_path.unpin(hosts.site, &target).is_err() {
                    // The kernel would go on answering: better nothing than something stale.
                    self.fast_path.pause();
                    std::process::abort();
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, FillerState> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// What is due this soon counts as being worked on; nobody sleeps longer.
const NEAR: Duration = Duration::from_secs(1);

enum Work {
    Walk(Vec<u8>),
    Fill(Job),
}

impl FillerState {
    fn note(&mut self, why: &str) {
        *self.unfit.entry(why.to_owned()).or_default() += 1;
    }
}

/// The target that clients send for a path.
fn spelled(path: &[u8]) -> Vec<u8> {
    let mut target = Vec::with_capacity(path.len());
    target::encode(path, &mut target);
    target
}

/// Why a thread could not be started.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<std::thread::JoinHandle<T>> {
    std::thread::Builder::new().name(name.into()).spawn(work)
}
