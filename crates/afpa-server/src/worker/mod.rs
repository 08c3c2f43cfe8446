//! One core: its event loop, and in `shared` the state that its connections share.

mod accept;
mod admit;
mod clock;
mod command;
mod completion;
pub(crate) mod early;
mod handshake;
mod handshake_turns;
pub(crate) mod share;
mod shared;
mod table;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use afpa_framework::Module;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::MissedTickBehavior;

use crate::h3::WorkerSteering;

pub(crate) use command::Command;
use share::Share;
pub use shared::WorkerContext;
pub(crate) use shared::{ARRIVAL, Worker};

impl<M: Module> Worker<M> {
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
