//! Servers side by side: the same load on each in turn, and its cost on the server's core.

use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::load::{Generator, Interval, LoadOptions};
use crate::{Bed, BedOptions, CoreTimes, ProcessTimes, Steering, limits, pin, wait_for_quiet};

/// How long a server may take until it accepts connections.
const START_PATIENCE: Duration = Duration::from_secs(10);
/// How long a server may take to end when it is asked to.
const END_PATIENCE: Duration = Duration::from_secs(2);
/// A server's core that is idle for longer is not the bottleneck.
const MOST_IDLE: f64 = 0.05;
/// Others' share of the server's core above which a turn is marked.
const MOST_FOREIGN: f64 = 0.03;

/// A server and how to start it.
#[derive(Debug, Clone)]
pub struct Contender {
    /// Its name in reports.
    pub name: String,
    /// A shell command that stays in the foreground; it runs in the server's namespace, on the
    /// server's core alone.
    pub command: String,
    /// A shell command in the server's namespace that succeeds as soon as the server is ready:
    /// accepting connections is not enough where something has to be attached or filled first.
    pub ready: Option<String>,
}

/// A contest's rules.
#[derive(Debug, Clone)]
pub struct ContestOptions {
    /// The servers that are compared.
    pub contenders: Vec<Contender>,
    /// The bed, set up anew for each turn.
    pub bed: BedOptions,
    /// The load; its `interface` and `first_source` are set by the bed.
    pub load: LoadOptions,
    /// Each contender has one turn in each.
    pub rounds: u32,
    /// Load before each measurement.
    pub warm_up: Duration,
    /// Length of each measurement.
    pub duration: Duration,
    /// How long each turn may wait until both cores have nothing else to do.
    pub patience: Duration,
    /// The core that servers run on.
    pub server_core: usize,
    /// The core that the generator runs on.
    pub client_core: usize,
}

/// One measurement of one server.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Turn {
    /// The contender's name.
    pub server: String,
    /// Counted from 1.
    pub round: u32,
    /// The generator's measurement.
    pub interval: Interval,
    /// Server time for each request.
    pub cost: Cost,
    /// The server's core had nothing to do for less than 5 % of the time.
    pub saturated: bool,
    /// Share of the server's core that other processes used in user mode. Their kernel time cannot be
    /// separated from the server's.
    pub foreign: f64,
    /// The server's core, all of it.
    pub server_core: CoreTimes,
    /// The client's core, all of it.
    pub client_core: CoreTimes,
}

/// Microseconds of the server's core for each request, from /proc/stat: everything the core did
/// but for others' user mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Cost {
    /// The server's processes in user mode.
    pub user: f64,
    /// Processes in the kernel.
    pub system: f64,
    /// Interrupts on the server's core, soft ones included. On a bed without steering this holds
    /// some of the client's packet work, and misses some of the server's.
    pub interrupts: f64,
}

/// A contender's medians over its turns.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Standing {
    /// The contender's name.
    pub server: String,
    /// Lowest, median, highest.
    pub requests_per_second: [f64; 3],
    /// Lowest, median, highest, in microseconds.
    pub cost: [f64; 3],
    /// Turns that were not saturated, or disturbed by foreign work, or had errors.
    pub doubtful: usize,
}

impl Contender {
    /// A contender that is ready when it accepts.
    pub fn new(name: impl Into<String>, command: impl Into<String>) -> Self {
        Self { name: name.into(), command: command.into(), ready: None }
    }
}

impl Cost {
    /// All of it.
    pub fn total(&self) -> f64 {
        self.user + self.system + self.interrupts
    }
}

/// Holds a contest; calls `watch` with each turn as soon as it has ended.
///
/// # Errors
///
/// When the bed cannot be set up, or a server does not start or answer.
pub fn hold(options: &ContestOptions, mut watch: impl FnMut(&Turn)) -> Result<Vec<Turn>> {
    limits::use_all_open_files()?; // for the servers, which inherit it
    ensure!(!options.contenders.is_empty(), "there are no servers to compare");
    let mut turns = Vec::new();
    for round in 1..=options.rounds {
        for contender in &options.contenders {
            let turn = take_turn(options, contender, round)
                .with_context(|| format!("{}, round {round}", contender.name))?;
            watch(&turn);
            turns.push(turn);
        }
    }
    Ok(turns)
}

