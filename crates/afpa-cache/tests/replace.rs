//! Replacing an object by one that was made of the same versions.

mod support;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use afpa_cache::{Changed, Currency, Fill, Key, Millis, Object, Payload, Residency};
use support::*;

#[test]
fn a_replacement_takes_the_place_and_the_dependencies() {
    let cache = roomy();
    let ticket = lead(&cache, "/page");
    ticket.depends_on(b"/page");
    ticket.depends_on(b"/page.br");
    let room = ticket.reserve(5000).unwrap();
    let first = publish(ticket, 1, [Payload::Pinned(room.freeze())]).unwrap();
    let (mut view, calls) = counted_view(&cache);
    assert_eq!(hit(&mut view, "/page"), Some(1));

    let more = Payload::Pinned(cache.reserve(3000).unwrap().freeze());
    let payloads = [first.payloads()[0].clone(), more];
    let second = cache.replace(&first, (2, 0), payloads).unwrap();
    assert_eq!(first.current(NOW), Currency::Dropped);
    assert_eq!(calls.load(Ordering::SeqCst), 1, "who held the first is told");
    assert_eq!(hit(&mut view, "/page"), Some(2));
    assert_ne!(second.id(), first.id());
    assert_eq!((second.stamp(), second.coverage()), (first.stamp(), first.coverage()));
    let stats = cache.stats();
    assert_eq!((stats.objects, stats.replacements, stats.invalidations), (1, 1, 0));

    cache.invalidate(0, b"/page.br");
    assert_eq!(second.current(NOW), Currency::Dropped);
    assert_eq!(hit(&mut view, "/page"), None);
    drop((first, second));
    view.release_dropped();
    assert_eq!((cache.stats().objects, cache.stats().pinned_bytes), (0, 0));
}

#[test]
fn what_is_not_listed_is_not_replaced() {
    let cache = roomy();
    let first = load(&cache, "/page", 1);
    cache.invalidate(0, b"/page");
    assert_eq!(cache.replace(&first, (2, 0), []).unwrap_err(), Changed);
    assert_eq!(cache.stats().objects, 0, "nothing comes back");

    let newer = load(&cache, "/page", 3);
    assert_eq!(cache.replace(&first, (2, 0), []).unwrap_err(), Changed);
    let newest = cache.replace(&newer, (4, 0), []).unwrap();
    assert_eq!(cache.replace(&newer, (5, 0), []).unwrap_err(), Changed, "it was replaced already");
    assert_eq!(hit(&mut view(&cache), "/page"), Some(4));
    assert!(cache.purge(newest.key()));
    assert_eq!(cache.replace(&newest, (6, 0), []).unwrap_err(), Changed);

    // Another cache's object may have the same number.
    let other = roomy();
    let stranger = load(&other, "/page", 7);
    let fresh = roomy();
    let mine = load(&fresh, "/page", 8);
    assert_eq!(stranger.id(), mine.id());
    assert_eq!(fresh.replace(&stranger, (9, 0), []).unwrap_err(), Changed);
}

#[test]
fn a_replacement_of_a_suspect_is_one_too() {
    let cache = roomy();
    let first = load(&cache, "/page", 1);
    cache.suspect_all();
    let check = lead(&cache, "/page");
    let second = cache.replace(&first, (2, 0), []).unwrap();
    assert_eq!(second.current(NOW), Currency::Recheck);
    assert!(check.confirm().is_err(), "what it checked is not there any more");
    let check = lead(&cache, "/page");
    assert_eq!(check.suspect().unwrap().id(), second.id());
    check.confirm().unwrap();
    assert_eq!(second.current(NOW), Currency::Fresh);
}

#[test]
fn a_replacement_is_no_younger_than_what_it_replaces() {
    let cache = roomy();
    let ticket = lead(&cache, "/page");
    let coverage = afpa_cache::Coverage::Unwatched;
    let first = ticket.publish(1, [], afpa_cache::Stamp::default(), coverage).unwrap();
    let second = cache.replace(&first, (2, 0), []).unwrap();
    for age in (0..10_000).step_by(250) {
        let at = Millis(NOW.0 + age);
        let fresh = cache.settings().max_age_unwatched.as_millis() > u128::from(age);
        let expected = if fresh { Currency::Fresh } else { Currency::Recheck };
        assert_eq!(second.current(at), expected, "{age} ms");
    }
}

/// Notes the calls of the cache.
#[derive(Default)]
struct Kernel(Mutex<Vec<String>>);

impl Residency<Version> for Kernel {
    fn published(&self, _: &Key, object: &Object<Version>) {
        self.0.lock().unwrap().push(format!("published {}", object.header()));
    }

    fn dropped(&self, _: &Key) {
        self.0.lock().unwrap().push("dropped".to_owned());
    }
}

#[test]
fn another_home_changes_with_the_cache() {
    let cache = roomy();
    let kernel = Arc::new(Kernel::default());
    cache.attach_residency(Arc::clone(&kernel) as Arc<dyn Residency<Version>>);
    let first = load(&cache, "/page", 1);
    let second = cache.replace(&first, (2, 0), []).unwrap();
    cache.suspect_all();
    // Not offered before it was looked at.
    cache.replace(&second, (3, 0), []).unwrap();
    lead(&cache, "/page").confirm().unwrap();
    let log = kernel.0.lock().unwrap().clone();
    let expected = ["published 1", "dropped", "published 2", "dropped", "dropped", "published 3"];
    assert_eq!(log, expected);
}

/// As in `coherency.rs`, with one more thread that replaces any listed object. A replacement carries the version it was
/// made of: none may come back after a change.
#[test]
fn nothing_older_than_the_last_announced_change_comes_back() {
    const CHANGES: std::ops::Range<u64> = 1500..200_000;
    const ENOUGH: u64 = 200;
    let (cache, page) = (roomy(), Changing::default());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut view = view(&cache);
            while !page.is_over() {
                page.read(&cache, &mut view, 100);
            }
        });
        scope.spawn(|| {
            while !page.is_over() {
                if let Fill::Hit(object) = cache.begin(key("/page"), NOW) {
                    let version = *object.header();
                    let more = Payload::Pinned(cache.reserve(50).unwrap().freeze());
                    thread::yield_now();
                    let _ =
                        cache.replace(&object, (version, 0), [object.payloads()[0].clone(), more]);
                }
            }
        });
        for version in 1..CHANGES.end {
            page.change(&cache, version);
            // A busy machine gives the others their turn only where this thread pauses.
            if version > CHANGES.start {
                if cache.stats().replacements > ENOUGH {
                    break;
                }
                thread::sleep(Duration::from_micros(20));
            }
        }
        page.end();
    });
    assert!(cache.stats().replacements > ENOUGH, "hardly anything was replaced: nothing was shown");
    assert_all_is_let_go(&cache);
}
