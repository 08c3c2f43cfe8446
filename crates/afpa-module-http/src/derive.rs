//! The state functions of HTTP: the module that the engine runs.

use std::future::Future;
use std::sync::Arc;

use afpa_cache::{Look, Seconds, View};
use afpa_framework::{
    AccessSink, Client, Derived, Helpers, Miss, Module, Now, Outbox, Outcome, Persistence, Receipt,
    Timeout, Waiting,
};
use afpa_http::{
    BodyLength, FieldSlots, Method, Request, Status, Target, body::BodySkipper, request, target,
};

use crate::counters::HttpCounters;
use crate::header::HttpHeader;
use crate::load::{self, Loaded};
use crate::respond::{Asked, Responder};
use crate::site::Site;

/// The HTTP module of one core.
pub struct Http {
    site: Arc<Site>,
    view: View<HttpHeader>,
    responder: Responder,
    wake: Arc<dyn Fn() + Send + Sync>,
    /// Where a path is rewritten that does not come normalised.
    path: Vec<u8>,
}

/// HTTP's connection data.
pub struct HttpConnection {
    client: Client,
    /// Content of the last request that is still to be thrown away.
    skipping: Option<BodySkipper>,
}

/// A parsed request, with the bytes it was parsed from.
pub struct HttpRequest<'s, 'b> {
    parsed: Request<'s, 'b>,
    head: &'b [u8],
}

/// A request that went to a helper thread. It keeps the site that it came to, so that a reload in
/// the meantime does not change its answer.
pub struct Pending {
    site: Arc<Site>,
    head: Box<[u8]>,
    path: Box<[u8]>,
    arrived: Now,
}

impl Http {
    /// The module of a core. `wake` has the engine call [`Module::release_dropped`] soon.
    pub fn new(
        site: Arc<Site>,
        counters: Arc<HttpCounters>,
        sink: Box<dyn AccessSink>,
        wake: Arc<dyn Fn() + Send + Sync>,
    ) -> Self {
        let view = view(&site, &wake);
        Self { site, view, responder: Responder::new(counters, sink), wake, path: Vec::new() }
    }

    /// Serves another site, or the same one with other settings, from the next request on.
    pub fn adopt(&mut self, site: Arc<Site>) {
        self.view = view(&site, &self.wake);
        self.site = site;
    }

    /// Leaves records of answered requests elsewhere from now on.
    pub fn log_to(&mut self, sink: Box<dyn AccessSink>) {
        self.responder.sink = sink;
    }
}

fn view(site: &Site, wake: &Arc<dyn Fn() + Send + Sync>) -> View<HttpHeader> {
    let wake = Arc::clone(wake);
    site.cache().view(Box::new(move || wake()))
}

