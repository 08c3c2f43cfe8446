//! *Derive remote response*: makes a distributed request ready for an exchange with a server, and finishes the
//! answer when the exchange has ended.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use afpa_framework::duration_us;
use afpa_framework::{Client, ClientStream, Now, Outbox, Persistence, Secured};
use afpa_http::edits::Edits;
use afpa_http::{BodyLength, FieldSlots, Known, KnownSet, Method, Request, Status, etag};
use afpa_proxy::coding::{Coded, CodingRules, Compress};
use afpa_proxy::exchange::{self, Core, End, Job, Report};
use afpa_proxy::limit::{ConnectionPermit, Permit, Refused};
use afpa_proxy::request::{NotForwardable, Origin, RequestHead};
use afpa_proxy::response::Asked as AskedServer;
use afpa_proxy::select::{Affinity, url_hash};
use afpa_router::{self as router, GroupId, ListenerId, SiteId};
use afpa_shared_cache::{Answer, Answered, Answering, ClientHead, Plan};

use crate::asked::{Asked, KeptRequest};
use crate::consent::{self, Question};
use crate::demand::{self, Granted};
use crate::errors::{self, Errors, PageSource, Problem, Served, Wanted};
use crate::global::{Global, ServerGroup};
use crate::learnt::{CheckedRequest, Learnt};
use crate::mirror::{Copying, Mirror};
use crate::preface;
use crate::respond::Responder;
use crate::script::{self, Run, Told};
use crate::site::Site;

/// A request that a server of a server group answers, in a box: each state that it goes through moves it.
pub type Remote = Box<RemoteRequest>;

/// The parts of such a request.
pub struct RemoteRequest {
    pub(crate) request: KeptRequest,
    /// The parts of the request that the exchange needs.
    pub(crate) job: Job,
    /// How the shared cache is used.
    pub(crate) plan: Option<Plan>,
    /// The request goes to the server before the handshake of the client is complete, with Early-Data (RFC 8470).
    pub(crate) is_early: bool,
    /// The job asks for the page of this error, not for an answer to the request.
    pub(crate) problem: Option<Box<Problem>>,
    /// The job asks for consent, not for an answer to the request.
    pub(crate) question: Option<Box<Question>>,
    /// Another group gets the request as well.
    pub(crate) mirror: Option<Box<Mirror>>,
    /// It counts against the limits of the site until it is finished.
    pub(crate) _permit: Option<Permit>,
}

/// The request, and how the exchange with the server ended.
pub struct ExchangedRequest {
    remote: Remote,
    report: Report,
    /// A stored response that is the answer, and has not been sent.
    answer: Option<Answer>,
    /// The error that is answered, and its page if a server was asked for it and has given it.
    error: Option<Box<(Problem, Option<Served>)>>,
    /// A server was asked for its consent and has given it: nothing is answered yet.
    learnt: Option<Learnt>,
}

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

impl RemoteRequest {
    /// A request whose answer is an error, and its page is asked of a server.
    pub(crate) fn for_page(request: KeptRequest, wanted: Wanted) -> Remote {
        let Wanted { problem, job } = wanted;
        let problem = Some(Box::new(problem));
        let (plan, question, mirror) = (None, None, None);
        let (job, is_early) = (*job, false);
        Box::new(Self { request, job, plan, is_early, problem, question, mirror, _permit: None })
    }

    /// A request that waits for the consent of a server.
    pub(crate) fn for_consent(request: KeptRequest, job: Box<Job>, question: Question) -> Remote {
        let (plan, problem, mirror) = (None, None, None);
        let question = Some(Box::new(question));
        let (job, is_early) = (*job, false);
        Box::new(Self { request, job, plan, is_early, problem, question, mirror, _permit: None })
    }

    /// Has a server answer, and others get the request as well if it is mirrored.
    pub(crate) async fn exchange(
        mut self: Box<Self>,
        core: Rc<Core>,
        client: &mut dyn ClientStream,
    ) -> ExchangedRequest {
        match self.mirror.take() {
            Some(mirror) if mirror.has_content() => {
                // In a box: other requests need no memory for it.
                return Box::pin(self.exchange_copied(core, client, mirror)).await;
            }
            Some(mirror) => mirror.send(&core),
            None => {}
        }
        self.exchange_with(core, client).await
    }

    async fn exchange_copied(
        self: Box<Self>,
        core: Rc<Core>,
        client: &mut dyn ClientStream,
        mirror: Box<Mirror>,
    ) -> ExchangedRequest {
        let mut copying = Copying::new(client, mirror);
        let exchanged = self.exchange_with(Rc::clone(&core), &mut copying).await;
        if let Some(mirror) = copying.into_mirror() {
            mirror.send(&core);
        }
        exchanged
    }

