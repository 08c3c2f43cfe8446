//! `afpa-lab cores`: how rates grow with the cores of the server.
//!
//! A server of K workers on K cores has K clients, each in a namespace of its own behind a veth pair of its own, that ask from
//! softirq on a core of their own. Packets of a pair are processed on the pair's cores, as a network card with a queue for
//! each core does it. So a server that keeps a connection on the core that receives its packets has no reason to
//! grow less than its cores.

mod servers;
mod table;
mod verdict;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use afpa_netlab::load::{Generator, LoadOptions, Target};
use afpa_netlab::{CoreTimes, Lane, Star, pin};
use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::bed::CONGESTION;
use crate::environment::Environment;
pub use servers::Candidate;
use servers::Process;

/// The settings of a comparison.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Numbers of cores of the server.
    pub counts: Vec<usize>,
    /// The servers.
    pub candidates: Vec<Candidate>,
    /// The cores of each lane, at least as many as the largest count.
    pub lanes: Vec<Lane>,
    /// Times that each is measured, interleaved.
    pub rounds: usize,
    /// Length of a measurement.
    pub measured: Duration,
    /// Connections of each client.
    pub connections: u32,
    /// Bytes of the file.
    pub size: usize,
    /// One request a connection.
    pub once: bool,
}

/// All that was measured.
#[derive(Debug, Serialize)]
pub struct Results {
    environment: Environment,
    lanes: Vec<Lane>,
    /// The requests of a client, in words.
    load: String,
    turns: Vec<Turn>,
}

/// One measurement of one server.
#[derive(Debug, Serialize)]
struct Turn {
    server: String,
    cores: usize,
    round: usize,
    /// Of each lane.
    lanes: Vec<Counts>,
    /// Connections that each worker has accepted, and passed on, where the server says so.
    workers: Vec<(u64, u64)>,
    /// It could not be measured.
    failed: Option<String>,
}

/// The measurement of one lane.
#[derive(Debug, Clone, Serialize)]
struct Counts {
    /// Requests a second.
    rate: f64,
    p50_us: f64,
    p99_us: f64,
    errors: u64,
    /// Share of the time in which the server's core was busy.
    server_busy: f64,
    client_busy: f64,
    /// Of the time of the server's core, the share of user mode, and of the kernel for the server.
    user: f64,
    system: f64,
}

/// The lanes of this machine. Hardware threads of one core are one lane, server and client side by side; without them
/// half of the cores are the clients'.
///
/// # Errors
/// When the machine has one core, and server and client do not share it.
pub fn lanes(together: bool) -> Result<Vec<Lane>> {
    let count = std::thread::available_parallelism()?.get();
    if together {
        return Ok((0..count).map(|core| Lane { server: core, client: core }).collect());
    }
    let siblings: Vec<Vec<usize>> = (0..count).map(siblings).collect();
    let pairs = siblings.iter().enumerate().filter_map(|(core, all)| match all[..] {
        [first, second] if first == core => Some(Lane { server: first, client: second }),
        _ => None,
    });
    let pairs: Vec<Lane> = pairs.collect();
    if !pairs.is_empty() {
        return Ok(pairs);
    }
    let half = count / 2;
    ensure!(half > 0, "there is one core: --together");
    Ok((0..half).map(|core| Lane { server: core, client: half + core }).collect())
}

/// The hardware threads of the core of one of them.
fn siblings(core: usize) -> Vec<usize> {
    let file = format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
    let text = fs::read_to_string(file).unwrap_or_default();
    let numbers = text.trim().split([',', '-']).filter_map(|number| number.parse().ok());
    numbers.collect()
}

/// Runs all rounds in `work`, and tells the progress.
///
/// # Errors
/// When the files cannot be made. A turn that fails is among the results.
pub fn measure(settings: &Settings, work: &Path, progress: impl Fn(&str)) -> Result<Results> {
    let root = work.join("root");
    fs::create_dir_all(&root)?;
    fs::write(root.join(FILE), vec![b'x'; settings.size])?;
    let mut turns = Vec::new();
    for round in 0..settings.rounds {
        for &cores in &settings.counts {
            let mut order: Vec<&Candidate> = settings.candidates.iter().collect();
            let by = round % order.len().max(1);
            order.rotate_left(by);
            for candidate in order {
                let turn = Turn::take(settings, candidate, cores, round, work);
                progress(&turn.line());
                turns.push(turn);
            }
        }
    }
    let way = if settings.once { "one request a connection" } else { "kept connections" };
    let load = format!("{} bytes, {} {way} a lane", settings.size, settings.connections);
    Ok(Results { environment: Environment::look(), lanes: settings.lanes.clone(), load, turns })
}

