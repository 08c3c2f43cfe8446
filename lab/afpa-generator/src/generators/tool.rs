//! Load generators of others, run as processes.

use std::io::Read;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// The time that a tool may take beyond its own time limit.
const GRACE: Duration = Duration::from_secs(15);

/// Is there such a command?
pub(super) fn is_there(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}

/// The first line of the program's `--version`.
pub(super) fn version(program: &str) -> String {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    let text = output.map(|Output { stdout, .. }| String::from_utf8_lossy(&stdout).into_owned());
    let line = text.ok().and_then(|text| text.lines().next().map(str::to_owned));
    line.filter(|line| !line.is_empty()).unwrap_or_else(|| "unknown".into())
}

/// Runs a tool to its end, which comes after `lasts` or soon after. Returns its stdout. The process is
/// in the calling thread's namespace and on its core.
pub(super) fn run(command: &mut Command, lasts: Duration) -> Result<String> {
    let mut child = Ended(
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?,
    );
    let (stdout, stderr) = (child.0.stdout.take(), child.0.stderr.take());
    let (stdout, stderr) = (read_aside(stdout), read_aside(stderr));
    let deadline = Instant::now() + lasts + GRACE;
    let status = loop {
        if let Some(status) = child.0.try_wait()? {
            break status;
        }
        ensure!(Instant::now() < deadline, "{command:?} does not end");
        std::thread::sleep(Duration::from_millis(5));
    };
    let (stdout, stderr) = (stdout.join(), stderr.join());
    let (stdout, stderr) = (stdout.unwrap_or_default(), stderr.unwrap_or_default());
    if !status.success() {
        bail!("{command:?} ended with {status}: {} {}", stdout.trim(), stderr.trim());
    }
    Ok(stdout)
}

fn read_aside(from: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // After a read error the bytes before it are the output.
        if let Some(mut from) = from {
            let _ = from.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Ended when it is dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_heard_out_and_its_failure_is_told() {
        let mut shell = Command::new("sh");
        let text = run(shell.args(["-c", "echo seen; exit 0"]), Duration::ZERO).unwrap();
        assert_eq!(text, "seen\n");
        let mut shell = Command::new("sh");
        let error = run(shell.args(["-c", "echo why >&2; exit 3"]), Duration::ZERO).unwrap_err();
        assert!(error.to_string().contains("why"), "{error}");
        assert!(!is_there("no-such-program-anywhere"));
    }
}
