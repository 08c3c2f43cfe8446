use std::io;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use afpa_cache::root::{DocumentRoot, RootSettings};
use afpa_cache::watch::WatchSettings;
use afpa_cache::{Arena, CacheSettings, Millis, Payload};
use afpa_framework::Helpers;
use afpa_http::{Coding, CodingSet, FieldSlots, RequestLimits, request};

use super::*;
use crate::common::Common;
use crate::doc_root::DocRoot;
use crate::load::compress::{Encode, compress};
use crate::load::{Loaded, load};
use crate::settings::DocRootSettings;

const BROWSER: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip, br, zstd\r\n\r\n";
const PLAIN: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
const PATIENCE: Duration = Duration::from_secs(20);

/// A document root whose encoder is the test's.
struct Rig {
    folder: tempfile::TempDir,
    doc_root: Arc<DocRoot>,
    compressor: Arc<Compressor>,
    now: Millis,
}

impl Rig {
    fn new(queue: usize, encode: Box<Encode>) -> Rig {
        let folder = tempfile::tempdir().expect("a folder");
        let root = DocumentRoot::open(folder.path(), RootSettings::default()).expect("a root");
        let cache = CacheSettings { pin_threshold: 64 << 10, ..CacheSettings::default() };
        let cache = Cache::new(cache, Arena::new(16 << 20).expect("an arena"));
        let compressor = Compressor::start_with(queue, encode).expect("a thread");
        // A test invalidates the files that it changes itself, so it knows when that is.
        let watch = WatchSettings { enabled: false, ..WatchSettings::default() };
        let settings = DocRootSettings::default();
        let thread = Arc::default();
        let common = Common::start(cache, Arc::clone(&compressor), thread, watch, false);
        let doc_root = DocRoot::open_in(root, settings, &common.expect("a thread"), 0);
        Rig { folder, doc_root: doc_root.expect("a document root"), compressor, now: Millis(5000) }
    }

    /// Writes a file under a new inode, so that the versions of one second differ.
    fn write(&self, path: &str, content: &str) {
        let at = self.folder.path().join(path.trim_start_matches('/'));
        let new = at.with_extension("new");
        std::fs::write(&new, content).expect("a file");
        std::fs::rename(&new, &at).expect("moves");
        self.doc_root.cache().invalidate(0, path.as_bytes());
    }

    /// The object that answers a request.
    fn get(&self, path: &str, head: &[u8]) -> Arc<Object<HttpHeader>> {
        let work =
            load(Arc::clone(&self.doc_root), path.as_bytes().into(), Helpers::new(8), self.now);
        let object = match block_on(work) {
            Loaded::Object(object) => object,
            other => panic!("{path}: {other:?}"),
        };
        let mut slots = FieldSlots::default();
        let parsed = request::parse(head, &mut slots, &RequestLimits::default());
        self.doc_root.note(&object, &parsed.expect("is right").expect("is whole"));
        object
    }

    /// Asks twice, which orders the codings.
    fn twice(&self, path: &str) {
        self.get(path, BROWSER);
        self.get(path, BROWSER);
    }

    #[track_caller]
    fn until(&self, what: &str, holds: impl Fn(CompressorStats) -> bool) {
        until(what, || holds(self.compressor.stats()));
    }
}

#[track_caller]
fn until(what: &str, holds: impl FnMut() -> bool) {
    afpa_testkit::eventually_within(PATIENCE, what, holds);
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

fn text(word: &str) -> String {
    word.repeat(1000)
}

fn content(object: &Object<HttpHeader>, coding: Coding) -> Option<Vec<u8>> {
    let variant = object.header().variant(coding)?;
    match &object.payloads()[variant.payload] {
        Payload::Pinned(bytes) => Some(bytes.to_vec()),
        Payload::File(..) => panic!("small content is pinned"),
    }
}

/// An encoder that reports each call, and waits for permission to go on.
struct Gate {
    called: Receiver<Coding>,
    go: Sender<()>,
}

impl Gate {
    fn new() -> (Gate, Box<Encode>) {
        let (calls, called) = channel();
        let (go, gone) = channel();
        let encode = move |coding, level, content: &[u8]| {
            let _ = calls.send(coding);
            let _ = gone.recv();
            compress(coding, level, content)
        };
        (Gate { called, go }, Box::new(encode))
    }

    fn called(&self) -> Coding {
        self.called.recv_timeout(PATIENCE).expect("the encoder is called")
    }
}

/// `compress`, counted.
fn counted() -> (Arc<AtomicU64>, Box<Encode>) {
    let calls = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&calls);
    let encode = move |coding, level, content: &[u8]| {
        counter.fetch_add(1, Ordering::SeqCst);
        compress(coding, level, content)
    };
    (calls, Box::new(encode))
}

