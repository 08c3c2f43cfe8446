//! Findings about small files: how far the kernel is ahead, and where.

use super::ours::{best, own, production};
use super::verdict::{ABOUT, Holds, Said};
use crate::report::words::told;
use crate::results::Results;
use crate::summary::{PointSummary, Summary};
use crate::units::{digits, size};

/// Small files end where an answer has several segments.
const SMALL: u64 = 4 << 10;
const FLAT: u64 = 8 << 10;

/// The points of WebStone on the steered bed over 64 connections, by the size of the file, the smallest first.
fn sizes<'s>(
    results: &Results,
    summary: &'s Summary,
    persistent: bool,
) -> Vec<(u64, &'s PointSummary)> {
    let length = |one: &'s PointSummary| {
        let workload = results.workloads.get(&one.point.workload)?;
        let usual = one.point.connections == crate::presets::USUAL_CONNECTIONS;
        let alike = one.point.persistent == persistent && one.point.bed == "steered" && usual;
        let length = workload.point.filter(|_| alike && workload.family == "webstone")?;
        Some((length as u64, one))
    };
    let mut sizes: Vec<_> = summary.main_points().filter_map(length).collect();
    sizes.sort_by_key(|(length, _)| *length);
    sizes
}

/// AFPA's rate at the largest size below 8 KB beside that at the smallest.
pub(super) fn flat_below_8k(results: &Results, summary: &Summary) -> Said {
    const LACKING: &str = "files of 64 B and of 1 to 4 KB, with one request a connection";
    let mut points = sizes(results, summary, false);
    points.retain(|(length, _)| *length < FLAT);
    let [(small, first), .., (large, last)] = points[..] else { return Err(LACKING) };
    let (mut words, mut flat) = (Vec::new(), Vec::new());
    for row in &first.rows {
        let afpa = row.server == own(summary, false);
        let Some(other) = last.row(&row.server).filter(|_| afpa || production(&row.server)) else {
            continue;
        };
        let share = other.rate.median / row.rate.median;
        flat.push((afpa, share >= ABOUT));
        words.push(format!("{} {} %", row.server, digits(share * 100.0)));
    }
    let afpa = flat.iter().find(|(afpa, _)| *afpa).ok_or(LACKING)?.1;
    let holds = match (afpa, flat.iter().any(|(_, flat)| *flat)) {
        (true, _) => Holds::Yes,
        (false, true) => Holds::Partly,
        (false, false) => Holds::No,
    };
    let text = format!("rate at {} as a share of that at {}: ", size(large), size(small));
    Ok((text + &words.join(", "), holds))
}

/// AFPA over the fastest server that people run, at a point.
fn ahead(results: &Results, summary: &Summary, one: &PointSummary) -> Option<(String, f64)> {
    let (server, ratio, _) = best(results, summary, one, production)?;
    Some((format!("{} over {server}", told(&ratio)), ratio.spread.median))
}

/// At each small size, over both kinds of connections.
pub(super) fn two_to_six(results: &Results, summary: &Summary) -> Said {
    let (mut words, mut within, mut more) = (Vec::new(), Vec::new(), false);
    for persistent in [true, false] {
        for (length, one) in sizes(results, summary, persistent) {
            let Some((line, ratio)) = ahead(results, summary, one).filter(|_| length <= SMALL)
            else {
                continue;
            };
            within.push((2.0..=6.0).contains(&ratio));
            more |= ratio > 6.0;
            let kind = if persistent { "kept" } else { "one request a connection" };
            words.push(format!("{}, {kind}: {line}", size(length)));
        }
    }
    // More than six times is another finding, and not the contrary.
    let holds = match Holds::all_of(&within) {
        Holds::No if more => Holds::Partly,
        holds => holds,
    };
    match words.is_empty() {
        true => Err("small files on AFPA and on a server that people run"),
        false => Ok((words.join("; "), holds)),
    }
}

/// The papers had one request a connection: there it has to be so, and over kept connections as well.
pub(super) fn widest_on_the_mix(results: &Results, summary: &Summary) -> Said {
    const LACKING: &str = "SPECweb96's mix and single sizes, with one request a connection";
    let (mut words, mut wider) = (Vec::new(), Vec::new());
    for persistent in [false, true] {
        let mix = summary.main_points().find(|one| {
            let point = &one.point;
            point.workload.starts_with("specweb96")
                && point.persistent == persistent
                && point.bed == "steered"
        });
        let mix = mix.and_then(|one| ahead(results, summary, one));
        let single = sizes(results, summary, persistent);
        let single = single.into_iter().filter_map(|(length, one)| {
            let (_, ratio) = ahead(results, summary, one)?;
            Some((length, ratio))
        });
        let most = single.max_by(|(_, one), (_, other)| one.total_cmp(other));
        let (Some((line, ratio)), Some((length, most))) = (mix, most) else { continue };
        let kind = if persistent { "kept" } else { "one request a connection" };
        words.push(format!("{kind}: {line} on the mix, {}x at {}", digits(most), size(length)));
        wider.push((persistent, ratio > most));
    }
    let holds =
        |kind: bool| wider.iter().find(|(persistent, _)| *persistent == kind).map(|one| one.1);
    let holds = match (holds(false).ok_or(LACKING)?, holds(true)) {
        (true, Some(true) | None) => Holds::Yes,
        (false, Some(false) | None) => Holds::No,
        _ => Holds::Partly,
    };
    Ok((words.join("; "), holds))
}
