//! Ending an attachment, and cleaning up after one that was killed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use afpa_bpf::{FastPath, FoundFastPath, PinDir, Process, RtxThread, Settings};
use anyhow::{Context as _, bail};

use crate::control;
use crate::paths::AttachSocket;
use crate::settings::map_sizes;

/// The attachments to end, and how.
#[derive(Clone, Debug)]
pub struct DetachSettings {
    /// The attachment to this port; None: all of them.
    pub port: Option<u16>,
    /// How long to wait for connections that need translation.
    pub wait: Duration,
    /// Break the connections that are left after that.
    pub force: bool,
    /// Folders of control sockets.
    pub folders: Vec<PathBuf>,
}

/// Ends running attachments, waits for connections whose sequence numbers are translated, and detaches the programs.
/// Programs that a killed process left on the interfaces are found there, under any name. Returns a line for each
/// attachment. Must run in the network namespace of the attachment.
///
/// # Errors
/// When there is nothing to detach, or connections are left that would break.
pub fn detach(settings: &DetachSettings) -> anyhow::Result<String> {
    let mut done = String::new();
    let mut sockets = AttachSocket::all(&settings.folders);
    sockets.retain(|socket| settings.port.is_none_or(|port| port == socket.port));
    for socket in sockets {
        let stopped = stop(&socket)?;
        socket.remove();
        done.push_str(match stopped {
            true => "detached\n",
            false => "removed the socket of an afpa attach that is gone\n",
        });
    }
    for found in left_behind(settings, done.is_empty())? {
        clean(&found, settings)?;
        let stopped = done.starts_with("detached");
        done.push_str(if stopped { "" } else { "detached what a killed afpa had left\n" });
    }
    for folder in PinDir::of_attach().unwrap_or_default() {
        // Its interfaces are gone, and its connections with them; or it is of another port.
        let Ok(mut pin_dir) = PinDir::adopt(&folder) else { continue };
        let in_use = is_in_use(&folder);
        pin_dir.leave(in_use);
        done.push_str(if in_use { "" } else { "removed what a killed afpa had left\n" });
    }
    if done.is_empty() {
        bail!(
            "nothing is attached: no afpa attach runs here, and none has left programs on an interface"
        );
    }
    Ok(done)
}

/// How long a running attachment may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(15);

/// Ends the running attachment. False: none was running.
fn stop(socket: &AttachSocket) -> anyhow::Result<bool> {
    if !socket.is_running() {
        return Ok(false);
    }
    control::stop(&socket.path)
        .context("the running afpa attach does not answer: end its process, and detach again")?;
    let deadline = Instant::now() + END_TIMEOUT;
    while socket.is_running() {
        if Instant::now() > deadline {
            bail!("the running afpa attach does not end: end its process, and detach again");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(true)
}

/// Fast paths that no process drives any more, once the attachments that were stopped are gone.
fn left_behind(
    settings: &DetachSettings,
    nothing_done: bool,
) -> anyhow::Result<Vec<FoundFastPath>> {
    let deadline = Instant::now() + END_TIMEOUT;
    loop {
        let mut all = FoundFastPath::all().context("the interfaces cannot be looked at")?;
        all.retain(|found| settings.port.is_none_or(|port| found.serves(port)));
        let (alive, dead): (Vec<_>, Vec<_>) = all.into_iter().partition(FoundFastPath::is_alive);
        // None: the kernel has not noticed yet that the process has ended.
        let processes: Vec<_> = alive.iter().map(FoundFastPath::process).collect();
        let is_ending = |process: &Option<Process>| process.as_ref().is_none_or(Process::is_attach);
        if !processes.iter().any(is_ending) {
            let other = processes.into_iter().flatten().next();
            return match other.filter(|_| nothing_done && dead.is_empty()) {
                Some(other) => bail!("the fast path there is that of {other}: end that process"),
                None => Ok(dead),
            };
        }
        if Instant::now() > deadline {
            bail!("the running afpa attach does not end: end its process, and detach again");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until no connection needs a fast path, and removes it.
fn clean(found: &FoundFastPath, settings: &DetachSettings) -> anyhow::Result<()> {
    let deadline = Instant::now() + settings.wait;
    // Take over the pinned maps, so that segments which connections lose are retransmitted. Otherwise their clients
    // time out.
    let mut pin_dir = found.kept_in().and_then(|folder| PinDir::adopt(&folder).ok());
    let loaded = pin_dir.as_ref().and_then(take_over).map(Arc::new);
    let ours = loaded.clone();
    let _tender =
        ours.map(|ours| RtxThread::start(move || ours.rtx.service_timers(), |_| ())).transpose()?;
    loop {
        let needed = match &loaded {
            Some(fast_path) => {
                fast_path.sweep(Duration::ZERO)?;
                fast_path.flows.translated_flows()?
            }
            None => found.needed_by()?,
        };
        if needed == 0 || (settings.force && Instant::now() >= deadline) {
            break;
        }
        if Instant::now() >= deadline {
            pin_dir.iter_mut().for_each(|pin_dir| pin_dir.leave(true));
            bail!("{needed} connections still need translation; wait, or break them with --force");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    found.remove().context("the programs cannot be detached")
}

fn take_over(pin_dir: &PinDir) -> Option<FastPath> {
    let settings = Settings { keep_in: Some(pin_dir.path()), ..map_sizes() };
    let fast_path = FastPath::load(settings).ok()?;
    fast_path.clock.pause();
    for interface in pin_dir.interfaces() {
        // An interface that is gone has no connections any more.
        let _gone = fast_path.interfaces.attach(interface);
    }
    Some(fast_path)
}

/// Whether the kernel has a fast path whose maps are in this folder.
fn is_in_use(folder: &std::path::Path) -> bool {
    let all = FoundFastPath::all().unwrap_or_default();
    all.iter().any(|found| found.kept_in().as_deref() == Some(folder))
}
