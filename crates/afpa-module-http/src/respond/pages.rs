//! Answers that are made for one request: redirects, error pages, answers from the configuration.

use std::rc::Rc;

use crate::access::AccessRecord;
use afpa_framework::{Client, GATHERED, Now, Outbox, Part, Persistence};
use afpa_http::MOST_CHOSEN;
use afpa_http::edits::{Cors, Edits};
use afpa_http::problem::Form;
use afpa_http::{Connection, Method, ResponseHead, Status, page, request::Said};
use afpa_police::Refusal;
use afpa_proxy::exchange::{Failure, Report};
use afpa_proxy::limit::Refused;
use memchr::memmem;

use super::{Responder, page_head};
use crate::asked::Asked;
use crate::errors::{self, Content, ErrorRule, PageSource, Problem, Served, Wanted};
use crate::load::{Listing, PageInMemory};
use crate::rates::Limited;
use crate::route::Unfit;

impl Responder {
    /// A redirect to `location`, which is already encoded.
    pub(crate) fn redirect(
        &mut self,
        asked: Asked<'_, '_, '_>,
        status: Status,
        location: &[u8],
        out: &mut Outbox,
    ) -> Persistence {
        let body = page::redirect_page(status, location);
        let head = page_head(status, body.len()).field("Location", location).finish();
        self.finish_page(asked, status, &head, &body, out)
    }

    /// An answer that the configuration wrote.
    pub(crate) fn fixed(
        &mut self,
        asked: Asked<'_, '_, '_>,
        status: Status,
        (content_type, body): (&str, &[u8]),
        out: &mut Outbox,
    ) -> Persistence {
        let mut head = ResponseHead::build(status);
        let body = if status.has_content() { body } else { &[] };
        if status.has_content() {
            head = head.field("Content-Type", content_type);
        }
        if !status.is_bodiless() {
            head = head.content_length(body.len() as u64);
        }
        self.finish_page(asked, status, &head.finish(), body, out)
    }

    /// The page for a request that no server answered: why, and when to try again.
    pub(crate) fn failure(
        &mut self,
        asked: Asked<'_, '_, '_>,
        failure: Failure,
        report: &Report,
        out: &mut Outbox,
    ) -> Persistence {
        self.problem_with(asked, &Problem::of_failure(failure), None, Some(report), out)
    }

    /// The page for an error: the operator's own, or a server's that is asked for first, or the built-in one.
    pub(crate) fn problem(
        &mut self,
        asked: Asked<'_, '_, '_>,
        problem: Problem,
        out: &mut Outbox,
    ) -> Persistence {
        let status = problem.status.code();
        if let Some(errors) = asked.errors.filter(|errors| errors.may_ask && !problem.by_limit)
            && let Some(ErrorRule { page: PageSource::Server(server), .. }) =
                errors.pages.find(status)
            && let Some(job) = errors::job(asked, errors, server, status)
        {
            self.wanted = Some(Box::new(Wanted { problem, job }));
            return Persistence::Keep;
        }
        self.problem_with(asked, &problem, None, None, out)
    }

