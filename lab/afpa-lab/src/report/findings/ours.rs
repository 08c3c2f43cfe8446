//! What our runs say of each finding, in words, and whether that is what the papers found.

use super::Holds;
use crate::presets::USUAL_CONNECTIONS;
use crate::report::told;
use crate::results::{Point, Results};
use crate::stats::{Ratio, Verdict};
use crate::summary::{PointSummary, Summary};
use crate::units::{digits, number, size};

/// What people run: the papers compared with these, and with nothing that was made to be compared.
const PRODUCTION: &[&str] =
    &["nginx", "h2o", "apache-prefork", "apache-event", "lighttpd", "caddy", "haproxy", "varnish"];

/// The fastest servers in user mode, at points of a workload (by the beginning of its name): of those
/// that people run, which decides, and of all.
pub(super) fn best_user_mode(
    results: &Results,
    summary: &Summary,
    workload: &str,
    expected: f64,
) -> Option<(String, Holds)> {
    let mut words = Vec::new();
    let mut lowest = f64::INFINITY;
    let named = |one: &&PointSummary| one.point.workload.starts_with(workload);
    let mut loads: Vec<(&str, bool, u32)> = Vec::new();
    for one in summary.main_points().filter(named) {
        let Point { workload, persistent, connections, .. } = &one.point;
        if loads.contains(&(workload, *persistent, *connections)) {
            continue;
        }
        loads.push((workload, *persistent, *connections));
        let production = |name: &str| PRODUCTION.contains(&name);
        let Some((first, ratio, bed)) = best(results, summary, one, production) else { continue };
        lowest = lowest.min(ratio.spread.median);
        let mut line = format!(
            "{} over {first}, the fastest of those that people run: {} ({}, {connections} \
             connections, bed {bed})",
            summary.subject,
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
    let holds = match lowest {
        enough if enough >= expected => Holds::Yes,
        some if some > 1.0 => Holds::Partly,
        _ => Holds::No,
    };
    (!words.is_empty()).then(|| (words.join("; "), holds))
}

/// The server, of those that `counts`, to which the subject's ratio is the lowest; with the bed.
fn best<'r>(
    results: &'r Results,
    summary: &'r Summary,
    one: &PointSummary,
    counts: impl Fn(&str) -> bool,
) -> Option<(&'r str, Ratio, &'r str)> {
    let names = results.servers.iter().map(|server| server.name.as_str());
    let ratios = names.filter(|name| counts(name)).filter_map(|name| {
        let (ratio, bed) = summary.quoted(&one.point, name)?;
        Some((name, ratio, bed))
    });
    ratios.min_by(|(_, one, _), (_, other, _)| one.spread.median.total_cmp(&other.spread.median))
}

/// Over persistent connections, on the largest file: the best user-mode server's bytes.
pub(super) fn large_files(results: &Results, summary: &Summary) -> Option<(String, Holds)> {
    let large = |one: &&PointSummary| {
        let workload = results.workloads.get(&one.point.workload);
        let webstone = workload.filter(|workload| workload.family == "webstone");
        let size = webstone.and_then(|workload| workload.point).unwrap_or(0.0);
        size >= 131_072.0 && one.point.persistent && one.point.bed == "steered"
    };
    let mut words = Vec::new();
    let mut behind = 0;
    for one in summary.main_points().filter(large) {
        let own = one.row(&summary.subject)?;
        let others = one.rows.iter().filter(|row| !row.server.starts_with("afpa"));
        let best = others.max_by(|a, b| a.bytes.median.total_cmp(&b.bytes.median))?;
        let ratio = best.bytes.median / own.bytes.median;
        behind += usize::from(ratio < 0.9);
        let length = results.workloads.get(&one.point.workload)?.point? as u64;
        words.push(format!(
            "{}: {} {}, {} {}",
            size(length),
            best.server,
            number(best.bytes.median, "B/s"),
            own.server,
            number(own.bytes.median, "B/s")
        ));
    }
    let holds = match (behind, words.len()) {
        (0, _) => Holds::Yes,
        (some, all) if some < all => Holds::Partly,
        _ => Holds::No,
    };
    (!words.is_empty()).then(|| (words.join("; "), holds))
}

pub(super) fn interrupt_over_thread(_: &Results, summary: &Summary) -> Option<(String, Holds)> {
    let point = smallest(summary, true)?;
    let (ratio, bed) = summary.quoted(&point.point, "afpa")?;
    let holds = if ratio.verdict == Verdict::More { Holds::Yes } else { Holds::No };
    let words = format!("{} over afpa: {} (bed {bed})", summary.subject, told(&ratio));
    (summary.subject != "afpa").then_some((words, holds))
}

/// Howl closes each connection: it is compared where all do.
pub(super) fn howl(_: &Results, summary: &Summary) -> Option<(String, Holds)> {
    let one = smallest(summary, false)?;
    let howl = one.row("howl")?;
    let rows = one.rows.iter().filter(|row| PRODUCTION.contains(&row.server.as_str()));
    let best = rows.max_by(|a, b| a.rate.median.total_cmp(&b.rate.median))?;
    let ratio = howl.rate.median / best.rate.median;
    let holds = match ratio {
        little if (0.95..1.6).contains(&little) => Holds::Yes,
        more if more >= 1.6 => Holds::Partly,
        _ => Holds::No,
    };
    let words = format!(
        "howl {}, {} (the fastest production server in user mode) {}: {}x; {} {}",
        number(howl.rate.median, "/s"),
        best.server,
        number(best.rate.median, "/s"),
        digits(ratio),
        summary.subject,
        number(one.row(&summary.subject)?.rate.median, "/s"),
    );
    Some((words, holds))
}

pub(super) fn prefork_is_slowest(_: &Results, summary: &Summary) -> Option<(String, Holds)> {
    let one = smallest(summary, true)?;
    let prefork = one.row("apache-prefork")?;
    let slower = one.rows.iter().filter(|row| row.rate.max < prefork.rate.min).count();
    let mp =
        one.row("mp").map(|row| format!(", mp on our own core {}", number(row.rate.median, "/s")));
    let words = format!(
        "apache-prefork {}; {slower} of {} servers are slower{}",
        number(prefork.rate.median, "/s"),
        one.rows.len() - 1,
        mp.unwrap_or_default()
    );
    Some((words, if slower == 0 { Holds::Yes } else { Holds::No }))
}

/// In server-core time, for the generator may be the limit of both.
pub(super) fn zero_copy(results: &Results, summary: &Summary) -> Option<(String, Holds)> {
    let mut gains = Vec::new();
    for one in
        summary.main_points().filter(|one| one.point.persistent && one.point.bed == "steered")
    {
        let pair = (one.row("afpa-sendfile"), one.row("afpa-copy"));
        let (Some(sendfile), Some(copy)) = pair else { continue };
        let workload = results.workloads.get(&one.point.workload);
        let length = workload.filter(|w| w.family == "webstone").and_then(|w| w.point);
        let Some(length) = length else { continue };
        gains.push((length as u64, copy.cost.median / sendfile.cost.median));
    }
    gains.sort_unstable_by_key(|(length, _)| *length);
    let told = |(length, gain): &(u64, f64)| format!("{}: {}x", size(*length), digits(*gain));
    let words: Vec<String> = gains.iter().map(told).collect();
    let at = |wanted: u64| {
        gains.iter().filter(|(length, _)| *length >= wanted).map(|(_, gain)| *gain).next()
    };
    let holds = match (at(4096)?, at(32_768)?) {
        (small, large) if small >= 1.15 && large >= 1.5 => Holds::Yes,
        (_, large) if large >= 1.1 => Holds::Partly,
        _ => Holds::No,
    };
    Some((format!("cost of copying over cost of sendfile, {}", words.join(", ")), holds))
}

/// The papers' servers behind the proxy were other machines; here they share its core.
pub(super) fn proxy(summary: &Summary) -> Option<(String, Holds)> {
    let proxied = |one: &&PointSummary| {
        one.point.workload.starts_with("proxy-") && one.row("afpa-proxy").is_some()
    };
    let one = summary.main_points().filter(proxied).min_by_key(|one| one.point.persistent)?;
    let own = one.row("afpa-proxy")?;
    let cache = smallest(summary, one.point.persistent)?.row("afpa")?;
    let ratio = cache.rate.median / own.rate.median;
    let others =
        one.rows.iter().filter(|row| row.server.ends_with("-proxy") && row.server != own.server);
    let others: String =
        others.map(|row| format!(", {} {}", row.server, number(row.rate.median, "/s"))).collect();
    let words = format!(
        "afpa-proxy {}{others}; the cache of afpa {}: {}x ({}; the servers behind the proxies share \
         their core)",
        number(own.rate.median, "/s"),
        number(cache.rate.median, "/s"),
        digits(ratio),
        kind(one.point.persistent),
    );
    let holds = match ratio {
        like if (2.5..6.5).contains(&like) => Holds::Yes,
        more if more > 1.0 => Holds::Partly,
        _ => Holds::No,
    };
    Some((words, holds))
}

/// Two variants of one architecture, where both were measured; no verdict but the figures' own.
pub(super) fn pair(
    summary: &Summary,
    one: &str,
    other: &str,
    what: &str,
) -> Option<(String, Holds)> {
    let both = |p: &&PointSummary| p.row(one).is_some() && p.row(other).is_some();
    // JAWS asked for its mix, and had one request a connection.
    let far = |p: &&PointSummary| (p.point.persistent, !p.point.workload.starts_with("jaws"));
    let point = summary.main_points().filter(both).min_by_key(far)?;
    let (first, second) = (point.row(one)?, point.row(other)?);
    let ratio = first.rate.median / second.rate.median;
    let apart = first.rate.min > second.rate.max || first.rate.max < second.rate.min;
    let words = format!(
        "{one} over {what}: {}x ({} against {}, {}, {}){}",
        digits(ratio),
        number(first.rate.median, "/s"),
        number(second.rate.median, "/s"),
        point.point.workload,
        kind(point.point.persistent),
        if apart { "" } else { ": the spreads overlap, no difference" }
    );
    let pool_size = what.starts_with("a pool");
    let holds = match (apart, pool_size) {
        (false, true) => Holds::Yes,
        (false, false) => Holds::No,
        (true, true) => Holds::Partly,
        (true, false) if ratio > 1.0 => Holds::Yes,
        (true, false) => Holds::No,
    };
    Some((words, holds))
}

/// The cost of a request over the most connections and over the usual number of them.
pub(super) fn connections(summary: &Summary) -> Option<(String, Holds)> {
    let steered = |one: &&PointSummary| one.point.bed == "steered" && one.point.persistent;
    let most = summary.main_points().filter(steered).max_by_key(|one| one.point.connections)?;
    let alike = |one: &&PointSummary| one.point.workload == most.point.workload;
    let points = || summary.main_points().filter(steered).filter(alike);
    let usual = points().find(|one| one.point.connections == USUAL_CONNECTIONS)?;
    let mut growths = Vec::new();
    for (many, few) in most.rows.iter().filter_map(|row| Some((row, usual.row(&row.server)?))) {
        growths.push((many.server.as_str(), many.cost.median / few.cost.median));
    }
    let (more, all) = (most.point.connections, growths.len());
    let grown = growths.iter().filter(|(_, growth)| *growth > 1.1).count();
    let told: Vec<String> =
        growths.iter().map(|(server, growth)| format!("{server} {}x", digits(*growth))).collect();
    let holds = match grown {
        every if every == all => Holds::Yes,
        0 => Holds::No,
        _ => Holds::Partly,
    };
    let words = format!(
        "cost over {more} connections over that over {USUAL_CONNECTIONS}, {}: {}",
        most.point.workload,
        told.join(", ")
    );
    (more > USUAL_CONNECTIONS && all > 0).then_some((words, holds))
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
