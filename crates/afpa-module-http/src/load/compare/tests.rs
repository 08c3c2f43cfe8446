use std::fs;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::Stdio;

use afpa_cache::root::{DocumentRoot, RootSettings};
use afpa_cache::watch::WatchSettings;
use afpa_cache::{Arena, CacheSettings, Coverage, Lookup, Millis, View};
use afpa_framework::Helpers;

use super::*;
use crate::load::{Loaded, load};
use crate::settings::{DocRootSettings, FilterRule};

const NOW: Millis = Millis(1000);

/// A watched document root, and a folder beside it with other names of its files.
struct Rig {
    folder: tempfile::TempDir,
    doc_root: Arc<DocRoot>,
    view: View<HttpHeader>,
}

impl Rig {
    /// Files by name; those with `.shtml` have includes. `None`: they are not watched here.
    fn new(files: &[(&str, &str)]) -> Option<Rig> {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("root")).expect("a root");
        fs::create_dir(folder.path().join("beside")).expect("a folder");
        for (name, content) in files {
            fs::write(folder.path().join("root").join(name), content).expect("a file");
        }
        let root = DocumentRoot::open(folder.path().join("root"), RootSettings::default());
        let mut filter = FilterRule { includes: true, ..FilterRule::default() };
        filter.rule.extensions = vec!["shtml".to_owned()];
        let settings = DocRootSettings { filters: vec![filter], ..DocRootSettings::default() };
        let arena = Arena::new(16 << 20).expect("an arena");
        let (cache, watch) = (CacheSettings::default(), WatchSettings::default());
        let doc_root = DocRoot::open(root.expect("opens"), settings, cache, watch, arena);
        let doc_root = doc_root.expect("a document root");
        let view = doc_root.cache().view(Box::new(|| ()));
        let rig = Rig { folder, doc_root, view };
        let is_watched = rig.load("/probe").is_some_and(|of| of == Coverage::Watched);
        if !is_watched {
            println!("SKIP: {} cannot be watched", rig.folder.path().display());
        }
        is_watched.then_some(rig)
    }

    fn load(&self, path: &str) -> Option<Coverage> {
        let work = load(Arc::clone(&self.doc_root), path.as_bytes().into(), Helpers::new(2), NOW);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        match runtime.block_on(work) {
            Loaded::Object(object) => Some(object.coverage()),
            _ => None,
        }
    }

    /// Uses an object, and reports it. Whether it was there.
    fn hit(&mut self, path: &str) -> bool {
        let hit = matches!(self.view.get(0, path.as_bytes(), NOW), Lookup::Hit(_));
        self.view.flush_touches();
        hit
    }

    /// Changes a file such that no watch of the root hears it: by a name outside.
    fn write_unheard(&self, name: &str, content: &str) {
        let [inside, beside]: [PathBuf; 2] =
            ["root", "beside"].map(|of| self.folder.path().join(of).join(name));
        if !beside.exists() {
            fs::hard_link(inside, &beside).expect("a link");
        }
        fs::write(beside, content).expect("written");
    }

    /// A round. How many objects were looked at.
    fn compare(&self) -> usize {
        let (roots, mut count) = ([Arc::downgrade(&self.doc_root)], 0);
        self.doc_root.cache().compare_used(|object| {
            count += 1;
            is_current_in(&roots, object)
        });
        count
    }
}

const PAGE: &str = "<!--#include virtual=\"/part.html\" -->";

#[test]
fn what_changes_without_a_notice_is_dropped_once_it_is_used() {
    let files = [("probe", ""), ("a.txt", "one"), ("b.txt", "one"), ("b.txt.gz", "coded")];
    let pages = [("page.shtml", PAGE), ("part.html", "part"), ("same.txt", "same")];
    let Some(mut rig) = Rig::new(&[&files[..], &pages].concat()) else { return };
    let paths = ["/a.txt", "/b.txt", "/page.shtml", "/same.txt"];
    for path in paths {
        rig.load(path);
        assert!(rig.hit(path), "{path}");
    }
    assert_eq!(rig.compare(), paths.len(), "all that were used");
    assert!(paths.iter().all(|path| rig.hit(path)), "nothing has changed");
    for name in ["a.txt", "b.txt.gz", "part.html"] {
        rig.write_unheard(name, "two");
    }
    assert!(paths.iter().all(|path| rig.hit(path)), "nobody has heard of it");
    assert_eq!(rig.compare(), paths.len());
    let there: Vec<bool> = paths.iter().map(|path| rig.hit(path)).collect();
    assert_eq!(there, [false, false, false, true]);
    assert_eq!(rig.doc_root.cache().stats().invalidations, 3);
}

#[test]
fn a_file_is_compared_once_a_round_and_only_if_it_was_used() {
    let Some(mut rig) = Rig::new(&[("probe", ""), ("a.txt", "one")]) else { return };
    rig.load("/a.txt");
    assert_eq!(rig.compare(), 0, "it was loaded, and not used");
    (0..100).for_each(|_| assert!(rig.hit("/a.txt")));
    assert_eq!((rig.compare(), rig.compare()), (1, 0));
    for round in 0..600 {
        assert!(rig.hit("/a.txt"));
        assert_eq!(rig.compare(), 1, "round {round}");
    }
}

/// A program that maps a file, and stores each line of its input there. It never writes the page to the disk.
struct Mapped(std::process::Child);

impl Mapped {
    fn begin(file: PathBuf) -> Option<Mapped> {
        const PROGRAM: &str = "import mmap, sys\n\
            file = open(sys.argv[1], 'r+b'); memory = mmap.mmap(file.fileno(), 0)\n\
            for line in sys.stdin:\n    memory[0:3] = line.strip().encode(); print(flush=True)";
        let mut python = std::process::Command::new("python3");
        python.args(["-c", PROGRAM]).arg(file).stdin(Stdio::piped()).stdout(Stdio::piped());
        python.spawn().inspect_err(|why| println!("SKIP: no python3: {why}")).ok().map(Mapped)
    }

    fn store(&mut self, content: &str) {
        let (to, from) = self.0.stdin.as_mut().zip(self.0.stdout.as_mut()).expect("both");
        writeln!(to, "{content}").expect("told");
        assert_eq!(from.read(&mut [0; 8]).expect("read"), 1, "it is stored");
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ended = self.0.wait();
    }
}

/// The first store changes the time of the file, the second one does not.
#[test]
fn each_store_through_a_memory_map_is_seen() {
    const TMPFS: u64 = 0x0102_1994;
    let Some(mut rig) = Rig::new(&[("probe", ""), ("a.txt", "one and more")]) else { return };
    if rustix::fs::statfs(rig.folder.path()).is_ok_and(|found| found.f_type as u64 == TMPFS) {
        println!("SKIP: tmpfs shows no bytes without a wait");
        return;
    }
    let Some(mut mapped) = Mapped::begin(rig.folder.path().join("root/a.txt")) else { return };
    for content in ["one", "two", "six", "ten"] {
        mapped.store(content);
        if rig.hit("/a.txt") {
            rig.compare();
            assert!(!rig.hit("/a.txt"), "{content} is not seen");
        }
        rig.load("/a.txt");
        assert!(rig.hit("/a.txt"));
        rig.compare();
        assert!(rig.hit("/a.txt"), "{content} is kept");
    }
}
