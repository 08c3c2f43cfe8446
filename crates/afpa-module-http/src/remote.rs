//! *Derive remote response*: makes a distributed request ready for an exchange with a server, and finishes the
//! answer when the exchange has ended.

mod finish;
mod prepared;

use std::rc::Rc;

use afpa_framework::{Client, ClientStream, Now};
use afpa_http::{FieldSlots, Request};
use afpa_proxy::exchange::{self, Core, End, Job, Report};
use afpa_proxy::limit::Permit;
use afpa_shared_cache::{Answer, Answered, ClientHead, Plan};

use crate::asked::{Asked, KeptRequest};
use crate::consent::{self, Question};
use crate::errors::{self, Errors, PageSource, Problem, Served, Wanted};
use crate::learnt::Learnt;
use crate::mirror::{Copying, Mirror};
pub(crate) use finish::put_lines;
pub(crate) use prepared::{
    Asker, Distributed, NotSent, Prepared, admit, asks_tunnel, is_idempotent, prepare, sharer,
};

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
