//! Pinned paths, the places that they depend on, and the paths to ask for: coherency without I/O.
//!
//! An *entry* is a path below the root that may be answered. A *place* is a path whose change makes the
//! entry's answer invalid. Invariants:
//! 1. a change raises the epoch of every entry that depends on the place, before anything else;
//! 2. an entry becomes pinned only with the epoch in which its filling began;
//! 3. the code that marks an entry as unpinned removes it from the kernel under the same lock;
//! 4. a pinned entry has a *lease*. The server confirms it again and again; an entry that was not confirmed in
//!    time is unpinned.
//!
//! So an answer that was fetched while its file changed is never pinned, and an answer that was pinned
//! before a change is removed before the server is asked for the new version.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A path below the root, as the file system spells it. The path of a directory ends with a slash.
pub type Path = Arc<[u8]>;

/// How long a file must not change before the server is asked for it.
const QUIET: Duration = Duration::from_millis(500);
/// The time of quiet, if the writer has closed the file.
const CLOSED: Duration = Duration::from_millis(20);
/// The first pause before a retry. It doubles with each retry, up to the last one.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(64);

/// All entries.
#[derive(Debug)]
pub struct Ledger {
    most: usize,
    /// How long an answer counts without being confirmed.
    lease: Duration,
    entries: HashMap<Path, Entry>,
    due: BTreeSet<(Instant, Path)>,
    /// When pinned entries are to be confirmed.
    unconfirmed: BTreeSet<(Instant, Path)>,
    dependants: HashMap<Path, HashSet<Path>>,
    pinned: usize,
    epoch: u64,
}

#[derive(Debug, Default)]
struct Entry {
    epoch: u64,
    pinned: bool,
    /// When a pinned entry expires.
    until: Option<Instant>,
    /// When the server last confirmed a pinned entry, and when it is asked to do so again.
    confirmed: Option<Instant>,
    check: Option<Instant>,
    /// It was pinned before, so what hinders that now may pass.
    once_pinned: bool,
    due: Option<Instant>,
    failures: u32,
    places: Vec<Path>,
}

/// An entry that is being filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Which.
    pub path: Path,
    epoch: u64,
}

impl Ledger {
    /// An empty one that will hold `most` entries, and has each of them confirmed within `lease`.
    pub fn new(most: usize, lease: Duration) -> Self {
        Self {
            most,
            lease,
            entries: HashMap::new(),
            due: BTreeSet::new(),
            unconfirmed: BTreeSet::new(),
            dependants: HashMap::new(),
            pinned: 0,
            epoch: 0,
        }
    }

    /// How many entries there are, how many of them are pinned, and how many wait to be asked for.
    pub fn counts(&self) -> (usize, usize, usize) {
        (self.entries.len(), self.pinned, self.due.len())
    }

    /// Whether the path is pinned.
    pub fn is_pinned(&self, path: &[u8]) -> bool {
        self.entries.get(path).is_some_and(|entry| entry.pinned)
    }

    /// A path that may be worth pinning. False: there is no room for it.
    pub fn add(&mut self, path: &[u8], now: Instant) -> bool {
        if self.entries.contains_key(path) {
            return true;
        }
        if self.entries.len() >= self.most {
            return false;
        }
        let path: Path = path.into();
        self.epoch += 1;
        self.entries.insert(path.clone(), Entry { epoch: self.epoch, ..Entry::default() });
        self.schedule(&path, now);
        true
    }

    /// `place` has changed. The returned entries must be unpinned at once.
    #[must_use]
    pub fn changed(&mut self, place: &[u8], now: Instant) -> Vec<Path> {
        let mut hit: Vec<Path> =
            self.dependants.get(place).into_iter().flatten().cloned().collect();
        let folder = folder_of(place);
        let own = [place, folder];
        hit.extend(
            own.iter().filter_map(|path| Some(self.entries.get_key_value(*path)?.0.clone())),
        );
        self.spoil(hit, now + QUIET)
    }

