//! The tables of transitions: which state follows an event, and in which context a state's function runs.
//!
//! "State functions indirectly manage state transitions through a separately managed table. The layer of indirection
//! permits state functions to be reusable and reconfigurable" (USENIX paper, section 3.2). A table is a type of the
//! [`Module`](crate::Module): the compiler reads it, and a hit pays nothing for the indirection.
//!
//! | table | used by |
//! |---|---|
//! | [`Diagram`] | user mode |
//! | [`Threads`] | measurements of the deferred-interrupt context |
//! | [`Datagrams`] | protocols over datagrams, in user mode |
//! | [`Softirq`] | the kernel's programs; a test compares their C with it |

use crate::state::{Event as E, State as S};

/// A row: in this state, after this event, that state follows.
pub type Row = (S, E, S);

/// A table of transitions.
pub trait Table: 'static {
    /// The transitions. Each pair of state and event is in one row at most.
    const ROWS: &'static [Row];
    /// The states whose functions run in a thread context. All others run in a deferred interrupt.
    const IN_THREAD: &'static [S];
}

/// The state diagram of the papers.
///
/// *Send response* runs in a deferred interrupt, because a pinned object is written there. A response that does not fit
/// the socket buffer, or that lies in a file, continues in a thread context (the connection's own task), as in the papers.
#[derive(Clone, Copy, Debug)]
pub struct Diagram;

impl Table for Diagram {
    const ROWS: &'static [Row] = &[
        (S::DeriveRequest, E::Incomplete, S::DeriveRequest),
        (S::DeriveRequest, E::Skipped, S::DeriveRequest),
        (S::DeriveRequest, E::Request, S::DeriveCachedResponse),
        (S::DeriveRequest, E::Refused, S::SendResponse),
        (S::DeriveCachedResponse, E::Hit, S::SendResponse),
        (S::DeriveCachedResponse, E::Miss, S::DeriveMissResponse),
        // The head of a request that was kept cannot be read again, which is a defect.
        (S::DeriveCachedResponse, E::Refused, S::SendResponse),
        (S::DeriveMissResponse, E::Answered, S::SendResponse),
        (S::DeriveMissResponse, E::Uncached, S::DeriveUncachedResponse),
        (S::DeriveMissResponse, E::Remote, S::DeriveRemoteResponse),
        (S::DeriveUncachedResponse, E::Answered, S::SendResponse),
        (S::DeriveUncachedResponse, E::Remote, S::DeriveRemoteResponse),
        (S::DeriveUncachedResponse, E::Checked, S::DeriveCachedResponse),
        (S::DeriveRemoteResponse, E::Answered, S::SendResponse),
        (S::DeriveRemoteResponse, E::Checked, S::DeriveCachedResponse),
        (S::SendResponse, E::Sent, S::DeriveRequest),
        (S::SendResponse, E::SentLast, S::Closed),
    ];
    const IN_THREAD: &'static [S] = &[S::DeriveUncachedResponse, S::DeriveRemoteResponse];
}

/// The same order, with every answer sent in a thread context: the papers' "version of AFPA that instead serves all
/// responses using kernel threads" (USENIX paper, section 5). It exists for measurements.
#[derive(Clone, Copy, Debug)]
pub struct Threads;

impl Table for Threads {
    const ROWS: &'static [Row] = Diagram::ROWS;
    const IN_THREAD: &'static [S] =
        &[S::DeriveUncachedResponse, S::DeriveRemoteResponse, S::SendResponse];
}

/// The table of the kernel's programs, all of whose states run in softirq. They are written in C (`bpf/programs/`).
///
/// User mode owns every connection of a request that the kernel does not answer. When its response has ended,
/// the connection comes back; if it was the last one, or the connection is bypassed, it does not.
#[derive(Clone, Copy, Debug)]
pub struct Softirq;

