//! The reader of events: one thread that reads what the kernel tells, keeps the watches in step
//! with the tree, and tells the sink.
//!
//! Events are old news: what they name may have changed again. So an event about a directory never
//! says what to do; it says where to look. The look is at the tree as it is, and since the last
//! change of a name is followed by its event, the last look finds the last state.

use super::coverage::Reason;
use super::tree::{Attached, Wd};
use super::watches::{Found, Watches};
use crate::root::join;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{ReadFlags, Reader as Inotify};
use rustix::fs::{AtFlags, Dir, DirEntry, FileType};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

pub(super) fn spawn(watches: Arc<Watches>) -> io::Result<JoinHandle<()>> {
    Builder::new().name("afpa-watch".into()).spawn(move || {
        let reader = Reader::new(Arc::clone(&watches));
        // A dead reader must not leave anyone believing that changes are heard.
        let failed = match catch_unwind(AssertUnwindSafe(|| reader.run())) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the reader of events panicked".into(),
        };
        tracing::error!(failed, "watching ends");
        watches.give_up(Reason::Failed);
    })
}

struct Reader {
    watches: Arc<Watches>,
    /// Directories that came while we watched: everything in them is news.
    arrived: VecDeque<Wd>,
    /// Directories to be scanned for those below them, at the start and after an overflow.
    unscanned: VecDeque<Wd>,
    scan: Scan,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scan {
    First,
    AfterOverflow,
    Done,
}

impl Reader {
    fn new(watches: Arc<Watches>) -> Self {
        let unscanned = watches.read(|tree| Some(tree.root())).into_iter().collect();
        Reader { watches, arrived: VecDeque::new(), unscanned, scan: Scan::First }
    }

    /// Between any two directories that are scanned, events are read: they do not wait for a scan.
    fn run(mut self) -> Result<(), Errno> {
        let mut buffer = vec![MaybeUninit::uninit(); EVENT_BUFFER];
        while !self.watches.is_stopped() && self.watches.is_active() {
            self.read_events(&mut buffer)?;
            if self.watches.is_tangled() {
                self.rescan();
            }
            if let Some(wd) = self.arrived.pop_front() {
                self.scan_directory(wd, true);
            } else if let Some(wd) = self.unscanned.pop_front() {
                self.scan_directory(wd, false);
            } else if self.scan != Scan::Done {
                self.finish_scan();
            } else {
                self.sleep()?;
            }
        }
        Ok(())
    }

