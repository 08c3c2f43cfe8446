//! The states of a request, the contexts they run in, and the table of transitions.
//!
//! This is figure 2 of the IBM paper. State functions do not know their successors: they report an
//! [`Event`], and [`State::next`] is the one table of transitions ("the layer of indirection permits
//! state functions to be reusable and reconfigurable").
//!
//! The USENIX paper adds *derive deferred response*, which leaves a request to the server that owns the
//! connection. That state is not in this table, because here AFPA owns the connection. The kernel's
//! programs have it: they pass a request up when they do not answer it (`bpf/include/afpa/conn/handover.h`).

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
    /// A whole request was understood.
    Request,
    /// The data can never be a request; the refusal is in the outbox.
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
    /// It is known now whether the client may have the answer.
    Checked,
    /// The response was sent; the connection persists.
    Sent,
    /// The response was sent (or failed), and was the last one.
    SentLast,
}

impl State {
    /// Every state, in the order of the diagram.
    pub const ALL: [State; 7] = [
        State::DeriveRequest,
        State::DeriveCachedResponse,
        State::DeriveMissResponse,
        State::DeriveUncachedResponse,
        State::DeriveRemoteResponse,
        State::SendResponse,
        State::Closed,
    ];

    /// The context this state's function runs in.
    ///
    /// *Send response* belongs to the restrictive context, because a pinned object is written there. A
    /// response that does not fit the socket buffer, or that lies in a file, continues in a thread context
    /// (the connection's own task), as in the papers.
    pub const fn context(self) -> Context {
        match self {
            State::DeriveRequest
            | State::DeriveCachedResponse
            | State::DeriveMissResponse
            | State::SendResponse
            | State::Closed => Context::DeferredInterrupt,
            State::DeriveUncachedResponse | State::DeriveRemoteResponse => Context::Thread,
        }
    }

    /// The state that follows `self` after `event`; `None` if a correct module cannot report that event here.
    pub const fn next(self, event: Event) -> Option<State> {
        use Event as E;
        use State as S;
        Some(match (self, event) {
            (S::DeriveRequest, E::Incomplete) => S::DeriveRequest,
            (S::DeriveRequest, E::Request) => S::DeriveCachedResponse,
            (S::DeriveRequest, E::Refused) => S::SendResponse,
            (S::DeriveCachedResponse, E::Hit) => S::SendResponse,
            (S::DeriveCachedResponse, E::Miss) => S::DeriveMissResponse,
            (S::DeriveMissResponse, E::Answered) => S::SendResponse,
            (S::DeriveMissResponse, E::Uncached) => S::DeriveUncachedResponse,
            (S::DeriveMissResponse, E::Remote) => S::DeriveRemoteResponse,
            (S::DeriveUncachedResponse | S::DeriveRemoteResponse, E::Answered) => S::SendResponse,
            (S::DeriveUncachedResponse, E::Remote) => S::DeriveRemoteResponse,
            (S::DeriveUncachedResponse | S::DeriveRemoteResponse, E::Checked) => {
                S::DeriveCachedResponse
            }
            (S::SendResponse, E::Sent) => S::DeriveRequest,
            (S::SendResponse, E::SentLast) => S::Closed,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: [Event; 11] = [
        Event::Incomplete,
        Event::Request,
        Event::Refused,
        Event::Hit,
        Event::Miss,
        Event::Answered,
        Event::Uncached,
        Event::Remote,
        Event::Checked,
        Event::Sent,
        Event::SentLast,
    ];

    fn successors(state: State) -> Vec<State> {
        EVENTS.iter().filter_map(|&event| state.next(event)).collect()
    }

    #[test]
    fn every_state_is_reached_from_derive_request() {
        let mut reached = vec![State::DeriveRequest];
        let mut at = 0;
        while at < reached.len() {
            for next in successors(reached[at]) {
                if !reached.contains(&next) {
                    reached.push(next);
                }
            }
            at += 1;
        }
        for state in State::ALL {
            assert!(reached.contains(&state), "{state:?} is never entered");
        }
    }

    #[test]
    fn every_state_but_closed_can_be_left_and_closed_is_final() {
        for state in State::ALL {
            assert_eq!(successors(state).is_empty(), state == State::Closed, "{state:?}");
        }
    }

    #[test]
    fn a_hit_never_leaves_the_deferred_interrupt_context() {
        let mut state = State::DeriveRequest;
        for event in [Event::Request, Event::Hit, Event::Sent] {
            assert_eq!(state.context(), Context::DeferredInterrupt, "{state:?}");
            state = state.next(event).expect("the fast path is in the table");
        }
        assert_eq!(state, State::DeriveRequest);
    }

    #[test]
    fn a_response_is_only_sent_after_it_was_derived() {
        assert_eq!(State::DeriveRequest.next(Event::Hit), None);
        assert_eq!(State::SendResponse.next(Event::Hit), None);
        assert_eq!(State::DeriveCachedResponse.next(Event::Uncached), None);
    }
}
