//! Steering: each datagram gets to the worker, and to the process, that has its connection.
//!
//! ```text
//!                   ┌ `filter`, in the kernel: the worker that the id names, or the hash of the addresses
//! datagram ─ group ─┤
//!                   └ worker ─ `id` ─┬ own: its connection
//!                                    ├ another worker's: its mailbox
//!                                    └ of a process before, which drains: by `process`, a socket of each of its workers
//! ```
//!
//! The filter is quicker than a mailbox, but nothing depends on it: where the system refuses it, where a group has fewer
//! sockets than workers, or where an upgrade has just changed their number, workers pass datagrams on.
//!
//! During an upgrade both processes have the same sockets, and one of them reads: the next one, as long as it lives. It
//! passes on what is for connections of those before; if it dies, the one before reads again.

mod filter;
mod follow;
mod id;
mod inbox;
mod process;
mod wire;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afpa_tls::quic::{QuicKeys, Secret};
use quinn_proto::EndpointConfig;
use tokio::sync::mpsc;

use super::socket::Arrived;
use id::{IdKey, Ids, Spot, destination};
use inbox::{Datagram, MOST_WAITING};
pub(super) use inbox::{Inbox, Taken};
use process::{Before, Label};

/// The steering of a process: the part that its workers share, and the sockets for the next process.
#[derive(Debug)]
pub(crate) struct Steering {
    key: IdKey,
    keys: QuicKeys,
    /// The ways to the workers of this process, for the next one.
    own: Vec<OwnedFd>,
    before: Arc<[Before]>,
    /// The next process has the sockets, or may have them soon.
    has_next: Arc<AtomicBool>,
}

impl Steering {
    /// For so many workers, after the processes that `inherited` leads to. Without a secret, that of the process before is
    /// taken, or a new one. `tokens`: a secret of tokens alone.
    ///
    /// # Errors
    /// When the system refuses sockets or random numbers, or there are too many processes.
    pub(crate) fn start(
        (secret, tokens): (Option<Secret>, Option<Secret>),
        inherited: Vec<OwnedFd>,
        workers: usize,
    ) -> io::Result<(Self, Vec<WorkerPart>)> {
        let before: Arc<[Before]> = inherited.into_iter().filter_map(Before::of).collect();
        let secret = match secret.or_else(|| before.last().map(|last| last.label.secret.clone())) {
            Some(secret) => secret,
            None => Secret::new().map_err(io::Error::other)?,
        };
        let generation = process::free_generation(&before)
            .ok_or_else(|| io::Error::other("too many processes before have not ended yet"))?;
        let keys = match tokens {
            Some(tokens) => secret.keys_with_tokens_of(&tokens),
            None => secret.keys(),
        };
        let key = IdKey(keys.ids);
        let (mailboxes, received): (Vec<_>, Vec<_>) =
            (0..workers).map(|_| mpsc::channel(MOST_WAITING)).unzip();
        let mailboxes: Arc<[_]> = mailboxes.into();
        let has_next = Arc::new(AtomicBool::new(false));
        let (mut own, mut parts) = (Vec::new(), Vec::new());
        for (worker, mailbox) in received.into_iter().enumerate() {
            let worker = u16::try_from(worker).map_err(io::Error::other)?;
            let spot = Spot { generation, worker };
            let label = Label { spot, secret: secret.clone() };
            let (theirs, inbound) = process::way(&label)?;
            own.push(theirs);
            parts.push(WorkerPart {
                keys: keys.clone(),
                spot,
                mailboxes: Arc::clone(&mailboxes),
                before: Arc::clone(&before),
                has_next: Arc::clone(&has_next),
                mailbox,
                inbound,
            });
        }
        Ok((Self { key, keys, own, before, has_next }, parts))
    }

    /// The keys by which a program in the kernel tells ids of ours, and makes tokens.
    pub(crate) fn kernel_keys(&self) -> KernelKeys {
        let differs = |before: &&Before| before.lives() && before.key != self.key;
        let before = self.before.iter().rev().find(differs);
        let ids = [self.key.0, before.map_or(self.key.0, |before| before.key.0)];
        KernelKeys { keys: self.keys.clone(), ids }
    }

    /// Has the kernel choose among the sockets of an address.
    pub(crate) fn steer(&self, group: &[Arc<std::net::UdpSocket>]) {
        let [first, _, ..] = group else { return };
        if let Err(error) = filter::attach(first, &self.key) {
            tracing::info!(
                %error,
                "the system takes no program that chooses sockets of HTTP/3: workers pass datagrams on"
            );
        }
    }

    /// The ways to the workers of this process, and of those before that live.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let before = self.before.iter().filter(|before| before.lives());
        before.map(|before| before.way.as_fd()).chain(self.own.iter().map(AsFd::as_fd))
    }

    /// Whether a next process begins. Datagrams for it may come to this one, by the same sockets.
    pub(crate) fn expect_next(&self, begins: bool) {
        self.has_next.store(begins, Ordering::Relaxed);
    }

    /// The next process has the ways: their other ends see it end.
    pub(crate) fn hand_over(&mut self) {
        self.own.clear();
    }
}

/// The keys of datagrams of HTTP/3, for a program in the kernel.
#[derive(Clone, Debug)]
pub struct KernelKeys {
    keys: QuicKeys,
    ids: [[u8; 16]; 2],
}

