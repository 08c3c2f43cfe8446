//! The walk of a request through the states of its module's [`Table`]: the one place that calls state functions.
//!
//! ```text
//! engine ── bytes, a loaded answer, an end of an exchange ──▶ Walk ── state functions, table ──▶ Step ──▶ engine
//! ```
//!
//! The engine enters the walk when something has come for a request: data of its client ([`Walk::arrived`]), the answer
//! that a helper thread has loaded ([`Walk::loaded`]), the end of an exchange with a server ([`Walk::exchanged`]). The
//! walk goes on until something has to be done that waits, which it returns: a [`Step`]. It does no I/O, and is the same for
//! all protocols and in all builds.
//!
//! The table is read by the compiler, row by row: a table that has no row for an event that a module may report, or that
//! leads to a state for which there is no input yet, does not compile.

use crate::clock::Now;
use crate::module::{Cached, Derived, Miss, Module, Persistence, Then, Waiting};
use crate::outbox::Outbox;
use crate::state::{Event as E, State as S};
use crate::table::Table;

/// The part of a connection that the state functions work on.
pub struct Walk<'w, M: Module> {
    /// The module of the core.
    pub module: &'w mut M,
    /// Its data of the connection.
    pub connection: &'w mut M::Connection,
    /// When the input came.
    pub now: Now,
    /// Where answers are gathered.
    pub out: &'w mut Outbox,
}

/// The next thing that the engine has to do for a request, or for a connection without one.
pub enum Step<M: Module> {
    /// Go on with *derive request* when more data has arrived.
    Receive(Waiting),
    /// Go on with *derive request* behind the data that was consumed.
    Skip,
    /// *Send response*: the refusal is in the outbox, and the connection ends.
    Refuse,
    /// *Send response*: the whole answer is in the outbox.
    Send(Persistence),
    /// *Send response*: an exchange has answered. The bytes that it has not sent yet are in the outbox.
    SendRest(Persistence),
    /// *Derive uncached response*, in a helper thread; then [`Walk::loaded`].
    Uncached(M::Uncached),
    /// *Derive remote response*, in a thread context; then [`Walk::exchanged`].
    Remote(M::Remote),
}

/// Enters the successor of a state after an event. The compiler knows which of these it is.
macro_rules! enter {
    ($state:ident, $event:ident, { $($successor:ident => $step:expr),+ $(,)? }) => {
        match const { successor::<M::Table>(S::$state, E::$event) } {
            $(S::$successor => $step,)+
            // No table leads here that compiles.
            _ => Step::Refuse,
        }
    };
}