impl Table for Softirq {
    const ROWS: &'static [Row] = &[
        (S::DeriveRequest, E::Incomplete, S::DeriveDeferredResponse),
        (S::DeriveRequest, E::Request, S::DeriveCachedResponse),
        (S::DeriveRequest, E::Refused, S::DeriveDeferredResponse),
        (S::DeriveCachedResponse, E::Hit, S::SendResponse),
        (S::DeriveCachedResponse, E::Miss, S::DeriveDeferredResponse),
        (S::DeriveDeferredResponse, E::Sent, S::DeriveRequest),
        (S::DeriveDeferredResponse, E::SentLast, S::Closed),
        (S::SendResponse, E::Deferred, S::DeriveDeferredResponse),
        (S::SendResponse, E::Sent, S::DeriveRequest),
        (S::SendResponse, E::SentLast, S::Closed),
    ];
    const IN_THREAD: &'static [S] = &[];
}

/// The table of protocols over datagrams in user mode. A datagram that is not answered is left to the sender, who asks again.
#[derive(Clone, Copy, Debug)]
pub struct Datagrams;

impl Table for Datagrams {
    const ROWS: &'static [Row] = &[
        (S::DeriveRequest, E::Request, S::DeriveCachedResponse),
        (S::DeriveRequest, E::Refused, S::SendResponse),
        (S::DeriveRequest, E::Deferred, S::DeriveDeferredResponse),
        (S::DeriveCachedResponse, E::Hit, S::SendResponse),
        (S::DeriveCachedResponse, E::Miss, S::DeriveDeferredResponse),
        (S::DeriveDeferredResponse, E::Sent, S::DeriveRequest),
        (S::SendResponse, E::Sent, S::DeriveRequest),
    ];
    const IN_THREAD: &'static [S] = &[];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Context;

    fn successors<T: Table>(state: S) -> Vec<S> {
        E::ALL.iter().filter_map(|event| state.next::<T>(*event)).collect()
    }

    fn reached<T: Table>() -> Vec<S> {
        let mut reached = vec![S::DeriveRequest];
        let mut at = 0;
        while at < reached.len() {
            for next in successors::<T>(reached[at]) {
                if !reached.contains(&next) {
                    reached.push(next);
                }
            }
            at += 1;
        }
        reached
    }

    fn check<T: Table>(not_in_it: &[S]) {
        let reached = reached::<T>();
        for state in S::ALL {
            assert_eq!(
                reached.contains(&state),
                !not_in_it.contains(&state),
                "{state:?} is entered"
            );
            let is_final = state == S::Closed || not_in_it.contains(&state);
            assert_eq!(successors::<T>(state).is_empty(), is_final, "{state:?} is left");
        }
        for (at, (state, event, _)) in T::ROWS.iter().enumerate() {
            let same = |row: &Row| (row.0, row.1) == (*state, *event);
            assert_eq!(
                T::ROWS.iter().position(same),
                Some(at),
                "{event:?} in {state:?} has two rows"
            );
        }
        for state in T::IN_THREAD {
            assert!(reached.contains(state), "{state:?} is not in the table");
        }
    }

    #[test]
    fn every_state_of_a_table_is_entered_and_every_one_but_closed_is_left() {
        check::<Diagram>(&[S::DeriveDeferredResponse]);
        check::<Threads>(&[S::DeriveDeferredResponse]);
        check::<Softirq>(&[
            S::DeriveMissResponse,
            S::DeriveUncachedResponse,
            S::DeriveRemoteResponse,
        ]);
    }

    #[test]
    fn a_hit_never_leaves_the_deferred_interrupt_context() {
        fn hit<T: Table>() -> Vec<Context> {
            let mut state = S::DeriveRequest;
            let mut contexts = Vec::new();
            for event in [E::Request, E::Hit, E::Sent] {
                contexts.push(state.context::<T>());
                state = state.next::<T>(event).expect("a hit is in every table");
            }
            assert_eq!(state, S::DeriveRequest);
            contexts
        }
        assert_eq!(hit::<Diagram>(), [Context::DeferredInterrupt; 3]);
        assert_eq!(hit::<Softirq>(), [Context::DeferredInterrupt; 3]);
        let [.., sends] = hit::<Threads>()[..] else { panic!("three states") };
        assert_eq!(sends, Context::Thread);
    }

    #[test]
    fn a_response_is_only_sent_after_it_was_derived() {
        assert_eq!(S::DeriveRequest.next::<Diagram>(E::Hit), None);
        assert_eq!(S::SendResponse.next::<Diagram>(E::Hit), None);
        assert_eq!(S::DeriveCachedResponse.next::<Diagram>(E::Uncached), None);
    }
}
