//! JAWS's findings: its mix, one request a connection.

use super::verdict::{ABOUT, HALF, Holds, Said};
use crate::presets::{MOST_JAWS_CLIENTS, USUAL_CONNECTIONS};
use crate::summary::{PointSummary, Row, Summary};
use crate::units::{digits, number};

const POOL: &str = "thread-pool";
const PER_REQUEST: &str = "thread-per-request";

/// JAWS's mix on the steered bed, by the number of clients, the fewest first.
fn points(summary: &Summary) -> Vec<&PointSummary> {
    let plain = |one: &&PointSummary| {
        let point = &one.point;
        point.workload.starts_with("jaws") && !point.persistent && point.bed == "steered"
    };
    let mut points: Vec<&PointSummary> = summary.main_points().filter(plain).collect();
    points.sort_by_key(|one| one.point.connections);
    points
}

fn usual(summary: &Summary) -> Option<&PointSummary> {
    points(summary).into_iter().find(|one| one.point.connections == USUAL_CONNECTIONS)
}

fn are_apart(one: &Row, other: &Row) -> bool {
    one.rate.min > other.rate.max || one.rate.max < other.rate.min
}

fn rate(row: &Row) -> String {
    number(row.rate.median, "/s")
}

/// JAWS gained 65 %: half of it is enough, and a quarter is some of it.
pub(super) fn optimisations(summary: &Summary) -> Said {
    const LACKING: &str = "JAWS's mix on the thread pool, with its three optimisations and without";
    const WITHOUT: &str =
        "thread-pool:without=cached-headers:without=lazy-date:without=gather-write";
    let one = usual(summary).ok_or(LACKING)?;
    let (with, without) = (one.row(POOL).ok_or(LACKING)?, one.row(WITHOUT).ok_or(LACKING)?);
    let gain = with.rate.median / without.rate.median;
    let apart = are_apart(with, without);
    let words = format!(
        "{POOL} over all three switched off: {}x ({} against {}, {}){}",
        digits(gain),
        rate(with),
        rate(without),
        one.point.workload,
        if apart { "" } else { ": the spreads overlap, no difference" }
    );
    let holds = match gain {
        much if much >= 1.0 + 0.65 * HALF && apart => Holds::Yes,
        some if some >= 1.0 + 0.65 * HALF * HALF && apart => Holds::Partly,
        _ => Holds::No,
    };
    Ok((words, holds))
}

/// Pools of 6, of 42 and of one thread for each client are alike.
pub(super) fn pool_sizes(summary: &Summary) -> Said {
    const LACKING: &str = "JAWS's mix on pools of 6, 42 threads and of one for each client";
    let one = usual(summary).ok_or(LACKING)?;
    let row = |name: &str| one.row(name).ok_or(LACKING);
    let pools = [row("thread-pool:pool=6")?, row("thread-pool:pool=42")?, row(POOL)?];
    let alike = |one: &Row, other: &Row| {
        let ratio = one.rate.median / other.rate.median;
        !are_apart(one, other) || (ABOUT..1.0 / ABOUT).contains(&ratio)
    };
    let pairs = [(0, 1), (0, 2), (1, 2)].map(|(a, b)| alike(pools[a], pools[b]));
    let [six, many, each] = pools.map(rate);
    let words = format!("6 threads {six}, 42 {many}, one for each client {each}");
    Ok((words, Holds::all_of(&pairs)))
}

/// A single thread beside six.
pub(super) fn single_thread(summary: &Summary) -> Said {
    const LACKING: &str = "JAWS's mix on pools of 1 and of 6 threads";
    let one = usual(summary).ok_or(LACKING)?;
    let row = |name: &str| one.row(name).ok_or(LACKING);
    let (single, six) = (row("thread-pool:pool=1")?, row("thread-pool:pool=6")?);
    let share = single.rate.median / six.rate.median;
    let slower = single.rate.max < six.rate.min;
    let words = format!("1 thread {}, 6 {}: {} %", rate(single), rate(six), digits(share * 100.0));
    let holds = match (slower, share < ABOUT) {
        (true, true) => Holds::Yes,
        (true, false) => Holds::Partly,
        (false, _) => Holds::No,
    };
    Ok((words, holds))
}

/// From how many clients on is a thread for each request faster?
pub(super) fn crossover(summary: &Summary) -> Said {
    const LACKING: &str = "JAWS's mix for 1 to 42 clients on both";
    let mut steps: Vec<(u32, &Row, &Row)> = points(summary)
        .into_iter()
        .filter_map(|one| Some((one.point.connections, one.row(PER_REQUEST)?, one.row(POOL)?)))
        .collect();
    steps.retain(|(clients, ..)| *clients <= MOST_JAWS_CLIENTS);
    let ends = [steps.first(), steps.last()].map(|step| step.map(|(clients, ..)| *clients));
    if ends != [Some(1), Some(MOST_JAWS_CLIENTS)] {
        return Err(LACKING);
    }
    let is_faster = |(_, one, other): &(u32, &Row, &Row)| one.rate.min > other.rate.max;
    let slower = steps.iter().rposition(|step| !is_faster(step));
    let (holds, from) = match slower {
        None => (Holds::Partly, "faster with any number of clients".to_owned()),
        Some(last) => match steps.get(last + 1) {
            Some((clients, ..)) => (Holds::Yes, format!("faster from {clients} clients on")),
            None => (Holds::No, "never faster with the most clients".to_owned()),
        },
    };
    let told = |(clients, one, other): &(u32, &Row, &Row)| {
        format!("{clients}: {}x", digits(one.rate.median / other.rate.median))
    };
    let steps: Vec<String> = steps.iter().map(told).collect();
    Ok((format!("{PER_REQUEST} over {POOL}, by clients, {}: {from}", steps.join(", ")), holds))
}
