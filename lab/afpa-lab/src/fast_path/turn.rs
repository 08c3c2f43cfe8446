//! One measurement: a fresh bed, a server on it, and the load. The bed is a fresh one each time: programs that a
//! server left attached must not answer for the next.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use afpa_netlab::load::{Generator, Interval};
use afpa_netlab::{Bed, pin, wait_for_quiet};
use anyhow::{Context, Result};

use super::cases::{
    ATTACHED, ATTACHED_READING, ATTACHED_SOCKETLESS, KERNEL, KERNEL_READING, KERNEL_SOCKETLESS,
    LONGEST_ANSWER, REFLECTOR, USER, kernel_paths,
};
use crate::bench::{Case, CaseBed, Sample, TcLoad};
use crate::servers::fast_path::{Attached, Bypass, FastPathOptions, Reflector, Serve};
use crate::servers::{self, Programs, Running, Server, ServerSetup};
use crate::usage::{self, Used, doubts};

/// Inside a namespace that is ours alone, any port is free.
const PORT: u16 = 8080;
/// Connections that the kernel's table has room for, unless a case has more.
const USUAL_FLOWS: u32 = 65_536;
/// Room in the table beyond the connections: a full table would behave differently.
const SPARE_FLOWS: f64 = 1.25;

/// The common settings of all measurements.
pub(crate) struct Turns<'t> {
    /// The programs that are this repository's own.
    pub(crate) programs: Programs,
    /// Below the system's temporary folder: servers that give up root's rights must reach it.
    pub(crate) work: &'t Path,
    /// How long each measurement may wait until both cores have nothing else to do.
    pub(crate) patience: Duration,
}

/// How long there is load, and for how long it is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lengths {
    pub(crate) warm_up: Duration,
    pub(crate) measured: Duration,
}

/// A server that runs on a bed of its own.
pub(crate) struct OnBed<'b> {
    pub(crate) bed: &'b Bed,
    pub(crate) running: &'b Running<'b>,
    pub(crate) address: SocketAddr,
    /// The path of its control socket, if it is AFPA.
    pub(crate) control: PathBuf,
}

