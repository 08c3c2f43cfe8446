//! Kim and Rixner's findings: the cost of a packet over its rate, over connections and over latency, each with the others held.

use std::time::Duration;

use super::ours::production;
use super::verdict::{ABOUT, HALF, Holds, Said};
use crate::axes::{LONGEST_DELAY, MANY_SEGMENTS, ONE_SEGMENT};
use crate::bed::delay_of;
use crate::presets::{FEWEST_CONNECTIONS, MOST_CONNECTIONS};
use crate::results::Results;
use crate::summary::Summary;
use crate::units::digits;
use crate::whitebox::{Layer, Profile, Time, WhiteBox};

/// So much more may a packet cost when the effect is negligible: the paper's growth at its highest rate.
const NEGLIGIBLE: f64 = 1.18;
/// The highest rate over the lowest one, at least: the paper's are 9 times apart.
const RATES: f64 = 8.0;
/// The paper's growth of TCP and of the layer of system calls over connections, and of TCP over latency.
const TCP: f64 = 1.57;
const CALLS: f64 = 2.5;
const DELAYED: f64 = 1.0;

/// A server's look at a workload, with the rate that was asked for.
struct Look<'r> {
    found: &'r WhiteBox,
    profile: &'r Profile,
    rate: u32,
}

/// Looks at a workload at a rate that was held: the server kept up with it, and had no backlog to work off.
fn looks<'r>(results: &'r Results, workload: &str) -> Vec<Look<'r>> {
    let looks = results.white_box.iter().filter(|found| found.point.workload == workload);
    let looks = looks.filter_map(|found| {
        let (profile, rate) = (found.profile.as_ref()?, found.point.rate?);
        let held = f64::from(rate) * ABOUT..=f64::from(rate) / ABOUT;
        held.contains(&profile.rate).then_some(Look { found, profile, rate })
    });
    looks.collect()
}

/// The servers of some looks, in their order.
fn servers<'r>(looks: &[Look<'r>]) -> Vec<&'r str> {
    let mut names: Vec<&str> = Vec::new();
    for look in looks {
        if !names.contains(&look.found.server.as_str()) {
            names.push(&look.found.server);
        }
    }
    names
}

fn times(one: Time, other: Time) -> f64 {
    if other.micros > 0.0 { one.micros / other.micros } else { 0.0 }
}

/// Is the first so many times the second, and by more than twice what their samples leave open?
fn grows(one: Time, other: Time, factor: f64) -> bool {
    let open = 2.0 * one.error().hypot(other.error());
    one.micros >= other.micros * factor && one.micros - other.micros > open
}

/// The whole stack, over one connection. It is alike when it neither grows nor shrinks by more than the paper's.
pub(super) fn packet_rate(results: &Results) -> Said {
    const LACKING: &str = "a profile over one connection at 100 and at 900 Mb/s";
    let all = looks(results, MANY_SEGMENTS);
    let (mut words, mut alike) = (Vec::new(), Vec::new());
    for server in servers(&all) {
        let own = || all.iter().filter(|look| look.found.server == server);
        let (Some(low), Some(high)) =
            (own().min_by_key(|look| look.rate), own().max_by_key(|look| look.rate))
        else {
            continue;
        };
        if f64::from(high.rate) < f64::from(low.rate) * RATES {
            continue;
        }
        let stack = |look: &Look<'_>| look.profile.layers_that(Layer::is_stack);
        let (low, high) = (stack(low), stack(high));
        let ratio = times(high, low);
        alike.push((1.0 / NEGLIGIBLE..=NEGLIGIBLE).contains(&ratio));
        words.push(format!("{server} {}x", digits(ratio)));
    }
    match words.is_empty() {
        true => Err(LACKING),
        false => {
            let text = format!(
                "time in the stack at the highest rate over that at the lowest: {}",
                words.join(", ")
            );
            Ok((text, Holds::all_of(&alike)))
        }
    }
}

/// A server's profiles at both ends of an axis.
fn ends<'r>(
    all: &[Look<'r>],
    server: &str,
    is_low: impl Fn(&WhiteBox) -> bool,
    is_high: impl Fn(&WhiteBox) -> bool,
) -> Option<(&'r Profile, &'r Profile)> {
    let of = |is: &dyn Fn(&WhiteBox) -> bool| {
        all.iter()
            .find(|look| look.found.server == server && is(look.found))
            .map(|look| look.profile)
    };
    Some((of(&is_low)?, of(&is_high)?))
}

/// The layer that stands for TCP in a server: connections that programs answer are theirs.
fn transport(server: &str) -> Layer {
    if server.starts_with("afpa-kernel") { Layer::Programs } else { Layer::Tcp }
}

