//! A plan, carried out.

use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use afpa_generator::{Measured, Site};
use afpa_netlab::{Bed, CoreTimes, ProcessTimes};
use anyhow::{Context, Result, anyhow, ensure};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::bed::BedPlan;
use crate::plan::{Generators, Group, Plan, Session, Task};
use crate::results::{Busy, Cost, Doubt, Journal, ServerRecord, Turn};
use crate::servers::{self, Place, Programs, Running, Server};
use crate::whitebox::{Counting, WhiteBox};

/// Inside a namespace that is ours alone, any port is free.
const PORT: u16 = 8080;
/// How long cores are watched for being idle, and the share of it that they have to be.
const MOMENT: Duration = Duration::from_millis(300);
const QUIET: f64 = 0.9;
/// A core that is idle for more is not full.
const MOST_IDLE: f64 = 0.05;
/// A generator's core that has less left, while the server's has more, was the bottleneck.
const CLIENT_FULL: f64 = 0.95;
/// Shares of a core above which a turn is marked.
const MOST_FOREIGN: f64 = 0.05;
const MOST_STOLEN: f64 = 0.03;

/// What a run needs besides its plan.
pub struct Run<'r> {
    /// Where results go.
    pub folder: &'r Path,
    /// The document root and the servers' own folders; removed by the caller.
    pub work: &'r Path,
    /// AFPA, and this program.
    pub programs: Programs,
    /// Who loads.
    pub generators: Generators,
    /// How long each session may wait until both cores have nothing else to do.
    pub patience: Duration,
    /// Set by a signal: the run ends after the measurement at hand.
    pub interrupted: &'static AtomicBool,
}

/// What a run brings.
#[derive(Default)]
pub struct Brought {
    /// Every measurement, those of an earlier part of the run included.
    pub turns: Vec<Turn>,
    /// Every white-box turn.
    pub white_box: Vec<WhiteBox>,
    /// Who took part.
    pub servers: Vec<ServerRecord>,
    /// What went wrong, in words.
    pub failures: Vec<String>,
}

/// What is told while it goes on.
pub trait Watch {
    /// A measurement ended; `done` of `all`.
    fn turn(&mut self, turn: &Turn, done: usize, all: usize);
    /// Something else to know.
    fn say(&mut self, line: &str);
}

