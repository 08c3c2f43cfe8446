//! The cost of a hit: no allocation.

mod support;

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
