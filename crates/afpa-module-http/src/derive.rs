//! The state functions of HTTP: the module that the engine runs.

mod routing;

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use afpa_cache::{Lookup, Seconds, View};
use afpa_framework::{
    AccessSink, Client, ClientStream, Derived, Helpers, Miss, Module, NotConfigured, Now, Outbox,
    Outcome, Persistence, Receipt, Timeout, Waiting,
};
use afpa_http::{
    BodyLength, FieldSlots, Request, RequestLimits, Status, body::BodySkipper, request, target,
};
use afpa_proxy::exchange;
use afpa_proxy::limit::ConnectionPermit;
use afpa_router::ListenerId;

use crate::counters::HttpCounters;
use crate::doc_root::DocRoot;
use crate::global::{Global, Routed};
use crate::header::HttpHeader;
use crate::load::{self, Loaded};
use crate::remote::{Ended, Remote};
use crate::respond::{Asked, Responder};
use crate::scope_stats::{InFlight, ScopeTable};

/// The HTTP module of one core.
pub struct Http {
    global: Arc<Global>,
    /// Of the cache that all roots share.
    view: Option<View<HttpHeader>>,
    responder: Responder,
    /// What this core counts of sites and request sets.
    scopes: Arc<ScopeTable>,
    wake: Arc<dyn Fn() + Send + Sync>,
    /// What exchanges with servers share.
    core: Rc<exchange::Core>,
    /// Listeners that were given up.
    left: Vec<ListenerId>,
    /// Where a path is rewritten that does not come normalised.
    path: Vec<u8>,
    /// Where a path is put together that the router rewrites.
    joined: Vec<u8>,
}

/// HTTP's connection data.
pub struct HttpConnection {
    client: Client,
    listener: ListenerId,
    /// Content of the last request that is still to be thrown away.
    skipping: Option<BodySkipper>,
    /// Under the limits of the site that its last distributed request was for.
    place: Option<ConnectionPermit>,
}

/// A parsed request, with the bytes it was parsed from.
pub struct HttpRequest<'s, 'b> {
    parsed: Request<'s, 'b>,
    head: &'b [u8],
    /// Where *derive cached response* was told that it goes.
    routed: Cell<Option<Routed>>,
}

/// A request that left the core's deferred-interrupt context. It keeps what it needs of the site that
/// it came to, so that a reload in the meantime does not change its answer.
pub struct Pending {
    head: Vec<u8>,
    limits: RequestLimits,
    arrived: Now,
    /// Whom the log names.
    client: Client,
    /// The site or request set in which it is counted, if there is one.
    in_flight: Option<InFlight>,
    way: Way,
}

/// Where it went.
enum Way {
    /// To a helper thread, which looks below a root.
    File { site: Arc<DocRoot>, path: Box<[u8]> },
    /// To a server.
    Remote(Remote),
}

impl Http {
    /// The module of a core. `wake` has the engine call [`Module::release_dropped`] soon.
    pub fn new(
        global: Arc<Global>,
        counters: Arc<HttpCounters>,
        sink: Box<dyn AccessSink>,
        wake: Arc<dyn Fn() + Send + Sync>,
    ) -> Self {
        let scopes = Arc::new(ScopeTable::of(&global, &counters.scopes()));
        counters.set_scopes(&scopes);
        Self {
            view: global.view(&wake),
            global,
            scopes,
            responder: Responder::new(counters, sink),
            wake,
            core: Rc::default(),
            left: Vec::new(),
            path: Vec::new(),
            joined: Vec::new(),
        }
    }

    /// Serves from other global data from the next request on. Requests in flight keep the old.
    pub fn adopt(&mut self, global: Arc<Global>) {
        self.scopes = Arc::new(ScopeTable::of(&global, &self.scopes));
        self.responder.counters.set_scopes(&self.scopes);
        self.global = global;
        self.view = self.global.view(&self.wake);
    }

    /// Leaves records of answered requests elsewhere from now on.
    pub fn log_to(&mut self, sink: Box<dyn AccessSink>) {
        self.responder.sink = sink;
    }
}

/// Objects age by the steady clock: the wall clock may be set back.
pub(crate) fn seconds(now: Now) -> Seconds {
    Seconds(now.steady_ms() / 1000)
}

impl Module for Http {
    type Connection = HttpConnection;
    type Slots<'b> = FieldSlots<'b>;
    type Request<'s, 'b>
        = HttpRequest<'s, 'b>
    where
        'b: 's;
    type Pending = Pending;
    type Loaded = Loaded;

