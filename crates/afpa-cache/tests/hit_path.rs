//! The cost of a hit: no allocation, no lock.

mod support;

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use allocation_counter::measure;

use afpa_cache::{Currency, Lookup};
use support::*;

#[test]
fn a_hit_allocates_nothing() {
    let cache = roomy();
    let mut view = view(&cache);
    let paths: Vec<String> = (0..1000).map(|page| format!("/folder/page-{page}")).collect();
    for path in &paths {
        load_pinned(&cache, path, 100).unwrap();
    }
    let learning = measure(|| {
        for path in &paths {
            assert_eq!(hit(&mut view, path), Some(0));
        }
    });
    assert!(learning.count_total > 0, "the counter counts nothing");

    for _ in 0..3 {
        let hits = measure(|| {
            for path in &paths {
                let Lookup::Hit(object) = view.get(0, path.as_bytes(), NOW) else {
                    panic!("a miss")
                };
                assert_eq!(object.current(NOW), Currency::Fresh);
            }
        });
        assert_eq!(hits.count_total, 0);
        view.flush_touches();
    }
    assert_eq!(cache.stats().hits, 4000);
}

#[test]
fn a_hit_allocates_nothing_after_objects_came_and_went() {
    let cache = roomy();
    let mut view = view(&cache);
    let paths: Vec<String> = (0..200).map(|page| format!("/{page}")).collect();
    for round in 0..4 {
        for path in &paths {
            load(&cache, path, round);
            assert_eq!(hit(&mut view, path), Some(round));
        }
        let hits = measure(|| {
            paths.iter().for_each(|path| assert_eq!(hit(&mut view, path), Some(round)));
        });
        assert_eq!(hits.count_total, 0, "touches of dropped objects used up the room");
        cache.invalidate_tree(0, b"/");
        view.release_dropped();
    }
}

#[test]
fn a_first_hit_after_a_re_check_allocates_nothing() {
    let cache = roomy();
    let mut view = view(&cache);
    let paths: Vec<String> = (0..300).map(|page| format!("/{page}")).collect();
    for path in &paths {
        load(&cache, path, 1);
    }
    cache.suspect_all();
    for path in &paths {
        assert!(matches!(view.get(0, path.as_bytes(), NOW), Lookup::Recheck(_)));
        lead(&cache, path).confirm().unwrap();
    }
    let hits = measure(|| {
        paths.iter().for_each(|path| assert_eq!(hit(&mut view, path), Some(1)));
    });
    assert_eq!(hits.count_total, 0);
}

#[test]
fn a_hit_waits_for_no_lock() {
    let cache = roomy();
    let mut view = view(&cache);
    load_pinned(&cache, "/page", 100).unwrap();
    assert_eq!(hit(&mut view, "/page"), Some(0), "the first look-up takes the object over");
    let ((held, is_held), (over, is_over)) = (channel(), channel::<()>());
    thread::scope(|scope| {
        let cache = &cache;
        let holder = scope.spawn(move || {
            let mut end = None;
            cache.recall(&key("/page"), |_| {
                held.send(()).unwrap();
                end = Some(is_over.recv_timeout(Duration::from_secs(20)));
            });
            end
        });
        is_held.recv().expect("the lock is held");
        (0..1000).for_each(|_| assert_eq!(hit(&mut view, "/page"), Some(0)));
        let _ = over.send(());
        assert_eq!(holder.join().unwrap(), Some(Ok(())), "a hit waited for the lock");
    });
}
