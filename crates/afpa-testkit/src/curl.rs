//! curl as a client that others wrote.

use std::{ffi::OsStr, process::Command};

/// The result of one run of curl.
#[derive(Debug)]
pub struct Answer {
    /// curl's exit status: 0 when it succeeded.
    pub exit: i32,
    /// Its standard output: with `--include` the heads, too.
    pub output: Vec<u8>,
    /// Its standard error.
    pub errors: String,
}

/// Runs curl with `arguments`, quietly and for at most ten seconds.
///
/// `None` when there is no curl on this machine: the test then says SKIP.
pub fn curl<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Option<Answer> {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--max-time", "10", "--noproxy", "*"]);
    let output = command.args(arguments).output().ok()?;
    Some(Answer {
        exit: output.status.code().unwrap_or(-1),
        output: output.stdout,
        errors: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
