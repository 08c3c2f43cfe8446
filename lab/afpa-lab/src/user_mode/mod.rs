//! AFPA beside nginx and h2o, by wrk over loopback: `afpa-lab compare`.
//!
//! Every server has one core and one worker, wrk another core. In each round every case is measured once for every
//! server; the order of the servers rotates from round to round, so that a machine that grows slower or busier is not
//! held against the last in line.

mod cases;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use afpa_generator::{ClientSetup, Generator, Load};
use anyhow::{Context, Result, bail, ensure};

use crate::bench::{Bench, Case};
use crate::loopback::{Loopback, on_core};
use crate::peers::{self, Description, Peer, Setup, Summary, Turn};
use crate::servers::{self, Programs, Server};
use crate::usage::Counted;

/// Servers that can take part.
pub const SERVERS: [&str; 4] = ["afpa", KERNEL, "nginx", "h2o"];
/// Its programs are attached to the loopback of a namespace, never to the machine's.
const KERNEL: &str = "afpa-kernel";
const BASELINE: &str = "nginx";
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Measures the servers named, or those that are here; the tables for a terminal.
///
/// # Errors
///
/// When a server is not here, cannot be started, or gives a wrong answer; or when a signal ends the run.
pub fn run(setup: &Setup<'_>, mut bench: Bench, wanted: &[String]) -> Result<String> {
    let wrk = peers::generator("wrk")?;
    let servers = choose(wanted, &setup.programs, &bench)?;
    let names: Vec<&str> = servers.iter().map(|server| server.name()).collect();
    let cases = bench.settings.chosen(cases::all(&names));
    ensure!(!cases.is_empty(), "no such case");
    setup.make_files(&cases)?;
    let folders: Vec<PathBuf> =
        names.iter().map(|name| setup.folder_of(name)).collect::<Result<_>>()?;
    let loopback = Loopback::create()?;
    bench.say(&format!("network: {}", loopback.note));
    loopback.run(|| {
        let started = servers
            .iter()
            .zip(&folders)
            .map(|(server, folder)| setup.start(server.as_ref(), HERE, folder));
        let mut started = started.collect::<Result<Vec<_>>>()?;
        peers::check(&mut started, &cases, 1, &bench)?;
        on_core(setup.client_core, || measure(setup, &mut bench, &started, &cases, wrk.as_ref()))?;
        let names: Vec<String> = started.iter().map(|peer| peer.name.clone()).collect();
        let summary = Summary::of(&bench.samples, &names, &cases, BASELINE)?;
        let told = description(setup, &bench, &started, wrk.as_ref(), &loopback.note);
        peers::write(setup, &bench, &summary, &told)
    })
}

/// The servers to measure: those named, each of which must be there, or all that are.
fn choose(wanted: &[String], programs: &Programs, bench: &Bench) -> Result<Vec<Box<dyn Server>>> {
    let mut chosen = Vec::new();
    for name in SERVERS.iter().filter(|_| wanted.is_empty()) {
        match found(name, programs) {
            Ok(server) => chosen.push(server),
            Err(reason) => bench.say(&format!("servers: {name} is left out: {reason:#}")),
        }
    }
    for name in wanted {
        chosen.push(found(name, programs)?);
    }
    ensure!(!chosen.is_empty(), "no server to measure");
    Ok(chosen)
}

fn found(name: &str, programs: &Programs) -> Result<Box<dyn Server>> {
    ensure!(SERVERS.contains(&name), "no server '{name}'; there are: {}", SERVERS.join(", "));
    let server = servers::find(name, programs).context("it is one of the lab's")?;
    if let Some(reason) = server.lacks() {
        bail!("{reason}; `make compare` sets up what it needs");
    }
    if let Some(reason) = afpa_netlab::missing_privilege().filter(|_| name == KERNEL) {
        bail!("{name}: {reason}");
    }
    Ok(server)
}

/// All rounds, after a warm-up: page cache, branch predictors and the servers' own caches are warm for all.
fn measure(
    setup: &Setup<'_>,
    bench: &mut Bench,
    started: &[Peer<'_>],
    cases: &[Case],
    wrk: &dyn Generator,
) -> Result<()> {
    let warm_up = bench.settings.warm_up;
    for case in cases {
        for peer in started {
            bench.check()?;
            turn(setup, case, peer.address, wrk, Duration::try_from_secs_f64(warm_up)?)
                .take(case, peer)?;
        }
        let seconds = bench.settings.length_of(case);
        let word = format!("{}, by {}", case.name, wrk.name());
        bench.commands.insert(word, command(setup, case, seconds));
    }
    started.iter().for_each(|peer| {
        bench.commands.insert(peer.name.clone(), peer.running.command());
    });
    bench.rounds(cases, |bench, case, server| {
        let peer = peers::named(started, server)?;
        turn(setup, case, peer.address, wrk, bench.settings.length_of(case)).take(case, peer)
    })
}

fn turn<'t>(
    setup: &Setup<'_>,
    case: &Case,
    to: SocketAddr,
    wrk: &'t dyn Generator,
    lasts: Duration,
) -> Turn<'t> {
    Turn {
        generator: wrk,
        client: ClientSetup {
            to,
            interface: "lo".into(),
            first_source: HERE,
            sources: 1,
            core: setup.client_core,
            answers_at_once: false,
            ages: false,
        },
        load: Load {
            connections: case.connections,
            warm_up: Duration::ZERO,
            duration: lasts,
            persistent: true,
            rate: None,
        },
        cores: (setup.server_core, setup.client_core),
        counted: Counted::ByTick,
    }
}

fn command(setup: &Setup<'_>, case: &Case, lasts: Duration) -> String {
    let path = case.objects.first().map_or("/", |(_, object)| object.path.as_str());
    format!(
        "taskset -c {} wrk --threads 1 --connections {} --duration {}s --latency http://SERVER{path}",
        setup.client_core,
        case.connections,
        lasts.as_secs_f64().round().max(1.0)
    )
}

fn description(
    setup: &Setup<'_>,
    bench: &Bench,
    started: &[Peer<'_>],
    wrk: &dyn Generator,
    network: &str,
) -> Description {
    let settings = &bench.settings;
    let versions = started.iter().map(|peer| peer.version.clone());
    let about = vec![
        format!(
            "Medians of {} interleaved rounds of {} s; servers on core {} with one worker, wrk on core {}; \
             {network}; access logs off. The ratio is the median of the rounds' own ratios, with their smallest \
             and largest.",
            settings.rounds, settings.seconds, setup.server_core, setup.client_core
        ),
        "On loopback the kernel does part of each side's packet work on the other side's core: compare servers by \
         these figures, and do not take them for the cost behind a network card."
            .to_owned(),
    ];
    Description {
        title: "AFPA beside its peers".into(),
        about,
        versions: crate::bench::each_once(versions.chain([wrk.version()])),
        verdicts: Vec::new(),
        columns: 2,
    }
}
