//! The results of the samples: the server that chooses beside the servers with a fixed strategy.

use serde::Serialize;

use super::contestants::{CHOOSES, FIXED};
use crate::bench::{Case, Metric, Samples};
use crate::stats::{Spread, pairs};

/// One phase.
#[derive(Debug, Clone, Serialize)]
pub struct PhaseFigures {
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Seconds of core time for a request, of the server that chooses.
    pub chooses: Spread,
    /// The same of the servers with a fixed strategy, in the order of their names in [`FIXED`].
    pub fixed: Vec<Spread>,
    /// The better one of these.
    pub best: &'static str,
    /// Core time of the server that chooses over that of the better one, round by round. Above 1 the chooser needs more.
    pub to_best: Spread,
}

/// All phases together, each with the same weight.
#[derive(Debug, Clone, Serialize)]
pub struct Whole {
    /// A server with a fixed strategy.
    pub fixed: &'static str,
    /// Its core time over that of the server that chooses, round by round: the geometric mean over the phases. Above 1
    /// it needs more.
    pub to_chooses: Spread,
}

pub(super) fn phase(samples: &Samples, phase: &Case) -> Option<PhaseFigures> {
    let spread = |server| samples.spread(&phase.name, server, Metric::CoreTime);
    let fixed: Vec<Spread> = FIXED.iter().map(|server| spread(server)).collect::<Option<_>>()?;
    let median = |index: &usize| fixed.get(*index).map_or(f64::MAX, |spread| spread.median);
    let best = (0..FIXED.len()).min_by(|a, b| median(a).total_cmp(&median(b)))?;
    let best = *FIXED.get(best)?;
    Some(PhaseFigures {
        name: phase.name.clone(),
        title: phase.title.clone(),
        chooses: spread(CHOOSES)?,
        to_best: samples.ratio(&phase.name, CHOOSES, best, Metric::CoreTime)?,
        fixed,
        best,
    })
}

pub(super) fn whole<'n>(
    samples: &Samples,
    fixed: &'static str,
    phases: impl Iterator<Item = &'n str> + Clone,
) -> Option<Whole> {
    let means = |server| means(samples, server, phases.clone());
    let to_chooses = Spread::of(pairs(&means(fixed), &means(CHOOSES)))?;
    Some(Whole { fixed, to_chooses })
}

/// The geometric mean of what a request costs in all phases, by round. A round that lacks a phase has none.
fn means<'n>(
    samples: &Samples,
    server: &str,
    phases: impl Iterator<Item = &'n str>,
) -> Vec<(u32, f64)> {
    let mut rounds: std::collections::BTreeMap<u32, Vec<f64>> = std::collections::BTreeMap::new();
    let mut wanted = 0;
    for phase in phases {
        wanted += 1;
        for (round, cost) in samples.of(phase, server, Metric::CoreTime) {
            rounds.entry(round).or_default().push(cost.ln());
        }
    }
    let whole = rounds.into_iter().filter(|(_, costs)| costs.len() == wanted);
    whole.map(|(round, costs)| (round, (costs.iter().sum::<f64>() / wanted as f64).exp())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::sample;

    /// Requests in one second of core time, by phase.
    fn round(server: &str, round: u32, [a, b]: [u64; 2]) -> [crate::bench::Sample; 2] {
        [sample("a", server, round, a), sample("b", server, round, b)]
    }

    fn samples() -> Samples {
        let all = [
            round(CHOOSES, 1, [100, 100]),
            round(FIXED[0], 1, [100, 25]),
            round(FIXED[1], 1, [50, 110]),
        ];
        Samples(all.into_iter().flatten().collect())
    }

    #[test]
    fn a_phase_is_held_against_the_better_fixed_strategy() {
        let found =
            |name: &str| phase(&samples(), &Case::new(name, name, &[], Vec::new())).unwrap();
        assert_eq!(found("a").best, FIXED[0]);
        assert!((found("a").to_best.median - 1.0).abs() < 1e-9);
        assert_eq!(found("b").best, FIXED[1]);
        assert!((found("b").to_best.median - 1.1).abs() < 1e-9);
    }

    #[test]
    fn the_whole_is_the_geometric_mean_of_the_phases() {
        let to =
            |fixed| whole(&samples(), fixed, ["a", "b"].into_iter()).unwrap().to_chooses.median;
        assert!((to(FIXED[0]) - 2.0).abs() < 1e-9);
        assert!((to(FIXED[1]) - (2.0_f64 / 1.1).sqrt()).abs() < 1e-9);
        let mut lacks = samples();
        lacks.0.retain(|sample| sample.case == "a" || sample.server != FIXED[0]);
        assert!(whole(&lacks, FIXED[0], ["a", "b"].into_iter()).is_none());
    }
}
