//! The configured hints about objects, and the policy that AFPA chooses, in a whole cache.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use allocation_counter::measure;

use afpa_cache::{
    Cache, CacheSettings, Currency, Family, Fill, Hint, Keep, Key, Lookup, Millis, Object, Payload,
    PolicyKind, PolicySetting, Residency,
};
use support::*;

#[test]
fn what_is_always_kept_outlives_pressure_of_every_kind() {
    for policy in all_settings() {
        let settings = CacheSettings {
            policy,
            objects_limit: 50,
            open_files_limit: 20,
            ..CacheSettings::default()
        };
        let cache = cache(settings, 256 << 10);
        let kept = Hint { keep: Keep::Always, ..Hint::default() };
        load_hinted(&cache, "/kept", kept, 10_000);
        let mut ticket = lead(&cache, "/kept-file");
        ticket.describe(Family::Other, kept);
        let file = std::fs::File::open("/dev/null").unwrap();
        let body = afpa_cache::root::FileBody::growing(file, 0).unwrap();
        publish(ticket, 7, [Payload::File(Arc::new(body), 0)]).unwrap();
        for page in 0..200 {
            load_hinted(&cache, &format!("/{page}"), Hint::default(), 10_000);
            load_files(&cache, &format!("/file/{page}"), 1);
        }
        assert!(cache.stats().ejections > 300);
        let mut view = view(&cache);
        assert_eq!(hit(&mut view, "/kept"), Some(0), "{policy:?}");
        assert_eq!(hit(&mut view, "/kept-file"), Some(7), "{policy:?}");
        cache.invalidate(0, b"/kept");
        assert_eq!(hit(&mut view, "/kept"), Some(0), "it depends on nothing");
        cache.purge(&key("/kept"));
        assert_eq!(hit(&mut view, "/kept"), None, "a purge is a purge");
    }
}

#[test]
fn no_more_is_kept_than_there_is_room_for() {
    let settings = CacheSettings { kept_percent: 20, ..CacheSettings::default() };
    let cache = cache(settings, 200 << 10);
    let kept = Hint { keep: Keep::Always, ..Hint::default() };
    for page in 0..40 {
        load_hinted(&cache, &format!("/{page}"), kept, 9_000);
    }
    let mut view = view(&cache);
    let first = (0..4).filter(|page| hit(&mut view, &format!("/{page}")).is_some());
    assert_eq!(first.count(), 4, "four fit a fifth of the arena");
    let others = (4..40).filter(|page| hit(&mut view, &format!("/{page}")).is_some()).count();
    assert!((10..20).contains(&others), "the others share the rest: {others}");
}

/// The kernel's stand-in: counts the offers.
#[derive(Default)]
struct Offered(AtomicUsize);

