//! Where AFPA is slower than a server that people run: as easy to find as where it is faster.

use super::findings::{own, production};
use super::words::{heading, told};
use crate::results::{Point, Results};
use crate::stats::Verdict;
use crate::summary::Summary;

/// A line for each load and server, the greatest loss first.
pub(super) fn losses(results: &Results, summary: &Summary) -> Vec<String> {
    let mut lines: Vec<(f64, String)> = Vec::new();
    let mut loads: Vec<Point> = Vec::new();
    for one in summary.main_points() {
        // The least favourable bed is quoted, whichever came first.
        let load = Point { bed: String::new(), ..one.point.clone() };
        if loads.contains(&load) {
            continue;
        }
        loads.push(load);
        let own = own(summary, one.point.persistent);
        let others = results.servers.iter().map(|server| server.name.as_str());
        for other in others.filter(|name| production(name)) {
            let Some((ratio, bed)) = summary.quoted_of(results, own, &one.point, other) else {
                continue;
            };
            if ratio.verdict == Verdict::Less {
                let place = Point { bed: bed.to_owned(), ..one.point.clone() };
                let line =
                    format!("{own} / {other}: {} ({})", told(&ratio), heading(results, &place));
                lines.push((ratio.spread.median, line));
            }
        }
    }
    lines.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    lines.into_iter().map(|(_, line)| line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::{results, turn};

    #[test]
    fn a_loss_is_told_and_a_gain_is_not() {
        let mut results = results(&[
            ("afpa-kernel", &[100.0; 3]),
            ("nginx", &[120.0; 3]),
            ("h2o", &[90.0; 3]),
            ("howl", &[900.0; 3]),
        ]);
        for round in 1..=3 {
            for (server, rate) in [("afpa-kernel", 50.0), ("nginx", 100.0)] {
                let mut other = turn(server, round, rate);
                other.point.workload = "webstone-1048576".into();
                results.turns.push(other);
            }
        }
        let lines = losses(&results, &Summary::of(&results));
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("afpa-kernel / nginx: 0.50x"), "{lines:?}");
        assert!(lines[1].starts_with("afpa-kernel / nginx: 0.83x"), "{lines:?}");
    }
}
