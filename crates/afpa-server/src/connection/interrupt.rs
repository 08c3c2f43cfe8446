//! The deferred-interrupt context: from the arrival of data to the answers that the cache has.
//!
//! Nothing here waits, opens a file or allocates on a hit; the module may ask the kernel for a name, if that waits for
//! nothing either. In the fast path, the kernel's softirq does the same three steps on one segment.

use std::rc::Rc;

use afpa_framework::steps::after;
use afpa_framework::{Module, Now, Persistence, State, Step, Waiting, Walk};

use super::data::{Connection, Next};
use crate::transport::Transport;

impl<M: Module, T: Transport> Connection<M, T> {
    /// Derives every request in the first `arrived` bytes of the receive buffer and gathers the
    /// answers. It stops when the data or the room in the outbox ends, when this connection has had its turns, or
    /// when a request needs a thread.
    pub(super) fn interrupt_context(&mut self, arrived: usize) -> Next<M> {
        let now = self.worker.clock.now();
        self.interrupt_context_at(now, arrived)
    }

    /// As [`interrupt_context`](Self::interrupt_context), for data that has arrived at `now`.
    pub(super) fn interrupt_context_at(&mut self, now: Now, arrived: usize) -> Next<M> {
        let worker = Rc::clone(&self.worker);
        let scratch = worker.scratch.borrow();
        let mut module = worker.module.borrow_mut();
        let mut out = worker.outbox.borrow_mut();
        let mut turns_left = worker.settings.borrow().pipelined;
        let mut input = scratch.get(..arrived).unwrap_or_default();

        loop {
            if !out.takes_more() || turns_left == 0 {
                self.unfinished = !input.is_empty();
                self.wait_for(if input.is_empty() { Waiting::Idle } else { Waiting::Head }, input);
                return Next::Receive;
            }
            let connection = &mut self.data;
            let walk = Walk { module: &mut *module, connection, now, out: &mut out };
            let step = walk.arrived(&mut input);
            let persistence = match step {
                Step::Receive(waiting) => {
                    if waiting != Waiting::Idle {
                        self.transport.expects_more();
                    }
                    self.wait_for(waiting, input);
                    return Next::Receive;
                }
                Step::Refuse => return Next::Close,
                Step::Skip => continue,
                Step::Send(persistence) | Step::SendRest(persistence) => persistence,
                step => return self.leave(input, Next::Thread(step)),
            };
            turns_left -= 1;
            worker.counters.answered.add(1);
            if after::<M::Table>(persistence) == State::DeriveRequest {
                continue;
            }
            match persistence {
                // Where more has come than it would send, it has not kept its word.
                Persistence::CloseAsAsked if input.is_empty() => {
                    self.keep(input);
                    return Next::CloseAsAsked;
                }
                _ => return Next::Close,
            }
        }
    }

    /// Leaves this context for a thread; bytes that have arrived behind the request wait until it is answered.
    fn leave(&mut self, behind: &[u8], next: Next<M>) -> Next<M> {
        self.unfinished = !behind.is_empty();
        self.wait_for(Waiting::Idle, behind);
        next
    }
}
