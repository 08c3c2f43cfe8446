//! One core: its event loop, and the state that its connections share.

mod accept;
mod admit;
mod clock;
mod command;
mod completion;
pub(crate) mod early;
pub(crate) mod handshake;
pub(crate) mod share;
mod table;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use afpa_framework::{Helpers, Module, Outbox};
use afpa_ring::CoreRing;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::MissedTickBehavior;

use crate::counters::WorkerCounters;
use crate::h3::{Answers, Buffers, WorkerSteering};
use crate::io::WorkerIo;
use crate::limits::Limits;
use crate::pipe::SparePipe;
use crate::settings::Settings;
use crate::transport::TlsBuffers;
use crate::turns::Turns;

pub(crate) use clock::Clock;
pub(crate) use command::Command;
use handshake::HandshakeTurns;
use share::Share;
pub(crate) use table::Table;

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
    reloaded: Notify,
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

    /// Runs the core: executes commands, sweeps deadlines, releases dropped objects.
    pub(crate) async fn run(
        self: Rc<Self>,
        mut commands: UnboundedReceiver<Command<M>>,
        dropped: Arc<Notify>,
    ) {
        if let Some(ring) = self.io.ring() {
            tokio::task::spawn_local(completion::drive(ring, Rc::clone(&self.io)));
            tokio::task::spawn_local(completion::choose(Rc::clone(&self)));
        }
        let mut accepting = accept::Accepting::default();
        self.turns.set_round(self.settings.borrow().long_sends);
        let mut sweep = tokio::time::interval(self.sweep_interval());
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut orders_end = false;
        loop {
            tokio::select! {
                command = commands.recv(), if !orders_end => match command {
                    Some(Command::Listen(id, sockets, settings)) => {
                        accepting.start(&self, id, sockets, settings);
                    }
                    Some(Command::Steer(part)) => {
                        *self.steering.borrow_mut() = Some(WorkerSteering::begin(*part));
                    }
                    Some(Command::Relisten(id, settings)) => accepting.set(id, settings),
                    Some(Command::Take(accepted)) => accept::take_over(&self, *accepted),
                    Some(Command::Unlisten(id)) => {
                        if let Some(listener) = accepting.stop(id).await {
                            self.module.borrow_mut().leave(listener);
                            self.table.give_up(listener);
                        }
                    }
                    Some(Command::Reload(apply, settings, helpers)) => {
                        apply(&mut self.module.borrow_mut());
                        if let Some(helpers) = helpers {
                            self.helpers.replace(helpers);
                        }
                        self.turns.set_round(settings.long_sends);
                        *self.settings.borrow_mut() = Rc::from(settings);
                        self.reloaded.notify_one();
                        sweep = tokio::time::interval(self.sweep_interval());
                    }
                    Some(Command::Drain(idle)) => {
                        // Only the next process gives connections that wait time: it has the sockets.
                        self.hands_over.set((!idle.is_zero()).then_some(idle));
                        accepting.stop_all().await;
                        self.draining.set(true);
                        self.module.borrow_mut().drain();
                        tokio::task::spawn_local(Rc::clone(&self).end_idle(idle));
                    }
                    None if self.draining.get() => orders_end = true,
                    Some(Command::Stop) | None => break,
                },
                () = self.turns.next_round(|| self.clock.now().steady_ms()) => {
                    self.counters.waits.add(self.turns.take_waits());
                }
                () = dropped.notified() => self.module.borrow_mut().release_dropped(),
                _ = sweep.tick() => {
                    self.on_tick();
                    // An order to stop would not arrive any more.
                    if orders_end && self.share.as_ref().is_some_and(Share::stops) {
                        break;
                    }
                }
            }
            if self.draining.get() && self.table.is_empty() {
                if orders_end || self.share.is_none() {
                    break;
                }
                // Another worker may have passed a connection on, which is among the commands that are still to come.
                commands.close();
            }
        }
        self.module.borrow_mut().tick(self.clock.now());
    }

    /// Ends the connections that wait for a request when this time is over. All others end with their next response.
    async fn end_idle(self: Rc<Self>, patience: Duration) {
        if !patience.is_zero() {
            tokio::time::sleep(patience).await;
        }
        self.ends_idle.set(true);
        self.table.wake_idle();
    }

    fn on_tick(&self) {
        self.counters.ticks.add(1);
        let now = self.clock.now();
        self.table.expire(now.steady_ms());
        if self.clock.new_second() {
            self.module.borrow_mut().tick(now);
        }
    }

    /// How often the core sweeps: time-outs are found by looking at all connections periodically. A request
    /// then costs one store instead of one timer. The shortest time-out decides the period.
    fn sweep_interval(&self) -> Duration {
        let settings = self.settings.borrow();
        let shortest = [
            settings.head_timeout,
            settings.body_timeout,
            settings.idle_timeout,
            settings.write_timeout,
            settings.handshake_timeout,
        ]
        .into_iter()
        .chain(settings.remote_timeout)
        .min()
        .unwrap_or_default();
        (shortest / 8).clamp(Duration::from_millis(20), Duration::from_millis(500))
    }
}
