//! *Derive cached response*: from a request to its route, and to the answer that the cache has for it.

use afpa_cache::{Lookup, View};
use afpa_framework::{Cached, Client, Now, Outbox, Persistence, Table};
use afpa_http::Request;
use afpa_police::Refusal;
use afpa_router::{RequestSetId, SiteId};

use super::data::Again;
use super::kept::{self, Kept};
use super::{Http, HttpConnection, HttpRequest, Missed, steady};
use crate::asked::Asked;
use crate::demand::Granted;
use crate::errors::Errors;
use crate::global::Global;
use crate::header::HttpHeader;
use crate::learnt::Learnt;
use crate::question::client_of;
use crate::rates::{Limited, PlaceRates};
use crate::respond::Responder;
use crate::route::{self, FileRoute, Route};

impl<T: Table> Http<T> {
    /// [`Module::derive_cached_response`](afpa_framework::Module::derive_cached_response), perhaps once more with what is known by now.
    pub(super) fn derive<'m, 's, 'b>(
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

/// The error pages of a request set or site.
#[inline]
pub(super) fn errors_of(
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