/// Medians and spread for each server, in the order of their first turns.
pub fn standings(turns: &[Turn]) -> Vec<Standing> {
    let mut names: Vec<&str> = Vec::new();
    for turn in turns {
        if !names.contains(&turn.server.as_str()) {
            names.push(&turn.server);
        }
    }
    let standing = |name: &str| {
        let of = || turns.iter().filter(move |turn| turn.server == name);
        Standing {
            server: name.to_owned(),
            requests_per_second: spread(of().map(|turn| turn.interval.requests_per_second)),
            cost: spread(of().map(|turn| turn.cost.total())),
            doubtful: of().filter(|turn| turn.is_doubtful()).count(),
        }
    };
    names.into_iter().map(standing).collect()
}

impl Turn {
    /// Something other than the server may have decided this figure.
    pub fn is_doubtful(&self) -> bool {
        !self.saturated || self.foreign > MOST_FOREIGN || self.interval.errors > 0
    }

    /// One line for people.
    pub fn line(&self) -> String {
        let Cost { user, system, interrupts } = self.cost;
        let mut line = format!(
            "{} (round {}): {}; server core {:.2} us a request \
             (user {user:.2}, system {system:.2}, interrupts {interrupts:.2})",
            self.server,
            self.round,
            self.interval.line(),
            self.cost.total()
        );
        if !self.saturated {
            line.push_str("; NOT SATURATED");
        }
        if self.foreign > MOST_FOREIGN {
            line.push_str(&format!("; DISTURBED by {:.0} % foreign work", self.foreign * 100.0));
        }
        line
    }
}

impl Standing {
    /// One line for people.
    pub fn line(&self) -> String {
        let [low, middle, high] = self.requests_per_second;
        let [least, cost, most] = self.cost;
        format!(
            "{}: {middle:.0} requests/s ({low:.0} to {high:.0}), server core {cost:.2} us a \
             request ({least:.2} to {most:.2}){}",
            self.server,
            match self.doubtful {
                0 => String::new(),
                count => format!(", {count} turns doubtful"),
            }
        )
    }
}

/// A fresh bed for each: programs that a server left attached must not answer for the next.
fn take_turn(options: &ContestOptions, contender: &Contender, round: u32) -> Result<Turn> {
    let deadline = Instant::now() + options.patience;
    // When patience has ended, the turn will be marked.
    wait_for_quiet([options.server_core, options.client_core], || Instant::now() >= deadline)?;
    let bed = &Bed::create(&options.bed)?;
    let mut server = Server::start(bed, options, contender)?;
    server.wait_until_ready(bed, contender)?;
    let measured = bed.client().run(|| {
        pin(options.client_core)?;
        server.wait_until_it_accepts(options.load.to)?;
        measure(bed, options)
    })??;
    server.stop(bed)?;
    let Measured { interval, server_core, client_core, processes } = measured;
    let requests = interval.counts.get("responses").copied().unwrap_or(0).max(1) as f64;
    let each = |time: Duration| time.as_secs_f64() * 1e6 / requests;
    let lasted = Duration::from_secs_f64(interval.seconds);
    let user = server_core.user.min(processes.user);
    Ok(Turn {
        server: contender.name.clone(),
        round,
        cost: Cost {
            user: each(user),
            system: each(server_core.system),
            interrupts: each(server_core.interrupts(lasted)),
        },
        saturated: server_core.idle < lasted.mul_f64(MOST_IDLE),
        foreign: (server_core.user - user).as_secs_f64() / interval.seconds,
        interval,
        server_core,
        client_core,
    })
}

struct Measured {
    interval: Interval,
    server_core: CoreTimes,
    client_core: CoreTimes,
    processes: ProcessTimes,
}

