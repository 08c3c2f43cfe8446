//! *Derive miss response*: from the route of a request that the cache does not answer to its answer, or to
//! the state that finds one.

use std::rc::Rc;
use std::sync::Arc;

use afpa_framework::{Client, Finished, Miss, Outbox, Persistence, Seldom, steady_ms};
use afpa_http::edits::Edits;
use afpa_http::{Status, target};
use afpa_proxy::coding::CodingRules;
use afpa_proxy::exchange;
use afpa_router::{MOST_REWRITES, RequestSetId, SiteId};
use afpa_shared_cache::{FromPeer, Plan};

use super::HttpConnection;
use super::question::job;
use crate::asked::{Asked, KeptRequest, Rewritten};
use crate::auth::PasswordCheck;
use crate::consent::Question;
use crate::global::Global;
use crate::learnt::{CheckedRequest, Learnt};
use crate::mirror::{self, MirrorPlace};
use crate::question::question;
use crate::remote::{self, Asker, Distributed, NotSent, Prepared, Remote, RemoteRequest};
use crate::respond::Responder;
use crate::route::{FileRoute, Route, Target};
use crate::uncached::{KeptFallback, Uncached, Work};

/// A request that was routed and is not in the cache. It borrows the parts of the module that answer it.
pub struct Missed<'m, 's, 'b> {
    pub(super) asked: Asked<'m, 's, 'b>,
    pub(super) head: &'b [u8],
    pub(super) route: Route<'m>,
    /// The site and request set that it belongs to.
    pub(super) scope: Option<(SiteId, Option<RequestSetId>)>,
    /// How the shared cache is used, if it is.
    pub(super) plan: Option<Plan>,
    /// The results of checks of the client.
    pub(super) learnt: Option<Learnt>,
    /// The request is the question of another machine.
    pub(super) peer: Option<AskedByPeer<'m>>,
    pub(super) global: &'m Arc<Global>,
    pub(super) responder: &'m mut Responder,
    pub(super) core: &'m Rc<exchange::Core>,
}

/// The question of another machine.
#[derive(Clone)]
pub(super) struct AskedByPeer<'m> {
    pub(super) question: FromPeer,
    /// The changes of the request for servers. The other machine makes those of the answer.
    pub(super) edits: Option<Edits<'m>>,
}

