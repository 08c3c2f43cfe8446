//! One request leads and asks a server, the others follow.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afpa_cache::Object;
use afpa_framework::duration_us;
use afpa_framework::{ClientStream, Now};
use afpa_http::caching::cache_status::{Forward, Outcome};
use afpa_http::edits::KeptEdits;
use afpa_http::etag::with_strong_spellings;
use afpa_http::{BodyLength, Status};
use afpa_proxy::exchange::{self, Core, End, Job, Report};
use afpa_proxy::request::RequestHead;
use afpa_proxy::response::Asked;

use crate::fetch::backlog::Rest;
use crate::fetch::client::Outlived;
use crate::fetch::follow::{Followed, Follower, follow};
use crate::fetch::peer::{Heard, Proven, while_there};
use crate::fetch::question::{Question, Tapped, variant};
use crate::fetch::tap::Storing;
use crate::fetch::{Fetch, Phase};
use crate::peer_head::{head_of, shared_key};
use crate::peers::{PeerEnd, PeerQuestion, ToPeer};
use crate::plan::Fetching;
use crate::request::{ClientHead, SiteCache};
use crate::store::responses::Responses;
use crate::store::stored::{Draft, StoredResponse};

/// How a request was answered.
#[derive(Debug)]
pub struct Answered {
    /// How the exchange ended.
    pub report: Report,
    /// The stored response that answers the request, if one does. It has not been sent.
    pub answer: Option<Answer>,
}

/// A stored response that answers a request.
#[derive(Debug)]
pub struct Answer {
    /// The response.
    pub object: Arc<Object<StoredResponse>>,
    /// The outcome for Cache-Status.
    pub outcome: Option<Outcome>,
    /// Whether the answer has a Cache-Status field.
    pub tells: bool,
    /// The source of the answer, as the log calls it.
    pub source: &'static str,
}

/// The attempts to answer one request.
pub(crate) struct Round<'a> {
    pub(crate) cache: &'a SiteCache,
    pub(crate) fetching: Fetching,
    pub(crate) head: ClientHead<'a>,
    pub(crate) tries: u32,
}

/// The lead of a fetch.
pub(crate) struct Lead {
    pub(crate) fetch: Arc<Fetch>,
    /// Whether others may follow, so that the exchange goes on if the client leaves before the head has come.
    pub(crate) keeps: bool,
    /// There is no client: an answer that is not kept is not read.
    pub(crate) for_nobody: bool,
    /// Whether another machine may be asked first.
    pub(crate) may_ask: bool,
}

/// How often a request begins anew because its leading request has gone, or the response to be validated has.
const TRIES: u32 = 4;

