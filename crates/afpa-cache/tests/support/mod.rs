//! Helpers that the tests of the cache share. Each test file uses a part of them.
#![allow(dead_code)]

use std::fs::File;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use afpa_cache::root::FileBody;
use afpa_cache::{
    Arena, Cache, CacheSettings, Coverage, Fill, Key, Lookup, Millis, Object, Overtaken, Payload,
    Stamp, Ticket, View,
};

pub(crate) const NOW: Millis = Millis(1_000_000);

pub(crate) type Version = u64;

pub(crate) fn cache(settings: CacheSettings, arena_limit: usize) -> Arc<Cache<Version>> {
    Cache::new(settings, Arena::new(arena_limit).unwrap())
}

pub(crate) fn roomy() -> Arc<Cache<Version>> {
    cache(CacheSettings::default(), 16 << 20)
}

/// A view whose owner does not listen.
pub(crate) fn view(cache: &Arc<Cache<Version>>) -> View<Version> {
    cache.view(Box::new(|| {}))
}

/// A view with a count of the calls to it.
pub(crate) fn counted_view(cache: &Arc<Cache<Version>>) -> (View<Version>, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    let view = cache.view(Box::new(move || {
        counter.fetch_add(1, Ordering::SeqCst);
    }));
    (view, calls)
}

pub(crate) fn key(path: &str) -> Key {
    Key::new(0, path.as_bytes())
}

pub(crate) fn lead(cache: &Arc<Cache<Version>>, path: &str) -> Ticket<Version> {
    match cache.begin(key(path), NOW) {
        Fill::Lead(ticket) => ticket,
        other => panic!("{path} is not ours to load: {other:?}"),
    }
}

pub(crate) fn publish(
    ticket: Ticket<Version>,
    version: Version,
    payloads: impl IntoIterator<Item = Payload>,
) -> Result<Arc<Object<Version>>, Overtaken<Version>> {
    ticket.publish(version, payloads, Stamp::default(), Coverage::Watched)
}

/// Loads `path`, which depends on itself, without any payload.
pub(crate) fn load(
    cache: &Arc<Cache<Version>>,
    path: &str,
    version: Version,
) -> Arc<Object<Version>> {
    let ticket = lead(cache, path);
    ticket.depends_on(path.as_bytes());
    publish(ticket, version, []).unwrap()
}

/// Loads `path` with `len` bytes in the arena; `None` when there was no room.
pub(crate) fn load_pinned(
    cache: &Arc<Cache<Version>>,
    path: &str,
    len: usize,
) -> Option<Arc<Object<u64>>> {
    let ticket = lead(cache, path);
    let room = ticket.reserve(len)?;
    Some(publish(ticket, 0, [Payload::Pinned(room.freeze())]).unwrap())
}

/// Loads `path` with `files` open descriptors.
pub(crate) fn load_files(
    cache: &Arc<Cache<Version>>,
    path: &str,
    files: usize,
) -> Arc<Object<Version>> {
    let body = || FileBody::growing(File::open("/dev/null").unwrap(), 0).unwrap();
    let payload = || Payload::File(Arc::new(body()), 0);
    publish(lead(cache, path), 0, (0..files).map(|_| payload())).unwrap()
}

/// The version that the view gives for `path` without a re-check.
pub(crate) fn hit(view: &mut View<Version>, path: &str) -> Option<Version> {
    match view.get(0, path.as_bytes(), NOW) {
        Lookup::Hit(object) => Some(*object.header()),
        Lookup::Recheck(_) | Lookup::Miss => None,
    }
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// A "file" at `/page` that is written and its change announced, again and again, while others load and read it. Once a
/// change was announced, no view may give an earlier version.
#[derive(Default)]
pub(crate) struct Changing {
    file: AtomicU64,
    announced: AtomicU64,
    done: AtomicBool,
}

impl Changing {
    /// Writes the next version and announces it, in one of the ways there are.
    pub(crate) fn change(&self, cache: &Cache<Version>, version: Version) {
        self.file.store(version, Ordering::SeqCst);
        match version % 3 {
            0 => cache.invalidate(0, b"/page"),
            1 => cache.invalidate_tree(0, b"/"),
            _ => _ = cache.purge(&key("/page")),
        }
        self.announced.store(version, Ordering::SeqCst);
        if version.is_multiple_of(16) {
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// Reads through the view, and loads a missing object, `len` bytes of it. True: it was a hit.
    pub(crate) fn read(
        &self,
        cache: &Arc<Cache<Version>>,
        view: &mut View<Version>,
        len: usize,
    ) -> bool {
        let oldest = self.announced.load(Ordering::SeqCst);
        match view.get(0, b"/page", NOW) {
            Lookup::Hit(object) => {
                assert!(*object.header() >= oldest, "stale");
                return true;
            }
            Lookup::Recheck(_) => panic!("nothing was lost"),
            Lookup::Miss => {}
        }
        if let Fill::Lead(ticket) = cache.begin(key("/page"), NOW) {
            ticket.depends_on(b"/page");
            let version = self.file.load(Ordering::SeqCst);
            thread::yield_now();
            let room = ticket.reserve(len).unwrap();
            let _ = publish(ticket, version, [Payload::Pinned(room.freeze())]);
        }
        view.release_dropped();
        false
    }

    pub(crate) fn end(&self) {
        self.done.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.done.load(Ordering::SeqCst)
    }
}

/// No view or waiter holds a dropped object.
#[track_caller]
pub(crate) fn assert_all_is_let_go(cache: &Cache<Version>) {
    cache.purge(&key("/page"));
    assert_eq!(cache.stats().pinned_bytes, 0, "somebody still holds a dropped object");
}
