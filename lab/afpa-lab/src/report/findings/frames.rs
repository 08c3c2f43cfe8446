//! Frames of 9,000 bytes beside those of 1,500: does AFPA's advantage keep its course over the sizes?

use super::ours::{own, production};
use super::verdict::{Holds, Said};
use crate::bed::{JUMBO, STEERED};
use crate::results::Results;
use crate::summary::{PointSummary, Summary};
use crate::units::{digits, size};

/// Advantages are alike when neither is so many times the other.
const ALIKE: f64 = 1.25;

/// Size by size: the best other server's core time for a request over AFPA's, with frames of each length.
pub(super) fn longer_frames(results: &Results, summary: &Summary) -> Said {
    const LACKING: &str = "files of two sizes, with frames of 1,500 bytes and of 9,000";
    let usual = advantages(results, summary, STEERED);
    let long = advantages(results, summary, JUMBO);
    let (mut words, mut alike) = (Vec::new(), Vec::new());
    for (length, with_long) in long {
        let Some((_, with_usual)) = usual.iter().find(|(other, _)| *other == length) else {
            continue;
        };
        let changed = with_long / with_usual;
        alike.push((1.0 / ALIKE..=ALIKE).contains(&changed));
        let (one, other) = (digits(*with_usual), digits(with_long));
        words.push(format!("{}: {one}x and {other}x", size(length)));
    }
    if words.len() < 2 {
        return Err(LACKING);
    }
    let text = "AFPA's advantage over the best server in user mode, with frames of 1,500 bytes and of 9,000: ";
    Ok((text.to_owned() + &words.join(", "), Holds::all_of(&alike)))
}

fn advantages(results: &Results, summary: &Summary, bed: &str) -> Vec<(u64, f64)> {
    let advantage = |one: &PointSummary| {
        let workload = results.workloads.get(&one.point.workload)?;
        let usual = one.point.connections == crate::presets::USUAL_CONNECTIONS;
        let here = one.point.persistent && usual && one.point.bed == bed;
        let length = workload.point.filter(|_| here && workload.family == "webstone")?;
        let others = one.rows.iter().filter(|row| production(&row.server));
        let best = others.map(|row| row.cost.median).min_by(f64::total_cmp)?;
        let own = one.row(own(summary, true))?.cost.median;
        Some((length as u64, best / own))
    };
    let mut found: Vec<_> = summary.main_points().filter_map(advantage).collect();
    found.sort_by_key(|(length, _)| *length);
    found
}
