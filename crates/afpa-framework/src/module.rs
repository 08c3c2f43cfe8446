//! What a protocol brings: state functions and the three kinds of data they work on.

use std::future::{Future, ready};

use crate::access::{Client, Receipt};
use crate::client_stream::ClientStream;
use crate::helpers::Helpers;
use crate::outbox::Outbox;

/// The time, as the engine hands it in: modules do not read clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Microseconds since the Unix epoch.
    pub unix_us: u64,
    /// Microseconds of a clock that never jumps, the same for all cores ([`crate::clock`]).
    pub steady_us: u64,
}

impl Now {
    /// Whole seconds since the Unix epoch.
    pub const fn unix(self) -> u64 {
        self.unix_us / 1_000_000
    }

    /// Whole milliseconds of the clock that never jumps.
    pub const fn steady_ms(self) -> u64 {
        self.steady_us / 1_000
    }
}

/// What *derive request* found in the data that has arrived.
#[derive(Debug)]
pub enum Derived<R> {
    /// Not enough data; what is missing decides which time-out applies.
    Incomplete(Waiting),
    /// So many bytes belong to the content of an earlier request and are done with.
    Skipped(usize),
    /// A whole request, and how many bytes of the data were its own.
    Request(R, usize),
    /// This can never become a request; the refusal is in the outbox, the connection ends.
    Refused,
}

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The first byte of a request.
    Idle,
    /// The rest of a request's head.
    Head,
    /// The rest of a request's content.
    Body,
}

/// Which time-out ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// No request arrived.
    Idle,
    /// A head did not become complete in time.
    Head,
    /// The content of a request stalled.
    Body,
}

/// Whether the connection goes on after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// Another request may follow.
    Keep,
    /// This response is the last one.
    Close,
}

/// Who answers a request that the cache cannot.
#[derive(Debug)]
pub enum Miss<P> {
    /// Nobody else is needed: the answer is in the outbox.
    Answered(Persistence),
    /// The file system: *derive uncached response*.
    Uncached(P),
    /// A server group: *derive remote response*.
    Remote(P),
    /// The user-mode server that owns the connection: *derive deferred response*.
    Deferred(P),
}

/// The way a request was to go is not part of this configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotConfigured;

/// What the thread context gives back to *send response*.
pub type Outcome<M> = Result<<M as Module>::Loaded, NotConfigured>;

/// An application protocol: the state functions of one core.
///
/// The value itself is the core's part of the module: its view of the cache, its counters, its
/// formatted date. Every core has one, and nothing else touches it, so that no state function of
/// the deferred-interrupt context takes a lock. Data that is independent of core, connection and
/// request (*global data*) is `Arc`ed inside and swapped whole; *connection data* and *request
/// data* are the types below (IBM paper, section 5).
///
/// For each request the engine calls, in the order that [`State::next`](crate::State::next)
/// allows: `derive_request`, `derive_cached_response`, on a miss `derive_miss_response`, and then
/// perhaps one of the thread-context functions followed by `finish`.
pub trait Module: Sized + 'static {
    /// What changes per connection.
    type Connection: 'static;
    /// Room on the stack that *derive request* needs, uninitialised at no cost.
    type Slots<'b>: Default;
    /// A request as it lies in the input.
    type Request<'s, 'b>
    where
        'b: 's;
    /// A request that left the deferred-interrupt context: owned.
    type Pending: 'static;
    /// What a thread found for it.
    type Loaded: 'static;

    /// A connection was accepted on the listener that the program gave this number.
    fn connected(&mut self, client: Client, listener: u32) -> Self::Connection;

    /// Data has arrived. Called again with what is left until it answers `Incomplete`.
    fn derive_request<'s, 'b>(
        &mut self,
        connection: &mut Self::Connection,
        now: Now,
        input: &'b [u8],
        slots: &'s mut Self::Slots<'b>,
        out: &mut Outbox,
    ) -> Derived<Self::Request<'s, 'b>>;

    /// Look-up by the request's key; on a hit the response is left in `out`.
    fn derive_cached_response(
        &mut self,
        connection: &mut Self::Connection,
        now: Now,
        request: &Self::Request<'_, '_>,
        out: &mut Outbox,
    ) -> Option<Persistence>;

    /// Layer-7 routing of a request that the cache did not answer.
    fn derive_miss_response(
        &mut self,
        connection: &mut Self::Connection,
        now: Now,
        request: &Self::Request<'_, '_>,
        out: &mut Outbox,
    ) -> Miss<Self::Pending>;

    /// Creates the cache object, on a helper thread.
    fn derive_uncached_response(
        &mut self,
        now: Now,
        pending: &Self::Pending,
        helpers: &Helpers,
    ) -> impl Future<Output = Self::Loaded> + 'static;

    /// Asks a server of a server group, and sends what it answers to the client. Not configured unless
    /// the module has a router.
    ///
    /// What was sent already is not in the outbox: `finish` adds what is missing, and says whether the
    /// connection goes on. Dropping the future cancels the exchange.
    fn derive_remote_response<'c, C: ClientStream>(
        &mut self,
        _now: Now,
        _pending: &mut Self::Pending,
        _client: &'c mut C,
    ) -> impl Future<Output = Outcome<Self>> + use<'c, C, Self> {
        ready(Err(NotConfigured))
    }

    /// Leaves the request to the server that owns the connection. Not configured unless the
    /// module shares connections with one.
    fn derive_deferred_response(
        &mut self,
        _pending: &Self::Pending,
    ) -> impl Future<Output = Outcome<Self>> + 'static {
        ready(Err(NotConfigured))
    }

    /// Leaves in `out` the answer that the thread context found.
    fn finish(
        &mut self,
        connection: &mut Self::Connection,
        now: Now,
        pending: Self::Pending,
        outcome: Outcome<Self>,
        out: &mut Outbox,
    ) -> Persistence;

    /// A time-out ended the connection: the last words, if any, go into `out`.
    fn timed_out(
        &mut self,
        connection: &mut Self::Connection,
        why: Timeout,
        now: Now,
        out: &mut Outbox,
    );

    /// A connection beyond the limits is about to be closed: the last words go into `out`.
    fn refuse_connection(&mut self, client: Client, now: Now, out: &mut Outbox);

    /// A response that was not sent at once has left, or `body_bytes` of its content have.
    fn sent(&mut self, receipt: &Receipt, now: Now, body_bytes: u64);

    /// The engine drains: from now on every answer is the last one of its connection.
    fn drain(&mut self);

    /// The program gave a listener up: answers on its connections are their last ones, until there are new
    /// connections on it.
    fn leave(&mut self, _listener: u32) {}

    /// Once a second: report to shared structures, hand over the access log.
    fn tick(&mut self, now: Now);

    /// Cache objects were dropped elsewhere: let go of them.
    fn release_dropped(&mut self);
}
