//! The state functions of HTTP: the module that the engine runs.

mod cached;
mod data;
mod fallback;
mod kept;
mod miss;
mod peer;
mod question;
mod skip;

use std::cell::{Cell, OnceCell};
use std::convert::Infallible;
use std::future::Future;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use crate::access::{AccessSink, KeptRecord};
use afpa_cache::{Millis, View};
use afpa_framework::{
    Cached, Client, ClientStream, Derived, Diagram, Helpers, Miss, Module, Now, Outbox, Peer,
    Protocol, Receipt, Secured, Table, Then, Timeout, Waiting,
};
use afpa_http::{
    BodyLength, FieldSlots, Status, Version, body::BodySkipper, request, request::Said,
};
use afpa_proxy::exchange;
use afpa_router::ListenerId;
use afpa_shared_cache::{KeyRoom, StoredResponse};

use crate::counters::HttpCounters;
use crate::global::Global;
use crate::header::HttpHeader;
use crate::known_scripts::KnownScripts;
use crate::learnt::CheckedRequest;
use crate::marker::Marker;
use crate::remote::{ExchangedRequest, Remote};
use crate::respond::Responder;
use crate::route::PathRoom;
use crate::scope_stats::ScopeTable;
use crate::script::Script;
use crate::uncached::{Work, Worked};

use data::Again;
pub use data::{HttpConnection, HttpRequest};
pub use miss::Missed;
use skip::{BrokenBody, Skipped, skip};

/// The HTTP module of one core, whose states have the order of a table.
pub struct Http<T = Diagram> {
    table: PhantomData<T>,
    global: Arc<Global>,
    /// This core's view of the cache that all roots share.
    view: Option<View<HttpHeader>>,
    /// This core's view of the answers of servers that are kept.
    responses: Option<View<StoredResponse>>,
    keys: KeyRoom,
    responder: Responder,
    /// This core's counters of sites and request sets.
    scopes: Arc<ScopeTable>,
    wake: Arc<dyn Fn() + Send + Sync>,
    /// The state that exchanges with servers share.
    core: Rc<exchange::Core>,
    /// Listeners that the program gave up: the next answer on their connections is the last one.
    left: Vec<ListenerId>,
    paths: PathRoom,
    /// For the path of a request that falls back, as servers get it.
    spelled: Vec<u8>,
    /// The script that a request leads to.
    script: Script,
    known_scripts: KnownScripts,
    /// The result of the TLS handshake, on the connection whose request is being answered.
    tls: Option<Rc<Secured>>,
    /// Makes the marks of requests, and has those of that one.
    marker: Marker,
}

impl<T: Table> Http<T> {
    /// The module of a core, which has these connections to servers. `wake` has the engine call
    /// [`Module::release_dropped`] soon.
    pub fn new(
        global: Arc<Global>,
        counters: Arc<HttpCounters>,
        sink: Box<dyn AccessSink>,
        core: exchange::Core,
        wake: Arc<dyn Fn() + Send + Sync>,
    ) -> Self {
        let scopes = Arc::new(global.scopes(&counters.scopes()));
        counters.set_scopes(&scopes);
        Self {
            table: PhantomData,
            view: global.view(&wake),
            responses: global.response_view(&wake),
            keys: KeyRoom::default(),
            global,
            scopes,
            responder: Responder::new(counters, sink),
            wake,
            core: Rc::new(core),
            left: Vec::new(),
            paths: PathRoom::default(),
            spelled: Vec::new(),
            script: Script::default(),
            known_scripts: KnownScripts::default(),
            tls: None,
            marker: Marker::new(),
        }
    }

    /// Serves from new global data from the next request on. Requests in flight keep the old data.
    pub fn adopt(&mut self, global: Arc<Global>) {
        self.scopes = Arc::new(global.scopes(&self.scopes));
        self.responder.counters.set_scopes(&self.scopes);
        self.global = global;
        self.view = self.global.view(&self.wake);
        self.responses = self.global.response_view(&self.wake);
    }

    /// Sends the records of answered requests to another sink from now on.
    pub fn log_to(&mut self, sink: Box<dyn AccessSink>) {
        self.responder.sink = sink;
    }
}

/// The age of objects is measured by the steady clock, because the wall clock may be set back.
pub(crate) fn steady(now: Now) -> Millis {
    Millis(now.steady_ms())
}

impl<T: Table> Protocol for Http<T> {
    type Table = T;

    fn drain(&mut self) {
        self.responder.draining = true;
        self.core.draining.set(true);
        self.core.pool.clear();
    }

