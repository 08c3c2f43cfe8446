//! Layer-7 routing (IBM paper, section 4): from a request to where it goes. *Derive cached response* does
//! this once for each request, before it asks the cache: the route gives the key of the object.

mod destination;

use std::rc::Rc;

use afpa_framework::{Client, Secured};
use afpa_http::edits::{Cors, Edits};
use afpa_http::target::ESCAPED_SLASH;
use afpa_http::{Method, Request, Status, request, target};
use afpa_router::{
    Action, Fallback, Fields, ListenerId, Question, RequestSetId, Router, SiteId, Unrouted,
};

use crate::auth::{self, Ruling, Visit};
use crate::demand::Granted;
use crate::global::Global;
use crate::learnt::Learnt;
use crate::question::question;
use crate::rates::PlaceRates;
use crate::readings;
use crate::remote::{Distributed, asks_tunnel};
use destination::not_for_files;
pub(crate) use destination::{FileRoute, Route, Routed, Target, Unfit, run};

/// Memory for paths that do not lie in the input as they are needed.
#[derive(Default)]
pub(crate) struct PathRoom {
    /// For a path that does not arrive normalised.
    normalised: Vec<u8>,
    /// For a path that does not arrive in the spelling that servers get.
    spelled: Vec<u8>,
    /// For a path that the router rewrites.
    rewritten: Vec<u8>,
}

/// Finds out where a request goes.
#[inline]
pub(crate) fn route<'m>(
    global: &'m Global,
    (listener, peer): (ListenerId, Client),
    (request, tls): (&'m Request<'_, 'm>, Option<&'m Secured>),
    known: (Option<&Learnt>, Option<RequestSetId>),
    room: &'m mut PathRoom,
) -> Routed<'m> {
    let mut routed = match &global.router {
        Some(router) => by_router((global, router), (listener, peer), (request, tls), known, room),
        None => alone(global, request, room),
    };
    // Another connection, for this name, would be asked for the certificate that the site demands.
    if routed.site.is_some_and(|site| !global.admits(site, tls)) {
        routed.route = Route::Error(Status::MISDIRECTED_REQUEST);
    }
    if asks_tunnel(request)
        && matches!(
            routed.route,
            Route::File(FileRoute { unfit: None, .. })
                | Route::Fixed(_)
                | Route::Unfit(Unfit::Options)
        )
    {
        // A success would be a tunnel to nowhere.
        routed.route = Route::Error(Status::NOT_IMPLEMENTED);
    }
    routed
}

