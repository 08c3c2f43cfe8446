//! Our finding beside each of the papers', in words, and whether the two agree.

use super::verdict::{ABOUT, Holds, Said};
use crate::report::words::told;
use crate::results::{Point, Results};
use crate::stats::{Ratio, Verdict};
use crate::summary::{PointSummary, Summary};
use crate::units::{digits, number};

/// Servers that people run: the papers compared with these, and with no program that was made for a comparison.
const PRODUCTION: &[&str] = &[
    "nginx",
    "nginx-debian13",
    "h2o",
    "apache-prefork",
    "apache-event",
    "lighttpd",
    "caddy",
    "haproxy",
    "haproxy-debian13",
    "varnish",
    "varnish-debian13",
];

pub(in crate::report) fn production(name: &str) -> bool {
    PRODUCTION.contains(&name)
}

/// The server that stands for AFPA: the socketless one, as `afpa serve` is by default, if it was measured and each request has a
/// connection of its own.
pub(in crate::report) fn own(summary: &Summary, persistent: bool) -> &str {
    const SOCKETLESS: &str = "afpa-socketless";
    let measured = || summary.main_points().any(|one| one.row(SOCKETLESS).is_some());
    if !persistent && measured() { SOCKETLESS } else { &summary.subject }
}

/// The fastest servers in user mode, at points of a workload (by the beginning of its name): of those
/// that people run, which decides, and of all. The papers had one request a connection.
pub(super) fn best_user_mode(
    results: &Results,
    summary: &Summary,
    workload: &str,
    expected: f64,
) -> Said {
    let mut words = Vec::new();
    let mut lowest = f64::INFINITY;
    let mut as_in_the_papers = false;
    let named = |one: &&PointSummary| one.point.workload.starts_with(workload);
    let mut loads: Vec<(&str, bool, u32)> = Vec::new();
    for one in summary.main_points().filter(named) {
        let Point { workload, persistent, connections, .. } = &one.point;
        if loads.contains(&(workload, *persistent, *connections)) {
            continue;
        }
        loads.push((workload, *persistent, *connections));
        let Some((first, ratio, bed)) = best(results, summary, one, production) else { continue };
        as_in_the_papers |= !persistent;
        lowest = lowest.min(if ratio.verdict == Verdict::More { ratio.spread.median } else { 0.0 });
        let mut line = format!(
            "{} over {first}, the fastest of those that people run: {} ({}, {connections} \
             connections, bed {bed})",
            own(summary, *persistent),
            told(&ratio),
            kind(*persistent),
        );
        let other = |name: &str| !name.starts_with("afpa");
        match best(results, summary, one, other) {
            Some((second, ratio, _)) if second != first => {
                line += &format!(", over {second}, the fastest of all: {}", told(&ratio));
            }
            _ => {}
        }
        words.push(line);
    }
    if words.is_empty() {
        return Err("this load on AFPA and on a server that people run");
    }
    if !as_in_the_papers {
        words.push("one request a connection, as the papers had it: not measured".into());
    }
    let holds = match lowest {
        enough if enough >= expected * ABOUT && as_in_the_papers => Holds::Yes,
        some if some > 1.0 => Holds::Partly,
        _ => Holds::No,
    };
    Ok((words.join("; "), holds))
}

/// The server, of those that `counts`, to which AFPA's ratio is the lowest; with the bed.
pub(super) fn best<'r>(
    results: &'r Results,
    summary: &'r Summary,
    one: &PointSummary,
    counts: impl Fn(&str) -> bool,
) -> Option<(&'r str, Ratio, &'r str)> {
    let own = own(summary, one.point.persistent);
    let names = results.servers.iter().map(|server| server.name.as_str());
    let ratios = names.filter(|name| counts(name)).filter_map(|name| {
        let (ratio, bed) = summary.quoted_of(results, own, &one.point, name)?;
        Some((name, ratio, bed))
    });
    ratios.min_by(|(_, one, _), (_, other, _)| one.spread.median.total_cmp(&other.spread.median))
}

/// The papers' gains: of the software interrupt over threads, and of Howl over the best production server.
const OVER_THREADS: f64 = 0.12;
const OF_HOWL: f64 = 0.32;

/// One program under two tables of states. AFPA in the kernel and in user mode are no such pair, and decide nothing.
pub(super) fn interrupt_over_thread(results: &Results, summary: &Summary) -> Said {
    const LACKING: &str = "a small file over kept connections on afpa-interrupt and afpa-threads";
    let one = smallest(summary, true).ok_or(LACKING)?;
    one.row("afpa-interrupt").ok_or(LACKING)?;
    let found = summary.quoted_of(results, "afpa-interrupt", &one.point, "afpa-threads");
    let (ratio, bed) = found.ok_or(LACKING)?;
    let words = format!("afpa-interrupt over afpa-threads: {} (bed {bed})", told(&ratio));
    Ok((words, Holds::gain(&ratio, OVER_THREADS)))
}

