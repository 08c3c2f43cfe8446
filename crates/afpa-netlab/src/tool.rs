//! Running the system's own network tools, with their words in the error.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Runs `program` with `arguments` and gives back what it wrote.
///
/// # Errors
///
/// When it cannot be started, or ends with another status than 0; the message holds its stderr.
pub(crate) fn run<A: AsRef<OsStr>>(program: &str, arguments: &[A]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(arguments);
    finish(&mut command)
}

/// As [`run`], for words that contain no blank: `ip("link show lo")`.
pub(crate) fn ip(words: &str) -> Result<String> {
    run("ip", &words.split_whitespace().collect::<Vec<_>>())
}

/// Runs a command that was prepared elsewhere and gives back what it wrote.
pub(crate) fn finish(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?}: {}: {}", output.status, words.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
