//! The life of a server: started, waited for, ended with everything that it started.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use afpa_netlab::Namespace;
use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::ServerSetup;
use super::installed::Origin;

/// A server that runs. Dropping it ends it, like [`Running::stop`].
#[derive(Debug)]
pub struct Running<'a> {
    /// The namespace in which the server runs; `None`: that of the caller, perhaps beside other servers.
    namespace: Option<&'a Namespace>,
    /// In the order in which they were started.
    parts: Vec<Part>,
    configuration: Option<PathBuf>,
    farewell: Option<Launch>,
}

/// A program to be started.
#[derive(Clone, Debug)]
pub(super) struct Launch {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
}

/// One process of a server, with what it started itself.
#[derive(Debug)]
struct Part {
    child: Child,
    command: String,
    log: PathBuf,
}

/// How long a server may take until it accepts connections.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// How long a server may take to end when it is asked to.
const END_PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(10);
/// How much of a log is quoted when a server does not start.
const QUOTED: usize = 2000;

impl<'a> Running<'a> {
    /// The commands that run, pinning included, as a shell would take them.
    pub fn command(&self) -> String {
        let commands: Vec<&str> = self.parts.iter().map(|part| part.command.as_str()).collect();
        commands.join(" & ")
    }

    /// The configuration as it was filled in, for servers that have one.
    pub fn configuration(&self) -> Option<&Path> {
        self.configuration.as_deref()
    }

    /// Ids of the server's processes: its own, its children's, its origin's. In a namespace of its own these
    /// are all that live there.
    pub fn processes(&self) -> Vec<i32> {
        match self.namespace {
            Some(namespace) => namespace.processes().unwrap_or_default(),
            None => self.parts.iter().flat_map(|part| family(part.child.id())).collect(),
        }
    }

    /// Id of the process that was started last; the others, if any, serve this one.
    pub fn main_process(&self) -> Option<u32> {
        self.parts.last().map(|part| part.child.id())
    }

    /// Ends the server and everything it started.
    ///
    /// # Errors
    /// When one of its processes had ended by itself, with that process's output: the measurements since
    /// then were not of this server. When a process cannot be ended.
    pub fn stop(mut self) -> Result<()> {
        let alive = self.parts.iter_mut().try_for_each(Part::is_alive);
        self.end()?;
        alive
    }

    /// A server without processes.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self { namespace: None, parts: Vec::new(), configuration: None, farewell: None }
    }

    /// Nothing runs yet.
    pub(super) fn nothing(setup: &ServerSetup<'a>) -> Self {
        let namespace = setup.namespace;
        Self { namespace, parts: Vec::new(), configuration: None, farewell: None }
    }

    /// Remembers the configuration that what follows is started with.
    pub(super) fn with_configuration(mut self, path: PathBuf) -> Self {
        self.configuration = Some(path);
        self
    }

    /// Runs this, to its end, before the processes are ended.
    pub(super) fn with_farewell(mut self, launch: Launch) -> Self {
        self.farewell = Some(launch);
        self
    }

    /// Starts a program on the server's core, and waits until it accepts on `address`.
    ///
    /// # Errors
    /// When it does not.
    pub(super) fn and(
        mut self,
        setup: &ServerSetup<'_>,
        launch: Launch,
        to: SocketAddr,
    ) -> Result<Self> {
        self.spawn(setup, launch)?;
        self.wait_until("it accepts connections", START_PATIENCE, || accepts(setup, to))?;
        Ok(self)
    }

    /// Starts a program on the server's core, and waits until `ready` says so.
    ///
    /// # Errors
    /// When it ends before that, or `patience` does.
    pub(super) fn and_until(
        mut self,
        setup: &ServerSetup<'_>,
        launch: Launch,
        patience: Duration,
        ready: impl FnMut() -> bool,
    ) -> Result<Self> {
        self.spawn(setup, launch)?;
        self.wait_until("it is ready", patience, ready)?;
        Ok(self)
    }

    /// Starts a helper on the core of the server, which stays the [main process](Self::main_process), and waits
    /// until `ready` says so.
    ///
    /// # Errors
    /// When it ends before that, or `patience` does.
    pub(super) fn beside(
        mut self,
        setup: &ServerSetup<'_>,
        launch: Launch,
        patience: Duration,
        ready: impl FnMut() -> bool,
    ) -> Result<Self> {
        self.spawn(setup, launch)?;
        self.wait_until("its helper is ready", patience, ready)?;
        self.parts.rotate_right(1);
        Ok(self)
    }

    fn spawn(&mut self, setup: &ServerSetup<'_>, launch: Launch) -> Result<()> {
        let log = setup.folder.join(format!("output-{}.txt", self.parts.len()));
        let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = launch.pinned(setup.core, self.namespace.is_none());
        command.current_dir(setup.folder).stdin(Stdio::null()).stdout(file.try_clone()?);
        // Apache ends by a signal to its whole group, which must not be the lab's.
        command.stderr(file).process_group(0);
        // Forked by a thread inside, so that it is inside, too, and still sees the machine's /sys.
        let spawned = inside(self.namespace, || command.spawn())?;
        let child =
            spawned.with_context(|| format!("cannot start {}", launch.program.display()))?;
        self.parts.push(Part { child, command: launch.line(setup.core), log });
        Ok(())
    }

    fn wait_until(
        &mut self,
        what: &str,
        patience: Duration,
        mut ready: impl FnMut() -> bool,
    ) -> Result<()> {
        let deadline = Instant::now() + patience;
        while !ready() {
            self.parts.iter_mut().try_for_each(Part::is_alive)?;
            let log = self.parts.last().map(Part::said).unwrap_or_default();
            ensure!(Instant::now() < deadline, "not within {patience:?}: {what}\n{log}");
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Ends the last part first: a part that uses another one ends before it.
    fn end(&mut self) -> Result<()> {
        if let Some(farewell) = self.farewell.take() {
            let mut command = farewell.command();
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            // Processes that it could not end in good order are killed below.
            let _status = inside(self.namespace, || command.status())?;
        }
        for part in self.parts.iter_mut().rev() {
            part.ask_to_end();
        }
        if let Some(namespace) = self.namespace.filter(|_| !self.parts.is_empty()) {
            namespace.kill_processes()?;
        }
        for mut part in self.parts.drain(..) {
            // `Child` does not kill a process that has ended.
            part.child.kill()?;
            part.child.wait()?;
        }
        Ok(())
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("afpa-lab: cannot end a server: {error:#}");
        }
    }
}

