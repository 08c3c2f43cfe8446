//! Which policy would have done best lately.

use std::fmt;

use super::replay::Replay;
use super::trace::{Sample, Trace};
use super::{Policy, PolicyKind};

/// Replays the requests of a cache through every policy, each with a cache of the same size, and says when to change
/// the policy in use.
///
/// The replayed caches stay from one trace to the next, so they are as warm as the real one. The judge counts the
/// misses of the recent past: those of a trace count half when the next one has come, and so on.
pub struct Judge {
    current: PolicyKind,
    candidates: Vec<Candidate>,
    sample: Sample,
    /// Requests, weighted like the misses.
    requests: f64,
    /// The policy that led in the last judgements, and in how many.
    leader: (PolicyKind, u32),
}

struct Candidate {
    kind: PolicyKind,
    replay: Replay<Box<dyn Policy>>,
    misses: f64,
}

/// A change of policy, and its reason.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The policy that was in use.
    pub from: PolicyKind,
    /// The policy that takes its place.
    pub to: PolicyKind,
    /// The hits of both in the replays, from 0 to 1.
    pub hit_ratios: (f64, f64),
}

/// The results of the latest replays: each policy, and its hits for each request, from 0 to 1.
pub type Standing = [(PolicyKind, f64); PolicyKind::ALL.len()];

/// A policy replaces the current one when it has at least this part fewer misses...
const CLEARLY: f64 = 0.03;
/// ...in so many judgements one after the other...
const IN_A_ROW: u32 = 2;
/// ...or this part fewer in one.
const AT_ONCE: f64 = 0.15;
/// Requests (weighted) below which nothing is decided.
const ENOUGH: f64 = 1_000.0;

impl Judge {
    /// A judge for a cache of `capacity` bytes, `kept_room` of them for objects that are kept always, in which
    /// `current` is in use.
    pub(super) fn new(current: PolicyKind, capacity: u64, kept_room: u64) -> Judge {
        let candidates = PolicyKind::ALL.map(|kind| {
            let replay = Replay::new(kind.build_hinted(kept_room), capacity);
            Candidate { kind, replay, misses: 0.0 }
        });
        let (sample, leader) = (Sample::default(), (current, 0));
        Judge { current, candidates: candidates.into(), sample, requests: 0.0, leader }
    }

    /// Replays the requests since the last time. Slow: for a thread that has time.
    pub fn observe(&mut self, trace: &Trace) {
        if trace.sample != self.sample {
            let parts = trace.sample.parts() / self.sample.parts();
            self.sample = trace.sample;
            for candidate in &mut self.candidates {
                candidate.replay.shrink(parts, |key| trace.sample.holds(key));
            }
        }
        for candidate in &mut self.candidates {
            let before = candidate.replay.result();
            trace.requests.iter().for_each(|request| candidate.replay.serve(request));
            let after = candidate.replay.result();
            let misses = (after.requests - before.requests) - (after.hits - before.hits);
            candidate.misses = candidate.misses / 2.0 + misses as f64;
        }
        let requests: u64 = trace.requests.iter().map(|request| u64::from(request.count)).sum();
        self.requests = self.requests / 2.0 + requests as f64;
    }

    /// The policy to change to, if there is a clearly better one. To be called once after each
    /// [`observe`](Judge::observe).
    pub fn decide(&mut self) -> Option<Change> {
        let misses = |kind| self.misses(kind);
        let best = PolicyKind::ALL.into_iter().min_by(|a, b| misses(*a).total_cmp(&misses(*b)))?;
        let (best_misses, own) = (misses(best), misses(self.current));
        let fewer = 1.0 - best_misses / own.max(1.0);
        if best == self.current || self.requests < ENOUGH || fewer < CLEARLY {
            self.leader = (self.current, 0);
            return None;
        }
        let row = if self.leader.0 == best { self.leader.1 + 1 } else { 1 };
        self.leader = (best, row);
        if row < IN_A_ROW && fewer < AT_ONCE {
            return None;
        }
        let ratio = |misses: f64| 1.0 - misses / self.requests;
        let hit_ratios = (ratio(own), ratio(best_misses));
        let change = Change { from: self.current, to: best, hit_ratios };
        self.current = best;
        self.leader = (best, 0);
        Some(change)
    }