impl Round<'_> {
    pub(crate) async fn run<C: ClientStream + ?Sized>(
        &mut self,
        job: &mut Job,
        core: &Rc<Core>,
        client: &mut C,
    ) -> Answered {
        let begun = client.cached_now();
        let SiteCache { responses, policy, .. } = self.cache;
        let mut is_other = false;
        loop {
            self.tries += 1;
            let fetch = self.fetching.fetch();
            let now = client.cached_now();
            let passes = responses.passes().has(fetch.hash, now.steady_ms() / 1000);
            let alone = !self.fetching.collapses || self.tries > TRIES || passes;
            if alone {
                // With conditions alone it asks for itself, and another machine may know that they are met, or have the
                // variant that this request wants. Where the wait was too long, it would only wait once more.
                let may_ask = (self.tries == 1 || is_other) && !passes;
                let lead = Lead { fetch, keeps: false, for_nobody: false, may_ask };
                return self.lead(job, core, client, lead).await;
            }
            let (joined, leads) = responses.join(&fetch);
            if leads {
                drop(joined);
                let lead = Lead { fetch, keeps: true, for_nobody: false, may_ask: true };
                return self.lead(job, core, client, lead).await;
            }
            let (why, stored, collapsed) = (self.fetching.why, Ok(()), true);
            let outcome = Outcome::Forwarded { why, status: None, stored, collapsed };
            let head = self.head;
            let who = Follower {
                version: job.version,
                keep_alive: job.keep_alive && !core.draining.get(),
                streams: self.fetching.streams,
                cache_status: policy.status_field.then_some(outcome),
                hsts: job.hsts.as_deref(),
                lines: job.lines.as_deref(),
                edits: job.edits.as_ref().map(KeptEdits::as_edits),
                variant: &|names| variant(joined.primary(), names, head),
                wait_ms: u64::try_from(policy.wait.as_millis()).unwrap_or(u64::MAX / 4),
            };
            let followed = follow(&joined, client, who).await;
            let collapsed = matches!(followed, Followed::Stored(_) | Followed::Sent { .. });
            responses.counts.collapsed.fetch_add(u64::from(collapsed), Ordering::Relaxed);
            let end = match followed {
                Followed::Stored(object) => {
                    let outcome = Some(outcome);
                    let tells = policy.status_field;
                    let answer = Answer { object, outcome, tells, source: "collapsed" };
                    return Answered::stored(answer, client.cached_now());
                }
                Followed::Again => continue,
                Followed::Alone => {
                    self.fetching.collapses = false;
                    continue;
                }
                Followed::Other => {
                    (self.fetching.collapses, is_other) = (false, true);
                    continue;
                }
                Followed::Sent { status, bytes, persistence } => {
                    (End::Relayed(persistence), status, bytes)
                }
                Followed::Broken { status, bytes } => (End::Broken, status, bytes),
                Followed::Failed(failure) => (End::Failed(failure), 0, 0),
                Followed::ClientGone => (End::ClientGone, 0, 0),
            };
            return Answered { report: report(end, begun, client.now()), answer: None };
        }
    }

    /// Asks a server, for all.
    pub(crate) async fn lead<C: ClientStream + ?Sized>(
        &mut self,
        job: &mut Job,
        core: &Rc<Core>,
        client: &mut C,
        lead: Lead,
    ) -> Answered {
        let (mut answered, rest) = self.exchange(job, core, client, lead).await;
        // A slow client holds nothing of the fetch.
        if let Some(rest) = rest
            && !rest.send(client).await
            && matches!(answered.report.end, End::Relayed(_))
        {
            answered.report.end = End::ClientGone;
        }
        answered
    }

    /// Asks a server. Also returns the bytes that the client has not taken yet.
    async fn exchange<C: ClientStream + ?Sized>(
        &mut self,
        job: &mut Job,
        core: &Rc<Core>,
        client: &mut C,
        lead: Lead,
    ) -> (Answered, Option<Rest>) {
        let Lead { fetch, keeps, for_nobody, may_ask } = lead;
        let mut to_peer = if may_ask { self.to_peer(&fetch, job) } else { None };
        let responses = Arc::clone(&self.cache.responses);
        let _leading = Leading { responses: &responses, fetch: &fetch };
        loop {
            let of = (self.cache, &self.fetching, &fetch);
            let mut question = Question::new(of, self.head, job, client.cached_now());
            let goes_on = Cell::new(keeps);
            let asked = to_peer.take();
            // A machine that has a copy already stores the new answer as well.
            let is_elsewhere = asked.as_ref().is_some_and(|(peer, _)| !peer.keeps)
                && question.fetching.stored.is_none();
            question.lists = !is_elsewhere;
            fetch.set_elsewhere(is_elsewhere);
            let own = match &asked {
                None if question.validates => {
                    let own = job.head.clone();
                    condition(&mut job.head, &question);
                    Some(own)
                }
                _ => None,
            };
            let mut tap = Storing::new(&question, &goes_on);
            let mut outlived = Outlived::new(client, &question, &goes_on, for_nobody);
            let mut report = match asked {
                None => exchange::run(job, core, &mut outlived, Some(&mut tap)).await,
                Some((peer, to_it)) => {
                    match ask(&*peer.question, to_it, core, &mut outlived, &mut tap).await {
                        Some(report) => report,
                        // Its server knows.
                        None => {
                            fetch.decide(false);
                            continue;
                        }
                    }
                }
            };
            let tapped = tap.end();
            let is_gone = outlived.is_gone();
            if is_gone && matches!(report.end, End::Relayed(_)) {
                report.end = End::ClientGone;
            }
            let rest = outlived.into_rest(fetch.kept());
            let now = client.now();
            let has_failed = matches!(report.end, End::Failed(_));
            let settled = match tapped {
                Tapped::Current(draft) => self.freshen(&question, *draft, now),
                Tapped::Error(status) => self.stale(&question, Some(status), now),
                Tapped::Nothing if has_failed && question.may_replace_error(now) => {
                    self.stale(&question, None, now)
                }
                Tapped::Mismatch => Settled::Again,
                Tapped::Nothing | Tapped::Stored | Tapped::Passed => Settled::Relayed,
            };
            let answer = match settled {
                Settled::Answer(answer) => Some(answer),
                Settled::Relayed => None,
                Settled::Again => {
                    // The response to be validated was purged: the server is asked for all of it.
                    if let Some(own) = own {
                        job.head = own;
                    }
                    self.fetching.stored = None;
                    self.fetching.since = responses.cache().moment();
                    continue;
                }
            };
            match (&answer, report.end) {
                (Some(answer), _) => fetch.end(Phase::Stored(Arc::clone(&answer.object))),
                (None, End::Failed(failure)) => fetch.end(Phase::Failed(failure)),
                (None, _) => fetch.end(Phase::Gone),
            }
            if is_gone && answer.is_some() {
                report.end = End::ClientGone;
                return (Answered { report, answer: None }, None);
            }
            return (Answered { report, answer }, rest);
        }
    }

    /// Another machine that is to be asked first, and the question as a job.
    fn to_peer(&self, fetch: &Fetch, job: &Job) -> Option<(ToPeer, Box<Job>)> {
        let client = self.fetching.asks()?;
        let SiteCache { responses, place, .. } = self.cache;
        let peers = responses.peers()?;
        if job.fastcgi.is_some() || job.body != BodyLength::None {
            return None;
        }
        // The PROXY protocol names the address that the client has come to, which a question does not.
        if job.preface.is_some() {
            return None;
        }
        let mut peer = peers.choose(place, shared_key(fetch.primary()))?;
        let stored = self.fetching.stored.as_ref().and_then(|object| object.header().response());
        let mut text = head_of(self.head, stored.is_none())?;
        if let Some(stored) = stored {
            let mut head = RequestHead::of_bytes(text);
            head.edit(&[], &conditions(&stored.draft, None));
            text = head.into_memory();
        }
        if let Some(edits) = &job.edits {
            edits.as_edits().put_marks(&mut text);
        }
        peer.question.put(client, &mut text).then_some(())?;
        let to_it = Job {
            group: Arc::clone(&peer.group),
            settings: Arc::clone(&peer.settings),
            head: RequestHead::of_bytes(text),
            preface: None,
            cookie: None,
            affinity: None,
            sharer: None,
            idempotent: true,
            asked: Asked::default(),
            ..job.again()
        };
        Some((peer, Box::new(to_it)))
    }

    /// The server says that the stored response is current.
    fn freshen(&self, question: &Question<'_>, draft: Draft, now: Now) -> Settled {
        let Some(object) = question.freshen(draft, now) else { return Settled::Again };
        let (why, status, stored) = (question.fetching.why, Some(304), Ok(()));
        let outcome = Outcome::Forwarded { why, status, stored, collapsed: false };
        let (outcome, tells) = (Some(outcome), question.cache.policy.status_field);
        Settled::Answer(Answer { object, outcome, tells, source: "validated" })
    }

    /// The stored response is better than an error.
    fn stale(&self, question: &Question<'_>, status: Option<u16>, now: Now) -> Settled {
        let Some((object, response)) = question.stored_response() else { return Settled::Again };
        if object.is_dropped() {
            return Settled::Again;
        }
        let (object, stored) = (Arc::clone(object), response.at(now));
        question.cache.responses.counts.stale.fetch_add(1, Ordering::Relaxed);
        let outcome = match status {
            None => Outcome::hit(&stored),
            status => {
                let (why, stored, collapsed) = (Forward::Stale, Ok(()), false);
                Outcome::Forwarded { why, status, stored, collapsed }
            }
        };
        let (outcome, tells) = (Some(outcome), question.cache.policy.status_field);
        Settled::Answer(Answer { object, outcome, tells, source: "stale" })
    }
}

