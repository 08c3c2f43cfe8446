//! Filling of a path: reads its file, asks the server, and pins the answer if both agree.

use std::time::{Duration, Instant};

use afpa_bpf::{Coding, SiteNumber};
use afpa_cache::Stamp;
use afpa_cache::root::{Entry, ListedKind, OpenFile, read_exact_version};
use afpa_cache::watch::{Coverage, Watcher};

use super::{Filler, Work, spelled};
use crate::answer::Answer;
use crate::gather::{Ask, AskError, Gathered, Unfit, Wanted, gather};
use crate::ledger::Job;
use crate::permit::Refused;
use crate::walk::walk;

/// Everything is asked for again after this time, because a new configuration of the server goes unnoticed.
const RENEW: Duration = Duration::from_secs(600);

impl Filler {
    /// Walks and fills until the end.
    pub fn fill(&self, watcher: &Watcher, server: &mut dyn Ask) {
        while let Some(work) = self.take() {
            match work {
                Work::Walk(start) => walk(&self.root, &self.scope, &start, &mut |path| {
                    let mut state = self.lock();
                    let room = state.ledger.add(path, Instant::now());
                    if !room {
                        state.no_room += 1;
                    }
                    room && !state.ended
                }),
                Work::Fill(job) => Filling { filler: self, watcher, server, job }.run(),
                Work::Confirm(job) => self.confirm(server, &job),
            }
            self.lock().working = false;
        }
    }
}

/// One path on its way to being pinned.
struct Filling<'a> {
    filler: &'a Filler,
    watcher: &'a Watcher,
    server: &'a mut dyn Ask,
    job: Job,
}