impl Run<'_> {
    /// Carries the plan out. What the folder's journal has already is not measured again.
    ///
    /// # Errors
    ///
    /// When the files or the journal cannot be written, a bed cannot be set up, or a signal ends
    /// the run. A server that fails is no error: it is among the failures, and takes no more part.
    pub fn carry_out(&self, plan: &Plan, watch: &mut dyn Watch) -> Result<Brought> {
        self.make_files(plan)?;
        let mut journal: Journal<Turn> = Journal::open(&self.folder.join("turns.jsonl"))?;
        let mut records: Journal<ServerRecord> = Journal::open(&self.folder.join("servers.jsonl"))?;
        let mut brought = Brought {
            turns: std::mem::take(&mut journal.found),
            servers: std::mem::take(&mut records.found),
            ..Brought::default()
        };
        let mut out: Vec<String> = Vec::new();
        let sessions = plan.sessions();
        let all = sessions.iter().map(|session| self.tasks(session).len()).sum();
        let mut done = 0;
        for session in &sessions {
            let tasks = self.tasks(session);
            done += tasks.len();
            let missing: Vec<&Task> = tasks
                .into_iter()
                .filter(|task| !brought.has(&task.point(&session.group.bed), session))
                .collect();
            if missing.is_empty() || out.iter().any(|name| name == session.name()) {
                continue;
            }
            let before = done - missing.len();
            let mut count = 0;
            let held = self.hold(session, &missing, &mut |turn| {
                count += 1;
                journal.add(&turn)?;
                watch.turn(&turn, before + count, all);
                brought.failures.extend(failure(&turn));
                brought.turns.push(turn);
                Ok(())
            });
            match held {
                Ok(record) if !brought.servers.iter().any(|one| one.name == record.name) => {
                    records.add(&record)?;
                    brought.servers.push(record);
                }
                Ok(_) => {}
                Err(error) if self.is_interrupted() => return Err(error),
                Err(error) => {
                    let line =
                        format!("{} on bed {}: {error:#}", session.name(), session.group.bed.name);
                    watch.say(&format!("FAILED {line}; it takes no more part"));
                    brought.failures.push(line);
                    out.push(session.name().to_owned());
                }
            }
        }
        Ok(brought)
    }

    /// White-box turns of every server of a group: each of `tasks` once, with everything counted
    /// that changes the rate.
    ///
    /// # Errors
    ///
    /// When the journal cannot be written, or a signal ends the run.
    pub fn look_inside(
        &self,
        group: &Group,
        watch: &mut dyn Watch,
        brought: &mut Brought,
    ) -> Result<()> {
        let path = self.folder.join("white-box.jsonl");
        let mut journal: Journal<WhiteBox> = Journal::open(&path)?;
        brought.white_box = std::mem::take(&mut journal.found);
        for server in &group.servers {
            let session = Session { group, server, round: 1 };
            let missing = |task: &&Task| {
                let point = task.point(&group.bed);
                !brought.white_box.iter().any(|w| w.server == *server && w.point == point)
            };
            let tasks: Vec<&Task> = self.tasks(&session).into_iter().filter(missing).collect();
            if tasks.is_empty() {
                continue;
            }
            watch.say(&format!("inside {server}"));
            let held = self.with_server(&session, |bed, _| {
                for task in &tasks {
                    let found = self.count(task, bed, &group.bed, server)?;
                    journal.add(&found)?;
                    brought.white_box.push(found);
                }
                Ok(())
            });
            match held {
                Err(error) if self.is_interrupted() => return Err(error),
                Err(error) => watch.say(&format!("inside {server}: {error:#}")),
                Ok(_) => {}
            }
        }
        Ok(())
    }

    fn tasks<'p>(&self, session: &Session<'p>) -> Vec<&'p Task> {
        let Some(server) = servers::find(session.name(), &self.programs) else {
            return Vec::new();
        };
        session.group.tasks.iter().filter(|task| task.suits(server.as_ref())).collect()
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// All files of all workloads, below one root that everybody may read.
    fn make_files(&self, plan: &Plan) -> Result<()> {
        let root = self.root();
        fs::create_dir_all(&root)?;
        for folder in [self.work, &root] {
            fs::set_permissions(folder, Permissions::from_mode(0o755))?;
        }
        for task in plan.groups.iter().flat_map(|group| &group.tasks) {
            task.workload.make_files(&root)?;
        }
        Ok(())
    }

    fn root(&self) -> PathBuf {
        self.work.join("root")
    }

    /// One server's measurements of one round.
    fn hold(
        &self,
        session: &Session<'_>,
        tasks: &[&Task],
        tell: &mut dyn FnMut(Turn) -> Result<()>,
    ) -> Result<ServerRecord> {
        self.with_server(session, |bed, running| {
            for task in tasks {
                ensure!(!self.is_interrupted(), "interrupted");
                tell(self.measure(task, bed, running, session)?)?;
            }
            Ok(())
        })
    }

    /// A bed and a server for one session. The bed is a fresh one each time: programs that a
    /// server left attached must not answer for the next.
    fn with_server(
        &self,
        session: &Session<'_>,
        work: impl FnOnce(&Bed, &Running<'_>) -> Result<()>,
    ) -> Result<ServerRecord> {
        let plan = &session.group.bed;
        let server = servers::find(session.name(), &self.programs)
            .with_context(|| format!("no server '{}'", session.name()))?;
        self.wait_for_quiet(plan)?;
        let bed = &plan.create()?;
        let folder = self.work.join(session.name().replace([':', '=', ','], "-"));
        // The last session's files are no business of this one.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        let place = Place {
            namespace: bed.server(),
            core: plan.server_core,
            address: SocketAddr::from((Bed::SERVER_V4, PORT)),
            root: &self.root(),
            folder: &folder,
            connections: session.group.most_connections(),
        };
        let running = server.start(&place)?;
        work(bed, &running)?;
        let record = self.record(server.as_ref(), &running)?;
        running.stop()?;
        Ok(record)
    }

    /// Keeps the configuration with the results. Where this machine had the files and programs is
    /// nothing that a figure depends on: it is left out.
    fn record(&self, server: &dyn Server, running: &Running<'_>) -> Result<ServerRecord> {
        let keep = |path: &Path| -> Result<PathBuf> {
            let name = path.file_name().context("a configuration has a name")?;
            let folder = PathBuf::from("configurations").join(server.name().replace(':', "-"));
            fs::create_dir_all(self.folder.join(&folder))?;
            let text = self.without_places(&fs::read_to_string(path)?);
            fs::write(self.folder.join(&folder).join(name), text)?;
            Ok(folder.join(name))
        };
        Ok(ServerRecord {
            name: server.name().to_owned(),
            about: server.about().to_owned(),
            version: self.without_places(&server.version()),
            command: self.without_places(&running.command()),
            configuration: running.configuration().map(keep).transpose()?,
        })
    }

    fn without_places(&self, text: &str) -> String {
        let work = self.work.display().to_string();
        let programs = [&self.programs.afpa, &self.programs.lab];
        let folders = programs.into_iter().filter_map(|program| program.parent());
        folders.fold(text.replace(&work, "WORK"), |text, folder| {
            text.replace(&format!("{}/", folder.display()), "")
        })
    }

    fn measure(
        &self,
        task: &Task,
        bed: &Bed,
        running: &Running<'_>,
        session: &Session<'_>,
    ) -> Result<Turn> {
        let plan = &session.group.bed;
        let processes = running.processes();
        let mut samples = Vec::with_capacity(2);
        let measured = self.load(task, bed, plan, &mut || {
            samples.push(Sample::take(plan, &processes));
        });
        let point = task.point(plan);
        let (server, round) = (session.server.to_owned(), session.round);
        let (measured, failure) = match measured {
            Ok(measured) => {
                let failure = wrong(&measured);
                (measured, failure)
            }
            Err(error) => (Measured::default(), Some(format!("{error:#}"))),
        };
        let used = match samples.into_iter().collect::<Result<Vec<_>>>()?.as_slice() {
            [before, .., after] => after.since(before),
            _ if failure.is_some() => Used::default(),
            _ => return Err(anyhow!("{} took no samples", task.generator)),
        };
        let (cost, busy) = used.told(measured.requests, measured.seconds);
        let doubts = doubts(&busy, plan.server_core == plan.client_core);
        Ok(Turn { point, server, round, measured, cost, busy, doubts, failure })
    }

    fn load(
        &self,
        task: &Task,
        bed: &Bed,
        plan: &BedPlan,
        sample: &mut (dyn FnMut() + Send),
    ) -> Result<Measured> {
        let generator = self.generators.named(&task.generator).context("no such generator")?;
        let site = Site {
            to: SocketAddr::from((Bed::SERVER_V4, PORT)),
            interface: Bed::DEVICE.into(),
            first_source: Bed::client_address(Bed::SERVER_V4.into(), 0),
            sources: plan.sources(),
            core: plan.client_core,
        };
        bed.client().run(|| {
            pin(plan.client_core)?;
            generator.run(&site, &task.workload, &task.load, sample)
        })?
    }

    fn count(&self, task: &Task, bed: &Bed, plan: &BedPlan, server: &str) -> Result<WhiteBox> {
        let mut counting = None;
        let mut counted = None;
        let measured = self.load(task, bed, plan, &mut || match counting.take() {
            None if counted.is_none() => counting = Some(Counting::start(plan.server_core)),
            None => {}
            Some(started) => counted = Some(started.and_then(Counting::end)),
        })?;
        if let Some(failure) = wrong(&measured) {
            return Err(anyhow!(failure));
        }
        let counted = counted.context("nothing was counted")??;
        Ok(counted.each(&task.point(plan), server, &measured))
    }

    fn wait_for_quiet(&self, plan: &BedPlan) -> Result<()> {
        let deadline = Instant::now() + self.patience;
        let cores = [plan.server_core, plan.client_core];
        while Instant::now() < deadline && !self.is_interrupted() {
            let before = cores.map(CoreTimes::of_core);
            std::thread::sleep(MOMENT);
            let mut quiet = true;
            for (core, before) in cores.into_iter().zip(before) {
                let spent = CoreTimes::of_core(core)? - before?;
                quiet &= spent.idle >= MOMENT.mul_f64(QUIET);
            }
            if quiet {
                break;
            }
        }
        Ok(())
    }
}

