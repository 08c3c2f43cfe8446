//! The changes that the watcher reports, and those that it says it cannot report.

mod watch_support;

use afpa_cache::root::{DocumentRoot, Entry, OpenFile, RootSettings};
use afpa_cache::watch::{Coverage, Reason, WatchSettings, Watcher};
use rustix::fs::{CWD, RenameFlags};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use watch_support::*;

const WATCHED: Coverage = Coverage::Watched;

fn unwatched(reason: Reason) -> Coverage {
    Coverage::Unwatched(reason)
}

fn open(watched: &Watched, path: &str) -> (OpenFile, Coverage, Vec<String>) {
    let mut places = Vec::new();
    let mut depend = |place: &[u8]| places.push(String::from_utf8(place.to_vec()).unwrap());
    match watched.watcher.resolve(&watched.root, path.as_bytes(), &mut depend) {
        (Ok(Entry::File(file)), coverage) => (file, coverage, places),
        other => panic!("{path}: {other:?}"),
    }
}

#[test]
fn every_kind_of_event_is_heard() {
    let watched = Watched::new(|site| {
        site.make("/a");
        site.write("/a/page", "one");
        site.write("/a/other", "one");
    });
    let (site, sink) = (watched.site(), &watched.sink);

    let mut file = OpenOptions::new().append(true).open(site.at("/a/page")).unwrap();
    file.write_all(b"two").unwrap();
    sink.expect(&[changed("/a/page")]);
    assert!(!sink.heard().contains(&written("/a/page")), "not closed yet");
    drop(file);
    sink.expect(&[written("/a/page")]);

    sink.forget();
    fs::set_permissions(site.at("/a/page"), fs::Permissions::from_mode(0o600)).unwrap();
    sink.expect(&[changed("/a/page")]);

    sink.forget();
    fs::remove_file(site.at("/a/page")).unwrap();
    sink.expect(&[changed("/a/page"), tree("/a/page")]);

    sink.forget();
    site.write("/a/new", "new");
    sink.expect(&[changed("/a/new"), tree("/a/new"), written("/a/new")]);

    sink.forget();
    site.rename("/a/other", "/moved");
    sink.expect(&[changed("/a/other"), tree("/a/other")]);
    sink.expect(&[changed("/moved"), tree("/moved"), written("/moved")]);

    sink.forget();
    site.link("moved", "/link");
    sink.expect(&[changed("/link"), tree("/link")]);

    sink.forget();
    fs::set_permissions(site.at("/a"), fs::Permissions::from_mode(0o700)).unwrap();
    sink.expect(&[tree("/a")]);
    fs::set_permissions(site.at("/"), fs::Permissions::from_mode(0o700)).unwrap();
    sink.expect(&[tree("/")]);
}

#[test]
fn an_atomic_rename_is_a_change_and_then_written() {
    let watched = Watched::new(|site| site.write("/page", "old"));
    let (site, sink) = (watched.site(), &watched.sink);
    site.write("/.page.tmp", "new");
    site.rename("/.page.tmp", "/page");
    sink.expect(&[changed("/page"), written("/page")]);
    let heard = sink.heard();
    let position = |what: &Heard| heard.iter().position(|heard| heard == what).unwrap();
    assert!(position(&changed("/page")) < position(&written("/page")));
}

#[test]
fn a_renamed_directory_is_heard_under_both_names_and_then_under_the_new() {
    let watched = Watched::new(|site| {
        site.make("/old/deep/er");
        site.write("/old/deep/er/page", "one");
    });
    let (site, sink) = (watched.site(), &watched.sink);
    site.rename("/old", "/new");
    sink.expect(&[tree("/old"), tree("/new"), written("/new/deep/er/page")]);
    // Each directory is reported once more when its own watch is in place.
    sink.expect(&[tree("/new/deep"), tree("/new/deep/er")]);
    assert_eq!(watched.watcher.coverage(b"/new/deep/er"), WATCHED);
    assert_ne!(watched.watcher.coverage(b"/old/deep"), WATCHED);
    sink.forget();
    site.write("/new/deep/er/page", "two");
    sink.expect(&[written("/new/deep/er/page")]);
    assert!(!sink.heard().iter().any(|heard| format!("{heard:?}").contains("old")));
}