    fn tick(&mut self, now: Now) {
        if let Some(view) = &mut self.view {
            view.flush_touches();
        }
        if let Some(view) = &mut self.responses {
            view.flush_touches();
        }
        self.core.pool.tick(now.steady_ms());
        self.responder.sink.flush();
    }
}

impl<T: Table> Module for Http<T> {
    const TO_PLAIN_CLIENTS: &'static [u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 46\r\nConnection: close\r\n\r\nThis port speaks TLS: the URL begins https://\n";

    type Connection = HttpConnection;
    type Slots<'b> = FieldSlots<'b>;
    type Request<'s, 'b>
        = HttpRequest<'s, 'b>
    where
        'b: 's;
    type Routed<'m, 's, 'b>
        = Missed<'m, 's, 'b>
    where
        'b: 's,
        's: 'm;
    type Uncached = Work;
    type Loaded = Worked;
    type Remote = Remote;
    type Exchanged = ExchangedRequest;
    type Checked = CheckedRequest;

    fn connected(&mut self, Peer { client, port }: Peer, listener: u32) -> HttpConnection {
        let listener = ListenerId(listener);
        if !self.left.is_empty() {
            self.left.retain(|left| *left != listener);
        }
        let (skipping, permit, tls) = (None, None, None);
        HttpConnection { client, port, listener, skipping, permit, tls, has_streams: false }
    }

    fn secured(&mut self, connection: &mut HttpConnection, secured: Rc<Secured>) {
        connection.tls = Some(secured);
    }

    fn may_go_early(request: &Remote) -> bool {
        request.is_early
    }

    fn may_need_server(request: &Work) -> bool {
        request.may_need_server()
    }

    fn has_streams(&mut self, connection: &mut HttpConnection) {
        connection.has_streams = true;
    }

    fn derive_request<'s, 'b>(
        &mut self,
        connection: &mut HttpConnection,
        now: Now,
        input: &'b [u8],
        slots: &'s mut FieldSlots<'b>,
        out: &mut Outbox,
    ) -> Derived<HttpRequest<'s, 'b>> {
        if let Some(skipper) = &mut connection.skipping {
            return match skip(skipper, input) {
                Ok(Skipped::More) => Derived::Incomplete(Waiting::Body),
                Ok(Skipped::Some(bytes)) => Derived::Skipped(bytes),
                Ok(Skipped::Last(bytes)) => {
                    connection.skipping = None;
                    Derived::Skipped(bytes)
                }
                // The request of this content has its answer already (I3 of docs/rules).
                Err(BrokenBody) => Derived::Refused,
            };
        }
        if input.is_empty() {
            return Derived::Incomplete(Waiting::Idle);
        }
        match request::parse(input, slots, &self.global.limits) {
            Ok(None) => Derived::Incomplete(Waiting::Head),
            Ok(Some(mut parsed)) => {
                let consumed = parsed.head_len;
                let limit = self.global.body_limit;
                // With a router, the content may be for a server: routing decides.
                if self.global.router.is_none() && self.global.leaves_content(&parsed) {
                    let status = Status::CONTENT_TOO_LARGE;
                    self.responder.refuse(connection.client, Said::of(&parsed), status, now, out);
                    return Derived::Refused;
                }
                if let Some(version) = connection.version() {
                    parsed.version = version;
                }
                if !connection.has_streams && parsed.body != BodyLength::None {
                    connection.skipping = Some(BodySkipper::new(parsed.body, limit));
                }
                let head = input.get(..consumed).unwrap_or_default();
                let (again, granted) = (Cell::new(None), OnceCell::new());
                Derived::Request(HttpRequest { parsed, head, again, granted }, consumed)
            }
            Err(refusal) => {
                let mut said = Said::in_head(input);
                if let Some(version) = connection.version().filter(|_| said != Said::NOTHING) {
                    said.version = version.name();
                }
                let edits = self.global.edits_of_refusal(connection.listener, said.host);
                let (client, status) = (connection.client, refusal.status());
                self.responder.refuse_with(client, (said, edits), status, now, out);
                Derived::Refused
            }
        }
    }

