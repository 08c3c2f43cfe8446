//! A plan, carried out.

mod inside;

use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use afpa_generator::{ClientSetup, Measured};
use afpa_netlab::{Bed, pin, wait_for_quiet};
use anyhow::{Context, Result, anyhow, ensure};

use crate::memory;
use crate::plan::{Generators, Group, Plan, Session, Task};
use crate::results::{Held, Journal, ServerRecord, Turn};
use crate::results_folder;
use crate::servers::{self, Programs, Running, Server, ServerSetup};
use crate::usage::{Sample, Used, doubts};
use crate::whitebox::WhiteBox;

/// Inside a namespace that is ours alone, any port is free.
const PORT: u16 = 8080;

/// The settings of a run besides its plan.
pub struct Run<'r> {
    /// Where results go.
    pub folder: &'r Path,
    /// The document root and the servers' own folders; removed by the caller.
    pub work: &'r Path,
    /// AFPA, and this program.
    pub programs: Programs,
    /// The generators of the load.
    pub generators: Generators,
    /// How long each session may wait until both cores have nothing else to do.
    pub patience: Duration,
    /// No session begins after this; measurements that are missing then are left out.
    pub deadline: Option<Instant>,
    /// Set by a signal: the run ends after the measurement at hand.
    pub interrupted: &'static AtomicBool,
}

/// The results of a run.
#[derive(Default)]
pub struct Brought {
    /// Every measurement, those of an earlier part of the run included.
    pub turns: Vec<Turn>,
    /// Every white-box turn.
    pub white_box: Vec<WhiteBox>,
    /// The servers that took part.
    pub servers: Vec<ServerRecord>,
    /// Measurements for which there was no time.
    pub left_out: Vec<String>,
    /// Error messages, besides those of turns that failed.
    pub failures: Vec<String>,
}

/// An observer of a run's progress.
pub trait Watch {
    /// A measurement ended; `done` of `all`.
    fn turn(&mut self, turn: &Turn, done: usize, all: usize);
    /// Another message.
    fn say(&mut self, line: &str);
}

