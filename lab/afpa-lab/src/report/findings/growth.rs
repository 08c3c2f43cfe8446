//! Findings of how something grows with the size of a file.

use super::ours::production;
use super::verdict::{ABOUT, HALF, Holds, Said};
use crate::report::words::told;
use crate::results::Results;
use crate::stats::Verdict;
use crate::summary::{PointSummary, Row, Summary};
use crate::units::{digits, number, size};

/// The papers' smallest large file, and the two sizes for which they give the gain of not copying.
const LARGE: u64 = 128 << 10;
const COPIED: [(u64, f64); 2] = [(4 << 10, 1.25), (32 << 10, 2.11)];

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
    let mut verdicts = Vec::new();
    for (length, one) in points {
        let own = one.row(&summary.subject).ok_or(LACKING)?;
        let others = one.rows.iter().filter(|row| !row.server.starts_with("afpa"));
        let best =
            others.max_by(|a, b| a.bytes.median.total_cmp(&b.bytes.median)).ok_or(LACKING)?;
        let ratio = best.ratio.ok_or(LACKING)?;
        verdicts.push(ratio.verdict);
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
    Ok((words.join("; "), as_good(&verdicts)))
}

/// The two have to be alike at every size. Where user mode is ahead it is better than the finding says, and not the same.
fn as_good(verdicts: &[Verdict]) -> Holds {
    let are = |one: Verdict| verdicts.iter().filter(|verdict| **verdict == one).count();
    match (are(Verdict::More), are(Verdict::None)) {
        (_, alike) if alike == verdicts.len() => Holds::Yes,
        (ahead, _) if ahead == verdicts.len() => Holds::No,
        _ => Holds::Partly,
    }
}

/// Apache with a process for each connection, beside the fastest of the others at the smallest size and at the largest.
pub(super) fn prefork_catches_up(results: &Results, summary: &Summary) -> Said {
    const LACKING: &str = "a small file and one of 128 KB or more, on apache-prefork and others";
    let points = sizes(results, summary);
    let [(small, first), .., (large, last)] = points[..] else { return Err(LACKING) };
    if large < LARGE {
        return Err(LACKING);
    }
    let share = |one: &PointSummary| {
        let prefork = one.row("apache-prefork")?;
        let others =
            one.rows.iter().filter(|row| production(&row.server) && row.server != prefork.server);
        let best = others.max_by(|a, b| a.bytes.median.total_cmp(&b.bytes.median))?;
        Some((best.server.clone(), prefork.bytes.median / best.bytes.median))
    };
    let ((fast, lags), (faster, catches_up)) = share(first).zip(share(last)).ok_or(LACKING)?;
    let words = format!(
        "apache-prefork at {}: {}x of {fast}; at {}: {}x of {faster}",
        size(small),
        digits(lags),
        size(large),
        digits(catches_up),
    );
    Ok((words, Holds::all_of(&[lags < ABOUT, catches_up >= ABOUT])))
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
    Ok((
        format!("cost of copying over cost of sendfile, {}", words.join(", ")),
        Holds::all_of(&gained),
    ))
}

/// Does a request of the first cost so many times as much as one of the second, and that in all rounds?
fn grows(one: &Row, other: &Row, times: f64) -> bool {
    one.cost.median >= other.cost.median * times && one.cost.min > other.cost.max
}