#[test]
fn exchanged_directories_stay_watched() {
    let watched = Watched::new(|site| {
        site.make("/a/in-a");
        site.make("/b/in-b");
    });
    let (site, sink) = (watched.site(), &watched.sink);
    for _ in 0..50 {
        sink.forget();
        let (a, b) = (site.at("/a"), site.at("/b"));
        rustix::fs::renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).unwrap();
        sink.expect(&[tree("/a"), tree("/b")]);
    }
    site.write("/a/in-a/page", "one");
    site.write("/b/in-b/page", "one");
    sink.expect(&[written("/a/in-a/page"), written("/b/in-b/page")]);
    assert_eq!(watched.watcher.ensure(b"/a/in-a"), WATCHED);
}

#[test]
fn what_leaves_the_tree_is_watched_no_more() {
    let elsewhere = tempfile::tempdir().unwrap();
    let watched = Watched::new(|site| site.make("/a/b"));
    let (site, sink) = (watched.site(), &watched.sink);
    assert_eq!(watched.watcher.progress().watched, 3);
    let target = elsewhere.path().join("a");
    fs::rename(site.at("/a"), &target).unwrap();
    sink.expect(&[tree("/a")]);
    assert_eq!(watched.watcher.progress().watched, 1);
    assert_eq!(watched.watcher.ensure(b"/a/b"), unwatched(Reason::Missing));
    sink.forget();
    fs::write(target.join("b/page"), "outside").unwrap();
    site.write("/marker", "");
    sink.expect(&[written("/marker")]);
    assert!(!sink.heard().contains(&changed("/a/b/page")));

    fs::rename(&target, site.at("/back")).unwrap();
    sink.expect(&[tree("/back"), written("/back/b/page")]);
    assert_eq!(watched.watcher.coverage(b"/back/b"), WATCHED);
}

#[test]
fn a_link_that_is_pointed_elsewhere_is_a_change_of_what_it_led_to() {
    let watched = Watched::new(|site| {
        site.make("/releases/1");
        site.make("/releases/2");
        site.write("/releases/1/page", "one");
        site.write("/releases/2/page", "two");
        site.link("releases/1", "/current");
    });
    let (site, sink) = (watched.site(), &watched.sink);
    let (file, coverage, places) = open(&watched, "/current/page");
    assert_eq!(coverage, WATCHED);
    assert_eq!(file.real.as_deref(), Some(&b"/releases/1/page"[..]));
    assert_eq!(places, ["/current/page", "/current", "/releases/1/page"]);

    site.write("/releases/1/page", "changed");
    sink.expect(&[changed("/releases/1/page")]);

    site.link("releases/2", "/next");
    site.rename("/next", "/current");
    sink.expect(&[changed("/current"), tree("/current")]);
    let (file, _, _) = open(&watched, "/current/page");
    assert_eq!(file.real.as_deref(), Some(&b"/releases/2/page"[..]));
}

