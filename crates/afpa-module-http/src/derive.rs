//! The state functions of HTTP: the module that the engine runs.

mod fallback;
mod kept;
mod miss;
mod peer;
mod question;

use std::cell::{Cell, OnceCell};
use std::convert::Infallible;
use std::future::Future;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use crate::access::{AccessSink, KeptRecord};
use afpa_cache::{Lookup, Millis, View};
use afpa_framework::{
    Cached, Client, ClientStream, Derived, Diagram, Helpers, Miss, Module, Now, Outbox, Peer,
    Persistence, Protocol, Receipt, Secured, Table, Then, Timeout, Waiting,
};
use afpa_http::marks::Marks;
use afpa_http::{
    BodyLength, FieldSlots, Request, Status, Version, body::BodySkipper, request, request::Said,
};
use afpa_police::Refusal;
use afpa_proxy::exchange;
use afpa_proxy::limit::ConnectionPermit;
use afpa_router::{ListenerId, RequestSetId, SiteId};
use afpa_shared_cache::{KeyRoom, StoredResponse};

use crate::asked::Asked;
use crate::counters::HttpCounters;
use crate::demand::Granted;
use crate::errors::Errors;
use crate::global::Global;
use crate::header::HttpHeader;
use crate::known_scripts::KnownScripts;
use crate::learnt::{CheckedRequest, Learnt};
use crate::marker::Marker;
use crate::question::client_of;
use crate::rates::{Limited, PlaceRates};
use crate::remote::{ExchangedRequest, Remote};
use crate::respond::Responder;
use crate::route::{self, FileRoute, PathRoom, Route};
use crate::scope_stats::ScopeTable;
use crate::script::Script;
use crate::uncached::{Work, Worked};

use kept::Kept;
pub use miss::Missed;

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

/// HTTP's connection data.
pub struct HttpConnection {
    client: Client,
    /// Its port; 0 on a unix socket.
    port: u16,
    listener: ListenerId,
    /// Content of the last request that is still to be skipped.
    skipping: Option<BodySkipper>,
    /// The connection counts against the limits of the site that its last distributed request was for.
    permit: Option<ConnectionPermit>,
    /// The result of the TLS handshake, on a connection with TLS.
    tls: Option<Rc<Secured>>,
    /// Its requests come over streams of HTTP/2.
    has_streams: bool,
}

impl HttpConnection {
    /// The version of its requests, if their heads were made from the fields of another version.
    fn version(&self) -> Option<Version> {
        let protocol = self.tls.as_ref().and_then(|tls| tls.protocol.as_deref());
        match protocol {
            Some(b"h3") => Some(Version::Http3),
            _ => self.has_streams.then_some(Version::Http2),
        }
    }
}

/// Facts about a request whose response is derived again.
struct Again {
    arrived: Now,
    learnt: Learnt,
    /// The client was checked.
    granted: Option<Rc<Granted>>,
    /// The request set that answers; `None`: the router says it.
    within: Option<RequestSetId>,
    /// The marks that the request has.
    marks: Option<Box<Marks>>,
}

/// A parsed request, with the bytes it was parsed from.
pub struct HttpRequest<'s, 'b> {
    parsed: Request<'s, 'b>,
    head: &'b [u8],
    /// Known already, if the response is derived again.
    again: Cell<Option<Box<Again>>>,
    /// The client was checked.
    granted: OnceCell<Rc<Granted>>,
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

