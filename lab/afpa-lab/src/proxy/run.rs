//! A run over proxies that have been started.

use std::time::Duration;

use afpa_generator::{ClientSetup, Generator, Load};
use anyhow::{Context, Result};

use super::cases::{self, ROUNDS_AT_RATE, SECONDS_AT_RATE};
use super::network::Network;
use super::verdict;
use crate::bench::{Bench, Case, Method, Sample, each_once};
use crate::peers::{self, Description, Peer, Setup, Summary, Turn};
use crate::usage::Counted;

const BASELINE: &str = "haproxy";
/// Load for each proxy and case before the first round.
const FIRST_SECONDS: f64 = 0.3;

pub(super) struct Run<'r> {
    pub(super) setup: &'r Setup<'r>,
    pub(super) network: &'r Network,
    pub(super) started: &'r [Peer<'r>],
}

impl Run<'_> {
    /// All rounds of the closed loop, then those at given rates; the cases that were measured.
    pub(super) fn measure(
        &self,
        bench: &mut Bench,
        mut cases: Vec<Case>,
        latency: bool,
    ) -> Result<Vec<Case>> {
        self.take_all(bench, &cases, peers::generator(self.closed_loop())?.as_ref())?;
        if latency && !self.is_loopback() {
            let names = self.names();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let mut at_rates = cases::at_rates(&names);
            at_rates
                .retain(|case| matches!(&case.method, Method::Rate { of, .. } if has(&cases, of)));
            bench.settings.rounds *= ROUNDS_AT_RATE;
            let taken = self.take_all(bench, &at_rates, peers::generator("socket")?.as_ref());
            bench.settings.rounds /= ROUNDS_AT_RATE;
            taken?;
            cases.extend(at_rates);
        }
        Ok(cases)
    }

    /// Each case once for each proxy as a warm-up, then in all rounds.
    fn take_all(&self, bench: &mut Bench, cases: &[Case], generator: &dyn Generator) -> Result<()> {
        for case in cases {
            for peer in self.started {
                bench.check()?;
                let load = self.load(bench, case, FIRST_SECONDS)?;
                self.take(case, peer, generator, load)?;
            }
            let word = format!("{}, by {}", case.name, generator.name());
            let length = self.length(bench, case);
            let load = self.load(bench, case, length)?;
            bench.commands.insert(word, words(case, &load));
        }
        bench.rounds(cases, |bench, case, name| {
            let load = self.load(bench, case, self.length(bench, case))?;
            self.take(case, peers::named(self.started, name)?, generator, load)
        })
    }

    fn take(
        &self,
        case: &Case,
        peer: &Peer<'_>,
        generator: &dyn Generator,
        load: Load,
    ) -> Result<Sample> {
        let (interface, client) = self.network.client();
        let turn = Turn {
            generator,
            client: ClientSetup {
                to: peer.address,
                interface: interface.into(),
                first_source: client,
                sources: 1,
                core: self.setup.client_core,
                answers_at_once: false,
                ages: false,
            },
            load,
            cores: (self.setup.server_core, self.setup.client_core),
            counted: if self.is_loopback() { Counted::ByTick } else { Counted::ByIdle },
        };
        self.network.at_clients(self.setup.client_core, || turn.take(case, peer))
    }

    fn load(&self, bench: &Bench, case: &Case, seconds: f64) -> Result<Load> {
        let rate = match &case.method {
            Method::Rate { of, share } => {
                let rate = verdict::rate(of, *share, &bench.samples, &self.names());
                Some(rate.with_context(|| format!("{of} was not measured"))?)
            }
            Method::Tc(_) | Method::Wrk | Method::Streams(_) => None,
        };
        // wrk would take at least a second for each warm-up.
        let warm_up = if self.is_loopback() { 0.0 } else { bench.settings.warm_up };
        Ok(Load {
            connections: case.connections,
            warm_up: Duration::try_from_secs_f64(warm_up)?,
            duration: Duration::try_from_secs_f64(seconds)?,
            persistent: true,
            rate,
        })
    }

    fn length(&self, bench: &Bench, case: &Case) -> f64 {
        match case.method {
            Method::Rate { .. } => SECONDS_AT_RATE,
            Method::Tc(_) | Method::Wrk | Method::Streams(_) => {
                bench.settings.length_of(case).as_secs_f64()
            }
        }
    }

    /// Tables and verdicts for a terminal; the same for later in the folder.
    pub(super) fn tell(&self, bench: &mut Bench, cases: &[Case]) -> Result<String> {
        for peer in self.started {
            bench.commands.insert(peer.name.clone(), peer.running.command());
        }
        let summary = Summary::of(&bench.samples, &self.names(), cases, BASELINE)?;
        let settings = &bench.settings;
        let about = format!(
            "Medians of {} interleaved rounds of {} s, at given rates of {} rounds of {SECONDS_AT_RATE} s; proxies on \
             core {}, one thread each; {}. The ratio is the median of the rounds' own ratios, with their smallest and \
             largest.",
            settings.rounds,
            settings.seconds,
            settings.rounds * ROUNDS_AT_RATE,
            self.setup.server_core,
            self.network.note()
        );
        let told = Description {
            title: "AFPA's proxy beside its peers".into(),
            about: vec![about],
            versions: each_once(self.started.iter().map(|peer| peer.version.clone())),
            verdicts: verdict::lines(&summary),
            columns: 1,
        };
        peers::write(self.setup, bench, &summary, &told)
    }

    fn names(&self) -> Vec<String> {
        self.started.iter().map(|peer| peer.name.clone()).collect()
    }

    fn is_loopback(&self) -> bool {
        matches!(self.network, Network::Loopback(_))
    }

    /// The generator of a closed loop.
    fn closed_loop(&self) -> &'static str {
        if self.is_loopback() { "wrk" } else { "tc" }
    }
}

fn has(cases: &[Case], name: &str) -> bool {
    cases.iter().any(|case| case.name == name)
}

/// A load in words.
fn words(case: &Case, load: &Load) -> String {
    let paths: Vec<String> =
        case.objects.iter().map(|(weight, object)| format!("{weight} x {}", object.path)).collect();
    let rate =
        load.rate.map_or("as fast as answered".into(), |rate| format!("{rate:.0} requests/s"));
    let (count, seconds) = (load.connections, load.duration.as_secs_f64());
    format!("{count} connections, {seconds} s, {rate}: {}", paths.join(", "))
}
