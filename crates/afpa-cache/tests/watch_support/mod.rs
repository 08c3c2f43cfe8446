//! A sink that writes down the calls that it gets.
#![allow(dead_code, unreachable_pub)] // each test program uses a part

use afpa_cache::root::{DocumentRoot, RootSettings, SymlinkPolicy};
use afpa_cache::watch::{ChangeSink, WatchSettings, Watcher};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Heard {
    Changed(String),
    Tree(String),
    Written(String),
    Overflow,
}

pub fn changed(path: &str) -> Heard {
    Heard::Changed(path.into())
}

pub fn tree(path: &str) -> Heard {
    Heard::Tree(path.into())
}

pub fn written(path: &str) -> Heard {
    Heard::Written(path.into())
}

#[derive(Default)]
pub struct Recorder {
    heard: Mutex<Vec<(Instant, Heard)>>,
    news: Condvar,
    /// While it is held, the watcher's thread cannot go on.
    pub gate: Mutex<()>,
}

impl Recorder {
    /// Waits until all of `expected` have been heard, in any order, since the last `forget`.
    #[track_caller]
    pub fn expect(&self, expected: &[Heard]) {
        let missing = |heard: &Vec<(Instant, Heard)>| -> Vec<Heard> {
            let lacks = |wanted: &&Heard| !heard.iter().any(|(_, heard)| heard == *wanted);
            expected.iter().filter(lacks).cloned().collect()
        };
        let heard = self.heard.lock().unwrap();
        let (heard, timeout) = self
            .news
            .wait_timeout_while(heard, PATIENCE, |heard| !missing(heard).is_empty())
            .unwrap();
        let missing = missing(&heard);
        let heard: Vec<_> = heard.iter().map(|(_, heard)| heard.clone()).take(100).collect();
        assert!(!timeout.timed_out(), "missing {missing:?}, heard {heard:?}");
    }

    pub fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().iter().map(|(_, heard)| heard.clone()).collect()
    }

    pub fn when(&self, what: &Heard) -> Option<Instant> {
        let heard = self.heard.lock().unwrap();
        heard.iter().find(|(_, heard)| heard == what).map(|(when, _)| *when)
    }

    pub fn forget(&self) {
        self.heard.lock().unwrap().clear();
    }

    fn note(&self, heard: Heard) {
        drop(self.gate.lock().unwrap());
        self.heard.lock().unwrap().push((Instant::now(), heard));
        self.news.notify_all();
    }
}

fn text(path: &[u8]) -> String {
    String::from_utf8(path.to_vec()).unwrap()
}

impl ChangeSink for Recorder {
    fn changed(&self, path: &[u8]) {
        self.note(Heard::Changed(text(path)));
    }
    fn changed_tree(&self, path: &[u8]) {
        self.note(Heard::Tree(text(path)));
    }
    fn written(&self, path: &[u8]) {
        self.note(Heard::Written(text(path)));
    }
    fn overflow(&self, _: u64) {
        self.note(Heard::Overflow);
    }
}

/// A temporary site that is watched.
pub struct Watched {
    pub watcher: Watcher,
    pub root: DocumentRoot,
    pub sink: Arc<Recorder>,
    // Last, so that the watch ends before the folder goes.
    pub folder: tempfile::TempDir,
}

impl Watched {
    /// `prepare` fills the folder before the watch begins.
    pub fn new(prepare: impl FnOnce(&TestRoot)) -> Self {
        Self::with(WatchSettings::default(), prepare)
    }

    pub fn with(settings: WatchSettings, prepare: impl FnOnce(&TestRoot)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        prepare(&TestRoot(folder.path().to_path_buf()));
        let symlinks = SymlinkPolicy::Always;
        let root = DocumentRoot::open(folder.path(), RootSettings { symlinks, dotfiles: false });
        let root = root.unwrap();
        let sink = Arc::new(Recorder::default());
        let watcher = Watcher::start(&root, Arc::clone(&sink) as _, settings).unwrap();
        assert!(watcher.wait_complete(PATIENCE), "the scan takes too long");
        Watched { watcher, root, sink, folder }
    }

    pub fn site(&self) -> TestRoot {
        TestRoot(self.folder.path().to_path_buf())
    }
}

/// Paths in it are root-relative.
pub struct TestRoot(pub PathBuf);

impl TestRoot {
    pub fn at(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }
    pub fn write(&self, path: &str, content: &str) {
        fs::write(self.at(path), content).unwrap();
    }
    pub fn make(&self, path: &str) {
        fs::create_dir_all(self.at(path)).unwrap();
    }
    pub fn rename(&self, from: &str, to: &str) {
        fs::rename(self.at(from), self.at(to)).unwrap();
    }
    pub fn link(&self, text: &str, path: &str) {
        std::os::unix::fs::symlink(text, self.at(path)).unwrap();
    }
}