    /// [`Module::derive_cached_response`], perhaps once more with what is known by now.
    fn derive<'m, 's, 'b>(
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
        let (arrived, learnt, before, within, marks) = match request.again.take() {
            Some(again) => {
                let Again { arrived, learnt, granted, within, marks } = *again;
                (arrived, Some(learnt), granted, within, marks)
            }
            None => (now, None, None, None, None),
        };
        let Self {
            global,
            view,
            responses,
            keys,
            responder,
            scopes,
            core,
            left,
            paths,
            spelled,
            script,
            known_scripts,
            tls,
            marker,
            ..
        } = self;
        tls.clone_from(&connection.tls);
        let (parsed, peer) = (&request.parsed, connection.client);
        // A request that was checked was asked about before.
        let refused = if learnt.is_none() { refusal(global, peer, now) } else { None };
        let asks = (parsed, tls.as_deref());
        let mut routed = {
            let known = (learnt.as_ref(), within);
            route::route(global, (connection.listener, peer), asks, known, paths)
        };
        let rates = global.rates.of(routed.scope);
        if let Some(why) = refused {
            routed.route = Route::Refused(why);
        } else if !(rates.is_empty() && routed.read_as.is_empty())
            && let Err(limited) = charge(
                global,
                (rates, &routed.read_as),
                (routed.site, peer),
                (parsed, learnt.as_ref()),
                now,
            )
        {
            routed.route = Route::Limited(limited);
        }
        if let Some(edits) = routed.edits.as_mut().filter(|edits| edits.rules.marks()) {
            let trusted = global.trusts(routed.site, peer);
            edits.marks = Some(marker.mark(edits.rules, parsed, (trusted, marks.as_deref())));
        }
        if let Some(granted) = Granted::joined(routed.granted.take(), before) {
            let _ = request.granted.set(granted);
        }
        let client = match responder.records(routed.edits) {
            true => global.logged_client(parsed, routed.site, peer),
            false => peer,
        };
        let asked = Asked {
            client,
            request: parsed,
            scope: routed.scope.and_then(|(site, set)| scopes.get(site, set)),
            source: "afpa",
            arrived,
            now,
            must_close: left.contains(&connection.listener),
            tls: tls.as_ref(),
            hsts: tls.as_ref().and_then(|_| global.hsts(routed.site)),
            edits: routed.edits,
            errors: errors_of(global, routed.scope, peer),
            granted: request.granted.get(),
            exchange: None,
        };
        if let Some(hit) = from_view(view, &routed.route, asked, responder, out) {
            match responder.wants_page() {
                false => return Cached::Hit(hit),
                true => routed.route = Route::ErrorPage,
            }
        }
        if let (Route::File(file), Some(site)) = (&routed.route, routed.site)
            && let Some(scripts) = file.scripts
            && file.root.known_script(file.path, (known_scripts, steady(now)), script)
            && global.challenge(parsed).is_none()
        {
            routed.route = route::run(scripts, script, site, parsed, spelled);
        } else if let (Route::File(file), Some(site)) = (&routed.route, routed.site)
            && file.fallback.is_some()
            && file.root.is_no_file_again(file.path)
            && global.challenge(parsed).is_none()
        {
            routed.route = file.fall_back(site, parsed, (spelled, script));
            if let Some(hit) = from_view(view, &routed.route, asked, responder, out) {
                match responder.wants_page() {
                    false => return Cached::Hit(hit),
                    true => routed.route = Route::ErrorPage,
                }
            }
        }
        let mut plan = None;
        if let Route::Distributed(to) = &routed.route
            && let Some(view) = responses
            && let Some((_, Some(set))) = routed.scope
            && let Some(mut lookup) =
                global.shared_request(parsed, (to, set), (peer, tls.as_deref(), now))
        {
            lookup.names_client |= asked.is_personal();
            match kept::look_up((view, keys), lookup, asked, responder, out) {
                Kept::Answered(_) if responder.wants_page() => routed.route = Route::ErrorPage,
                Kept::Answered(persistence) => return Cached::Hit(persistence),
                Kept::Instead(status) => routed.route = Route::Error(status),
                Kept::Ask(asks) => plan = asks,
            }
        }
        let learnt = match rates.is_empty() && routed.read_as.is_empty() {
            true => learnt,
            false => Some(Learnt::charged(learnt, rates, &routed.read_as)),
        };
        let (head, route, scope) = (request.head, routed.route, routed.scope);
        let peer = None;
        Cached::Miss(Missed {
            asked,
            head,
            route,
            scope,
            plan,
            learnt,
            peer,
            global,
            responder,
            core,
        })
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

/// Why no request of this client is answered now, if so.
#[inline]
fn refusal(global: &Global, client: Client, now: Now) -> Option<Refusal> {
    match client {
        Client::Ip(client) => {
            global.police.request(client, now.steady_us.saturating_mul(1000)).err()
        }
        Client::Unix => None,
    }
}

/// Counts a request for the rates of its place.
fn charge(
    global: &Global,
    rates: (PlaceRates, &[PlaceRates]),
    (site, peer): (Option<SiteId>, Client),
    (request, learnt): (&Request<'_, '_>, Option<&Learnt>),
    now: Now,
) -> Result<(), Limited> {
    let client = site.and_then(|site| client_of((global, site), request, peer));
    if client.is_some_and(|client| global.police.allows(client)) {
        return Ok(());
    }
    global.rates.charge(rates, client, learnt, now.steady_us)
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

/// The error pages of a request set or site.
#[inline]
fn errors_of(
    global: &Global,
    scope: Option<(SiteId, Option<RequestSetId>)>,
    peer: Client,
) -> Option<Errors<'_>> {
    global.errors.of(scope).map(|pages| Errors { pages, peer, may_ask: true })
}

/// Answers from this core's view of the cache, if the route is to a file that is there.
#[inline]
fn from_view(
    view: &mut Option<View<HttpHeader>>,
    route: &Route<'_>,
    asked: Asked<'_, '_, '_>,
    responder: &mut Responder,
    out: &mut Outbox,
) -> Option<Persistence> {
    let Route::File(FileRoute { root, path, unfit: None, .. }) = route else { return None };
    let Lookup::Hit(object) = view.as_mut()?.get(root.key(), path, steady(asked.now)) else {
        return None;
    };
    responder.counters.hits.add(1);
    root.note(object, asked.request);
    let asked = Asked { source: "hit", ..asked };
    Some(responder.object(asked, object, root.settings(), out))
}

enum Skipped {
    /// Wait for more data.
    More,
    /// So many bytes were skipped, and more content follows.
    Some(usize),
    /// So many bytes were skipped, and the content ends with them.
    Last(usize),
}

/// The content is malformed, or longer than the limit.
struct BrokenBody;

fn skip(skipper: &mut BodySkipper, input: &[u8]) -> Result<Skipped, BrokenBody> {
    let progress = skipper.feed(input).map_err(|_| BrokenBody)?;
    Ok(match (progress.done, progress.consumed) {
        (true, consumed) => Skipped::Last(consumed),
        (false, 0) => Skipped::More,
        (false, consumed) => Skipped::Some(consumed),
    })
}
