//! The states of a request, the events that they report, and the contexts they run in.
//!
//! This is figure 2 of the IBM paper, with *derive deferred response* of the USENIX paper. State functions do not know
//! their successors: they report an [`Event`], and a [`Table`] says which state follows. [`steps`](crate::steps) walks it.

use crate::table::Table;

/// Where a state function may run.
///
/// In the papers this is a deferred interrupt (bottom half, DPC) or a kernel thread. Here the restrictive
/// context is the section of a connection that runs between the arrival of data and the write of the
/// answers, on the core's own event loop. It must not block, open a file, wait for a lock that another core
/// may hold, or allocate on a hit. States that obey these rules can also run in the kernel's softirq, where
/// the BPF verifier enforces the same rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Never blocks; may later run in softirq.
    DeferredInterrupt,
    /// May block: file system, other servers. Work items of helper threads.
    Thread,
}

/// A state of the request on a client connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Parse the data that has arrived.
    DeriveRequest,
    /// Route the request (layer 7), and look its object up in the cache.
    DeriveCachedResponse,
    /// The cache has no answer: answer from the route, or choose the state that answers.
    DeriveMissResponse,
    /// Create a cache object from the file system. If there is no file, a server group may have the answer.
    DeriveUncachedResponse,
    /// Pass the request to a server of a server group.
    DeriveRemoteResponse,
    /// Leave the request to the server that owns the connection. User mode owns its connections; the kernel's programs do
    /// not, and pass up the requests that they do not answer (`bpf/include/afpa/conn/handover.h`).
    DeriveDeferredResponse,
    /// Send the derived response.
    SendResponse,
    /// The connection ends.
    Closed,
}

/// The result of a state function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The data is not a whole request yet: send the gathered bytes, then wait for more.
    Incomplete,
    /// The data was content of an earlier request, which has its answer.
    Skipped,
    /// A whole request was understood.
    Request,
    /// The data can never be a request; the refusal is in the outbox. The kernel's programs refuse a request without one.
    Refused,
    /// The cached response is in the outbox.
    Hit,
    /// The cache has no usable object for the key.
    Miss,
    /// The answer (an error, a redirect, a loaded object) is in the outbox, or was sent.
    Answered,
    /// The file system has the answer.
    Uncached,
    /// A server group has the answer.
    Remote,
    /// It is known now whether the client may have the answer: the response is derived again, with that.
    Checked,
    /// The response cannot be sent here: it is left to the server that owns the connection.
    Deferred,
    /// The response was sent; the connection persists.
    Sent,
    /// The response was sent (or failed), and was the last one.
    SentLast,
}

impl State {
    /// Every state, in the order of the diagram.
    pub const ALL: [State; 8] = [
        State::DeriveRequest,
        State::DeriveCachedResponse,
        State::DeriveMissResponse,
        State::DeriveUncachedResponse,
        State::DeriveRemoteResponse,
        State::DeriveDeferredResponse,
        State::SendResponse,
        State::Closed,
    ];

    /// The context that this state's function runs in.
    pub const fn context<T: Table>(self) -> Context {
        let mut at = 0;
        while at < T::IN_THREAD.len() {
            if T::IN_THREAD[at] as u8 == self as u8 {
                return Context::Thread;
            }
            at += 1;
        }
        Context::DeferredInterrupt
    }

    /// The state that follows `self` after `event`; `None` if that event cannot be reported here.
    pub const fn next<T: Table>(self, event: Event) -> Option<State> {
        let mut at = 0;
        while at < T::ROWS.len() {
            let (from, on, to) = T::ROWS[at];
            if from as u8 == self as u8 && on as u8 == event as u8 {
                return Some(to);
            }
            at += 1;
        }
        None
    }
}

impl Event {
    /// Every event.
    pub const ALL: [Event; 13] = [
        Event::Incomplete,
        Event::Skipped,
        Event::Request,
        Event::Refused,
        Event::Hit,
        Event::Miss,
        Event::Answered,
        Event::Uncached,
        Event::Remote,
        Event::Checked,
        Event::Deferred,
        Event::Sent,
        Event::SentLast,
    ];
}
