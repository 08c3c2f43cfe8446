//! Findings about where the time goes, and which strategy takes less of it.

use super::ours::production;
use super::verdict::{ABOUT, Holds, Said};
use crate::bed::tells_cost;
use crate::presets::UNCACHED;
use crate::results::Results;
use crate::summary::{PointSummary, Row, Summary};
use crate::units::{digits, number};
use crate::whitebox::Task;

/// The share that the paper's server spent in the operating system.
const IN_THE_KERNEL: f64 = 0.8;
/// The share that is most of the time.
const MOST: f64 = 0.5;
/// So many loads say something about strategies.
const LOADS: usize = 3;

/// By the core's accounts: system and interrupts, as a share of all.
pub(super) fn in_the_kernel(summary: &Summary) -> Said {
    const LACKING: &str = "SPECweb96's mix over kept connections on a server that people run";
    let mix = |one: &&PointSummary| {
        let point = &one.point;
        point.workload.starts_with("specweb96") && point.persistent && tells_cost(&point.bed)
    };
    let one = summary.main_points().find(mix).ok_or(LACKING)?;
    let (mut words, mut enough) = (Vec::new(), Vec::new());
    for row in one.rows.iter().filter(|row| production(&row.server)) {
        let share = (row.parts.system + row.parts.interrupts) / row.parts.total();
        enough.push(share >= IN_THE_KERNEL);
        words.push(format!("{} {} %", row.server, digits(share * 100.0)));
    }
    match words.is_empty() {
        true => Err(LACKING),
        false => Ok((words.join(", "), Holds::all_of(&enough))),
    }
}

/// JAWS's mix, each server that people run: reading, writing and packets, as a share of all tasks.
pub(super) fn network_first(results: &Results, _: &Summary) -> Said {
    let (mut words, mut most) = (Vec::new(), Vec::new());
    for found in &results.white_box {
        let Some(profile) = &found.profile else { continue };
        let load = found.point.workload == "jaws" && found.point.rate.is_none();
        if !load || !production(&found.server) {
            continue;
        }
        let share =
            profile.tasks_that(Task::is_network).micros / profile.tasks_that(|_| true).micros;
        most.push(share > MOST);
        let kind = if found.point.persistent { "kept" } else { "one request each" };
        words.push(format!("{} {} % ({kind})", found.server, digits(share * 100.0)));
    }
    match words.is_empty() {
        true => Err("a profile of JAWS's mix on a server that people run"),
        false => Ok((words.join(", "), Holds::all_of(&most))),
    }
}

/// One event loop: with its cache, and with a file that is opened and looked at for each request.
pub(super) fn cached_files(_: &Results, summary: &Summary) -> Said {
    const LACKING: &str = "a small file on sped with its cache and without";
    let both = |one: &PointSummary| Some((one.row("sped")?.clone(), one.row(UNCACHED)?.clone()));
    let (mut words, mut gains, mut apart) = (Vec::new(), Vec::new(), Vec::new());
    for (point, (with, without)) in
        summary.main_points().filter_map(|one| Some((&one.point, both(one)?)))
    {
        let gain = with.rate.median / without.rate.median;
        gains.push(gain * ABOUT >= 1.0);
        apart.push(with.rate.min > without.rate.max);
        words.push(format!(
            "{}: {} with, {} without, {}x",
            point.workload,
            number(with.rate.median, "/s"),
            number(without.rate.median, "/s"),
            digits(gain)
        ));
    }
    let all: Vec<bool> = gains.iter().zip(&apart).map(|(gain, apart)| *gain && *apart).collect();
    match words.is_empty() {
        true => Err(LACKING),
        false => Ok((words.join("; "), Holds::all_of(&all))),
    }
}

/// Each of the two is cheaper somewhere, apart in all rounds and by a tenth.
pub(super) fn strategies(summary: &Summary) -> Said {
    const NAMES: [&str; 2] = ["afpa-readiness", "afpa-completion"];
    let cheaper = |one: &Row, other: &Row| {
        one.cost.max < other.cost.min && one.cost.median < other.cost.median * ABOUT
    };
    let loads: Vec<_> = summary
        .main_points()
        .filter(|one| tells_cost(&one.point.bed))
        .filter_map(|one| Some((&one.point, one.row(NAMES[0])?, one.row(NAMES[1])?)))
        .collect();
    if loads.len() < LOADS {
        return Err("AFPA by readiness and by completion under three loads or more");
    }
    let best_at = |mine: fn((&Row, &Row)) -> (f64, f64), wins: &dyn Fn(&Row, &Row) -> bool| {
        let won = loads.iter().filter(|(_, one, other)| wins(one, other));
        let at = won.map(|(point, one, other)| {
            let (own, theirs) = mine((one, other));
            (own / theirs, point.workload.clone())
        });
        at.min_by(|(one, _), (other, _)| one.total_cmp(other))
    };
    let ready = best_at(|(one, other)| (one.cost.median, other.cost.median), &cheaper);
    let complete = best_at(|(one, other)| (other.cost.median, one.cost.median), &|one, other| {
        cheaper(other, one)
    });
    let told = |found: &Option<(f64, String)>, name: &str, other: &str| match found {
        Some((share, workload)) => {
            format!("{name} takes {}x of {other} at {workload}", digits(*share))
        }
        None => format!("{name} is nowhere the cheaper one"),
    };
    let words = format!(
        "{}; {}; {} loads",
        told(&ready, NAMES[0], NAMES[1]),
        told(&complete, NAMES[1], NAMES[0]),
        loads.len()
    );
    let holds = if ready.is_some() && complete.is_some() { Holds::Yes } else { Holds::No };
    Ok((words, holds))
}
