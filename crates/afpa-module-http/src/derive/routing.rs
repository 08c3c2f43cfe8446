//! *Derive miss response*: the layer-7 router's verdict, and the answers that need nobody else.

use std::sync::Arc;

use afpa_framework::{Client, Miss, Outbox, Persistence};
use afpa_http::{Method, Request, Status, Target, target};
use afpa_router::{Action, SiteId, Unrouted};

use super::{Http, HttpConnection, HttpRequest, Pending, Way};
use crate::doc_root::DocRoot;
use crate::global::question;
use crate::remote::{self, Asker, Distributed, Local};
use crate::respond::Asked;
use crate::scope_stats::InFlight;

impl Http {
    /// The answer to a request that no router decides about: from the one root, or an error.
    pub(super) fn unrouted(
        &mut self,
        asked: Asked<'_, '_, '_>,
        head: &[u8],
        out: &mut Outbox,
    ) -> Miss<Pending> {
        // The site was not asked for if it does not serve the host: then it is nobody's.
        let root = self.global.roots.first();
        let scope = root
            .filter(|root| root.serves(asked.request.host))
            .and_then(|_| self.scopes.get(SiteId(0), None));
        let logged = self.responder.sink.enabled();
        let client = self.global.named(asked.request, SiteId(0), asked.client, logged);
        let asked = Asked { client, scope: scope.map(|scope| &**scope), ..asked };
        let Some(site) = root else {
            return Miss::Answered(self.responder.page(asked, Status::NOT_FOUND, out));
        };
        match route(site, asked.request, &mut self.path) {
            Ok(Route::File(path)) => Miss::Uncached(Pending {
                head: head.into(),
                limits: self.global.limits,
                arrived: asked.now,
                client,
                in_flight: scope.map(InFlight::count),
                way: Way::File { site: Arc::clone(site), path: path.into() },
            }),
            Ok(Route::Options) => Miss::Answered(self.responder.options(asked, out)),
            Err(status) => Miss::Answered(self.responder.page(asked, status, out)),
        }
    }