impl Turns<'_> {
    /// Where the files are that all servers have.
    pub(crate) fn root(&self) -> PathBuf {
        self.work.join("root")
    }

    /// Measures one server; `watch` is called now and then meanwhile.
    pub(super) fn measure(
        &self,
        case: &Case,
        server: &str,
        lengths: Lengths,
        watch: &mut (dyn FnMut(&OnBed<'_>) + Send),
    ) -> Result<(Sample, String)> {
        let load = case.tc().context("the load is made in TC")?.clone();
        self.on_bed(case, &load, server, |on_bed| {
            let (done, ended) = channel::<()>();
            let (interval, used) = std::thread::scope(|scope| {
                scope.spawn(move || {
                    while matches!(ended.recv_timeout(WATCHED), Err(RecvTimeoutError::Timeout)) {
                        watch(on_bed);
                    }
                });
                let measured = ask(on_bed, case, &load, lengths);
                drop(done);
                measured
            })?;
            Ok((sample(case, server, load.bed, &interval, &used), on_bed.running.command()))
        })
    }

    /// Starts a server on a fresh bed, and ends both after the work.
    pub(crate) fn on_bed<T>(
        &self,
        case: &Case,
        load: &TcLoad,
        server: &str,
        work: impl FnOnce(&OnBed<'_>) -> Result<T>,
    ) -> Result<T> {
        let (server_core, client_core) = load.bed.cores();
        let deadline = Instant::now() + self.patience;
        wait_for_quiet([server_core, client_core], || Instant::now() >= deadline)?;
        let bed = &Bed::create(&load.bed_options())?;
        let folder = self.work.join(server.replace([' ', ','], "-"));
        // The last measurement's files must not remain.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
        let address = SocketAddr::from((Bed::SERVER_V4, PORT));
        let setup = ServerSetup {
            namespace: Some(bed.server()),
            core: server_core,
            address,
            root: &self.root(),
            folder: &folder,
            connections: case.connections,
        };
        let running = self.server(case, server)?.start(&setup)?;
        let control = folder.join(servers::fast_path::CONTROL);
        let done = work(&OnBed { bed, running: &running, address, control })?;
        running.stop()?;
        Ok(done)
    }

    /// The server of a name, as a case needs it.
    pub(super) fn server(&self, case: &Case, name: &str) -> Result<Box<dyn Server>> {
        let options = |bypass| FastPathOptions {
            programs: self.programs.clone(),
            bypass,
            socketless: matches!(name, KERNEL_SOCKETLESS | ATTACHED_SOCKETLESS),
            flows: table_size(case),
            // Of very many connections, of which only some have a request outstanding, other processes may hold most.
            firewall: case.tc().is_none_or(|load| load.active == 0),
            longest: LONGEST_ANSWER,
            paths: kernel_paths(),
        };
        let serve = |kernel, bypass| -> Box<dyn Server> {
            Box::new(Serve { name: name.into(), kernel, options: options(bypass) })
        };
        let attached = |bypass| -> Box<dyn Server> {
            Box::new(Attached { name: name.into(), options: options(bypass) })
        };
        Ok(match name {
            KERNEL | KERNEL_SOCKETLESS => serve(true, Bypass::Usual),
            KERNEL_READING => serve(true, Bypass::Never),
            USER => serve(false, Bypass::Usual),
            ATTACHED | ATTACHED_SOCKETLESS => attached(Bypass::Usual),
            ATTACHED_READING => attached(Bypass::Never),
            REFLECTOR => Box::new(Reflector {
                programs: self.programs.clone(),
                body: case.size(),
                once: case.tc().is_some_and(|load| load.once),
            }),
            _ => servers::find(name, &self.programs)
                .with_context(|| format!("no server '{name}'"))?,
        })
    }
}

/// Connections that the kernel's table has room for in a case.
pub(super) fn table_size(case: &Case) -> u32 {
    USUAL_FLOWS.max((f64::from(case.connections) * SPARE_FLOWS) as u32)
}

/// How often a measurement is looked at from outside.
const WATCHED: Duration = Duration::from_millis(500);

/// Makes the load of a case on the calling side's core.
pub(crate) fn ask(
    on_bed: &OnBed<'_>,
    case: &Case,
    load: &TcLoad,
    lengths: Lengths,
) -> Result<(Interval, Used)> {
    let options = load.options(on_bed.address, &case.objects, case.connections);
    let cores = load.bed.cores();
    on_bed.bed.client().run(|| {
        pin(cores.1)?;
        let mut generator = Generator::start(&options)?;
        generator.measure(lengths.warm_up)?;
        let processes = on_bed.running.processes();
        let look = || usage::Sample::take(cores, &processes);
        let (interval, [before, after]) = generator.measure_with(lengths.measured, look)?;
        generator.finish()?;
        Ok((interval, after.since(&before)))
    })?
}

/// On the steered bed a request's cost is the server's core's, and on one core it is all of that core. Where
/// packets are processed on either core the work of both sides mixes, so the cost is that of both cores.
pub(crate) fn sample(
    case: &Case,
    server: &str,
    bed: CaseBed,
    interval: &Interval,
    used: &Used,
) -> Sample {
    let requests = interval.counts.get("responses").copied().unwrap_or(0);
    let (cost, busy) = used.told(requests, interval.seconds);
    let core_seconds = match bed {
        CaseBed::Steered | CaseBed::Together => cost.total() / 1e6 * requests as f64,
        CaseBed::Unsteered => used.both_sides(),
    };
    let errors = interval.errors;
    Sample {
        case: case.name.clone(),
        server: server.to_owned(),
        round: 0,
        requests,
        seconds: interval.seconds,
        body_bytes: requests as f64 * case.mean_length(),
        core_seconds,
        latency: interval.latency,
        busy,
        doubts: doubts(&busy, bed == CaseBed::Together),
        errors: match (requests, errors) {
            (0, _) => Some("no request was answered".into()),
            (_, 0) => None,
            (_, errors) => Some(format!("{errors} wrong answers")),
        },
    }
}
