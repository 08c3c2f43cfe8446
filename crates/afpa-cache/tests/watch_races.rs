//! Changes that race with the watcher: none is lost, and objects cached as watched are right.

mod watch_support;

use afpa_cache::root::{DocumentRoot, Entry, RootSettings, SymlinkPolicy};
use afpa_cache::watch::{ChangeSink, Coverage, WatchSettings, Watcher};
use rustix::fs::{CWD, RenameFlags};
use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use watch_support::*;

/// `mkdir -p a/b/c` and a file in it at once, long before the first watch can be in place.
#[test]
fn files_in_directories_made_a_moment_ago_are_heard() {
    let watched = Watched::new(|_| ());
    let site = watched.site();
    let mut expected = Vec::new();
    for number in 0..500 {
        let folder = format!("/{number}/a/b/c");
        site.make(&folder);
        site.write(&format!("{folder}/page"), "new");
        expected.push(written(&format!("{folder}/page")));
    }
    watched.sink.expect(&expected);
}

/// The trees of the test above, moved into place when they are complete.
#[test]
fn trees_that_are_moved_in_are_heard_whole() {
    let watched = Watched::new(|site| site.make("/.staging"));
    let site = watched.site();
    let mut expected = Vec::new();
    for number in 0..200 {
        site.make(&format!("/.staging/{number}/a/b"));
        site.write(&format!("/.staging/{number}/a/b/page"), "new");
        site.rename(&format!("/.staging/{number}"), &format!("/{number}"));
        site.write(&format!("/{number}/a/late"), "new");
        expected.push(written(&format!("/{number}/a/b/page")));
        expected.push(written(&format!("/{number}/a/late")));
    }
    watched.sink.expect(&expected);
}

/// The rule itself: readers cache the files that `resolve` calls watched, while writers turn the tree upside down. When
/// all is quiet, each cached file must be the one on the disk.
#[test]
fn nothing_cached_as_watched_is_stale_when_the_dust_has_settled() {
    let mut tested = (0, 0);
    for round in 0..4 {
        let seed = 0x9E37_79B9 + round;
        let folder = tempfile::tempdir().unwrap();
        for place in PLACES {
            fs::create_dir_all(folder.path().join(place)).unwrap();
        }
        let symlinks = SymlinkPolicy::Always;
        let settings = RootSettings { symlinks, dotfiles: false };
        let root = DocumentRoot::open(folder.path(), settings).unwrap();
        let model = Arc::new(Model::default());
        let sink = Arc::clone(&model) as _;
        let watcher = Watcher::start(&root, sink, WatchSettings::default()).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (model, root, watcher, stop) = (&model, &root, &watcher, &stop);
            let writers = [1, 2].map(|writer| {
                let path = folder.path();
                scope.spawn(move || upset(path, Dice(seed * 10 + writer)))
            });
            let readers = [3, 4].map(|reader| {
                scope.spawn(move || model.read_on(root, watcher, stop, Dice(seed * 10 + reader)))
            });
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            // Readers go on for a while: no change comes to drop the objects that they cache last.
            std::thread::sleep(Duration::from_millis(20));
            stop.store(true, Ordering::Relaxed);
            readers.into_iter().for_each(|reader| reader.join().unwrap());
        });
        model.settle(folder.path());
        let checked = model.check(folder.path(), seed);
        let counts =
            [&model.published, &model.overtaken, &model.unwatched, &model.absent, &model.dropped]
                .map(|count| count.load(Ordering::Relaxed));
        println!(
            "seed {seed:x}: {checked} right of [published, overtaken, unwatched, absent, dropped] {counts:?}"
        );
        drop(watcher);
        (tested.0, tested.1) = (tested.0 + checked, tested.1 + counts[4]);
    }
    assert!(tested.0 > 0 && tested.1 > 20, "nothing was put to the test: {tested:?}");
}

const PLACES: [&str; 6] = ["a", "a/x", "a/x/y", "b", "b/x", "c"];
const FILES: [&str; 2] = ["one", "two"];
const UPHEAVAL: Duration = Duration::from_millis(500);

/// A small generator of random numbers, so that a seed reproduces all steps (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn place(&mut self) -> &'static str {
        PLACES[self.roll(PLACES.len())]
    }

    fn file(&mut self) -> String {
        format!("{}/{}", self.place(), FILES[self.roll(FILES.len())])
    }
}