    async fn exchange_with(
        mut self: Box<Self>,
        core: Rc<Core>,
        client: &mut dyn ClientStream,
    ) -> ExchangedRequest {
        if let Some(problem) = self.problem.take() {
            let (served, report) = errors::ask(&mut self.job, &core, client).await;
            let error = Some(Box::new((*problem, served)));
            return ExchangedRequest { remote: self, report, answer: None, error, learnt: None };
        }
        let Answered { mut report, answer } = match self.plan.take() {
            None if let Some(mut question) = self.question.take() => {
                let (consent, report) =
                    Box::pin(consent::ask(&question, &mut self.job, &core, client)).await;
                if let Some(consent) = consent {
                    question.learnt.consents.push(Rc::new(consent));
                    let (answer, error, learnt) = (None, None, Some(question.learnt));
                    return ExchangedRequest { remote: self, report, answer, error, learnt };
                }
                Answered { report, answer: None }
            }
            None => {
                let report = exchange::run(&mut self.job, &core, client, None).await;
                Answered { report, answer: None }
            }
            Some(plan) => {
                let (bytes, limits) = (&self.request.head[..], self.request.limits);
                let head = ClientHead { bytes, limits };
                afpa_shared_cache::run(plan, head, &mut self.job, &core, client).await
            }
        };
        let mut error = None;
        if let Some((problem, job)) = self.failed(&report, client.cached_now()) {
            // In a box: most requests are answered by their first server.
            let served = match job {
                Some(mut job) => Box::pin(errors::ask(&mut job, &core, client)).await,
                None => (None, report.clone()),
            };
            if served.1.end == End::ClientGone {
                report.end = End::ClientGone;
            } else {
                error = Some(Box::new((problem, served.0)));
            }
        }
        ExchangedRequest { remote: self, report, answer, error, learnt: None }
    }

    /// The error that is answered after this exchange, if the operator has a page for it, and the request for the page if
    /// a server gives it.
    fn failed(&self, report: &Report, now: Now) -> Option<(Problem, Option<Box<Job>>)> {
        let errors = self.request.errors()?;
        let problem = match (report.end, &report.replaced) {
            (End::Failed(failure), _) => Problem::of_failure(failure),
            (End::Relayed(_), Some(lines)) => Problem::of_answer(report.status, lines)?,
            _ => return None,
        };
        let status = problem.status.code();
        let job = match errors.pages.find(status).map(|rule| &rule.page) {
            Some(PageSource::Server(server)) => {
                let mut slots = FieldSlots::default();
                let parsed = self.request.parse(&mut slots)?;
                let asked = self.asked(&parsed, (errors.peer, now));
                errors::job(asked, errors, server, status)
            }
            _ => None,
        };
        Some((problem, job))
    }

    fn asked<'a, 's, 'b>(
        &'a self,
        parsed: &'a Request<'s, 'b>,
        (peer, now): (Client, Now),
    ) -> Asked<'a, 's, 'b> {
        let Self { request, job, .. } = self;
        Asked {
            client: job.client.map_or(peer, Client::Ip),
            errors: request.errors().map(|errors| Errors { may_ask: false, ..errors }),
            ..request.asked(parsed, "remote", (now, false))
        }
    }
}

impl ExchangedRequest {
    /// The results of checks, if a server has consented: the response is derived again then.
    pub(crate) fn take_learnt(&mut self) -> Option<Learnt> {
        self.learnt.take()
    }

    /// The request, to be derived again.
    pub(crate) fn into_checked(self, learnt: Learnt, core: &Core) -> CheckedRequest {
        let RemoteRequest { request, job, .. } = *self.remote;
        core.pool.give_back_text(job.head.into_memory());
        CheckedRequest { request, learnt }
    }

    /// Counts and records the answer, and writes it where the servers gave none.
    pub(crate) fn finish(
        self,
        responder: &mut Responder,
        core: &Core,
        peer: Client,
        now: Now,
        out: &mut Outbox,
    ) -> Persistence {
        let persistence = self.answer(responder, peer, now, out);
        let RemoteRequest { request, job, .. } = *self.remote;
        core.pool.give_back_text(job.head.into_memory());
        core.pool.give_back_text(request.head);
        persistence
    }