/// Objects age by the steady clock: the wall clock may be set back.
pub(crate) fn seconds(now: Now) -> Seconds {
    Seconds(now.steady_ms / 1000)
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

    fn connected(&mut self, client: Client) -> HttpConnection {
        HttpConnection { client, skipping: None }
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
        match request::parse(input, slots, &self.site.settings().limits) {
            Ok(None) => Derived::Incomplete(Waiting::Head),
            Ok(Some(parsed)) => {
                let consumed = parsed.head_len;
                let limit = self.site.settings().body_limit;
                if matches!(parsed.body, BodyLength::Length(length) if length > limit) {
                    let status = Status::CONTENT_TOO_LARGE;
                    self.responder.refuse(connection.client, status, now, out);
                    return Derived::Refused;
                }
                if parsed.body != BodyLength::None {
                    connection.skipping = Some(BodySkipper::new(parsed.body, limit));
                }
                let head = input.get(..consumed).unwrap_or_default();
                Derived::Request(HttpRequest { parsed, head }, consumed)
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
        if !parsed.method.is_get_or_head() || !self.site.serves(parsed.host) {
            return None;
        }
        let path = target::normalise(path, &mut self.path).ok()?;
        match self.view.get(Site::KEY, path, seconds(now)) {
            Look::Hit(object) => {
                self.responder.counters.hits.add(1);
                let asked = Asked {
                    client: connection.client,
                    request: parsed,
                    source: "hit",
                    arrived: now,
                    now,
                };
                Some(self.responder.object(asked, object, self.site.settings(), out))
            }
            Look::Recheck(_) | Look::Miss => None,
        }
    }

    fn derive_miss_response(
        &mut self,
        connection: &mut HttpConnection,
        now: Now,
        request: &HttpRequest<'_, '_>,
        out: &mut Outbox,
    ) -> Miss<Pending> {
        let parsed = &request.parsed;
        let asked =
            Asked { client: connection.client, request: parsed, source: "afpa", arrived: now, now };
        match route(&self.site, parsed, &mut self.path) {
            Ok(Route::File(path)) => Miss::Uncached(Pending {
                site: Arc::clone(&self.site),
                head: request.head.into(),
                path: path.into(),
                arrived: now,
            }),
            Ok(Route::Options) => Miss::Answered(self.responder.options(asked, out)),
            Err(status) => {
                let persistence = self.responder.page(asked, status, out);
                Miss::Answered(persistence)
            }
        }
    }

    fn derive_uncached_response(
        &mut self,
        now: Now,
        pending: &Pending,
        helpers: &Helpers,
    ) -> impl Future<Output = Loaded> + 'static {
        self.responder.counters.misses.add(1);
        load::load(Arc::clone(&pending.site), pending.path.clone(), helpers.clone(), seconds(now))
    }

    fn finish(
        &mut self,
        connection: &mut HttpConnection,
        now: Now,
        pending: Pending,
        outcome: Outcome<Self>,
        out: &mut Outbox,
    ) -> Persistence {
        let mut slots = FieldSlots::default();
        let parsed =
            match request::parse(&pending.head, &mut slots, &pending.site.settings().limits) {
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
            client: connection.client,
            request: &parsed,
            source: "uncached",
            arrived: pending.arrived,
            now,
        };
        let responder = &mut self.responder;
        match outcome {
            Ok(Loaded::Object(object)) => {
                responder.object(asked, &object, pending.site.settings(), out)
            }
            Ok(Loaded::Slash) => {
                let location = with_slash(&pending.path, parsed.target.query());
                responder.redirect(asked, &location, out)
            }
            Ok(Loaded::Listing(html)) => responder.html(asked, &html, out),
            Ok(Loaded::Failed(status)) => responder.page(asked, status, out),
            Err(_) => responder.page(asked, Status::NOT_IMPLEMENTED, out),
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
    }

    fn tick(&mut self, _now: Now) {
        self.view.flush_touches();
        self.responder.sink.flush();
    }

    fn release_dropped(&mut self) {
        self.view.release_dropped();
    }
}

/// Where a request goes that the cache did not answer.
enum Route<'p> {
    File(&'p [u8]),
    Options,
}

/// Layer-7 routing, as far as there is only one site: the file system, or an error.
fn route<'p>(
    site: &Site,
    request: &'p Request<'_, '_>,
    scratch: &'p mut Vec<u8>,
) -> Result<Route<'p>, Status> {
    if !site.serves(request.host) {
        return Err(Status::MISDIRECTED_REQUEST);
    }
    match request.method {
        Method::Get | Method::Head => {}
        Method::Options => return Ok(Route::Options),
        Method::Other(_) => return Err(Status::NOT_IMPLEMENTED),
        _ => return Err(Status::METHOD_NOT_ALLOWED),
    }
    let path = match request.target {
        Target::Origin { path, .. } | Target::Absolute { path, .. } => path,
        Target::Authority(_) | Target::Asterisk => return Err(Status::BAD_REQUEST),
    };
    target::normalise(path, scratch).map(Route::File).map_err(|error| error.status())
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
