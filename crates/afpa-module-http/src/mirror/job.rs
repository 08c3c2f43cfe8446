//! The request that a mirror sends: that of the place's own servers, for another group.

use std::sync::Arc;

use afpa_framework::Client;
use afpa_http::{BodyLength, Method, Request};
use afpa_proxy::exchange::Job;
use afpa_proxy::request::{Origin, RequestHead, RequestPolicy};
use afpa_proxy::response::Asked as AskedServer;
use afpa_proxy::select::url_hash;

use super::{Dropped, FIELD, LONGEST_CONTENT, Mirror, MirrorPlace};
use crate::asked::Asked;
use crate::demand;
use crate::global::{Global, ServerGroup};
use crate::preface;
use crate::remote::{Asker, Distributed, asks_tunnel, is_idempotent, sharer};

/// The mirror of a request that goes to servers; `None`: it is not one of those that are mirrored, or there is no room.
pub(crate) fn of(
    global: &Global,
    place: &MirrorPlace,
    (asked, peer): (Asked<'_, '_, '_>, Client),
    to: Distributed<'_>,
    (asker, is_early): (&Asker<'_>, bool),
) -> Option<Box<Mirror>> {
    if !place.takes_next() {
        return None;
    }
    let stock = &global.mirrors.stock;
    match mirror(global, place, (asked, peer), to, (asker, is_early)) {
        Ok(mirror) => Some(Box::new(mirror)),
        Err(why) => {
            stock.dropped(why);
            None
        }
    }
}

fn mirror(
    global: &Global,
    place: &MirrorPlace,
    (asked, peer): (Asked<'_, '_, '_>, Client),
    to: Distributed<'_>,
    (asker, is_early): (&Asker<'_>, bool),
) -> Result<Mirror, Dropped> {
    let request = asked.request;
    let group = global.groups.get(place.group.0 as usize);
    let ServerGroup { group, settings } = group.ok_or(Dropped::Unfit)?;
    if is_early && !settings.request.early_data || asks_tunnel(request) {
        return Err(Dropped::Unfit);
    }
    if matches!(request.body, BodyLength::Length(length) if length > LONGEST_CONTENT as u64) {
        return Err(Dropped::Content);
    }
    let site = global.sites.get(to.site.0 as usize);
    let peer = match peer {
        Client::Ip(peer) => Some(peer),
        Client::Unix => None,
    };
    let (client, origin) = match site {
        Some(site) => site.client_of(request, peer),
        None => (peer, Origin { client: peer, first: peer, ..Origin::default() }),
    };
    let subject = site.zip(asker.tls).and_then(|(site, tls)| site.subject(tls));
    let origin = Origin { secure: asked.tls.is_some(), subject, is_early, ..origin };
    let head = head(global, (asked, request), to, &settings.request, origin)?;
    if head.asks_upgrade() {
        return Err(Dropped::Unfit);
    }
    let mut head = head;
    preface::end_after(group, &mut head);
    let listener = global.listeners.get(asker.listener.0 as usize).copied().flatten();
    let port = if client == asker.client { asker.port } else { 0 };
    let held = global
        .mirrors
        .stock
        .hold(sharer(global, site, client), size_of::<Job>() + head.bytes().len())?;
    let asks_head = request.method == Method::Head;
    let job = Job {
        fastcgi: None,
        preface: preface::of(group, client, port, listener),
        group: Arc::clone(group),
        settings: Arc::clone(settings),
        head,
        body: request.body,
        asked: AskedServer { head: asks_head, ..AskedServer::default() },
        version: request.version,
        keep_alive: true,
        idempotent: is_idempotent(request.method),
        url_hash: url_hash(to.path, request.target.query()),
        client,
        sharer: sharer(global, site, client),
        cookie: None,
        affinity: None,
        names_server: false,
        over_tls: asked.tls.is_some(),
        hsts: None,
        lines: None,
        edits: None,
        replaces: None,
        compress: None,
    };
    Ok(Mirror { job: Box::new(job), content: Vec::new(), held })
}

/// The head as the place's own servers get it, with the policy of the other group. It says that it is a mirror; Via ends
/// the ring of a mirror that leads here again.
fn head(
    global: &Global,
    (asked, request): (Asked<'_, '_, '_>, &Request<'_, '_>),
    to: Distributed<'_>,
    policy: &RequestPolicy,
    origin: Origin<'_>,
) -> Result<RequestHead, Dropped> {
    let policy = RequestPolicy { via: true, ..policy.clone() };
    let mut head = RequestHead::default();
    head.write(request, to.path, &policy, origin).map_err(|_| Dropped::Unfit)?;
    let guards = global.guards.as_deref();
    let reserved = guards.map_or(&[][..], |guards| guards.reserved(to.site));
    demand::tell(&mut head, reserved, asked.granted);
    if let Some(edits) = asked.edits {
        head.apply(edits);
    }
    head.edit(&["Expect"], &[]);
    head.claim(std::iter::once(FIELD), &[(FIELD, b"1")]);
    Ok(head)
}
