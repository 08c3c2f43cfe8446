//! The conditions of a start, and the programs: the host, the port, a second client of the server, the root and the folder.

use std::sync::Arc;
use std::time::Duration;

use afpa_bpf::preflight::Watch;
use afpa_bpf::{ClaimRefused, FastPath, Interface, PinDir, PinDirRefused, Settings, interfaces};
use afpa_cache::root::{DocumentRoot, Entry};
use anyhow::{Context as _, bail};

use crate::Scope;
use crate::say::say;
use crate::settings::{AttachSettings, map_sizes};
use crate::stranger::{self, Stranger};

/// The interfaces, without those of strangers: no client comes by them.
pub(super) fn interfaces_of_others() -> std::io::Result<Vec<Interface>> {
    let mut all = interfaces()?;
    all.retain(|interface| !interface.name.starts_with(stranger::INTERFACE));
    Ok(all)
}

/// The second client that asks the server, besides this machine. None where only this machine can reach the server.
pub(super) fn stranger_of(settings: &AttachSettings) -> anyhow::Result<Option<Arc<Stranger>>> {
    if settings.listen.iter().all(|listen| listen.ip().is_loopback()) {
        return Ok(None);
    }
    if settings.ask_only_locally {
        say("asking from this machine only: what it may see will be sent to everybody");
        return Ok(None);
    }
    let stranger = Stranger::make(settings.port()).context(
        "the server cannot be asked as a stranger, so nothing would be answered; \
         --ask-only-locally takes what this machine is told for what everybody is told",
    )?;
    Ok(Some(Arc::new(stranger)))
}

/// The error for a port that another fast path has, with the remedy.
pub(super) fn taken(refused: ClaimRefused) -> anyhow::Error {
    let remedy = refused.remedy();
    anyhow::Error::new(refused).context(format!("the port cannot be accelerated ({remedy})"))
}

/// Looks at the host, and says what limits the fast path there.
pub(super) fn preflight(settings: &AttachSettings) -> anyhow::Result<Watch> {
    let watch = Watch::begin(&settings.listen, false);
    if let Some(refusal) = watch.refusal() {
        bail!("the kernel cannot answer here: {refusal}");
    }
    watch.limits().for_each(|finding| say(&format!("! {finding}")));
    Ok(watch)
}

/// Nothing could be compared with files that the user of the process may not read.
pub(super) fn check_readable(root: &DocumentRoot, settings: &AttachSettings) -> anyhow::Result<()> {
    let listed = match root.resolve(b"/") {
        Ok(Entry::Directory(folder)) => folder.list(true, 0).map(|_| ()),
        _ => Err(std::io::ErrorKind::PermissionDenied.into()),
    };
    match listed {
        // There is more to list than nothing.
        Err(error) if error.kind() != std::io::ErrorKind::FileTooLarge => {
            let root = settings.root.display();
            bail!("{root} may not be read: change its permissions, or choose another --user")
        }
        _ => Ok(()),
    }
}

/// The folder for the objects that connections need when this process has ended. A folder of an earlier process stays
/// if the start fails.
pub(super) fn open_pin_dir(settings: &AttachSettings) -> Option<PinDir> {
    let name = PinDir::name_of_attach(settings.port()).map_err(PinDirRefused::from);
    match name.and_then(|name| PinDir::open(name, settings.owner)) {
        Ok(mut pin_dir) => {
            pin_dir.leave(pin_dir.was_inherited());
            Some(pin_dir)
        }
        Err(refused) => {
            say(&format!("connections cannot survive this process: {refused}"));
            None
        }
    }
}

pub(super) fn load(
    settings: &AttachSettings,
    pin_dir: Option<&PinDir>,
) -> anyhow::Result<FastPath> {
    let longest = settings.scope.longest;
    let several_segments = longest > Scope::ONE_SEGMENT;
    let defaults = map_sizes();
    let fast_path = FastPath::load(Settings {
        refresh: settings.server_timeout / 2,
        bypass_after: settings.bypass_after,
        bypass_time: match settings.keeps.is_empty() {
            true => defaults.bypass_time,
            false => KEPT_BYPASS_TIME,
        },
        firewall_interval: settings.firewall_interval,
        socketless: settings.socketless,
        admission: settings.admission,
        socketless_idle: settings.server_timeout,
        keep_in: pin_dir.map(PinDir::path),
        answer_max: u32::try_from(settings.answer_max).unwrap_or(u32::MAX),
        last_answer_max: u32::try_from(longest).unwrap_or(u32::MAX),
        pages: if several_segments { PAGES } else { 0 },
        transfers: if several_segments { TRANSFERS } else { 1 },
        ..defaults
    });
    fast_path.context("the fast path cannot be had")
}

/// Longer than usual: a connection's targets must be learnt and asked for before the connection is bypassed.
const KEPT_BYPASS_TIME: Duration = Duration::from_secs(10);

/// For answers of several segments: an eighth has its memory from the start on, the others take 8 KiB each while they are used.
const PAGES: u32 = 4096;
const TRANSFERS: u32 = 4096;