#[test]
fn nobody_waits_for_an_encoder_and_each_coding_is_made_once() {
    let (gate, encode) = Gate::new();
    let rig = Rig::new(8, encode);
    rig.write("/a.txt", &text("word "));
    let first = rig.get("/a.txt", BROWSER);
    assert_eq!(first.header().available(), CodingSet::IDENTITY);
    assert!(first.header().varies(), "a cache on the way must know that codings will come");
    assert_eq!(
        rig.compressor.stats(),
        CompressorStats::default(),
        "asked for once: nothing is made"
    );

    rig.get("/a.txt", BROWSER);
    let begun = gate.called();
    // The encoder stands still, and still there is an answer.
    for _ in 0..100 {
        let answer = rig.get("/a.txt", BROWSER);
        assert!(Arc::ptr_eq(&answer, &first), "nothing changes before it is whole");
    }
    assert_eq!(rig.compressor.stats().waiting, 1, "ordered once");
    for _ in 0..3 {
        gate.go.send(()).expect("the encoder waits");
    }
    rig.until("the codings are made", |stats| stats.done == 1);

    let made = rig.get("/a.txt", BROWSER);
    for coding in [Coding::Gzip, Coding::Brotli, Coding::Zstd] {
        let bytes = content(&made, coding).expect("it was made");
        let variant = made.header().variant(coding).expect("it was made");
        assert!(bytes.len() < 5000 && variant.len == bytes.len() as u64, "{coding:?}");
        assert!(!variant.stored, "{coding:?}");
    }
    let tag = |object: &Object<HttpHeader>| {
        object.header().variant(Coding::Identity).expect("is there").etag.as_bytes().to_vec()
    };
    assert_eq!(content(&made, Coding::Identity), content(&first, Coding::Identity));
    assert_eq!(tag(&made), tag(&first));
    assert_eq!(made.header().last_modified, first.header().last_modified);
    let others: Vec<_> = gate.called.try_iter().collect();
    assert!(!others.contains(&begun) && others.len() == 2, "{begun:?}, then {others:?}");
    assert_eq!(rig.doc_root.cache().stats().fills, 1, "the file was read once");
}

#[test]
fn who_accepts_no_coding_orders_none_but_is_one_who_asked() {
    let (calls, encode) = counted();
    let rig = Rig::new(8, encode);
    rig.write("/a.txt", &text("word "));
    for _ in 0..10 {
        rig.get("/a.txt", PLAIN);
    }
    assert_eq!(rig.compressor.stats(), CompressorStats::default());
    rig.get("/a.txt", BROWSER);
    rig.until("the codings are made", |stats| stats.done == 1);
    assert_eq!((calls.load(Ordering::SeqCst), rig.compressor.stats().codings), (3, 3));
}

#[test]
fn what_is_not_worth_it_is_tried_once_and_varies_no_more() {
    let calls = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&calls);
    let rig = Rig::new(
        8,
        Box::new(move |_, _, _: &[u8]| {
            counter.fetch_add(1, Ordering::SeqCst);
            Ok(None)
        }),
    );
    rig.write("/a.txt", &text("word "));
    rig.get("/a.txt", BROWSER);
    assert!(rig.get("/a.txt", BROWSER).header().varies());
    rig.until("the codings are tried", |stats| stats.done == 1);
    for _ in 0..10 {
        assert!(!rig.get("/a.txt", BROWSER).header().varies());
    }
    assert_eq!((calls.load(Ordering::SeqCst), rig.compressor.stats().codings), (3, 0));
}