    /// A problem, with the page that a server has given, and the report of the exchange.
    pub(crate) fn problem_with(
        &mut self,
        asked: Asked<'_, '_, '_>,
        problem: &Problem,
        served: Option<&Served>,
        report: Option<&Report>,
        out: &mut Outbox,
    ) -> Persistence {
        let Problem { status, sentence, lines, .. } = problem;
        let rule = asked.errors.and_then(|errors| errors.pages.find(status.code()));
        let answer = rule.and_then(|rule| rule.answer).unwrap_or(*status);
        // A page of another error must not tell which one it hides.
        let (shown, sentence) = match answer.code() >= 400 && answer != *status {
            true => (answer, page::help(answer)),
            false => (*status, *sentence),
        };
        let built_in = || {
            let form = Form::of(asked.request);
            let about = format!("Content-Type: {}\r\nVary: Accept\r\n", form.content_type());
            (about.into_bytes(), Body::Made(form.content(shown, sentence)))
        };
        let (about, body) = match (rule.map(|rule| &rule.page), served) {
            (Some(PageSource::File(page)), _) => {
                let about = format!("Content-Type: {}\r\n", page.content_type);
                (about.into_bytes(), Body::Shared(page.content()))
            }
            (Some(PageSource::Server(_)), Some(served)) => {
                (served.lines.clone(), Body::Shared(served.content.clone()))
            }
            _ => built_in(),
        };
        let body = if answer.has_content() { body } else { Body::default() };
        let mut head = ResponseHead::build(answer);
        if answer.has_content() {
            head = head.lines(&about);
        }
        if !answer.is_bodiless() {
            head = head.content_length(body.bytes().len() as u64);
        }
        // The fields of an error mean nothing on an answer that is none. Caches must not take it for the page, nor for
        // another error, which they may keep without being asked to.
        let mut lines = if answer.code() >= 400 { lines.clone() } else { Vec::new() };
        if answer != *status && memmem::find(&lines, b"Cache-Control").is_none() {
            lines.extend_from_slice(b"Cache-Control: no-store\r\n");
        }
        let head = head.lines(&lines).finish();
        let persistence = self.head(asked, (answer, &head), out);
        let length = Self::content_of_page(asked, body, out);
        match report {
            None => self.note(asked, answer, length, out),
            Some(report) => {
                self.counters.answered(answer, length);
                asked.count(answer.code());
                self.record_page(asked, answer, length, report);
            }
        }
        persistence
    }

    /// The client is refused: 403 if its prefix is denied, which ends the connection; 429 (RFC 6585, section 4) if it
    /// asks too often, 503 if all clients together do.
    pub(crate) fn refused(
        &mut self,
        asked: Asked<'_, '_, '_>,
        why: Refusal,
        out: &mut Outbox,
    ) -> Persistence {
        let status = match why {
            Refusal::Denied => {
                let problem = Problem::new(Status::FORBIDDEN);
                let problem = Problem { by_limit: true, ..problem };
                return self.problem(Asked { must_close: true, ..asked }, problem, out);
            }
            Refusal::ClientRate => Status::TOO_MANY_REQUESTS,
            Refusal::TotalRate => Status::SERVICE_UNAVAILABLE,
        };
        let problem = Problem { by_limit: true, ..Problem::new(status) };
        self.problem(asked, problem.with("Retry-After", "1"), out)
    }

    /// The page for a request that waits in no queue, because it is full.
    pub(crate) fn busy(&mut self, asked: Asked<'_, '_, '_>, out: &mut Outbox) -> Persistence {
        let problem = Problem { by_limit: true, ..Problem::new(Status::SERVICE_UNAVAILABLE) };
        self.problem(asked, problem.with("Retry-After", "1"), out)
    }

    /// The page for a request beyond the limits of a site.
    pub(crate) fn limited(
        &mut self,
        asked: Asked<'_, '_, '_>,
        refused: Refused,
        out: &mut Outbox,
    ) -> Persistence {
        let problem = Problem { by_limit: true, ..Problem::new(refused.status()) };
        let problem = problem.with("Retry-After", refused.retry_after_s().to_string());
        self.problem(asked, problem, out)
    }

    /// The page for a request beyond a rate of its place.
    pub(crate) fn beyond_rate(
        &mut self,
        asked: Asked<'_, '_, '_>,
        limited: Limited,
        out: &mut Outbox,
    ) -> Persistence {
        let problem = Problem { by_limit: true, ..Problem::new(limited.status) };
        let problem = problem.with("Retry-After", limited.retry_after_s.to_string());
        self.problem(asked, problem, out)
    }

