//! Ending an attachment, and cleaning up after one that was killed.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use afpa_bpf::{FastPath, RtxThread, Settings};
use anyhow::{Context as _, bail};

use crate::control;
use crate::place::Place;

/// What to end.
#[derive(Clone, Debug)]
pub struct DetachSettings {
    /// The attachment to this address; None: all of them.
    pub listen: Option<SocketAddr>,
    /// How long to wait for connections that need translation.
    pub wait: Duration,
    /// Break those that are left after that.
    pub force: bool,
    /// Folder of the control sockets.
    pub folder: PathBuf,
}

/// What was done, a line for each attachment.
///
/// Ends what runs, waits for connections whose numbers have drifted, and takes the programs off. Must
/// run in the network namespace of the attachment.
///
/// # Errors
/// When there is nothing to detach, or connections are left that would break.
pub fn detach(settings: &DetachSettings) -> anyhow::Result<String> {
    let places = match settings.listen {
        Some(listen) => vec![Place::new(&settings.folder, listen)],
        None => Place::all(&settings.folder),
    };
    let mut done = String::new();
    for place in places.iter().filter(|place| place.socket.exists() || place.kept.exists()) {
        let stopped = stop(place)?;
        let _stale = fs::remove_file(&place.socket);
        let cleaned = place.kept.exists() && clean(place, settings)?;
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

/// Longest time that an attachment takes to end.
const END: Duration = Duration::from_secs(15);

/// False: none was running.
fn stop(place: &Place) -> anyhow::Result<bool> {
    if !place.is_running() {
        return Ok(false);
    }
    control::stop(&place.socket).context("the running afpa attach does not answer")?;
    let deadline = Instant::now() + END;
    while place.is_running() {
        if Instant::now() > deadline {
            bail!("the running afpa attach does not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(true)
}

/// Takes over what was kept, waits until no connection needs it, and removes it.
fn clean(place: &Place, settings: &DetachSettings) -> anyhow::Result<bool> {
    let interfaces = kept_interfaces(&place.kept);
    let loaded =
        if interfaces.is_empty() { None } else { take_over(place, &interfaces).map(Arc::new) };
    if let Some(fast_path) = &loaded {
        let deadline = Instant::now() + settings.wait;
        let ours = Arc::clone(fast_path);
        // What cannot be sent again its clients wait for in vain; then their sockets end.
        let _tender = RtxThread::start(move || ours.service_timers(), |_| ())?;
        loop {
            fast_path.sweep(Duration::ZERO)?;
            let drifted = fast_path.translated_flows()?;
            if drifted == 0 || (settings.force && Instant::now() >= deadline) {
                break;
            }
            if Instant::now() >= deadline {
                bail!(
                    "{drifted} connections still need translation; wait, or break them with --force"
                );
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    } else if !settings.force && !interfaces.is_empty() {
        bail!("{} cannot be looked into; remove it with --force", place.kept.display());
    }
    for interface in interfaces {
        if let Some(fast_path) = &loaded {
            fast_path.detach(interface);
        }
    }
    match FastPath::forget(&place.kept) {
        // The process that has just ended was quicker.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        outcome => outcome.map(|()| true).context("what was kept cannot be removed"),
    }
}

fn take_over(place: &Place, interfaces: &[u32]) -> Option<FastPath> {
    let settings = Settings { keep_in: Some(place.kept.clone()), ..crate::life::sizes() };
    let fast_path = FastPath::load(settings).ok()?;
    fast_path.pause();
    for interface in interfaces {
        // One that is gone takes its connections along.
        let _gone = fast_path.attach(*interface);
    }
    Some(fast_path)
}

/// Interfaces with a link in the folder.
fn kept_interfaces(kept: &Path) -> Vec<u32> {
    let entries = fs::read_dir(kept).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.strip_prefix("ingress-")?.parse().ok()).collect()
}