impl Brought {
    fn has(&self, point: &crate::results::Point, session: &Session<'_>) -> bool {
        self.turns.iter().any(|turn| turn.is(point, session.server, session.round))
    }
}

impl Group {
    fn most_connections(&self) -> u32 {
        self.tasks.iter().map(|task| task.load.connections).max().unwrap_or(1)
    }
}

/// What the two cores and the server's processes have used so far.
struct Sample {
    taken: Instant,
    server_core: CoreTimes,
    client_core: CoreTimes,
    processes: ProcessTimes,
}

/// The same, of an interval.
#[derive(Default)]
struct Used {
    lasted: Duration,
    server_core: CoreTimes,
    client_core: CoreTimes,
    processes: ProcessTimes,
}

impl Sample {
    fn take(plan: &BedPlan, processes: &[i32]) -> Result<Self> {
        Ok(Self {
            taken: Instant::now(),
            processes: ProcessTimes::of(processes),
            server_core: CoreTimes::of_core(plan.server_core)?,
            client_core: CoreTimes::of_core(plan.client_core)?,
        })
    }

    fn since(&self, before: &Self) -> Used {
        Used {
            lasted: self.taken - before.taken,
            server_core: self.server_core - before.server_core,
            client_core: self.client_core - before.client_core,
            processes: self.processes - before.processes,
        }
    }
}

