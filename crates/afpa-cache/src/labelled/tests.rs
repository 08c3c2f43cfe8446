use std::time::Instant;

use super::*;
use crate::labels::{Label, REMEMBERED};
use crate::object::{Payload, Payloads};
use crate::policy::{Family, Hint};
use crate::settings::CacheSettings;
use crate::view::Lookup;

fn cache() -> Arc<Cache<u32>> {
    Cache::new(CacheSettings::default(), Arena::new(1 << 30).expect("memory"))
}

fn labels(all: &[&str]) -> Vec<Label> {
    all.iter().map(|label| label.as_bytes().into()).collect()
}

fn put(
    cache: &Cache<u32>,
    path: &str,
    labels: &[Label],
    since: Moment,
) -> Result<Arc<Object<u32>>, Overtaken<u32>> {
    let room = cache.reserve_now(path.len(), 1 << 20).expect("room");
    let key = Key::new(0, path.as_bytes());
    let payloads = [Payload::Pinned(room.freeze())].into_iter().collect();
    let (family, hint) = (Family::Other, Hint::default());
    let labels = labels.to_vec();
    let new = Labelled { key, labels, header: 1, header_bytes: 8, payloads, family, hint, since };
    cache.list(new, Millis(1))
}

fn is(label: &str) -> Labels {
    Labels::Is(label.as_bytes().into())
}

#[test]
fn a_purge_drops_what_has_the_label_and_nothing_else() {
    let cache = cache();
    let mut view = cache.view(Box::new(|| {}));
    let now = cache.moment();
    for (path, tag) in [("ua\n/a", "t1\n"), ("ub\n/b", "t1\n"), ("uc\n/c", "t2\n")] {
        put(&cache, path, &labels(&[tag]), now).expect("listed");
        assert!(matches!(view.get(0, path.as_bytes(), Millis(1)), Lookup::Hit(_)));
    }
    assert_eq!(cache.purge_labels(is("t1\n")), 2);
    let mut there = |path: &str| matches!(view.get(0, path.as_bytes(), Millis(1)), Lookup::Hit(_));
    assert!(!there("ua\n/a") && !there("ub\n/b") && there("uc\n/c"));
    assert_eq!(cache.purge_labels(Labels::Fit(Arc::new(|label| label == b"ud\n"))), 0);
    assert_eq!(cache.purge_labels(is("u\n")), 0);
    assert_eq!(cache.purge_labels(Labels::BeginWith((*b"u").into())), 1);
    assert!(!there("uc\n/c"));
}

/// The label with which a key begins is a label like any other, and the rest of the key is no part of it.
#[test]
fn all_keys_that_begin_with_a_label_have_it() {
    let (cache, now) = (cache(), Moment::default());
    let keys = ["ua\n", "ua\n/1", "ua\n/2", "uab\n", "ua?\n", "ub\nua\n"];
    let list = || {
        for key in keys {
            put(&cache, key, &labels(&["t\n"]), cache.moment()).expect("listed");
        }
    };
    let left = || {
        let there = |key: &&str| cache.get(&Key::new(0, key.as_bytes())).is_some();
        keys.into_iter().filter(there).collect::<Vec<_>>()
    };
    let fit = |wanted: &'static [u8]| Labels::Fit(Arc::new(move |label| label == wanted));
    for (purge, count, expected) in [
        (is("ua\n"), 3, vec!["uab\n", "ua?\n", "ub\nua\n"]),
        (is("ub\n"), 1, keys[..5].to_vec()),
        (Labels::BeginWith((*b"ua").into()), 5, vec!["ub\nua\n"]),
        (fit(b"ua\n"), 3, vec!["uab\n", "ua?\n", "ub\nua\n"]),
        (Labels::Fit(Arc::new(|label| label.starts_with(b"u") || label == b"t\n")), 6, Vec::new()),
        (is("t\n"), 6, Vec::new()),
    ] {
        list();
        assert_eq!(cache.purge_labels(purge.clone()), count, "{purge:?}");
        assert_eq!(left(), expected, "{purge:?}");
    }
    assert!(put(&cache, "ua\n/3", &[], now).is_err(), "it was purged");
    assert!(put(&cache, "uc\n/ua\n", &[], cache.moment()).is_ok());
    cache.purge_labels(is("uc\n"));
    assert!(put(&cache, "uc\n/3", &[], cache.moment()).is_ok());
}