impl Residency<Version> for Offered {
    fn published(&self, _: &Key, _: &Object<Version>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn dropped(&self, _: &Key) {}
}

#[test]
fn what_is_never_kept_answers_those_who_asked_and_no_one_else() {
    let cache = roomy();
    let offered = Arc::new(Offered::default());
    cache.attach_residency(Arc::<Offered>::clone(&offered));
    load(&cache, "/page", 1);
    let mut view = view(&cache);
    assert_eq!(hit(&mut view, "/page"), Some(1));
    cache.purge(&key("/page"));

    let mut ticket = lead(&cache, "/page");
    let Fill::Wait(waiter) = cache.begin(key("/page"), NOW) else { panic!("a second leader") };
    ticket.describe(Family::Page, Hint { keep: Keep::Never, ..Hint::default() });
    let object = publish(ticket, 2, []).unwrap();
    assert_eq!(block_on(waiter).map(|object| *object.header()), Some(2));
    assert_eq!(object.current(NOW), Currency::Dropped);
    assert_eq!(hit(&mut view, "/page"), None);
    assert_eq!(offered.0.load(Ordering::SeqCst), 1, "the one before");
    assert_eq!((cache.stats().objects, cache.stats().unkept), (0, 1));
    assert!(cache.replace(&object, (3, 0), []).is_err(), "nothing to replace");
}

#[test]
fn an_object_that_reaches_its_age_is_made_anew_and_the_kernel_never_has_it() {
    let cache = roomy();
    let offered = Arc::new(Offered::default());
    cache.attach_residency(Arc::<Offered>::clone(&offered));
    let expiry = Some(10);
    let mut ticket = lead(&cache, "/page");
    ticket.describe(Family::Page, Hint { expiry, ..Hint::default() });
    let object = publish(ticket, 1, []).unwrap();
    let object = cache.replace(&object, (2, 0), []).expect("it is listed");
    assert_eq!(object.end(), Some(Millis(NOW.0 + 10_000)), "codings do not make it younger");
    let mut view = view(&cache);
    let at = |millis| Millis(NOW.0 + millis);
    assert!(matches!(view.get(0, b"/page", at(9_950)), Lookup::Hit(_)));
    assert!(matches!(view.get(0, b"/page", at(10_000)), Lookup::Miss));
    let Fill::Lead(ticket) = cache.begin(key("/page"), at(10_000)) else {
        panic!("the old one again")
    };
    assert!(ticket.suspect().is_none(), "there is nothing to confirm");
    publish(ticket, 3, []).unwrap();
    assert!(
        matches!(view.get(0, b"/page", at(10_000)), Lookup::Hit(object) if *object.header() == 3)
    );
    assert_eq!(cache.stats().expiries, 1);
    assert_eq!(offered.0.load(Ordering::SeqCst), 1, "only the last one, which has no age");
}

/// A cycle that does not fit, which suits every policy but LRU and its kin, under the real thread.
#[test]
fn the_thread_changes_a_policy_that_does_badly_and_no_hit_allocates() {
    let settings = CacheSettings {
        policy: PolicySetting::Auto,
        // A wait for room would be useless, because this thread holds the view: it makes requests too few to judge.
        release_wait: Duration::ZERO,
        ..CacheSettings::default()
    };
    let cache = cache(settings, 1 << 20);
    cache.start_choosing(Duration::from_millis(300)).unwrap();
    let report = cache.policy_report();
    assert_eq!(report.policies[0].kind, PolicyKind::default());
    let mut view = view(&cache);
    let deadline = Instant::now() + Duration::from_secs(60);
    // Each page is asked for three times while it is new. S3-FIFO, with which it begins, drops it before.
    let mut turn = 0_u64;
    while cache.policy_report().changes == 0 {
        assert!(Instant::now() < deadline, "{:?}", cache.policy_report());
        for _ in 0..500 {
            let page = (turn / 3).saturating_sub(turn % 3 * 20);
            let path = format!("/{page}");
            // The room of ejected objects comes free once the view has let go of them.
            while hit(&mut view, &path).is_none()
                && !try_load(&cache, &path, Hint::default(), 8_000)
            {
                view.release_dropped();
            }
            turn += 1;
            view.flush_touches();
            view.release_dropped();
        }
    }
    let report = cache.policy_report();
    assert_ne!(report.policies[0].kind, PolicyKind::S3Fifo, "{report:?}");
    assert!(report.policies[0].why.contains("in place of s3-fifo"), "{report:?}");
    assert!(report.policies[0].standing.is_some());
    assert_eq!(report.policies[1].why, "too few requests to judge");

    while !try_load(&cache, "/hot", Hint { weight: 9, ..Hint::default() }, 100) {
        view.release_dropped();
    }
    assert_eq!(hit(&mut view, "/hot"), Some(0));
    let hits = measure(|| (0..1000).for_each(|_| assert_eq!(hit(&mut view, "/hot"), Some(0))));
    assert_eq!(hits.count_total, 0);
}

#[test]
fn the_thread_ends_with_its_cache() {
    let settings = CacheSettings { policy: PolicySetting::Auto, ..CacheSettings::default() };
    let cache = cache(settings, 1 << 20);
    cache.start_choosing(Duration::from_secs(3600)).unwrap();
    let weak = Arc::downgrade(&cache);
    drop(cache);
    assert!(weak.upgrade().is_none(), "the thread holds the cache while it waits");
}

fn all_settings() -> impl Iterator<Item = PolicySetting> {
    PolicyKind::ALL.into_iter().map(PolicySetting::from).chain([PolicySetting::Auto])
}

#[track_caller]
fn load_hinted(cache: &Arc<Cache<Version>>, path: &str, hint: Hint, len: usize) {
    assert!(try_load(cache, path, hint, len), "no room");
}

/// Loads `path`; `false` when there was no room.
fn try_load(cache: &Arc<Cache<Version>>, path: &str, hint: Hint, len: usize) -> bool {
    let mut ticket = lead(cache, path);
    ticket.describe(Family::Page, hint);
    let Some(room) = ticket.reserve(len) else { return false };
    publish(ticket, 0, [Payload::Pinned(room.freeze())]).unwrap();
    true
}
