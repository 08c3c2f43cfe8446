//! `afpa attach --dns` before NSD, Knot and BIND, beside each of them alone, Knot by AF_XDP and the zones of `afpa serve`:
//! `afpa-lab dns`.
//!
//! Each server has a bed of its own, all with the same cores, and all run from first to last. In each round every case is
//! measured once for each of them, in rotating order, by a closed loop in softirq ([`afpa_netlab::queries`]). An AFPA whose
//! turn it is not is stopped: it looks for changes of its server's zone all the time.

mod cases;
mod verdict;
mod zones;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use afpa_netlab::Bed;
use afpa_netlab::queries::{Expected, Queries, QueryOptions, Tally};
use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::bed::BedPlan;
use crate::bench::{Bench, Sample, each_once};
use crate::loopback::on_core;
use crate::peers::{self, Description, Setup, Summary};
use crate::servers::dns::{NAME_SERVERS, NameServer};
use crate::servers::{Running, Server, ServerSetup, control};
use crate::usage::{self, Counted, doubts};

use cases::DnsCase;

const PORT: u16 = 53;
/// The kernel's share of the answers when all names are learnt: each client's query of each second is the server's.
const LEARNT: f64 = 0.99;
/// Names are learnt within this, while the server's core is full. Its share is looked at after each lesson.
const LEARNING: Duration = Duration::from_secs(150);
const LESSON: Duration = Duration::from_millis(750);
/// The moment of an early look at that.
const EARLY: Duration = Duration::from_secs(30);
/// An AFPA that was stopped has looked at its zones again within this.
const AWAKE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(250);

/// The options of the command line, besides those of every bench.
#[derive(Debug, Clone)]
pub struct Options {
    /// Empty: those that are here.
    pub servers: Vec<String>,
    /// Queries at a time.
    pub outstanding: u32,
}

/// Measures the servers; the tables and verdicts for a terminal.
///
/// # Errors
///
/// When a server is not here, cannot be started, or gives a wrong answer; or when a signal ends the run.
pub fn run(setup: &Setup<'_>, mut bench: Bench, options: &Options) -> Result<String> {
    let servers = choose(options, setup, &bench)?;
    let names: Vec<&str> = servers.iter().map(|server| server.name()).collect();
    let mut all = cases::all(&names, options.outstanding);
    all.retain(|case| !bench.settings.chosen(vec![case.case.clone()]).is_empty());
    all.retain(|case| !case.case.servers.is_empty());
    ensure!(!all.is_empty(), "no such case");
    zones::make(&setup.root)?;
    setup.make_files(&[])?;
    let plan = BedPlan::named("steered", (setup.server_core, setup.client_core), None)?;
    let record = plan.record();
    bench.say(&format!("a bed for each server, steered: {}", record.about));
    let beds: Vec<Bed> = servers.iter().map(|_| plan.create()).collect::<Result<_>>()?;
    let folders: Vec<PathBuf> =
        names.iter().map(|name| setup.folder_of(name)).collect::<Result<_>>()?;
    let started = servers
        .iter()
        .zip(&beds)
        .zip(&folders)
        .map(|((server, bed), folder)| Started::start(setup, server, bed, folder))
        .collect::<Result<Vec<_>>>()?;
    let mut run = Run { setup, started, expected: BTreeMap::new() };
    run.check(&bench, &all)?;
    for case in &all {
        let plain = std::slice::from_ref(&case.case);
        bench.part(|bench| bench.rounds(plain, |bench, _, name| run.turn(bench, case, name)))?;
    }
    all.retain(|case| bench.samples.is_complete(&case.case));
    ensure!(!all.is_empty(), "nothing was measured: {}", bench.failed.join("; "));
    run.tell(&mut bench, &all, options.outstanding)
}

/// The servers to measure: those named, each of which must be there, or all that are.
fn choose(options: &Options, setup: &Setup<'_>, bench: &Bench) -> Result<Vec<NameServer>> {
    let named = |name: &str| {
        let server = NameServer::named(name, &setup.programs);
        server
            .with_context(|| format!("no server '{name}'; there are: {}", NAME_SERVERS.join(", ")))
    };
    let mut chosen = Vec::new();
    for name in NAME_SERVERS {
        let server = named(name)?;
        let wanted = options.servers.is_empty() || options.servers.iter().any(|one| one == name);
        match server.lacks().filter(|_| wanted) {
            None if wanted => chosen.push(server),
            None => {}
            Some(why) if options.servers.is_empty() => {
                bench.say(&format!("servers: {name} is left out: {why}"));
            }
            Some(why) => bail!("{name}: {why}"),
        }
    }
    options.servers.iter().try_for_each(|name| named(name).map(drop))?;
    ensure!(!chosen.is_empty(), "no server to measure");
    Ok(chosen)
}

/// A server that runs on its bed. Ended before the bed is.
struct Started<'b> {
    name: String,
    version: String,
    bed: &'b Bed,
    running: Running<'b>,
    /// The control socket of the AFPA before it.
    attached: Option<PathBuf>,
}

