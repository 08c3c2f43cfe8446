//! The data of a connection.

use std::rc::Rc;

use afpa_framework::{Module, Now, Outbox, Peer, Priority, Step, Waiting};

use crate::transport::Transport;
use crate::worker::Worker;
use crate::worker::early::Early;

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
    pub(super) unfinished: bool,
    /// A response broke off, and only a reset can tell the client.
    pub(super) broken: bool,
    /// The client sends nothing more.
    pub(super) half_closed: bool,
    pub(super) waiting: Waiting,
    /// The priority of the response that is being sent.
    pub(super) priority: Priority,
    /// Bytes of it behind the part that is being sent.
    pub(super) behind: u64,
    /// Until when the client is waited for that takes a response, in steady milliseconds; `None`: it has just begun.
    pub(super) write_until_ms: Option<u64>,
    /// Bytes that may still be on their way: all that were sent, and more than any if the client was waited for.
    pub(super) in_flight: u64,
    /// Steady milliseconds at which the present head has to be complete.
    pub(super) head_deadline: u64,
    /// The client may turn out to speak HTTP/2 with prior knowledge (RFC 9113 section 3.3).
    pub(super) may_be_h2: bool,
    /// The handshake is not complete, and the bytes that have arrived are early data.
    pub(crate) early: Option<Box<Early<M>>>,
    /// The first request was derived before the connection became a task, and this comes next.
    pub(super) begun: Option<Box<Begun<M>>>,
}

/// The next thing that a connection does.
pub(super) struct Begun<M: Module>(pub(super) Next<M>);

/// Where a connection goes after the deferred-interrupt context. In any case the gathered answers are sent
/// on the way.
pub(super) enum Next<M: Module> {
    /// Wait for data, or look again at the rest of it.
    Receive,
    /// A helper thread has to load the answer, or a server has to answer.
    Thread(Step<M>),
    /// Close the connection behind the gathered answers. The client may still be sending.
    Close,
    /// Close the connection behind the gathered answers. The client has sent all that it will send.
    CloseAsAsked,
}

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

    /// As [`new`](Self::new), for a connection that begins at `now`.
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

    /// Borrows the worker's gather buffer for the time of a send. The next response gets a spare one, if any is there.
    pub(super) fn take_outbox(&self) -> Outbox {
        let spare = self.worker.spare_outboxes.borrow_mut().pop().unwrap_or_default();
        std::mem::replace(&mut self.worker.outbox.borrow_mut(), spare)
    }

    /// Gives the gather buffer back, so that the next response needs no allocation.
    pub(super) fn return_outbox(&self, mut out: Outbox) {
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

pub(crate) fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX / 2)
}
