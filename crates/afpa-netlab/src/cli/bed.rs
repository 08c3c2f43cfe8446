//! `afpa-netlab bed`.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use afpa_netlab::contest::{Contender, ContestOptions, hold, standings};
use afpa_netlab::{Bed as TestBed, BedOptions, Offloads, Path, Steering};
use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};

use super::load::LoadWords;

/// Measure one server, or several in turn, on a test bed: requests/s, and the time of the
/// server's core for each request. Lines for people go to stderr, JSON to stdout.
#[derive(Debug, Args)]
pub(super) struct Bed {
    /// A server as NAME=COMMAND; may be repeated. The command stays in the foreground and listens
    /// on the server's address (10.77.0.1, or fd77::a4d:1).
    #[arg(long = "server", value_parser = contender)]
    servers: Vec<Contender>,
    /// NAME=COMMAND: a shell command in the servers' namespace that succeeds when server NAME is
    /// ready; without it a server is ready when it accepts. May be repeated.
    #[arg(long = "ready", value_parser = named)]
    ready: Vec<(String, String)>,
    /// Compare with the bare reflector, with a body of so many bytes.
    #[arg(long, value_name = "BODY")]
    reflector: Option<usize>,
    /// The servers' port.
    #[arg(long, default_value_t = 80)]
    port: u16,
    /// Use IPv6.
    #[arg(long)]
    v6: bool,
    /// Turns of each server, interleaved.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Length of each measurement.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Load before each measurement, in seconds.
    #[arg(long, default_value_t = 0.5)]
    warm_up: f64,
    /// Seconds that each turn may wait for a moment without other work on the machine.
    #[arg(long, default_value_t = 0.0)]
    patience: f64,
    /// Where packets are processed.
    #[arg(long, value_enum, default_value = "cores")]
    steering: SteeringWord,
    /// The work that the interfaces leave to the "card".
    #[arg(long, value_enum, default_value = "card")]
    offloads: OffloadsWord,
    /// Client addresses; each is good for some 64,000 connections.
    #[arg(long, default_value_t = 1)]
    sources: u32,
    #[command(flatten)]
    load: LoadWords,
    /// A single server's command.
    #[arg(last = true)]
    command: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SteeringWord {
    /// Server on core 0, client on core 1, packets of each side on its own.
    Cores,
    /// Server on core 0, client on core 1, packets wherever they are sent.
    None,
    /// Everything on core 0.
    Together,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum OffloadsWord {
    Card,
    Checksum,
    None,
}

impl Bed {
    pub(super) fn run(self) -> Result<()> {
        let turns = hold(&self.options()?, |turn| eprintln!("{}", turn.line()))?;
        let standings = standings(&turns);
        for standing in &standings {
            eprintln!("{}", standing.line());
        }
        let result = serde_json::json!({ "standings": standings, "turns": turns });
        println!("{}", serde_json::to_string(&result)?);
        Ok(())
    }

    fn options(&self) -> Result<ContestOptions> {
        let ip: IpAddr =
            if self.v6 { TestBed::SERVER_V6.into() } else { TestBed::SERVER_V4.into() };
        let address = SocketAddr::new(ip, self.port);
        let (steering, client_core) = match self.steering {
            SteeringWord::Cores => (Steering::Cores { server: 0, client: 1 }, 1),
            SteeringWord::None => (Steering::Unsteered, 1),
            SteeringWord::Together => (Steering::Cores { server: 0, client: 0 }, 0),
        };
        let offloads = match self.offloads {
            OffloadsWord::Card => Offloads::CARD,
            OffloadsWord::Checksum => Offloads::CHECKSUM_ONLY,
            OffloadsWord::None => Offloads::NONE,
        };
        let bed = BedOptions {
            path: Path::Direct(offloads),
            steering,
            sources: self.sources,
            ..BedOptions::default()
        };
        Ok(ContestOptions {
            bed,
            rounds: self.rounds,
            warm_up: Duration::try_from_secs_f64(self.warm_up)?,
            duration: Duration::try_from_secs_f64(self.seconds)?,
            patience: Duration::try_from_secs_f64(self.patience)?,
            client_core,
            ..ContestOptions::new(self.contenders(address)?, self.load.options(address)?)
        })
    }

    fn contenders(&self, address: SocketAddr) -> Result<Vec<Contender>> {
        let mut contenders = self.servers.clone();
        if !self.command.is_empty() {
            contenders.push(Contender::new(self.command[0].clone(), self.command.join(" ")));
        }
        if let Some(body) = self.reflector {
            let program = std::env::current_exe()?;
            let once = if self.load.once { " --once" } else { "" };
            let command =
                format!("{} reflect --listen {address} --body {body}{once}", program.display());
            contenders.push(Contender::new("reflector", command));
        }
        for (name, command) in &self.ready {
            let named = contenders.iter_mut().find(|contender| contender.name == *name);
            named.with_context(|| format!("--ready {name}: no such server"))?.ready =
                Some(command.clone());
        }
        ensure!(!contenders.is_empty(), "name a server: --server NAME=COMMAND, or -- COMMAND");
        Ok(contenders)
    }
}

fn contender(text: &str) -> Result<Contender> {
    named(text).map(|(name, command)| Contender::new(name, command))
}

fn named(text: &str) -> Result<(String, String)> {
    let (name, command) = text.split_once('=').context("it is NAME=COMMAND")?;
    Ok((name.to_owned(), command.to_owned()))
}
