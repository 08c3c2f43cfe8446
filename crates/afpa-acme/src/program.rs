//! The program that sets records in the DNS, because every provider has an interface of its own.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use crate::error::AcmeError;

/// A program that takes longer is ended.
const PATIENCE: Duration = Duration::from_secs(180);

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

    /// Runs `PROGRAM cleanup NAME VALUE`. A failure is only told, because the certificate does not depend on it.
    pub(crate) async fn remove(self) {
        if let Err(error) = self.run("cleanup").await {
            tracing::warn!("a record of the DNS may be left: {error}");
        }
    }

    async fn run(&self, verb: &'static str) -> Result<(), AcmeError> {
        let failed = |why: String| AcmeError::Program { program: self.program.clone(), verb, why };
        let mut command = Command::new(&self.program);
        command.args([verb, &self.name, &self.value]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let output = tokio::time::timeout(PATIENCE, command.output())
            .await
            .map_err(|_| failed(format!("it took longer than {} s", PATIENCE.as_secs())))?
            .map_err(|error| failed(error.to_string()))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or("it said nothing");
        Err(failed(format!("{}: {last}", output.status)))
    }
}
