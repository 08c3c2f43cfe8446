//! Traces replayed through every policy: the strengths of each, and its cost.
//!
//! The traces come from a seeded generator, so the figures are the same on every machine. Run with
//! `--nocapture` to see the tables; `examples/policy_replay.rs` prints one for a trace of your own.

mod traces;

use afpa_cache::PolicyKind;
use afpa_cache::policy::replay::{ReplayResult, Request, compare, replay, table};

use traces::{Random, Zipf, specweb96, unit};

/// Unchanging popularity: the past tells the future, and counting tells it best.
#[test]
fn static_popularity() {
    let mut random = Random(1);
    let zipf = Zipf::new(20_000, 0.9);
    let trace: Vec<_> = (0..150_000).map(|_| unit(zipf.draw(&mut random))).collect();
    let outcomes = show("static Zipf, 20,000 objects of one size", 1000, &trace);
    assert!(outcomes.lfu.hits > outcomes.lru.hits * 105 / 100);
    assert!(outcomes.s3_fifo.hits > outcomes.lru.hits * 105 / 100);
}

/// A crawler walks through the site while others use it. Recency takes each page for the newest
/// favourite; a queue for newcomers lets it pass.
#[test]
fn popularity_with_scans() {
    let mut random = Random(2);
    let zipf = Zipf::new(20_000, 0.9);
    let mut trace = Vec::new();
    for _ in 0..20 {
        trace.extend((0..5000).map(|_| unit(zipf.draw(&mut random))));
        trace.extend((0..2500).map(|page| unit(1_000_000 + page)));
    }
    let outcomes = show("Zipf, with a scan of 2,500 objects now and then", 1000, &trace);
    assert!(outcomes.s3_fifo.hits > outcomes.lru.hits * 110 / 100);
    assert!(outcomes.lfu.hits > outcomes.lru.hits);
    assert_eq!(outcomes.modified_lru, outcomes.lru, "of equal sizes none is preferred");
}

/// The popular objects change every now and then. A policy that never forgets would keep the stars of yesterday.
#[test]
fn shifting_popularity() {
    let mut random = Random(3);
    let zipf = Zipf::new(5_000, 0.9);
    let phase = |phase: u64, random: &mut Random| -> Vec<Request> {
        (0..20_000).map(|_| unit(phase * 5_000 + zipf.draw(random))).collect()
    };
    let trace: Vec<_> = (0..8).flat_map(|number| phase(number, &mut random)).collect();
    let outcomes = show("Zipf over 5,000 objects, all others every 20,000 requests", 500, &trace);
    let best = outcomes.all().into_iter().map(|outcome| outcome.hits).max().unwrap();
    for (kind, outcome) in PolicyKind::ALL.into_iter().zip(outcomes.all()) {
        assert!(outcome.hits > best * 80 / 100, "{kind} does not follow the change");
    }
    // Each phase is as good as the one before: the first, which had nobody to push out, excepted.
    let two = replay(PolicyKind::Lfu.build(), 500, &trace[..40_000]).hits;
    let eight = outcomes.lfu.hits;
    assert!(eight > two * 4 * 90 / 100, "the aged counts block the cache: {two} and then {eight}");
}

/// Sizes as in SPECweb96: four classes from 0.1 KB to 900 KB, each nine sizes, asked for in the ratio
/// 35 : 50 : 14 : 1. The paper's preference for large victims makes room with fewer ejections.
#[test]
fn sizes_of_specweb96() {
    let mut random = Random(4);
    let zipf = Zipf::new(400, 0.8);
    let trace: Vec<_> = (0..150_000).map(|_| specweb96(&zipf, &mut random)).collect();
    let capacity = 24 << 20;
    let outcomes = show("SPECweb96 classes, 400 directories, 24 MB", capacity, &trace);
    assert!(outcomes.modified_lru.ejections < outcomes.lru.ejections * 85 / 100);
    assert!(outcomes.modified_lru.hits > outcomes.lru.hits * 115 / 100);
    // A large file takes the room of a thousand small ones, which are asked for as often each.
    assert!(outcomes.structured.hits > outcomes.s3_fifo.hits * 130 / 100);
    assert!(outcomes.structured.hit_bytes > outcomes.lru.hit_bytes);
    for outcome in outcomes.all() {
        assert!(outcome.hits < outcome.requests && outcome.hit_bytes < outcome.bytes);
        assert_eq!(outcome.requests, 150_000);
    }
}

#[test]
fn a_cache_that_holds_everything_misses_each_object_once() {
    let mut random = Random(5);
    let zipf = Zipf::new(400, 0.8);
    let trace: Vec<_> = (0..20_000).map(|_| specweb96(&zipf, &mut random)).collect();
    let distinct =
        trace.iter().map(|request| request.key).collect::<std::collections::HashSet<_>>();
    for kind in PolicyKind::ALL {
        let outcome = replay(kind.build(), u64::MAX, &trace);
        assert_eq!(outcome.requests - outcome.hits, distinct.len() as u64);
        assert_eq!(outcome.ejections, 0);
    }
}

#[test]
fn an_object_larger_than_the_cache_ejects_nobody() {
    let trace = [unit(1), Request::new(2, 11), unit(1)];
    for kind in PolicyKind::ALL {
        let outcome = replay(kind.build(), 10, &trace);
        assert_eq!((outcome.hits, outcome.ejections), (1, 0), "{kind}");
    }
}

struct Outcomes {
    modified_lru: ReplayResult,
    lru: ReplayResult,
    lfu: ReplayResult,
    s3_fifo: ReplayResult,
    structured: ReplayResult,
}

impl Outcomes {
    fn all(&self) -> [ReplayResult; 5] {
        [self.modified_lru, self.lru, self.lfu, self.s3_fifo, self.structured]
    }
}

fn show(title: &str, capacity: u64, trace: &[Request]) -> Outcomes {
    let outcomes = compare(capacity, trace);
    println!("{title}\n{}", table(&outcomes));
    let [modified_lru, lru, lfu, s3_fifo, structured] = outcomes.map(|(_, outcome)| outcome);
    Outcomes { modified_lru, lru, lfu, s3_fifo, structured }
}