impl<'b> Started<'b> {
    fn start(
        setup: &'b Setup<'_>,
        server: &NameServer,
        bed: &'b Bed,
        folder: &'b Path,
    ) -> Result<Self> {
        let at = ServerSetup {
            namespace: Some(bed.server()),
            core: setup.server_core,
            address: SocketAddr::new(Bed::SERVER_V4.into(), PORT),
            root: &setup.root,
            folder,
            connections: 64,
        };
        let running = server.start(&at).with_context(|| server.name().to_owned())?;
        setup.keep_configuration(server.name(), &running)?;
        let (name, version) = (server.name().to_owned(), server.version());
        let attached = server.is_attached().then(|| NameServer::socket(folder)).flatten();
        let started = Self { name, version, bed, running, attached };
        started.signal(Signal::STOP)?;
        Ok(started)
    }

    /// To the AFPA before it, if there is one.
    fn signal(&self, signal: Signal) -> Result<()> {
        let afpa = self.running.main_process().filter(|_| self.attached.is_some());
        let afpa = afpa.and_then(|id| Pid::from_raw(id as i32));
        afpa.map_or(Ok(()), |id| kill_process(id, signal)).context("AFPA has ended")
    }

    /// Answers that the kernel has given.
    fn by_kernel(&self) -> u64 {
        self.attached.as_deref().map_or(0, control::kernel_answers)
    }
}

impl Drop for Started<'_> {
    fn drop(&mut self) {
        // A process that is stopped does not end in good order; one that has ended needs nothing.
        let _ = self.signal(Signal::CONT);
    }
}

/// Everything that is there before the first measurement, and stays.
struct Run<'r> {
    setup: &'r Setup<'r>,
    started: Vec<Started<'r>>,
    /// By case and server.
    expected: BTreeMap<(String, String), Expected>,
}

impl Run<'_> {
    /// Reads answers of every server to every case, has an AFPA before it learn them, and reads them again: they are the
    /// same, byte for byte.
    fn check(&mut self, bench: &Bench, cases: &[DnsCase]) -> Result<()> {
        for case in cases {
            for name in &case.case.servers {
                bench.check()?;
                let started = self.named(name)?;
                started.signal(Signal::CONT)?;
                let read = self.learn(bench, case, started);
                started.signal(Signal::STOP)?;
                let read = read.with_context(|| format!("{}, {name}", case.case.title))?;
                self.expected.insert((case.case.name.clone(), name.clone()), read);
            }
        }
        bench
            .say("answers: right in code, length and address, and the same after they were learnt");
        Ok(())
    }

    fn learn(&self, bench: &Bench, case: &DnsCase, started: &Started<'_>) -> Result<Expected> {
        let options = self.options(case);
        let (before, expected) = self.at_client(started, || options.read_some())?;
        if !case.hits || started.attached.is_none() {
            return Ok(expected);
        }
        let begun = Instant::now();
        let shares = self.at_client(started, || teach(&options, expected, started))?;
        let (title, name, took) = (&case.case.title, &started.name, begun.elapsed().as_secs_f64());
        let [last, early] = shares.map(|share| share * 100.0);
        bench.say(&format!(
            "{title}: {name} has learnt for {took:.1} s with the server's core full: {last:.1} % by the kernel, {early:.1} % \
             after 30 s"
        ));
        let (after, _) = self.at_client(started, || options.read_some())?;
        ensure!(before == after, "an answer of the kernel differs from the server's");
        Ok(expected)
    }

    fn turn(&self, bench: &Bench, case: &DnsCase, name: &str) -> Result<Sample> {
        let started = self.named(name)?;
        let key = (case.case.name.clone(), name.to_owned());
        let expected = *self.expected.get(&key).context("it was not asked before")?;
        started.signal(Signal::CONT)?;
        let sample = self.measure(bench, case, started, expected);
        started.signal(Signal::STOP)?;
        sample
    }

    fn measure(
        &self,
        bench: &Bench,
        case: &DnsCase,
        started: &Started<'_>,
        expected: Expected,
    ) -> Result<Sample> {
        let options = self.options(case);
        let cores = (self.setup.server_core, self.setup.client_core);
        let processes = started.running.processes();
        let (warm, length) =
            (bench.settings.warm_up_of(&case.case), bench.settings.length_of(&case.case));
        let (tally, lasted, [before, after]) = self.at_client(started, || {
            let mut queries = Queries::start(&options, expected)?;
            queries.measure(warm, || Ok(()))?;
            if case.hits && started.attached.is_some() {
                let share = warm_up(&mut queries, started)?;
                ensure!(
                    share >= LEARNT,
                    "only {:.1} % of the answers are the kernel's",
                    share * 100.0
                );
            }
            queries.measure(length, || usage::Sample::take(cores, &processes))
        })?;
        if tally.asked_again > 0 {
            let (title, name, count) = (&case.case.title, &started.name, tally.asked_again);
            bench.say(&format!("{title}, {name}: {count} of {} were asked again", tally.answers));
        }
        let (used, seconds) = (after.since(&before), lasted.as_secs_f64());
        let (_, busy) = used.told(tally.answers, seconds);
        Ok(Sample {
            case: case.case.name.clone(),
            server: started.name.clone(),
            round: 0,
            requests: tally.answers,
            seconds,
            body_bytes: tally.bytes as f64,
            core_seconds: used.busy(Counted::ByIdle).0.as_secs_f64(),
            latency: Default::default(),
            doubts: doubts(&busy, false),
            busy,
            errors: wrong(&tally),
        })
    }

    /// Tables and verdicts for a terminal; the same for later in the folder.
    fn tell(&self, bench: &mut Bench, cases: &[DnsCase], outstanding: u32) -> Result<String> {
        for started in &self.started {
            bench.commands.insert(started.name.clone(), started.running.command());
        }
        let plain: Vec<_> = cases.iter().map(|case| case.case.clone()).collect();
        let names = each_once(plain.iter().flat_map(|case| case.servers.clone()));
        let summary = Summary::of(&bench.samples, &names, &plain, "nsd")?;
        let mut verdicts = verdict::lines(&bench.samples, &plain);
        verdicts.extend(bench.failed.iter().map(|why| format!("Not measured: {why}")));
        let settings = &bench.settings;
        let about = format!(
            "Medians of {} interleaved rounds of {} s by IPv4; servers on core {}, one thread each; {outstanding} queries at a \
             time from softirq on core {}, the code, length and address of each answer compared. With AF_XDP on a \
             veth pair a part of Knot's work is done on the client's core. The ratio is the median of the rounds' own ratios, \
             with their smallest and largest.",
            settings.rounds, settings.seconds, self.setup.server_core, self.setup.client_core,
        );
        let told = Description {
            title: "DNS: answers from the kernel and from name servers".into(),
            about: vec![about],
            versions: each_once(self.started.iter().map(|one| one.version.clone())),
            verdicts,
            columns: 2,
        };
        peers::write(self.setup, bench, &summary, &told)
    }

    fn named(&self, name: &str) -> Result<&Started<'_>> {
        let found = self.started.iter().find(|started| started.name == name);
        found.with_context(|| format!("{name} does not run"))
    }

    /// On a thread in the client's namespace and on its core.
    fn at_client<T: Send>(
        &self,
        started: &Started<'_>,
        work: impl FnOnce() -> Result<T> + Send,
    ) -> Result<T> {
        started.bed.client().run(|| on_core(self.setup.client_core, work))?
    }

    fn options(&self, case: &DnsCase) -> QueryOptions {
        let from = match Bed::client_address(Bed::SERVER_V4.into(), 0) {
            IpAddr::V4(from) => from,
            IpAddr::V6(_) => unreachable!("it is of the family of the server's"),
        };
        QueryOptions {
            to: SocketAddrV4::new(Bed::SERVER_V4, PORT),
            interface: Bed::DEVICE.into(),
            from,
            outstanding: case.case.connections,
            question: case.question.clone(),
            found: case.found,
        }
    }
}

