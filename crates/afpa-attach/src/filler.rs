//! Filling: from a path below the root to pinned answers, and out again when something changes.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use afpa_bpf::{Coding, FastPath, Site};
use afpa_cache::Stamp;
use afpa_cache::root::{DocumentRoot, Entry, ListedKind, OpenFile, read_exact_version};
use afpa_cache::watch::{ChangeSink, Coverage, Watcher};
use afpa_http::target;

use crate::Scope;
use crate::answer::Answer;
use crate::gather::{Ask, AskError, Gathered, Unfit, Wanted, gather};
use crate::ledger::{Job, Ledger, Path};
use crate::walk::walk;

/// A site of the programs, and the Host values that select it.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// Its number, not 0.
    pub site: Site,
    /// All lead to the same content; the first one is asked.
    pub names: Vec<String>,
}

/// What watcher, filler and clock share.
pub struct Shared {
    /// The programs.
    pub fast_path: FastPath,
    /// The folder.
    pub root: DocumentRoot,
    /// What of it.
    pub scope: Scope,
    sites: Mutex<Arc<Vec<Hosts>>>,
    state: Mutex<State>,
    wake: Condvar,
}

struct State {
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

impl Shared {
    /// Nothing is known yet; the first thing to do is a walk.
    pub fn new(
        fast_path: FastPath,
        root: DocumentRoot,
        scope: Scope,
        sites: Vec<Hosts>,
        most: usize,
    ) -> Self {
        let state = State {
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
                Work::Fill(job) => Filling { shared: self, watcher, server, job }.run(),
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Everything is asked for again after this: a new configuration of the server makes no sound.
const RENEW: Duration = Duration::from_secs(600);
/// What is due this soon counts as being worked on; nobody sleeps longer.
const NEAR: Duration = Duration::from_secs(1);

enum Work {
    Walk(Vec<u8>),
    Fill(Job),
}

impl State {
    fn note(&mut self, why: &str) {
        *self.unfit.entry(why.to_owned()).or_default() += 1;
    }
}

/// The watcher's news.
pub struct Sink(pub Arc<Shared>);

impl ChangeSink for Sink {
    fn changed(&self, path: &[u8]) {
        self.0.spoil(path, Ledger::changed);
    }

    fn changed_tree(&self, path: &[u8]) {
        self.0.spoil(path, Ledger::changed_tree);
        let mut state = self.0.lock();
        if !state.walks.iter().any(|walk| walk == path) {
            state.walks.push(path.to_vec());
        }
        self.0.wake.notify_all();
    }

    fn written(&self, path: &[u8]) {
        let mut state = self.0.lock();
        state.ledger.written(path, Instant::now());
        self.0.wake.notify_all();
    }

    fn overflow(&self) {
        self.0.everything_changed();
    }
}

impl Shared {
    fn spoil(&self, path: &[u8], how: impl Fn(&mut Ledger, &[u8], Instant) -> Vec<Path>) {
        let now = Instant::now();
        let mut state = self.lock();
        let gone = how(&mut state.ledger, path, now);
        self.unpin(&gone);
        if let Some(folder) = governed(path) {
            let gone = state.ledger.changed_tree(folder, now);
            self.unpin(&gone);
        }
        if self.scope.covers(path) && !path.ends_with(b"/") {
            state.ledger.add(path, now + Duration::from_millis(20));
        }
        self.wake.notify_all();
    }
}

/// The folder whose answers a file decides on: Apache reads `.htaccess`, and its `.htpasswd`.
fn governed(path: &[u8]) -> Option<&[u8]> {
    let slash = path.iter().rposition(|byte| *byte == b'/')?;
    let (folder, name) = path.split_at(slash + 1);
    name.starts_with(b".ht").then_some(folder)
}

/// The target that clients send for a path.
fn spelled(path: &[u8]) -> Vec<u8> {
    let mut target = Vec::with_capacity(path.len());
    target::encode(path, &mut target);
    target
}

/// One path on its way to being pinned.
struct Filling<'a> {
    shared: &'a Shared,
    watcher: &'a Watcher,
    server: &'a mut dyn Ask,
    job: Job,
}

/// What became of it.
enum Outcome {
    Gone,
    Unfit(String),
    /// Worth another try.
    NotNow(String),
}

/// A file, one version of it.
struct Version {
    file: OpenFile,
    content: Vec<u8>,
}

impl Filling<'_> {
    fn run(mut self) {
        let outcome = self.attempt();
        let now = Instant::now();
        let mut state = self.shared.lock();
        match outcome {
            Ok(()) => {}
            Err(Outcome::Gone) => state.ledger.forget(&self.job),
            Err(Outcome::Unfit(why)) => {
                state.note(&why);
                state.ledger.refuse(&self.job, false, now);
            }
            Err(Outcome::NotNow(why)) => {
                state.note(&why);
                state.ledger.refuse(&self.job, true, now);
            }
        }
    }

    fn attempt(&mut self) -> Result<(), Outcome> {
        let path = self.job.path.clone();
        let folder = path.ends_with(b"/");
        let versions = if folder { self.index_files(&path)? } else { vec![self.version(&path)?] };
        let target = String::from_utf8(spelled(&path)).map_err(|_| Outcome::Gone)?;
        let siblings = if folder { Vec::new() } else { self.siblings(&path) };
        let mut gathered = Vec::new();
        for hosts in self.shared.sites().iter() {
            let wanted =
                Wanted { hosts: &hosts.names, target: &target, longest: self.shared.scope.longest };
            let fits =
                |answer: &Answer| versions.iter().any(|version| version.content == answer.body());
            let sibling = |coding: Coding, answer: &Answer| {
                let stored = siblings.iter().filter(|(have, _)| *have == coding);
                stored.map(|(_, content)| content).all(|content| content == answer.body())
            };
            match gather(self.server, &wanted, &fits, &sibling) {
                Ok(found) => gathered.push((hosts.site, found)),
                Err(unfit) => self.note_unfit(unfit)?,
            }
        }
        if gathered.is_empty() {
            return Err(Outcome::Unfit("no site gives it".into()));
        }
        // The watch tells of later changes; this tells of those it has not spoken of yet.
        if !versions.iter().all(|version| unchanged(&version.file)) {
            return Err(Outcome::NotNow("its file changed meanwhile".into()));
        }
        if gathered.iter().any(|(_, found)| found.is_weakly_tagged())
            && versions.iter().any(is_young)
        {
            return Err(Outcome::NotNow("its tag is provisional".into()));
        }
        self.pin(&target, &gathered)
    }

    /// Under the lock, so that a change is either seen here, or finds what it has to unpin.
    fn pin(&self, target: &str, gathered: &[(Site, Gathered)]) -> Result<(), Outcome> {
        let mut state = self.shared.lock();
        let lifetime = gathered.iter().filter_map(|(_, found)| found.lifetime).min();
        let lifetime = Some(lifetime.map_or(RENEW, |lifetime| lifetime.min(RENEW)));
        if state.ended || !state.ledger.pin(&self.job, lifetime, Instant::now()) {
            return Ok(()); // a change was faster, and has put it on the list again
        }
        for (site, found) in gathered {
            let pinned = self.shared.fast_path.pin(*site, target.as_bytes(), &found.variants());
            if let Err(error) = pinned {
                state.note(&error.to_string());
            }
        }
        Ok(())
    }

    /// What one site refuses another may allow; without an answer there is no use in going on.
    fn note_unfit(&self, unfit: Unfit) -> Result<(), Outcome> {
        match unfit {
            Unfit::Ask(AskError::Unreachable(_)) => Err(Outcome::NotNow(unfit.to_string())),
            Unfit::Content => Err(Outcome::NotNow(unfit.to_string())),
            _ if self.shared.sites().len() == 1 => Err(Outcome::Unfit(unfit.to_string())),
            _ => {
                self.shared.lock().note(&unfit.to_string());
                Ok(())
            }
        }
    }

    /// The file at `path`, read whole, every change of it being heard.
    fn version(&self, path: &[u8]) -> Result<Version, Outcome> {
        let mut depend = |place: &[u8]| self.shared.lock().ledger.depend(&self.job, place);
        let (entry, coverage) = self.watcher.resolve(&self.shared.root, path, &mut depend);
        let Ok(Entry::File(file)) = entry else { return Err(Outcome::Gone) };
        if let Coverage::Unwatched(reason) = coverage {
            return Err(Outcome::Unfit(format!("its changes are not heard: {reason}")));
        }
        let content = self.read(&file)?;
        Ok(Version { file, content })
    }

    fn read(&self, file: &OpenFile) -> Result<Vec<u8>, Outcome> {
        let size = usize::try_from(file.stamp.size).unwrap_or(usize::MAX);
        if size > self.shared.scope.longest {
            return Err(Outcome::Unfit("it is too long".into()));
        }
        let mut content = vec![0; size];
        let read = read_exact_version(&file.file, &file.stamp, &mut content);
        read.map(|()| content).map_err(|error| Outcome::NotNow(error.to_string()))
    }

    /// Files of a directory that may be its index. Every change in the directory spoils the answer, so
    /// that it does not matter which names the server looks for, and in which order.
    fn index_files(&self, path: &[u8]) -> Result<Vec<Version>, Outcome> {
        if let Coverage::Unwatched(reason) = self.watcher.ensure(plain(path)) {
            return Err(Outcome::Unfit(format!("its changes are not heard: {reason}")));
        }
        let Ok(Entry::Directory(directory)) = self.shared.root.resolve(path) else {
            return Err(Outcome::Gone);
        };
        let listed = directory.list(false, INDEX_NAMES);
        let listed = listed.map_err(|_| Outcome::Unfit("its directory cannot be read".into()))?;
        let mut versions = Vec::new();
        for listed in listed.iter().filter(|listed| listed.name.starts_with(b"index.")) {
            let file = [path, listed.name.as_slice()].concat();
            let small = matches!(listed.kind, ListedKind::File(size)
                if size <= self.shared.scope.longest as u64);
            if small && self.shared.scope.covers(&file) {
                match self.version(&file) {
                    Err(Outcome::Gone) => return Err(Outcome::NotNow("its index went".into())),
                    version => versions.push(version?),
                }
            }
        }
        if versions.is_empty() { Err(Outcome::Unfit("no index file".into())) } else { Ok(versions) }
    }

    /// Stored codings beside a file, which servers look for: they are watched, also while absent.
    fn siblings(&self, path: &[u8]) -> Vec<(Coding, Vec<u8>)> {
        let suffixes = [(Coding::Gzip, ".gz"), (Coding::Brotli, ".br"), (Coding::Zstd, ".zst")];
        let stored = suffixes.into_iter().filter_map(|(coding, suffix)| {
            let place = [path, suffix.as_bytes()].concat();
            self.shared.lock().ledger.depend(&self.job, &place);
            match self.shared.root.resolve(&place) {
                Ok(Entry::File(file)) => Some((coding, self.read(&file).unwrap_or_default())),
                _ => None,
            }
        });
        stored.collect()
    }
}

/// Names in a directory that is looked at for its index.
const INDEX_NAMES: usize = 100_000;

/// A directory's path as the watcher writes it.
fn plain(path: &[u8]) -> &[u8] {
    path.strip_suffix(b"/").filter(|path| !path.is_empty()).unwrap_or(b"/")
}

/// Younger than the resolution of Last-Modified: servers that say so give it a weak tag until then.
fn is_young(version: &Version) -> bool {
    let age = version.file.file.metadata().and_then(|metadata| metadata.modified());
    let age = age.map(|modified| modified.elapsed().unwrap_or_default());
    age.is_ok_and(|age| age < Duration::from_secs(2))
}

fn unchanged(open: &OpenFile) -> bool {
    let metadata = open.file.metadata();
    metadata.is_ok_and(|metadata| same_version(&metadata, &open.stamp))
}

fn same_version(metadata: &std::fs::Metadata, stamp: &Stamp) -> bool {
    use std::os::unix::fs::MetadataExt;
    let nanoseconds =
        |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    metadata.size() == stamp.size
        && metadata.nlink() > 0
        && nanoseconds(metadata.mtime(), metadata.mtime_nsec()) == stamp.mtime_ns
        && nanoseconds(metadata.ctime(), metadata.ctime_nsec()) == stamp.ctime_ns
}

/// Why a thread could not be started.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<std::thread::JoinHandle<T>> {
    std::thread::Builder::new().name(name.into()).spawn(work)
}
