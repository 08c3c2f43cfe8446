//! AFPA's HTTP/3 beside its own HTTP/2 over TLS, and beside nginx, HAProxy and Caddy: `afpa-lab http3`.
//!
//! Each server has one core and one thread, all run from first to last, and in each round every case is measured once for
//! each of them, in rotating order. The client has the other core: our own generator of HTTP/3, with a socket for each
//! connection, and h2load for HTTP/2. A request's cost is the time of the server's core, its packets' work included; it is
//! the figure that counts, because the client is the bottleneck in some cases.

mod cases;
mod idle;
mod network;
mod verdict;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use afpa_generator::{ClientSetup, Generator, Http2, Http3, Load, Workload};
use anyhow::{Context, Result, bail, ensure};

use crate::bench::{Bench, Sample, each_once};
use crate::peers::{self, Description, Peer, Setup, Summary, Turn};
use crate::servers::Server;
use crate::servers::http3::{Certificate, SECURE, Secure};
use crate::usage::Counted;

use cases::{AFPA_H3, Http3Case, Kind, NGINX_H3, Protocol};
use network::Network;

/// The name that clients ask for.
const NAME: &str = "lab.example";

/// The options of the command line, besides those of every bench.
#[derive(Debug, Clone)]
pub struct Options {
    /// Empty: those that are here.
    pub servers: Vec<String>,
    /// Server and client in one namespace, and not in one each.
    pub loopback: bool,
    /// Idle connections that are held while memory is looked at; 0: none.
    pub idle: u32,
}

/// Measures the servers; the tables and verdicts for a terminal.
///
/// # Errors
///
/// When a server is not here, cannot be started, or gives a wrong answer; or when a signal ends the run.
pub fn run(setup: &Setup<'_>, mut bench: Bench, options: &Options) -> Result<String> {
    let certificate = Arc::new(Certificate::make(NAME)?);
    let servers = choose(options, setup, &certificate, &bench)?;
    let names: Vec<&str> = servers.iter().map(|server| server.name()).collect();
    let all = cases::all(&names);
    setup.make_files(&all.iter().map(|case| case.case.clone()).collect::<Vec<_>>())?;
    let folders: Vec<PathBuf> =
        names.iter().map(|name| setup.folder_of(name)).collect::<Result<_>>()?;
    let network = match options.loopback {
        true => Network::loopback()?,
        false => Network::cores(setup.server_core, setup.client_core)?,
    };
    bench.say(&format!("network: {}", network.note()));
    network.run(|| {
        let started = servers
            .iter()
            .zip(&folders)
            .map(|(server, folder)| setup.start(server, network.server(), folder))
            .collect::<Result<Vec<_>>>()?;
        let run = Run { setup, network: &network, certificate: &certificate, started: &started };
        let cases = run.check(&bench, all)?;
        let cases = run.measure(&mut bench, cases)?;
        let mut memory = Vec::new();
        if options.idle > 0 && !bench.is_interrupted() {
            bench.part(|bench| {
                memory = idle::measure(&run, bench, &servers, options.idle)?;
                Ok(())
            })?;
        }
        run.tell(&mut bench, &cases, &memory)
    })
}

/// The servers to measure: those named, each of which must be there, or all that are.
fn choose(
    options: &Options,
    setup: &Setup<'_>,
    certificate: &Arc<Certificate>,
    bench: &Bench,
) -> Result<Vec<Secure>> {
    let named = |name: &str| {
        let server = Secure::named(name, &setup.programs, certificate);
        server.with_context(|| format!("no server '{name}'; there are: {}", SECURE.join(", ")))
    };
    let mut chosen = Vec::new();
    for name in SECURE.into_iter().filter(|_| options.servers.is_empty()) {
        let server = named(name)?;
        match server.lacks() {
            None => chosen.push(server),
            Some(why) => bench.say(&format!("servers: {name} is left out: {why}")),
        }
    }
    for name in &options.servers {
        let server = named(name)?;
        match server.lacks() {
            None => chosen.push(server),
            Some(why) => bail!("{name}: {why}"),
        }
    }
    ensure!(!chosen.is_empty(), "no server to measure");
    Ok(chosen)
}

/// A run over servers that have been started.
struct Run<'r> {
    setup: &'r Setup<'r>,
    network: &'r Network,
    certificate: &'r Certificate,
    started: &'r [Peer<'r>],
}

