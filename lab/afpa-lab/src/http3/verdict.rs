//! The last lines: AFPA beside nginx and beside its own HTTP/2, and what it is meant to reach. No clock, no process, no file.

use super::cases::{AFPA_H2, AFPA_H3, FEW, HANDSHAKES, HANDSHAKES_MLKEM, LONG, MANY, NGINX_H3};
use crate::bench::{Case, Metric, Samples};
use crate::stats::Spread;

/// A bound for a ratio of two contestants' processor times.
#[derive(Debug, Clone, Copy)]
enum Goal {
    /// So many times as fast as nginx, at least.
    Faster(f64),
    /// So many times the time of HTTP/2, at most.
    Within(f64),
    /// A ratio without a bound.
    Unbound,
}

const GOALS: [(&str, &str, Goal); 8] = [
    (MANY, NGINX_H3, Goal::Faster(2.0)),
    (MANY, AFPA_H2, Goal::Within(1.3)),
    (FEW, NGINX_H3, Goal::Faster(2.0)),
    (FEW, AFPA_H2, Goal::Within(1.3)),
    (LONG, NGINX_H3, Goal::Faster(1.2)),
    (LONG, AFPA_H2, Goal::Unbound),
    (HANDSHAKES, NGINX_H3, Goal::Faster(1.5)),
    (HANDSHAKES_MLKEM, NGINX_H3, Goal::Unbound),
];

/// A line for each goal whose case was measured.
pub(super) fn lines(samples: &Samples, cases: &[Case]) -> Vec<String> {
    let line = |(name, other, goal): &(&str, &str, Goal)| {
        let case = cases.iter().find(|case| case.name == *name)?;
        let (own, other) = match goal {
            // Times as fast: the other's time over ours.
            Goal::Faster(_) | Goal::Unbound if *other == NGINX_H3 => (*other, AFPA_H3),
            _ => (AFPA_H3, *other),
        };
        let ratio = samples.ratio(name, own, other, Metric::CoreTime)?;
        Some(told(&case.title, own == AFPA_H3, ratio, *goal))
    };
    GOALS.iter().filter_map(line).collect()
}

fn told(title: &str, is_http2: bool, ratio: Spread, goal: Goal) -> String {
    let Spread { min, median, max } = ratio;
    let what = match is_http2 {
        true => "the processor time of AFPA's HTTP/2",
        false => "as fast as nginx by processor time",
    };
    let (bound, reached) = match goal {
        Goal::Faster(least) => (format!("; the goal is {least} or more"), Some(median >= least)),
        Goal::Within(most) => (format!("; the goal is {most} or less"), Some(median <= most)),
        Goal::Unbound => (String::new(), None),
    };
    let reached = match reached {
        Some(true) => ": reached",
        Some(false) => ": **not reached**",
        None => "",
    };
    format!("{title}: AFPA's HTTP/3 {median:.2}x ({min:.2} to {max:.2}) {what}{bound}{reached}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Sample, sample};

    fn of(case: &str, server: &str, round: u32, seconds: f64) -> Sample {
        Sample { core_seconds: seconds, ..sample(case, server, round, 100) }
    }

    #[test]
    fn a_goal_is_reached_or_not_by_the_median_of_the_rounds() {
        let samples = Samples(vec![
            of(MANY, AFPA_H3, 1, 0.5),
            of(MANY, NGINX_H3, 1, 1.0),
            of(MANY, AFPA_H2, 1, 0.25),
            of(MANY, AFPA_H3, 2, 1.0),
            of(MANY, NGINX_H3, 2, 2.2),
            of(MANY, AFPA_H2, 2, 0.5),
        ]);
        let case = Case::new(MANY, "small", &[AFPA_H3, NGINX_H3, AFPA_H2], Vec::new());
        assert_eq!(
            lines(&samples, &[case]),
            [
                "small: AFPA's HTTP/3 2.10x (2.00 to 2.20) as fast as nginx by processor time; the goal is 2 or more: reached",
                "small: AFPA's HTTP/3 2.00x (2.00 to 2.00) the processor time of AFPA's HTTP/2; the goal is 1.3 or less: **not reached**",
            ]
        );
    }

    #[test]
    fn what_was_not_measured_has_no_line() {
        let case = Case::new(HANDSHAKES, "handshakes", &[AFPA_H3], Vec::new());
        let samples = Samples(vec![of(HANDSHAKES, AFPA_H3, 1, 1.0)]);
        assert!(lines(&samples, &[case]).is_empty());
    }
}
