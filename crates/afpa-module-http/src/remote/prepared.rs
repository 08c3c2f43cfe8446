//! A distributed request, made ready for an exchange with a server.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use afpa_framework::{Client, Now, Secured};
use afpa_http::edits::Edits;
use afpa_http::{BodyLength, Known, KnownSet, Method, Request, Status, etag};
use afpa_proxy::coding::{CodingRules, Compress};
use afpa_proxy::exchange::{self, Core, Job};
use afpa_proxy::limit::{ConnectionPermit, Permit, Refused};
use afpa_proxy::request::{NotForwardable, Origin, RequestHead};
use afpa_proxy::response::Asked as AskedServer;
use afpa_proxy::select::{Affinity, url_hash};
use afpa_router::{self as router, GroupId, ListenerId, SiteId};

use crate::demand::{self, Granted};
use crate::errors::Errors;
use crate::global::{Global, ServerGroup};
use crate::preface;
use crate::script::{self, Run, Told};
use crate::site::Site;

/// Why a distributed request goes to no server.
pub(crate) enum NotSent {
    /// It is an OPTIONS request that AFPA itself answers.
    Options,
    /// It must not be passed on.
    Status(Status),
    /// It has more content than the group allows.
    TooLarge,
    /// The site's limits are reached.
    Limited(Refused),
}

/// The router's verdict on a distributed request.
#[derive(Clone, Copy)]
pub(crate) struct Distributed<'a> {
    pub(crate) site: SiteId,
    pub(crate) group: GroupId,
    pub(crate) affinity: router::Affinity,
    /// The path of the URL, as [`afpa_http::target::spell`] gives it.
    pub(crate) url: &'a [u8],
    /// The path for the server, likewise.
    pub(crate) path: &'a [u8],
    /// The script that the group runs by FastCGI; `None`: it speaks HTTP.
    pub(crate) script: Option<Run<'a>>,
}

impl<'a> Distributed<'a> {
    /// To a group of servers, for the whole URL of a request.
    pub(crate) fn whole(
        (site, group, affinity): (SiteId, GroupId, router::Affinity),
        request: &'a Request<'_, 'a>,
        spelled: &'a mut Vec<u8>,
    ) -> Self {
        // A path that could be normalised can be spelled.
        let path = request.target.path().unwrap_or_default();
        let url = afpa_http::target::spell(path, spelled).unwrap_or_default();
        Self { site, group, affinity, url, path: url, script: None }
    }
}

/// The client of a distributed request.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    pub(crate) client: Option<IpAddr>,
    /// The port of the connection's other end.
    pub(crate) port: u16,
    /// The listener that it has come to.
    pub(crate) listener: ListenerId,
    /// The client is another machine that has asked on behalf of its own client, and these lines of the answer prove who has
    /// given it.
    pub(crate) proof: Option<&'a Arc<[u8]>>,
    pub(crate) names_server: bool,
    /// The result of the TLS handshake, on a connection with TLS.
    pub(crate) tls: Option<&'a Secured>,
    /// The value of Strict-Transport-Security, if the answer is to have one.
    pub(crate) hsts: Option<&'a Arc<str>>,
    /// The operator's changes of the fields.
    pub(crate) edits: Option<Edits<'a>>,
    /// The operator's own error pages.
    pub(crate) errors: Option<Errors<'a>>,
    /// Which answers are compressed; `None`: none.
    pub(crate) codings: Option<&'a Arc<CodingRules>>,
    /// The limits of the place; `None`: those of the server group.
    pub(crate) settings: Option<&'a Arc<exchange::Settings>>,
    /// The client was checked.
    pub(crate) granted: Option<&'a Rc<Granted>>,
    /// This answer is the last one on its connection.
    pub(crate) is_last: bool,
}

/// A request that is ready for a server.
pub(crate) struct Prepared {
    pub(crate) job: Job,
    pub(crate) permit: Option<Permit>,
    /// It need not wait for the end of the client's handshake.
    pub(crate) is_early: bool,
}

