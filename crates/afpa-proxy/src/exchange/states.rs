//! The states of a split connection's other half, the connection to a server. *Derive remote response* "expands to an alternate
//! state machine for managing connections to other Web servers" (USENIX paper, section 3.2).
//!
//! Each state is a variant with the data that it needs, so no state can be entered too early. A state function
//! reports an event and does not know its successor; [`Event::leads_to`] is the table. The states of the client's connection are
//! in `afpa_framework::state`.
//!
//! | state | reports |
//! |---|---|
//! | select server | a server, or that the exchange ends |
//! | reach server | a connection, a fault, or that the exchange ends |
//! | relay | a fault, or that the exchange ends: the response was sent, or broke off |
//! | judge fault | that another server may be asked, or that the exchange ends |

use super::failure::Fault;
use super::job::End;

/// A state; `L` is the lease of a server, `S` a connection to it.
#[derive(Debug)]
pub(super) enum State<L, S> {
    /// Select a server of the group, and wait for one if none has room.
    SelectServer,
    /// Take a connection to the server, or make one.
    ReachServer(L),
    /// Send the request and pass the response on, at the same time; then put the connection away.
    Relay(L, Reached<S>),
    /// The client has no byte of a final response: may another server be asked?
    JudgeFault(L, Fault),
    /// The client's connection goes on with *send response*.
    Ended(End),
}

/// A connection to a server, and whether it was there before.
#[derive(Debug)]
pub(super) struct Reached<S> {
    pub(super) stream: S,
    pub(super) was_there: bool,
}

/// The result of a state function.
#[derive(Debug)]
pub(super) enum Event<L, S> {
    /// A server was selected.
    Selected(L),
    /// There is a connection to it.
    Reached(L, Reached<S>),
    /// The server did not answer.
    Failed(L, Fault),
    /// Another server may be asked, or the same one again.
    Again,
    /// The exchange is over.
    Ended(End),
}

impl<L, S> Event<L, S> {
    /// The table: the state that follows.
    pub(super) fn leads_to(self) -> State<L, S> {
        match self {
            Event::Selected(lease) => State::ReachServer(lease),
            Event::Reached(lease, reached) => State::Relay(lease, reached),
            Event::Failed(lease, fault) => State::JudgeFault(lease, fault),
            Event::Again => State::SelectServer,
            Event::Ended(end) => State::Ended(end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::failure::Failure;
    use super::*;
    use crate::select::AttemptOutcome;

    #[test]
    fn an_attempt_goes_from_a_server_to_its_connection_to_its_response() {
        let selected: Event<&str, &str> = Event::Selected("lease");
        let State::ReachServer(lease) = selected.leads_to() else { panic!("it is reached first") };
        let reached = Reached { stream: "connection", was_there: true };
        let reached = Event::Reached(lease, reached);
        let State::Relay(lease, reached) = reached.leads_to() else { panic!("then it is asked") };
        assert_eq!((lease, reached.stream, reached.was_there), ("lease", "connection", true));
        let ended: Event<&str, &str> = Event::Ended(End::ClientGone);
        assert!(matches!(ended.leads_to(), State::Ended(End::ClientGone)));
    }

    #[test]
    fn a_fault_is_judged_before_another_server_is_selected() {
        let fault = Fault::of_server(Failure::Reset, AttemptOutcome::Reset);
        let failed: Event<&str, &str> = Event::Failed("lease", fault);
        assert!(matches!(failed.leads_to(), State::JudgeFault("lease", _)));
        assert!(matches!(Event::<&str, &str>::Again.leads_to(), State::SelectServer));
    }
}
