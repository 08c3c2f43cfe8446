//! System calls of a process, counted or delayed by strace.

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    ops::Deref,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::server::Server;

/// Number of calls by name.
#[derive(Debug)]
pub struct Counts {
    calls: BTreeMap<String, u64>,
    /// For how long they were counted.
    time: Duration,
}

impl Counts {
    /// Those of a log of strace, taken in no time.
    pub(crate) fn of(log: &str) -> Self {
        Self { calls: count_calls(log), time: Duration::ZERO }
    }

    /// No fewer than a server makes in this time whether it is asked or not: the ticks of its clock. A busy machine may take
    /// many times as long for the same requests as an idle one.
    pub fn made_by_time(&self) -> u64 {
        self.time.as_millis() as u64 / 10
    }
}

impl Deref for Counts {
    type Target = BTreeMap<String, u64>;

    fn deref(&self) -> &Self::Target {
        &self.calls
    }
}

/// strace attached to all threads of a process.
#[derive(Debug)]
pub struct Strace {
    child: Child,
    folder: TempDir,
    begun: Instant,
}

impl Strace {
    /// Whether programs can be started under strace.
    ///
    /// # Errors
    /// Why this machine does not allow it: the test then says SKIP.
    pub fn can_start() -> Result<(), String> {
        let run = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
        let run = run.map_err(|error| format!("strace: {error}"))?;
        match run.status.success() {
            true => Ok(()),
            false => Err(format!("strace: {}", String::from_utf8_lossy(&run.stderr).trim())),
        }
    }

    /// Attaches to a server as soon as all of its threads work.
    ///
    /// # Errors
    /// As [`attach`](Self::attach).
    #[track_caller]
    pub fn of(server: &Server) -> Result<Self, String> {
        server.settle();
        Self::attach(server.pid())
    }

    /// Attaches to `pid` and waits until every thread is being traced.
    ///
    /// # Errors
    /// Why this machine does not allow it: the test then says SKIP.
    pub fn attach(pid: u32) -> Result<Self, String> {
        Self::with(pid, &[])
    }

    /// Attaches to `pid`, and has each of its threads begin so much later than it would: on a busy machine a new
    /// thread may wait before it runs. A thread begins with `prctl(2)`, by which it takes its name.
    ///
    /// # Errors
    /// Why this machine does not allow it: the test then says SKIP.
    pub fn delaying_threads(pid: u32, by: Duration) -> Result<Self, String> {
        let delay = format!("inject=prctl:delay_enter={}", by.as_micros());
        Self::with(pid, &["-e", "trace=prctl", "-e", &delay])
    }

    fn with(pid: u32, arguments: &[&str]) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let errors = File::create(folder.path().join("errors")).map_err(|e| e.to_string())?;
        let mut command = Command::new("strace");
        command.arg("-f").args(arguments).arg("-o").arg(folder.path().join("calls"));
        command.arg("-p").arg(pid.to_string()).stdin(Stdio::null()).stderr(errors);
        let child = command.spawn().map_err(|error| format!("strace: {error}"))?;
        let mut strace = Self { child, folder, begun: Instant::now() };
        strace.wait_until_attached(pid)?;
        Ok(strace)
    }

    /// Detaches and gives the calls begun while attached.
    ///
    /// # Panics
    /// When strace does not end.
    pub fn counts(mut self) -> Counts {
        self.stop();
        let log = std::fs::read(self.folder.path().join("calls")).unwrap_or_default();
        let time = self.begun.elapsed();
        Counts { calls: count_calls(&String::from_utf8_lossy(&log)), time }
    }

    /// Detaches and gives the names of the calls begun while attached, in their order.
    ///
    /// # Panics
    /// When strace does not end.
    pub fn names(mut self) -> Vec<String> {
        self.stop();
        let log = std::fs::read(self.folder.path().join("calls")).unwrap_or_default();
        String::from_utf8_lossy(&log).lines().filter_map(call_of).map(str::to_owned).collect()
    }

    /// Detaches and gives the lines of the calls begun while attached, in their order.
    ///
    /// # Panics
    /// When strace does not end.
    pub fn lines(mut self) -> Vec<String> {
        self.stop();
        let log = std::fs::read(self.folder.path().join("calls")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        log.lines().filter(|line| call_of(line).is_some()).map(str::to_owned).collect()
    }

    fn wait_until_attached(&mut self, pid: u32) -> Result<(), String> {
        let threads = crate::proc::Process(pid).threads().map_err(|error| error.to_string())?;
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(20) {
            let said = std::fs::read_to_string(self.folder.path().join("errors"));
            let said = said.unwrap_or_default();
            // "Process 1 attached" or, for several, "Process 1 attached with 3 threads".
            if said.matches(" attached").count() >= threads || said.contains(" attached with ") {
                return Ok(());
            }
            if let Ok(Some(_)) = self.child.try_wait() {
                return Err(format!("strace: {}", said.trim()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err("strace did not attach within 5 s".to_owned())
    }

    fn stop(&mut self) {
        if let Ok(None) = self.child.try_wait()
            && let Some(pid) = Pid::from_raw(self.child.id().cast_signed())
        {
            // strace detaches from its processes when it is interrupted.
            let _: io::Result<()> = kill_process(pid, Signal::INT).map_err(Into::into);
        }
        self.child.wait().expect("strace ends");
    }
}

impl Drop for Strace {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Counts the lines that begin a call; lines that resume an interrupted call do not count again.
fn count_calls(log: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for name in log.lines().filter_map(call_of) {
        *counts.entry(name.to_owned()).or_default() += 1;
    }
    counts
}

/// The name of the call that a line begins.
fn call_of(line: &str) -> Option<&str> {
    // "<thread> name(arguments..."
    let call = line.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    let (name, _) = call.split_once('(')?;
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_').then_some(name)
}

#[cfg(test)]
mod tests {
    use super::count_calls;

    #[test]
    fn a_call_in_two_lines_counts_once() {
        let log = "12 read(3,  <unfinished ...>\n13 write(4, \"x\", 1) = 1\n\
                   12 <... read resumed>\"y\", 1) = 1\n12 read(3, \"\", 9) = 0\n\
                   13 --- SIGUSR1 {si_signo=SIGUSR1} ---\n13 +++ exited with 0 +++\n";
        let counts = count_calls(log);
        assert_eq!(counts.get("read"), Some(&2));
        assert_eq!(counts.get("write"), Some(&1));
        assert_eq!(counts.len(), 2);
    }
}