/// The route where a router decides.
#[inline]
fn by_router<'m>(
    (global, router): (&'m Global, &'m Router),
    (listener, peer): (ListenerId, Client),
    (request, tls): (&'m Request<'_, 'm>, Option<&'m Secured>),
    (learnt, within): (Option<&Learnt>, Option<RequestSetId>),
    room: &'m mut PathRoom,
) -> Routed<'m> {
    let path = match request.target {
        request::Target::Origin { path, .. } | request::Target::Absolute { path, .. } => path,
        request::Target::Asterisk => return Routed::nowhere(Route::Unfit(Unfit::Options)),
        request::Target::Authority(_) => return Routed::nowhere(Route::Tunnel),
    };
    if let Some(set) = within {
        return at_servers((global, router), set, request, path, room);
    }
    let asked = path;
    let path = match target::normalise(path, &mut room.normalised) {
        Ok(path) => path,
        Err(error) => return Routed::nowhere(Route::Error(error.status())),
    };
    let asks = question((global, listener, peer), (request, tls), path);
    // An escape is longer than its byte.
    let shut = match path.len() < asked.len() {
        true => readings::shut(router, &asks, &readings::separated(path)),
        false => None,
    };
    let read_as = match global.rates.are_none() || !readings::are_several(path) {
        true => Vec::new(),
        false => rates_of_readings(global, router, &asks),
    };
    let verdict = match shut.map_or_else(|| router.route(&asks), Ok) {
        Ok(verdict) => verdict,
        Err(Unrouted::Misdirected) => {
            return Routed::nowhere(Route::Error(Status::MISDIRECTED_REQUEST));
        }
        Err(Unrouted::NotFound(site)) => {
            let way = (listener, peer);
            let visit = Visit { site, way, request, tls, path, index: &[], is_file: false };
            let edits = global.fields.of_site(site).map(|rules| rules.of(path, request));
            let (route, granted) = match barred(auth::rule(global, visit, learnt), edits, request) {
                Ok(route) => (route, None),
                Err(granted) => (Route::Error(Status::NOT_FOUND), granted),
            };
            let scope = Some((site, None));
            return Routed { site: Some(site), scope, route, edits, granted, read_as };
        }
    };
    let index = match verdict.action {
        Action::Cached { root, .. } => global.root(root.0).map(|root| &root.settings().index[..]),
        _ => None,
    };
    let (site, index) = (verdict.site, index.unwrap_or_default());
    let scope = Some((site, Some(verdict.set)));
    let edits = global.fields.of_set(verdict.set).map(|rules| rules.of(path, request));
    let is_file = matches!(verdict.action, Action::Cached { .. });
    let visit = Visit { site, way: (listener, peer), request, tls, path, index, is_file };
    let granted = match barred(auth::rule(global, visit, learnt), edits, request) {
        Ok(route) => {
            return Routed { site: Some(site), scope, route, edits, granted: None, read_as };
        }
        Err(granted) => granted,
    };
    let route = match verdict.action {
        _ if verdict.content.target().is_some() => {
            let question = question((global, listener, peer), (request, tls), path);
            let spelled = target::spell(asked, &mut room.spelled).unwrap_or_default();
            let again = matches!(verdict.action, Action::Again(_));
            let within = (!again).then_some(verdict.set);
            match verdict.target(&question, spelled) {
                Some(text) if text.len() > global.limits.request_line => {
                    Route::Error(Status::URI_TOO_LONG)
                }
                Some(text) => Route::Rewritten(Target { text, within }),
                None => Route::Error(Status::BAD_REQUEST),
            }
        }
        Action::Distributed { group, affinity } => {
            // A path that could be normalised can be spelled.
            let url = target::spell(asked, &mut room.spelled).unwrap_or_default();
            Route::Distributed(Distributed {
                site: verdict.site,
                group: *group,
                affinity: *affinity,
                url,
                path: verdict.path.spelled(url, path.len(), &mut room.rewritten),
                script: None,
            })
        }
        Action::Cached { root, fallback, scripts } => {
            let unfit = Unfit::of(global, request);
            // A status is for every method where there is no file.
            let told = matches!(fallback, Some(Fallback::Distributed { .. } | Fallback::Status(_)));
            let asks = scripts.is_some() || told;
            match (global.root(root.0), unfit) {
                (Some(root), unfit) if unfit.is_none() || asks => {
                    let path = verdict.path.join(&mut room.rewritten);
                    let (fallback, scripts) = (fallback.as_ref(), scripts.as_ref());
                    Route::File(FileRoute { root, path, fallback, scripts, unfit })
                }
                (_, Some(unfit)) => Route::Unfit(unfit),
                (_, None) => Route::Error(Status::NOT_FOUND),
            }
        }
        _ if global.leaves_content(request) => Route::Unfit(Unfit::ContentTooLarge),
        Action::Redirect(redirect) => Route::Redirect { status: redirect.status, verdict, path },
        Action::Fixed(fixed) => Route::Fixed(fixed),
        // It has a target.
        Action::Again(_) => Route::Error(Status::NOT_FOUND),
    };
    let route = match edits.and_then(|edits| edits.rules.cors.as_ref()) {
        Some(cors) if !matches!(route, Route::Unfit(Unfit::ContentTooLarge)) => {
            preflight(cors, request).unwrap_or(route)
        }
        _ => route,
    };
    Routed { site: Some(site), scope, route, edits, granted, read_as }
}

/// The rates of the places to which other readings of a path lead: the server that answers may take it for one of these.
#[cold]
fn rates_of_readings<F: Fields + Copy>(
    global: &Global,
    router: &Router,
    asks: &Question<'_, F>,
) -> Vec<PlaceRates> {
    let apart = readings::separated(asks.path);
    let others = readings::readings(asks.path, &apart, &[], false);
    let rates = others.iter().map(|path| {
        let scope = match router.route(&Question { path, ..*asks }) {
            Ok(verdict) => Some((verdict.site, Some(verdict.set))),
            Err(Unrouted::NotFound(site)) => Some((site, None)),
            Err(Unrouted::Misdirected) => None,
        };
        global.rates.of(scope)
    });
    rates.filter(|rates| !rates.is_empty()).collect()
}

/// The route of a request to the servers of its request set, with the path and the query that these get. Its client was
/// let in by the path of the URL.
fn at_servers<'m>(
    (global, router): (&'m Global, &'m Router),
    set: RequestSetId,
    request: &'m Request<'_, 'm>,
    path: &'m [u8],
    room: &'m mut PathRoom,
) -> Routed<'m> {
    let PathRoom { normalised, rewritten, .. } = room;
    let sent = request.sent_target().path().unwrap_or_default();
    let edits = target::normalise(sent, normalised)
        .ok()
        .and_then(|sent| global.fields.of_set(set).map(|rules| rules.of(sent, request)));
    let verdict = router.within(set, path);
    let site = verdict.map(|verdict| verdict.site);
    let route = match (verdict.map(|verdict| verdict.action), target::spell(path, rewritten)) {
        (Some(Action::Distributed { group, affinity }), Ok(path)) => {
            let (group, affinity, site) = (*group, *affinity, site.unwrap_or(SiteId(u32::MAX)));
            let (url, script) = (path, None);
            Route::Distributed(Distributed { site, group, affinity, url, path, script })
        }
        (_, Err(error)) => Route::Error(error.status()),
        _ => Route::Error(Status::INTERNAL_SERVER_ERROR),
    };
    let scope = site.map(|site| (site, Some(set)));
    Routed { site, scope, route, edits, granted: None, read_as: Vec::new() }
}

