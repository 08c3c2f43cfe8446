//! The answer after an exchange with a server: it is counted, recorded, and written where the servers gave none.

use afpa_framework::{Client, Now, Outbox, Persistence, duration_us};
use afpa_http::{BodyLength, FieldSlots};
use afpa_proxy::coding::Coded;
use afpa_proxy::exchange::{Core, End};
use afpa_shared_cache::{Answer, Answering};

use super::{ExchangedRequest, RemoteRequest};
use crate::asked::Asked;
use crate::learnt::{CheckedRequest, Learnt};
use crate::respond::Responder;

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

/// The status in the log when the client went away before it had its answer (nginx's 499).
const CLIENT_GONE: u16 = 499;