    fn record_page(
        &mut self,
        asked: Asked<'_, '_, '_>,
        status: Status,
        length: u64,
        report: &Report,
    ) {
        if self.records(asked.edits) {
            self.record_exchange(asked, (status.code(), length), report);
        }
    }

    /// The listing of a directory, which was made for this answer.
    pub(crate) fn listing(
        &mut self,
        asked: Asked<'_, '_, '_>,
        listing: Listing,
        out: &mut Outbox,
    ) -> Persistence {
        let head = |len| page_head(Status::OK, len).field("Cache-Control", "no-cache").finish();
        let PageInMemory { file, stamp, len, .. } = match listing {
            Listing::Short(html) => {
                return self.finish_page(asked, Status::OK, &head(html.len()), &html, out);
            }
            Listing::Long(page) => page,
        };
        let persistence = self.head(asked, (Status::OK, &head(len as usize)), out);
        let sent = if asked.request.method == Method::Head { 0 } else { len };
        if sent > 0 {
            out.push(Part::File { file, stamp, range: 0..len });
        }
        self.note(asked, Status::OK, sent, out);
        persistence
    }

    /// A small error page.
    pub(crate) fn page(
        &mut self,
        asked: Asked<'_, '_, '_>,
        status: Status,
        out: &mut Outbox,
    ) -> Persistence {
        let mut problem = Problem::new(status);
        if status == Status::METHOD_NOT_ALLOWED {
            problem = problem.with("Allow", ALLOWED);
        }
        if status == Status::SERVICE_UNAVAILABLE {
            problem = problem.with("Retry-After", "1");
        }
        self.problem(asked, problem, out)
    }

    /// 401: the client has to show credentials (RFC 9110 section 15.5.2).
    pub(crate) fn unauthorized(
        &mut self,
        asked: Asked<'_, '_, '_>,
        challenge: &str,
        out: &mut Outbox,
    ) -> Persistence {
        let problem = Problem::new(Status::UNAUTHORIZED).with("WWW-Authenticate", challenge);
        self.problem(asked, problem, out)
    }

    /// An answer that is nothing but a status: of an error, its page.
    pub(crate) fn status(
        &mut self,
        asked: Asked<'_, '_, '_>,
        status: Status,
        out: &mut Outbox,
    ) -> Persistence {
        match status.code() {
            400.. => self.page(asked, status, out),
            _ => self.fixed(asked, status, ("text/plain", b""), out),
        }
    }

    /// The answer to a request that is not for files, where there is one.
    pub(crate) fn unfit(
        &mut self,
        asked: Asked<'_, '_, '_>,
        unfit: Unfit,
        out: &mut Outbox,
    ) -> Persistence {
        match unfit {
            Unfit::Options => self.options(asked, out),
            Unfit::Status(status) => self.page(asked, status, out),
            Unfit::ContentTooLarge => {
                let asked = Asked { must_close: true, source: "refused", ..asked };
                self.page(asked, Status::CONTENT_TOO_LARGE, out);
                Persistence::Close
            }
        }
    }

    /// 204 with the allowed methods (RFC 9110 section 9.3.7).
    pub(crate) fn options(&mut self, asked: Asked<'_, '_, '_>, out: &mut Outbox) -> Persistence {
        let head = ResponseHead::build(Status::NO_CONTENT).field("Allow", ALLOWED).finish();
        let persistence = self.head(asked, (Status::NO_CONTENT, &head), out);
        self.note(asked, Status::NO_CONTENT, 0, out);
        persistence
    }

    /// The answer to a preflight (the Fetch standard, section 3.3.3). Its own origin is added as on other answers.
    pub(crate) fn preflight(
        &mut self,
        asked: Asked<'_, '_, '_>,
        cors: &Cors,
        out: &mut Outbox,
    ) -> Persistence {
        let mut head = ResponseHead::build(Status::NO_CONTENT)
            .field("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers");
        for (name, value) in cors.preflight(asked.request).into_iter().flatten() {
            head = head.field(name, value);
        }
        self.finish_page(asked, Status::NO_CONTENT, &head.finish(), b"", out)
    }