impl Missed<'_, '_, '_> {
    /// Answers the request, or sends it on.
    pub(super) fn respond(
        self,
        connection: &mut HttpConnection,
        out: &mut Outbox,
    ) -> Miss<Work, Remote> {
        let Self { asked, head, route, scope, plan, learnt, peer, global, responder, core } = self;
        let again = &mut *responder;
        let missed = Missed {
            asked,
            head,
            route,
            scope,
            plan,
            learnt,
            peer,
            global,
            responder: again,
            core,
        };
        match missed.answer(connection, out) {
            Miss::Answered(persistence) => {
                match asked_or(asked, head, global, responder, persistence) {
                    Finished::Answered(persistence) => Miss::Answered(persistence),
                    Finished::Remote(request) => Miss::Remote(request),
                }
            }
            other => other,
        }
    }

    fn answer(self, connection: &mut HttpConnection, out: &mut Outbox) -> Miss<Work, Remote> {
        let Self { asked, head, route, scope, plan, learnt, peer, global, responder, core } = self;
        if !matches!(route, Route::Refused(_) | Route::ErrorPage)
            && !remote::asks_tunnel(asked.request)
            && let Some(content) = global.challenge(asked.request)
        {
            let (kind, content) = ("application/octet-stream", content.as_bytes());
            return Miss::Answered(responder.fixed(asked, Status::OK, (kind, content), out));
        }
        Miss::Answered(match route {
            // Requests for missing files, which robots send all day, are not worth a thread each.
            Route::File(FileRoute { root, path, fallback: None, unfit, .. })
                if unfit.is_none() && root.is_absent_again(path) =>
            {
                responder.page(Asked { source: "uncached", ..asked }, Status::NOT_FOUND, out)
            }
            Route::File(FileRoute { root, path, fallback, scripts, unfit }) => {
                let kept = |scope| KeptFallback {
                    global: Arc::clone(global),
                    fallback: fallback.cloned(),
                    scripts: scripts.cloned(),
                    scope,
                };
                let site = scope.map(|(site, _)| site);
                let scope = scope.and_then(|(site, set)| Some((site, set?)));
                let scope = scope.filter(|_| fallback.is_some() || scripts.is_some());
                return Miss::Uncached(Work::Load(Box::new(Uncached {
                    request: KeptRequest::new(&asked, head.into(), global.limits),
                    root: Arc::clone(root),
                    path: path.into(),
                    fallback: scope.map(kept).map(Box::new),
                    unfit,
                    sharer: global.sharer(asked.request, site, connection.client),
                })));
            }
            Route::Distributed(to) => {
                let set = scope.and_then(|(_, set)| set);
                let codings = global.codings.of(set);
                let settings = global.exchanges.of(set, to.group);
                // The machine that has asked has mirrored it.
                let mirror = global.mirrors.of(set).filter(|_| peer.is_none());
                let distributing = Distributing {
                    asked,
                    head,
                    plan,
                    codings,
                    settings,
                    mirror,
                    peer,
                    global,
                    responder,
                    core,
                };
                return match distributing.respond(to, connection, out) {
                    Finished::Answered(persistence) => Miss::Answered(persistence),
                    Finished::Remote(request) => Miss::Remote(request),
                };
            }
            Route::Redirect { status, verdict, path } => {
                let from = (&**global, connection.listener, connection.client);
                let question = question(from, (asked.request, None), path);
                let mut room = Vec::new();
                let spelled = target::spell(asked.request.target.path().unwrap_or(path), &mut room);
                let location = verdict.location(&question, spelled.unwrap_or_default());
                match location {
                    Some(location) => responder.redirect(asked, status, &location, out),
                    None => responder.page(asked, Status::BAD_REQUEST, out),
                }
            }
            Route::Rewritten(_) if asked.request.rewrites >= MOST_REWRITES => {
                tell_loop(asked.request.raw_target);
                responder.page(asked, Status::INTERNAL_SERVER_ERROR, out)
            }
            Route::Rewritten(Target { text, within }) => {
                let mut request = KeptRequest::new(&asked, head.into(), global.limits);
                let times = asked.request.rewrites + 1;
                let within = within.and_then(|set| Some((set, global.router.clone()?)));
                request.rewritten = Some(Box::new(Rewritten { target: text, times, within }));
                let mut learnt = learnt.unwrap_or_default();
                // Servers have consented to the path before, and may say otherwise of this one. The request has their
                // cookies and fields.
                learnt.consents.clear();
                return Miss::Uncached(Work::Again(Box::new(CheckedRequest { request, learnt })));
            }
            Route::Fixed(fixed) if fixed.body.is_empty() && asked.has_page(fixed.status) => {
                responder.page(asked, fixed.status, out)
            }
            Route::Fixed(fixed) => {
                responder.fixed(asked, fixed.status, (&fixed.content_type, &fixed.body), out)
            }
            Route::Unauthorized(demand) => responder.unauthorized(asked, &demand.challenge, out),
            Route::Check(demand, credentials) => {
                let site = scope.map(|(site, _)| site);
                let client = global.logged_client(asked.request, site, connection.client);
                let request = KeptRequest::new(&asked, head.into(), global.limits);
                let learnt = learnt.unwrap_or_default();
                let check = PasswordCheck { request, client, demand, credentials, learnt };
                return Miss::Uncached(Work::Check(Box::new(check)));
            }
            Route::Busy => responder.busy(asked, out),
            Route::Ask(demand) => {
                let learnt = learnt.unwrap_or_default();
                let about = (&*demand, scope.map(|(site, _)| site));
                let from = (&mut connection.permit, responder.records(asked.edits));
                let peer = connection.client;
                match job(global, asked, about, (&learnt, peer), from) {
                    Ok(job) => {
                        let request = KeptRequest::new(&asked, head.into(), global.limits);
                        let question = Question::new(demand, learnt, asked.request);
                        return Miss::Remote(RemoteRequest::for_consent(request, job, question));
                    }
                    Err(why) => not_sent(responder, asked, why, out),
                }
            }
            Route::Unfit(unfit) => responder.unfit(asked, unfit, out),
            Route::Preflight(cors) => responder.preflight(asked, cors, out),
            Route::Status(status) => responder.status(asked, status, out),
            Route::Error(status) => responder.page(asked, status, out),
            Route::ErrorPage => Persistence::Keep,
            Route::Tunnel => {
                let asked = Asked { must_close: true, ..asked };
                responder.page(asked, Status::METHOD_NOT_ALLOWED, out)
            }
            Route::Refused(why) => responder.refused(asked, why, out),
            Route::Limited(limited) => responder.beyond_rate(asked, limited, out),
        })
    }
}

/// Says in the log that a request went round. Clients ask as often as they like, so only some of many are said.
fn tell_loop(target: &[u8]) {
    static SAID: Seldom = Seldom::new();
    if let Some(unsaid) = SAID.admit(steady_ms()) {
        let target = target.escape_ascii();
        tracing::warn!(%target, unsaid, "a request is rewritten again and again: see `afpa route`");
    }
}

