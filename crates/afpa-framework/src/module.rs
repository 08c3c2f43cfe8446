//! The interface of a protocol: state functions, and the three kinds of data that they work on.

use std::convert::Infallible;
use std::future::Future;
use std::rc::Rc;

use crate::client_stream::ClientStream;
use crate::clock::Now;
use crate::helpers::Helpers;
use crate::outbox::{Outbox, Receipt};
use crate::peer::{Client, Peer, Secured};
use crate::table::Table;

/// The result of *derive request* for the data that has arrived.
#[derive(Debug)]
pub enum Derived<R> {
    /// Not enough data; the missing part decides which time-out applies.
    Incomplete(Waiting),
    /// So many bytes belong to the content of an earlier request and were skipped.
    Skipped(usize),
    /// A whole request, and how many bytes of the data were its own.
    Request(R, usize),
    /// The data can never become a request. The refusal is in the outbox, and the connection ends.
    Refused,
}

/// The input that a connection waits for.
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
    /// This response is the last one. The client may not know that yet, and may still be sending.
    Close,
    /// This response is the last one, and the client sends nothing behind the request that it answers.
    CloseAsAsked,
}

/// The result of *derive cached response*.
#[derive(Debug)]
pub enum Cached<R> {
    /// The cache has the response, which is in the outbox now.
    Hit(Persistence),
    /// The cache has no usable object: *derive miss response* goes on with the routed request.
    Miss(R),
}

/// Which state answers a request that the cache cannot answer.
#[derive(Debug)]
pub enum Miss<U, R> {
    /// No further state: the answer is in the outbox already.
    Answered(Persistence),
    /// *Derive uncached response*, from the file system.
    Uncached(U),
    /// *Derive remote response*, by a server group.
    Remote(R),
}

/// The result of a state that may have to ask a server.
#[derive(Debug)]
pub enum Finished<R> {
    /// The answer is in the outbox.
    Answered(Persistence),
    /// There is no file: *derive remote response*, by a server group.
    Remote(R),
}

/// The result of a state of the thread context.
#[derive(Debug)]
pub enum Then<R, C> {
    /// The answer is in the outbox, or was sent.
    Answered(Persistence),
    /// *Derive remote response*, by a server group.
    Remote(R),
    /// The state has answered a question about the client, not the request: *derive cached response* again, with what is
    /// known now. Nothing was sent, and the content of the request waits where it was.
    Checked(C),
}

impl<R, C> From<Finished<R>> for Then<R, C> {
    fn from(finished: Finished<R>) -> Self {
        match finished {
            Finished::Answered(persistence) => Then::Answered(persistence),
            Finished::Remote(request) => Then::Remote(request),
        }
    }
}

/// The parts of a protocol that do not depend on how its requests come: as a stream of bytes ([`Module`]), or one in each
/// datagram ([`DatagramModule`](crate::DatagramModule)).
pub trait Protocol: Sized + 'static {
    /// The order of the states, and the contexts that they run in.
    type Table: Table;

    /// The engine drains: from now on every answer is the last one on its connection.
    fn drain(&mut self) {}

    /// Called once a second, to report to shared structures and to hand over the access log.
    fn tick(&mut self, _: Now) {}
}

/// An application protocol over streams of bytes: the state functions of one core.
///
/// The value itself is the core's part of the module: its view of the cache, its counters, its
/// formatted date. Each core has its own value, which no other thread uses, so no state function of the
/// deferred-interrupt context takes a lock. Data that is independent of core, connection and request (*global
/// data*) is in an `Arc` inside and replaced as a whole; *connection data* and *request data* are the types
/// below (IBM paper, section 5).
///
/// A [`Walk`](crate::steps::Walk) calls the state functions, in the order of the module's [`Table`]; they do not know it.
/// A state of the thread context has two functions: one begins it, the other takes its result. A module that has no
/// requests of a kind says so with [`Infallible`] as the type.
pub trait Module: Protocol {
    /// The data of one connection.
    type Connection: 'static;
    /// Room on the stack that *derive request* needs, uninitialised at no cost.
    type Slots<'b>: Default;
    /// A request as it lies in the input.
    type Request<'s, 'b>
    where
        'b: 's;
    /// A request that was routed and is not in the cache. It borrows the module, so that nothing that
    /// was found out about the request has to be looked up again.
    type Routed<'m, 's, 'b>
    where
        Self: 'm,
        'b: 's,
        's: 'm;
    /// A request that goes to a helper thread, which loads the answer. It owns its bytes.
    type Uncached: 'static;
    /// The answer that the helper thread found for it, with the request.
    type Loaded: 'static;
    /// A request that a server of a server group answers. It owns its bytes.
    type Remote: 'static;
    /// How the exchange with the server ended, with the request.
    type Exchanged: 'static;
    /// A request whose response is derived again, with what a state of the thread context has found out about the client.
    type Checked: 'static;

    /// Whether its connections may be of TLS. For a module without them, the engine's code for them is left out.
    const TAKES_TLS: bool = true;

    /// Whether its requests may come over streams (`has_streams`); likewise.
    const TAKES_STREAMS: bool = true;