    /// The answer to input that is not taken for a request. The log has the parts of it that could be read (`said`).
    pub(crate) fn refuse(
        &mut self,
        client: Client,
        said: Said<'_>,
        status: Status,
        now: Now,
        out: &mut Outbox,
    ) {
        self.refuse_with(client, (said, None), status, now, out);
    }

    /// As [`refuse`](Self::refuse), with the changes of fields of its site.
    pub(crate) fn refuse_with(
        &mut self,
        client: Client,
        (said, edits): (Said<'_>, Option<Edits<'_>>),
        status: Status,
        now: Now,
        out: &mut Outbox,
    ) {
        let body = page::error_page(status);
        let mut head = page_head(status, body.len());
        if status == Status::SERVICE_UNAVAILABLE {
            head = head.field("Retry-After", "1");
        }
        let begin = out.bytes.len();
        head.finish().write(&mut out.bytes, self.date_of(now), Connection::Close);
        if let Some(edits) = edits {
            edits.apply(&mut out.bytes, begin, status.code(), None);
        }
        out.bytes.extend_from_slice(&body);
        self.counters.answered(status, body.len() as u64);
        self.record_refusal(client, said, (status, body.len() as u64), now);
    }

    /// Notes in the log what was not taken for a request.
    pub(crate) fn record_refusal(
        &mut self,
        client: Client,
        said: Said<'_>,
        (status, body_bytes): (Status, u64),
        now: Now,
    ) {
        if self.sink.enabled() {
            self.sink.record(&AccessRecord {
                time_unix_us: now.unix_us,
                client,
                method: said.method,
                target: said.target,
                version: said.version,
                status: status.code(),
                body_bytes,
                duration_us: 0,
                host: said.host,
                referer: said.referer,
                user_agent: said.user_agent,
                user: "",
                request_id: b"",
                trace_id: b"",
                weight: 1,
                source: "refused",
                remote: None,
                tls: None,
                span: None,
                chosen: [b""; MOST_CHOSEN],
            });
        }
    }

    pub(crate) fn finish_page(
        &mut self,
        asked: Asked<'_, '_, '_>,
        status: Status,
        head: &ResponseHead,
        body: &[u8],
        out: &mut Outbox,
    ) -> Persistence {
        let persistence = self.head(asked, (status, head), out);
        let length = Self::content_of_page(asked, Body::Lent(body), out);
        self.note(asked, status, length, out);
        persistence
    }

    fn content_of_page(asked: Asked<'_, '_, '_>, body: Body<'_>, out: &mut Outbox) -> u64 {
        if asked.request.method == Method::Head {
            return 0;
        }
        let length = body.bytes().len();
        match body {
            Body::Shared(content) if length > COPIED => {
                out.push(Part::Shared(Rc::new(content), 0..length));
            }
            Body::Made(bytes) if length > GATHERED as usize => out.push(Part::Bytes(bytes)),
            body if length > GATHERED as usize => out.push(Part::Bytes(body.bytes().to_vec())),
            body => out.bytes.extend_from_slice(body.bytes()),
        }
        length as u64
    }
}

/// Longer pages of the operator's are not copied: a client that does not read would hold a copy of each.
const COPIED: usize = 4 * 1024;

/// The content of a page.
enum Body<'a> {
    Lent(&'a [u8]),
    Made(Vec<u8>),
    Shared(Content),
}

impl Body<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Body::Lent(bytes) => bytes,
            Body::Made(bytes) => bytes,
            Body::Shared(content) => content.as_ref(),
        }
    }
}

impl Default for Body<'_> {
    fn default() -> Self {
        Body::Lent(b"")
    }
}

/// The methods of static content.
const ALLOWED: &str = "GET, HEAD, OPTIONS";