/// Asks with all queries at a time, as a full load does, until the kernel answers nearly all: its share in the end, and after
/// half a minute.
fn teach(options: &QueryOptions, expected: Expected, started: &Started<'_>) -> Result<[f64; 2]> {
    let (begun, mut early) = (Instant::now(), None);
    let mut queries = Queries::start(options, expected)?;
    loop {
        let share = by_kernel(&mut queries, started, LESSON)?;
        if begun.elapsed() >= EARLY {
            early.get_or_insert(share);
        }
        if share >= LEARNT || begun.elapsed() > LEARNING {
            return Ok([share, early.unwrap_or(share)]);
        }
    }
}

/// Asks until the kernel answers nearly all again, for a moment at most: its share in the end.
fn warm_up(queries: &mut Queries, started: &Started<'_>) -> Result<f64> {
    let begun = Instant::now();
    loop {
        let share = by_kernel(queries, started, LOOK)?;
        if share >= LEARNT || begun.elapsed() > AWAKE {
            return Ok(share);
        }
    }
}

/// The kernel's share of the answers of some time.
fn by_kernel(queries: &mut Queries, started: &Started<'_>, time: Duration) -> Result<f64> {
    let (tally, _, [before, after]) = queries.measure(time, || Ok(started.by_kernel()))?;
    Ok(((after - before) as f64 / tally.answers.max(1) as f64).min(1.0))
}

fn wrong(tally: &Tally) -> Option<String> {
    let silent = (tally.answers == 0).then(|| "no query was answered".to_owned());
    tally.complaint().or(silent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_answers_and_silence_are_errors() {
        let right = Tally { answers: 3, ..Tally::default() };
        assert_eq!(wrong(&right), None);
        assert_eq!(wrong(&Tally::default()).as_deref(), Some("no query was answered"));
        let other = Tally { errors: [0, 1, 0, 0], ..right };
        assert_eq!(wrong(&other).as_deref(), Some("1 with another length"));
    }
}
