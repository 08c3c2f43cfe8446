//! Ending an attachment, and cleaning up after one that was killed.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use afpa_bpf::{FastPath, RtxThread, Settings};
use anyhow::{Context as _, bail};

use crate::control;
use crate::paths::AttachPaths;
use crate::settings::map_sizes;

/// What to end.
#[derive(Clone, Debug)]
pub struct DetachSettings {
    /// The attachment to this address; None: all of them.
    pub listen: Option<SocketAddr>,
    /// How long to wait for connections that need translation.
    pub wait: Duration,
    /// Break the connections that are left after that.
    pub force: bool,
    /// Folder of the control sockets.
    pub folder: PathBuf,
}

/// Ends running attachments, waits for connections whose sequence numbers are translated, and detaches the
/// programs. Returns what was done, a line for each attachment. Must run in the network namespace of the
/// attachment.
///
/// # Errors
/// When there is nothing to detach, or connections are left that would break.
pub fn detach(settings: &DetachSettings) -> anyhow::Result<String> {
    let all = match settings.listen {
        Some(listen) => vec![AttachPaths::new(&settings.folder, listen)],
        None => AttachPaths::all(&settings.folder),
    };
    let mut done = String::new();
    for paths in all.iter().filter(|paths| paths.socket.exists() || paths.pin_dir.exists()) {
        let stopped = stop(paths)?;
        let _stale = fs::remove_file(&paths.socket);
        let cleaned = paths.pin_dir.exists() && clean(paths, settings)?;
        done.push_str(match (stopped, cleaned) {
            (true, _) => "detached\n",
            (false, true) => "detached what a killed afpa attach had left\n",
            (false, false) => "removed the socket of an afpa attach that is gone\n",
        });
    }
    if done.is_empty() {
        bail!("nothing is attached");
    }
    Ok(done)
}

/// How long a running attachment may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(15);

/// Ends the running attachment. False: none was running.
fn stop(paths: &AttachPaths) -> anyhow::Result<bool> {
    if !paths.is_running() {
        return Ok(false);
    }
    control::stop(&paths.socket).context("the running afpa attach does not answer")?;
    let deadline = Instant::now() + END_TIMEOUT;
    while paths.is_running() {
        if Instant::now() > deadline {
            bail!("the running afpa attach does not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(true)
}

/// Takes over the pinned maps, waits until no connection needs them, and removes them.
fn clean(paths: &AttachPaths, settings: &DetachSettings) -> anyhow::Result<bool> {
    let interfaces = pinned_interfaces(&paths.pin_dir);
    let loaded =
        if interfaces.is_empty() { None } else { take_over(paths, &interfaces).map(Arc::new) };
    if let Some(fast_path) = &loaded {
        let deadline = Instant::now() + settings.wait;
        let ours = Arc::clone(fast_path);
        // Retransmits what these connections have lost. On an error their clients time out.
        let _tender = RtxThread::start(move || ours.service_timers(), |_| ())?;
        loop {
            fast_path.sweep(Duration::ZERO)?;
            let translated = fast_path.translated_flows()?;
            if translated == 0 || (settings.force && Instant::now() >= deadline) {
                break;
            }
            if Instant::now() >= deadline {
                bail!(
                    "{translated} connections still need translation; wait, or break them with --force"
                );
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    } else if !settings.force && !interfaces.is_empty() {
        bail!("{} cannot be read; remove it with --force", paths.pin_dir.display());
    }
    for interface in interfaces {
        if let Some(fast_path) = &loaded {
            fast_path.detach(interface);
        }
    }
    match FastPath::forget(&paths.pin_dir) {
        // The process that has just ended has removed it.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        outcome => outcome.map(|()| true).context("the pinned maps cannot be removed"),
    }
}

fn take_over(paths: &AttachPaths, interfaces: &[u32]) -> Option<FastPath> {
    let settings = Settings { keep_in: Some(paths.pin_dir.clone()), ..map_sizes() };
    let fast_path = FastPath::load(settings).ok()?;
    fast_path.pause();
    for interface in interfaces {
        // An interface that is gone has no connections any more.
        let _gone = fast_path.attach(*interface);
    }
    Some(fast_path)
}

/// Interfaces that have a pinned link in the directory.
fn pinned_interfaces(pin_dir: &Path) -> Vec<u32> {
    let entries = fs::read_dir(pin_dir).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.strip_prefix("ingress-")?.parse().ok()).collect()
}