/// The way of another machine's question to servers, by the rules of its place, and the changes of its fields. `None`: it leads
/// to none that answer for all.
pub(crate) fn for_peer<'m>(
    global: &'m Global,
    set: RequestSetId,
    request: &'m Request<'_, 'm>,
    room: &'m mut PathRoom,
) -> Option<(Distributed<'m>, Option<Edits<'m>>)> {
    let PathRoom { normalised, spelled, rewritten } = room;
    let asked = request.target.path()?;
    let path = target::normalise(asked, normalised).ok()?;
    let edits = global.fields.of_set(set).map(|rules| rules.of(path, request));
    let verdict = global.router.as_ref()?.of_set(set, path)?;
    if verdict.content.target().is_some() {
        return None;
    }
    let url = target::spell(asked, spelled).ok()?;
    let (group, affinity, path) = match verdict.action {
        Action::Distributed { group, affinity } => {
            (*group, *affinity, verdict.path.spelled(url, path.len(), rewritten))
        }
        Action::Cached {
            fallback: Some(Fallback::Distributed { group, affinity }),
            scripts: None,
            ..
        } => (*group, *affinity, url),
        _ => return None,
    };
    let (site, script) = (verdict.site, None);
    Some((Distributed { site, group, affinity, url, path, script }, edits))
}

/// The route of a preflight.
fn preflight<'m>(cors: &'m Cors, request: &'m Request<'_, 'm>) -> Option<Route<'m>> {
    cors.preflight(request).map(|_| Route::Preflight(cors))
}

/// The route of a request that is not let through; `Err`: it is, and perhaps its client was checked. A preflight has no
/// credentials (the Fetch standard, section 3.3.3), and its answer is nothing but settings: it is not asked for any.
fn barred<'m>(
    ruling: Ruling,
    edits: Option<Edits<'m>>,
    request: &'m Request<'_, 'm>,
) -> Result<Route<'m>, Option<Rc<Granted>>> {
    let route = match ruling {
        Ruling::Free(granted) => return Err(granted),
        Ruling::Forbidden => return Ok(Route::Error(Status::FORBIDDEN)),
        Ruling::Unauthorized(demand) => Route::Unauthorized(demand),
        Ruling::Check(demand, credentials) => Route::Check(demand, credentials),
        Ruling::Busy => Route::Busy,
        Ruling::Ask(demand) => Route::Ask(demand),
    };
    let cors = edits.and_then(|edits| edits.rules.cors.as_ref());
    Ok(cors.and_then(|cors| preflight(cors, request)).unwrap_or(route))
}

/// The route where there is one site without routes: the file system, or an error.
#[inline]
fn alone<'m>(
    global: &'m Global,
    request: &'m Request<'_, 'm>,
    room: &'m mut PathRoom,
) -> Routed<'m> {
    let only = SiteId(0);
    let Some(root) = global.roots.first() else {
        let route = Route::Error(Status::NOT_FOUND);
        return Routed { site: Some(only), ..Routed::nowhere(route) };
    };
    if !root.serves(request.host) {
        let route = Route::Error(Status::MISDIRECTED_REQUEST);
        return Routed { site: Some(only), ..Routed::nowhere(route) };
    }
    let route = match (request.method, request.target.path()) {
        (Method::Get | Method::Head, Some(path)) => {
            match target::normalise(path, &mut room.normalised) {
                // No file has such a name.
                Ok(normal) if normal.len() < path.len() && normal.contains(&ESCAPED_SLASH) => {
                    Route::Error(Status::NOT_FOUND)
                }
                Ok(path) => {
                    let (fallback, scripts, unfit) = (None, None, None);
                    Route::File(FileRoute { root, path, fallback, scripts, unfit })
                }
                Err(error) => Route::Error(error.status()),
            }
        }
        (Method::Get | Method::Head, None) => Route::Error(Status::BAD_REQUEST),
        (Method::Options, _) => Route::Unfit(Unfit::Options),
        (method, _) => Route::Error(not_for_files(method)),
    };
    let scope = Some((only, None));
    Routed { site: Some(only), scope, ..Routed::nowhere(route) }
}