impl KernelKeys {
    /// The keys of ids: of this process, and of the latest one before that has another and lives, or this one's again.
    pub fn ids(&self) -> [[u8; 16]; 2] {
        self.ids
    }

    /// The key of the ids that a Retry of the kernel's gives.
    pub fn retry_ids(&self) -> [u8; 16] {
        self.keys.retry_ids
    }

    /// The number of the period in which a second since 1970 lies: each has a key of tokens of its own.
    pub fn period_of(second: u64) -> u64 {
        afpa_tls::quic::period_of(second)
    }

    /// The key of tokens in a period.
    pub fn token_key(&self, period: u64) -> [u8; 16] {
        self.keys.token_key(period)
    }
}

/// A worker's part, on its way to the worker.
#[derive(Debug)]
pub(crate) struct WorkerPart {
    keys: QuicKeys,
    spot: Spot,
    mailboxes: Arc<[mpsc::Sender<Datagram>]>,
    before: Arc<[Before]>,
    has_next: Arc<AtomicBool>,
    mailbox: mpsc::Receiver<Datagram>,
    /// For the datagrams that the next process passes on.
    inbound: OwnedFd,
}

/// The steering of a worker.
pub(crate) struct WorkerSteering {
    keys: QuicKeys,
    key: IdKey,
    spot: Spot,
    mailboxes: Arc<[mpsc::Sender<Datagram>]>,
    before: Arc<[Before]>,
    has_next: Arc<AtomicBool>,
    inboxes: RefCell<HashMap<SocketAddr, Rc<Inbox>>>,
    /// The next process has ended.
    is_back: Cell<bool>,
}

impl WorkerSteering {
    /// Takes part from now on, by a task of this thread.
    pub(crate) fn begin(part: WorkerPart) -> Rc<Self> {
        let WorkerPart { keys, spot, mailboxes, before, has_next, mailbox, inbound } = part;
        let key = IdKey(keys.ids);
        let steering = Rc::new(Self {
            keys,
            key,
            spot,
            mailboxes,
            before,
            has_next,
            inboxes: RefCell::default(),
            is_back: Cell::new(false),
        });
        tokio::task::spawn_local(follow::follow(Rc::clone(&steering), mailbox, inbound));
        steering
    }

    /// The settings of the endpoint of an address, with ids of this worker.
    pub(super) fn config(&self, address: SocketAddr) -> Arc<EndpointConfig> {
        let mut config = EndpointConfig::new(self.keys.reset_at(address));
        let (key, spot) = (self.key.clone(), self.spot);
        config
            .cid_generator(move || Box::new(Ids { key: key.clone(), spot }))
            // Not the drafts, which quinn speaks, too.
            .supported_versions(vec![1]);
        Arc::new(config)
    }

    pub(super) fn keys(&self) -> &QuicKeys {
        &self.keys
    }

    /// Whether the next process had the sockets, and has ended.
    pub(super) fn is_back(&self) -> bool {
        self.is_back.get()
    }

    /// This inbox gets the datagrams that others have received for the socket.
    pub(super) fn enter(&self, socket: SocketAddr, inbox: Rc<Inbox>) {
        self.inboxes.borrow_mut().insert(socket, inbox);
    }

    /// The inbox of a socket that is still served.
    pub(super) fn inbox(&self, socket: &SocketAddr) -> Option<Rc<Inbox>> {
        self.inboxes.borrow().get(socket).map(Rc::clone)
    }

    /// The inbox is not read any more. One that another endpoint has at the address stays.
    pub(super) fn leave(&self, socket: &SocketAddr, inbox: &Rc<Inbox>) {
        let mut inboxes = self.inboxes.borrow_mut();
        if inboxes.get(socket).is_some_and(|known| Rc::ptr_eq(known, inbox)) {
            inboxes.remove(socket);
        }
    }

    /// Passes on a datagram that is not for this worker. False: it is for this one, or its worker is gone.
    pub(super) fn pass_on(&self, socket: SocketAddr, arrived: Arrived, bytes: &[u8]) -> bool {
        let has_next = self.has_next.load(Ordering::Relaxed) && !self.is_back();
        if self.mailboxes.len() < 2 && self.before.is_empty() && !has_next {
            return false;
        }
        let Some(id) = destination(bytes) else { return false };
        match self.key.read(id) {
            Some(spot) if spot == self.spot => false,
            Some(Spot { generation, worker }) if generation == self.spot.generation => {
                let Some(mailbox) = self.mailboxes.get(usize::from(worker)) else { return false };
                // A worker that has ended has no connections any more; one that is behind loses it.
                let datagram = Datagram { socket, arrived, bytes: bytes.to_vec() };
                !matches!(mailbox.try_send(datagram), Err(mpsc::error::TrySendError::Closed(_)))
            }
            spot => match self.before.iter().find(|before| before.has(id)) {
                Some(before) => before.send(socket, arrived, bytes),
                // The next process may have the connection, which a reset would end: its client sends again.
                None => spot.is_some() && has_next,
            },
        }
    }

    fn deliver(&self, Datagram { socket, arrived, bytes }: Datagram) {
        if let Some(inbox) = self.inboxes.borrow().get(&socket) {
            inbox.put(arrived, bytes);
        }
    }

    fn come_back(&self) {
        self.is_back.set(true);
        self.inboxes.borrow().values().for_each(|inbox| inbox.wake());
    }
}
