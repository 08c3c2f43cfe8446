//! Changes: nothing is served that a change has overtaken.

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use afpa_cache::{Currency, Fill, Key, Lookup, Object, Residency};
use support::*;

#[test]
fn a_change_between_reading_and_publishing_is_noticed() {
    let cache = roomy();
    let ticket = lead(&cache, "/page");
    ticket.depends_on(b"/page");
    ticket.depends_on(b"/page.br");
    let Fill::Wait(waiter) = cache.begin(key("/page"), NOW) else { panic!("somebody is loading") };
    cache.invalidate(0, b"page.br");
    let overtaken = publish(ticket, 1, []).unwrap_err();
    assert_eq!(overtaken.0.current(NOW), Currency::Dropped, "it serves nobody else");
    assert!(block_on(waiter).is_none());
    assert!(matches!(view(&cache).get(0, b"/page", NOW), Lookup::Miss));
    assert_eq!(cache.stats().overtaken, 1);
}

#[test]
fn a_change_before_the_dependency_was_announced_does_not_count() {
    let cache = roomy();
    let ticket = lead(&cache, "/page");
    cache.invalidate(0, b"/page");
    ticket.depends_on(b"/page");
    publish(ticket, 1, []).unwrap();
}

#[test]
fn a_tree_takes_what_is_below_it_and_nothing_else() {
    let cache = roomy();
    for path in ["/a", "/a/b", "/a/b/c", "/ab", "/a-b", "/b"] {
        load(&cache, path, 1);
    }
    let mut view = view(&cache);
    cache.invalidate_tree(0, b"/a");
    for path in ["/a", "/a/b", "/a/b/c"] {
        assert_eq!(hit(&mut view, path), None, "{path}");
    }
    for path in ["/ab", "/a-b", "/b"] {
        assert_eq!(hit(&mut view, path), Some(1), "{path}");
    }
    assert_eq!(cache.stats().invalidations, 3);
    cache.invalidate_tree(0, b"");
    assert_eq!(cache.stats().objects, 0);
}

#[test]
fn a_path_shared_by_many_objects_drops_them_all() {
    let cache = roomy();
    for path in ["/x", "/y"] {
        let ticket = lead(&cache, path);
        ticket.depends_on(b"/behind/the/links");
        publish(ticket, 1, []).unwrap();
    }
    cache.invalidate(0, b"/behind/the/links");
    assert_eq!(cache.stats().objects, 0);
}

#[test]
fn a_purge_takes_the_object_and_spoils_the_load() {
    let cache = roomy();
    load(&cache, "/page", 1);
    assert!(cache.purge(&key("/page")));
    assert!(!cache.purge(&key("/page")));
    let ticket = lead(&cache, "/page");
    assert!(cache.purge(&key("/page")));
    let overtaken = publish(ticket, 2, []).unwrap_err();
    assert_eq!(overtaken.0.current(NOW), Currency::Dropped, "it serves nobody else");
}

#[test]
fn views_are_called_and_let_go() {
    let cache = roomy();
    let (mut holder, calls) = counted_view(&cache);
    let (mut stranger, strange_calls) = counted_view(&cache);
    let object = load_pinned(&cache, "/page", 5000).unwrap();
    assert_eq!(hit(&mut holder, "/page"), Some(0));
    assert_eq!(hit(&mut stranger, "/other"), None);
    drop(object);

    assert!(cache.purge(&key("/page")));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    assert_eq!(strange_calls.load(Ordering::SeqCst), 0, "it never held the object");
    assert!(cache.stats().pinned_bytes > 0, "the view still holds it");
    holder.release_dropped();
    assert_eq!((holder.len(), cache.stats().pinned_bytes), (0, 0));
}

