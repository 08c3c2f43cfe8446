//! A `perf` that obeys orders to begin and to end.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::process::{Pid, Signal, kill_process};

/// How long perf may take to obey an order.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(1);

/// A perf that runs.
pub(super) struct Perf {
    child: Child,
    control: File,
    answers: File,
}

impl Perf {
    /// Starts it with two pipes of orders and answers in `folder`.
    pub(super) fn start(mut command: Command, folder: &Path) -> Result<Self> {
        let (control, answers) = (folder.join("perf-control"), folder.join("perf-answers"));
        let pipes = [pipe(&control)?, pipe(&answers)?];
        let names = format!("fifo:{},{}", control.display(), answers.display());
        command.args(["--control", &names]);
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = quiet.spawn().context("cannot start perf")?;
        let [control, answers] = pipes;
        Ok(Self { child, control, answers })
    }

    /// Gives an order, and waits until perf has obeyed.
    pub(super) fn tell(&mut self, order: &str) -> Result<()> {
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
            if let Some(status) = self.child.try_wait()? {
                bail!("perf ended ({status}): {}", self.said()?.trim());
            }
            ensure!(Instant::now() < deadline, "perf does not {order}");
            std::thread::sleep(PAUSE);
        }
    }

    /// Ends it, and gives back what it printed.
    pub(super) fn end(&mut self) -> Result<String> {
        kill_process(Pid::from_child(&self.child), Signal::INT).context("perf is gone")?;
        let deadline = Instant::now() + PATIENCE;
        while self.child.try_wait()?.is_none() {
            ensure!(Instant::now() < deadline, "perf does not end");
            std::thread::sleep(PAUSE);
        }
        self.said()
    }

    /// Reads perf's output. It is far less than a pipe holds, so that perf never had to wait for a reader.
    fn said(&mut self) -> Result<String> {
        let mut text = String::new();
        let mut pipe = self.child.stderr.take().context("perf's output is gone")?;
        pipe.read_to_string(&mut text)?;
        Ok(text)
    }
}

impl Drop for Perf {
    fn drop(&mut self) {
        // Only after an error is perf still running.
        let _ = self.child.kill().and_then(|()| self.child.wait().map(drop));
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