fn measure(bed: &Bed, options: &ContestOptions) -> Result<Measured> {
    let load = LoadOptions {
        interface: Bed::DEVICE.into(),
        first_source: Some(Bed::client_address(options.load.to.ip(), 0)),
        sources: options.bed.sources,
        ..options.load.clone()
    };
    let mut generator = Generator::start(&load)?;
    generator.measure(options.warm_up)?;
    let server = bed.server().processes()?;
    let sample = || {
        let processes = ProcessTimes::of(&server);
        let server_core = CoreTimes::of_core(options.server_core)?;
        Ok((server_core, CoreTimes::of_core(options.client_core)?, processes))
    };
    let (interval, [before, after]) = generator.measure_with(options.duration, sample)?;
    generator.finish()?;
    Ok(Measured {
        interval,
        server_core: after.0 - before.0,
        client_core: after.1 - before.1,
        processes: after.2 - before.2,
    })
}

/// A running server process.
struct Server(Child);

impl Server {
    fn start(bed: &Bed, options: &ContestOptions, contender: &Contender) -> Result<Self> {
        let core = options.server_core.to_string();
        let script = format!("exec {}", contender.command);
        let child = bed
            .server()
            .command("taskset")
            .args(["-c", &core, "sh", "-c", &script])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start the server")?;
        Ok(Self(child))
    }

    fn wait_until_ready(&mut self, bed: &Bed, contender: &Contender) -> Result<()> {
        let Some(script) = &contender.ready else { return Ok(()) };
        let mut ask = bed.server().command("sh");
        ask.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null());
        self.wait_until(
            || Ok(ask.status()?.success()),
            || format!("the server is not ready: {script}"),
        )
    }

    fn wait_until_it_accepts(&mut self, address: SocketAddr) -> Result<()> {
        self.wait_until(
            || Ok(TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()),
            || format!("the server does not accept on {address}"),
        )
    }

    fn wait_until(
        &mut self,
        mut so: impl FnMut() -> Result<bool>,
        or: impl Fn() -> String,
    ) -> Result<()> {
        let deadline = Instant::now() + START_PATIENCE;
        while !so()? {
            if let Some(status) = self.0.try_wait()? {
                bail!("the server ended at once: {status}");
            }
            ensure!(Instant::now() < deadline, "{}", or());
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Asks it to end, then ends it and everything it started.
    fn stop(mut self, bed: &Bed) -> Result<()> {
        let pid = Pid::from_child(&self.0);
        // A server that has ended by itself is as good here: the measurement has failed if it ended too early.
        let _ = kill_process(pid, Signal::TERM);
        let deadline = Instant::now() + END_PATIENCE;
        while self.0.try_wait()?.is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        bed.server().kill_processes()?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After an error: ended by now, or not at all.
        let _ = self.0.kill().and_then(|()| self.0.wait().map(drop));
    }
}

/// Lowest, median, highest.
fn spread(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let middle = match sorted.len() {
        0 => return [0.0; 3],
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => (sorted[even / 2 - 1] + sorted[even / 2]) / 2.0,
    };
    [sorted[0], middle, sorted[sorted.len() - 1]]
}

impl ContestOptions {
    /// Three rounds of two seconds on the steered bed, servers on core 0, the generator on core 1.
    pub fn new(contenders: Vec<Contender>, load: LoadOptions) -> Self {
        let steering = Steering::Cores { server: 0, client: 1 };
        Self {
            contenders,
            bed: BedOptions { steering, ..BedOptions::default() },
            load,
            rounds: 3,
            warm_up: Duration::from_millis(500),
            duration: Duration::from_secs(2),
            patience: Duration::ZERO,
            server_core: 0,
            client_core: 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(spread([3.0, 1.0, 2.0].into_iter()), [1.0, 2.0, 3.0]);
        assert_eq!(spread([4.0, 1.0].into_iter()), [1.0, 2.5, 4.0]);
        assert_eq!(spread([].into_iter()), [0.0; 3]);
    }
}