/// Howl closes each connection: it is compared where all do.
pub(super) fn howl(results: &Results, summary: &Summary) -> Said {
    const LACKING: &str =
        "a small file with one request a connection, on howl and on a server that people run";
    let one = smallest(summary, false).ok_or(LACKING)?;
    let howl = one.row("howl").ok_or(LACKING)?;
    let rows = one.rows.iter().filter(|row| production(&row.server));
    let best = rows.max_by(|a, b| a.rate.median.total_cmp(&b.rate.median)).ok_or(LACKING)?;
    let ratio = summary.quoted_of(results, "howl", &one.point, &best.server);
    let (ratio, _) = ratio.ok_or(LACKING)?;
    let own = own(summary, false);
    let words = format!(
        "howl {}, {} (the fastest production server in user mode) {}: {}{}",
        number(howl.rate.median, "/s"),
        best.server,
        number(best.rate.median, "/s"),
        told(&ratio),
        one.row(own)
            .map_or(String::new(), |row| format!("; {own} {}", number(row.rate.median, "/s"))),
    );
    Ok((words, Holds::gain(&ratio, OF_HOWL)))
}

/// With one request a connection, as the papers had it, and over persistent ones.
pub(super) fn prefork_is_slowest(_: &Results, summary: &Summary) -> Said {
    let mut words = Vec::new();
    let mut last = Vec::new();
    for persistent in [false, true] {
        let one = smallest(summary, persistent);
        let Some((one, prefork)) = one.and_then(|one| Some((one, one.row("apache-prefork")?)))
        else {
            continue;
        };
        let slower = one.rows.iter().filter(|row| row.rate.max < prefork.rate.min).count();
        let mp = one
            .row("mp")
            .map(|row| format!(", mp on our own core {}", number(row.rate.median, "/s")));
        words.push(format!(
            "apache-prefork {}; {slower} of {} servers are slower{} ({})",
            number(prefork.rate.median, "/s"),
            one.rows.len() - 1,
            mp.unwrap_or_default(),
            kind(persistent),
        ));
        last.push(slower == 0);
    }
    let holds = match (last.contains(&true), last.contains(&false)) {
        (false, false) => return Err("a small file on apache-prefork"),
        (true, false) => Holds::Yes,
        (true, true) => Holds::Partly,
        (false, true) => Holds::No,
    };
    Ok((words.join("; "), holds))
}

/// The papers' servers behind the proxy were other machines; here they share its core.
pub(super) fn proxy(summary: &Summary) -> Said {
    const LACKING: &str =
        "the proxy and the cache of AFPA in user mode, with one request a connection";
    let proxied = |one: &&PointSummary| {
        !one.point.persistent
            && one.point.workload.starts_with("proxy-")
            && one.row("afpa-proxy").is_some()
    };
    let one = summary.main_points().find(proxied).ok_or(LACKING)?;
    let own = one.row("afpa-proxy").ok_or(LACKING)?;
    let cache = smallest(summary, false).and_then(|one| one.row("afpa")).ok_or(LACKING)?;
    let ratio = cache.rate.median / own.rate.median;
    let others =
        one.rows.iter().filter(|row| row.server.ends_with("-proxy") && row.server != own.server);
    let others: String = others
        .map(|row| {
            let faster = row.rate.min > own.rate.max;
            let mark = if faster { ", which is faster" } else { "" };
            format!("; {} {}{mark}", row.server, number(row.rate.median, "/s"))
        })
        .collect();
    let words = format!(
        "afpa-proxy {}, the cache of afpa {}: {}x{others} (the servers behind the proxies share their core)",
        number(own.rate.median, "/s"),
        number(cache.rate.median, "/s"),
        digits(ratio),
    );
    let holds = match ratio {
        a_quarter if (3.0..5.0).contains(&a_quarter) => Holds::Yes,
        more if more > 1.0 => Holds::Partly,
        _ => Holds::No,
    };
    Ok((words, holds))
}

/// The smallest file of WebStone, on the steered bed.
fn smallest(summary: &Summary, persistent: bool) -> Option<&PointSummary> {
    let length = |one: &&PointSummary| {
        let digits = one.point.workload.strip_prefix("webstone-").unwrap_or_default();
        digits.parse::<u64>().unwrap_or(u64::MAX)
    };
    let kind = |one: &&PointSummary| {
        one.point.persistent == persistent
            && one.point.bed == "steered"
            && one.point.workload.starts_with("webstone-")
    };
    summary.main_points().filter(kind).min_by_key(length)
}

fn kind(persistent: bool) -> &'static str {
    if persistent { "persistent" } else { "one request a connection" }
}
