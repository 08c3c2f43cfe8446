//! The thread that watches zone files: a changed one is read again, and a broken one leaves the zone as it was.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use afpa_config::{ReadZoneFile, ZoneSettings, read_zone_files};
use afpa_dns::Zone;
use afpa_dns::tsig::Key;
use afpa_module_dns::{ServedZone, ZoneStore};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

use super::zone_notices::Notices;
use super::zone_operations::{Ordered, ZoneOrder, ZoneOrders};

/// An editor may write a file in several steps.
const SETTLE: Duration = Duration::from_millis(50);
/// Changes of which nothing tells, as those of a network file system.
const LOOK: Duration = Duration::from_secs(10);

/// A zone, and the state of its files when it was read.
pub(super) struct KeptZone {
    pub(super) settings: ZoneSettings,
    /// The key of its secondaries.
    pub(super) key: Option<Arc<Key>>,
    pub(super) zone: Arc<Zone>,
    stamps: Vec<Stamp>,
    /// A change of which nobody has told that it is whole: the states since then.
    unsure: Option<(Instant, Vec<Stamp>)>,
}

/// The state of a file: a change of it changes this.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    path: PathBuf,
    state: Option<(u64, u64, i64, i64, u64)>,
}

impl Stamp {
    fn of(path: &Path) -> Self {
        let state = fs::metadata(path).ok().map(|found| {
            (found.ino(), found.size(), found.mtime(), found.mtime_nsec(), found.dev())
        });
        Self { path: path.to_owned(), state }
    }
}

/// Reads a zone. The states are those before it was read: a file that changes meanwhile is read again. That of a file that
/// was not `known` is one of after.
fn read_stamped(settings: &ZoneSettings, known: &[Stamp]) -> (ReadZoneFile, Vec<Stamp>) {
    let known = known.iter().map(|stamp| stamp.path.as_path());
    let before: Vec<Stamp> = known.chain([settings.file.as_path()]).map(Stamp::of).collect();
    let read = read_zone_files(settings);
    let stamp = |path: &PathBuf| {
        let before = before.iter().find(|stamp| stamp.path == *path).cloned();
        before.unwrap_or_else(|| Stamp::of(path))
    };
    let stamps = read.files.iter().map(stamp).collect();
    (read, stamps)
}

impl KeptZone {
    /// `None`: it cannot be served.
    pub(super) fn read(settings: ZoneSettings, key: Option<Arc<Key>>) -> Option<Self> {
        let (read, stamps) = read_stamped(&settings, &[]);
        Some(Self { settings, key, zone: Arc::new(read.read.zone?), stamps, unsure: None })
    }

    /// Whether a file has changed, and is whole: it was closed or put in its place, or it has been the same for a while. Some
    /// programs write for long, and the half of a zone would deny the other half.
    fn has_changed(&mut self, whole: &HashSet<OsString>) -> bool {
        let now: Vec<Stamp> = self.stamps.iter().map(|stamp| Stamp::of(&stamp.path)).collect();
        let changed: Vec<&Stamp> = now
            .iter()
            .zip(&self.stamps)
            .filter(|(now, before)| now != before)
            .map(|(now, _)| now)
            .collect();
        if changed.is_empty() {
            self.unsure = None;
            return false;
        }
        let is_whole =
            |stamp: &&Stamp| stamp.path.file_name().is_some_and(|name| whole.contains(name));
        let is_settled = self
            .unsure
            .as_ref()
            .is_some_and(|(since, then)| *then == now && since.elapsed() >= LOOK);
        if changed.iter().all(is_whole) || is_settled {
            self.unsure = None;
            return true;
        }
        if self.unsure.as_ref().is_none_or(|(_, then)| *then != now) {
            self.unsure = Some((Instant::now(), now));
        }
        false
    }

    fn tell_secondaries(&self, notices: &Notices) {
        notices.tell(&self.zone, self.key.as_ref(), &self.settings.notify);
    }
}

/// The thread. Dropping it ends it.
pub(super) struct ZoneKeeper {
    stop: Arc<OwnedFd>,
    orders: Arc<ZoneOrders>,
    thread: Option<JoinHandle<()>>,
}

impl ZoneKeeper {
    /// Watches the files of these zones, and tells secondaries of those whose serial number is another one than `before`.
    pub(super) fn start(
        zones: Vec<KeptZone>,
        before: &[ServedZone],
        store: Arc<ZoneStore>,
    ) -> io::Result<Self> {
        let notices = Notices::default();
        for kept in &zones {
            let same =
                |served: &&ServedZone| served.zone.apex().lower() == kept.zone.apex().lower();
            let known = before.iter().find(same).map(|served| served.zone.serial());
            if known != Some(kept.zone.serial()) {
                kept.tell_secondaries(&notices);
            }
        }
        for stamp in zones.iter().flat_map(|kept| &kept.stamps) {
            if let Err(error) = fs::File::open(&stamp.path) {
                let path = stamp.path.display();
                tracing::warn!(%error, "{path} cannot be read by this user any more, so a change of it is seen at the next start only");
            }
        }
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let watched = watch(&zones).inspect_err(|error| {
            tracing::warn!(%error, "zone files are not watched, and are looked at every {} s", LOOK.as_secs());
        });
        let orders = Arc::new(ZoneOrders::new()?);
        let mut work = Work {
            zones,
            store,
            stop: Arc::clone(&stop),
            orders: Arc::clone(&orders),
            notices,
            watched: watched.ok(),
        };
        let thread = std::thread::Builder::new().name("afpa-zones".to_owned());
        let thread = thread.spawn(move || work.go_on())?;
        Ok(Self { stop, orders, thread: Some(thread) })
    }

