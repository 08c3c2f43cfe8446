//! AFPA's proxy beside HAProxy and nginx: `afpa-lab proxy`.
//!
//! Each proxy has one core and one thread, with keep-alive on both sides. In each round every case is measured once for
//! every proxy, in rotating order. On the bed *cores* (as root) clients and servers are light: a closed loop in TC asks,
//! and three servers answer small files in softirq, so that the proxy's core is the bottleneck, and its requests a
//! second by the clock are those of its core. Then all are asked at the same rates, by an open loop over sockets, for
//! latencies: in many short measurements, of which the calm quarter says what the proxies do. On *loopback* wrk and the
//! servers share the other core, which is full first.

mod cases;
mod network;
mod run;
pub mod rush;
mod verdict;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::bench::{Bench, Case, Settings};
use crate::peers::{self, Setup};
use crate::servers::{
    BACKENDS, BALANCERS, Backend, Balancer, Programs, Running, Server, ServerSetup,
};

use network::Network;
use run::Run;

/// Proxies that are measured when none is named.
const USUAL: [&str; 5] = ["afpa", "haproxy", "nginx", "haproxy-debian13", "nginx-debian13"];
const KERNEL: &str = "afpa-kernel";
/// Each file is asked of each server behind a proxy, twice.
const CHECKS: u32 = 6;

/// The options of the command line, besides those of every bench.
#[derive(Debug, Clone)]
pub struct Options {
    /// Empty: those of the usual ones that are here.
    pub proxies: Vec<String>,
    /// The servers behind the proxies.
    pub servers: Backend,
    /// All in one namespace, and not in three.
    pub loopback: bool,
    /// Whether they are asked at given rates, too.
    pub latency: bool,
}

/// Measures the proxies; the tables and verdicts for a terminal.
///
/// # Errors
///
/// When a proxy is not here, cannot be started, or gives a wrong answer; or when a signal ends the run.
pub fn run(setup: &Setup<'_>, mut bench: Bench, options: &Options) -> Result<String> {
    let names = choose(options, &setup.programs, &bench)?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let all = cases::closed(&names);
    let wanted = wanted(&bench.settings, &all)?;
    setup.make_files(&all)?;
    let own = setup.folder_of("server")?;
    let folders: Vec<PathBuf> =
        names.iter().map(|name| setup.folder_of(name)).collect::<Result<_>>()?;
    let network = match options.loopback {
        true => Network::loopback()?,
        false => Network::cores(setup.server_core, setup.client_core)?,
    };
    bench.say(&format!("network: {}", network.note()));
    network.run(|| {
        let addresses = addresses(&network)?;
        let backends = start_backends(setup, options.servers, &network, &addresses, &own)?;
        let started = names.iter().zip(&folders).map(|(name, folder)| {
            let balancer = Balancer::named(name, &setup.programs, addresses);
            setup.start(&balancer.context("it was chosen")?, network.proxy(), folder)
        });
        let mut started = started.collect::<Result<Vec<_>>>()?;
        peers::check(&mut started, &all, CHECKS, &bench)?;
        bench.commands.insert("servers".into(), backends.command());
        let run = Run { setup, network: &network, started: &started };
        let measured = run.measure(&mut bench, wanted, options.latency)?;
        run.tell(&mut bench, &measured)
    })
}

/// The proxies to measure: those named, each of which must be there, or all usual ones that are.
fn choose(options: &Options, programs: &Programs, bench: &Bench) -> Result<Vec<String>> {
    if let Some(reason) = options.servers.lacks(programs) {
        bail!("{reason}; `make bench-proxy` sets up what it needs");
    }
    let mut chosen = Vec::new();
    for name in USUAL.into_iter().filter(|_| options.proxies.is_empty()) {
        match look_for(name, programs) {
            Ok(()) => chosen.push(name.to_owned()),
            Err(reason) => bench.say(&format!("proxies: {name} is left out: {reason:#}")),
        }
    }
    for name in &options.proxies {
        ensure!(name != KERNEL || !options.loopback, "{KERNEL} needs the bed 'cores'");
        look_for(name, programs)?;
        chosen.push(name.clone());
    }
    ensure!(!chosen.is_empty(), "no proxy to measure");
    Ok(chosen)
}

fn look_for(name: &str, programs: &Programs) -> Result<()> {
    let nowhere = [SocketAddr::from(([127, 0, 0, 1], 0)); BACKENDS];
    let Some(balancer) = Balancer::named(name, programs, nowhere) else {
        bail!("no proxy '{name}'; there are: {}", BALANCERS.join(", "));
    };
    match balancer.lacks() {
        Some(reason) => bail!("{reason}; `make bench-proxy` sets up what it needs"),
        None => Ok(()),
    }
}

/// The cases that were asked for, by their whole names.
fn wanted(settings: &Settings, all: &[Case]) -> Result<Vec<Case>> {
    for name in &settings.only {
        let names: Vec<&str> = all.iter().map(|case| case.name.as_str()).collect();
        ensure!(
            names.contains(&name.as_str()),
            "no case '{name}'; there are: {}",
            names.join(", ")
        );
    }
    let wanted = |case: &&Case| settings.only.is_empty() || settings.only.contains(&case.name);
    Ok(all.iter().filter(wanted).cloned().collect())
}

/// Where the servers behind the proxies listen.
fn addresses(network: &Network) -> Result<[SocketAddr; BACKENDS]> {
    let mut addresses = [SocketAddr::new(network.servers(), 0); BACKENDS];
    for address in &mut addresses {
        address.set_port(peers::free_port()?);
    }
    Ok(addresses)
}

fn start_backends<'n>(
    setup: &'n Setup<'_>,
    servers: Backend,
    network: &'n Network,
    addresses: &[SocketAddr; BACKENDS],
    folder: &'n Path,
) -> Result<Running<'n>> {
    let own = ServerSetup {
        namespace: network.of_servers(),
        core: setup.client_core,
        address: addresses[0],
        root: &setup.root,
        folder,
        connections: 64,
    };
    let running = servers.start(&own, addresses, &setup.programs).context("the servers")?;
    setup.keep_configuration("server", &running)?;
    Ok(running)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_chosen_by_their_whole_names() {
        let all = cases::closed(&["afpa"]);
        let settings = |only: &[&str]| Settings {
            rounds: 1,
            seconds: 1.0,
            warm_up: 0.3,
            quick: false,
            only: only.iter().map(|name| (*name).to_owned()).collect(),
        };
        assert_eq!(wanted(&settings(&[]), &all).unwrap().len(), 5);
        let mix = wanted(&settings(&["mix"]), &all).unwrap();
        assert_eq!((mix.len(), mix[0].name.as_str()), (1, "mix"));
        assert!(wanted(&settings(&["tin"]), &all).is_err());
    }
}
