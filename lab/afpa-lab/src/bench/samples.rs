//! From samples to medians, spreads and ratios. No clock, no process, no file.

use serde::Serialize;

use super::{Case, Metric, Sample};
use crate::stats::{Spread, pairs};

/// Every measurement of a run, in the order in which they were taken.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub struct Samples(pub Vec<Sample>);

impl Samples {
    /// The measurements of one server in one case.
    pub fn all<'s>(&'s self, case: &'s str, server: &'s str) -> impl Iterator<Item = &'s Sample> {
        self.0.iter().filter(move |sample| sample.case == case && sample.server == server)
    }

    /// A figure of one server in one case, with the rounds that it is from.
    pub fn of(&self, case: &str, server: &str, metric: Metric) -> Vec<(u32, f64)> {
        self.all(case, server).map(|sample| (sample.round, metric.of(sample))).collect()
    }

    /// The same without the rounds: lowest, median, highest.
    pub fn spread(&self, case: &str, server: &str, metric: Metric) -> Option<Spread> {
        Spread::of(self.of(case, server, metric).into_iter().map(|(_, figure)| figure))
    }

    /// One server's figure over another's, round by round: a cause that slows a whole round cancels out.
    pub fn ratios(&self, case: &str, own: &str, other: &str, metric: Metric) -> Vec<f64> {
        pairs(&self.of(case, own, metric), &self.of(case, other, metric))
    }

    /// Lowest, median and highest of [`ratios`](Self::ratios).
    pub fn ratio(&self, case: &str, own: &str, other: &str, metric: Metric) -> Option<Spread> {
        Spread::of(self.ratios(case, own, other, metric))
    }

    /// Every server had its turn, in as many rounds as the others.
    pub fn is_complete(&self, case: &Case) -> bool {
        let count = |server: &String| self.all(&case.name, server).count();
        let first = case.servers.first().map_or(0, count);
        first > 0 && case.servers.iter().all(|server| count(server) == first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::sample::tests::sample;

    #[test]
    fn ratios_are_taken_round_by_round() {
        // A machine that halves its speed between rounds leaves the ratio alone.
        let samples = Samples(vec![
            sample("small", "nginx", 1, 200),
            sample("small", "afpa", 1, 300),
            sample("small", "afpa", 2, 150),
            sample("small", "nginx", 2, 100),
        ]);
        let figures = |server| samples.of("small", server, Metric::Requests);
        assert_eq!(figures("afpa"), [(1, 300.0), (2, 150.0)]);
        let ratio = |server| samples.ratio("small", server, "nginx", Metric::Requests).unwrap();
        assert_eq!(ratio("afpa"), Spread { min: 1.5, median: 1.5, max: 1.5 });
        assert_eq!(ratio("nginx").median, 1.0);
    }

    #[test]
    fn a_case_is_complete_when_no_server_lacks_a_round() {
        let case = Case::new("small", "small", &["afpa", "nginx"], Vec::new());
        let mut samples = Samples(vec![sample("small", "afpa", 1, 1)]);
        assert!(!Samples::default().is_complete(&case) && !samples.is_complete(&case));
        samples.0.push(sample("small", "nginx", 1, 1));
        assert!(samples.is_complete(&case));
        samples.0.push(sample("small", "nginx", 2, 1));
        assert!(!samples.is_complete(&case));
    }
}