#[test]
fn a_view_that_does_not_collect_keeps_no_endless_list() {
    let cache = roomy();
    let (mut view, calls) = counted_view(&cache);
    for round in 0..5000 {
        let path = format!("/{}", round % 2500);
        load(&cache, &path, round);
        assert_eq!(hit(&mut view, &path), Some(round));
        if round < 2500 {
            cache.invalidate(0, path.as_bytes());
        }
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1, "one call is enough until it collects");
    view.release_dropped();
    assert_eq!(view.len(), 2500);
    cache.invalidate_tree(0, b"");
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    view.release_dropped();
    assert!(view.is_empty());
}

/// Notes the calls of the cache, and whether the object could be seen during a call.
struct Kernel {
    log: Mutex<Vec<String>>,
    seen: Mutex<Option<Arc<Object<Version>>>>,
}

impl Residency<Version> for Kernel {
    fn published(&self, key: &Key, object: &Object<Version>) {
        let line = format!("published {} {}", key.path.escape_ascii(), object.header());
        self.log.lock().unwrap().push(line);
    }

    fn dropped(&self, key: &Key) {
        let current = self.seen.lock().unwrap().as_ref().map(|object| object.current(NOW));
        let line = format!("dropped {} while {current:?}", key.path.escape_ascii());
        self.log.lock().unwrap().push(line);
    }
}

#[test]
fn another_home_drops_first_and_learns_last() {
    let cache = roomy();
    load(&cache, "/old", 1);
    let kernel = Arc::new(Kernel { log: Mutex::default(), seen: Mutex::default() });
    cache.attach_residency(Arc::clone(&kernel) as Arc<dyn Residency<Version>>);

    let object = load(&cache, "/page", 1);
    *kernel.seen.lock().unwrap() = Some(Arc::clone(&object));
    cache.suspect_all();
    let ticket = lead(&cache, "/page");
    assert_eq!(object.current(NOW), Currency::Recheck);
    ticket.confirm().unwrap();
    cache.suspect_all();
    publish(lead(&cache, "/page"), 2, []).unwrap();

    let mut log = kernel.log.lock().unwrap().clone();
    log.retain(|line| line.contains("/page"));
    assert_eq!(
        log,
        [
            "published /page 1",
            "dropped /page while Some(Fresh)",
            "published /page 1",
            "dropped /page while Some(Fresh)",
            // Still listed when it goes: only then is the new one entered.
            "dropped /page while Some(Recheck)",
            "published /page 2",
        ]
    );
    assert!(kernel.log.lock().unwrap().contains(&"published /old 1".to_owned()));
}

#[test]
fn another_home_is_not_offered_what_is_suspect() {
    let cache = roomy();
    load(&cache, "/old", 1);
    cache.suspect_all();
    let kernel = Arc::new(Kernel { log: Mutex::default(), seen: Mutex::default() });
    cache.attach_residency(Arc::clone(&kernel) as Arc<dyn Residency<Version>>);
    let ticket = lead(&cache, "/page");
    let check = lead(&cache, "/old");
    cache.suspect_all();
    publish(ticket, 1, []).unwrap();
    check.confirm().unwrap();
    let log = kernel.log.lock().unwrap().clone();
    assert!(!log.iter().any(|line| line.starts_with("published")), "{log:?}");
}

#[test]
fn nothing_older_than_the_last_announced_change_is_ever_served() {
    const CHANGES: u64 = 3000;
    let (cache, page, served) = (roomy(), Changing::default(), AtomicU64::new(0));
    thread::scope(|scope| {
        for reader in 0..3 {
            let (cache, page, served) = (&cache, &page, &served);
            scope.spawn(move || {
                let mut view = view(cache);
                while !page.is_over() {
                    if page.read(cache, &mut view, 100 + reader) {
                        served.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        for version in 1..=CHANGES {
            page.change(&cache, version);
            // Threads begin when the machine lets them: the changes do not get far ahead of the readers.
            while served.load(Ordering::Relaxed) <= version / 3 {
                std::thread::yield_now();
            }
        }
        page.end();
    });
    assert!(served.into_inner() > 1000, "hardly anything was served: the test showed nothing");
    assert_all_is_let_go(&cache);
}
