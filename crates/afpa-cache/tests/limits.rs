//! Limits: they hold under pressure, and room is made for objects that are worth it.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use afpa_cache::{CacheSettings, Currency, Fill, Lookup, Payload, PolicyKind};
use support::*;

#[test]
fn room_is_made_by_ejecting_others() {
    for policy in PolicyKind::ALL {
        let cache =
            cache(CacheSettings { policy: policy.into(), ..CacheSettings::default() }, 1 << 20);
        for page in 0..100 {
            load_pinned(&cache, &format!("/{page}"), 30_000).expect("room can be made");
        }
        let stats = cache.stats();
        assert!(stats.pinned_bytes <= stats.pinned_limit);
        assert!(stats.pinned_bytes > stats.pinned_limit / 2, "{policy} ejects too much: {stats:?}");
        assert!(stats.ejections > 0);
    }
}

#[test]
fn nothing_large_ejects_everything_else() {
    let settings = CacheSettings { pin_threshold: 1 << 20, ..CacheSettings::default() };
    let cache = cache(settings, 1 << 20);
    for page in 0..30 {
        load_pinned(&cache, &format!("/{page}"), 30_000).unwrap();
    }
    let before = cache.stats();
    assert!(lead(&cache, "/large").reserve((1 << 20) / 8 + 1).is_none());
    assert!(lead(&cache, "/larger").reserve(usize::MAX).is_none());
    assert_eq!(cache.stats().objects, before.objects);
    assert!(lead(&cache, "/fits").reserve((1 << 20) / 8).is_some());
}

#[test]
fn what_is_above_the_threshold_is_not_pinned() {
    let settings = CacheSettings { pin_threshold: 1000, ..CacheSettings::default() };
    let cache = cache(settings, 1 << 20);
    assert!(lead(&cache, "/a").reserve(1000).is_some());
    assert!(lead(&cache, "/a").reserve(1001).is_none());
}

#[test]
fn reserving_waits_a_little_for_views_to_let_go_and_no_longer() {
    let release_wait = Duration::from_millis(40);
    let cache = cache(CacheSettings { release_wait, ..CacheSettings::default() }, 256 << 10);
    let (mut worker, calls) = counted_view(&cache);
    for page in 0..8 {
        let path = format!("/{page}");
        load_pinned(&cache, &path, 32 << 10).unwrap();
        assert!(hit(&mut worker, &path).is_some());
    }
    let began = Instant::now();
    assert!(lead(&cache, "/new").reserve(32 << 10).is_none(), "the worker holds all of them");
    assert!(began.elapsed() >= release_wait);
    assert!(began.elapsed() < release_wait + Duration::from_secs(5));

    let ticket = lead(&cache, "/new");
    thread::scope(|scope| {
        let reserving = scope
            .spawn(|| (0..100).find_map(|_| ticket.reserve(32 << 10)).expect("the worker lets go"));
        while calls.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        worker.release_dropped();
        assert_eq!(reserving.join().unwrap().len(), 32 << 10);
    });
}

#[test]
fn open_descriptors_are_limited() {
    let cache = cache(CacheSettings { open_files_limit: 10, ..CacheSettings::default() }, 1 << 20);
    for page in 0..50 {
        load_files(&cache, &format!("/{page}"), 1 + page % 3);
        assert!(cache.stats().open_files <= 10);
    }
    let before = cache.stats();
    assert!(before.file_objects >= 4);
    let large = load_files(&cache, "/large", 11);
    assert_eq!(large.current(NOW), Currency::Dropped, "it serves those who asked, no one else");
    assert!(matches!(view(&cache).get(0, b"/large", NOW), Lookup::Miss));
    assert_eq!(cache.stats().objects, before.objects);
}

#[test]
fn objects_are_limited_whatever_their_kind() {
    let cache = cache(CacheSettings { objects_limit: 20, ..CacheSettings::default() }, 1 << 20);
    for page in 0..300 {
        let path = format!("/{page}");
        match page % 3 {
            0 => _ = load(&cache, &path, 0),
            1 => _ = load_pinned(&cache, &path, 100).unwrap(),
            _ => _ = load_files(&cache, &path, 1),
        }
        assert!(cache.stats().objects <= 20);
    }
    assert_eq!(cache.stats().objects, 20);
}

#[test]
fn bookkeeping_is_limited() {
    let settings = CacheSettings { bookkeeping_limit: 64 << 10, ..CacheSettings::default() };
    let cache = cache(settings, 1 << 20);
    let tail = "x".repeat(2000);
    for page in 0..200 {
        load(&cache, &format!("/{page}/{tail}"), 0);
        assert!(cache.stats().bookkeeping <= 64 << 10);
    }
    assert!(cache.stats().objects > 5);
    let huge = load(&cache, &format!("/{}", "x".repeat(70 << 10)), 0);
    assert_eq!(huge.current(NOW), Currency::Dropped);
    assert!(cache.stats().objects > 5, "the huge one ejected the others");
}