    fn sleep(&self) -> Result<(), Errno> {
        let Some(inotify) = self.watches.inotify() else { return Ok(()) };
        let bell = self.watches.bell();
        let mut sources = [PollFd::new(inotify, PollFlags::IN), PollFd::new(bell, PollFlags::IN)];
        match poll(&mut sources, Some(&HEARTBEAT)) {
            Ok(0) if self.watches.root_is_deleted() => self.watches.give_up(Reason::RootGone),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        // Empty it; that it rang is all it says.
        let _ = rustix::io::read(bell, &mut [0; 8]);
        Ok(())
    }

    /// Reads at most one buffer of events, without waiting.
    fn read_events(&mut self, buffer: &mut [MaybeUninit<u8>]) -> Result<(), Errno> {
        let watches = Arc::clone(&self.watches);
        let Some(inotify) = watches.inotify() else { return Ok(()) };
        let mut events = Inotify::new(inotify, buffer);
        loop {
            match events.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| name.to_bytes());
                    self.handle(event.wd(), event.events(), name);
                }
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(error) => return Err(error),
            }
            if events.is_buffer_empty() {
                return Ok(());
            }
        }
    }

    fn handle(&mut self, wd: Wd, event: ReadFlags, name: Option<&[u8]>) {
        if event.contains(ReadFlags::QUEUE_OVERFLOW) {
            tracing::warn!("events of the file system were lost: every object is checked again");
            return self.rescan();
        }
        // Events of watches that we ended ourselves name a place no more.
        let Some(directory) = self.watches.read(|tree| tree.path(wd)) else { return };
        match name {
            Some(name) => self.entry_event(wd, name, &join(&directory, name), event),
            None => self.own_event(wd, &directory, event),
        }
    }

    /// Something happened to an entry of a watched directory.
    fn entry_event(&mut self, parent: Wd, name: &[u8], path: &[u8], event: ReadFlags) {
        let watches = Arc::clone(&self.watches);
        let is_directory = event.contains(ReadFlags::ISDIR);
        let renamed = event.intersects(NAME_EVENTS);
        watches.sink().changed(path);
        // The new watch first, then the report: what happens in between is covered by either.
        let found = match is_directory && watches.wants(parent, name) {
            true => watches.examine(parent, name),
            false => Found::Nothing,
        };
        if renamed || is_directory {
            watches.sink().changed_tree(path);
        }
        if !is_directory && event.intersects(ARRIVAL_OF_CONTENT) {
            watches.sink().written(path);
        }
        let came = event.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
        match found {
            Found::Directory(wd, attached) if came || attached != Attached::Known => {
                self.arrived.push_back(wd);
            }
            _ => {}
        }
    }

    /// Something happened to a watched directory itself. Its parent is told most of it as well.
    fn own_event(&mut self, wd: Wd, path: &[u8], event: ReadFlags) {
        let watches = Arc::clone(&self.watches);
        match watches.read(|tree| tree.above(wd)) {
            None if event.intersects(END_EVENTS) => watches.give_up(Reason::RootGone),
            None if event.contains(ReadFlags::ATTRIB) => watches.sink().changed_tree(path),
            None if event.contains(ReadFlags::MOVE_SELF) => tracing::warn!(
                "the document root was renamed, and is still the one that is served: reload to \
                 serve what has its old name now"
            ),
            // The kernel ended the watch: deleted, or the file system is unmounted. Another
            // directory may stand there now.
            Some((parent, name)) if event.contains(ReadFlags::IGNORED) => {
                let found = watches.examine(parent, &name);
                watches.sink().changed_tree(path);
                if let Found::Directory(wd, _) = found {
                    self.arrived.push_back(wd);
                }
            }
            _ => {}
        }
    }

    /// The sink hears of it twice: now, because changes were lost, and when the scan is through,
    /// because others may have been missed until each directory was watched again.
    fn rescan(&mut self) {
        self.watches.begin_rescan();
        self.watches.sink().overflow();
        self.arrived.clear();
        self.unscanned = self.watches.read(|tree| Some(tree.root())).into_iter().collect();
        self.scan = Scan::AfterOverflow;
    }

    fn finish_scan(&mut self) {
        let left = self.watches.finish_scan();
        for (parent, name) in &left {
            if let Found::Directory(wd, _) = self.watches.examine(*parent, name) {
                self.unscanned.push_back(wd);
            }
        }
        if left.is_empty() {
            if self.scan == Scan::AfterOverflow {
                self.watches.sink().overflow();
            }
            self.scan = Scan::Done;
            tracing::info!(summary = %self.watches.summary(), "the document root is watched");
        }
    }

    /// Looks at every name in a directory: watches the directories, and if it `arrived`, reports
    /// its files as written.
    fn scan_directory(&mut self, wd: Wd, arrived: bool) {
        let watches = Arc::clone(&self.watches);
        let Some((path, directory)) = watches.open(wd) else { return };
        let Ok(entries) = Dir::read_from(&directory) else { return };
        for entry in entries.map_while(Result::ok) {
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            match kind(&directory, &entry) {
                FileType::Directory => self.scan_child(wd, name, &path, arrived),
                FileType::RegularFile | FileType::Symlink if arrived => {
                    let file = join(&path, name);
                    watches.sink().changed(&file);
                    watches.sink().written(&file);
                }
                _ => {}
            }
        }
    }

    fn scan_child(&mut self, parent: Wd, name: &[u8], path: &[u8], arrived: bool) {
        if !self.watches.wants(parent, name) {
            return;
        }
        let found = self.watches.examine(parent, name);
        if arrived {
            self.watches.sink().changed_tree(&join(path, name));
        }
        if let Found::Directory(wd, _) = found {
            if arrived { self.arrived.push_back(wd) } else { self.unscanned.push_back(wd) }
        }
    }
}

/// Some file systems leave the kind out of their directories.
fn kind(directory: &OwnedFd, entry: &DirEntry) -> FileType {
    match entry.file_type() {
        FileType::Unknown => {
            rustix::fs::statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
        }
        kind => kind,
    }
}

/// After these a name stands for something else, or for nothing.
const NAME_EVENTS: ReadFlags = ReadFlags::CREATE
    .union(ReadFlags::DELETE)
    .union(ReadFlags::MOVED_FROM)
    .union(ReadFlags::MOVED_TO);
const ARRIVAL_OF_CONTENT: ReadFlags = ReadFlags::CLOSE_WRITE.union(ReadFlags::MOVED_TO);
/// After these the watch on the root is no more.
const END_EVENTS: ReadFlags =
    ReadFlags::IGNORED.union(ReadFlags::UNMOUNT).union(ReadFlags::DELETE_SELF);
/// How often a silent root is looked at: while we hold it open, its deletion makes no event.
const HEARTBEAT: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };
/// Some two thousand events.
const EVENT_BUFFER: usize = 64 * 1024;
