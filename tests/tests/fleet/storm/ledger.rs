//! The ledger: the application, whose content has versions, and the orders to purge that follow each of these. It says which
//! answers are too old, and which orders were lost.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::place::open_to_all;

pub(super) const KEYS: usize = 48;

/// An order that a machine has had for so long is on its disk, or the servers have it.
const ON_DISK: Duration = Duration::from_secs(5);

/// An application at a unix socket: `/k/NUMBER` has the version of that key.
pub(super) struct Application {
    versions: Arc<Vec<AtomicUsize>>,
    folder: TempDir,
}

impl Application {
    pub(super) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        open_to_all(folder.path());
        let listener = UnixListener::bind(folder.path().join("socket")).expect("bound");
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(folder.path().join("socket"), open).expect("opened");
        let versions: Arc<Vec<_>> = Arc::new((0..KEYS).map(|_| AtomicUsize::new(1)).collect());
        let shown = Arc::clone(&versions);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shown = Arc::clone(&shown);
                std::thread::spawn(move || answer(stream, &shown));
            }
        });
        Self { versions, folder }
    }

    pub(super) fn to(&self) -> String {
        format!("unix:{}", self.folder.path().join("socket").display())
    }

    /// The next version of a key.
    pub(super) fn change(&self, key: usize) -> usize {
        self.versions[key].fetch_add(1, Ordering::SeqCst) + 1
    }
}

fn answer(mut stream: UnixStream, versions: &[AtomicUsize]) {
    let (mut head, mut bytes) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        head.extend_from_slice(&bytes[..count]);
        while let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&head[..end]).into_owned();
            let key = text.split(' ').nth(1).and_then(|target| target.rsplit('/').next());
            let key: usize = key.and_then(|key| key.parse().ok()).unwrap_or(0);
            let content = versions[key].load(Ordering::SeqCst).to_string();
            let length = content.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nSurrogate-Key: k{key}\r\n\
                 Content-Length: {length}\r\n\r\n{content}"
            );
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
            head.drain(..end + 4);
        }
    }
}

/// An order that a machine has, and of which nobody knows yet whether the servers have it.
#[derive(Clone, Copy)]
pub(super) struct Order {
    pub(super) key: usize,
    pub(super) version: usize,
    pub(super) machine: usize,
    pub(super) at: Instant,
}

/// A version whose order was acknowledged by all machines that were known, how many those were, and when.
#[derive(Clone, Copy)]
struct Acknowledged {
    version: usize,
    machines: usize,
    at: Instant,
}

#[derive(Default)]
struct Key {
    acknowledged: Vec<Acknowledged>,
    /// No machine may end with an older one.
    owed: usize,
}

/// An answer that is older than an order which was acknowledged before it was asked for.
#[derive(Debug)]
pub(super) struct Older {
    pub(super) machine: usize,
    pub(super) for_so_long: Duration,
    /// So many machines had acknowledged it.
    pub(super) by: usize,
}

pub(super) struct Ledger {
    keys: Vec<Mutex<Key>>,
    open: Mutex<Vec<Order>>,
    pub(super) older: Mutex<Vec<Older>>,
    /// Requests that got no answer, and of which machine.
    pub(super) refused: Mutex<Vec<String>>,
    /// The words of configurations by their revisions.
    pub(super) pushed: Mutex<BTreeMap<u64, String>>,
    /// Machines that report another revision than they serve, for longer than a change takes.
    pub(super) misreported: Mutex<Vec<String>>,
    pub(super) counts: Counts,
}

#[derive(Default)]
pub(super) struct Counts {
    pub(super) answers: AtomicUsize,
    pub(super) orders: AtomicUsize,
    pub(super) acknowledged: AtomicUsize,
    /// Those that were acknowledged by fewer machines than there are.
    pub(super) by_fewer: AtomicUsize,
    pub(super) not_taken: AtomicUsize,
    pub(super) died: AtomicUsize,
}

impl Ledger {
    pub(super) fn new() -> Self {
        Self {
            keys: (0..KEYS).map(|_| Mutex::default()).collect(),
            open: Mutex::default(),
            older: Mutex::default(),
            refused: Mutex::default(),
            pushed: Mutex::default(),
            misreported: Mutex::default(),
            counts: Counts::default(),
        }
    }

    /// A machine has taken an order, and is still the same process. Whether it is.
    pub(super) fn ordered(&self, order: Order, is_same: impl FnOnce() -> bool) -> bool {
        let mut open = self.open.lock().expect("no panic");
        let is_same = is_same();
        if is_same {
            self.counts.orders.fetch_add(1, Ordering::Relaxed);
            open.push(order);
        }
        is_same
    }

    /// The servers have it: it cannot be lost any more.
    pub(super) fn logged(&self, order: &Order) {
        let is_it = |one: &Order| (one.key, one.version) == (order.key, order.version);
        self.open.lock().expect("no panic").retain(|one| !is_it(one));
        self.owe(order);
    }

    pub(super) fn acknowledged(&self, order: &Order, machines: usize) {
        self.counts.acknowledged.fetch_add(1, Ordering::Relaxed);
        if machines < super::place::COUNT {
            self.counts.by_fewer.fetch_add(1, Ordering::Relaxed);
        }
        let mut key = self.keys[order.key].lock().expect("no panic");
        if key.acknowledged.last().is_none_or(|last| last.version < order.version) {
            let (version, at) = (order.version, Instant::now());
            key.acknowledged.push(Acknowledged { version, machines, at });
        }
    }

    /// A machine was killed. Its last orders may have died with it, if its disk takes nothing all of them.
    pub(super) fn killed(&self, machine: usize, is_disk_well: bool) {
        let (now, mut open) = (Instant::now(), self.open.lock().expect("no panic"));
        let (own, others) = open.iter().partition::<Vec<_>, _>(|order| order.machine == machine);
        *open = others;
        drop(open);
        for order in own {
            if is_disk_well && now - order.at >= ON_DISK {
                self.owe(&order);
            } else {
                self.counts.died.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Nobody is killed any more, so every order that a machine has comes to the servers.
    pub(super) fn close(&self) {
        let open = std::mem::take(&mut *self.open.lock().expect("no panic"));
        open.iter().for_each(|order| self.owe(order));
    }

    fn owe(&self, order: &Order) {
        let mut key = self.keys[order.key].lock().expect("no panic");
        key.owed = key.owed.max(order.version);
    }

    /// The version below which no machine may end.
    pub(super) fn owed(&self, key: usize) -> usize {
        self.keys[key].lock().expect("no panic").owed
    }

    /// A machine has answered with a version, after it was `asked`.
    pub(super) fn answered(
        &self,
        machine: usize,
        (number, version): (usize, usize),
        asked: Instant,
    ) {
        self.counts.answers.fetch_add(1, Ordering::Relaxed);
        let key = self.keys[number].lock().expect("no panic");
        // The first order that this answer does not know.
        let known = key.acknowledged.partition_point(|one| one.version <= version);
        let Some(unknown) = key.acknowledged.get(known).filter(|one| one.at < asked) else {
            return;
        };
        let (for_so_long, by) = (asked - unknown.at, unknown.machines);
        self.older.lock().expect("no panic").push(Older { machine, for_so_long, by });
    }
}