#[test]
fn what_is_stored_is_there_at_once_and_not_made() {
    let (calls, encode) = counted();
    let rig = Rig::new(8, encode);
    rig.write("/a.txt", &text("word "));
    rig.write("/a.txt.gz", "stored as gzip");
    let first = rig.get("/a.txt", BROWSER);
    assert_eq!(content(&first, Coding::Gzip).as_deref(), Some(&b"stored as gzip"[..]));
    rig.get("/a.txt", BROWSER);
    rig.until("the others are made", |stats| stats.done == 1);
    let made = rig.get("/a.txt", BROWSER);
    assert_eq!(content(&made, Coding::Gzip).as_deref(), Some(&b"stored as gzip"[..]));
    assert!(made.header().variant(Coding::Brotli).is_some());
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[test]
fn a_change_under_way_is_never_overtaken_by_the_bytes_before() {
    let (gate, encode) = Gate::new();
    let rig = Rig::new(8, encode);
    rig.write("/a.txt", &text("old "));
    rig.get("/a.txt", BROWSER);
    rig.get("/a.txt", BROWSER);
    gate.called();
    rig.write("/a.txt", &text("new "));
    let new = rig.get("/a.txt", BROWSER);
    assert_eq!(content(&new, Coding::Identity), Some(text("new ").into_bytes()));
    gate.go.send(()).expect("the encoder waits");
    rig.until("the work comes to nothing", |stats| stats.overtaken == 1);
    assert_eq!(gate.called.try_iter().count(), 0, "nor are the other codings made");
    let now = rig.get("/a.txt", PLAIN);
    assert!(Arc::ptr_eq(&now, &new), "the new object stays");
}

#[test]
fn a_change_after_the_last_encoder_is_noticed_too() {
    // The change comes when nothing is left to do but to replace.
    let (gate, encode) = Gate::new();
    let rig = Rig::new(8, encode);
    rig.write("/a.txt", &text("old "));
    rig.get("/a.txt", BROWSER);
    rig.get("/a.txt", BROWSER);
    for last in [false, false, true] {
        gate.called();
        if last {
            rig.write("/a.txt", &text("new "));
        }
        gate.go.send(()).expect("the encoder waits");
    }
    rig.until("the work comes to nothing", |stats| stats.overtaken == 1);
    let now = rig.get("/a.txt", PLAIN);
    assert_eq!(content(&now, Coding::Identity), Some(text("new ").into_bytes()));
    assert_eq!(now.header().available(), CodingSet::IDENTITY);
}

#[test]
fn a_full_queue_refuses_and_a_later_request_orders_again() {
    let (gate, encode) = Gate::new();
    let rig = Rig::new(1, encode);
    for path in ["/a.txt", "/b.txt", "/c.txt"] {
        rig.write(path, &text(path));
    }
    rig.twice("/a.txt");
    gate.called();
    rig.twice("/b.txt");
    rig.twice("/c.txt");
    let stats = rig.compressor.stats();
    assert_eq!((stats.waiting, stats.refused), (2, 1), "one at work, one in the queue");
    for _ in 0..6 {
        gate.go.send(()).expect("the encoder waits");
    }
    rig.until("there is room", |stats| stats.done == 2);
    (0..3).for_each(|_| gate.go.send(()).expect("the encoder waits"));
    rig.get("/c.txt", BROWSER);
    rig.until("it had its turn", |stats| stats.done == 3);
}

#[test]
fn orders_that_wait_hold_no_memory() {
    let (gate, encode) = Gate::new();
    let rig = Rig::new(100, encode);
    rig.write("/a.txt", &text("word "));
    rig.twice("/a.txt");
    gate.called();
    let used = || rig.doc_root.cache().arena().usage().used;
    let at_work = used();
    let paths: Vec<_> = (0..50).map(|n| format!("/{n}.txt")).collect();
    paths.iter().for_each(|path| rig.write(path, &text("many words ")));
    for path in &paths {
        rig.twice(path);
    }
    assert!(used() > at_work);
    rig.doc_root.cache().invalidate_tree(0, b"");
    assert_eq!((used(), rig.compressor.stats().waiting), (at_work, 51));
    gate.go.send(()).expect("the encoder waits");
    rig.until("they come to nothing", |stats| stats.overtaken == 51);
    assert_eq!(used(), 0);
}

#[test]
fn an_encoder_that_fails_costs_its_object_the_codings_and_no_other() {
    let encode = |coding, level, content: &[u8]| match content.first() {
        Some(b'p') => panic!("expected by this test"),
        Some(b'e') => Err(io::Error::other("expected by this test")),
        _ => compress(coding, level, content),
    };
    let rig = Rig::new(8, Box::new(encode));
    for word in ["panic ", "error ", "words "] {
        rig.write("/a.txt", &text(word));
        rig.twice("/a.txt");
        rig.until("it is over", |stats| stats.waiting == 0 && stats.done + stats.failed > 0);
        let object = rig.get("/a.txt", PLAIN);
        assert_eq!(content(&object, Coding::Identity), Some(text(word).into_bytes()));
    }
    rig.until("two failed", |stats| (stats.failed, stats.done) == (2, 1));
}

#[test]
fn content_that_is_not_pinned_is_read_as_it_was_opened() {
    let (_, encode) = counted();
    let rig = Rig::new(8, encode);
    let long = "a longer text ".repeat(20_000);
    rig.write("/a.txt", &long);
    let object = rig.get("/a.txt", BROWSER);
    assert!(matches!(object.payloads(), [Payload::File(..)]), "{object:?}");
    rig.get("/a.txt", BROWSER);
    rig.until("the codings are made", |stats| stats.done == 1);
    let made = rig.get("/a.txt", BROWSER);
    let coded = content(&made, Coding::Zstd).expect("it was made");
    assert_eq!(zstd::stream::decode_all(&coded[..]).expect("decodes"), long.as_bytes());
}

#[test]
fn the_thread_ends_with_its_sites() {
    let (calls, encode) = counted();
    let alive = Arc::downgrade(&calls);
    drop(calls);
    let Rig { doc_root, compressor, .. } = Rig::new(8, encode);
    drop((doc_root, compressor));
    until("the encoder is gone", || alive.strong_count() == 0);
}

/// One thread writes versions of a file and says so; another asks. No answer is older than the last version
/// that was announced before it was asked for, and all codings of an answer are of one version.
#[test]
fn no_coding_is_older_than_the_last_announced_change() {
    const VERSIONS: usize = 40;
    // A coding that says what it was made of.
    let rig = Rig::new(8, Box::new(|_, _, content: &[u8]| Ok(Some(content[..10].to_vec()))));
    let content_of = |version: usize| format!("{version:010}").repeat(50);
    let announced = Mutex::new(0);
    rig.write("/a.txt", &content_of(0));
    let coded = thread::scope(|scope| {
        let asker = scope.spawn(|| {
            let mut coded = 0;
            loop {
                let oldest = *announced.lock().expect("a number");
                let object = rig.get("/a.txt", BROWSER);
                let identity = content(&object, Coding::Identity).expect("is there");
                let version = &identity[..10];
                let number = String::from_utf8_lossy(version).parse::<usize>().expect("a number");
                assert!(number >= oldest, "{number} after {oldest} was announced");
                for coding in [Coding::Gzip, Coding::Brotli, Coding::Zstd] {
                    if let Some(bytes) = content(&object, coding) {
                        assert_eq!(bytes, version, "{coding:?}");
                        coded += 1;
                    }
                }
                if number == VERSIONS {
                    return coded;
                }
            }
        });
        for version in 1..=VERSIONS {
            rig.write("/a.txt", &content_of(version));
            *announced.lock().expect("a number") = version;
            // A file is given a tick to age before it is read: some versions live that long, some do not.
            thread::sleep(Duration::from_millis(10 * (version as u64 % 5)));
        }
        asker.join().expect("all answers are right")
    });
    assert!(coded > 0, "no coded answer was seen: the test showed nothing");
}

#[test]
fn a_reload_keeps_nothing_of_the_site_before_alive() {
    let (gate, encode) = Gate::new();
    let rig = Rig::new(8, encode);
    rig.write("/a.txt", &text("word "));
    rig.twice("/a.txt");
    gate.called();
    let Rig { doc_root, compressor, .. } = rig;
    let gone = Arc::downgrade(&doc_root);
    drop(doc_root);
    // The work that was begun is done, then nobody holds the document root; others may still enqueue.
    drop(gate);
    until("the document root is let go", || {
        gone.strong_count() == 0 && compressor.stats().waiting == 0
    });
}
