//! Loading once: leaders, waiters, re-checks.

mod support;

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use afpa_cache::{CacheSettings, Changed, Coverage, Currency, Fill, Lookup, Millis, Stamp};
use support::*;

#[test]
fn sixty_four_threads_that_miss_on_one_key_load_it_once() {
    let (cache, loads, start) = (roomy(), AtomicUsize::new(0), Barrier::new(64));
    thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                start.wait();
                let object = match cache.begin(key("/page"), NOW) {
                    Fill::Lead(ticket) => {
                        loads.fetch_add(1, Ordering::SeqCst);
                        thread::sleep(Duration::from_millis(20));
                        publish(ticket, 7, []).unwrap()
                    }
                    Fill::Wait(waiter) => block_on(waiter).expect("the load succeeds"),
                    Fill::Hit(object) => object,
                };
                assert_eq!(*object.header(), 7);
            });
        }
    });
    assert_eq!(loads.into_inner(), 1);
    let stats = cache.stats();
    assert_eq!((stats.fills, stats.objects, stats.filling), (1, 1, 0));
    assert!(stats.waits > 0, "nobody had to wait: the test showed nothing");
}

#[test]
fn a_leader_that_gives_up_frees_its_waiters_and_the_key() {
    let cache = roomy();
    let ticket = lead(&cache, "/page");
    ticket.depends_on(b"page");
    let Fill::Wait(waiter) = cache.begin(key("/page"), NOW) else { panic!("somebody is loading") };
    drop(ticket);
    assert!(block_on(waiter).is_none());
    load(&cache, "/page", 2);
}

#[test]
fn a_waiter_may_leave() {
    let cache = roomy();
    let ticket = lead(&cache, "/page");
    drop((0..1000).map(|_| cache.begin(key("/page"), NOW)).collect::<Vec<_>>());
    let Fill::Wait(waiter) = cache.begin(key("/page"), NOW) else { panic!("somebody is loading") };
    publish(ticket, 3, []).unwrap();
    assert_eq!(*block_on(waiter).unwrap().header(), 3);
}

#[test]
fn keys_of_different_sites_are_different() {
    let cache = roomy();
    load(&cache, "/page", 1);
    let mut view = view(&cache);
    assert!(matches!(view.get(0, b"/page", NOW), Lookup::Hit(_)));
    assert!(matches!(view.get(1, b"/page", NOW), Lookup::Miss));
}

#[test]
fn a_suspect_object_is_re_checked_once_and_serves_all() {
    let cache = roomy();
    let first = load(&cache, "/page", 1);
    let mut view = view(&cache);
    assert_eq!(hit(&mut view, "/page"), Some(1));

    cache.suspect_all();
    assert!(matches!(view.get(0, b"/page", NOW), Lookup::Recheck(_)));
    let ticket = lead(&cache, "/page");
    assert_eq!(ticket.suspect().unwrap().id(), first.id());
    let Fill::Wait(waiter) = cache.begin(key("/page"), NOW) else { panic!("somebody checks") };

    ticket.confirm().unwrap();
    assert_eq!(block_on(waiter).unwrap().id(), first.id());
    assert_eq!(hit(&mut view, "/page"), Some(1));
    assert_eq!(cache.stats().confirmations, 1);
}

#[test]
fn a_suspect_object_that_changed_is_replaced() {
    let cache = roomy();
    let first = load(&cache, "/page", 1);
    let mut view = view(&cache);
    assert_eq!(hit(&mut view, "/page"), Some(1));
    cache.suspect_all();

    publish(lead(&cache, "/page"), 2, []).unwrap();
    assert_eq!(first.current(NOW), Currency::Dropped);
    assert_eq!(hit(&mut view, "/page"), Some(2));
}

#[test]
fn a_confirmation_comes_too_late_for_a_dropped_object() {
    let cache = roomy();
    load(&cache, "/page", 1);
    cache.suspect_all();
    let ticket = lead(&cache, "/page");
    cache.invalidate(0, b"/page");
    assert_eq!(ticket.confirm().unwrap_err(), Changed);
    assert_eq!(lead(&cache, "/page").confirm().unwrap_err(), Changed, "there is no suspect");
}

#[test]
fn events_lost_during_a_load_make_its_object_suspect_at_birth() {
    let cache = roomy();
    let ticket = lead(&cache, "/page");
    cache.suspect_all();
    let object = publish(ticket, 1, []).unwrap();
    assert_eq!(object.current(NOW), Currency::Recheck);
}

#[test]
fn an_unwatched_object_is_re_checked_after_its_age() {
    let max_age_unwatched = Duration::from_secs(5);
    let cache = cache(CacheSettings { max_age_unwatched, ..CacheSettings::default() }, 1 << 20);
    let ticket = lead(&cache, "/nfs");
    ticket.publish(1, [], Stamp::default(), Coverage::Unwatched).unwrap();
    let mut view = view(&cache);
    assert!(matches!(view.get(0, b"/nfs", Millis(NOW.0 + 4_950)), Lookup::Hit(_)));
    assert!(matches!(view.get(0, b"/nfs", Millis(NOW.0 + 5_000)), Lookup::Recheck(_)));
    let Fill::Lead(ticket) = cache.begin(key("/nfs"), Millis(NOW.0 + 5_000)) else { panic!("old") };
    ticket.confirm().unwrap();
    assert!(matches!(view.get(0, b"/nfs", Millis(NOW.0 + 9_950)), Lookup::Hit(_)));
}