/// The request for an error page, if a server is to give it; else the answer is complete.
pub(super) fn asked_or(
    asked: Asked<'_, '_, '_>,
    head: &[u8],
    global: &Global,
    responder: &mut Responder,
    persistence: Persistence,
) -> Finished<Remote> {
    match responder.wanted.take() {
        None => Finished::Answered(persistence),
        Some(wanted) => {
            let request = KeptRequest::new(&asked, head.into(), global.limits);
            Finished::Remote(RemoteRequest::for_page(request, *wanted))
        }
    }
}

/// The answer to a request that goes to no server.
fn not_sent(
    responder: &mut Responder,
    asked: Asked<'_, '_, '_>,
    why: NotSent,
    out: &mut Outbox,
) -> Persistence {
    match why {
        NotSent::Options => responder.options(asked, out),
        NotSent::Status(status) => responder.page(asked, status, out),
        NotSent::Limited(refused) => {
            let must_close = asked.must_close || refused.ends_connection();
            responder.limited(Asked { must_close, ..asked }, refused, out)
        }
        NotSent::TooLarge => {
            let asked = Asked { must_close: true, ..asked };
            responder.page(asked, Status::CONTENT_TOO_LARGE, out)
        }
    }
}

/// A request that the router sends to a server group.
pub(super) struct Distributing<'m, 's, 'b> {
    pub(super) asked: Asked<'m, 's, 'b>,
    pub(super) head: &'b [u8],
    pub(super) plan: Option<Plan>,
    /// Which answers are compressed; `None`: none.
    pub(super) codings: Option<&'m Arc<CodingRules>>,
    /// The limits of the place; `None`: those of the server group.
    pub(super) settings: Option<&'m Arc<exchange::Settings>>,
    /// Where the request is mirrored; `None`: nowhere.
    pub(super) mirror: Option<&'m Arc<MirrorPlace>>,
    /// The request is the question of another machine.
    pub(super) peer: Option<AskedByPeer<'m>>,
    pub(super) global: &'m Global,
    pub(super) responder: &'m mut Responder,
    pub(super) core: &'m Rc<exchange::Core>,
}

impl Distributing<'_, '_, '_> {
    /// Makes the request ready for a server, or answers why it goes to none.
    pub(super) fn respond(
        self,
        to: Distributed<'_>,
        connection: &mut HttpConnection,
        out: &mut Outbox,
    ) -> Finished<Remote> {
        let Self { asked, head, plan, codings, settings, mirror, peer, global, responder, core } =
            self;
        let client = match (&peer, connection.client) {
            (Some(peer), _) => peer.question.client.address,
            (None, Client::Ip(client)) => Some(client),
            (None, Client::Unix) => None,
        };
        let names_server = responder.records(asked.edits);
        let all = (asked, head, global);
        let tls = asked.tls.map(|tls| &**tls);
        let (hsts, errors) = (asked.hsts, asked.errors);
        let edits = peer.as_ref().map_or(asked.edits, |peer| peer.edits);
        let proof = peer.map(|peer| peer.question.proof);
        let is_last = asked.must_close;
        let listener = connection.listener;
        let granted = asked.granted;
        let asker = Asker {
            client,
            port: if proof.is_some() { 0 } else { connection.port },
            listener,
            proof: proof.as_ref(),
            names_server,
            tls,
            hsts,
            edits,
            errors,
            codings,
            settings,
            granted,
            is_last,
        };
        let permit = &mut connection.permit;
        let persistence =
            match remote::prepare(global, core, asked.request, to, (asker, permit), asked.now) {
                Ok(Prepared { job, permit, is_early }) => {
                    // The exchange passes the content on to the server, so it is not skipped.
                    connection.skipping = None;
                    let mirror = mirror.and_then(|place| {
                        let from = (asked, connection.client);
                        mirror::of(global, place, from, to, (&asker, is_early))
                    });
                    let mut kept = core.pool.text();
                    kept.extend_from_slice(head);
                    let request = KeptRequest::new(&asked, kept, global.limits);
                    return Finished::Remote(Box::new(RemoteRequest {
                        request,
                        job,
                        plan,
                        is_early,
                        problem: None,
                        question: None,
                        mirror,
                        _permit: permit,
                    }));
                }
                Err(why) => not_sent(responder, asked, why, out),
            };
        let (asked, head, global) = all;
        asked_or(asked, head, global, responder, persistence)
    }
}
