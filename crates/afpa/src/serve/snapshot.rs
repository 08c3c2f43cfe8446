//! The snapshot of the shared cache in the life of a server: that of the process before is read after the first
//! requests, and this process's own is written when nothing can change any more.

mod file;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use afpa_config::SharedCache;
use afpa_framework::{Now, clock};
use afpa_http::caching::snapshot::Clocks;
use afpa_shared_cache::{Present, Responses};
use rustix::process::nice;

use crate::privileges::Identity;
use file::{Left, Marked, Place};

/// Its file, made ready while the process had all of its privileges; `None`: there will be none.
#[derive(Debug)]
pub(super) struct PreparedSnapshot(Option<(Place, usize)>);

/// Its file in the life of a server.
#[derive(Debug)]
pub(super) struct Snapshot {
    file: Option<(Marked, usize)>,
    reading: Option<JoinHandle<()>>,
}

/// The snapshot of the process before, and the moment of the start.
#[derive(Debug)]
pub(super) struct Found(Option<(Left, Present)>);

impl PreparedSnapshot {
    /// A failure is only a warning, because the cache works without it.
    pub(super) fn new(settings: &SharedCache, owner: Option<&Identity>) -> Self {
        let Some(path) = &settings.snapshot else { return Self(None) };
        match Place::prepare(path, settings.snapshot_limit, owner) {
            Ok(place) => Self(Some((place, settings.snapshot_limit))),
            Err(error) => {
                tracing::warn!("no snapshot of the shared cache: {error:#}");
                Self(None)
            }
        }
    }

    /// Takes the snapshot of the process before. Must be called by the user that serves, before anything is served:
    /// answers that are purged later are not taken over.
    pub(super) fn take(self, responses: &Responses) -> (Snapshot, Found) {
        let none = || (Snapshot { file: None, reading: None }, Found(None));
        let Some((place, limit)) = self.0 else { return none() };
        let (clocks, now) = present();
        let since = responses.cache().moment();
        match place.take() {
            Ok((marked, left)) => {
                let file = Some((marked, limit));
                let found = Found(Some((left, Present { clocks, now, since })));
                (Snapshot { file, reading: None }, found)
            }
            Err(error) => {
                tracing::warn!("no snapshot of the shared cache: {error:#}");
                none()
            }
        }
    }
}

impl Snapshot {
    /// Takes over the answers of the snapshot after `first`, in a thread of the lowest priority. Logs how many these are,
    /// or why there are none.
    pub(super) fn read(
        &mut self,
        found: Found,
        responses: &Arc<Responses>,
        first: impl FnOnce() + Send + 'static,
    ) {
        let Some((left, present)) = found.0 else { return };
        let (mut file, len) = match left {
            Left::Snapshot(file, len) => (file, len),
            Left::Nothing(why) => return say_nothing(&why),
        };
        let responses = Arc::clone(responses);
        let reading = std::thread::Builder::new().name("afpa-snapshot".into()).spawn(move || {
            // It takes longer at the priority of requests, no more.
            let _ = nice(NICE);
            first();
            match responses.restore(&mut file, len, &present) {
                Ok(restored) => tracing::info!(
                    answers = restored.taken,
                    stale = restored.stale,
                    other_rules = restored.other_rules,
                    overtaken = restored.overtaken,
                    no_room = restored.no_room,
                    "snapshot of the shared cache: {} of {} answers taken over",
                    restored.taken,
                    restored.all(),
                ),
                Err(refused) => say_nothing(&refused),
            }
        });
        match reading {
            Ok(reading) => self.reading = Some(reading),
            Err(error) => say_nothing(&error),
        }
    }

    /// Writes the kept answers. Must be called when no purge can come any more.
    pub(super) fn write(self, responses: &Responses) {
        if let Some(reading) = self.reading {
            // The thread has logged its own result.
            let _ = reading.join();
        }
        let Some((marked, limit)) = self.file else { return };
        let (clocks, now) = present();
        match marked.replace(|out| responses.save(&clocks, now, limit, out)) {
            Ok(answers) => tracing::info!(answers, "snapshot of the shared cache written"),
            Err(error) => tracing::warn!("no snapshot of the shared cache is left: {error:#}"),
        }
    }
}

/// The lowest priority.
const NICE: i32 = 19;

fn say_nothing(why: &dyn std::fmt::Display) {
    tracing::info!(answers = 0, "snapshot of the shared cache: nothing taken over: {why}");
}

fn present() -> (Clocks, Now) {
    let micros = |duration: std::time::Duration| u64::try_from(duration.as_micros()).unwrap_or(0);
    let unix_us = micros(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    let (steady_us, boot_us) = (micros(clock::steady()), micros(clock::since_boot()));
    (Clocks { unix_us, boot: boot(), boot_us }, Now { unix_us, steady_us })
}

/// A number of the host's present run; 0 where it has none.
fn boot() -> u64 {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = id.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    u64::from_str_radix(&digits, 16).unwrap_or(0)
}
