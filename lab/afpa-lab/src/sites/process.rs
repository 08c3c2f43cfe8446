//! A server as a process: its start, what it and its children hold, a reload, its end.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::settings::{PATIENCE, Server, Settings};
use crate::memory::{self, kilobytes};

pub(super) struct Process {
    server: Server,
    child: Child,
    log: PathBuf,
}

/// Resources that a server and its children hold.
pub(super) struct Held {
    /// Bytes; memory that several processes share counts once.
    pub(super) memory: u64,
    /// Bytes; memory that several processes share counts for each.
    pub(super) resident: u64,
    pub(super) threads: usize,
    pub(super) descriptors: usize,
    pub(super) instances: usize,
    pub(super) watches: usize,
}

impl Process {
    pub(super) fn start(
        server: Server,
        settings: &Settings,
        configuration: &Path,
        work: &Path,
    ) -> Result<Self> {
        let log = work.join(format!("{}.out", server.name()));
        let (program, arguments) = match server {
            Server::Afpa => (&settings.afpa, ["serve", "--config"].as_slice()),
            Server::Nginx => (&settings.nginx, ["-c"].as_slice()),
        };
        let child = Command::new(program)
            .args(arguments)
            .arg(configuration)
            .stdin(Stdio::null())
            .stdout(File::create(&log)?)
            .stderr(File::options().append(true).open(&log)?)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { server, child, log })
    }

    /// Waits for something that the server does.
    pub(super) fn until(&mut self, what: &str, mut is_so: impl FnMut() -> bool) -> Result<()> {
        let began = Instant::now();
        while !is_so() {
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended while {what} was waited for ({status}): {}", self.said());
            }
            ensure!(began.elapsed() < PATIENCE, "{what} does not come: {}", self.said());
            sleep(STEP);
        }
        Ok(())
    }

    /// Waits until the server's resources do not change any more: roots are watched in the background.
    pub(super) fn settle(&mut self) -> Result<()> {
        let mut last = (0, 0);
        for _ in 0..40 {
            sleep(SETTLE);
            let held = self.held()?;
            let now = (held.watches, held.threads);
            if now == last {
                return Ok(());
            }
            last = now;
        }
        Ok(())
    }

    pub(super) fn held(&self) -> Result<Held> {
        let mut held =
            Held { memory: 0, resident: 0, threads: 0, descriptors: 0, instances: 0, watches: 0 };
        for process in self.processes() {
            let folder = PathBuf::from(format!("/proc/{process}"));
            held.memory += memory::of(process.cast_signed())?;
            let status = fs::read_to_string(folder.join("status"))?;
            held.resident += kilobytes(&status, "VmRSS:") * 1024;
            held.threads += fs::read_dir(folder.join("task"))?.count();
            for descriptor in fs::read_dir(folder.join("fd"))?.flatten() {
                held.descriptors += 1;
                let target = fs::read_link(descriptor.path()).unwrap_or_default();
                if target.to_string_lossy().contains("inotify") {
                    held.instances += 1;
                    let info = folder.join("fdinfo").join(descriptor.file_name());
                    let info = fs::read_to_string(info).unwrap_or_default();
                    held.watches += info.matches("inotify wd:").count();
                }
            }
        }
        Ok(held)
    }

    /// Waits until the new configuration is in use and the old one is not. Returns the time.
    pub(super) fn reload(&mut self) -> Result<Duration> {
        let began = Instant::now();
        let before: BTreeSet<u32> = self.processes().into_iter().collect();
        let pid = self.child.id();
        self.signal(Signal::SIGHUP)?;
        let (server, log) = (self.server, self.log.clone());
        self.until("the reload", || match server {
            Server::Afpa => fs::read_to_string(&log).is_ok_and(|text| text.contains("reloaded")),
            Server::Nginx => {
                let now: BTreeSet<u32> = family(pid).into_iter().collect();
                now.len() > 1 && now.intersection(&before).count() == 1
            }
        })?;
        Ok(began.elapsed())
    }

    pub(super) fn stop(mut self) -> Result<Duration> {
        let began = Instant::now();
        self.signal(Signal::SIGTERM)?;
        while self.child.try_wait()?.is_none() {
            ensure!(began.elapsed() < PATIENCE, "it does not end");
            sleep(STEP);
        }
        Ok(began.elapsed())
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill(Pid::from_raw(self.child.id().cast_signed()), signal)?)
    }

    fn processes(&self) -> Vec<u32> {
        family(self.child.id())
    }

    fn said(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().take(5).collect::<Vec<_>>().join(" / ")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.signal(Signal::SIGTERM);
            sleep(SETTLE);
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// A process and all below it.
fn family(process: u32) -> Vec<u32> {
    let mut all = vec![process];
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    for child in children.unwrap_or_default().split_whitespace().filter_map(|id| id.parse().ok()) {
        all.extend(family(child));
    }
    all
}

const STEP: Duration = Duration::from_millis(2);
const SETTLE: Duration = Duration::from_millis(300);
