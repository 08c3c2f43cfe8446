//! The reader of events: one thread that reads the kernel's events, keeps the watches of all trees in step with the
//! file system, and calls the sinks.
//!
//! Events are old news: the names in them may have changed again. So an event about a directory never says what to do;
//! it says where to look. The look is at the tree as it is, and since the last change of a name is followed by its
//! event, the last look finds the last state.

use super::coverage::{Reason, Summary};
use super::hub::{Hub, TreeId};
use super::tree::{Attached, Wd};
use super::watches::{Found, Watches};
use crate::root::join;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{ReadFlags, Reader as Inotify};
use rustix::fs::{AtFlags, Dir, DirEntry, FileType};
use rustix::io::Errno;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

pub(super) fn spawn(hub: Arc<Hub>) -> io::Result<JoinHandle<()>> {
    Builder::new().name("afpa-watch".into()).spawn(move || {
        let reader = Reader::new(Arc::clone(&hub));
        // A dead reader must not leave anyone believing that changes are heard.
        let failed = match catch_unwind(AssertUnwindSafe(|| reader.run())) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the reader of events panicked".into(),
        };
        tracing::error!(
            failed,
            "changes of files are heard no more, so objects are compared with their files: reload \
             to watch them again"
        );
        hub.fail();
    })
}

struct Reader {
    hub: Arc<Hub>,
    /// Trees with directories to be looked at.
    scans: HashMap<TreeId, Scan>,
    /// In which order; a tree may be there twice.
    turns: VecDeque<TreeId>,
    /// How often changes were lost, and all sinks were notified.
    losses: u64,
    /// Changes were lost, and the scans after that are not through.
    overflowed: bool,
    /// The root whose existence is looked at next.
    next_root: TreeId,
}

/// The work that is to be done in a tree.
struct Scan {
    watches: Arc<Watches>,
    /// Directories that came while we watched: everything in them is news.
    arrived: VecDeque<Wd>,
    /// Directories to be scanned for those below them.
    unscanned: VecDeque<Wd>,
    /// Whether the whole tree is scanned, and not only new directories.
    whole: bool,
}

impl Reader {
    fn new(hub: Arc<Hub>) -> Self {
        let (scans, turns) = (HashMap::new(), VecDeque::new());
        Reader { hub, scans, turns, losses: 0, overflowed: false, next_root: 0 }
    }

    /// Between any two directories that are scanned, events are read: they do not wait for a scan.
    fn run(mut self) -> Result<(), Errno> {
        let mut buffer = vec![MaybeUninit::uninit(); EVENT_BUFFER];
        while !self.hub.is_stopped() {
            self.read_events(&mut buffer)?;
            for tree in self.hub.take_tangled() {
                self.rescan(&tree);
            }
            for tree in self.hub.take_unscanned() {
                self.begin_scan(tree);
            }
            match self.turns.pop_front() {
                Some(tree) => self.go_on(tree),
                None if self.is_to_speak() => self.finish(),
                None => self.sleep()?,
            }
        }
        Ok(())
    }

    fn is_to_speak(&mut self) -> bool {
        let mut asked = self.hub.take_announcement();
        if asked && self.hub.has_unscanned() {
            // Trees came a moment ago that are not scanned yet.
            self.hub.announce();
            asked = false;
        }
        asked || self.overflowed
    }