    fn answer(
        &self,
        responder: &mut Responder,
        peer: Client,
        now: Now,
        out: &mut Outbox,
    ) -> Persistence {
        let Self { remote, report, answer, error, .. } = self;
        let RemoteRequest { request, job, .. } = &**remote;
        if let Some(answer) = answer {
            return self.answer_stored(answer, responder, peer, now, out);
        }
        responder.counters.remote.add(1);
        match report.coded {
            Some(Coded::Yes) => responder.counters.coded.add(1),
            Some(Coded::NoRoom) => responder.counters.uncoded.add(1),
            None => {}
        }
        if let Some(scope) = request.scope() {
            scope.took(duration_us(request.arrived.unix_us, now.unix_us));
        }
        if let (Some(error), true) = (error, report.end != End::ClientGone) {
            let (problem, served) = &**error;
            // A server that answers before it has the whole content leaves the rest of it on the connection.
            let leaves_rest = match report.replaced {
                Some(_) => report.end == End::Relayed(Persistence::Close),
                None => job.body != BodyLength::None,
            };
            let must_close = leaves_rest || !job.keep_alive;
            let answered = self.with_request(peer, now, |asked| {
                let asked = Asked { must_close, ..asked };
                responder.problem_with(asked, problem, served.as_ref(), Some(report), out)
            });
            return answered.unwrap_or(Persistence::Close);
        }
        let (status, persistence) = match report.end {
            // Behind a request for a tunnel the client sends what belongs into it.
            End::Relayed(Persistence::Close) if request.is_all_of_client && !job.asked.upgrade => {
                (report.status, Persistence::CloseAsAsked)
            }
            End::Relayed(persistence) => (report.status, persistence),
            End::Broken => (report.status, Persistence::Close),
            End::ClientGone => (CLIENT_GONE, Persistence::Close),
            End::Failed(failure) => {
                let answered = self.with_request(peer, now, |asked| {
                    let must_close = job.body != BodyLength::None || !job.keep_alive;
                    responder.failure(Asked { must_close, ..asked }, failure, report, out)
                });
                return answered.unwrap_or(Persistence::Close);
            }
        };
        responder.counters.answered_code(status, report.content_bytes);
        if let Some(scope) = request.scope() {
            scope.answered(status);
        }
        if responder.records(request.edits()) {
            let recorded = self.with_request(peer, now, |asked| {
                responder.record_remote(asked, status, report);
            });
            return recorded.map_or(Persistence::Close, |()| persistence);
        }
        persistence
    }

    /// Answers from a stored response.
    fn answer_stored(
        &self,
        answer: &Answer,
        responder: &mut Responder,
        peer: Client,
        now: Now,
        out: &mut Outbox,
    ) -> Persistence {
        if let Some(scope) = self.remote.request.scope() {
            scope.took(duration_us(self.remote.request.arrived.unix_us, now.unix_us));
        }
        let cache_status = answer.outcome.filter(|_| answer.tells);
        let answering = Answering { object: &answer.object, cache_status };
        let must_close = !self.remote.job.keep_alive;
        let exchange = Some(&self.report).filter(|report| report.attempts > 0);
        let begin = out.bytes.len();
        let answered = self.with_request(peer, now, |asked| {
            let asked = Asked { source: answer.source, must_close, exchange, ..asked };
            responder.stored(asked, answering, out)
        });
        if let Some(lines) = &self.remote.job.lines {
            put_lines(lines, begin, &mut out.bytes);
        }
        answered.unwrap_or(Persistence::Close)
    }

    /// Parses the request again: only answers that are rare, or recorded, need that.
    fn with_request<T>(
        &self,
        peer: Client,
        now: Now,
        then: impl FnOnce(Asked<'_, '_, '_>) -> T,
    ) -> Option<T> {
        let mut slots = FieldSlots::default();
        let parsed = self.remote.request.parse(&mut slots)?;
        Some(then(self.remote.asked(&parsed, (peer, now))))
    }
}

/// Puts lines behind the status line of a head that begins at `begin`.
pub(crate) fn put_lines(lines: &[u8], begin: usize, out: &mut Vec<u8>) {
    let head = out.get(begin..).unwrap_or_default();
    if let Some(at) = memchr::memchr(b'\n', head) {
        let at = begin + at + 1;
        out.splice(at..at, lines.iter().copied());
    }
}

/// The line of a question of another machine.
const QUESTION: &str = "AFPA-Question";

const CONDITIONS: [&str; 2] = ["If-None-Match", "If-Modified-Since"];

/// The status in the log when the client went away before it had its answer (nginx's 499).
const CLIENT_GONE: u16 = 499;
