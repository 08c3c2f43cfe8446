//! Many requests at random against a model that knows which versions an answer may have at each moment.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use afpa_testkit::{Client, Random, Server};

use crate::origin::{Asked, Origin, Reply, message};

const TARGETS: usize = 24;
const THREADS: usize = 4;

/// Requests in all; more with `AFPA_CACHE_REQUESTS`, of which a million take some minutes.
fn requests() -> u64 {
    let given = std::env::var("AFPA_CACHE_REQUESTS").ok().and_then(|count| count.parse().ok());
    given.unwrap_or(6_000)
}

/// Versions of the targets. A version that has been purged away must not come back.
#[derive(Default)]
struct Versions {
    /// The server's version now.
    current: HashMap<usize, AtomicU64>,
    /// The oldest version that a request that begins now may get.
    least: HashMap<usize, AtomicU64>,
}

impl Versions {
    fn new() -> Self {
        let zeros = || (0..TARGETS).map(|target| (target, AtomicU64::new(0))).collect();
        Self { current: zeros(), least: zeros() }
    }

    fn current(&self, target: usize) -> u64 {
        self.current[&target].load(Ordering::SeqCst)
    }
}

fn target_of(asked: &Asked) -> usize {
    let digits = asked.target.trim_start_matches("/t");
    digits.parse().expect("one of ours")
}

/// The fields of a target's answers, which decide whether and how they are kept.
fn fields(target: usize, version: u64) -> String {
    let control = match target % 6 {
        0 => "max-age=600",
        1 => "max-age=600, stale-while-revalidate=60",
        2 => "no-cache",
        3 => "private",
        4 => "max-age=0, stale-if-error=600",
        _ => "s-maxage=600",
    };
    let vary = if target.is_multiple_of(5) { "Vary: X-Vary\r\n" } else { "" };
    format!(
        "Cache-Control: {control}\r\nETag: \"{version}\"\r\nCache-Tag: tag{}\r\n{vary}",
        target % 4
    )
}

fn origin(versions: &Arc<Versions>) -> Origin {
    let versions = Arc::clone(versions);
    Origin::start(move |asked: &Asked| {
        let target = target_of(asked);
        let version = versions.current(target);
        let who = asked.field("X-Vary").unwrap_or_default();
        let fields = fields(target, version);
        match asked.field("If-None-Match") {
            Some(tag) if tag == format!("\"{version}\"") => {
                Reply::Bytes(format!("HTTP/1.1 304 X\r\n{fields}\r\n").into_bytes())
            }
            _ => Reply::Bytes(message(200, &fields, &format!("{target} {version} {who}"))),
        }
    })
}

/// Changes a target at the server, purges it, and from then on asks for the new version.
fn change(proxy: &Server, versions: &Versions, target: usize, random: &mut Random) {
    let new = versions.current[&target].fetch_add(1, Ordering::SeqCst) + 1;
    let query = match random.below(3) {
        0 => format!("path=/t{target}"),
        1 => "host=test".to_owned(),
        _ => format!("tag=tag{}", target % 4),
    };
    let mut control = Client::connect(&proxy.control()).expect("the control socket");
    let request =
        format!("POST /purge?{query} HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(control.exchange(request).status, 200);
    versions.least[&target].fetch_max(new, Ordering::SeqCst);
}

/// One request, and whether its answer is one that it may have.
fn ask(client: &mut Client, versions: &Versions, random: &mut Random) {
    let target = random.below(TARGETS);
    let who = ["a", "b", "c"][random.below(3)];
    let least = versions.least[&target].load(Ordering::SeqCst);
    let extra = match random.below(8) {
        0 => "Range: bytes=0-1\r\n",
        1 => "If-None-Match: \"never\"\r\n",
        _ => "",
    };
    let answer = client.get_with(&format!("/t{target}"), &format!("X-Vary: {who}\r\n{extra}"));
    let most = versions.current(target);
    let tag = answer.field("ETag").expect("an entity tag").trim_matches('"').to_owned();
    let version: u64 = tag.parse().expect("a version");
    assert!(
        (least..=most).contains(&version),
        "target {target}: version {version} is not one of {least} to {most}: {answer:?}"
    );
    if answer.status == 200 {
        let expected = format!("{target} {version} ");
        let text = answer.text();
        let own = text.strip_prefix(&expected).unwrap_or_else(|| panic!("{text:?}"));
        assert!(!target.is_multiple_of(5) || own == who, "target {target}: {own} is not for {who}");
    } else {
        assert_eq!(answer.status, 206, "{answer:?}");
    }
}

#[test]
fn no_answer_is_older_than_the_last_purge_before_its_request() {
    let versions = Arc::new(Versions::new());
    let origin = origin(&versions);
    let proxy = Arc::new(origin.proxy(""));
    let seed = Random::seed_or(20_261_123);
    println!("AFPA_SEED={seed}");
    let failed = Arc::new(Mutex::new(false));
    let threads = (0..THREADS).map(|number| {
        let (proxy, versions) = (Arc::clone(&proxy), Arc::clone(&versions));
        std::thread::spawn(move || {
            let mut random = Random::new(seed.wrapping_add(number as u64));
            let mut client = proxy.connect();
            for _ in 0..requests() / THREADS as u64 {
                match random.below(50) {
                    0 => change(&proxy, &versions, random.below(TARGETS), &mut random),
                    1 => client = proxy.connect(),
                    _ => ask(&mut client, &versions, &mut random),
                }
            }
        })
    });
    let threads: Vec<_> = threads.collect();
    for thread in threads {
        *failed.lock().expect("no panic") |= thread.join().is_err();
    }
    assert!(!*failed.lock().expect("no panic"), "see above");
    let asked: usize = (0..TARGETS).map(|target| origin.count(&format!("/t{target}"))).sum();
    assert!((asked as u64) < requests(), "some were answered from the cache");
}
