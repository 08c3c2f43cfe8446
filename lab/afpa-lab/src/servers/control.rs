//! Statistics of a running `afpa serve` or `afpa attach`, from its control socket.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(5);

/// All statistics; `None` when no process listens there, or when it stops meanwhile.
pub(crate) fn statistics(socket: &Path) -> Option<Value> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(b"GET /stats HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (_, body) = text.split_once("\r\n\r\n")?;
    serde_json::from_str(body).ok()
}

/// Requests that the kernel has answered so far. `afpa serve` and `afpa attach` each have a name for it.
pub(crate) fn kernel_answers(socket: &Path) -> u64 {
    let told = statistics(socket).unwrap_or_default();
    let answers = &told["fast_path"]["answers"];
    answers.as_u64().or_else(|| told["answered"].as_u64()).unwrap_or(0)
}

/// Connections in the kernel's table, counted as they come and go.
pub(crate) fn open_flows(socket: &Path) -> u64 {
    let told = statistics(socket).unwrap_or_default();
    let packets = &told["fast_path"]["packets"];
    let count = |name: &str| packets[name].as_u64().unwrap_or(0);
    count("flow_opened").saturating_sub(count("flow_closed"))
}
