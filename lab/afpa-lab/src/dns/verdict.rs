//! The last lines: answers from the kernel beside the servers' own, and the aims. No clock, no process, no
//! file.

use super::cases::{ABSENT, COOKIES, MISSES, NAMES, PLAIN_A, SIGNED_A};
use crate::bench::{Case, Metric, Samples};
use crate::results::Doubt;
use crate::stats::{Spread, pairs};

/// A bound for a ratio.
#[derive(Debug, Clone, Copy)]
enum Goal {
    /// So many times the other's answers a second, at least.
    Faster(f64),
    /// So many times the other's processor time, at most.
    Within(f64),
    /// A ratio of answers a second, without a bound.
    Unbound,
}

const GOALS: [(&str, &str, &str, Goal); 13] = [
    (PLAIN_A, "afpa-nsd", "nsd", Goal::Faster(10.0)),
    (PLAIN_A, "afpa-nsd", "knot-xdp", Goal::Faster(1.3)),
    (PLAIN_A, "afpa-knot", "knot", Goal::Unbound),
    (PLAIN_A, "afpa-bind", "bind", Goal::Unbound),
    (PLAIN_A, "afpa-zones", "nsd", Goal::Unbound),
    (NAMES, "afpa-nsd", "nsd", Goal::Unbound),
    (SIGNED_A, "afpa-nsd", "nsd", Goal::Faster(8.0)),
    (SIGNED_A, "afpa-nsd", "knot-xdp", Goal::Unbound),
    (SIGNED_A, "afpa-zones", "nsd", Goal::Unbound),
    (ABSENT, "afpa-nsd", "nsd", Goal::Unbound),
    (COOKIES, "afpa-nsd", "nsd", Goal::Unbound),
    (MISSES, "afpa-nsd", "nsd", Goal::Within(1.05)),
    (MISSES, "afpa-knot", "knot", Goal::Within(1.05)),
];

/// Answers a second with many names to those with few, at least.
const MANY_TO_FEW: f64 = 0.8;

/// A line for each ratio that was measured.
pub(super) fn lines(samples: &Samples, cases: &[Case]) -> Vec<String> {
    let line = |(name, own, other, goal): &(&str, &str, &str, Goal)| {
        let case = cases.iter().find(|case| case.name == *name)?;
        let metric = match goal {
            Goal::Within(_) => Metric::CoreTime,
            Goal::Faster(_) | Goal::Unbound => Metric::Requests,
        };
        let ratio = samples.ratio(name, own, other, metric)?;
        let line = told(&format!("{}: {own}", case.title), &format!("of {other}"), ratio, *goal);
        Some(line + client_bound(samples, name, own))
    };
    let mut lines: Vec<String> = GOALS.iter().filter_map(line).collect();
    lines.extend(many_to_few(samples));
    lines
}

fn many_to_few(samples: &Samples) -> Option<String> {
    let of = |case| samples.of(case, "afpa-nsd", Metric::Requests);
    let ratio = Spread::of(pairs(&of(NAMES), &of(PLAIN_A)))?;
    let own = "32,768 names at random: afpa-nsd";
    Some(told(own, "of its own with 160 names", ratio, Goal::Faster(MANY_TO_FEW)))
}

/// In all rounds the client was the bottleneck: the server could have answered more.
fn client_bound(samples: &Samples, case: &str, own: &str) -> &'static str {
    let all = samples.all(case, own).all(|sample| sample.is(Doubt::ClientBound));
    if all { " (the client was full: at least)" } else { "" }
}

fn told(own: &str, of_other: &str, ratio: Spread, goal: Goal) -> String {
    let Spread { min, median, max } = ratio;
    let what = match goal {
        Goal::Within(_) => "the processor time",
        Goal::Faster(_) | Goal::Unbound => "the answers a second",
    };
    let (bound, reached) = match goal {
        Goal::Faster(least) => (format!("; the aim is {least} or more"), Some(median >= least)),
        Goal::Within(most) => (format!("; the aim is {most} or less"), Some(median <= most)),
        Goal::Unbound => (String::new(), None),
    };
    let reached = match reached {
        Some(true) => ": reached",
        Some(false) => ": **not reached**",
        None => "",
    };
    format!("{own} {median:.2}x ({min:.2} to {max:.2}) {what} {of_other}{bound}{reached}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Sample, sample};

    fn of(case: &str, server: &str, round: u32, answers: u64) -> Sample {
        sample(case, server, round, answers)
    }

    #[test]
    fn an_aim_is_reached_or_not_by_the_median_of_the_rounds() {
        let samples = Samples(vec![
            of(PLAIN_A, "afpa-nsd", 1, 900),
            of(PLAIN_A, "nsd", 1, 100),
            of(PLAIN_A, "knot-xdp", 1, 600),
            of(NAMES, "afpa-nsd", 1, 630),
            Sample { core_seconds: 1.2, ..of(MISSES, "afpa-nsd", 1, 100) },
            of(MISSES, "nsd", 1, 100),
        ]);
        let case = |name| Case::new(name, name, &[], Vec::new());
        assert_eq!(
            lines(&samples, &[case(PLAIN_A), case(NAMES), case(MISSES)]),
            [
                "plain: afpa-nsd 9.00x (9.00 to 9.00) the answers a second of nsd; the aim is 10 or more: **not reached**",
                "plain: afpa-nsd 1.50x (1.50 to 1.50) the answers a second of knot-xdp; the aim is 1.3 or more: reached",
                "misses: afpa-nsd 1.20x (1.20 to 1.20) the processor time of nsd; the aim is 1.05 or less: **not reached**",
                "32,768 names at random: afpa-nsd 0.70x (0.70 to 0.70) the answers a second of its own with 160 names; the aim is 0.8 or more: **not reached**",
            ]
        );
    }

    #[test]
    fn a_client_that_was_full_is_told() {
        let full = |round| Sample {
            doubts: vec![Doubt::ClientBound],
            ..of(SIGNED_A, "afpa-nsd", round, 900)
        };
        let mut samples = Samples(vec![full(1), of(SIGNED_A, "nsd", 1, 100)]);
        let case = [Case::new(SIGNED_A, "signed", &[], Vec::new())];
        assert!(lines(&samples, &case)[0].ends_with(": reached (the client was full: at least)"));
        samples.0.push(of(SIGNED_A, "afpa-nsd", 2, 900));
        samples.0.push(of(SIGNED_A, "nsd", 2, 100));
        assert!(lines(&samples, &case)[0].ends_with(": reached"));
    }
}