/// Asks another machine. `None`: it has no answer, and the client got nothing of it.
async fn ask<C: ClientStream + ?Sized>(
    asking: &dyn PeerQuestion,
    mut job: Box<Job>,
    core: &Rc<Core>,
    outlived: &mut Outlived<'_, C>,
    storing: &mut Storing<'_>,
) -> Option<Report> {
    let heard = Cell::new(Heard::Nothing);
    let mut tap = Proven { storing, asking, heard: &heard };
    let exchange = exchange::run(&mut job, core, &mut *outlived, Some(&mut tap));
    let report = Box::pin(while_there(exchange, asking, &heard)).await;
    let failed = |report: &Report| matches!(report.end, End::Failed(_));
    let (end, report) = match (report, heard.get()) {
        (None, _) => (PeerEnd::Failed, None),
        (Some(report), Heard::Strange(status)) if !outlived.is_gone() => {
            drop(report);
            let differs = status == Status::MISDIRECTED_REQUEST.code();
            (if differs { PeerEnd::Differs } else { PeerEnd::Refused }, None)
        }
        (Some(report), _) if failed(&report) && !outlived.is_gone() => (PeerEnd::Failed, None),
        (Some(report), Heard::Proven) => (PeerEnd::Answered, Some(report)),
        // Its client has gone.
        (Some(report), _) => (PeerEnd::Failed, Some(report)),
    };
    asking.ended(end);
    report
}

