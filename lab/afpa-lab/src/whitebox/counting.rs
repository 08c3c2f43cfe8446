//! `perf stat`, told when to begin and when to end.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::process::{Pid, Signal, kill_process};

use super::{Category, Counted};

/// How long perf may take to obey an order.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(1);

/// Counts on one core, between [`Counting::begin`] and [`Counting::pause`].
pub struct Counting {
    perf: Child,
    control: File,
    answers: File,
}

impl Counting {
    /// Starts perf, which counts nothing yet; `folder` is for its two pipes.
    ///
    /// # Errors
    ///
    /// Without perf, or when the pipes cannot be made.
    pub fn prepare(core: usize, folder: &Path) -> Result<Self> {
        let (control, answers) = (folder.join("perf-control"), folder.join("perf-answers"));
        let pipes = [pipe(&control)?, pipe(&answers)?];
        let mut command = Command::new("perf");
        command.args(["stat", "-x", ",", "-D", "-1", "-C", &core.to_string(), "--control"]);
        command.arg(format!("fifo:{},{}", control.display(), answers.display()));
        for category in Category::ALL {
            command.args(["-e", "raw_syscalls:sys_enter"]);
            if category != Category::Other {
                let ids: Vec<_> = category.calls().iter().map(|id| format!("id=={id}")).collect();
                command.args(["--filter", &ids.join("||")]);
            }
        }
        command.args(["-e", "context-switches", "-e", "instructions"]);
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let perf = quiet.spawn().context("cannot start perf")?;
        let [control, answers] = pipes;
        Ok(Self { perf, control, answers })
    }

    /// Counts from now on.
    ///
    /// # Errors
    ///
    /// When perf has ended or does not obey.
    pub fn begin(&mut self) -> Result<()> {
        self.tell("enable")
    }

    /// Counts no more.
    ///
    /// # Errors
    ///
    /// When perf has ended or does not obey.
    pub fn pause(&mut self) -> Result<()> {
        self.tell("disable")
    }

    /// Ends perf and gives back what it counted.
    ///
    /// # Errors
    ///
    /// When perf fails, or prints what it never printed.
    pub fn end(mut self) -> Result<Counted> {
        kill_process(Pid::from_child(&self.perf), Signal::INT).context("perf is gone")?;
        let deadline = Instant::now() + PATIENCE;
        while self.perf.try_wait()?.is_none() {
            ensure!(Instant::now() < deadline, "perf does not end");
            std::thread::sleep(PAUSE);
        }
        Counted::parse(&self.said()?)
    }

    /// Reads perf's output. It is far less than a pipe holds, so that perf never had to wait for a reader.
    fn said(&mut self) -> Result<String> {
        let mut text = String::new();
        let mut pipe = self.perf.stderr.take().context("perf's output is gone")?;
        pipe.read_to_string(&mut text)?;
        Ok(text)
    }

    fn tell(&mut self, order: &str) -> Result<()> {
        self.control.write_all(format!("{order}\n").as_bytes())?;
        let deadline = Instant::now() + PATIENCE;
        let mut answer = [0; 64];
        loop {
            match self.answers.read(&mut answer) {
                Ok(read) if answer[..read].starts_with(b"ack") => return Ok(()),
                Ok(_) => bail!("perf answers something else to {order}"),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error).context("perf's answer"),
            }
            if let Some(status) = self.perf.try_wait()? {
                bail!("perf ended ({status}): {}", self.said()?.trim());
            }
            ensure!(Instant::now() < deadline, "perf does not {order}");
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        // Only after an error is perf still running.
        let _ = self.perf.kill().and_then(|()| self.perf.wait().map(drop));
    }
}

/// A fresh named pipe, open for both ways, so that opening does not wait for the other end.
fn pipe(path: &Path) -> Result<File> {
    // The pipe of an earlier turn may be there.
    let _ = std::fs::remove_file(path);
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).context("cannot make a pipe")?;
    let flags = OFlags::NONBLOCK.bits() as i32;
    let opened = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
    opened.with_context(|| format!("{}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perf_counts_between_begin_and_pause() {
        if let Some(reason) = crate::whitebox::missing() {
            eprintln!("SKIP: {reason}");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut counting = Counting::prepare(0, folder.path()).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        let begun = Instant::now();
        counting.begin().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        counting.pause().unwrap();
        let longest = begun.elapsed().as_secs_f64() + 0.1;
        std::thread::sleep(Duration::from_millis(300));
        let counted = counting.end().unwrap();
        assert!((0.09..longest).contains(&counted.seconds), "{counted:?}, {longest}");
    }
}