    /// `place`, which may be a directory, has become another file or directory.
    #[must_use]
    pub fn changed_tree(&mut self, place: &[u8], now: Instant) -> Vec<Path> {
        let below = |path: &[u8]| {
            let rest = path.strip_prefix(place.strip_suffix(b"/").unwrap_or(place));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        let spoilt = |path: &Path, entry: &Entry| {
            below(path)
                || *folder_of(place) == **path
                || entry.places.iter().any(|place| below(place))
        };
        let hit = self.entries.iter().filter(|(path, entry)| spoilt(path, entry));
        let hit = hit.map(|(path, _)| path.clone()).collect();
        self.spoil(hit, now + QUIET)
    }

    /// Anything may have changed.
    #[must_use]
    pub fn everything_changed(&mut self, now: Instant) -> Vec<Path> {
        let all = self.entries.keys().cloned().collect();
        self.spoil(all, now + CLOSED)
    }

    /// `place` was written and closed, so entries that depend on it are due soon.
    pub fn written(&mut self, place: &[u8], now: Instant) {
        let folder = folder_of(place);
        let mut waiting: Vec<Path> =
            self.dependants.get(place).into_iter().flatten().cloned().collect();
        waiting.extend([place, folder].map(Path::from));
        for path in waiting {
            if self.entries.get(&path).is_some_and(|entry| entry.due.is_some()) {
                self.schedule(&path, now + CLOSED);
            }
        }
    }

    /// Pinned entries that have expired, or were not confirmed in time. They must be unpinned at once, and are
    /// asked for again.
    #[must_use]
    pub fn expired(&mut self, now: Instant) -> Vec<Path> {
        let lapsed = |entry: &Entry| entry.confirmed.is_some_and(|then| then + self.lease <= now);
        let over = |entry: &Entry| entry.until.is_some_and(|until| until <= now) || lapsed(entry);
        let over = self.entries.iter().filter(|(_, entry)| over(entry));
        let over = over.map(|(path, _)| path.clone()).collect();
        self.spoil(over, now)
    }

    /// The next entry to fill, if one is due.
    pub fn next(&mut self, now: Instant) -> Option<Job> {
        let (when, path) = self.due.first()?.clone();
        if when > now {
            return None;
        }
        self.due.pop_first();
        let entry = self.entries.get_mut(&path)?;
        entry.due = None;
        debug_assert!(!entry.pinned, "a pinned entry is never asked for");
        let places = std::mem::take(&mut entry.places);
        let epoch = entry.epoch;
        self.release(&path, &places);
        Some(Job { path, epoch })
    }

    /// The next pinned entry that the server is to confirm, if one is due.
    pub fn next_to_confirm(&mut self, now: Instant) -> Option<Job> {
        let (when, path) = self.unconfirmed.first()?.clone();
        if when > now {
            return None;
        }
        self.unconfirmed.pop_first();
        let entry = self.entries.get_mut(&path)?;
        entry.check = None;
        let epoch = entry.epoch;
        Some(Job { path, epoch })
    }

    /// The server has confirmed an entry in answers to questions since `asked`. False: the entry has changed
    /// meanwhile.
    pub fn confirm(&mut self, job: &Job, asked: Instant) -> bool {
        let entry = self.entries.get_mut(&job.path);
        let entry = entry.filter(|entry| entry.epoch == job.epoch && entry.pinned);
        let Some(entry) = entry else { return false };
        entry.confirmed = Some(asked);
        self.check(&job.path, asked + self.lease / 2);
        true
    }

    /// The server did not answer. It is asked again before the lease ends.
    pub fn confirm_later(&mut self, job: &Job, now: Instant) {
        let entry = self.entries.get(&job.path);
        if entry.is_some_and(|entry| entry.epoch == job.epoch && entry.pinned) {
            self.check(&job.path, now + self.lease / 8);
        }
    }

    fn check(&mut self, path: &Path, when: Instant) {
        let Some(entry) = self.entries.get_mut(path) else { return };
        if let Some(before) = entry.check.replace(when) {
            self.unconfirmed.remove(&(before, path.clone()));
        }
        self.unconfirmed.insert((when, path.clone()));
    }

    /// The server says something else now. The returned entry must be unpinned at once.
    #[must_use]
    pub fn contradict(&mut self, job: &Job, now: Instant) -> Vec<Path> {
        let held = self.entries.get(&job.path).is_some_and(|entry| entry.epoch == job.epoch);
        let paths = if held { vec![job.path.clone()] } else { Vec::new() };
        self.spoil(paths, now)
    }

    /// When [`next_to_confirm`](Self::next_to_confirm) will have an entry.
    pub fn next_confirmation(&self) -> Option<Instant> {
        self.unconfirmed.first().map(|(when, _)| *when)
    }

    /// When [`next`](Self::next) will have an entry.
    pub fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(when, _)| *when)
    }

    /// The entry that is being filled also depends on `place`. Call it before reading the place.
    pub fn depend(&mut self, job: &Job, place: &[u8]) {
        let Some(entry) = self.entries.get_mut(&job.path) else { return };
        let place: Path = place.into();
        if !entry.places.contains(&place) {
            entry.places.push(place.clone());
            self.dependants.entry(place).or_default().insert(job.path.clone());
        }
    }

    /// Marks the entry as pinned for `lifetime`, if nothing has changed since its filling began. Whether it is.
    pub fn pin(&mut self, job: &Job, lifetime: Option<Duration>, now: Instant) -> bool {
        let entry = self.entries.get_mut(&job.path).filter(|entry| entry.epoch == job.epoch);
        let Some(entry) = entry else { return false };
        entry.pinned = true;
        entry.once_pinned = true;
        entry.failures = 0;
        entry.until = lifetime.map(|lifetime| now + lifetime);
        self.pinned += 1;
        self.confirm(job, now)
    }

    /// The entry could not be pinned. `again`: a retry may succeed.
    pub fn refuse(&mut self, job: &Job, again: bool, now: Instant) {
        let entry = self.entries.get_mut(&job.path).filter(|entry| entry.epoch == job.epoch);
        let Some(entry) = entry else { return };
        if again || entry.once_pinned {
            let pause = FIRST_RETRY * 2u32.pow(entry.failures.min(10));
            entry.failures += 1;
            self.schedule(&job.path, now + pause.min(LAST_RETRY));
        }
    }

    /// There is no such file.
    pub fn forget(&mut self, job: &Job) {
        if self.entries.get(&job.path).is_some_and(|entry| entry.epoch == job.epoch) {
            let entry = self.entries.remove(&job.path).unwrap_or_default();
            self.release(&job.path, &entry.places);
        }
    }

    fn spoil(&mut self, paths: Vec<Path>, due: Instant) -> Vec<Path> {
        let mut unpin = Vec::new();
        for path in paths {
            self.epoch += 1;
            let Some(entry) = self.entries.get_mut(&path) else { continue };
            entry.epoch = self.epoch;
            entry.until = None;
            entry.failures = 0;
            if std::mem::take(&mut entry.pinned) {
                self.pinned -= 1;
                entry.confirmed = None;
                if let Some(when) = entry.check.take() {
                    self.unconfirmed.remove(&(when, path.clone()));
                }
                unpin.push(path.clone());
            }
            self.schedule(&path, due);
        }
        unpin
    }

    fn schedule(&mut self, path: &Path, when: Instant) {
        let Some(entry) = self.entries.get_mut(path) else { return };
        if let Some(before) = entry.due.replace(when) {
            self.due.remove(&(before, path.clone()));
        }
        self.due.insert((when, path.clone()));
    }

    fn release(&mut self, path: &Path, places: &[Path]) {
        for place in places {
            if let Some(dependants) = self.dependants.get_mut(place) {
                dependants.remove(path);
                if dependants.is_empty() {
                    self.dependants.remove(place);
                }
            }
        }
    }
}