    fn derive_cached_response<'m, 's, 'b>(
        &'m mut self,
        connection: &mut HttpConnection,
        now: Now,
        request: &'m HttpRequest<'s, 'b>,
        out: &mut Outbox,
    ) -> Cached<Missed<'m, 's, 'b>>
    where
        'b: 's,
        's: 'm,
    {
        if self.global.peers.listener == Some(connection.listener) {
            return self.derive_for_peer(connection, now, request, out);
        }
        self.derive(connection, now, request, out)
    }

    fn derive_miss_response(
        missed: Missed<'_, '_, '_>,
        connection: &mut HttpConnection,
        out: &mut Outbox,
    ) -> Miss<Work, Remote> {
        missed.respond(connection, out)
    }

    fn derive_uncached_response(
        &mut self,
        now: Now,
        request: Work,
        helpers: &Helpers,
    ) -> impl Future<Output = Worked> + 'static {
        let mut helpers = helpers.clone();
        if let Work::Load(uncached) = &request {
            self.responder.counters.misses.add(1);
            if let Some(client) = uncached.sharer {
                helpers = helpers.for_client(Client::Ip(client));
            }
        }
        request.run(helpers, steady(now))
    }

    fn finish_uncached(
        &mut self,
        connection: &mut HttpConnection,
        now: Now,
        worked: Worked,
        out: &mut Outbox,
    ) -> Then<Remote, CheckedRequest> {
        let mut loaded = match worked {
            Worked::Loaded(loaded) => loaded,
            Worked::Checked(checked) => return Then::Checked(checked),
        };
        let must_close = self.left.contains(&connection.listener);
        match loaded.take_servers() {
            Some(kept) => {
                self.ask_servers(connection, loaded.request, kept, (now, must_close), out).into()
            }
            None => loaded.finish(&mut self.responder, now, must_close, out).into(),
        }
    }

    fn derive_remote_response<'c, C: ClientStream>(
        &mut self,
        request: Remote,
        client: &'c mut C,
    ) -> impl Future<Output = ExchangedRequest> + use<'c, C, T> {
        request.exchange(Rc::clone(&self.core), client)
    }

    fn finish_remote(
        &mut self,
        connection: &mut HttpConnection,
        now: Now,
        mut exchanged: ExchangedRequest,
        out: &mut Outbox,
    ) -> Then<Infallible, CheckedRequest> {
        if let Some(learnt) = exchanged.take_learnt() {
            return Then::Checked(exchanged.into_checked(learnt, &self.core));
        }
        let peer = connection.client;
        Then::Answered(exchanged.finish(&mut self.responder, &self.core, peer, now, out))
    }

    fn derive_again<'s, 'b>(
        &mut self,
        _: &mut HttpConnection,
        now: Now,
        checked: &'b mut CheckedRequest,
        slots: &'s mut FieldSlots<'b>,
        out: &mut Outbox,
    ) -> Option<HttpRequest<'s, 'b>> {
        let within = checked.request.within(self.global.router.as_ref());
        let learnt = std::mem::take(&mut checked.learnt);
        let request = &checked.request;
        let Some(parsed) = request.parse(slots) else {
            let (said, status) = (Said::in_head(&request.head), Status::INTERNAL_SERVER_ERROR);
            self.responder.refuse(request.client, said, status, now, out);
            return None;
        };
        let (granted, marks) = (request.granted.clone(), request.marks());
        let again = Again { arrived: request.arrived, learnt, granted, within, marks };
        let (again, granted) = (Cell::new(Some(Box::new(again))), OnceCell::new());
        Some(HttpRequest { parsed, head: &request.head, again, granted })
    }

    fn timed_out(
        &mut self,
        connection: &mut HttpConnection,
        why: Timeout,
        input: &[u8],
        now: Now,
        out: &mut Outbox,
    ) {
        // A client that has sent no request gets no answer. Nor does one whose request was answered before
        // its content had arrived.
        if why == Timeout::Head {
            let (said, status) = (Said::in_head(input), Status::REQUEST_TIMEOUT);
            self.responder.refuse(connection.client, said, status, now, out);
        }
    }

    fn malformed(&mut self, connection: &mut HttpConnection, said: &[u8], now: Now) {
        let mut said = Said::in_head(said);
        said.version = connection.version().map_or(said.version, Version::name);
        self.responder.record_refusal(connection.client, said, (Status::BAD_REQUEST, 0), now);
    }

    fn refuse_connection(&mut self, client: Client, now: Now, out: &mut Outbox) {
        let status = Status::SERVICE_UNAVAILABLE;
        self.responder.refuse(client, Said::NOTHING, status, now, out);
    }

    fn sent(&mut self, receipt: &Receipt, now: Now, body_bytes: u64) {
        if let Some(kept) = receipt.downcast_ref::<KeptRecord>() {
            self.responder.sink.record(&kept.complete(body_bytes, now.unix_us));
        }
    }

    fn leave(&mut self, listener: u32) {
        self.left.push(ListenerId(listener));
    }

    fn release_dropped(&mut self) {
        if let Some(view) = &mut self.view {
            view.release_dropped();
        }
        if let Some(view) = &mut self.responses {
            view.release_dropped();
        }
    }
}
