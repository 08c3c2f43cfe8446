//! Libraries that are loaded into a server (LD_PRELOAD).

use std::path::Path;
use std::process::Command;

/// Compiles `NAME.c` of the tests to `NAME.so` in a folder.
///
/// # Errors
/// Why this machine cannot.
pub(crate) fn build(name: &str, folder: &Path) -> Result<(), String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("{name}.c"));
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-O1", "-o"]);
    let output = command.arg(folder.join(format!("{name}.so"))).arg(source).output();
    let output = output.map_err(|error| format!("cc: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("cc: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}