    fn sleep(&mut self) -> Result<(), Errno> {
        let hub = Arc::clone(&self.hub);
        let bell = hub.bell();
        let mut sources = vec![PollFd::new(bell, PollFlags::IN)];
        sources.extend(hub.inotify().ok().map(|inotify| PollFd::new(inotify, PollFlags::IN)));
        match poll(&mut sources, Some(&HEARTBEAT)) {
            Ok(0) => self.look_at_roots(),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        // Empty it; that it rang is all it says.
        let _ = rustix::io::read(bell, &mut [0; 8]);
        Ok(())
    }

    /// While we hold a root open, its deletion makes no event.
    fn look_at_roots(&mut self) {
        let trees = self.hub.trees_from(self.next_root, ROOTS_AT_ONCE);
        self.next_root = trees.last().map_or(0, |tree| tree.id() + 1);
        for tree in trees.iter().filter(|tree| tree.is_active() && tree.root_is_deleted()) {
            give_up(tree, Reason::RootGone);
        }
    }

    /// Reads at most one buffer of events, without waiting.
    fn read_events(&mut self, buffer: &mut [MaybeUninit<u8>]) -> Result<(), Errno> {
        let hub = Arc::clone(&self.hub);
        let Ok(inotify) = hub.inotify() else { return Ok(()) };
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
            return self.overflow();
        }
        let owners = match event.contains(ReadFlags::IGNORED) {
            true => self.hub.take_owners(wd),
            false => self.hub.owners(wd),
        };
        for watches in owners {
            // Events of watches that we ended ourselves name a place no more.
            let Some(directory) = watches.read(|tree| tree.path(wd)) else { continue };
            match name {
                Some(name) => {
                    let path = join(&directory, name);
                    self.entry_event(&watches, wd, name, &path, event);
                }
                None => self.own_event(&watches, wd, &directory, event),
            }
        }
    }

    /// Something happened to an entry of a watched directory.
    fn entry_event(
        &mut self,
        watches: &Arc<Watches>,
        parent: Wd,
        name: &[u8],
        path: &[u8],
        event: ReadFlags,
    ) {
        let is_directory = event.contains(ReadFlags::ISDIR);
        let renamed = event.intersects(NAME_EVENTS);
        watches.tell(|sink| sink.changed(path));
        // The new watch first, then the report: a change in between is covered by either.
        let found = match is_directory && watches.wants(parent, name) {
            true => watches.examine(parent, name),
            false => Found::Nothing,
        };
        if renamed || is_directory {
            watches.tell(|sink| sink.changed_tree(path));
        }
        if !is_directory && event.intersects(ARRIVAL_OF_CONTENT) {
            watches.tell(|sink| sink.written(path));
        }
        let came = event.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
        match found {
            Found::Directory(wd, attached) if came || attached != Attached::Known => {
                self.arrived(watches, wd);
            }
            _ => {}
        }
    }

    /// An event of a watched directory itself. For most of them the watch of its parent gets an event, too.
    fn own_event(&mut self, watches: &Arc<Watches>, wd: Wd, path: &[u8], event: ReadFlags) {
        match watches.read(|tree| tree.above(wd)) {
            None if event.intersects(END_EVENTS) => give_up(watches, Reason::RootGone),
            None if event.contains(ReadFlags::ATTRIB) => {
                watches.tell(|sink| sink.changed_tree(path))
            }
            None if event.contains(ReadFlags::MOVE_SELF) => tracing::warn!(
                "the document root was renamed, and is still the one that is served: reload to \
                 serve what has its old name now"
            ),
            // The kernel ended the watch: deleted, or the file system is unmounted. Another
            // directory may stand there now.
            Some((parent, name)) if event.contains(ReadFlags::IGNORED) => {
                let found = watches.examine(parent, &name);
                watches.tell(|sink| sink.changed_tree(path));
                if let Found::Directory(wd, _) = found {
                    self.arrived(watches, wd);
                }
            }
            _ => {}
        }
    }

    // Scans.

    fn arrived(&mut self, watches: &Arc<Watches>, wd: Wd) {
        self.scan_of(watches).arrived.push_back(wd);
        // News go before directories that have been there all the time.
        self.turns.push_front(watches.id());
    }

    fn begin_scan(&mut self, watches: Arc<Watches>) {
        let root = watches.read(|tree| Some(tree.root()));
        let scan = self.scan_of(&watches);
        scan.whole = true;
        scan.unscanned.extend(root);
        self.turns.push_back(watches.id());
    }

    fn scan_of(&mut self, watches: &Arc<Watches>) -> &mut Scan {
        self.scans.entry(watches.id()).or_insert_with(|| Scan {
            watches: Arc::clone(watches),
            arrived: VecDeque::new(),
            unscanned: VecDeque::new(),
            whole: false,
        })
    }

    /// Events were lost, of any tree. The sinks hear of it twice: now, because changes were lost, and when the scans
    /// are through, because others may have been missed until each directory was watched again.
    fn overflow(&mut self) {
        tracing::warn!(
            "events of the file system were lost, so every object is checked again: if this comes often, raise \
             fs.inotify.max_queued_events"
        );
        let trees = self.hub.trees();
        for tree in &trees {
            self.rescan(tree);
        }
        self.tell_loss(&trees);
        self.overflowed = true;
    }