impl Run<'_> {
    /// Carries the plan out. Measurements that the folder's journal has already are not taken again.
    ///
    /// # Errors
    ///
    /// When the files or the journal cannot be written, a bed cannot be set up, or a signal ends
    /// the run. A server that fails is no error: it is among the failures, and takes no more part.
    pub fn carry_out(&self, plan: &Plan, watch: &mut dyn Watch) -> Result<Brought> {
        self.make_files(plan)?;
        let mut journal: Journal<Turn> = Journal::open(&self.folder.join(results_folder::TURNS))?;
        let mut records: Journal<ServerRecord> =
            Journal::open(&self.folder.join(results_folder::SERVERS))?;
        let mut brought = Brought {
            turns: std::mem::take(&mut journal.found),
            servers: std::mem::take(&mut records.found),
            white_box: Journal::read(&self.folder.join(results_folder::WHITE_BOX))?,
            ..Brought::default()
        };
        let mut out: Vec<String> = Vec::new();
        let mut late: Vec<&Session<'_>> = Vec::new();
        let sessions = plan.sessions();
        let all = sessions.iter().map(|session| session.tasks().len()).sum();
        let mut done = 0;
        for session in &sessions {
            let tasks = session.tasks();
            done += tasks.len();
            let missing: Vec<&Task> = tasks
                .into_iter()
                .filter(|task| !brought.has(&task.point(&session.group.bed), session))
                .collect();
            if missing.is_empty() || out.iter().any(|name| name == session.name()) {
                continue;
            }
            if self.deadline.is_some_and(|deadline| Instant::now() > deadline) {
                late.push(session);
                continue;
            }
            let before = done - missing.len();
            let mut count = 0;
            let held = self.hold(session, &missing, &mut |turn| {
                count += 1;
                journal.add(&turn)?;
                watch.turn(&turn, before + count, all);
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
        brought.left_out = told_late(&late);
        Ok(brought)
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
        for task in plan.groups.iter().chain(&plan.axes).flat_map(|group| &group.tasks) {
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
        self.with_server(session, |bed, running, start| {
            for task in tasks {
                ensure!(!self.is_interrupted(), "interrupted");
                let mut turn = self.measure(task, bed, running, session)?;
                let memory = memory::of_those_there(&running.processes());
                turn.held = Some(Held { start: start.as_secs_f64(), memory });
                tell(turn)?;
            }
            Ok(())
        })
    }

    /// A bed and a server for one session, and how long the server took until it accepted. The bed is a fresh one each
    /// time: programs that a server left attached must not answer for the next.
    fn with_server(
        &self,
        session: &Session<'_>,
        work: impl FnOnce(&Bed, &Running<'_>, Duration) -> Result<()>,
    ) -> Result<ServerRecord> {
        let plan = &session.group.bed;
        let server = servers::find(session.name(), &self.programs)
            .with_context(|| format!("no server '{}'", session.name()))?;
        let deadline = Instant::now() + self.patience;
        wait_for_quiet([plan.server_core, plan.client_core], || {
            Instant::now() >= deadline || self.is_interrupted()
        })?;
        let bed = &plan.create()?;
        let folder = self.work.join(session.name().replace([':', '=', ','], "-"));
        // The last session's files must not remain.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        let setup = ServerSetup {
            namespace: Some(bed.server()),
            core: plan.server_core,
            address: SocketAddr::from((Bed::SERVER_V4, PORT)),
            root: &self.root(),
            folder: &folder,
            connections: session.group.most_connections(),
        };
        let begun = Instant::now();
        let running = server.start(&setup)?;
        work(bed, &running, begun.elapsed())?;
        let record = self.record(server.as_ref(), &running)?;
        running.stop()?;
        Ok(record)
    }

    /// Keeps the configuration with the results, without the paths of this machine's files and programs: no figure
    /// depends on them.
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
        let measured = self.load(task, bed, session, &mut || {
            samples.push(Sample::take((plan.server_core, plan.client_core), &processes));
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
        Ok(Turn { point, server, round, measured, cost, busy, doubts, failure, held: None })
    }

    fn load(
        &self,
        task: &Task,
        bed: &Bed,
        session: &Session<'_>,
        sample: &mut (dyn FnMut() + Send),
    ) -> Result<Measured> {
        let generator = self.generators.named(&task.generator).context("no such generator")?;
        let plan = &session.group.bed;
        let server = servers::find(session.name(), &self.programs);
        let client = ClientSetup {
            to: SocketAddr::from((Bed::SERVER_V4, PORT)),
            interface: Bed::DEVICE.into(),
            first_source: Bed::client_address(Bed::SERVER_V4.into(), 0),
            sources: plan.sources(),
            core: plan.client_core,
            answers_at_once: plan.answers_at_once(),
            ages: server.is_some_and(|server| server.ages()),
        };
        bed.client().run(|| {
            pin(plan.client_core)?;
            generator.run(&client, &task.workload, &task.load, sample)
        })?
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

/// A line for each group and round.
fn told_late(late: &[&Session<'_>]) -> Vec<String> {
    let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
    for session in late {
        let begin = format!("{}, round {}: no time for ", session.group.title, session.round);
        match lines.iter_mut().find(|(other, _)| *other == begin) {
            Some((_, servers)) => servers.push(session.server),
            None => lines.push((begin, vec![session.server])),
        }
    }
    lines.into_iter().map(|(begin, servers)| begin + &servers.join(", ")).collect()
}

/// Why a measurement does not count.
pub(crate) fn wrong(measured: &Measured) -> Option<String> {
    if measured.errors > 0 {
        return Some(format!("{} errors: {}", measured.errors, measured.complaints.join("; ")));
    }
    (measured.requests == 0).then(|| "no request was answered".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed::BedPlan;

    #[test]
    fn what_came_too_late_is_told_by_round() {
        let group = Group {
            title: "sizes".into(),
            bed: BedPlan::named("steered", (0, 1), None).unwrap(),
            tasks: Vec::new(),
            servers: Vec::new(),
            closing: Vec::new(),
        };
        let session = |server, round| Session { group: &group, server, round };
        let late = [session("a", 2), session("b", 2), session("a", 3)];
        let lines = told_late(&late.iter().collect::<Vec<_>>());
        assert_eq!(lines, ["sizes, round 2: no time for a, b", "sizes, round 3: no time for a"]);
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