impl Turn {
    fn take(
        settings: &Settings,
        candidate: &Candidate,
        cores: usize,
        round: usize,
        work: &Path,
    ) -> Self {
        let server = candidate.name.clone();
        match once(settings, candidate, cores, work) {
            Ok((lanes, workers)) => Self { server, cores, round, lanes, workers, failed: None },
            Err(error) => Self {
                server,
                cores,
                round,
                lanes: Vec::new(),
                workers: Vec::new(),
                failed: Some(format!("{error:#}")),
            },
        }
    }

    fn rate(&self) -> f64 {
        self.lanes.iter().map(|lane| lane.rate).sum()
    }
}

/// Of each worker: connections that it accepted, and that it passed on.
type Steered = Vec<(u64, u64)>;

/// A fresh bed and a fresh server.
fn once(
    settings: &Settings,
    candidate: &Candidate,
    cores: usize,
    work: &Path,
) -> Result<(Vec<Counts>, Steered)> {
    let lanes = settings.lanes.get(..cores).context("so many cores are not here")?;
    let sources = if settings.once { SOURCES } else { 1 };
    let star = Star::create(lanes, CONGESTION, sources)?;
    let folder = work.join(&candidate.name);
    let _ = fs::remove_dir_all(&folder); // that of the turn before
    fs::create_dir_all(&folder)?;
    let own: Vec<usize> = lanes.iter().map(|lane| lane.server).collect();
    let load = (&own[..], settings.connections);
    let server = Process::start(candidate, &star, load, &work.join("root"), &folder, PORT)?;
    server.until_ready(&star, &format!("/{FILE}"))?;
    let begin = Barrier::new(cores);
    let counts: Vec<Result<Counts>> = std::thread::scope(|scope| {
        let clients: Vec<_> = lanes
            .iter()
            .enumerate()
            .map(|(number, lane)| {
                let (star, begin) = (&star, &begin);
                scope.spawn(move || {
                    star.clients()[number].run(|| ask(settings, number, *lane, begin))?
                })
            })
            .collect();
        let counts = |client: std::thread::ScopedJoinHandle<'_, Result<Counts>>| {
            client.join().map_err(|_| anyhow::anyhow!("a client panicked"))?
        };
        clients.into_iter().map(counts).collect()
    });
    let workers = server.workers();
    server.stop()?;
    Ok((counts.into_iter().collect::<Result<_>>()?, workers))
}

/// The load of one lane.
fn ask(settings: &Settings, number: usize, lane: Lane, begin: &Barrier) -> Result<Counts> {
    // All wait for all, also where one has failed. A network card spreads the connections of many clients over its queues as
    // they come; so the clients open theirs in turns.
    begin.wait();
    let options =
        LoadOptions { pace: Some((Instant::now() + PREPARED, PACE)), ..load(settings, number) };
    let generator = pin(lane.client).and_then(|()| Generator::start(&options));
    begin.wait();
    let mut generator = generator?;
    generator.measure(WARM_UP)?;
    let look =
        || Ok((CoreTimes::of_core(lane.server)?, CoreTimes::of_core(lane.client)?, Instant::now()));
    let (interval, [before, after]) = generator.measure_with(settings.measured, look)?;
    // The others must not be alone with the server while they are still measured.
    std::thread::sleep(WARM_UP / 2);
    generator.finish()?;
    let lasted = (after.2 - before.2).as_secs_f64();
    let (server, client) = (after.0 - before.0, after.1 - before.1);
    let share = |time: Duration| time.as_secs_f64() / lasted;
    Ok(Counts {
        rate: interval.requests_per_second,
        p50_us: interval.latency.p50,
        p99_us: interval.latency.p99,
        errors: interval.errors,
        server_busy: (1.0 - share(server.idle)).clamp(0.0, 1.0),
        client_busy: (1.0 - share(client.idle)).clamp(0.0, 1.0),
        user: share(server.user),
        system: share(server.system),
    })
}

fn load(settings: &Settings, number: usize) -> LoadOptions {
    let to = SocketAddr::from((Star::server_address(number), PORT));
    let mut target = Target::get(format!("/{FILE}"));
    if settings.once {
        target.headers.push(("Connection".into(), "close".into()));
    }
    LoadOptions {
        connections: settings.connections,
        once: settings.once,
        interface: Star::DEVICE.into(),
        first_source: Some(Star::client_address(number, 0).into()),
        sources: if settings.once { SOURCES } else { 1 },
        ..LoadOptions::new(to, vec![target])
    }
}

const FILE: &str = "file.bin";
/// Inside a namespace that is ours alone, any port is free.
const PORT: u16 = 8080;
const WARM_UP: Duration = Duration::from_millis(400);
/// The programs of all clients are attached by then: one at a time, because the kernel has one lock for that.
const PREPARED: Duration = Duration::from_millis(1500);
/// From one connection of a client to its next.
const PACE: Duration = Duration::from_millis(4);
/// Client addresses of a lane, where connections use up ports.
const SOURCES: u32 = 8;
