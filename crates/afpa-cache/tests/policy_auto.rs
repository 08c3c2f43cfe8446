//! `policy = "auto"` on traces: near the best static policy on each, and ahead of all of them where the load
//! changes. The figures are the same on every machine; `--nocapture` shows them.

mod traces;

use afpa_cache::PolicyKind;
use afpa_cache::policy::auto::{Change, replay_auto};
use afpa_cache::policy::replay::{ReplayResult, Request, compare, line, table};

use traces::{Random, Zipf, news, specweb96, unit};

/// Requests between two judgements.
const PERIOD: usize = 10_000;

#[test]
fn it_is_near_the_best_where_nothing_changes() {
    let mut random = Random(11);
    let zipf = Zipf::new(20_000, 0.9);
    let trace: Vec<_> = (0..200_000).map(|_| unit(zipf.draw(&mut random))).collect();
    Run::of("static Zipf", 1_000, &trace).is_near_the_best(96);

    let mut trace = Vec::new();
    for _ in 0..30 {
        trace.extend((0..5_000).map(|_| unit(zipf.draw(&mut random))));
        trace.extend((0..2_500).map(|page| unit(1_000_000 + page)));
    }
    Run::of("Zipf with scans", 1_000, &trace).is_near_the_best(96);

    let directories = Zipf::new(400, 0.8);
    let trace: Vec<_> = (0..200_000).map(|_| specweb96(&directories, &mut random)).collect();
    Run::of("SPECweb96 sizes", 24 << 20, &trace).is_near_the_best(96);

    Run::of("news", 2_000_000, &news(200_000, 0, 400)).is_near_the_best(95);
}

#[test]
fn it_follows_a_working_set_that_changes() {
    let mut random = Random(12);
    let zipf = Zipf::new(5_000, 0.9);
    let mut trace = Vec::new();
    for phase in 0..10 {
        trace.extend((0..20_000).map(|_| unit(phase * 5_000 + zipf.draw(&mut random))));
    }
    Run::of("working set changes", 500, &trace).is_near_the_best(96);
}

/// Sizes as in SPECweb96, where classes win, and news, where recency wins, by turns.
#[test]
fn it_is_ahead_of_every_policy_where_the_load_changes() {
    let mut random = Random(13);
    let directories = Zipf::new(400, 0.8);
    let mut trace = Vec::new();
    for phase in 0..4 {
        trace.extend((0..100_000).map(|_| specweb96(&directories, &mut random)));
        trace.extend(news(100_000, (phase + 1) * 1_000_000, 4_000));
    }
    let run = Run::of("SPECweb96 sizes and news by turns", 24 << 20, &trace);
    for (kind, result) in run.policies {
        assert!(run.auto.hits > result.hits, "{kind} alone does better");
    }
    assert!(run.changes.len() >= 7, "{:?}", run.changes);
    assert!(run.changes.len() <= 20, "it wavers: {:?}", run.changes);
}

struct Run {
    policies: [(PolicyKind, ReplayResult); PolicyKind::ALL.len()],
    auto: ReplayResult,
    changes: Vec<(usize, Change)>,
}

impl Run {
    fn of(title: &str, capacity: u64, trace: &[Request]) -> Run {
        let policies = compare(capacity, trace);
        // It begins with the policy that is worst on most of them.
        let (auto, changes) = replay_auto(PolicyKind::Lru, capacity, trace, PERIOD);
        let mut text = format!("{title}\n{}", table(&policies));
        line(&mut text, "auto", &auto);
        changes.iter().for_each(|(at, change)| text.push_str(&format!("  {at:>8}: {change}\n")));
        println!("{text}");
        Run { policies, auto, changes }
    }

    #[track_caller]
    fn is_near_the_best(&self, percent: u64) {
        let best = self.policies.iter().map(|(_, result)| result.hits).max().unwrap_or_default();
        let hits = self.auto.hits;
        assert!(hits >= best * percent / 100, "auto has {hits} hits, the best {best}");
    }
}
