//! The state that the connections of a core share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use afpa_framework::{Helpers, Module, Outbox};
use afpa_ring::CoreRing;
use tokio::sync::Notify;

use super::clock::Clock;
use super::handshake_turns::HandshakeTurns;
use super::share::Share;
use super::table::Table;
use crate::counters::WorkerCounters;
use crate::h3::{Answers, Buffers, WorkerSteering};
use crate::io::WorkerIo;
use crate::limits::Limits;
use crate::pipe::SparePipe;
use crate::settings::Settings;
use crate::transport::TlsBuffers;
use crate::turns::Turns;

/// The handles that a core gives to its module.
#[derive(Clone)]
pub struct WorkerContext {
    /// Number of the worker, from 0.
    pub index: usize,
    /// Call it, from any thread, to have the module's `release_dropped` called on its core.
    pub wake: Arc<dyn Fn() + Send + Sync>,
    /// The ring of the core, for the sockets of the module.
    pub ring: CoreRing,
}

/// The state that the connections of a core share. One thread uses it, so it has cells and no locks.
pub(crate) struct Worker<M: Module> {
    pub(crate) module: RefCell<M>,
    pub(crate) settings: RefCell<Rc<Settings>>,
    pub(crate) clock: Clock,
    pub(crate) counters: Arc<WorkerCounters>,
    pub(crate) limits: Limits,
    /// Its share of the connections, if each worker has a core of its own.
    pub(crate) share: Option<Share<M>>,
    pub(crate) helpers: RefCell<Helpers>,
    /// Receive buffer. A connection uses it from the arrival of data to its next wait.
    pub(crate) scratch: RefCell<Box<[u8]>>,
    /// The request head of HTTP/2 that is being read.
    pub(crate) h2_head: RefCell<afpa_h2::RequestHead>,
    /// The longest head that the module reads.
    pub(crate) largest_head: usize,
    /// Gather buffer, lent to a connection while it sends.
    pub(crate) outbox: RefCell<Outbox>,
    /// Gather buffers for responses that come while others are being sent.
    pub(crate) spare_outboxes: RefCell<Vec<Outbox>>,
    /// Holds the end of a file while the file's version is checked.
    pub(crate) pipe: SparePipe,
    pub(crate) table: Table,
    /// Which long response sends next.
    pub(crate) turns: Rc<Turns>,
    /// Buffers that connections of TLS share.
    pub(crate) tls: Rc<TlsBuffers>,
    /// Buffers of its connections of HTTP/3.
    pub(crate) h3_buffers: Arc<Buffers>,
    /// Their small answers.
    pub(crate) h3_answers: Answers,
    /// Which handshake goes on next.
    pub(crate) handshake_turns: HandshakeTurns,
    pub(crate) draining: Cell<bool>,
    /// The next process has the sockets, and connections may be idle for so long: this one reads no datagrams any more.
    pub(crate) hands_over: Cell<Option<Duration>>,
    /// Which datagrams are for this core, where HTTP/3 is spoken.
    pub(crate) steering: RefCell<Option<Rc<WorkerSteering>>>,
    /// Whether connections without a request end.
    pub(crate) ends_idle: Cell<bool>,
    /// How its connections wait.
    pub(crate) io: Rc<WorkerIo>,
    /// Told of new settings.
    pub(super) reloaded: Notify,
}

/// Room for one arrival of data, beside a head that is not complete yet.
pub(crate) const ARRIVAL: usize = 64 * 1024;

impl<M: Module> Worker<M> {
    pub(crate) fn new(
        module: M,
        settings: Settings,
        largest_head: usize,
        counters: Arc<WorkerCounters>,
        (limits, share): (Limits, Option<Share<M>>),
        ring: CoreRing,
        helpers: Helpers,
    ) -> Self {
        Self {
            module: RefCell::new(module),
            helpers: RefCell::new(helpers),
            settings: RefCell::new(Rc::new(settings)),
            clock: Clock::start(),
            io: Rc::new(WorkerIo::new(ring, Arc::clone(&counters))),
            counters,
            limits,
            share,
            scratch: RefCell::new(vec![0; ARRIVAL + largest_head].into_boxed_slice()),
            h2_head: RefCell::default(),
            largest_head,
            outbox: RefCell::default(),
            spare_outboxes: RefCell::default(),
            pipe: SparePipe::default(),
            table: Table::default(),
            turns: Rc::default(),
            tls: Rc::default(),
            h3_buffers: Arc::default(),
            h3_answers: Answers::default(),
            handshake_turns: HandshakeTurns::default(),
            draining: Cell::new(false),
            hands_over: Cell::new(None),
            steering: RefCell::default(),
            ends_idle: Cell::new(false),
            reloaded: Notify::new(),
        }
    }
}
