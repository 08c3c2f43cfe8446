//! The deferred-interrupt context: from the arrival of data to the answers that the cache has.
//!
//! Nothing here waits, opens a file or allocates on a hit. The same three steps, on one segment,
//! are what the kernel's softirq does in the fast path.

use std::rc::Rc;

use afpa_framework::{Derived, Event, Miss, Module, Persistence, Waiting};

use super::{Connection, Walk};
use crate::transport::Transport;

/// Where a connection goes after the deferred-interrupt context. What was gathered is sent on the
/// way in any case.
pub(super) enum Next<P> {
    /// Wait for data (or look again at what is left of it).
    Receive,
    /// A thread has to find the answer.
    Thread(Deferred<P>),
    /// Nothing follows what was gathered.
    Close,
}

/// A request on its way to a thread, by the way it takes.
pub(super) enum Deferred<P> {
    Uncached(P),
    Remote(P),
    User(P),
}

impl<M: Module, T: Transport> Connection<M, T> {
    /// Derives every request in the first `arrived` bytes of the receive buffer and gathers the
    /// answers. It stops when the data or the room in the outbox ends, when this connection has had its turns, or
    /// when a request needs a thread.
    pub(super) fn interrupt_context(&mut self, arrived: usize) -> Next<M::Pending> {
        let worker = Rc::clone(&self.worker);
        let scratch = worker.scratch.borrow();
        let mut module = worker.module.borrow_mut();
        let mut out = worker.outbox.borrow_mut();
        let now = worker.clock.now();
        let mut turns_left = worker.settings.borrow().pipelined;
        let mut input = scratch.get(..arrived).unwrap_or_default();

        loop {
            if !out.takes_more() || turns_left == 0 {
                self.unfinished = !input.is_empty();
                self.wait_for(if input.is_empty() { Waiting::Idle } else { Waiting::Head }, input);
                return Next::Receive;
            }
            let mut walk = Walk::begin();
            let mut slots = M::Slots::default();
            let (request, consumed) =
                match module.derive_request(&mut self.data, now, input, &mut slots, &mut out) {
                    Derived::Incomplete(waiting) => {
                        walk.on(Event::Incomplete);
                        self.wait_for(waiting, input);
                        return Next::Receive;
                    }
                    Derived::Skipped(bytes) => {
                        input = input.get(bytes..).unwrap_or_default();
                        continue;
                    }
                    Derived::Refused => {
                        walk.on(Event::Refused);
                        return Next::Close;
                    }
                    Derived::Request(request, consumed) => (request, consumed),
                };
            walk.on(Event::Request);
            input = input.get(consumed..).unwrap_or_default();
            turns_left -= 1;

            let hit = module.derive_cached_response(&mut self.data, now, &request, &mut out);
            let persistence = match hit {
                Some(persistence) => {
                    walk.on(Event::Hit);
                    persistence
                }
                None => {
                    walk.on(Event::Miss);
                    let miss = module.derive_miss_response(&mut self.data, now, &request, &mut out);
                    let deferred = match miss {
                        Miss::Answered(persistence) => {
                            walk.on(Event::Answered);
                            Err(persistence)
                        }
                        Miss::Uncached(pending) => Ok(Deferred::Uncached(pending)),
                        Miss::Remote(pending) => Ok(Deferred::Remote(pending)),
                        Miss::Deferred(pending) => Ok(Deferred::User(pending)),
                    };
                    match deferred {
                        Err(persistence) => persistence,
                        Ok(deferred) => {
                            self.unfinished = !input.is_empty();
                            self.wait_for(Waiting::Idle, input);
                            return Next::Thread(deferred);
                        }
                    }
                }
            };
            walk.sent(persistence);
            if persistence == Persistence::Close {
                return Next::Close;
            }
        }
    }
}