/// The outcome of an exchange.
enum Settled {
    /// This stored response is the answer.
    Answer(Answer),
    /// The client has the server's answer, or will get the reason why there is none.
    Relayed,
    /// The stored response was purged meanwhile: the server has to be asked anew.
    Again,
}

/// Puts the conditions of the cache in the place of those of the client (RFC 9111 section 4.3.1).
fn condition(head: &mut RequestHead, question: &Question<'_>) {
    let Some(stored) =
        question.fetching.stored.as_ref().and_then(|object| object.header().response())
    else {
        return;
    };
    let draft = &stored.draft;
    let both = draft.etag().filter(|_| question.cache.policy.codes());
    let both = both.and_then(with_strong_spellings);
    let with = conditions(draft, both.as_deref());
    head.edit(&["If-None-Match", "If-Modified-Since", "If-Range", "Range"], &with);
}

/// The conditions by which a stored response is validated. `etag`: instead of its own.
fn conditions<'d>(draft: &'d Draft, etag: Option<&'d [u8]>) -> Vec<(&'static str, &'d [u8])> {
    let etag = etag.or(draft.etag()).map(|etag| ("If-None-Match", etag));
    let modified = draft.facts.last_modified.get().and(draft.last_modified());
    let modified = modified.map(|date| ("If-Modified-Since", date));
    etag.into_iter().chain(modified).collect()
}

/// The lead of a fetch. When it ends, no request follows any more.
struct Leading<'a> {
    responses: &'a Responses,
    fetch: &'a Arc<Fetch>,
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        self.responses.leave(self.fetch);
        self.fetch.abandon();
    }
}

impl Answered {
    pub(crate) fn stored(answer: Answer, now: Now) -> Self {
        let end = End::Relayed(afpa_framework::Persistence::Keep);
        Self { report: report((end, 0, 0), now, now), answer: Some(answer) }
    }
}

/// The report of an answer for which this request has asked no server.
fn report((end, status, content_bytes): (End, u16, u64), begun: Now, now: Now) -> Report {
    Report {
        end,
        status,
        content_bytes,
        server: None,
        attempts: 0,
        connect_us: 0,
        first_byte_us: 0,
        replaced: None,
        coded: None,
        total_us: duration_us(begun.unix_us, now.unix_us),
    }
}