impl Part {
    fn is_alive(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("ended by itself ({status}): {}\n{}", self.command, self.said()),
        }
    }

    fn said(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let from = text.len().saturating_sub(QUOTED);
        String::from_utf8_lossy(text.get(from..).unwrap_or_default()).trim().to_owned()
    }

    fn ask_to_end(&mut self) {
        // A process that ended by itself is no error here; one that does not obey is killed later.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let deadline = Instant::now() + END_PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(PAUSE);
        }
    }
}

impl Launch {
    pub(super) fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), arguments: Vec::new(), environment: Vec::new() }
    }

    /// A program of some origin.
    ///
    /// # Errors
    /// When it is missing.
    pub(super) fn of(origin: Origin, program: &str) -> Result<Self> {
        let mut words = origin.command(program)?.into_iter();
        let first = words.next().with_context(|| format!("no command starts {program}"))?;
        Ok(Self::new(first).args(words))
    }

    pub(super) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    pub(super) fn args<A: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = A>) -> Self {
        arguments.into_iter().fold(self, Self::arg)
    }

    pub(super) fn env(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name, value.as_ref().to_owned()));
        self
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).envs(self.environment.iter().cloned());
        command
    }

    /// With `tied` the kernel ends the process when the thread that started it is gone. A namespace's processes need no
    /// such tie: the next run ends them.
    fn pinned(&self, core: usize, tied: bool) -> Command {
        let mut command = Command::new(if tied { "setpriv" } else { "taskset" });
        if tied {
            command.args(["--pdeathsig", "TERM", "taskset"]);
        }
        command.arg("-c").arg(core.to_string()).arg(&self.program).args(&self.arguments);
        command.envs(self.environment.iter().cloned());
        command
    }

    /// As a shell would take it.
    fn line(&self, core: usize) -> String {
        let environment = self.environment.iter().map(|(name, value)| {
            let value = value.to_string_lossy();
            format!("{name}={value} ")
        });
        let environment: String = environment.collect();
        let words = self.arguments.iter().map(|word| format!(" {}", word.to_string_lossy()));
        let words: String = words.collect();
        format!("{environment}taskset -c {core} {}{words}", self.program.display())
    }
}

/// Whether a connection to the address can be opened in the server's namespace.
pub(super) fn accepts(setup: &ServerSetup<'_>, to: SocketAddr) -> bool {
    let connect = || TcpStream::connect_timeout(&to, Duration::from_secs(1)).is_ok();
    inside(setup.namespace, connect).unwrap_or(false)
}

/// Runs `work` on a thread inside the namespace, or here when there is none.
pub(super) fn inside<T: Send>(
    namespace: Option<&Namespace>,
    work: impl FnOnce() -> T + Send,
) -> Result<T> {
    match namespace {
        Some(namespace) => namespace.run(work),
        None => Ok(work()),
    }
}

/// A process, its children, and theirs: nginx's worker is a child of the process that was started.
fn family(process: u32) -> Vec<i32> {
    let mut found = vec![process as i32];
    let mut next = 0;
    while let Some(parent) = found.get(next) {
        let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        let children: Vec<i32> = lists
            .flat_map(|list| {
                list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>()
            })
            .collect();
        found.extend(children);
        next += 1;
    }
    found
}

#[cfg(test)]
mod tests;
