//! A rush on the proxies: `afpa-lab proxy --over-network`.
//!
//! Many clients at a time, over veth pairs and not over loopback, where the kernel would use a port again that rests in
//! TIME_WAIT. Each measurement has a network of its own, so that no proxy finds the ports that another one has used up. wrk
//! and the servers share the other core, and are the same for all.

mod ask;
mod point;

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;

use super::network::Network;
use crate::bench::{Align, Bench, Report, Table, each_once};
use crate::environment::Environment;
use crate::peers::Setup;
use crate::servers::{ServerSetup, rush};
use crate::stats::Spread;
use ask::Seen;
pub use point::CLIENTS;
use point::{Point, points};

/// One measurement.
#[derive(Debug, Clone, Serialize)]
struct Taken {
    point: String,
    proxy: String,
    round: u32,
    seen: Seen,
}

/// Measures the proxies under a rush; the table for a terminal. `clients`: how many at a time.
///
/// # Errors
///
/// When a proxy is not here or cannot be started, or when a signal ends the run.
pub fn run(setup: &Setup<'_>, bench: Bench, proxies: &[String], clients: &[u32]) -> Result<String> {
    afpa_netlab::use_all_open_files()?;
    let proxies = choose(setup, &bench, proxies)?;
    let only = &bench.settings.only;
    let wanted =
        |point: &Point| only.is_empty() || only.iter().any(|part| point.name().contains(part));
    let points: Vec<Point> = points(clients).into_iter().filter(wanted).collect();
    ensure!(!points.is_empty(), "no case has such a name");
    let mut taken = Vec::new();
    for round in 0..bench.settings.rounds {
        for (number, point) in points.iter().enumerate() {
            let first = (round as usize + number) % proxies.len();
            for proxy in proxies.iter().cycle().skip(first).take(proxies.len()) {
                bench.check()?;
                let seen = measure(setup, &bench, point, proxy)
                    .with_context(|| format!("{}, {proxy}", point.name()))?;
                bench.say(&format!("{}, {proxy}: {}", point.name(), seen.line()));
                let (point, proxy) = (point.name(), proxy.clone());
                taken.push(Taken { point, proxy, round: round + 1, seen });
            }
        }
    }
    tell(setup, &bench, &proxies, &points, &taken)
}

fn choose(setup: &Setup<'_>, bench: &Bench, named: &[String]) -> Result<Vec<String>> {
    for program in ["nginx", "wrk"] {
        if let Some(reason) = crate::servers::lacks_program(program) {
            bail!("{reason}; `make bench-proxy` sets up what it needs");
        }
    }
    let mut chosen = Vec::new();
    for name in rush::RUSHED.iter().map(|name| (*name).to_owned()).filter(|_| named.is_empty()) {
        match rush::lacks(&name, &setup.programs) {
            None => chosen.push(name),
            Some(reason) => bench.say(&format!("proxies: {name} is left out: {reason}")),
        }
    }
    for name in named {
        if let Some(reason) = rush::lacks(name, &setup.programs) {
            bail!("{reason}");
        }
        chosen.push(name.clone());
    }
    ensure!(!chosen.is_empty(), "no proxy to measure");
    Ok(chosen)
}

/// One point with one proxy, in a network of their own.
fn measure(setup: &Setup<'_>, bench: &Bench, point: &Point, proxy: &str) -> Result<Seen> {
    let network = Network::cores(setup.server_core, setup.client_core)?;
    let folders: [PathBuf; 2] = [setup.folder_of("servers")?, setup.folder_of(proxy)?];
    network.run(|| {
        let at = |ip, core, namespace, folder| ServerSetup {
            namespace,
            core,
            address: SocketAddr::new(ip, 0),
            root: &setup.root,
            folder,
            connections: point.clients,
        };
        let servers = at(network.servers(), setup.client_core, network.of_servers(), &folders[0]);
        let servers = rush::start_servers(&servers)?;
        let proxy_setup = at(network.proxy(), setup.server_core, None, &folders[1]);
        let running = rush::start_proxy(proxy, &proxy_setup, network.servers(), &setup.programs)?;
        setup.keep_configuration(&format!("rush-{proxy}"), &running)?;
        let to = rush::address(network.proxy(), point.servers, point.closes);
        let settings = &bench.settings;
        let cores = (setup.server_core, setup.client_core);
        let seen = ask::ask(&network, cores, point, to, settings.seconds)?;
        running.stop()?;
        servers.stop()?;
        Ok(seen)
    })
}

