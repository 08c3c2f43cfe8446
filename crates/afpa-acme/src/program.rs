//! The program that sets records in the DNS, because every provider has an interface of its own.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, Command};

use crate::error::AcmeError;

/// A program that takes longer is ended.
const PATIENCE: Duration = Duration::from_secs(180);

/// The most bytes that are kept of the program's output: those at its end.
const MOST_SAID: usize = 4096;

/// A record that a program has set.
#[derive(Debug)]
pub(crate) struct Record {
    program: PathBuf,
    name: String,
    value: String,
}

impl Record {
    /// Runs `PROGRAM present NAME VALUE`. It should end when the record can be seen by others.
    pub(crate) async fn set(
        program: &Path,
        name: String,
        value: String,
    ) -> Result<Self, AcmeError> {
        let record = Self { program: program.to_owned(), name, value };
        record.run("present").await?;
        Ok(record)
    }

    /// Runs `PROGRAM cleanup NAME VALUE`. A failure is only logged, because the certificate does not depend on it.
    pub(crate) async fn remove(self) {
        if let Err(error) = self.run("cleanup").await {
            tracing::warn!("a record of the DNS may be left, remove it by hand: {error}");
        }
    }

    async fn run(&self, verb: &'static str) -> Result<(), AcmeError> {
        let failed = |why: String| AcmeError::Program { program: self.program.clone(), verb, why };
        let mut command = Command::new(&self.program);
        command.args([verb, &self.name, &self.value]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // A group of its own, so that a timeout kills the program's children, too.
        command.kill_on_drop(true).process_group(0);
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let Ok(ended) = tokio::time::timeout(PATIENCE, end(&mut child)).await else {
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
            let _ = child.wait().await;
            return Err(failed(format!("it took longer than {} s", PATIENCE.as_secs())));
        };
        let (status, said) = ended.map_err(|error| failed(error.to_string()))?;
        if status.success() {
            return Ok(());
        }
        let last = said.trim_end().lines().last().unwrap_or("it said nothing");
        Err(failed(format!("{status}: {last}")))
    }
}

/// Waits for the program's end, and returns the output that was read until then. It does not wait for the end of the
/// pipe: a process that the program leaves running may keep it open.
async fn end(child: &mut Child) -> io::Result<(ExitStatus, String)> {
    let mut said = Vec::new();
    let mut pipe = child.stderr.take();
    let mut room = [0; 4096];
    let status = loop {
        tokio::select! {
            biased;
            read = next(&mut pipe, &mut room) => match read {
                0 => pipe = None,
                n => keep(&mut said, room.get(..n).unwrap_or_default()),
            },
            status = child.wait() => break status?,
        }
    };
    Ok((status, String::from_utf8_lossy(&said).into_owned()))
}

/// Reads more output and returns its length; 0: the pipe has ended. Without a pipe it waits for ever.
async fn next(pipe: &mut Option<ChildStderr>, room: &mut [u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.read(room).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

/// Appends output, and keeps only its end.
fn keep(said: &mut Vec<u8>, more: &[u8]) {
    said.extend_from_slice(more);
    said.drain(..said.len().saturating_sub(MOST_SAID));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    fn run(script: &str) -> Result<(), AcmeError> {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        fs::write(&program, format!("#!/bin/sh\ncd {}\n{script}\n", folder.path().display()))
            .unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o700)).unwrap();
        let record = Record { program, name: "n".to_owned(), value: "v".to_owned() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(record.run("present"))
    }

    #[test]
    fn what_it_leaves_running_is_not_waited_for() {
        // It ends with the folder.
        run("touch here; (while test -e here; do sleep 0.05; done) &").unwrap();
        let error =
            run("touch here; (while test -e here; do sleep 0.05; done) & echo no >&2; exit 3");
        let error = error.unwrap_err().to_string();
        assert!(error.ends_with("exit status: 3: no"), "{error}");
    }

    #[test]
    fn of_what_it_says_the_end_is_kept() {
        let error = run("head -c 3000000 /dev/zero >&2; echo >&2; echo the end >&2; exit 1");
        assert!(error.unwrap_err().to_string().ends_with(": the end"));
        let mut said = Vec::new();
        for _ in 0..100 {
            keep(&mut said, &[b'a'; 4096]);
            assert!(said.len() <= MOST_SAID);
        }
    }
}
