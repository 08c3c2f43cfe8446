//! *Derive remote response*: from a request that the router distributes to an exchange with a server,
//! and from what became of it to the end of the answer.

use std::net::IpAddr;
use std::sync::Arc;

use afpa_framework::access::duration_us;
use afpa_framework::{Client, Now, Outbox, Persistence};
use afpa_http::{BodyLength, Method, Request, RequestLimits, Status, request};
use afpa_proxy::exchange::{Core, End, Job, Report};
use afpa_proxy::forwarded;
use afpa_proxy::limit::{ConnectionPermit, Permit, Refused};
use afpa_proxy::request::{NotForwardable, Origin, RequestHead};
use afpa_proxy::response::Asked as AskedServer;
use afpa_proxy::select::{Affinity, url_hash};
use afpa_router::{self as router, GroupId, SiteId};

use crate::global::{Global, ServerGroup, Site};
use crate::respond::{Asked, Responder};
use crate::scope_stats::ScopeStats;

/// A request on its way to a server.
pub(crate) struct Remote {
    /// Gone while the exchange has it.
    pub(crate) job: Option<Box<Job>>,
    /// Its place under the limits of the site.
    pub(crate) _permit: Option<Permit>,
}

/// Why a distributed request goes to no server.
pub(crate) enum Local {
    /// It is about this server.
    Options,
    /// It is not to be passed on.
    Status(Status),
    /// It has more content than the servers get.
    TooLarge,
    /// The site's limits are reached.
    Limited(Refused),
}

/// What the router said about a distributed request.
#[derive(Clone, Copy)]
pub(crate) struct Distributed<'a> {
    pub(crate) site: SiteId,
    pub(crate) group: GroupId,
    pub(crate) affinity: router::Affinity,
    /// Its path at the server.
    pub(crate) path: &'a [u8],
}

/// Who asks, as far as servers and limits are concerned.
#[derive(Clone, Copy)]
pub(crate) struct Asker {
    pub(crate) client: Option<IpAddr>,
    pub(crate) names_server: bool,
    /// Its connection ends with this answer.
    pub(crate) is_last: bool,
}

/// Makes a request ready for a server.
pub(crate) fn prepare(
    global: &Global,
    core: &Core,
    request: &Request<'_, '_>,
    to: Distributed<'_>,
    (asker, place): (Asker, &mut Option<ConnectionPermit>),
    now: Now,
) -> Result<Remote, Local> {
    let Some(ServerGroup { group, settings }) = global.groups.get(to.group.0 as usize) else {
        debug_assert!(false, "the router knows only groups that there are");
        return Err(Local::Status(Status::INTERNAL_SERVER_ERROR));
    };
    let site = global.sites.get(to.site.0 as usize);
    let too_large = |most| matches!(request.body, BodyLength::Length(length) if length > most);
    if settings.largest_content.is_some_and(too_large) {
        return Err(Local::TooLarge);
    }
    let (client, origin) = client_of(request, site, asker.client);
    let mut head = RequestHead::in_memory(core.pool.text());
    let policy = &settings.request;
    head.write(request, to.path, policy, origin).map_err(Local::from)?;
    // Last, so that what is refused for another reason does not count.
    let admit = |site: &Site| {
        if !place.as_ref().is_some_and(|place| place.is_at(&site.gate)) {
            // The one before is given back whatever comes of this.
            *place = None;
            *place = site.gate.enter(now.steady_us, client.filter(|_| !origin.trusted))?;
        }
        site.gate.admit(now.steady_us, client)
    };
    let permit = site.map(admit).transpose().map_err(Local::Limited)?;

    let affinity = affinity(to.affinity);
    let cookie = group.cookie_name().filter(|_| affinity == Affinity::Cookie);
    let cookie = cookie.and_then(|name| cookie_value(request, name)).map(Box::from);
    let asked = AskedServer { head: request.method == Method::Head, upgrade: head.asks_upgrade() };
    let job = Job {
        group: Arc::clone(group),
        settings: Arc::clone(settings),
        head,
        body: request.body,
        asked,
        version: request.version,
        keep_alive: request.keep_alive && !asker.is_last,
        idempotent: is_idempotent(request.method) && !asked.upgrade,
        url_hash: url_hash(to.path, request.target.query()),
        client,
        cookie,
        affinity: Some(affinity),
        names_server: asker.names_server,
    };
    Ok(Remote { job: Some(Box::new(job)), _permit: permit })
}