    fn tell_loss(&mut self, trees: &[Arc<Watches>]) {
        self.losses += 1;
        let loss = self.losses;
        trees.iter().for_each(|tree| tree.tell(|sink| sink.overflow(loss)));
    }

    /// Nothing in the tree counts as watched until it is seen again.
    fn rescan(&mut self, watches: &Arc<Watches>) {
        watches.begin_rescan();
        let scan = self.scan_of(watches);
        scan.arrived.clear();
        scan.unscanned.clear();
        self.begin_scan(Arc::clone(watches));
    }

    /// Looks at one directory of a tree, which has another turn if there are more.
    fn go_on(&mut self, tree: TreeId) {
        let Some(scan) = self.scans.get_mut(&tree) else { return };
        let watches = Arc::clone(&scan.watches);
        if let Some(wd) = scan.arrived.pop_front() {
            self.scan_directory(&watches, wd, true);
        } else if let Some(wd) = scan.unscanned.pop_front() {
            self.scan_directory(&watches, wd, false);
        } else if !scan.whole || self.is_complete(&watches) {
            self.scans.remove(&tree);
            return;
        }
        self.turns.push_front(tree);
    }

    /// Whether the scan has seen everything; entries that it did not see are looked at now.
    fn is_complete(&mut self, watches: &Arc<Watches>) -> bool {
        let left = watches.finish_scan();
        for (parent, name) in &left {
            if let Found::Directory(wd, _) = watches.examine(*parent, name) {
                self.scan_of(watches).unscanned.push_back(wd);
            }
        }
        left.is_empty()
    }

    /// All trees have been scanned.
    fn finish(&mut self) {
        let trees = self.hub.trees();
        if std::mem::take(&mut self.overflowed) {
            self.tell_loss(&trees);
        }
        let summary = Summary::of(trees.iter().map(|tree| tree.summary()));
        match summary.unwatched.is_empty() {
            true => tracing::info!(roots = trees.len(), %summary, "document roots are watched"),
            false => {
                tracing::warn!(roots = trees.len(), %summary, "not every directory is watched")
            }
        }
    }

    /// Looks at every name in a directory: watches the directories, and if it `arrived`, reports
    /// its files as written.
    fn scan_directory(&mut self, watches: &Arc<Watches>, wd: Wd, arrived: bool) {
        let Some((path, directory)) = watches.open(wd) else { return };
        let Ok(entries) = Dir::read_from(&directory) else { return };
        for entry in entries.map_while(Result::ok) {
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            match kind(&directory, &entry) {
                FileType::Directory => self.scan_child(watches, wd, name, &path, arrived),
                FileType::RegularFile | FileType::Symlink if arrived => {
                    let file = join(&path, name);
                    watches.tell(|sink| sink.changed(&file));
                    watches.tell(|sink| sink.written(&file));
                }
                _ => {}
            }
        }
    }

    fn scan_child(
        &mut self,
        watches: &Arc<Watches>,
        parent: Wd,
        name: &[u8],
        path: &[u8],
        arrived: bool,
    ) {
        if !watches.wants(parent, name) {
            return;
        }
        let found = watches.examine(parent, name);
        if arrived {
            let child = join(path, name);
            watches.tell(|sink| sink.changed_tree(&child));
        }
        if let Found::Directory(wd, _) = found {
            let scan = self.scan_of(watches);
            if arrived { scan.arrived.push_back(wd) } else { scan.unscanned.push_back(wd) }
        }
    }
}

fn give_up(watches: &Watches, reason: Reason) {
    tracing::warn!(
        %reason,
        "a document root is not watched any more: its objects have an age, and are compared with \
         their files; reload to watch it again"
    );
    watches.give_up(reason);
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
/// How often roots are looked at while nothing happens.
const HEARTBEAT: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };
/// How many are looked at then: some ten thousand a minute.
const ROOTS_AT_ONCE: usize = 512;
/// Some two thousand events.
const EVENT_BUFFER: usize = 64 * 1024;