impl Run<'_> {
    /// Asks every server for the file of every case, and compares it. A server that cannot do a case is left out of it, with
    /// the reason; AFPA and nginx can.
    fn check(&self, bench: &Bench, cases: Vec<Http3Case>) -> Result<Vec<Http3Case>> {
        let mut wanted = cases;
        wanted.retain(|case| bench.settings.wants(&case.case.name));
        ensure!(!wanted.is_empty(), "no such case");
        for case in &mut wanted {
            let workload = Workload::given(case.case.objects.clone());
            let mut able = Vec::new();
            for name in &case.case.servers {
                bench.check()?;
                let (peer, _) = self.peer(name)?;
                // The certificate and the files are the same for HTTP/2.
                let client = self.client(peer);
                let generator = self.http3(case);
                let at = self.setup.client_core;
                match self.network.at_client(at, || generator.check(&client, &workload)) {
                    Ok(()) => able.push(name.clone()),
                    Err(error) if [AFPA_H3, NGINX_H3].contains(&name.as_str()) => {
                        return Err(error.context(format!("{}, {name}", case.case.title)));
                    }
                    Err(error) => {
                        let title = &case.case.title;
                        bench.say(&format!("{title}: {name} is left out: {error:#}"));
                    }
                }
            }
            case.case.servers = able;
        }
        bench.say("answers: right in status, length and content");
        Ok(wanted)
    }

    /// All rounds of one case after the other: one that fails leaves the others. The cases that were measured.
    fn measure(&self, bench: &mut Bench, cases: Vec<Http3Case>) -> Result<Vec<Http3Case>> {
        for case in &cases {
            let load = self.load(bench, case)?;
            bench.commands.insert(case.case.name.clone(), case.words(&load));
            let plain = std::slice::from_ref(&case.case);
            bench
                .part(|bench| bench.rounds(plain, |bench, _, name| self.turn(bench, case, name)))?;
        }
        let measured: Vec<_> =
            cases.into_iter().filter(|case| bench.samples.is_complete(&case.case)).collect();
        ensure!(!measured.is_empty(), "nothing was measured: {}", bench.failed.join("; "));
        Ok(measured)
    }

    fn turn(&self, bench: &Bench, case: &Http3Case, name: &str) -> Result<Sample> {
        let (peer, protocol) = self.peer(name)?;
        let generator: Box<dyn Generator> = match protocol {
            Protocol::Http3 => Box::new(self.http3(case)),
            Protocol::Http2 => Box::new(Http2 { streams: case.streams }),
        };
        if let Some(why) = generator.lacks() {
            bail!("{why}");
        }
        let turn = Turn {
            generator: generator.as_ref(),
            client: self.client(peer),
            load: self.load(bench, case)?,
            cores: (self.setup.server_core, self.setup.client_core),
            counted: self.network.counted(),
        };
        let at = self.setup.client_core;
        let sample = self.network.at_client(at, || turn.take(&case.case, peer))?;
        // A peer's fault is no reason to measure nothing: the turn is taken again, and the results say so. Ours is one.
        if let Some(why) = sample.errors.as_ref().filter(|_| peer.name != "afpa") {
            bail!("{why}");
        }
        Ok(Sample { server: name.to_owned(), ..sample })
    }

    /// Tables and verdicts for a terminal; the same for later in the folder.
    fn tell(
        &self,
        bench: &mut Bench,
        cases: &[Http3Case],
        memory: &[idle::Held],
    ) -> Result<String> {
        for peer in self.started {
            bench.commands.insert(peer.name.clone(), peer.running.command());
        }
        let plain: Vec<_> = cases.iter().map(|case| case.case.clone()).collect();
        let names = each_once(plain.iter().flat_map(|case| case.servers.clone()));
        let summary = Summary::of(&bench.samples, &names, &plain, NGINX_H3)?;
        let mut verdicts = verdict::lines(&bench.samples, &plain);
        verdicts.extend(idle::lines(memory));
        verdicts.extend(bench.failed.iter().map(|why| format!("Not measured: {why}")));
        let settings = &bench.settings;
        let about = format!(
            "Medians of {} interleaved rounds of {} s; servers on core {}, one thread each; {}. The client is on core {}: \
             a socket for each connection, one content of sixteen compared, every length and head checked. The ratio is \
             the median of the rounds' own ratios, with their smallest and largest.",
            settings.rounds,
            settings.seconds,
            self.setup.server_core,
            self.network.note(),
            self.setup.client_core,
        );
        let told = Description {
            title: "HTTP/3 of AFPA and its peers".into(),
            about: vec![about],
            versions: each_once(self.started.iter().map(|peer| peer.version.clone())),
            verdicts,
            columns: 2,
        };
        peers::write(self.setup, bench, &summary, &told)
    }

    /// The server of a contestant's name, and the protocol.
    fn peer(&self, name: &str) -> Result<(&Peer<'_>, Protocol)> {
        let (server, protocol) = cases::parts(name).context("a contestant")?;
        Ok((peers::named(self.started, server)?, protocol))
    }

    fn http3(&self, case: &Http3Case) -> Http3 {
        Http3 {
            certificate: self.certificate.der.clone(),
            name: self.certificate.name.clone(),
            streams: case.streams,
            post_quantum: case.kind == Kind::Handshakes { post_quantum: true },
        }
    }

    fn client(&self, peer: &Peer<'_>) -> ClientSetup {
        let (interface, address) = self.network.client();
        ClientSetup {
            to: peer.address,
            interface: interface.into(),
            first_source: address,
            sources: 1,
            core: self.setup.client_core,
            answers_at_once: false,
            ages: false,
        }
    }

    fn load(&self, bench: &Bench, case: &Http3Case) -> Result<Load> {
        Ok(Load {
            connections: case.case.connections,
            warm_up: Duration::try_from_secs_f64(bench.settings.warm_up)?,
            duration: bench.settings.length_of(&case.case),
            persistent: case.kind == Kind::Kept,
            rate: None,
        })
    }
}

impl Network {
    fn counted(&self) -> Counted {
        match self {
            Self::Cores(..) => Counted::ByIdle,
            Self::Loopback(_) => Counted::ByTick,
        }
    }
}
