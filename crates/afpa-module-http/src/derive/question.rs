//! The question to a server whether a request may be answered: a GET request of AFPA's own that describes the other.

use std::sync::Arc;

use afpa_framework::Client;
use afpa_http::edits::Edits;
use afpa_http::{BodyLength, Request, Status, target};
use afpa_proxy::exchange::Job;
use afpa_proxy::limit::ConnectionPermit;
use afpa_proxy::request::{Mark, Origin, RequestHead, RequestPolicy};
use afpa_proxy::response::Asked as AskedServer;
use afpa_router::SiteId;

use crate::asked::Asked;
use crate::demand::ServerDemand;
use crate::global::{Global, ServerGroup};
use crate::learnt::Learnt;
use crate::own_request;
use crate::preface;
use crate::remote::{NotSent, admit, sharer};
use crate::script::seen_scheme;

/// The fields in which the question describes the request. A client's own are removed under all their names.
const DESCRIBING: [&str; 5] = [
    "X-Forwarded-Method",
    "X-Forwarded-Uri",
    "X-Original-Method",
    "X-Original-URI",
    "X-Original-URL",
];

/// The question about a request of a site, ready for a server.
pub(crate) fn job(
    global: &Global,
    asked: Asked<'_, '_, '_>,
    (demand, site): (&ServerDemand, Option<SiteId>),
    (learnt, peer): (&Learnt, Client),
    (connection, names_server): (&mut Option<ConnectionPermit>, bool),
) -> Result<Box<Job>, NotSent> {
    let nowhere = NotSent::Status(Status::BAD_GATEWAY);
    let request = asked.request;
    let Some(ServerGroup { group, settings }) = global.groups.get(demand.group.0 as usize) else {
        debug_assert!(false, "a demand names a group that there is");
        return Err(nowhere);
    };
    let peer = match peer {
        Client::Ip(peer) => Some(peer),
        Client::Unix => None,
    };
    let id = site;
    let site = site.and_then(|site| global.sites.get(site.0 as usize));
    let (client, origin) = match site {
        Some(site) => site.client_of(request, peer),
        None => (peer, Origin { client: peer, first: peer, ..Origin::default() }),
    };
    let origin = Origin { secure: asked.tls.is_some(), ..origin };
    // The server believes these fields, whatever the group gets with other requests. Via ends the ring of a server that
    // asks itself.
    let request_policy = settings.request.clone();
    let policy = RequestPolicy { x_forwarded: Mark::Replace, via: true, ..request_policy };
    let keeps_all = |_: &str| false;
    let head = own_request::head(request, &demand.path, keeps_all, (&policy, origin));
    let (mut head, url_hash) = head.ok_or(nowhere)?;
    let guards = global.guards.as_deref();
    let reserved = id.zip(guards).map_or(&[][..], |(site, guards)| guards.reserved(site));
    describe(&mut head, request, origin, reserved);
    if let Some(edits) = asked.edits {
        head.mark(edits);
    }
    // Of a request that was routed again, the path before may have asked.
    let is_first = asked.granted.is_none_or(|granted| granted.permit.borrow().is_none());
    preface::end_after(group, &mut head);
    if learnt.permit.borrow().is_none()
        && is_first
        && let Some(site) = site
    {
        let permit = admit(site, connection, (client, origin.trusted), asked.now);
        *learnt.permit.borrow_mut() = Some(permit.map_err(NotSent::Limited)?);
    }
    let keep_alive = request.keep_alive
        && !asked.must_close
        && !request.expect_continue
        && !global.leaves_content(request);
    Ok(Box::new(Job {
        group: Arc::clone(group),
        settings: Arc::clone(settings),
        head,
        fastcgi: None,
        // It is a question of AFPA itself.
        preface: preface::of(group, None, 0, None),
        // The content of the request waits for the answer.
        body: BodyLength::None,
        asked: AskedServer::default(),
        version: request.version,
        keep_alive,
        idempotent: true,
        url_hash,
        client,
        sharer: sharer(global, site, client),
        cookie: None,
        affinity: None,
        names_server,
        over_tls: asked.tls.is_some(),
        hsts: asked.hsts.cloned(),
        lines: None,
        edits: asked.edits.filter(|edits| edits.rules.touches_answers()).map(Edits::keep),
        replaces: None,
        compress: None,
    }))
}

/// Writes the fields that describe the request. The path is as servers get it, not as it came: nobody has to
/// wonder how a server reads dots and doubled slashes.
fn describe(
    head: &mut RequestHead,
    request: &Request<'_, '_>,
    origin: Origin<'_>,
    reserved: &[Box<str>],
) {
    let mut room = Vec::new();
    let path = request.target.path().unwrap_or_default();
    let mut uri = target::spell(path, &mut room).unwrap_or(b"/").to_vec();
    if let Some(query) = request.target.query() {
        uri.push(b'?');
        target::encode_query(query, &mut uri);
    }
    let method = request.method.as_str().as_bytes();
    let mut fields = vec![
        ("X-Forwarded-Method", method),
        ("X-Forwarded-Uri", &uri),
        ("X-Original-Method", method),
        ("X-Original-URI", &uri),
    ];
    let host = seen_host(request, origin);
    let url = [seen_scheme(request, origin), b"://", &host, &uri].concat();
    if !host.is_empty() {
        fields.push(("X-Original-URL", &url));
    }
    let names = DESCRIBING.into_iter().chain(reserved.iter().map(|name| &**name));
    head.claim(names, &fields);
}

/// The host that the client asks, as a trusted router in front has it.
fn seen_host(request: &Request<'_, '_>, origin: Origin<'_>) -> Vec<u8> {
    let is_one = |name: &str| origin.trusted && name.eq_ignore_ascii_case("x-forwarded-host");
    let said = request.fields().find(|(name, _)| is_one(name)).map(|(_, value)| value);
    said.unwrap_or(request.host.as_bytes()).to_ascii_lowercase()
}
