//! Ratios, points and a whole run in words.

use crate::results::{Point, Results};
use crate::stats::{Ratio, Verdict};
use crate::summary::Summary;
use crate::units::digits;

/// The run in a line for each peer: the subject's ratio to it, with spread, at each point on the
/// bed that is least favourable to the subject.
pub fn last_lines(results: &Results) -> Vec<String> {
    let summary = Summary::of(results);
    let subject = &summary.subject;
    let Some(point) = headline(results, &summary) else { return Vec::new() };
    let title = results.workloads.get(&point.workload).map_or(&point.workload, |w| &w.title);
    let kind = if point.persistent { "persistent" } else { "one request a connection" };
    let others = results.servers.iter().filter(|server| server.name != *subject);
    others
        .filter_map(|server| {
            let (ratio, bed) = summary.quoted(point, &server.name)?;
            Some(format!(
                "{subject} / {}: {} ({title}, {kind}, bed {bed})",
                server.name,
                told(&ratio)
            ))
        })
        .collect()
}

/// The point that one line is about: the papers' small file over persistent connections, or what
/// comes nearest.
fn headline<'s>(results: &Results, summary: &'s Summary) -> Option<&'s Point> {
    let points = summary.main_points().map(|one| &one.point);
    let far = |point: &&Point| {
        let workload = results.workloads.get(&point.workload);
        let sized = workload.filter(|workload| workload.family == "webstone");
        let size = sized.and_then(|workload| workload.point).unwrap_or(1e12);
        let distance = (size / 1024.0).log2().abs();
        (!point.persistent, crate::bed::is_impaired(&point.bed), (distance * 1e3) as u64)
    };
    points.min_by_key(far)
}

/// A point in words, for people.
pub fn heading(results: &Results, point: &Point) -> String {
    let title = results.workloads.get(&point.workload).map_or(&point.workload, |w| &w.title);
    let rate = point.rate.map_or(String::new(), |rate| format!("; {rate} requests/s asked for"));
    format!(
        "{title}; {}; {} connections{rate}; bed {}; generator {}",
        if point.persistent { "persistent" } else { "one request a connection" },
        point.connections,
        point.bed,
        point.generator
    )
}

/// A ratio for people: `12.1x (11.8 to 12.5)`, with a remark when it is no difference.
pub(super) fn told(ratio: &Ratio) -> String {
    let spread = ratio.spread;
    let words = match ratio.verdict {
        Verdict::None => ": no difference",
        Verdict::Unknown => ": too few rounds to tell",
        Verdict::More | Verdict::Less => "",
    };
    format!("{}x ({} to {}){words}", digits(spread.median), digits(spread.min), digits(spread.max))
}