    /// Where it takes orders from.
    pub(super) fn orders(&self) -> Arc<ZoneOrders> {
        Arc::clone(&self.orders)
    }
}

impl Drop for ZoneKeeper {
    fn drop(&mut self) {
        let _ = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Watches the folders: an editor replaces a file, and then the file that was watched is another one.
fn watch(zones: &[KeptZone]) -> io::Result<OwnedFd> {
    let watched = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    let flags =
        WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::CREATE | WatchFlags::DELETE;
    let files = zones.iter().flat_map(|zone| &zone.stamps);
    let folders: HashSet<&Path> = files.filter_map(|stamp| stamp.path.parent()).collect();
    for folder in folders {
        inotify::add_watch(&watched, folder, flags)?;
    }
    Ok(watched)
}

struct Work {
    zones: Vec<KeptZone>,
    store: Arc<ZoneStore>,
    stop: Arc<OwnedFd>,
    orders: Arc<ZoneOrders>,
    notices: Notices,
    watched: Option<OwnedFd>,
}

impl Work {
    fn go_on(&mut self) {
        while !self.wait(LOOK, true) {
            // More may follow at once.
            if self.wait(SETTLE, false) {
                return;
            }
            let whole = self.read_events();
            for index in 0..self.zones.len() {
                self.look_at(index, &whole);
            }
            for ordered in self.orders.take() {
                self.obey(ordered);
            }
        }
    }

    /// Waits for a change, and returns whether to end.
    fn wait(&self, time: Duration, for_changes: bool) -> bool {
        let mut fds = vec![PollFd::new(&*self.stop, PollFlags::IN)];
        let watched = self.watched.as_ref().filter(|_| for_changes);
        fds.extend(for_changes.then(|| PollFd::new(&self.orders.wake, PollFlags::IN)));
        fds.extend(watched.map(|watched| PollFd::new(watched, PollFlags::IN)));
        let time = Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(1),
            tv_nsec: i64::from(time.subsec_nanos()),
        };
        let _ = poll(&mut fds, Some(&time));
        fds.first().is_some_and(|stop| !stop.revents().is_empty())
    }

    /// The names of files that are whole: closed after a write, or moved to their place.
    fn read_events(&self) -> HashSet<OsString> {
        let mut whole = HashSet::new();
        let Some(watched) = &self.watched else { return whole };
        let mut room = [const { std::mem::MaybeUninit::uninit() }; 4096];
        let mut events = Reader::new(watched, &mut room);
        while let Ok(event) = events.next() {
            if event.events().intersects(ReadFlags::CLOSE_WRITE | ReadFlags::MOVED_TO) {
                let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                whole.extend(name.map(OsStr::to_owned));
            }
        }
        whole
    }

    fn look_at(&mut self, index: usize, whole: &HashSet<OsString>) {
        let Some(kept) = self.zones.get_mut(index) else { return };
        if kept.has_changed(whole) {
            // The log has what is wrong.
            let _ = self.read_again(index);
        }
    }

    fn obey(&mut self, Ordered { order, apex, done }: Ordered) {
        let is_it = |kept: &KeptZone| *kept.zone.apex().lower().wire() == *apex;
        let Some(index) = self.zones.iter().position(is_it) else { return };
        let outcome = match order {
            ZoneOrder::Read => self.read_again(index),
            ZoneOrder::Notify => self.zones.get(index).map_or(Err(String::new()), |kept| {
                kept.tell_secondaries(&self.notices);
                let count = kept.settings.notify.len();
                Ok(format!("{count} secondaries are told of serial {}", kept.zone.serial()))
            }),
        };
        // The client may have gone.
        let _ = done.try_send(outcome);
    }

    /// Reads a zone's file, and serves it if it has no error. Returns what was done, or why not.
    fn read_again(&mut self, index: usize) -> Result<String, String> {
        let Some(kept) = self.zones.get_mut(index) else { return Err(String::new()) };
        let (read, stamps) = read_stamped(&kept.settings, &kept.stamps);
        kept.stamps = stamps;
        let name = kept.settings.name.clone();
        let mut errors = read.read.findings.iter().filter(|finding| finding.is_error);
        let error = errors.next().map(|finding| format!("{finding}; {}", finding.remedy));
        for finding in &read.read.findings {
            match finding.is_error {
                true => tracing::error!("{finding}; {}", finding.remedy),
                false => tracing::warn!("{finding}; {}", finding.remedy),
            }
        }
        let Some(zone) = read.read.zone else {
            tracing::error!("the zone {name} stays as it was, because its file has an error");
            return Err(format!(
                "the zone {name} stays as it was: {}",
                error.unwrap_or_else(|| "its file cannot be read".to_owned())
            ));
        };
        let (before, zone) = (kept.zone.serial(), Arc::new(zone));
        kept.zone = Arc::clone(&zone);
        self.store.renew(Arc::clone(&zone));
        let serial = zone.serial();
        tracing::info!(serial, "the zone {name} was read again");
        if serial != before {
            kept.tell_secondaries(&self.notices);
        } else if !kept.settings.transfer.is_empty() {
            tracing::warn!(
                "{name} has changed, and its serial number has not: secondaries keep what they have"
            );
        }
        Ok(format!("the zone {name} was read again: serial {serial}"))
    }
}
