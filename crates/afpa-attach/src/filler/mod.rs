//! Filling: pins the answers of paths below the root, and unpins them when something changes.

mod change;
mod filling;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use afpa_bpf::{FastPath, SiteNumber};
use afpa_cache::root::DocumentRoot;
use afpa_http::target;

use crate::Scope;
use crate::ledger::{Job, Ledger, Path};

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

/// The progress of the filler.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// Paths that are known.
    pub known: usize,
    /// Those that are pinned.
    pub pinned: usize,
    /// Whether requests to the server are under way or waiting.
    pub busy: bool,
    /// Reasons why something was not pinned, and how often since the start.
    pub unfit: Vec<(String, u64)>,
}

impl Filler {
    /// A filler without entries. Its first work is a walk.
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
        let gone = state.ledger.everything_changed(Instant::now());
        self.unpin(&gone);
        state.walks = vec![b"/".to_vec()];
        self.wake.notify_all();
    }

    /// The heartbeat, which also unpins expired answers. It waits for the lock: if a thread never releases the
    /// lock, the heartbeat stops, and the programs stop answering.
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

    /// Stops the programs from answering, and ends [`fill`](Self::fill).
    pub fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        self.fast_path.pause();
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
            unfit: state.unfit.iter().map(|(why, count)| (why.clone(), *count)).collect(),
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
                    // The kernel would go on sending a stale answer. It is better to stop.
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

/// An entry that is due this soon counts as busy. No thread sleeps longer.
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

/// Starts a thread.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<std::thread::JoinHandle<T>> {
    std::thread::Builder::new().name(name.into()).spawn(work)
}