#[test]
fn what_was_asked_for_before_a_purge_is_not_listed_after_it() {
    let cache = cache();
    let before = cache.moment();
    assert_eq!(cache.purge_labels(is("t1\n")), 0);
    assert!(put(&cache, "ua\n/a", &labels(&["t1\n"]), before).is_err());
    assert!(put(&cache, "ub\n/b", &labels(&["t2\n"]), before).is_ok());
    assert!(put(&cache, "ua\n/a", &labels(&["t1\n"]), cache.moment()).is_ok());
    assert!(cache.is_purged_since(before, &[b"t1\n"], |_| false));
    assert!(!cache.is_purged_since(before, &[b"t2\n"], |_| false));
    assert!(cache.is_purged_since(before, &[], |label| label.starts_with(b"t")));
    assert!(!cache.is_purged_since(cache.moment(), &[b"t1\n"], |_| true));
}

#[test]
fn a_recall_keeps_the_objects_but_not_those_on_their_way() {
    let cache = cache();
    let before = cache.moment();
    put(&cache, "/a", &labels(&["t1\n"]), before).expect("listed");
    let mut shown = Vec::new();
    let count = cache.recall_labels(is("t1\n"), |object| shown.push(object.is_dropped()));
    assert_eq!((count, &shown[..]), (1, &[false][..]));
    assert!(put(&cache, "/b", &labels(&["t1\n"]), before).is_err());
}

#[test]
fn a_journal_that_has_forgotten_means_everything() {
    let cache = cache();
    let before = cache.moment();
    for number in 0..=REMEMBERED {
        cache.purge_labels(is(&number.to_string()));
    }
    assert!(put(&cache, "/a", &labels(&["none\n"]), before).is_err());
}

/// The figure is looked at by hand: `cargo test --release -p afpa-cache purge_takes -- --nocapture`.
#[test]
fn a_purge_takes_all_of_a_hundred_thousand() {
    const OBJECTS: usize = if cfg!(debug_assertions) { 2_000 } else { 100_000 };
    let cache = cache();
    let mut view = cache.view(Box::new(|| {}));
    for number in 0..OBJECTS {
        let path = format!("uhost/{number}\n");
        put(&cache, &path, &labels(&["tall\n"]), cache.moment()).expect("listed");
        assert!(matches!(view.get(0, path.as_bytes(), Millis(1)), Lookup::Hit(_)));
    }
    let begun = Instant::now();
    assert_eq!(cache.purge_labels(is("tall\n")), OBJECTS);
    println!("{OBJECTS} objects were purged in {:?}", begun.elapsed());
    let held = Arc::clone(&cache);
    let sweeper = std::thread::spawn(move || held.sweep());
    for number in 0..OBJECTS {
        let path = format!("uhost/{number}\n");
        assert!(matches!(view.get(0, path.as_bytes(), Millis(1)), Lookup::Miss));
    }
    sweeper.join().expect("swept");
    assert_eq!(cache.stats().objects, 0);
    for number in 0..OBJECTS {
        put(&cache, &format!("uhost/{number}\n"), &[], cache.moment()).expect("listed");
    }
    let begun = Instant::now();
    assert_eq!(cache.purge_labels(Labels::BeginWith((*b"uhost/").into())), OBJECTS);
    println!("{OBJECTS} objects of a host were purged in {:?}", begun.elapsed());
    cache.sweep();
    assert_eq!(cache.stats().objects, 0);
}

/// Notes the calls of the cache.
#[derive(Default)]
struct Told(std::sync::Mutex<Vec<String>>);

impl Told {
    fn note(&self, what: &str, key: &Key) {
        let path = String::from_utf8_lossy(&key.path).into_owned();
        self.0.lock().expect("no panic").push(format!("{what} {path}"));
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("no panic"))
    }
}

impl crate::Residency<u32> for Told {
    fn published(&self, key: &Key, _object: &Object<u32>) {
        self.note("published", key);
    }

    fn used(&self, key: &Key, _object: &Object<u32>) {
        self.note("used", key);
    }

    fn dropped(&self, key: &Key) {
        self.note("dropped", key);
    }
}

#[test]
fn a_residency_is_told_of_uses_and_of_the_end_before_anything_else() {
    let (cache, told) = (cache(), Arc::new(Told::default()));
    cache.attach_residency(Arc::clone(&told) as Arc<dyn crate::Residency<u32>>);
    let list = |path: &str, since| {
        let room = cache.reserve_now(1, 1 << 20).expect("room");
        let hint = Hint { expiry: Some(60), ..Hint::default() };
        let new = Labelled {
            key: Key::new(0, path.as_bytes()),
            labels: labels(&["t\n"]),
            header: 1,
            header_bytes: 8,
            payloads: [Payload::Pinned(room.freeze())].into_iter().collect(),
            family: Family::Other,
            hint,
            since,
        };
        cache.list(new, Millis(1)).expect("listed")
    };
    let object = list("/a", cache.moment());
    assert!(told.take().is_empty(), "it ends by itself, and was not used");
    cache.touch(&[(object.id(), 3)]);
    assert!(told.take().is_empty(), "too seldom");
    cache.touch(&[(object.id(), 1)]);
    assert_eq!(told.take(), ["used /a"]);
    cache.offer_again(&[Key::new(0, b"/a")]);
    assert_eq!(told.take(), ["used /a"]);
    cache.recall_labels(is("t\n"), |_| told.note("shown", &Key::new(0, b"/a")));
    assert_eq!(told.take(), ["dropped /a", "shown /a"]);
    let next = list("/a", cache.moment());
    assert_eq!(told.take(), ["dropped /a", "used /a"], "the one before was used");
    assert_eq!(cache.purge_labels(is("t\n")), 1);
    assert_eq!(told.take().first().map(String::as_str), Some("dropped /a"));
    cache.touch(&[(next.id(), 9)]);
    assert!(!told.take().iter().any(|told| told.starts_with("used")));
}

