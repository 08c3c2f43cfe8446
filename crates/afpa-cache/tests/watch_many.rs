//! One thread and one inotify instance watch any number of roots.

mod watch_support;

use std::fs;
use std::sync::Arc;

use afpa_cache::root::{DocumentRoot, RootHandles, RootSettings};
use afpa_cache::watch::{Coverage, WatchSettings, WatchThread, Watcher};
use watch_support::{PATIENCE, Recorder, changed, tree, written};

const ROOTS: usize = 300;

fn threads() -> usize {
    let names = fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = names.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.trim() == "afpa-watch").count()
}

fn instances() -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let links = links.filter_map(|link| fs::read_link(link.path()).ok());
    links.filter(|link| link.to_string_lossy().contains("inotify")).count()
}

/// Watches, as the kernel has them.
fn watches() -> usize {
    let infos = fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
    let infos = infos.filter_map(|info| fs::read_to_string(info.path()).ok());
    infos.map(|info| info.matches("inotify wd:").count()).sum()
}

struct Rig {
    thread: WatchThread,
    handles: RootHandles,
    folder: tempfile::TempDir,
}

impl Rig {
    fn watch(&mut self, path: &str) -> (Watcher, Arc<Recorder>, DocumentRoot) {
        let path = self.folder.path().join(path);
        let root = self.handles.open(path, RootSettings::default()).unwrap();
        let sink = Arc::new(Recorder::default());
        let watcher =
            self.thread.watch(&root, Arc::clone(&sink) as _, WatchSettings::default()).unwrap();
        assert!(watcher.wait_complete(PATIENCE), "the scan takes too long");
        (watcher, sink, root)
    }

    fn write(&self, path: &str, content: &str) {
        fs::write(self.folder.path().join(path), content).unwrap();
    }
}

/// All in one test, because it counts the watches of the whole process.
#[test]
fn many_roots_share_a_thread_an_instance_and_what_one_watches() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..ROOTS {
        fs::create_dir_all(folder.path().join(format!("{number}/below"))).unwrap();
    }
    let mut rig = Rig { thread: WatchThread::default(), handles: RootHandles::default(), folder };
    let mut watched: Vec<_> = (0..ROOTS).map(|n| rig.watch(&n.to_string())).collect();
    assert_eq!((threads(), instances(), watches()), (1, 1, 2 * ROOTS));
    for n in [0, 1, ROOTS - 1] {
        rig.write(&format!("{n}/below/page"), "new");
        watched[n].1.expect(&[changed("/below/page"), written("/below/page")]);
    }
    assert!(watched[2].1.heard().is_empty(), "it is another root");

    // The next configuration joins; the one before goes. No directory is watched anew, and no event is lost.
    let next = rig.watch("7");
    assert_eq!((watches(), next.0.tree()), (2 * ROOTS, watched[7].0.tree()));
    rig.write("7/page", "for both");
    next.1.expect(&[written("/page")]);
    watched[7].1.expect(&[written("/page")]);
    watched.remove(7);
    next.1.forget();
    rig.write("7/page", "for the one that stays");
    next.1.expect(&[written("/page")]);
    assert_eq!(watches(), 2 * ROOTS);

    // A root below another one hears for itself, also when the other has gone.
    let (outer, outer_sink, _) = rig.watch(".");
    let (inner, inner_sink, _) = rig.watch("0/below");
    assert_eq!(watches(), 2 * ROOTS + 1);
    rig.write("0/below/page", "for all three");
    outer_sink.expect(&[written("/0/below/page")]);
    watched[0].1.expect(&[written("/below/page")]);
    inner_sink.expect(&[written("/page")]);
    drop(outer);
    inner_sink.forget();
    rig.write("0/below/page", "for two");
    inner_sink.expect(&[written("/page")]);
    assert_eq!((watches(), inner.coverage(b"/")), (2 * ROOTS, Coverage::Watched));

    // The end of a root is its own.
    fs::remove_dir_all(rig.folder.path().join("1")).unwrap();
    watched[1].1.expect(&[tree("/")]);
    rig.write("2/page", "still heard");
    watched[2].1.expect(&[written("/page")]);

    drop((watched, next, inner));
    assert_eq!((threads(), instances(), watches()), (1, 1, 0));
    drop(rig);
    assert_eq!((threads(), instances()), (0, 0));
}