/// Makes a request ready for a server.
pub(crate) fn prepare(
    global: &Global,
    core: &Core,
    request: &Request<'_, '_>,
    to: Distributed<'_>,
    (asker, connection): (Asker<'_>, &mut Option<ConnectionPermit>),
    now: Now,
) -> Result<Prepared, NotSent> {
    let Some(ServerGroup { group, settings }) = global.groups.get(to.group.0 as usize) else {
        debug_assert!(false, "the router knows only groups that there are");
        return Err(NotSent::Status(Status::INTERNAL_SERVER_ERROR));
    };
    let settings = asker.settings.unwrap_or(settings);
    let site = global.sites.get(to.site.0 as usize);
    let too_large = |most| matches!(request.body, BodyLength::Length(length) if length > most);
    if settings.largest_content.is_some_and(too_large) {
        return Err(NotSent::TooLarge);
    }
    let (client, origin) = match site {
        Some(site) => site.client_of(request, asker.client),
        None => {
            let client = asker.client;
            (client, Origin { client, first: client, ..Origin::default() })
        }
    };
    let subject = site.zip(asker.tls).and_then(|(site, tls)| site.subject(tls));
    let is_early = asker.tls.is_some_and(|tls| tls.is_early)
        && settings.request.early_data
        && may_be_early(request);
    let origin = Origin { secure: asker.tls.is_some(), subject, is_early, ..origin };
    let mut head = RequestHead::in_memory(core.pool.text());
    let policy = &settings.request;
    head.write(request, to.path, policy, origin).map_err(NotSent::from)?;
    join_tags(&mut head, request);
    let may_code = !head.asks_upgrade() && !asks_tunnel(request);
    let compress = asker.codings.filter(|_| may_code).map(|rules| Compress::of(rules, request));
    if let Some(compress) = &compress {
        name_strong_tags(&mut head, request);
        if compress.may_mix(request) {
            head.edit(&["Range", "If-Range"], &[]);
        }
    }
    let guards = global.guards.as_deref();
    let reserved = guards.map_or(&[][..], |guards| guards.reserved(to.site));
    demand::tell(&mut head, reserved, asker.granted);
    global.mirrors.tell_original(to.site, &mut head);
    // The operator's changes come last.
    if let Some(edits) = asker.edits {
        head.apply(edits);
    }
    if asks_tunnel(request) && !head.asks_upgrade() {
        return Err(NotSent::Status(Status::NOT_IMPLEMENTED));
    }
    preface::end_after(group, &mut head);
    if asker.proof.is_some() {
        head.claim([QUESTION].into_iter(), &[]);
        // Another machine sends all of it to one client or more.
        head.edit(&CONDITIONS, &[]);
    }
    // The limits come last, so that a request that is refused for another reason does not count.
    let counted = asker.granted.and_then(|granted| granted.permit.take());
    let permit = match (counted, site) {
        (Some(permit), _) => Some(permit),
        (None, None) => None,
        // The other machine has let it in.
        (None, Some(_)) if asker.proof.is_some() => None,
        (None, Some(site)) => {
            let permit = admit(site, connection, (client, origin.trusted), now);
            Some(permit.map_err(NotSent::Limited)?)
        }
    };

    let affinity = affinity(to.affinity);
    let cookie = group.cookie_name().filter(|_| affinity == Affinity::Cookie);
    let cookie = cookie.and_then(|name| cookie_value(request, name)).map(Box::from);
    let asked = AskedServer {
        head: request.method == Method::Head,
        upgrade: head.asks_upgrade(),
        trailers: head.takes_trailers(),
        tunnel: asks_tunnel(request),
    };
    let listener = global.listeners.get(asker.listener.0 as usize).copied().flatten();
    // A client that a router names has no port that is known.
    let port = if client == asker.client { asker.port } else { 0 };
    let user = asker.granted.and_then(|granted| granted.user.as_deref());
    let told = Told { client, port, origin, user, listener };
    let job = Job {
        fastcgi: to.script.map(|run| script::params(request, run, told)),
        preface: preface::of(group, client, port, listener),
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
        sharer: sharer(global, site, client),
        cookie,
        affinity: Some(affinity),
        names_server: asker.names_server,
        over_tls: asker.tls.is_some(),
        hsts: asker.hsts.cloned(),
        lines: match asker.proof {
            Some(proof) => Some(Arc::clone(proof)),
            None => asker.granted.and_then(|granted| cookies(granted)),
        },
        edits: asker
            .edits
            .filter(|edits| edits.rules.touches_answers())
            .map(|edits| if asker.proof.is_some() { edits.without_changes() } else { edits })
            .map(Edits::keep),
        replaces: asker.errors.and_then(|errors| errors.pages.replaces.clone()),
        compress,
    };
    Ok(Prepared { job, permit, is_early })
}

/// Lets a request to servers through the limits of a site.
pub(crate) fn admit(
    site: &Site,
    connection: &mut Option<ConnectionPermit>,
    (client, is_router): (Option<IpAddr>, bool),
    now: Now,
) -> Result<Permit, Refused> {
    if !connection.as_ref().is_some_and(|permit| permit.is_at(&site.gate)) {
        // The permit of the site before is given back even if this site refuses the connection.
        *connection = None;
        *connection = site.gate.enter(now.steady_us, client.filter(|_| !is_router))?;
    }
    site.gate.admit(now.steady_us, client)
}

/// The client whose share of the servers a request takes.
pub(crate) fn sharer(
    global: &Global,
    site: Option<&Site>,
    client: Option<IpAddr>,
) -> Option<IpAddr> {
    let is_router = |client: IpAddr| site.is_some_and(|site| site.trusts(Client::Ip(client)));
    client.filter(|&client| !is_router(client) && !global.police.allows(client))
}

/// The cookies of servers that have consented.
fn cookies(granted: &Granted) -> Option<Arc<[u8]>> {
    let lines: Vec<&[u8]> = granted.cookies().collect();
    (!lines.is_empty()).then(|| lines.concat().into())
}

/// Puts several lines of tags into one: servers of HTTP/2 in Node read only the first of them.
fn join_tags(head: &mut RequestHead, request: &Request<'_, '_>) {
    if !request.has_any(KnownSet::CONDITIONAL) {
        return;
    }
    for name in ["If-Match", "If-None-Match"] {
        let lines = || request.fields().filter(|(own, _)| own.eq_ignore_ascii_case(name));
        if lines().nth(1).is_some() {
            let values: Vec<&[u8]> = lines().map(|(_, value)| value).collect();
            head.edit(&[name], &[(name, &values.join(&b", "[..]))]);
        }
    }
}

/// Has the server know its own tags where AFPA has made them weak.
fn name_strong_tags(head: &mut RequestHead, request: &Request<'_, '_>) {
    const NAME: &str = "If-None-Match";
    let mut lines = request.fields().filter(|(name, _)| name.eq_ignore_ascii_case(NAME));
    if let (Some((_, value)), None) = (lines.next(), lines.next())
        && let Some(both) = etag::with_strong_spellings(value)
    {
        head.edit(&[NAME], &[(NAME, &both)]);
    }
}

/// Whether a request is an extended CONNECT, whose client takes every success for a tunnel (RFC 8441 section 5). Nothing
/// else has Upgrade in HTTP/2 and HTTP/3.
pub(crate) fn asks_tunnel(request: &Request<'_, '_>) -> bool {
    request.version.has_streams() && request.has(Known::Upgrade)
}

/// Whether a request may be asked twice without harm (RFC 8470 section 4).
fn may_be_early(request: &Request<'_, '_>) -> bool {
    let is_safe = matches!(request.method, Method::Get | Method::Head | Method::Options);
    is_safe && request.body == BodyLength::None && !request.has(Known::Upgrade)
}

fn affinity(wanted: router::Affinity) -> Affinity {
    match wanted {
        router::Affinity::None => Affinity::None,
        router::Affinity::Client => Affinity::Client,
        router::Affinity::Cookie => Affinity::Cookie,
    }
}

/// RFC 9110 section 9.2.2.
pub(crate) fn is_idempotent(method: Method<'_>) -> bool {
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

impl From<NotForwardable> for NotSent {
    fn from(why: NotForwardable) -> Self {
        match why {
            NotForwardable::AboutThisServer | NotForwardable::LastStop => NotSent::Options,
            NotForwardable::Connect | NotForwardable::Trace => {
                NotSent::Status(Status::METHOD_NOT_ALLOWED)
            }
            NotForwardable::Connection => NotSent::Status(Status::BAD_REQUEST),
            NotForwardable::Ring => NotSent::Status(Status::BAD_GATEWAY),
        }
    }
}

/// The line of a question of another machine.
const QUESTION: &str = "AFPA-Question";

const CONDITIONS: [&str; 2] = ["If-None-Match", "If-Modified-Since"];