fn restore(cache: &Cache<u32>, path: &str, hits: u64, since: Moment) -> bool {
    let (key, labels) = (Key::new(0, path.as_bytes()), Vec::new());
    let (payloads, family, hint) = (Payloads::new(), Family::Other, Hint::default());
    let new = Labelled { key, labels, header: 2, header_bytes: 8, payloads, family, hint, since };
    cache.list_restored(new, hits, Millis(1)).is_ok()
}

#[test]
fn what_another_process_had_is_older_than_what_is_there_and_than_any_purge() {
    let cache = cache();
    let begun = cache.moment();
    put(&cache, "ua\n", &[], begun).expect("listed");
    assert!(!restore(&cache, "ua\n", 9, begun), "what is there is newer");
    cache.purge_labels(is("ub\n"));
    assert!(!restore(&cache, "ub\n", 9, begun), "it was purged meanwhile");
    assert!(restore(&cache, "uc\n", 0, begun) && restore(&cache, "ud\n", 3, begun));
    let all = cache.by_hits().into_iter();
    let all: Vec<(u32, u64)> = all.map(|(object, hits)| (*object.header(), hits)).collect();
    assert_eq!(all, [(2, 3), (2, 0), (1, 0)], "those with most hits, then the latest");
    assert_eq!(cache.stats().hits, 0, "this process had none");
    cache.purge_labels(is("ud\n"));
    assert!(cache.get(&Key::new(0, b"ud\n")).is_none() && !restore(&cache, "ud\n", 3, begun));
}

/// Notes the calls of the cache.
#[derive(Default)]
struct Noting(std::sync::Mutex<Vec<&'static str>>);

impl Noting {
    fn note(&self, what: &'static str) {
        self.0.lock().unwrap().push(what);
    }

    /// The calls since the last time, in order, and how often each.
    fn told(&self) -> Vec<(&'static str, usize)> {
        let all = std::mem::take(&mut *self.0.lock().unwrap());
        all.chunk_by(|a, b| a == b).map(|same| (same[0], same.len())).collect()
    }
}

impl crate::Residency<u32> for Noting {
    fn published(&self, _: &Key, _: &Object<u32>) {}

    fn dropped(&self, _: &Key) {
        self.note("dropped");
    }

    fn hold(&self) -> bool {
        self.note("hold");
        true
    }

    fn release(&self) {
        self.note("release");
    }
}

#[test]
fn what_goes_at_once_is_dropped_behind_a_hold() {
    const MANY: usize = crate::cache::AT_ONCE + 100;
    let (cache, noting) = (cache(), Arc::new(Noting::default()));
    cache.attach_residency(Arc::clone(&noting) as Arc<dyn crate::Residency<u32>>);
    for number in 0..MANY {
        let (key, tags) = (format!("u{number}\n"), labels(&["tall\n"]));
        put(&cache, &key, &tags, cache.moment()).expect("listed");
    }
    assert_eq!(cache.purge_labels(is("u0\n")), 1);
    assert_eq!(noting.told(), [("dropped", 2)], "by the purge, and when it leaves the table");
    let mut shown = 0;
    assert_eq!(cache.recall_labels(is("tall\n"), |_| shown += 1), MANY - 1);
    assert_eq!((shown, noting.told()), (MANY - 1, vec![("hold", 1), ("dropped", MANY - 100)]));
    cache.sweep();
    assert_eq!(noting.told(), [("dropped", 99), ("release", 1)]);
    assert_eq!(cache.purge_labels(is("tall\n")), MANY - 1);
    assert_eq!(noting.told(), [("hold", 1), ("dropped", MANY - 100)]);
    // An object that is listed meanwhile is not touched by the rest of the sweep.
    put(&cache, &format!("u{}\n", MANY - 1), &[], cache.moment()).expect("listed");
    cache.sweep();
    assert_eq!(noting.told().last(), Some(&("release", 1)));
    assert_eq!(cache.stats().objects, 1);
}