    fn connected(&mut self, client: Client, listener: u32) -> HttpConnection {
        let listener = ListenerId(listener);
        if !self.left.is_empty() {
            self.left.retain(|left| *left != listener);
        }
        HttpConnection { client, listener, skipping: None, place: None }
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
                // Its request has been answered: there is nothing left to say.
                Err(BrokenBody) => Derived::Refused,
            };
        }
        if input.is_empty() {
            return Derived::Incomplete(Waiting::Idle);
        }
        match request::parse(input, slots, &self.global.limits) {
            Ok(None) => Derived::Incomplete(Waiting::Head),
            Ok(Some(parsed)) => {
                let consumed = parsed.head_len;
                let limit = self.global.body_limit;
                // Where servers get requests, only the router knows whose content it is.
                if self.global.router.is_none() && self.global.leaves_content(&parsed) {
                    let status = Status::CONTENT_TOO_LARGE;
                    self.responder.refuse(connection.client, status, now, out);
                    return Derived::Refused;
                }
                if parsed.body != BodyLength::None {
                    connection.skipping = Some(BodySkipper::new(parsed.body, limit));
                }
                let head = input.get(..consumed).unwrap_or_default();
                Derived::Request(HttpRequest { parsed, head, routed: Cell::new(None) }, consumed)
            }
            Err(refusal) => {
                self.responder.refuse(connection.client, refusal.status(), now, out);
                Derived::Refused
            }
        }
    }

    fn derive_cached_response(
        &mut self,
        connection: &mut HttpConnection,
        now: Now,
        request: &HttpRequest<'_, '_>,
        out: &mut Outbox,
    ) -> Option<Persistence> {
        let parsed = &request.parsed;
        let path = parsed.target.path()?;
        if !parsed.method.is_get_or_head() || self.global.leaves_content(parsed) {
            return None;
        }
        let path = target::normalise(path, &mut self.path).ok()?;
        let verdict = self.global.verdict(connection.listener, parsed, path);
        if let Some(Ok(verdict)) = &verdict {
            request.routed.set(Some(Routed::of(verdict)));
        }
        let found = self.global.cached(parsed, path, verdict, &mut self.joined)?;
        match self.view.as_mut()?.get(found.root.key(), found.path, seconds(now)) {
            Lookup::Hit(object) => {
                self.responder.counters.hits.add(1);
                found.root.note(object, parsed);
                let logged = self.responder.sink.enabled();
                let asked = Asked {
                    client: self.global.named(parsed, found.site, connection.client, logged),
                    request: parsed,
                    scope: self.scopes.get(found.site, found.set).map(|scope| &**scope),
                    source: "hit",
                    arrived: now,
                    now,
                    must_close: self.left.contains(&connection.listener),
                };
                Some(self.responder.object(asked, object, found.root.settings(), out))
            }
            Lookup::Recheck(_) | Lookup::Miss => None,
        }
    }

    fn derive_miss_response(
        &mut self,
        connection: &mut HttpConnection,
        now: Now,
        request: &HttpRequest<'_, '_>,
        out: &mut Outbox,
    ) -> Miss<Pending> {
        let asked = Asked {
            client: connection.client,
            request: &request.parsed,
            scope: None,
            source: "afpa",
            arrived: now,
            now,
            must_close: self.left.contains(&connection.listener),
        };
        match self.global.router {
            None => self.unrouted(asked, request.head, out),
            Some(_) => self.routed(connection, asked, request, out),
        }
    }

    fn derive_uncached_response(
        &mut self,
        now: Now,
        pending: &Pending,
        helpers: &Helpers,
    ) -> impl Future<Output = Loaded> + 'static {
        self.responder.counters.misses.add(1);
        let file = match &pending.way {
            Way::File { site, path } => Some((Arc::clone(site), path.clone())),
            Way::Remote(_) => None,
        };
        let (helpers, now) = (helpers.clone(), seconds(now));
        async move {
            debug_assert!(file.is_some(), "a distributed request is no file");
            match file {
                Some((site, path)) => load::load(site, path, helpers, now).await,
                None => Loaded::Failed(Status::INTERNAL_SERVER_ERROR),
            }
        }
    }

    fn derive_remote_response<'c, C: ClientStream>(
        &mut self,
        _now: Now,
        pending: &mut Pending,
        client: &'c mut C,
    ) -> impl Future<Output = Outcome<Self>> + use<'c, C> {
        let job = match &mut pending.way {
            Way::Remote(remote) => remote.job.take(),
            Way::File { .. } => None,
        };
        let core = Rc::clone(&self.core);
        async move {
            let mut job = job.ok_or(NotConfigured)?;
            let report = exchange::run(&mut job, &core, client).await;
            Ok(Loaded::Remote(job, report))
        }
    }

    fn finish(
        &mut self,
        connection: &mut HttpConnection,
        now: Now,
        pending: Pending,
        outcome: Outcome<Self>,
        out: &mut Outbox,
    ) -> Persistence {
        if let Ok(Loaded::Remote(job, report)) = outcome {
            let ended = Ended {
                client: job.client.map_or(connection.client, Client::Ip),
                scope: pending.in_flight.as_ref().map(InFlight::scope),
                head: &pending.head,
                limits: &pending.limits,
                arrived: pending.arrived,
                now,
            };
            let persistence = ended.finish(&mut self.responder, &job, &report, out);
            self.core.pool.give_back_text(job.head.into_memory());
            self.core.pool.give_back_text(pending.head);
            return persistence;
        }
        let mut slots = FieldSlots::default();
        let parsed = match request::parse(&pending.head, &mut slots, &pending.limits) {
            Ok(Some(parsed)) => parsed,
            // It was parsed before, by the same rules: this cannot be. If it is, nobody is harmed.
            Ok(None) | Err(_) => {
                debug_assert!(false, "a request that was parsed is one");
                let status = Status::INTERNAL_SERVER_ERROR;
                self.responder.refuse(connection.client, status, now, out);
                return Persistence::Close;
            }
        };
        let asked = Asked {
            client: pending.client,
            request: &parsed,
            scope: pending.in_flight.as_ref().map(InFlight::scope),
            source: "uncached",
            arrived: pending.arrived,
            now,
            must_close: self.left.contains(&connection.listener),
        };
        let responder = &mut self.responder;
        match (outcome, &pending.way) {
            (Ok(Loaded::Object(object)), Way::File { site, .. }) => {
                site.note(&object, &parsed);
                responder.object(asked, &object, site.settings(), out)
            }
            (Ok(Loaded::Slash), _) => {
                // The way it was asked for, whatever the router made of it.
                let path = parsed.target.path().unwrap_or_default();
                let path = target::normalise(path, &mut self.path).unwrap_or_default();
                let location = with_slash(path, parsed.target.query());
                responder.redirect(asked, Status::MOVED_PERMANENTLY, &location, out)
            }
            (Ok(Loaded::Listing(html)), _) => responder.html(asked, &html, out),
            (Ok(Loaded::Failed(status)), _) => responder.page(asked, status, out),
            (Ok(Loaded::Object(_) | Loaded::Remote(..)) | Err(_), _) => {
                responder.page(asked, Status::NOT_IMPLEMENTED, out)
            }
        }
    }

    fn timed_out(
        &mut self,
        connection: &mut HttpConnection,
        why: Timeout,
        now: Now,
        out: &mut Outbox,
    ) {
        // A client that asked nothing is told nothing; one whose request was answered before its
        // content had come, neither.
        if why == Timeout::Head {
            self.responder.refuse(connection.client, Status::REQUEST_TIMEOUT, now, out);
        }
    }

    fn refuse_connection(&mut self, client: Client, now: Now, out: &mut Outbox) {
        self.responder.refuse(client, Status::SERVICE_UNAVAILABLE, now, out);
    }

    fn sent(&mut self, receipt: &Receipt, now: Now, body_bytes: u64) {
        self.responder.sink.record(&receipt.complete(body_bytes, now.unix_us));
    }

    fn drain(&mut self) {
        self.responder.draining = true;
        self.core.draining.set(true);
        self.core.pool.clear();
    }

    fn leave(&mut self, listener: u32) {
        self.left.push(ListenerId(listener));
    }

    fn tick(&mut self, now: Now) {
        if let Some(view) = &mut self.view {
            view.flush_touches();
        }
        self.core.pool.tick(now.steady_ms());
        self.responder.sink.flush();
    }

    fn release_dropped(&mut self) {
        if let Some(view) = &mut self.view {
            view.release_dropped();
        }
    }
}

/// The path of a directory with the slash that was missing, and the query as it came.
fn with_slash(path: &[u8], query: Option<&[u8]>) -> Vec<u8> {
    let mut location = Vec::with_capacity(path.len() + 1);
    target::encode(path, &mut location);
    location.push(b'/');
    if let Some(query) = query {
        location.push(b'?');
        location.extend_from_slice(query);
    }
    location
}

enum Skipped {
    /// Wait for more data.
    More,
    /// So many bytes are done with, and there is more to come.
    Some(usize),
    /// So many bytes, and the content ends with them.
    Last(usize),
}

/// Content that is malformed, or goes on beyond the limit.
struct BrokenBody;

fn skip(skipper: &mut BodySkipper, input: &[u8]) -> Result<Skipped, BrokenBody> {
    let progress = skipper.feed(input).map_err(|_| BrokenBody)?;
    Ok(match (progress.done, progress.consumed) {
        (true, consumed) => Skipped::Last(consumed),
        (false, 0) => Skipped::More,
        (false, consumed) => Skipped::Some(consumed),
    })
}