#[test]
fn what_views_hold_counts_once_for_each() {
    let settings = CacheSettings { bookkeeping_limit: 256 << 10, ..CacheSettings::default() };
    let listed = |views: usize, header_bytes: usize| {
        let cache = cache(settings.clone(), 1 << 20);
        let views: Vec<_> = (0..views).map(|_| view(&cache)).collect();
        for page in 0..600 {
            let mut ticket = lead(&cache, &format!("/{page}"));
            ticket.weigh(header_bytes);
            publish(ticket, 0, []).unwrap();
            assert!(cache.stats().bookkeeping <= 256 << 10);
        }
        let objects = cache.stats().objects;
        drop(views);
        objects
    };
    let (alone, many) = (listed(0, 0), listed(64, 0));
    assert!(many * 5 < alone, "{many} of {alone} with 64 views");
    let heads = listed(0, 4000);
    assert!(heads < 65, "{heads} heads of 4000 bytes");
}

#[test]
fn touches_reach_the_policy() {
    for policy in PolicyKind::ALL {
        let settings =
            CacheSettings { policy: policy.into(), objects_limit: 3, ..CacheSettings::default() };
        let cache = cache(settings, 1 << 20);
        let mut view = view(&cache);
        for path in ["/a", "/b", "/c"] {
            load(&cache, path, 1);
        }
        for _ in 0..5 {
            assert_eq!(hit(&mut view, "/a"), Some(1));
        }
        view.flush_touches();
        assert_eq!(cache.stats().hits, 5);
        view.flush_touches();
        assert_eq!(cache.stats().hits, 5, "reported twice");
        load(&cache, "/d", 1);
        load(&cache, "/e", 1);
        assert_eq!(hit(&mut view, "/a"), Some(1), "{policy} ejected the one in use");
        assert_eq!(hit(&mut view, "/b"), None);
    }
}

/// Loaders and readers on more than fits: the arena never gives out more than its limit (it cannot,
/// and says so), everything served is intact, and all of it comes back.
#[test]
fn pressure_never_exceeds_the_limit() {
    const PAGES: usize = 200;
    const THREADS: usize = 4;
    let cache = cache(CacheSettings::default(), 512 << 10);
    let [finished, failures, served] = [const { AtomicUsize::new(0) }; 3];
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (cache, finished, failures, served) = (&cache, &finished, &failures, &served);
            scope.spawn(move || {
                let called = Arc::new(AtomicBool::new(false));
                let flag = Arc::clone(&called);
                let mut view = cache.view(Box::new(move || flag.store(true, Ordering::SeqCst)));
                for round in 0..2000 {
                    let page = (round * 7 + thread * 13) % PAGES;
                    let (path, len) = (format!("/{page}"), 500 + page * 97);
                    if let Lookup::Hit(object) = view.get(0, path.as_bytes(), NOW) {
                        let Payload::Pinned(bytes) = &object.payloads()[0] else { unreachable!() };
                        assert_eq!(bytes.len(), len);
                        assert!(bytes.iter().all(|&byte| byte == page as u8), "overwritten");
                        served.fetch_add(1, Ordering::Relaxed);
                    } else if let Fill::Lead(ticket) = cache.begin(key(&path), NOW) {
                        match ticket.reserve(len) {
                            Some(mut room) => {
                                room.fill(page as u8);
                                publish(ticket, 0, [Payload::Pinned(room.freeze())]).unwrap();
                            }
                            None => _ = failures.fetch_add(1, Ordering::Relaxed),
                        }
                    }
                    if called.swap(false, Ordering::SeqCst) {
                        view.release_dropped();
                    }
                    if round % 100 == 0 {
                        view.flush_touches();
                    }
                }
                finished.fetch_add(1, Ordering::SeqCst);
            });
        }
        scope.spawn(|| {
            while finished.load(Ordering::SeqCst) < THREADS {
                let stats = cache.stats();
                assert!(stats.pinned_bytes <= stats.pinned_limit);
                thread::sleep(Duration::from_millis(1));
            }
        });
    });
    assert!(served.into_inner() > 0 && cache.stats().ejections > 0);
    assert!(failures.into_inner() < 4000, "hardly anything found room");
    for page in 0..PAGES {
        cache.purge(&key(&format!("/{page}")));
    }
    assert_eq!((cache.stats().objects, cache.stats().pinned_bytes), (0, 0));
}