impl<M: Module> Walk<'_, M> {
    /// Data has arrived from the client. `input` is moved behind the bytes that are done with.
    #[inline]
    pub fn arrived(self, input: &mut &[u8]) -> Step<M> {
        let Self { module, connection, now, out } = self;
        let (data, mut slots) = (*input, M::Slots::default());
        let behind = |bytes: usize| data.get(bytes..).unwrap_or_default();
        match module.derive_request(connection, now, data, &mut slots, out) {
            Derived::Incomplete(waiting) => {
                enter!(DeriveRequest, Incomplete, { DeriveRequest => Step::Receive(waiting) })
            }
            Derived::Skipped(bytes) => {
                *input = behind(bytes);
                enter!(DeriveRequest, Skipped, { DeriveRequest => Step::Skip })
            }
            Derived::Refused => enter!(DeriveRequest, Refused, { SendResponse => Step::Refuse }),
            Derived::Request(request, bytes) => {
                *input = behind(bytes);
                let walk = Walk { module, connection, now, out };
                enter!(DeriveRequest, Request, {
                    DeriveCachedResponse => walk.derive_cached_response(&request),
                })
            }
        }
    }

    /// A helper thread has loaded the answer to a request, or has found out something about its client.
    pub fn loaded(self, loaded: M::Loaded) -> Step<M> {
        let Self { module, connection, now, out } = self;
        match module.finish_uncached(connection, now, loaded, out) {
            Then::Answered(persistence) => enter!(DeriveUncachedResponse, Answered, {
                SendResponse => Step::Send(persistence),
            }),
            Then::Remote(request) => enter!(DeriveUncachedResponse, Remote, {
                DeriveRemoteResponse => Step::Remote(request),
            }),
            Then::Checked(checked) => {
                let walk = Walk { module, connection, now, out };
                enter!(DeriveUncachedResponse, Checked, {
                    DeriveCachedResponse => walk.derive_cached_response_again(checked),
                })
            }
        }
    }

    /// The exchange with a server has ended.
    pub fn exchanged(self, exchanged: M::Exchanged) -> Step<M> {
        let Self { module, connection, now, out } = self;
        match module.finish_remote(connection, now, exchanged, out) {
            Then::Answered(persistence) => enter!(DeriveRemoteResponse, Answered, {
                SendResponse => Step::SendRest(persistence),
            }),
            Then::Remote(never) => match never {},
            Then::Checked(checked) => {
                let walk = Walk { module, connection, now, out };
                enter!(DeriveRemoteResponse, Checked, {
                    DeriveCachedResponse => walk.derive_cached_response_again(checked),
                })
            }
        }
    }

    #[inline]
    fn derive_cached_response(self, request: &M::Request<'_, '_>) -> Step<M> {
        let Self { module, connection, now, out } = self;
        match module.derive_cached_response(connection, now, request, out) {
            Cached::Hit(persistence) => enter!(DeriveCachedResponse, Hit, {
                SendResponse => Step::Send(persistence),
            }),
            Cached::Miss(routed) => enter!(DeriveCachedResponse, Miss, {
                DeriveMissResponse => Self::derive_miss_response(routed, connection, out),
            }),
        }
    }

    /// *Derive cached response* once more, for a request that was kept while its client was checked.
    fn derive_cached_response_again(self, mut checked: M::Checked) -> Step<M> {
        let Self { module, connection, now, out } = self;
        let mut slots = M::Slots::default();
        match module.derive_again(connection, now, &mut checked, &mut slots, out) {
            Some(request) => Walk { module, connection, now, out }.derive_cached_response(&request),
            None => enter!(DeriveCachedResponse, Refused, { SendResponse => Step::Refuse }),
        }
    }

    fn derive_miss_response(
        routed: M::Routed<'_, '_, '_>,
        connection: &mut M::Connection,
        out: &mut Outbox,
    ) -> Step<M> {
        match M::derive_miss_response(routed, connection, out) {
            Miss::Answered(persistence) => enter!(DeriveMissResponse, Answered, {
                SendResponse => Step::Send(persistence),
            }),
            Miss::Uncached(request) => enter!(DeriveMissResponse, Uncached, {
                DeriveUncachedResponse => Step::Uncached(request),
            }),
            Miss::Remote(request) => enter!(DeriveMissResponse, Remote, {
                DeriveRemoteResponse => Step::Remote(request),
            }),
        }
    }
}

/// The state that follows a response: *derive request* of the next one, or the end of the connection.
#[inline]
pub const fn after<T: Table>(persistence: Persistence) -> S {
    match persistence {
        Persistence::Keep => const { successor::<T>(S::SendResponse, E::Sent) },
        Persistence::Close | Persistence::CloseAsAsked => {
            const { successor::<T>(S::SendResponse, E::SentLast) }
        }
    }
}

/// The successor of a state after an event that a module may report.
///
/// # Panics
/// While it is compiled, if the table has no such row, or leads to a state for which the event brings no input.
const fn successor<T: Table>(state: S, event: E) -> S {
    let Some(next) = state.next::<T>(event) else {
        panic!("a module may report an event for which the table has no row");
    };
    let has_input = match event {
        E::Incomplete | E::Skipped => matches!(next, S::DeriveRequest),
        E::Request | E::Checked => matches!(next, S::DeriveCachedResponse),
        E::Miss => matches!(next, S::DeriveMissResponse),
        E::Uncached => matches!(next, S::DeriveUncachedResponse),
        E::Remote => matches!(next, S::DeriveRemoteResponse),
        E::Refused | E::Hit | E::Answered => matches!(next, S::SendResponse),
        E::Sent => matches!(next, S::DeriveRequest | S::Closed),
        E::SentLast => matches!(next, S::Closed),
        E::Deferred => false,
    };
    assert!(has_input, "the table leads to a state for which the event brings no input");
    next
}

#[cfg(test)]
mod tests;