fn tell(
    setup: &Setup<'_>,
    bench: &Bench,
    proxies: &[String],
    points: &[Point],
    taken: &[Taken],
) -> Result<String> {
    let settings = &bench.settings;
    let versions = each_once(proxies.iter().map(|name| rush::version(name, &setup.programs)));
    let mut report =
        Report::new("A rush on the proxies, over a network", &Environment::look(), &versions);
    report.text(&format!(
        "Medians of {} rounds of {} s, with the smallest and the largest. The proxy alone on core {}, wrk and the servers \
         (nginx, {} bytes, or 10 KB) on core {}; a network of veth pairs of its own for each measurement. *Connects*: connections that \
         the proxy made to servers for a request. *Resting*: its ports in TIME_WAIT at the end. *Busy*: microseconds of the \
         proxy's core for a request.",
        settings.rounds, settings.seconds, setup.server_core, 102, setup.client_core
    ));
    let mut table = Table::new([
        ("case", Align::Left),
        ("proxy", Align::Left),
        ("requests/s", Align::Right),
        ("to the best other", Align::Right),
        ("connects", Align::Right),
        ("resting", Align::Right),
        ("p99 ms", Align::Right),
        ("busy us", Align::Right),
        ("failed", Align::Right),
    ]);
    for point in points {
        for proxy in proxies {
            table.row(row(point, proxy, proxies, taken));
        }
    }
    report.table(&table);
    let verdict = verdict(points, proxies, taken);
    report.text(&verdict);
    report.write(setup.folder, &taken, None)?;
    Ok(report.markdown().to_owned())
}

fn row(point: &Point, proxy: &str, proxies: &[String], taken: &[Taken]) -> Vec<String> {
    let name = point.name();
    let spread = |of: fn(&Seen) -> f64| {
        let seen = taken.iter().filter(|one| one.point == name && one.proxy == proxy);
        Spread::of(seen.map(|one| of(&one.seen)))
    };
    let median = |of: fn(&Seen) -> f64| spread(of).map_or(0.0, |spread| spread.median);
    let rate = spread(Seen::rate).map_or_else(String::new, |Spread { min, median, max }| {
        match min < max {
            true => format!("{median:.0} ({min:.0} to {max:.0})"),
            false => format!("{median:.0}"),
        }
    });
    let share =
        share(&name, proxy, proxies, taken).map_or("-".to_owned(), |share| format!("{share:.2}x"));
    vec![
        name.clone(),
        proxy.to_owned(),
        rate,
        share,
        format!("{:.3}", median(Seen::connects)),
        format!("{:.0}", median(|seen| seen.resting as f64)),
        format!("{:.1}", median(|seen| seen.p99_us / 1000.0)),
        format!("{:.1}", median(Seen::busy_us)),
        format!("{:.2}%", median(Seen::failed) * 100.0),
    ]
}

/// The median rate of a proxy to that of the best other one.
fn share(point: &str, proxy: &str, proxies: &[String], taken: &[Taken]) -> Option<f64> {
    let rate = |name: &str| {
        let of = taken.iter().filter(|one| one.point == point && one.proxy == name);
        Some(Spread::of(of.map(|one| one.seen.rate()))?.median)
    };
    let others = proxies.iter().filter(|name| *name != proxy).filter_map(|name| rate(name));
    let best = others.max_by(f64::total_cmp).filter(|best| *best > 0.0)?;
    Some(rate(proxy)? / best)
}

/// Where AFPA falls behind.
fn verdict(points: &[Point], proxies: &[String], taken: &[Taken]) -> String {
    const LEAST: f64 = 0.95;
    let behind: Vec<String> = points
        .iter()
        .filter_map(|point| {
            let share = share(&point.name(), "afpa", proxies, taken)?;
            (share < LEAST).then(|| format!("{} ({share:.2}x)", point.name()))
        })
        .collect();
    match behind.as_slice() {
        [] => format!("AFPA is nowhere below {LEAST} of the best other proxy."),
        behind => {
            format!("AFPA is below {LEAST} of the best other proxy in: {}.", behind.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(proxy: &str, requests: u64) -> Taken {
        let seen = Seen { requests, seconds: 1.0, ..Seen::default() };
        let point = points(&[64])[0].name();
        Taken { point, proxy: proxy.to_owned(), round: 1, seen }
    }

    #[test]
    fn a_proxy_stands_beside_the_best_other_one() {
        let all = [taken("afpa", 90), taken("haproxy", 100), taken("nginx", 80)];
        let names: Vec<String> = all.iter().map(|one| one.proxy.clone()).collect();
        let of = |name| share(&all[0].point, name, &names, &all);
        assert_eq!((of("afpa"), of("haproxy")), (Some(0.9), Some(100.0 / 90.0)));
        let points = &points(&[64])[..1];
        assert!(verdict(points, &names, &all).contains("(0.90x)"));
        assert!(
            verdict(points, &names, &[taken("afpa", 100), taken("nginx", 100)]).contains("nowhere")
        );
    }
}