/// A place that is registered only after the first look may have changed before it was registered.
#[test]
fn a_link_that_changes_while_it_is_resolved_is_looked_at_again() {
    let watched = Watched::new(|site| {
        site.make("/1");
        site.make("/2");
        site.write("/1/page", "one");
        site.write("/2/page", "two");
        site.link("1", "/current");
        site.link("2", "/next");
    });
    let mut places = Vec::new();
    let mut depend = |place: &[u8]| {
        if place == b"/current" {
            watched.site().rename("/next", "/current");
        }
        places.push(String::from_utf8(place.to_vec()).unwrap());
    };
    let path = b"/current/page";
    let (outcome, coverage) = watched.watcher.resolve(&watched.root, path, &mut depend);
    let Ok(Entry::File(file)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(file.real.as_deref(), Some(&b"/2/page"[..]));
    assert_eq!(coverage, WATCHED);
    assert_eq!(places, ["/current/page", "/current", "/1/page", "/2/page"]);
}

#[test]
fn an_absence_behind_a_link_can_be_relied_on() {
    let watched = Watched::new(|site| {
        site.make("/real");
        site.link("real", "/link");
    });
    let mut places = Vec::new();
    let mut depend = |place: &[u8]| places.push(String::from_utf8(place.to_vec()).unwrap());
    let (outcome, coverage) = watched.watcher.resolve(&watched.root, b"/link/a.br", &mut depend);
    assert!(outcome.is_err());
    assert_eq!(coverage, WATCHED);
    assert!(places.contains(&"/real/a.br".to_string()), "{places:?}");
    watched.site().write("/real/a.br", "now");
    watched.sink.expect(&[changed("/real/a.br")]);
}

#[test]
fn hidden_directories_are_watched_only_when_a_link_leads_there() {
    let watched = Watched::new(|site| {
        site.make("/.git/objects");
        site.make("/.releases/1");
        site.write("/.releases/1/page", "one");
        site.link(".releases/1/page", "/page");
    });
    assert_eq!(watched.watcher.progress().watched, 1);
    assert_eq!(watched.watcher.coverage(b"/.git"), unwatched(Reason::NotReached));
    let (_, coverage, _) = open(&watched, "/page");
    assert_eq!(coverage, WATCHED);
    assert_eq!(watched.watcher.progress().watched, 3);
    watched.site().write("/.releases/1/page", "two");
    watched.sink.expect(&[written("/.releases/1/page")]);
}

#[test]
fn other_names_of_a_file_leave_it_uncovered() {
    let watched = Watched::new(|site| {
        site.write("/page", "one");
        fs::hard_link(site.at("/page"), site.at("/twin")).unwrap();
        site.write("/single", "one");
    });
    let (file, coverage, _) = open(&watched, "/page");
    assert_eq!((file.links, coverage), (2, unwatched(Reason::HardLinks)));
    assert_eq!(watched.watcher.coverage_of(&file, b"/"), unwatched(Reason::HardLinks));
    let (file, coverage, _) = open(&watched, "/single");
    assert_eq!((file.links, coverage), (1, WATCHED));
    assert_eq!(watched.watcher.coverage_of(&file, b"/"), WATCHED);
    assert_eq!(watched.watcher.coverage_of(&file, b"/x"), unwatched(Reason::NotReached));
}

#[test]
fn the_limit_of_watches_is_told_and_asked_for_again() {
    let settings = WatchSettings { max_watches: 4, ..WatchSettings::default() };
    let watched = Watched::with(settings, |site| {
        (0..10).for_each(|number| site.make(&format!("/{number}/below")));
    });
    let summary = watched.watcher.summary();
    assert_eq!((summary.watched, summary.complete), (4, true));
    assert_eq!(summary.unwatched.get(&Reason::OwnLimit), Some(&(7 + 3)));
    assert!(summary.to_string().contains("raise the setting"), "{summary}");
    let refused = (0..10).map(|number| format!("/{number}"));
    let refused: Vec<_> =
        refused.filter(|dir| watched.watcher.coverage(dir.as_bytes()) != WATCHED).collect();
    assert_eq!(refused.len(), 7);
    let dir = refused[0].as_bytes();
    assert_eq!(watched.watcher.ensure(dir), unwatched(Reason::OwnLimit));

    // When a watched directory goes, there is room for another.
    let gone = (0..10).map(|number| format!("/{number}")).find(|dir| !refused.contains(dir));
    let gone = gone.unwrap();
    fs::remove_dir_all(watched.site().at(&gone)).unwrap();
    watched.sink.expect(&[tree(&gone)]);
    assert_eq!(watched.watcher.ensure(dir), WATCHED);
    watched.site().write(&format!("{}/page", refused[0]), "heard");
    watched.sink.expect(&[written(&format!("{}/page", refused[0]))]);
}

#[test]
fn without_watches_everything_says_why() {
    for (settings, reason) in [
        (WatchSettings { enabled: false, max_watches: 9 }, Reason::Disabled),
        (WatchSettings { enabled: true, max_watches: 0 }, Reason::OwnLimit),
    ] {
        let watched = Watched::with(settings, |site| site.make("/a"));
        assert_eq!(watched.watcher.coverage(b"/"), unwatched(reason));
        assert_eq!(watched.watcher.ensure(b"/a"), unwatched(reason));
        assert!(watched.watcher.progress().complete);
    }
}

#[test]
fn file_systems_that_make_no_sound_are_recognised() {
    let root = DocumentRoot::open("/proc/self", RootSettings::default()).unwrap();
    let sink = Arc::new(Recorder::default());
    let watcher = Watcher::start(&root, sink, WatchSettings::default()).unwrap();
    assert_eq!(watcher.ensure(b"/"), unwatched(Reason::PseudoFileSystem));
    assert_eq!(watcher.ensure(b"/task"), unwatched(Reason::PseudoFileSystem));
}

#[test]
fn watching_goes_on_without_the_right_to_search_above_the_root() {
    let watched = Watched::new(|site| {
        site.make("/above/root/a");
        site.make("/above/root/unreadable");
    });
    let above = watched.site().at("/above");
    let root = DocumentRoot::open(above.join("root"), RootSettings::default()).unwrap();
    let mode = |path: &str, mode| {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(watched.site().at(path), permissions).unwrap();
    };
    mode("/above/root/unreadable", 0o300);
    mode("/above", 0o000);
    let sink = Arc::new(Recorder::default());
    let sees = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective = CapabilitySet::empty();
            set_capabilities(None, sets).unwrap();
            let settings = WatchSettings::default();
            let watcher = Watcher::start(&root, Arc::clone(&sink) as _, settings).unwrap();
            assert!(watcher.wait_complete(PATIENCE));
            (watcher.ensure(b"/a"), watcher.ensure(b"/unreadable"), watcher)
        });
        thread.join().unwrap()
    });
    mode("/above", 0o755);
    assert_eq!((sees.0, sees.1), (WATCHED, unwatched(Reason::Denied)));
    fs::write(above.join("root/a/page"), "new").unwrap();
    sink.expect(&[written("/a/page")]);
}