impl Used {
    /// For a request, and as shares of the time.
    fn told(&self, requests: u64, seconds: f64) -> (Cost, Busy) {
        let lasted = self.lasted.as_secs_f64();
        if lasted == 0.0 || requests == 0 || seconds == 0.0 {
            return (Cost::default(), Busy::default());
        }
        let requests = requests as f64 / seconds * lasted;
        let each = |time: Duration| time.as_secs_f64() * 1e6 / requests;
        let share = |time: Duration| (time.as_secs_f64() / lasted).min(1.0);
        let user = self.server_core.user.min(self.processes.user);
        let cost = Cost {
            user: each(user),
            system: each(self.server_core.system),
            interrupts: each(self.server_core.interrupts(self.lasted)),
        };
        let busy = Busy {
            server_core: 1.0 - share(self.server_core.idle),
            client_core: 1.0 - share(self.client_core.idle),
            foreign: share(self.server_core.user - user),
            stolen: share(self.server_core.steal.max(self.client_core.steal)),
        };
        (cost, busy)
    }
}

fn doubts(busy: &Busy, one_core: bool) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let server_full = busy.server_core >= 1.0 - MOST_IDLE;
    if !server_full && busy.client_core >= CLIENT_FULL {
        doubts.push(Doubt::ClientBound);
    } else if !server_full {
        doubts.push(Doubt::NotSaturated);
    }
    if busy.foreign > MOST_FOREIGN && !one_core {
        doubts.push(Doubt::Disturbed);
    }
    if busy.stolen > MOST_STOLEN {
        doubts.push(Doubt::Stolen);
    }
    doubts
}

/// Why a measurement does not count.
fn wrong(measured: &Measured) -> Option<String> {
    if measured.errors > 0 {
        return Some(format!("{} errors: {}", measured.errors, measured.complaints.join("; ")));
    }
    (measured.requests == 0).then(|| "no request was answered".to_owned())
}

fn failure(turn: &Turn) -> Option<String> {
    let reason = turn.failure.as_ref()?;
    let point = &turn.point;
    Some(format!(
        "{}, {}, bed {}, round {}: {reason}",
        turn.server, point.workload, point.bed, turn.round
    ))
}

fn pin(core: usize) -> Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores).with_context(|| format!("cannot run on core {core}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core(user: u64, idle: u64) -> CoreTimes {
        let ms = Duration::from_millis;
        CoreTimes { user: ms(user), idle: ms(idle), system: ms(100), ..CoreTimes::default() }
    }

    fn used() -> Used {
        Used {
            lasted: Duration::from_secs(1),
            server_core: core(500, 0),
            client_core: core(0, 600),
            processes: ProcessTimes { user: Duration::from_millis(400), ..Default::default() },
        }
    }

    #[test]
    fn cost_is_the_whole_core_but_for_others_user_mode() {
        let (cost, busy) = used().told(1000, 1.0);
        assert_eq!(cost, Cost { user: 400.0, system: 100.0, interrupts: 400.0 });
        assert!((busy.foreign - 0.1).abs() < 1e-9 && busy.server_core == 1.0);
        assert!((busy.client_core - 0.4).abs() < 1e-9);
        assert_eq!(used().told(0, 1.0).0, Cost::default());
    }

    #[test]
    fn who_was_the_bottleneck() {
        let busy = |server_core, client_core| Busy { server_core, client_core, ..Busy::default() };
        assert_eq!(doubts(&busy(1.0, 1.0), false), []);
        assert_eq!(doubts(&busy(0.5, 0.99), false), [Doubt::ClientBound]);
        assert_eq!(doubts(&busy(0.5, 0.5), false), [Doubt::NotSaturated]);
        let disturbed = Busy { foreign: 0.2, stolen: 0.1, ..busy(1.0, 0.1) };
        assert_eq!(doubts(&disturbed, false), [Doubt::Disturbed, Doubt::Stolen]);
        assert_eq!(doubts(&disturbed, true), [Doubt::Stolen]);
    }

    #[test]
    fn an_error_or_no_answer_fails_a_turn() {
        let good = Measured { requests: 5, seconds: 1.0, ..Measured::default() };
        assert_eq!(wrong(&good), None);
        let bad = Measured { errors: 2, complaints: vec!["short".into()], ..good.clone() };
        assert_eq!(wrong(&bad).unwrap(), "2 errors: short");
        assert!(wrong(&Measured::default()).is_some());
    }
}