/// The client, as the routers in front name it where they may, and what servers are told: each router
/// adds whom it heard from.
pub(crate) fn client_of(
    request: &Request<'_, '_>,
    site: Option<&Site>,
    peer: Option<IpAddr>,
) -> (Option<IpAddr>, Origin) {
    let Some((peer, site)) = peer.zip(site) else {
        return (peer, Origin { client: peer, trusted: false });
    };
    let trusted = site.forwarded_from.iter().any(|network| network.contains(peer));
    let origin = Origin { client: Some(peer), trusted };
    if !trusted {
        return (Some(peer), origin);
    }
    let lines = request.fields().filter(|(name, _)| name.eq_ignore_ascii_case("x-forwarded-for"));
    let client = forwarded::client(lines.map(|(_, value)| value), peer, &site.forwarded_from);
    (Some(client), origin)
}

fn affinity(wanted: router::Affinity) -> Affinity {
    match wanted {
        router::Affinity::None => Affinity::None,
        router::Affinity::Client => Affinity::Client,
        router::Affinity::Cookie => Affinity::Cookie,
    }
}

/// RFC 9110 section 9.2.2.
fn is_idempotent(method: Method<'_>) -> bool {
    matches!(method, Method::Get | Method::Head | Method::Options | Method::Put | Method::Delete)
}

/// The value of a cookie (RFC 6265 section 5.4); of several, the first.
fn cookie_value<'b>(request: &Request<'_, 'b>, name: &str) -> Option<&'b [u8]> {
    let lines = request.fields().filter(|(line, _)| line.eq_ignore_ascii_case("cookie"));
    let mut cookies = lines.flat_map(|(_, value)| value.split(|&byte| byte == b';'));
    cookies.find_map(|cookie| {
        let (key, value) = cookie.trim_ascii().split_at_checked(name.len())?;
        if key == name.as_bytes() { value.strip_prefix(b"=") } else { None }
    })
}

impl From<NotForwardable> for Local {
    fn from(why: NotForwardable) -> Self {
        match why {
            NotForwardable::AboutThisServer | NotForwardable::LastStop => Local::Options,
            NotForwardable::Connect | NotForwardable::Trace => {
                Local::Status(Status::METHOD_NOT_ALLOWED)
            }
            NotForwardable::Connection => Local::Status(Status::BAD_REQUEST),
            NotForwardable::Ring => Local::Status(Status::BAD_GATEWAY),
        }
    }
}

/// A request whose exchange has ended, and what is needed to finish its answer.
pub(crate) struct Ended<'a> {
    pub(crate) client: Client,
    /// In which it is counted.
    pub(crate) scope: Option<&'a ScopeStats>,
    pub(crate) head: &'a [u8],
    pub(crate) limits: &'a RequestLimits,
    pub(crate) arrived: Now,
    pub(crate) now: Now,
}

impl Ended<'_> {
    /// Counts and records the answer, and gives it where the servers gave none.
    pub(crate) fn finish(
        &self,
        responder: &mut Responder,
        job: &Job,
        report: &Report,
        out: &mut Outbox,
    ) -> Persistence {
        responder.counters.remote.add(1);
        if let Some(scope) = self.scope {
            scope.took(duration_us(self.arrived.unix_us, self.now.unix_us));
        }
        let (status, persistence) = match report.end {
            End::Relayed(persistence) => (report.status, persistence),
            End::Broken => (report.status, Persistence::Close),
            End::ClientGone => (CLIENT_GONE, Persistence::Close),
            End::Failed(failure) => {
                let content_left = job.body != BodyLength::None;
                return self.with_request(|request, now| {
                    let asked = self.asked(request, now, content_left);
                    responder.failure(asked, failure, report, out)
                });
            }
        };
        responder.counters.answered_code(status, report.content_bytes);
        if let Some(scope) = self.scope {
            scope.answered(status);
        }
        if responder.sink.enabled() {
            self.with_request(|request, now| {
                let asked = self.asked(request, now, false);
                responder.record_remote(asked, status, report);
                persistence
            });
        }
        persistence
    }

    fn asked<'r, 's, 'b>(
        &'r self,
        request: &'r Request<'s, 'b>,
        now: Now,
        must_close: bool,
    ) -> Asked<'r, 's, 'b> {
        let (client, scope, arrived) = (self.client, self.scope, self.arrived);
        Asked { client, request, scope, source: "remote", arrived, now, must_close }
    }

    /// Parses the request once more: only answers that are rare, or recorded, need that.
    fn with_request(&self, then: impl FnOnce(&Request<'_, '_>, Now) -> Persistence) -> Persistence {
        let mut slots = Default::default();
        match request::parse(self.head, &mut slots, self.limits) {
            Ok(Some(parsed)) => then(&parsed, self.now),
            Ok(None) | Err(_) => {
                debug_assert!(false, "a request that was parsed is one");
                Persistence::Close
            }
        }
    }
}

/// What is recorded when the client went away before it had its answer.
const CLIENT_GONE: u16 = 499;