#[test]
fn the_end_of_the_root_is_noticed() {
    let watched = Watched::new(|site| site.make("/root/a"));
    let path = watched.site().at("/root");
    let root = DocumentRoot::open(&path, RootSettings::default()).unwrap();
    let sink = Arc::new(Recorder::default());
    let watcher = Watcher::start(&root, Arc::clone(&sink) as _, WatchSettings::default()).unwrap();
    assert!(watcher.wait_complete(PATIENCE));
    fs::remove_dir_all(&path).unwrap();
    sink.expect(&[tree("/")]);
    assert_eq!(watcher.coverage(b"/"), unwatched(Reason::RootGone));
    assert_eq!(watcher.ensure(b"/a"), unwatched(Reason::RootGone));
}

#[test]
fn a_lost_queue_makes_everything_suspect_and_the_tree_is_scanned_again() {
    let watched = Watched::new(|site| site.make("/old/below"));
    let (site, sink) = (watched.site(), &watched.sink);
    let limit: usize = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    if limit > 100_000 {
        println!("SKIP: a queue of {limit} events takes too long to fill");
        return;
    }
    {
        let _paused = sink.gate.lock().unwrap();
        // Two files in turn, or the kernel would merge the events.
        let mut files = ["/x", "/y"].map(|path| fs::File::create(site.at(path)).unwrap());
        (0..limit / 2 + 2000)
            .for_each(|_| files.iter_mut().for_each(|f| f.write_all(b"1").unwrap()));
        site.make("/unheard/below");
        site.rename("/old", "/renamed");
    }
    sink.expect(&[Heard::Overflow]);
    assert!(watched.watcher.wait_complete(PATIENCE));
    let overflows = || sink.heard().iter().filter(|heard| **heard == Heard::Overflow).count();
    let end = Instant::now() + PATIENCE;
    while overflows() < 2 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(overflows() >= 2, "once when events were lost, once when all is watched again");
    assert_eq!(watched.watcher.coverage(b"/unheard/below"), WATCHED);
    assert_eq!(watched.watcher.coverage(b"/renamed/below"), WATCHED);
    assert_ne!(watched.watcher.coverage(b"/old"), WATCHED);
    sink.forget();
    site.write("/unheard/below/page", "1");
    site.write("/renamed/below/page", "1");
    sink.expect(&[written("/unheard/below/page"), written("/renamed/below/page")]);
}

#[test]
fn dropping_the_watcher_ends_its_thread() {
    let Watched { watcher, root, sink, folder } = Watched::new(|site| site.make("/a/b/c"));
    let begin = Instant::now();
    drop(watcher);
    assert!(begin.elapsed() < Duration::from_secs(2));
    sink.forget();
    fs::write(folder.path().join("page"), "unheard").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(sink.heard(), []);
    drop(root);
}

#[test]
fn news_travels_fast() {
    let watched = Watched::new(|site| site.make("/a"));
    let mut latencies = Vec::new();
    for number in 0..200 {
        let path = format!("/a/{number}");
        let file = fs::File::create(watched.site().at(&path)).unwrap();
        let begin = Instant::now();
        drop(file);
        watched.sink.expect(&[written(&path)]);
        latencies.push(watched.sink.when(&written(&path)).unwrap().duration_since(begin));
    }
    latencies.sort();
    let (median, worst) = (latencies[100], latencies[199]);
    println!(
        "from close to written(): median {median:?}, p95 {:?}, worst {worst:?}",
        latencies[190]
    );
    assert!(median < Duration::from_millis(500));
}