/// Changes the tree in every way there is. A step may fail, because the other writer was faster.
fn upset(root: &Path, mut dice: Dice) {
    let end = Instant::now() + UPHEAVAL;
    let mut version = 0u64;
    while Instant::now() < end {
        version += 1;
        let at = |path: &str| root.join(path);
        let aside = root.join(format!(".aside-{:x}", dice.0));
        let _ = match dice.roll(40) {
            0..=14 => fs::write(at(&dice.file()), version.to_string()),
            15..=22 => {
                let _ = fs::write(&aside, version.to_string());
                fs::rename(&aside, at(&dice.file()))
            }
            23..=29 => fs::create_dir_all(at(dice.place())),
            30..=32 => fs::rename(at(dice.place()), at(dice.place())),
            33 | 34 => {
                let (one, other) = (at(dice.place()), at(dice.place()));
                let exchange = RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(CWD, one, CWD, other, exchange).map_err(Into::into)
            }
            35 => fs::remove_dir_all(at(dice.place())),
            36 => {
                let (text, link) = (format!("../{}", dice.place()), at(dice.place()));
                std::os::unix::fs::symlink(text, link)
            }
            _ => fs::remove_file(at(dice.place())).or_else(|_| fs::remove_file(at(&dice.file()))),
        };
        if version.is_multiple_of(8) {
            std::thread::sleep(Duration::from_micros(300));
        }
    }
}

/// The least that a cache does with the calls of its sink.
#[derive(Default)]
struct Model {
    objects: Mutex<Objects>,
    published: AtomicU64,
    overtaken: AtomicU64,
    unwatched: AtomicU64,
    absent: AtomicU64,
    dropped: AtomicU64,
    settled: AtomicBool,
}

#[derive(Default)]
struct Objects {
    next: u64,
    /// By number: the dependencies of an object or of a reading in progress.
    all: HashMap<u64, Object>,
}

struct Object {
    path: String,
    depends_on: Vec<Vec<u8>>,
    content: Option<Vec<u8>>,
}

impl Model {
    fn read_on(&self, root: &DocumentRoot, watcher: &Watcher, stop: &AtomicBool, mut dice: Dice) {
        while !stop.load(Ordering::Relaxed) {
            self.read_one(root, watcher, dice.file());
            // Without a breath, readers would keep the lock from the watcher.
            std::thread::sleep(Duration::from_micros(20));
        }
    }

    fn read_one(&self, root: &DocumentRoot, watcher: &Watcher, path: String) {
        let path = format!("/{path}");
        let number = {
            let mut objects = self.objects.lock().unwrap();
            if objects.all.values().any(|object| object.path == path) {
                return;
            }
            objects.next += 1;
            let number = objects.next;
            let object = Object { path: path.clone(), depends_on: Vec::new(), content: None };
            objects.all.insert(number, object);
            number
        };
        let mut depend = |place: &[u8]| {
            let mut objects = self.objects.lock().unwrap();
            if let Some(object) = objects.all.get_mut(&number) {
                object.depends_on.push(place.to_vec());
            }
        };
        let (outcome, coverage) = watcher.resolve(root, path.as_bytes(), &mut depend);
        let content = match outcome {
            Ok(Entry::File(mut open)) => {
                let mut content = Vec::new();
                open.file.read_to_end(&mut content).ok().map(|_| content)
            }
            _ => None,
        };
        let mut objects = self.objects.lock().unwrap();
        let count = match (objects.all.get_mut(&number), content) {
            (None, _) => &self.overtaken,
            (Some(object), Some(content)) if coverage == Coverage::Watched => {
                object.content = Some(content);
                &self.published
            }
            (Some(_), content) => {
                objects.all.remove(&number);
                if content.is_some() { &self.unwatched } else { &self.absent }
            }
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    fn drop_where(&self, hit: impl Fn(&[u8]) -> bool) {
        let mut objects = self.objects.lock().unwrap();
        let before = objects.all.len();
        objects.all.retain(|_, object| !object.depends_on.iter().any(|place| hit(place)));
        let dropped = before - objects.all.len();
        self.dropped.fetch_add(dropped as u64, Ordering::Relaxed);
    }

    /// Waits until the watcher has heard of a last change, and so of all before it.
    fn settle(&self, root: &Path) {
        let end = Instant::now() + PATIENCE;
        while !self.settled.load(Ordering::Acquire) {
            assert!(Instant::now() < end, "the watcher has fallen silent");
            fs::write(root.join("settled"), "").unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn check(&self, root: &Path, seed: u64) -> usize {
        let objects = self.objects.lock().unwrap();
        let cached = objects.all.values().filter_map(|o| Some((&o.path, o.content.as_ref()?, o)));
        let mut checked = 0;
        for (path, content, object) in cached {
            let disk: PathBuf = root.join(path.trim_start_matches('/'));
            let places: Vec<_> =
                object.depends_on.iter().map(|place| String::from_utf8_lossy(place)).collect();
            let now = fs::read(&disk).ok();
            assert_eq!(now.as_ref(), Some(content), "seed {seed:x}: {path} by {places:?}");
            checked += 1;
        }
        checked
    }
}

impl ChangeSink for Model {
    fn changed(&self, path: &[u8]) {
        if path == b"/settled" {
            self.settled.store(true, Ordering::Release);
        }
        self.drop_where(|place| place == path);
    }

    fn changed_tree(&self, path: &[u8]) {
        self.drop_where(|place| {
            let below = place.strip_prefix(path);
            path == b"/" || below.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        });
    }

    fn written(&self, _: &[u8]) {}

    fn overflow(&self, _: u64) {
        self.drop_where(|_| true);
    }
}
