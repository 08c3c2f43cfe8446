//! One client connection. Its loop, `serve`, reads like the state diagram.
//!
//! `receive` waits for data. In the *deferred-interrupt context*, `interrupt` derives every request in the
//! data and answers it from the cache. `send` sends the gathered answers. A request that the cache cannot
//! answer goes through the *thread context* (`thread`) first.

mod at_once;
mod early;
mod file;
mod hand_over;
mod interrupt;
mod receive;
mod remote;
mod send;
mod thread;

use std::future::{poll_fn, ready};
use std::pin::Pin;
use std::rc::Rc;

use afpa_framework::steps::after;
use afpa_framework::{
    Module, Now, Outbox, Peer, Persistence, Priority, Secured, State, Timeout, Waiting,
};
use afpa_h2::Beginning;

use crate::h2::H2;
use crate::transport::Transport;
use crate::worker::Worker;
use crate::worker::early::Early;
use interrupt::Next;
use receive::Received;

pub(crate) use remote::SHORT;
pub(crate) use send::say_last_words;

/// A connection and the data that changes per connection.
pub(crate) struct Connection<M: Module, T> {
    pub(crate) worker: Rc<Worker<M>>,
    pub(crate) transport: T,
    /// The module's connection data.
    pub(crate) data: M::Connection,
    /// Index of its entry in the worker's table of connections.
    pub(crate) entry: usize,
    /// Data that has arrived and is not part of a request yet. It is empty while the connection is idle, so
    /// that an idle connection holds no buffer.
    pub(crate) input: Vec<u8>,
    /// Whether `input` may contain a whole request, because the outbox was full before it was parsed.
    unfinished: bool,
    /// A response broke off, and only a reset can tell the client.
    broken: bool,
    /// The client sends nothing more.
    half_closed: bool,
    waiting: Waiting,
    /// The priority of the response that is being sent.
    priority: Priority,
    /// Bytes of it behind the part that is being sent.
    behind: u64,
    /// Until when the client is waited for that takes a response, in steady milliseconds; `None`: it has just begun.
    write_until_ms: Option<u64>,
    /// Bytes that may still be on their way: all that were sent, and more than any if the client was waited for.
    in_flight: u64,
    /// Steady milliseconds at which the present head has to be complete.
    head_deadline: u64,
    /// The client may turn out to speak HTTP/2 with prior knowledge (RFC 9113 section 3.3).
    may_be_h2: bool,
    /// The handshake is not complete, and the bytes that have arrived are early data.
    pub(crate) early: Option<Box<Early<M>>>,
    /// The first request was derived before the connection became a task, and this comes next.
    begun: Option<Box<Begun<M>>>,
}

/// The next thing that a connection does.
struct Begun<M: Module>(Next<M>);

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The client closed it, or it broke.
    Gone,
    /// The last response was sent; the client may still be sending.
    Finished,
    /// The last response was sent, and no bytes of the client are unread.
    AsAsked,
    /// The worker drains, or the connection was idle for too long.
    Idle,
    /// A file changed while it was being sent, or a server broke off: the response cannot be completed.
    Aborted,
    /// It goes on as one of HTTP/2.
    IsH2,
}

impl<M: Module, T: Transport> Connection<M, T> {
    /// A connection of `peer` on a listener; `input` has arrived already.
    pub(crate) fn new(
        worker: Rc<Worker<M>>,
        transport: T,
        of: (Peer, u32),
        input: Vec<u8>,
    ) -> Self {
        let now = worker.clock.now();
        Self::begun_at(now, worker, transport, of, input)
    }

    /// The same at this time.
    pub(crate) fn begun_at(
        now: Now,
        worker: Rc<Worker<M>>,
        transport: T,
        (peer, listener): (Peer, u32),
        input: Vec<u8>,
    ) -> Self {
        let data = worker.module.borrow_mut().connected(peer, listener);
        let entry = worker.table.enter(listener);
        worker.counters.open.add(1);
        let head_deadline = now.steady_ms() + millis(worker.settings.borrow().head_timeout);
        Self {
            worker,
            transport,
            data,
            entry,
            unfinished: !input.is_empty(),
            input,
            broken: false,
            half_closed: false,
            priority: Priority::default(),
            behind: 0,
            write_until_ms: None,
            in_flight: 0,
            // The first request of a new connection has the deadline of a head that has begun.
            waiting: Waiting::Head,
            head_deadline,
            may_be_h2: false,
            early: None,
            begun: None,
        }
    }

    /// The first bytes of the client tell whether it speaks HTTP/2.
    pub(crate) fn that_may_be_h2(mut self, may_be: bool) -> Self {
        self.may_be_h2 = M::TAKES_STREAMS && T::MAY_BE_H2 && may_be;
        self
    }

    /// Serves the connection until either side ends it.
    pub(crate) async fn run(mut self)
    where
        T: 'static,
    {
        let end = match self.serve().await {
            End::IsH2 => return self.go_on_as_h2().await,
            end => end,
        };
        self.end(end).await;
    }

    /// In a box, as all that few connections need: the task of a connection has the size of its longest branch. A task keeps the
    /// code of every branch, so this one is chosen outside of it, and is no part of programs where it cannot be taken.
    fn go_on_as_h2(self) -> Pin<Box<dyn Future<Output = ()>>>
    where
        T: 'static,
    {
        if M::TAKES_STREAMS && T::MAY_BE_H2 {
            Box::pin(H2::new(self).run())
        } else {
            Box::pin(ready(()))
        }
    }

    /// Serves the connection as one of HTTP/2, whose preface is still to come.
    pub(crate) async fn run_h2(self) {
        H2::new(self).run().await;
    }

