//! `afpa pause` and `afpa resume`: the kill switch.
//!
//! The fast path is found in the kernel, and switched by one word that its programs read for every request. Its process
//! has no part in that: it may hang, or be gone.

use std::io;

use afpa_bpf::FoundFastPath;
use anyhow::bail;
use clap::Args;

/// `afpa pause` and `afpa resume`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Pause {
    /// Only the fast path of this port [default: all in this network namespace]
    #[arg(short, long, value_name = "PORT")]
    pub port: Option<u16>,
}

/// `afpa pause`.
///
/// # Errors
/// When there is no fast path, or it may not be touched.
pub fn pause(options: &Pause) -> anyhow::Result<()> {
    switch(options, true)
}

/// `afpa resume`.
///
/// # Errors
/// As [`pause`].
pub fn resume(options: &Pause) -> anyhow::Result<()> {
    switch(options, false)
}

fn switch(options: &Pause, paused: bool) -> anyhow::Result<()> {
    let mut all = found()?;
    all.retain(|found| options.port.is_none_or(|port| found.serves(port)));
    if all.is_empty() {
        bail!("no fast path is on the interfaces of this network namespace");
    }
    let mut text = String::new();
    for found in &all {
        // Pause before anything else: finding the owner takes longer.
        let done = found.set_paused(paused);
        text.push_str(&line(found, done, paused));
    }
    super::print(&text)?;
    if all.iter().any(|found| found.is_paused().is_none()) {
        bail!("a fast path is of another version of AFPA: use that version");
    }
    Ok(())
}

fn line(found: &FoundFastPath, done: bool, paused: bool) -> String {
    let ports = found.ports().unwrap_or_default();
    let ports = ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    let what = match (done, paused) {
        (false, _) => "of another version",
        (true, true) => "paused",
        (true, false) => "answers",
    };
    let whose = match found.process() {
        Some(process) => process.to_string(),
        None if found.is_alive() => "a process that cannot be seen from here".to_owned(),
        None => "a process that has ended".to_owned(),
    };
    format!("port {ports}: {what}, of {whose}\n")
}

/// The fast paths of this network namespace.
fn found() -> anyhow::Result<Vec<FoundFastPath>> {
    FoundFastPath::all().map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::PermissionDenied => "ask as root",
            _ => "the kernel must have tcx: Linux 6.6",
        };
        anyhow::Error::new(error).context(format!("interfaces cannot be looked at ({remedy})"))
    })
}

const EXAMPLES: &str = "\
Examples:
  afpa pause
  afpa resume
  ip netns exec web afpa pause --port 80

Run it as root, in the network namespace of the server. Connections go on: what the kernel answered on them is
translated, and the server answers everything new. A pause ends with `afpa resume`, or with the fast path.";