/// TCP and system calls both have to grow, by half of what they did for the paper; for the servers in user mode.
pub(super) fn connections(results: &Results) -> Said {
    let all = looks(results, ONE_SEGMENT);
    let plain = |found: &WhiteBox| found.point.bed == "steered";
    let (mut words, mut grown) = (Vec::new(), Vec::new());
    for server in servers(&all) {
        let few = |found: &WhiteBox| plain(found) && found.point.connections == FEWEST_CONNECTIONS;
        let many = |found: &WhiteBox| plain(found) && found.point.connections == MOST_CONNECTIONS;
        let Some((few, many)) = ends(&all, server, few, many) else { continue };
        let layer = transport(server);
        let [tcp, calls] = [layer, Layer::SystemCall].map(|one| (many.layer(one), few.layer(one)));
        if layer == Layer::Tcp {
            grown.push(grows(tcp.0, tcp.1, 1.0 + TCP * HALF));
            grown.push(grows(calls.0, calls.1, 1.0 + CALLS * HALF));
            let calls = digits(times(calls.0, calls.1));
            words.push(format!(
                "{server} TCP {}x, system calls {calls}x",
                digits(times(tcp.0, tcp.1))
            ));
        } else {
            words.push(format!("{server} its programs {}x", digits(times(tcp.0, tcp.1))));
        }
    }
    match grown.is_empty() {
        true => Err("profiles at 100 Mb/s over 4 and over 2,048 connections"),
        false => Ok((
            format!(
                "time over {MOST_CONNECTIONS} connections over that over {FEWEST_CONNECTIONS}: {}",
                words.join("; ")
            ),
            Holds::all_of(&grown),
        )),
    }
}

/// Both ends of the axis have the forwarder in the middle, so that its cost is no part of the growth.
pub(super) fn latency(results: &Results) -> Said {
    let all = looks(results, ONE_SEGMENT);
    let (mut words, mut grown) = (Vec::new(), Vec::new());
    for server in servers(&all) {
        let delayed = |found: &WhiteBox, is: &dyn Fn(Duration) -> bool| {
            found.point.connections == MOST_CONNECTIONS
                && delay_of(&found.point.bed).is_some_and(is)
        };
        let near = |found: &WhiteBox| delayed(found, &|delay| delay < Duration::from_millis(1));
        let far = |found: &WhiteBox| delayed(found, &|delay| delay >= LONGEST_DELAY);
        let Some((near, far)) = ends(&all, server, near, far) else { continue };
        let layer = transport(server);
        let (near, far) = (near.layer(layer), far.layer(layer));
        if layer == Layer::Tcp {
            grown.push(grows(far, near, 1.0 + DELAYED * HALF));
        }
        words.push(format!("{server} {} {}x", layer.title(), digits(times(far, near))));
    }
    match grown.is_empty() {
        true => Err("profiles of 2,048 connections at 100 Mb/s, near and 40 ms away"),
        false => Ok((
            format!("time at 40 ms over that at 0: {}", words.join(", ")),
            Holds::all_of(&grown),
        )),
    }
}

/// For the servers in user mode that people run: the highest rate lies between the fewest connections and the most.
pub(super) fn throughput(summary: &Summary) -> Said {
    const LACKING: &str =
        "one file over 4, over 2,048 kept connections and over numbers between them";
    let most = summary.main_points().find(|one| {
        let point = &one.point;
        point.bed == "steered" && point.persistent && point.connections == MOST_CONNECTIONS
    });
    let most = most.ok_or(LACKING)?;
    let like = |one: &&crate::summary::PointSummary| {
        let connections = one.point.connections;
        one.point == crate::results::Point { connections, ..most.point.clone() }
    };
    let mut points: Vec<_> = summary.main_points().filter(like).collect();
    points.sort_by_key(|one| one.point.connections);
    let ([few, between @ .., many], true) = (&points[..], points.len() >= 3) else {
        return Err(LACKING);
    };
    let (mut words, mut hold) = (Vec::new(), Vec::new());
    for row in few.rows.iter().filter(|row| production(&row.server)) {
        let rates = between.iter().filter_map(|one| Some(one.row(&row.server)?.rate));
        let (Some(best), Some(last)) =
            (rates.max_by(|a, b| a.median.total_cmp(&b.median)), many.row(&row.server))
        else {
            continue;
        };
        hold.push(best.min > row.rate.max && best.min > last.rate.max);
        words.push(format!(
            "{} {}x, then {}x",
            row.server,
            digits(best.median / row.rate.median),
            digits(last.rate.median / best.median)
        ));
    }
    match words.is_empty() || few.point.connections != FEWEST_CONNECTIONS {
        true => Err(LACKING),
        false => Ok((
            format!(
                "best rate over that of {FEWEST_CONNECTIONS}, rate of {MOST_CONNECTIONS} over the best: {}",
                words.join("; ")
            ),
            Holds::all_of(&hold),
        )),
    }
}
