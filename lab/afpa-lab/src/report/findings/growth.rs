//! Findings of how something grows: with the size of a file, with the number of connections.

use super::{Holds, Said};
use crate::presets::{FEWEST_CONNECTIONS, MOST_CONNECTIONS, USUAL_CONNECTIONS};
use crate::report::told;
use crate::results::Results;
use crate::stats::Verdict;
use crate::summary::{PointSummary, Row, Summary};
use crate::units::{digits, number, size};

/// The papers' smallest large file, and the two sizes for which they give the gain of not copying.
const LARGE: u64 = 128 << 10;
const COPIED: [(u64, f64); 2] = [(4 << 10, 1.25), (32 << 10, 2.11)];
/// Half of what the papers gained, or lost.
const HALF: f64 = 0.5;

/// The points of WebStone over persistent connections on the steered bed, with the sizes of their files, the smallest first.
fn sizes<'s>(results: &Results, summary: &'s Summary) -> Vec<(u64, &'s PointSummary)> {
    let length = |one: &'s PointSummary| {
        let workload = results.workloads.get(&one.point.workload)?;
        let plain = one.point.persistent && one.point.bed == "steered";
        let length = workload.point.filter(|_| plain && workload.family == "webstone")?;
        Some((length as u64, one))
    };
    let mut sizes: Vec<_> = summary.main_points().filter_map(length).collect();
    sizes.sort_by_key(|(length, _)| *length);
    sizes
}

/// The best user-mode server's bytes beside the subject's, at 128 KB and more.
pub(super) fn large_files(results: &Results, summary: &Summary) -> Said {
    const LACKING: &str = "files of 128 KB, on AFPA and on a server in user mode";
    let mut points = sizes(results, summary);
    points.retain(|(length, _)| *length >= LARGE);
    if points.first().is_none_or(|(length, _)| *length != LARGE) {
        return Err(LACKING);
    }
    let mut words = Vec::new();
    let mut as_good = Vec::new();
    for (length, one) in points {
        let own = one.row(&summary.subject).ok_or(LACKING)?;
        let others = one.rows.iter().filter(|row| !row.server.starts_with("afpa"));
        let best =
            others.max_by(|a, b| a.bytes.median.total_cmp(&b.bytes.median)).ok_or(LACKING)?;
        let ratio = best.ratio.ok_or(LACKING)?;
        as_good.push(matches!(ratio.verdict, Verdict::None | Verdict::Less));
        words.push(format!(
            "{}: {} {}, {} {} ({})",
            size(length),
            best.server,
            number(best.bytes.median, "B/s"),
            own.server,
            number(own.bytes.median, "B/s"),
            told(&ratio),
        ));
    }
    Ok((words.join("; "), of_all(&as_good)))
}

/// Whether all of them hold, some of them, or none.
fn of_all(hold: &[bool]) -> Holds {
    match (hold.contains(&true), hold.contains(&false)) {
        (true, false) => Holds::Yes,
        (true, true) => Holds::Partly,
        _ => Holds::No,
    }
}

/// By server-core time, because the generator may be the limit of both. Half of the papers' gain is enough.
pub(super) fn zero_copy(results: &Results, summary: &Summary) -> Said {
    let pairs: Vec<(u64, &Row, &Row)> = sizes(results, summary)
        .into_iter()
        .filter_map(|(length, one)| {
            Some((length, one.row("afpa-copy")?, one.row("afpa-sendfile")?))
        })
        .collect();
    let told = |(length, copy, sendfile): &(u64, &Row, &Row)| {
        format!("{}: {}x", size(*length), digits(copy.cost.median / sendfile.cost.median))
    };
    let mut gained = Vec::new();
    for (wanted, gain) in COPIED {
        let pair = pairs.iter().find(|(length, ..)| *length == wanted);
        let (_, copy, sendfile) =
            pair.ok_or("files of 4 KB and of 32 KB, with and without a copy")?;
        gained.push(grows(copy, sendfile, 1.0 + (gain - 1.0) * HALF));
    }
    let words: Vec<String> = pairs.iter().map(told).collect();
    Ok((format!("cost of copying over cost of sendfile, {}", words.join(", ")), of_all(&gained)))
}

/// Does a request of the first cost so many times as much as one of the second, and that in all rounds?
fn grows(one: &Row, other: &Row, times: f64) -> bool {
    one.cost.median >= other.cost.median * times && one.cost.min > other.cost.max
}

/// The cost of a request over the papers' most connections and over their fewest. With few of them a server is woken
/// for each request, so the usual number stands beside it.
pub(super) fn connections(summary: &Summary) -> Said {
    const LACKING: &str = "one file over 4 and over 2,048 persistent connections";
    let plain = |one: &&PointSummary| one.point.bed == "steered" && one.point.persistent;
    let points = || summary.main_points().filter(plain);
    let of = |workload: &str, number: u32| {
        points().find(|one| one.point.workload == workload && one.point.connections == number)
    };
    let most = points().find(|one| one.point.connections == MOST_CONNECTIONS).ok_or(LACKING)?;
    let workload = &most.point.workload;
    let fewest = of(workload, FEWEST_CONNECTIONS).ok_or(LACKING)?;
    let usual = of(workload, USUAL_CONNECTIONS);
    let (mut words, mut grown, mut some) = (Vec::new(), Vec::new(), false);
    for (many, few) in most.rows.iter().filter_map(|row| Some((row, fewest.row(&row.server)?))) {
        let over = |row: &Row| format!("{}x", digits(many.cost.median / row.cost.median));
        let usual = usual.and_then(|one| one.row(&many.server));
        let usual = usual.map_or(String::new(), |row| format!(" (over 64: {})", over(row)));
        words.push(format!("{} {}{usual}", many.server, over(few)));
        grown.push(grows(many, few, 1.0 + 1.57 * HALF));
        some |= grows(many, few, 1.0);
    }
    let holds = match of_all(&grown) {
        Holds::No if some => Holds::Partly,
        holds => holds,
    };
    let text = format!(
        "cost over {MOST_CONNECTIONS} connections over that over {FEWEST_CONNECTIONS}, {workload}: {}",
        words.join(", ")
    );
    if words.is_empty() { Err(LACKING) } else { Ok((text, holds)) }
}