/// The directory of a place, with its slash.
fn folder_of(place: &[u8]) -> &[u8] {
    let end = place.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    place.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(1);
    const LEASE: Duration = Duration::from_secs(10);

    fn paths(found: Vec<Path>) -> Vec<String> {
        let mut found: Vec<_> =
            found.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
        found.sort();
        found
    }

    /// All of these pinned.
    fn ledger(now: Instant, all: &[&str]) -> Ledger {
        let mut ledger = Ledger::new(100, LEASE);
        for path in all {
            assert!(ledger.add(path.as_bytes(), now));
            let job = ledger.next(now).unwrap();
            assert!(ledger.pin(&job, None, now));
        }
        ledger
    }

    #[test]
    fn a_change_unpins_the_file_its_folder_and_what_depends_on_it() {
        let now = Instant::now();
        let mut ledger = ledger(now, &["/a/x", "/a/", "/a/y", "/"]);
        ledger.add(b"/link", now);
        let job = ledger.next(now).unwrap();
        ledger.depend(&job, b"/a/x");
        assert!(ledger.pin(&job, None, now));
        assert_eq!(paths(ledger.changed(b"/a/x", now)), ["/a/", "/a/x", "/link"]);
        assert_eq!(ledger.counts(), (5, 2, 3));
        assert_eq!(ledger.next(now), None, "let the writer finish");
        ledger.written(b"/a/x", now);
        assert_eq!(ledger.next_due(), Some(now + CLOSED));
        assert!(ledger.changed(b"/a/x", now).is_empty(), "once");
    }

    #[test]
    fn trees_and_overflows() {
        let now = Instant::now();
        let mut ledger = ledger(now, &["/a/x", "/ab", "/a/b/c", "/", "/z"]);
        assert_eq!(paths(ledger.changed_tree(b"/a", now)), ["/", "/a/b/c", "/a/x"]);
        assert_eq!(paths(ledger.everything_changed(now)), ["/ab", "/z"]);
        assert_eq!(ledger.counts().1, 0);
    }

    #[test]
    fn a_fill_that_a_change_overtook_is_thrown_away() {
        let now = Instant::now();
        let mut ledger = Ledger::new(9, LEASE);
        ledger.add(b"/a", now);
        let job = ledger.next(now).unwrap();
        assert!(ledger.changed(b"/a", now).is_empty(), "nothing was pinned");
        assert!(!ledger.pin(&job, None, now));
        let again = ledger.next(now + SOON).unwrap();
        assert!(ledger.pin(&again, None, now));
    }

    #[test]
    fn lifetimes_retries_and_limits() {
        let now = Instant::now();
        let mut ledger = Ledger::new(2, LEASE);
        assert!(ledger.add(b"/a", now) && ledger.add(b"/b", now) && !ledger.add(b"/c", now));
        let a = ledger.next(now).unwrap();
        assert!(ledger.pin(&a, Some(SOON), now));
        assert!(ledger.expired(now).is_empty());
        assert_eq!(paths(ledger.expired(now + SOON)), ["/a"]);
        let b = ledger.next(now).unwrap();
        ledger.refuse(&b, true, now);
        assert_eq!(ledger.next(now + FIRST_RETRY).unwrap().path, a.path);
        let b = ledger.next(now + FIRST_RETRY).unwrap();
        ledger.refuse(&b, true, now);
        assert_eq!(ledger.next_due(), Some(now + 2 * FIRST_RETRY));
        let b = ledger.next(now + 2 * FIRST_RETRY).unwrap();
        ledger.forget(&b);
        assert!(ledger.add(b"/c", now));
    }
    #[test]
    fn what_nobody_confirms_in_time_is_unpinned() {
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let mut ledger = ledger(now, &["/a", "/b"]);
        assert_eq!(ledger.next_to_confirm(at(4)), None);
        let first = ledger.next_to_confirm(at(5)).unwrap();
        assert!(ledger.confirm(&first, at(5)));
        let second = ledger.next_to_confirm(at(5)).unwrap();
        assert_ne!(first.path, second.path);
        assert_eq!(ledger.next_to_confirm(at(9)), None, "one is being confirmed, one was");
        assert!(ledger.expired(at(9)).is_empty());
        assert_eq!(ledger.expired(at(10)).len(), 1, "the second was not confirmed");
        assert!(!ledger.confirm(&second, at(10)), "too late");
        assert_eq!(ledger.next_to_confirm(at(11)), Some(first));
        assert_eq!(ledger.counts().1, 1);
    }

    #[test]
    fn what_the_server_contradicts_is_unpinned_and_tried_again_later() {
        let now = Instant::now();
        let mut ledger = ledger(now, &["/a"]);
        let job = ledger.next_to_confirm(now + LEASE / 2).unwrap();
        assert_eq!(paths(ledger.contradict(&job, now)), ["/a"]);
        assert!(ledger.contradict(&job, now).is_empty(), "it has another epoch now");
        let again = ledger.next(now).unwrap();
        ledger.refuse(&again, false, now);
        assert_eq!(ledger.next_due(), Some(now + FIRST_RETRY), "what hinders it may pass");
    }
}
