//! The thread context: answers that may have to wait for a disk or another server.

use std::rc::Rc;

use afpa_framework::{Event, Module, Persistence};

use super::interrupt::Deferred;
use super::remote::LentClient;
use super::{Connection, End, Walk};
use crate::transport::Transport;

impl<M: Module, T: Transport> Connection<M, T> {
    /// Has the answer found in the thread context and leaves it in the outbox. What was gathered
    /// before leaves first: it need not wait for a disk.
    pub(super) async fn thread_context(
        &mut self,
        request: Deferred<M::Pending>,
    ) -> Result<Persistence, End> {
        let mut arrived = self.worker.clock.cached_now();
        if !self.worker.outbox.borrow().is_empty() {
            self.send_response().await?;
            arrived = self.worker.clock.now();
        }
        self.worker.counters.deferred_to_threads.add(1);
        // The wait is ours, not the client's: no deadline runs.
        self.worker.table.set(self.entry, None, false);

        let mut walk = Walk::begin();
        walk.on(Event::Request);
        walk.on(Event::Miss);
        let (pending, outcome, now) = match request {
            Deferred::Uncached(pending) => {
                walk.on(Event::Uncached);
                let work = {
                    let mut module = self.worker.module.borrow_mut();
                    module.derive_uncached_response(arrived, &pending, &self.worker.helpers)
                };
                let loaded = work.await;
                (pending, Ok(loaded), self.worker.clock.now())
            }
            Deferred::Remote(mut pending) => {
                walk.on(Event::Remote);
                let worker = Rc::clone(&self.worker);
                let mut client = LentClient::new(self);
                let work = {
                    let mut module = worker.module.borrow_mut();
                    module.derive_remote_response(arrived, &mut pending, &mut client)
                };
                let outcome = work.await;
                self.unfinished = !self.input.is_empty();
                // The end of an exchange takes the time of it.
                (pending, outcome, worker.clock.cached_now())
            }
            Deferred::User(pending) => {
                walk.on(Event::Deferred);
                let work = self.worker.module.borrow_mut().derive_deferred_response(&pending);
                let outcome = work.await;
                (pending, outcome, self.worker.clock.now())
            }
        };
        walk.on(Event::Answered);

        let mut module = self.worker.module.borrow_mut();
        let mut out = self.worker.outbox.borrow_mut();
        let persistence = module.finish(&mut self.data, now, pending, outcome, &mut out);
        walk.sent(persistence);
        Ok(persistence)
    }
}
