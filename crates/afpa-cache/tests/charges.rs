//! Objects that count as a whole: their keys and header data take of the arena's limit, and give it back.

use std::sync::Arc;

use afpa_cache::{
    Arena, Cache, CacheSettings, Family, Hint, Key, Labelled, Labels, Millis, Object, Payload,
    Payloads,
};

const LIMIT: usize = 1 << 20;

fn cache() -> Arc<Cache<Vec<u8>>> {
    let settings = CacheSettings { counts_all: true, ..CacheSettings::default() };
    Cache::new(settings, Arena::new(LIMIT).expect("memory"))
}

/// Lists an object with a key, header data and content of so many bytes.
fn list(cache: &Arc<Cache<Vec<u8>>>, number: usize, lens: [usize; 3]) -> Arc<Object<Vec<u8>>> {
    let [key, header, content] = lens;
    let key = format!("u{number}/{}\n", "k".repeat(key));
    let room = cache.reserve_now(content, LIMIT);
    let payloads: Payloads = room.map(|room| Payload::Pinned(room.freeze())).into_iter().collect();
    let new = Labelled {
        key: Key::new(0, key.as_bytes()),
        labels: vec![format!("t{number}\n").as_bytes().into()],
        header: vec![b'h'; header],
        header_bytes: header,
        payloads,
        family: Family::default(),
        hint: Hint::default(),
        since: cache.moment(),
    };
    cache.list(new, Millis(1)).expect("nothing was purged")
}

#[test]
fn what_clients_choose_takes_of_the_limit() {
    for lens in [[2000, 100, 2], [10, 4000, 2], [10, 10, 2], [2000, 2000, 2000], [10, 10, 50_000]] {
        let cache = cache();
        for number in 0..2000 {
            drop(list(&cache, number, lens));
            let used = cache.arena().usage().used;
            assert!(used <= LIMIT, "{lens:?}: {used}");
        }
        let held: usize = cache.stats().objects * lens.iter().sum::<usize>();
        assert!(held <= LIMIT, "{lens:?}: {held}");
        let objects = cache.stats().objects;
        assert!(held + objects * 2000 >= LIMIT / 2, "{lens:?}: {objects}");
        assert!(cache.stats().ejections > 0);
        cache.purge_labels(Labels::BeginWith((*b"u").into()));
        cache.sweep();
        assert!(cache.arena().usage().used <= 128 << 10, "{:?}", cache.arena().usage());
    }
}

/// Memory of an object that is still held counts, although the object is not listed any more.
#[test]
fn what_is_not_let_go_counts() {
    let cache = cache();
    let held: Vec<_> = (0..1000).map(|number| list(&cache, number, [2000, 0, 0])).collect();
    let listed = held.iter().filter(|object| !object.is_dropped()).count();
    assert!(listed * 2000 <= LIMIT, "{listed}");
    assert!(list(&cache, 1000, [2000, 0, 0]).is_dropped(), "there is no room");
    drop(held);
    assert!(!list(&cache, 1001, [2000, 0, 0]).is_dropped());
}

#[test]
fn bytes_on_their_way_take_of_the_limit() {
    let cache = cache();
    (0..40).for_each(|number| drop(list(&cache, number, [10, 10, 20_000])));
    assert!(cache.charge(LIMIT / 4 * 3));
    assert!(cache.stats().objects < 40, "others made room");
    assert!(!cache.charge(LIMIT / 2));
    cache.uncharge(LIMIT / 4 * 3);
    assert!(cache.charge(LIMIT / 2));
    cache.uncharge(LIMIT / 2);
}