    /// Layer-7 routing (IBM paper, section 4).
    pub(super) fn routed(
        &mut self,
        connection: &mut HttpConnection,
        asked: Asked<'_, '_, '_>,
        request: &HttpRequest<'_, '_>,
        out: &mut Outbox,
    ) -> Miss<Pending> {
        let Self { global, responder, scopes, path: room, joined, core, .. } = self;
        let (parsed, head) = (asked.request, request.head);
        let path = match parsed.target {
            Target::Asterisk => return Miss::Answered(responder.options(asked, out)),
            Target::Authority(_) => {
                // What follows may be meant for the tunnel that there is not.
                let asked = Asked { must_close: true, ..asked };
                let status = Status::METHOD_NOT_ALLOWED;
                return Miss::Answered(responder.page(asked, status, out));
            }
            Target::Origin { path, .. } | Target::Absolute { path, .. } => path,
        };
        let path = match target::normalise(path, room) {
            Ok(path) => path,
            Err(error) => return Miss::Answered(responder.page(asked, error.status(), out)),
        };
        let again = request.routed.get().and_then(|routed| global.again(routed, path));
        debug_assert!(
            again.is_none() || again.map(Ok) == global.verdict(connection.listener, parsed, path),
            "a request has one verdict"
        );
        let verdict = again.map(Ok).or_else(|| global.verdict(connection.listener, parsed, path));
        let verdict = match verdict {
            Some(Ok(verdict)) => verdict,
            Some(Err(Unrouted::Misdirected)) => {
                return Miss::Answered(responder.page(asked, Status::MISDIRECTED_REQUEST, out));
            }
            Some(Err(Unrouted::NotFound(site))) => {
                let scope = scopes.get(site, None).map(|scope| &**scope);
                let client = global.named(parsed, site, asked.client, responder.sink.enabled());
                let asked = Asked { client, scope, ..asked };
                return Miss::Answered(responder.page(asked, Status::NOT_FOUND, out));
            }
            None => {
                return Miss::Answered(responder.page(asked, Status::NOT_FOUND, out));
            }
        };
        let scope = scopes.get(verdict.site, Some(verdict.set));
        let (peer, logged) = (asked.client, responder.sink.enabled());
        let client = global.named(parsed, verdict.site, peer, logged);
        let asked = Asked { client, scope: scope.map(|scope| &**scope), ..asked };
        if !matches!(verdict.action, Action::Distributed { .. }) && global.leaves_content(parsed) {
            let status = Status::CONTENT_TOO_LARGE;
            asked.count(status.code());
            responder.refuse(asked.client, status, asked.now, out);
            return Miss::Answered(Persistence::Close);
        }
        let answered = match verdict.action {
            Action::Cached { root } => match (parsed.method, global.root(root.0)) {
                (Method::Get | Method::Head, Some(site)) => {
                    return Miss::Uncached(Pending {
                        head: head.into(),
                        limits: global.limits,
                        arrived: asked.now,
                        client,
                        in_flight: scope.map(InFlight::count),
                        way: Way::File {
                            site: Arc::clone(site),
                            path: verdict.path.join(joined).into(),
                        },
                    });
                }
                (Method::Options, _) => responder.options(asked, out),
                (method, _) => responder.page(asked, not_for_files(method), out),
            },
            Action::Redirect(redirect) => {
                let question = question(connection.listener, parsed, path);
                let location = verdict.location(&question).unwrap_or_default();
                let status = status_of(redirect.status).unwrap_or(Status::FOUND);
                responder.redirect(asked, status, &location, out)
            }
            Action::Fixed(fixed) => {
                let status = status_of(fixed.status).unwrap_or(Status::OK);
                responder.fixed(asked, status, (&fixed.content_type, &fixed.body), out)
            }
            Action::Distributed { group, affinity } => {
                let to = Distributed {
                    site: verdict.site,
                    group: *group,
                    affinity: *affinity,
                    path: verdict.path.join(joined),
                };
                let client_address = match peer {
                    Client::Ip(client) => Some(client),
                    Client::Unix => None,
                };
                let asker = Asker {
                    client: client_address,
                    names_server: logged,
                    is_last: asked.must_close,
                };
                let place = &mut connection.place;
                match remote::prepare(global, core, parsed, to, (asker, place), asked.now) {
                    Ok(remote) => {
                        // Its content is the server's.
                        connection.skipping = None;
                        let mut kept = core.pool.text();
                        kept.extend_from_slice(head);
                        return Miss::Remote(Pending {
                            head: kept,
                            limits: global.limits,
                            arrived: asked.now,
                            client,
                            in_flight: scope.map(InFlight::count),
                            way: Way::Remote(remote),
                        });
                    }
                    Err(Local::Options) => responder.options(asked, out),
                    Err(Local::Status(status)) => responder.page(asked, status, out),
                    Err(Local::Limited(refused)) => {
                        let must_close = asked.must_close || refused.ends_connection();
                        responder.limited(Asked { must_close, ..asked }, refused, out)
                    }
                    Err(Local::TooLarge) => {
                        let asked = Asked { must_close: true, ..asked };
                        responder.page(asked, Status::CONTENT_TOO_LARGE, out)
                    }
                }
            }
        };
        Miss::Answered(answered)
    }
}

/// Where a request goes that the cache did not answer.
enum Route<'p> {
    File(&'p [u8]),
    Options,
}

/// Layer-7 routing, as far as there is only one site: the file system, or an error.
fn route<'p>(
    site: &DocRoot,
    request: &'p Request<'_, '_>,
    scratch: &'p mut Vec<u8>,
) -> Result<Route<'p>, Status> {
    if !site.serves(request.host) {
        return Err(Status::MISDIRECTED_REQUEST);
    }
    match request.method {
        Method::Get | Method::Head => {}
        Method::Options => return Ok(Route::Options),
        method => return Err(not_for_files(method)),
    }
    let path = match request.target {
        Target::Origin { path, .. } | Target::Absolute { path, .. } => path,
        Target::Authority(_) | Target::Asterisk => return Err(Status::BAD_REQUEST),
    };
    target::normalise(path, scratch).map(Route::File).map_err(|error| error.status())
}

/// What a method is told that files do not have.
fn not_for_files(method: Method<'_>) -> Status {
    match method {
        Method::Other(_) => Status::NOT_IMPLEMENTED,
        _ => Status::METHOD_NOT_ALLOWED,
    }
}

/// A status that AFPA itself sends.
fn status_of(code: u16) -> Option<Status> {
    Status::ALL.iter().copied().find(|status| status.code() == code)
}
