//! The thread context: answers that may have to wait for a disk or another server.

use std::rc::Rc;

use afpa_framework::{Module, Now, Persistence, Step, Walk};

use super::remote::LentClient;
use super::{Connection, End};
use crate::transport::Transport;

impl<M: Module, T: Transport> Connection<M, T> {
    /// Goes through the states of the thread context until there is an answer. Bytes that an exchange has not sent to the
    /// client itself are in the outbox afterwards.
    pub(super) async fn thread_context(&mut self, mut step: Step<M>) -> Result<Persistence, End> {
        loop {
            step = match step {
                Step::Uncached(request) => self.uncached(request).await?,
                Step::Remote(request) => self.remote(request).await?,
                Step::Send(persistence) | Step::SendRest(persistence) => return Ok(persistence),
                Step::Refuse | Step::Receive(_) | Step::Skip => return Ok(Persistence::Close),
            };
        }
    }

    /// *Derive uncached response*: has a helper thread load the answer, and leaves it in the outbox. If there is no file, a
    /// server may have the answer.
    async fn uncached(&mut self, request: M::Uncached) -> Result<Step<M>, End> {
        let begun = self.enter_thread_context().await?;
        let work = {
            let mut module = self.worker.module.borrow_mut();
            module.derive_uncached_response(begun, request, &self.worker.helpers.borrow())
        };
        let loaded = work.await;
        let now = self.worker.clock.now();
        let mut module = self.worker.module.borrow_mut();
        let mut out = self.worker.outbox.borrow_mut();
        let connection = &mut self.data;
        Ok(Walk { module: &mut *module, connection, now, out: &mut out }.loaded(loaded))
    }

    /// *Derive remote response*: has a server answer.
    async fn remote(&mut self, request: M::Remote) -> Result<Step<M>, End> {
        if !M::may_go_early(&request) {
            self.finish_handshake().await?;
        }
        self.enter_thread_context().await?;
        let worker = Rc::clone(&self.worker);
        let mut client = LentClient::new(self);
        let work = {
            let mut module = worker.module.borrow_mut();
            module.derive_remote_response(request, &mut client)
        };
        let exchanged = work.await;
        let settled = client.settle().await;
        self.unfinished = !self.input.is_empty();

        // The exchange has read the clock when it ended: no need to read it again.
        let now = worker.clock.cached_now();
        let mut module = worker.module.borrow_mut();
        let mut out = worker.outbox.borrow_mut();
        let connection = &mut self.data;
        let walk = Walk { module: &mut *module, connection, now, out: &mut out };
        let step = walk.exchanged(exchanged);
        settled.inspect_err(|_| out.clear()).map(|()| step)
    }

    /// Sends the answers that were gathered before: they need not wait for a disk. Returns the time at
    /// which the work begins.
    async fn enter_thread_context(&mut self) -> Result<Now, End> {
        let mut begun = self.worker.clock.cached_now();
        if !self.worker.outbox.borrow().is_empty() {
            self.send_response().await?;
            begun = self.worker.clock.now();
        }
        self.worker.counters.left_for_thread.add(1);
        // The client waits for AFPA, not the other way round: no deadline runs.
        self.worker.table.set(self.entry, None, false);
        Ok(begun)
    }
}