    /// The answer to a client that sends plain bytes where a handshake of TLS is due.
    const TO_PLAIN_CLIENTS: &'static [u8] = b"";

    /// A connection was accepted on the listener that the program gave this number.
    fn connected(&mut self, peer: Peer, listener: u32) -> Self::Connection;

    /// The connection, which has just been accepted, is one of TLS. This is called again when the handshake of a client that
    /// has sent early data is complete.
    fn secured(&mut self, _: &mut Self::Connection, _: Rc<Secured>) {}

    /// Whether a server may be asked this before the handshake is complete. If not, the engine waits.
    fn may_go_early(_: &Self::Remote) -> bool {
        false
    }

    /// Whether a server may be asked afterwards, for example if the file system has no answer. Then the engine keeps the content of the request.
    fn may_need_server(_: &Self::Uncached) -> bool {
        false
    }

    /// The requests of this connection come over streams, several at a time. Each one is given to `derive_request` alone,
    /// with its head in the form of a connection for one request at a time: the engine itself knows where its content ends,
    /// and ends the connection. A module that tells its answers apart by the protocol remembers it.
    fn has_streams(&mut self, _connection: &mut Self::Connection) {}

    /// Data has arrived. This is called again with the rest of the data until it returns `Incomplete`.
    fn derive_request<'s, 'b>(
        &mut self,
        connection: &mut Self::Connection,
        now: Now,
        input: &'b [u8],
        slots: &'s mut Self::Slots<'b>,
        out: &mut Outbox,
    ) -> Derived<Self::Request<'s, 'b>>;

    /// Routes the request, which gives the key of its object, and looks that up. On a hit the response
    /// is left in `out`.
    fn derive_cached_response<'m, 's, 'b>(
        &'m mut self,
        connection: &mut Self::Connection,
        now: Now,
        request: &'m Self::Request<'s, 'b>,
        out: &mut Outbox,
    ) -> Cached<Self::Routed<'m, 's, 'b>>
    where
        'b: 's,
        's: 'm;

    /// Sends a routed request on to where it is answered, or answers it in `out`.
    fn derive_miss_response(
        routed: Self::Routed<'_, '_, '_>,
        connection: &mut Self::Connection,
        out: &mut Outbox,
    ) -> Miss<Self::Uncached, Self::Remote>;

    /// Creates the cache object, on a helper thread.
    fn derive_uncached_response(
        &mut self,
        now: Now,
        request: Self::Uncached,
        helpers: &Helpers,
    ) -> impl Future<Output = Self::Loaded> + 'static;

    /// Leaves the answer that a helper thread found in `out`, or sends the request on.
    fn finish_uncached(
        &mut self,
        connection: &mut Self::Connection,
        now: Now,
        loaded: Self::Loaded,
        out: &mut Outbox,
    ) -> Then<Self::Remote, Self::Checked>;

    /// Asks a server of a server group, and sends its answer to the client. Dropping the future cancels the exchange.
    fn derive_remote_response<'c, C: ClientStream>(
        &mut self,
        request: Self::Remote,
        client: &'c mut C,
    ) -> impl Future<Output = Self::Exchanged> + use<'c, C, Self>;

    /// Leaves in `out` the bytes that the exchange has not sent yet, and says whether the connection goes on; or has the
    /// response derived again.
    fn finish_remote(
        &mut self,
        connection: &mut Self::Connection,
        now: Now,
        exchanged: Self::Exchanged,
        out: &mut Outbox,
    ) -> Then<Infallible, Self::Checked>;

    /// Reads a request that was kept again, for *derive cached response*. `None`: it cannot be read, which is a defect; the
    /// refusal is in `out`.
    fn derive_again<'s, 'b>(
        &mut self,
        connection: &mut Self::Connection,
        now: Now,
        checked: &'b mut Self::Checked,
        slots: &'s mut Self::Slots<'b>,
        out: &mut Outbox,
    ) -> Option<Self::Request<'s, 'b>>;

    /// A time-out ends the connection. A last answer, if there is one, goes into `out`. `input` is the data that has
    /// arrived and is no request yet.
    fn timed_out(
        &mut self,
        connection: &mut Self::Connection,
        why: Timeout,
        input: &[u8],
        now: Now,
        out: &mut Outbox,
    );

    /// A request that is none by the rules of its protocol has its stream reset, and gets no answer. `said`: the readable part of
    /// its head, as the module reads heads.
    fn malformed(&mut self, _connection: &mut Self::Connection, _said: &[u8], _now: Now) {}

    /// A connection beyond the limits is about to be closed. Its only answer goes into `out`.
    fn refuse_connection(&mut self, client: Client, now: Now, out: &mut Outbox);

    /// A response that was not sent at once has been sent, or at least `body_bytes` of its content.
    fn sent(&mut self, receipt: &Receipt, now: Now, body_bytes: u64);

    /// The program gave a listener up: the next answer on each of its connections is the last one, until the
    /// listener gets new connections.
    fn leave(&mut self, _listener: u32) {}

    /// Cache objects were dropped by other threads: release them.
    fn release_dropped(&mut self);
}