    /// The results of the latest replays; `None` while there were too few requests.
    pub fn standing(&self) -> Option<Standing> {
        let ratio = |kind| (kind, 1.0 - self.misses(kind) / self.requests);
        (self.requests >= ENOUGH).then(|| PolicyKind::ALL.map(ratio))
    }

    fn misses(&self, kind: PolicyKind) -> f64 {
        let candidate = self.candidates.iter().find(|candidate| candidate.kind == kind);
        candidate.map_or(f64::INFINITY, |candidate| candidate.misses)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change { from, to, hit_ratios: (before, after) } = self;
        write!(
            f,
            "{to} in place of {from}: {:.1} % hits, not {:.1} %",
            after * 100.0,
            before * 100.0
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::replay::Request;
    use super::super::trace::Recorder;
    use super::*;

    /// A cycle that is a little longer than the cache: the worst there is for LRU.
    fn cycle(recorder: &mut Recorder) -> Trace {
        (0..4_000).for_each(|key| recorder.note(Request::new(key % 110, 1), 0));
        recorder.take(Vec::new())
    }

    #[test]
    fn a_clear_lead_changes_the_policy_once() {
        let mut judge = Judge::new(PolicyKind::Lru, 100, 0);
        let mut recorder = Recorder::default();
        judge.observe(&cycle(&mut recorder));
        let change = judge.decide().expect("every other policy beats LRU here");
        assert_eq!(change.from, PolicyKind::Lru);
        assert!(change.hit_ratios.1 > change.hit_ratios.0 + 0.1, "{change}");
        for _ in 0..10 {
            judge.observe(&cycle(&mut recorder));
            if let Some(change) = judge.decide() {
                assert_ne!(change.to, PolicyKind::Lru);
            }
        }
    }

    #[test]
    fn equals_stay_as_they_are() {
        let mut judge = Judge::new(PolicyKind::ModifiedLru, 1_000, 0);
        let mut recorder = Recorder::default();
        for _ in 0..10 {
            judge.observe(&cycle(&mut recorder));
            assert_eq!(judge.decide(), None, "everything fits, so all are alike");
        }
        let standing = judge.standing().expect("there were enough requests");
        assert!(standing.iter().all(|(_, ratio)| *ratio > 0.9), "{standing:?}");
    }

    #[test]
    fn few_requests_decide_nothing() {
        let mut judge = Judge::new(PolicyKind::Lru, 10, 0);
        let mut recorder = Recorder::default();
        (0..500).for_each(|key| recorder.note(Request::new(key % 11, 1), 0));
        judge.observe(&recorder.take(Vec::new()));
        assert_eq!(judge.decide(), None);
        assert_eq!(judge.standing(), None);
    }

    #[test]
    fn a_sample_has_the_hit_ratio_of_the_whole() {
        let (mut whole, mut sampled) =
            (Judge::new(PolicyKind::Lru, 2_000, 0), Judge::new(PolicyKind::Lru, 2_000, 0));
        let (mut all, mut some) = (Recorder::default(), Recorder::default());
        let mut state = 1_u64;
        for _ in 0..20 {
            for _ in 0..8_000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // The larger the rank, the rarer.
                let (a, b) = ((state >> 33) % 6_000, (state >> 20) % 6_000);
                let request = Request::new(a.min(b), 1);
                all.note(request, 0);
                some.note(request, 40_000);
            }
            whole.observe(&all.take(Vec::new()));
            sampled.observe(&some.take(Vec::new()));
        }
        assert!(sampled.sample.parts() > 1);
        let (whole, sampled) = (whole.standing().unwrap(), sampled.standing().unwrap());
        for ((kind, whole), (_, sampled)) in whole.into_iter().zip(sampled) {
            assert!((whole - sampled).abs() < 0.05, "{kind}: {whole} and {sampled}");
        }
    }
}