/// Why the path was not pinned.
enum FillError {
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
        let mut state = self.filler.lock();
        match outcome {
            Ok(()) => {}
            Err(FillError::Gone) => {
                state.unfit.forget(&self.job.path);
                state.ledger.forget(&self.job);
            }
            Err(FillError::Unfit(why)) => {
                state.note(&self.job.path, &why);
                state.ledger.refuse(&self.job, false, now);
            }
            Err(FillError::NotNow(why)) => {
                state.note(&self.job.path, &why);
                state.ledger.refuse(&self.job, true, now);
            }
        }
    }

    fn attempt(&mut self) -> Result<(), FillError> {
        let path = self.job.path.clone();
        self.filler.lock().unfit.forget(&path);
        let folder = path.ends_with(b"/");
        let versions = if folder { self.index_files(&path)? } else { vec![self.version(&path)?] };
        let target = String::from_utf8(spelled(&path)).map_err(|_| FillError::Gone)?;
        let siblings = if folder { Vec::new() } else { self.siblings(&path) };
        let mut gathered = Vec::new();
        for hosts in self.filler.sites().iter() {
            let wanted = Wanted {
                hosts: &hosts.names,
                target: &target,
                longest: self.filler.scope.longest,
                closes: self.filler.fast_path.socketless.may_close(),
                kept: false,
            };
            let fits = |answer: &Answer| {
                versions.iter().any(|version| version.content == answer.content())
            };
            let sibling = |coding: Coding, answer: &Answer| {
                let stored = siblings.iter().filter(|(have, _)| *have == coding);
                stored.map(|(_, content)| content).all(|content| content == answer.content())
            };
            match gather(self.server, &wanted, &fits, &sibling) {
                Ok(found) => match self.filler.heed_timeout(&found) {
                    Ok(()) => gathered.push((hosts.site, found)),
                    Err(why) => self.note_unfit(Unfit::Timeout(why), &hosts.names)?,
                },
                Err(unfit) => self.note_unfit(unfit, &hosts.names)?,
            }
        }
        if gathered.is_empty() {
            return Err(FillError::Unfit("no site gives it".into()));
        }
        // The watch reports later changes; this finds those that it has not reported yet.
        if !versions.iter().all(|version| unchanged(&version.file)) {
            return Err(FillError::NotNow("its file changed meanwhile".into()));
        }
        if gathered.iter().any(|(_, found)| found.is_weakly_tagged())
            && versions.iter().any(is_young)
        {
            return Err(FillError::NotNow("its tag is provisional".into()));
        }
        self.pin(&target, &gathered)
    }

    /// Pins under the lock, so that this function either sees a change, or the change finds the objects to unpin.
    fn pin(&self, target: &str, gathered: &[(SiteNumber, Gathered)]) -> Result<(), FillError> {
        let mut state = self.filler.lock();
        let lifetime = gathered.iter().filter_map(|(_, found)| found.lifetime).min();
        let lifetime = Some(lifetime.map_or(RENEW, |lifetime| lifetime.min(RENEW)));
        if state.ended || !state.ledger.pin(&self.job, lifetime, Instant::now()) {
            return Ok(()); // a change came first, and has scheduled the path again
        }
        // A file stands behind it.
        state.kept.forget(target.as_bytes());
        self.filler.drop_kept(&mut state, &[target.as_bytes().into()]);
        for (site, found) in gathered {
            let (variants, rules) = (found.variants(), found.rules());
            let fast_path = &self.filler.fast_path;
            let pinned = fast_path.objects.pin_with(*site, target.as_bytes(), &variants, &rules);
            if let Err(error) = pinned {
                state.note(&self.job.path, &error.to_string());
            }
        }
        let claims = gathered.iter().map(|(_, found)| found.claim.clone()).collect();
        state.claims.insert(self.job.path.clone(), claims);
        Ok(())
    }

    /// Another site may allow what this one refuses. Without an answer, the attempt ends.
    fn note_unfit(&self, unfit: Unfit, names: &[String]) -> Result<(), FillError> {
        let why = self.why(&unfit, names);
        match unfit {
            Unfit::Ask(AskError::Unreachable(_)) | Unfit::Content => Err(FillError::NotNow(why)),
            _ if self.filler.sites().len() == 1 => Err(FillError::Unfit(why)),
            _ => {
                self.filler.lock().note(&self.job.path, &why);
                Ok(())
            }
        }
    }

    /// The reason, with the name by which the server was asked where that may be the reason.
    fn why(&self, unfit: &Unfit, names: &[String]) -> String {
        let name = names.first().map(String::as_str).unwrap_or_default();
        let host = name.rsplit_once(':').map_or(name, |(host, _)| host);
        match unfit {
            Unfit::Refused(Refused::OtherHost(to)) if to.eq_ignore_ascii_case(host) => {
                "it redirects, perhaps to HTTPS, where the kernel does not answer".to_owned()
            }
            Unfit::Content | Unfit::Refused(Refused::Status(_)) if !self.filler.named => {
                format!("{unfit} (asked for Host {name}: name the site with --host)")
            }
            Unfit::Ask(_) => unfit.to_string(),
            _ if self.filler.sites().len() > 1 => format!("{unfit} (for Host {name})"),
            _ => unfit.to_string(),
        }
    }

    /// The whole file at `path`, of which every change is watched.
    fn version(&self, path: &[u8]) -> Result<Version, FillError> {
        let mut depend = |place: &[u8]| self.filler.lock().ledger.depend(&self.job, place);
        let (entry, coverage) = self.watcher.resolve(&self.filler.root, path, &mut depend);
        let Ok(Entry::File(file)) = entry else { return Err(FillError::Gone) };
        if let Coverage::Unwatched(reason) = coverage {
            return Err(FillError::Unfit(format!("its changes are not watched: {reason}")));
        }
        let content = self.read(&file)?;
        Ok(Version { file, content })
    }

    fn read(&self, file: &OpenFile) -> Result<Vec<u8>, FillError> {
        let size = usize::try_from(file.stamp.size).unwrap_or(usize::MAX);
        if size > self.filler.scope.longest {
            return Err(FillError::Unfit("it is too long".into()));
        }
        let mut content = vec![0; size];
        let read = read_exact_version(&file.file, &file.stamp, &mut content);
        read.map(|()| content).map_err(|error| FillError::NotNow(error.to_string()))
    }

    /// The files of a directory that may be its index. Every change in the directory unpins the answer, so
    /// that it does not matter which names the server looks for, and in which order.
    fn index_files(&self, path: &[u8]) -> Result<Vec<Version>, FillError> {
        if let Coverage::Unwatched(reason) = self.watcher.ensure(plain(path)) {
            return Err(FillError::Unfit(format!("its changes are not watched: {reason}")));
        }
        let Ok(Entry::Directory(directory)) = self.filler.root.resolve(path) else {
            return Err(FillError::Gone);
        };
        let listed = directory.list(false, INDEX_NAMES);
        let listed = listed.map_err(|_| FillError::Unfit("its directory cannot be read".into()))?;
        let mut versions = Vec::new();
        for listed in listed.iter().filter(|listed| listed.name.starts_with(b"index.")) {
            let file = [path, listed.name.as_slice()].concat();
            let small = matches!(listed.kind, ListedKind::File(size)
                if size <= self.filler.scope.longest as u64);
            if small && self.filler.scope.covers(&file) {
                match self.version(&file) {
                    Err(FillError::Gone) => return Err(FillError::NotNow("its index went".into())),
                    version => versions.push(version?),
                }
            }
        }
        if versions.is_empty() {
            Err(FillError::Unfit("no index file".into()))
        } else {
            Ok(versions)
        }
    }

    /// Stored codings beside a file. Servers look for them, so they are watched even while they do not exist.
    fn siblings(&self, path: &[u8]) -> Vec<(Coding, Vec<u8>)> {
        let suffixes = [(Coding::Gzip, ".gz"), (Coding::Brotli, ".br"), (Coding::Zstd, ".zst")];
        let stored = suffixes.into_iter().filter_map(|(coding, suffix)| {
            let place = [path, suffix.as_bytes()].concat();
            self.filler.lock().ledger.depend(&self.job, &place);
            match self.filler.root.resolve(&place) {
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

/// Whether the file is younger than the resolution of Last-Modified. Servers give it a weak tag until then.
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
