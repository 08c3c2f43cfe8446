//! The last lines: AFPA beside each other proxy, round by round. No clock, no process, no file.

use crate::bench::{Metric, Samples};
use crate::peers::{CaseSummary, MetricSummary, Summary, short};
use crate::stats::Spread;

const OURS: [&str; 2] = ["afpa", "afpa-kernel"];
/// Fewer measurements have no calm quarter.
const MANY: usize = 8;

/// One line for each case and other proxy.
pub(super) fn lines(summary: &Summary) -> Vec<String> {
    let (ours, others): (Vec<&String>, Vec<&String>) =
        summary.servers.iter().partition(|name| OURS.contains(&name.as_str()));
    let mut lines = Vec::new();
    for case in &summary.cases {
        for own in &ours {
            lines.extend(others.iter().map(|other| line(case, own, other)));
        }
    }
    lines
}

fn line(case: &CaseSummary, own: &str, other: &str) -> String {
    let shown = case.metrics.iter().map(|metric| {
        let (own, other) = (values(metric, own), values(metric, other));
        let calm = calm(metric.metric, own, other);
        format!("{} {}{}", short(metric.metric), ratio(own, other), calm.unwrap_or_default())
    });
    format!("{}: {own} to {other}: {}", case.title, shown.collect::<Vec<_>>().join(", "))
}

fn values<'m>(metric: &'m MetricSummary, name: &str) -> &'m [f64] {
    metric.server(name).map_or(&[], |figures| figures.values.as_slice())
}

/// Median of the rounds' own ratios, and their smallest and largest.
fn ratio(own: &[f64], other: &[f64]) -> String {
    let pairs = own.iter().zip(other).filter(|(_, base)| **base != 0.0);
    match Spread::of(pairs.map(|(own, base)| own / base)) {
        Some(Spread { min, median, max }) => format!("{median:.2}x ({min:.2} to {max:.2})"),
        None => "-".to_owned(),
    }
}

/// For a latency that was measured many times: the ratio of the lower quartiles. A machine that stands still now and
/// then spoils the other quartiles.
fn calm(metric: Metric, own: &[f64], other: &[f64]) -> Option<String> {
    if metric.more_is_better() || own.len() < MANY {
        return None;
    }
    let ratio = lower_quartile(own)? / lower_quartile(other)?;
    Some(format!(" and in the calm quarter {ratio:.2}x"))
}

/// The lower quartile, interpolated between two figures: of n figures, number (n + 1) / 4 in their order.
fn lower_quartile(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1).filter(|last| *last > 0)?;
    let place = (sorted.len() + 1) as f64 / 4.0;
    let below = (place as usize).clamp(1, last);
    let (low, high) = (*sorted.get(below - 1)?, *sorted.get(below)?);
    Some(low + (high - low) * (place - below as f64))
}

/// Requests a second for an open loop: a share of what the least capable proxy answered in the median round of a closed
/// one. `None` when that was not measured.
pub(super) fn rate(of: &str, share: f64, samples: &Samples, proxies: &[String]) -> Option<f64> {
    let most = proxies.iter().map(|name| Some(samples.spread(of, name, Metric::Requests)?.median));
    let least = most.collect::<Option<Vec<f64>>>()?.into_iter().min_by(f64::total_cmp)?;
    Some(share * least)
}

#[cfg(test)]
mod tests {
    use afpa_generator::{Latency, Object};

    use super::*;
    use crate::bench::{Case, Sample, sample};

    #[test]
    fn a_rate_is_a_share_of_the_slowest_s_median() {
        let rounds = (1..).zip([900, 1000, 5000]);
        let mut samples: Vec<Sample> =
            rounds.map(|(round, requests)| sample("tiny", "a", round, requests)).collect();
        samples.extend((1..=3).map(|round| sample("tiny", "b", round, 2000)));
        let names = ["a".to_owned(), "b".to_owned()];
        let samples = Samples(samples);
        assert_eq!(rate("tiny", 0.6, &samples, &names), Some(600.0));
        assert_eq!(rate("page", 0.6, &samples, &names), None);
    }

    #[test]
    fn lines_compare_round_by_round() {
        let one = |server: &str, round, requests| Sample {
            latency: Latency { p99: 2000.0, ..Latency::default() },
            ..sample("tiny", server, round, requests)
        };
        let samples = Samples(vec![
            one("afpa", 1, 100),
            one("afpa", 2, 220),
            one("nginx", 1, 100),
            one("nginx", 2, 200),
        ]);
        let case = Case {
            metrics: &[Metric::Requests, Metric::P99],
            ..Case::new("tiny", "Tiny", &["afpa", "nginx"], vec![(1, Object::new("/", 1))])
        };
        let summary = Summary::of(&samples, &case.servers.clone(), &[case], "haproxy").unwrap();
        let expected =
            "Tiny: afpa to nginx: requests/s 1.05x (1.00 to 1.10), p99 1.00x (1.00 to 1.00)";
        assert_eq!(lines(&summary), [expected]);
    }

    #[test]
    fn many_turns_have_a_calm_quarter() {
        let own = [50.0, 51.0, 49.0, 50.0, 900.0, 800.0, 50.0, 900.0];
        let of = |own: &[f64], other: &[f64]| calm(Metric::P99, own, other);
        assert_eq!(of(&own, &[100.0; 8]).as_deref(), Some(" and in the calm quarter 0.50x"));
        assert_eq!(of(&[50.0; 5], &[100.0; 5]), None);
        assert_eq!(calm(Metric::Requests, &own, &[100.0; 8]), None);
    }

    #[test]
    fn a_quartile_lies_between_two_figures() {
        assert_eq!(lower_quartile(&[4.0, 1.0, 2.0, 3.0]), Some(1.25));
        assert_eq!(lower_quartile(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]), Some(2.0));
        assert_eq!(lower_quartile(&[7.0]), None);
    }
}