    /// Closes the connection as its end demands.
    pub(crate) async fn end(mut self, end: End) {
        match end {
            End::Finished => send::linger(&mut self).await,
            End::Aborted => self.worker.counters.aborted.add(1),
            End::AsAsked | End::Idle => poll_fn(|cx| self.transport.poll_goodbye(cx)).await,
            End::Gone | End::IsH2 => {}
        }
    }

    /// The transport has agreed on this with the client.
    pub(crate) fn secured(&mut self, secured: Rc<Secured>) {
        self.worker.module.borrow_mut().secured(&mut self.data, secured);
    }

    async fn serve(&mut self) -> End {
        loop {
            let next = match self.begun.take() {
                Some(begun) => begun.0,
                None => {
                    let arrived = match self.receive().await {
                        Received::Data(arrived) => arrived,
                        Received::TimedOut(why) => return self.time_out(why).await,
                        Received::Draining => return End::Idle,
                        // The client may still want to know that nothing more comes.
                        Received::Ended if self.early.is_none() => return End::Idle,
                        Received::Ended | Received::Gone => return End::Gone,
                    };
                    if self.may_be_h2 && self.is_h2(arrived) {
                        return End::IsH2;
                    }
                    self.interrupt_context(arrived)
                }
            };
            let waited = matches!(next, Next::Thread(_));
            let persistence = match next {
                Next::Receive => Persistence::Keep,
                Next::Close => Persistence::Close,
                Next::CloseAsAsked => Persistence::CloseAsAsked,
                Next::Thread(step) => match pinned(|| self.thread_context(step)).await {
                    Ok(persistence) => persistence,
                    Err(end) => return end,
                },
            };
            if let Err(end) = self.send_response().await {
                return end;
            }
            if self.broken {
                return End::Aborted;
            }
            if after::<M::Table>(persistence) == State::DeriveRequest {
                continue;
            }
            if let Err(end) = self.finish_handshake_to_close().await {
                return end;
            }
            return match persistence {
                Persistence::CloseAsAsked if self.can_close(waited) => End::AsAsked,
                _ => End::Finished,
            };
        }
    }

    /// Whether the first bytes are for HTTP/2. They are kept then.
    fn is_h2(&mut self, arrived: usize) -> bool {
        let worker = Rc::clone(&self.worker);
        let scratch = worker.scratch.borrow();
        let input = scratch.get(..arrived).unwrap_or_default();
        let beginning = Beginning::of(input);
        if beginning == Beginning::Http2 {
            self.keep(input);
        }
        self.may_be_h2 = beginning == Beginning::Open;
        beginning == Beginning::Http2
    }

    /// Whether the connection can be closed at once without destroying a response on its way: nothing that the client
    /// has sent is unread, and no more than an initial window is in flight. A client may send more against its word, or
    /// bytes may have come while a server or thread was `waited` for; with them unread, the close resets the connection
    /// (RFC 9112, section 9.6).
    fn can_close(&self, waited: bool) -> bool {
        self.input.is_empty()
            && self.in_flight <= INITIAL_WINDOW
            && self.transport.is_drained()
            && !(waited && self.transport.has_arrived())
    }

    /// Sends the module's last answer to a client that was too slow.
    async fn time_out(&mut self, why: Timeout) -> End {
        self.worker.counters.timed_out.add(1);
        if let Some(early) = &mut self.early {
            early.time_out();
        }
        {
            let mut module = self.worker.module.borrow_mut();
            let mut out = self.worker.outbox.borrow_mut();
            let now = self.worker.clock.now();
            module.timed_out(&mut self.data, why, &self.input, now, &mut out);
        }
        let silent = self.worker.outbox.borrow().is_empty();
        match self.send_response().await {
            Ok(()) if silent => End::Idle,
            Ok(()) => End::Finished,
            Err(end) => end,
        }
    }

    /// Borrows the worker's gather buffer for the time of a send. The next response gets a spare one, if any is there.
    fn take_outbox(&self) -> Outbox {
        let spare = self.worker.spare_outboxes.borrow_mut().pop().unwrap_or_default();
        std::mem::replace(&mut self.worker.outbox.borrow_mut(), spare)
    }

    /// Gives the gather buffer back, so that the next response needs no allocation.
    fn return_outbox(&self, mut out: Outbox) {
        out.clear();
        let mut shared = self.worker.outbox.borrow_mut();
        if shared.is_empty() && shared.bytes.capacity() < out.bytes.capacity() {
            std::mem::swap(&mut *shared, &mut out);
        }
        let mut spare = self.worker.spare_outboxes.borrow_mut();
        if (1..=SPARE_SIZE).contains(&out.bytes.capacity()) && spare.len() < SPARES {
            spare.push(out);
        }
    }
}

/// Bytes that are sent at once, without waiting for an acknowledgement: ten segments (RFC 6928).
const INITIAL_WINDOW: u64 = 10 * 1460;

/// Spare gather buffers of a core at most, and the largest that is kept: 2 MB together. With readiness one is in use at
/// a time; with completion, one for each answer that waits to be handed over.
const SPARES: usize = 64;
const SPARE_SIZE: usize = 32 * 1024;

impl<M: Module, T> Drop for Connection<M, T> {
    fn drop(&mut self) {
        self.worker.table.leave(self.entry);
        self.worker.counters.open.sub(1);
    }
}

/// A future in a box, made where it stays. `Box::pin` makes it on the stack and moves it then, and one of these has the
/// size of all that it may become.
pub(crate) fn pinned<F>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::into_pin(Box::write(Box::new_uninit(), make()))
}

pub(crate) fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX / 2)
}
